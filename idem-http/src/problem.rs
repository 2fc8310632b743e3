//! Why a request was not answered by its handler (RFC 9457).

use std::time::Duration;

use http::StatusCode;
use idem_core::{CallError, NotKept, StoreError};
use thiserror::Error;

use crate::fingerprint::FingerprintParts;
use crate::key::BadKey;

pub(crate) const DEFAULT_BASE: &str = "urn:idem:problem:";

/// Why a request was not answered by its handler, now or before.
///
/// Its `Display` is the problem's `detail`. Nothing in it is from the request or from a store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// 400: the key is missing or malformed.
    #[error("{0}")]
    Key(#[from] BadKey),
    /// 400: the body ended early, or could not be read.
    #[error("the request body could not be read")]
    BodyUnreadable,
    /// 400: the request has no fingerprint; why, as the layer's own rule says.
    #[error("the request cannot be told from others: {0}")]
    NoFingerprint(String),
    /// 403: nobody said whose request it is.
    #[error("this operation takes idempotency keys of authenticated callers only")]
    NoPrincipal,
    /// 409, with `Retry-After`: the same request is in progress.
    #[error("the same request is in progress; retry with the same key to get its response")]
    InProgress {
        /// How much of the running attempt's lease is left.
        retry_after: Duration,
    },
    /// 409: an earlier attempt was abandoned, and nobody knows whether it had its effect.
    #[error(
        "an earlier attempt at this request ended without a result; whether it had an effect is not known"
    )]
    OutcomeUnknown,
    /// 410: the effect happened, and its response was not kept. It does not happen again.
    #[error("the request was completed, and its response was not kept: {why}")]
    ResponseNotKept {
        /// Why.
        why: NotKept,
    },
    /// 413: the body is larger than the route takes.
    #[error("the request body is larger than {limit} bytes")]
    BodyTooLarge {
        /// How many bytes it takes.
        limit: usize,
    },
    /// 422: the key was used with another request.
    #[error(
        "the idempotency key was used with another request: a retry must have the same {parts}, and a new request a new key"
    )]
    Mismatch {
        /// The names of what must be the same; their values are told to nobody.
        parts: String,
    },
    /// 500: there is a stored response and it cannot be read. The handler does not run.
    #[error("the request was completed, and its stored response cannot be read")]
    Unreadable,
    /// 500: the handler panicked. Whether it had an effect is not known.
    #[error("the request failed; whether it had an effect is not known")]
    Panicked,
    /// 500: the handler sent itself the request that it was handling.
    #[error("the request was made inside its own handler")]
    Reentrant,
    /// 503: the store cannot protect the request, and the operation does not run without it.
    #[error("the request cannot be protected against being run twice at the moment")]
    StoreUnavailable,
    /// 503: the effect happened, and its response, kept elsewhere, cannot be loaded now.
    #[error("the request was completed, and its response cannot be loaded at the moment")]
    ResponseUnavailable,
    /// 503: the server is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
}

impl Problem {
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Key(_) | Self::BodyUnreadable | Self::NoFingerprint(_) => StatusCode::BAD_REQUEST,
            Self::NoPrincipal => StatusCode::FORBIDDEN,
            Self::InProgress { .. } | Self::OutcomeUnknown => StatusCode::CONFLICT,
            Self::ResponseNotKept { .. } => StatusCode::GONE,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Mismatch { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unreadable | Self::Panicked | Self::Reentrant => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::StoreUnavailable | Self::ResponseUnavailable | Self::ShuttingDown => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// A stable name, the same in every version.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Key(why) => why.code(),
            Self::BodyUnreadable => "body_unreadable",
            Self::NoFingerprint(_) => "no_fingerprint",
            Self::NoPrincipal => "no_principal",
            Self::InProgress { .. } => "in_progress",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::ResponseNotKept { .. } => "response_not_kept",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::Mismatch { .. } => "mismatch",
            Self::Unreadable => "unreadable",
            Self::Panicked => "panicked",
            Self::Reentrant => "reentrant",
            Self::StoreUnavailable => "store_unavailable",
            Self::ResponseUnavailable => "response_unavailable",
            Self::ShuttingDown => "shutting_down",
        }
    }

    /// A short text for people that is the same for every occurrence.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Key(BadKey::Missing) => "Idempotency-Key is missing",
            Self::Key(_) => "Idempotency-Key is malformed",
            Self::BodyUnreadable => "The request body could not be read",
            Self::NoFingerprint(_) => "The request has no fingerprint",
            Self::NoPrincipal => "The caller is not known",
            Self::InProgress { .. } => "A request is outstanding for this Idempotency-Key",
            Self::OutcomeUnknown => "The outcome of the request is unknown",
            Self::ResponseNotKept { .. } => "The request was completed; its response was not kept",
            Self::BodyTooLarge { .. } => "The request body is too large",
            Self::Mismatch { .. } => "Idempotency-Key is already used",
            Self::Unreadable => "The stored response cannot be read",
            Self::Panicked => "The request failed",
            Self::Reentrant => "The request was made inside its own handler",
            Self::StoreUnavailable => "Idempotency is not available",
            Self::ResponseUnavailable => "The stored response is not available",
            Self::ShuttingDown => "The server is shutting down",
        }
    }

    /// The type URI that starts with `base`: the [`code`](Self::code), with hyphens.
    pub fn type_uri(&self, base: &str) -> String {
        format!("{base}{}", self.code().replace('_', "-"))
    }

    /// How long to wait before the same request may fare better, where that is known: whole
    /// seconds, at least one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InProgress { retry_after } => {
                let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
                Some(Duration::from_secs(seconds.max(1)))
            }
            _ => None,
        }
    }
}

impl Problem {
    /// Why the coordinator has no answer to a request that is known by `parts`.
    pub(crate) fn of(error: &CallError, parts: &FingerprintParts) -> Self {
        match error {
            CallError::InProgress { retry_after, .. } => {
                Self::InProgress { retry_after: *retry_after }
            }
            CallError::Mismatch { .. } => Self::Mismatch { parts: parts.names() },
            CallError::OutcomeUnknown { .. } => Self::OutcomeUnknown,
            CallError::ResponseNotKept { why, .. } => Self::ResponseNotKept { why: *why },
            CallError::ReferenceUnavailable { .. } => Self::ResponseUnavailable,
            CallError::Unreadable { .. }
            | CallError::Store { source: StoreError::Corrupt { .. }, .. } => Self::Unreadable,
            CallError::Reentrant { .. } => Self::Reentrant,
            CallError::Panicked { .. } => Self::Panicked,
            CallError::Draining | CallError::NoRuntime | CallError::Interrupted => {
                Self::ShuttingDown
            }
            // What is invalid was refused when the layer was built, or when the key was read.
            _ => Self::StoreUnavailable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_whole_seconds_and_never_none() {
        for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (29_999, 30)] {
            let problem = Problem::InProgress { retry_after: Duration::from_millis(millis) };
            assert_eq!(problem.retry_after(), Some(Duration::from_secs(seconds)), "{millis} ms");
        }
        assert_eq!(Problem::OutcomeUnknown.retry_after(), None);
    }

    // C141: clients compare these; a change breaks them.
    #[test]
    fn codes_and_statuses_stand_still() {
        let problems = [
            (Problem::Key(BadKey::Missing), 400, "key_missing"),
            (Problem::Key(BadKey::Repeated), 400, "key_repeated"),
            (Problem::Key(BadKey::Empty), 400, "key_empty"),
            (Problem::Key(BadKey::TooLong), 400, "key_too_long"),
            (Problem::Key(BadKey::NotQuoted), 400, "key_not_quoted"),
            (Problem::Key(BadKey::Malformed), 400, "key_malformed"),
            (Problem::BodyUnreadable, 400, "body_unreadable"),
            (Problem::NoFingerprint(String::new()), 400, "no_fingerprint"),
            (Problem::NoPrincipal, 403, "no_principal"),
            (Problem::InProgress { retry_after: Duration::ZERO }, 409, "in_progress"),
            (Problem::OutcomeUnknown, 409, "outcome_unknown"),
            (Problem::ResponseNotKept { why: NotKept::Chosen }, 410, "response_not_kept"),
            (Problem::BodyTooLarge { limit: 1 }, 413, "body_too_large"),
            (Problem::Mismatch { parts: String::new() }, 422, "mismatch"),
            (Problem::Unreadable, 500, "unreadable"),
            (Problem::Panicked, 500, "panicked"),
            (Problem::Reentrant, 500, "reentrant"),
            (Problem::StoreUnavailable, 503, "store_unavailable"),
            (Problem::ResponseUnavailable, 503, "response_unavailable"),
            (Problem::ShuttingDown, 503, "shutting_down"),
        ];
        for (problem, status, code) in problems {
            assert_eq!((problem.status().as_u16(), problem.code()), (status, code));
            assert!(!problem.title().is_empty() && !problem.to_string().is_empty());
        }
    }
}
