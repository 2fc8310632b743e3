//! Why a call has no answer to give.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::classify::Effect;
use crate::envelope::NotKept;
use crate::error::{Refusal, StoreError};
use crate::fingerprint::Fingerprint;
use crate::key::{Key, KeyError};

/// What is wrong with a call or a configuration, found before anything was done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The operation, the tenant or the key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The lease is outside [`limits::LEASE`](crate::limits::LEASE).
    #[error("a lease of {0:?} is outside 10ms to 24h")]
    Lease(Duration),
    /// The retention is outside [`limits::RETENTION`](crate::limits::RETENTION).
    #[error("a retention of {0:?} is outside 1 minute to 3650 days")]
    Retention(Duration),
    /// One try of the store may take longer than a third of the lease, so a renewal could come
    /// too late.
    #[error("a lease of {lease:?} is shorter than three tries of the store, {per_try:?} each")]
    LeaseTooShortForStore {
        /// The lease.
        lease: Duration,
        /// [`StoreBudget::per_try`](super::StoreBudget::per_try).
        per_try: Duration,
    },
    /// The store's budget allows no try, or no time for one.
    #[error("the store's budget allows no call")]
    Budget,
    /// The interval between polls is zero.
    #[error("the interval between polls is zero")]
    Poll,
    /// The codec's id is reserved: users have 128 to 255.
    #[error("codec id {0} is reserved; 128 to 255 are free")]
    Codec(u8),
}

impl Invalid {
    /// A stable name for logs, metrics and comparisons across versions of this crate.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Key(error) => error.code(),
            Self::Lease(_) => "lease_out_of_range",
            Self::Retention(_) => "retention_out_of_range",
            Self::LeaseTooShortForStore { .. } => "lease_too_short_for_store",
            Self::Budget => "store_budget_empty",
            Self::Poll => "poll_zero",
            Self::Codec(_) => "codec_reserved",
        }
    }
}

/// Why a call has no answer to give, although its action did not fail.
///
/// Messages carry the operation and the key's hash, never its text or a value. Cloning is cheap:
/// one failure is told to every caller who waited for it.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The call itself is wrong. Nothing was done.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The same request is running elsewhere, and it took longer than this call may wait.
    /// HTTP 409.
    #[error("{key} is in progress; its lease has {retry_after:?} left")]
    InProgress {
        /// The key.
        key: Key,
        /// How much of the running attempt's lease is left. It may be renewed, and may be
        /// completed much earlier.
        retry_after: Duration,
    },
    /// The key was used with another request. HTTP 422.
    #[error("{key} was used with another request: it was {recorded}, now it is {given}")]
    Mismatch {
        /// The key.
        key: Key,
        /// The fingerprint of the request that the key was used with.
        recorded: Fingerprint,
        /// The fingerprint of this request.
        given: Fingerprint,
    },
    /// An earlier attempt was abandoned and nobody knows whether it had its effect.
    /// Under [`Abandoned::Refuse`](super::Abandoned::Refuse), or when a probe could not tell.
    #[error("{key} was abandoned by attempt {attempts}; whether it had an effect is unknown")]
    OutcomeUnknown {
        /// The key.
        key: Key,
        /// How many attempts have held the key.
        attempts: u32,
    },
    /// The action had its effect, and its response was not kept. It does not run again.
    #[error("{key} was completed, and its response was not kept: {why}")]
    ResponseNotKept {
        /// The key.
        key: Key,
        /// Why.
        why: NotKept,
    },
    /// The action had its effect, and its response, kept elsewhere, could not be loaded now.
    #[error("{key} was completed, and its response could not be loaded")]
    ReferenceUnavailable {
        /// The key.
        key: Key,
        /// What the hook said.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// There is a stored response and it cannot be read: damaged, of a newer version, or of
    /// another type. The action does not run (law L8).
    #[error("{key} was completed, and its stored response cannot be read")]
    Unreadable {
        /// The key.
        key: Key,
        /// What is wrong with it.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The key's own action asked for the key again, and would wait for itself.
    #[error("{key} was asked for inside its own action")]
    Reentrant {
        /// The key.
        key: Key,
    },
    /// The store failed, and the operation does not run without it. HTTP 503.
    #[error("{key} could not be protected: the store failed")]
    Store {
        /// The key.
        key: Key,
        /// What the store said.
        source: StoreError,
    },
    /// The action panicked, or code that decides on its result did. Whether it had an effect is
    /// unknown; its record is abandoned.
    #[error("the action of {key} panicked")]
    Panicked {
        /// The key.
        key: Key,
        /// What it panicked with, if that was text. It may hold anything, so it is in no message.
        message: String,
    },
    /// The coordinator is being drained and takes no new calls.
    #[error("the coordinator is shutting down")]
    Draining,
    /// The caller is not inside a Tokio runtime.
    #[error("there is no Tokio runtime to run on")]
    NoRuntime,
    /// The runtime was shut down while the call was under way.
    #[error("the call was interrupted by the shutdown of its runtime")]
    Interrupted,
}

impl CallError {
    /// A stable name for logs, metrics and clients, the same in every version.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::InProgress { .. } => "in_progress",
            Self::Mismatch { .. } => "mismatch",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::ResponseNotKept { .. } => "response_not_kept",
            Self::ReferenceUnavailable { .. } => "reference_unavailable",
            Self::Unreadable { .. } => "unreadable",
            Self::Reentrant { .. } => "reentrant",
            Self::Store { source, .. } => source.code(),
            Self::Panicked { .. } => "panicked",
            Self::Draining => "draining",
            Self::NoRuntime => "no_runtime",
            Self::Interrupted => "interrupted",
        }
    }

    /// How long to wait before the same call may fare better, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InProgress { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// The store's error about `key`: one about the call itself is the caller's.
    pub(super) fn store(key: &Key, source: StoreError) -> Self {
        Self::Store { key: key.clone(), source }
    }
}

/// Why [`Call::run`](super::Call::run) has no value.
#[derive(Debug, Error)]
#[expect(clippy::exhaustive_enums, reason = "the action failed, or there is another reason")]
pub enum RunError<E> {
    /// The action failed, now or before.
    #[error("the action failed")]
    Action {
        /// What it failed with.
        #[source]
        error: E,
        /// What that meant for the record.
        effect: Effect,
        /// Whether the action ran now (`false`), or its stored error was replayed.
        replayed: bool,
    },
    /// The action did not fail: it was not run, or its answer cannot be had.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl<E> RunError<E> {
    /// The action's error, if that is what it is.
    pub fn action(self) -> Option<E> {
        match self {
            Self::Action { error, .. } => Some(error),
            Self::Call(_) => None,
        }
    }

    /// The reason that is not the action's, if there is one.
    pub fn call(&self) -> Option<&CallError> {
        match self {
            Self::Action { .. } => None,
            Self::Call(error) => Some(error),
        }
    }

    /// A stable name, see [`CallError::code`]; `action_failed` for the action's own error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Action { .. } => "action_failed",
            Self::Call(error) => error.code(),
        }
    }
}

/// Whether the operation's policy for a failing store applies to the error. It does not where
/// the store answered that there is a record it cannot read, or that the call is wrong.
pub(super) fn is_store_failure(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable { .. } => true,
        StoreError::Refused { refusal, .. } => *refusal != Refusal::Invalid,
        StoreError::Corrupt { .. } | StoreError::LeaseLost => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Applied, BoxError};
    use crate::key::{KeyPart, Scope};

    const SECRET: &str = "4111-1111";

    fn all() -> Vec<CallError> {
        let key = || Key::new(Scope::new("charge").unwrap(), SECRET).unwrap();
        let (one, two) = (Fingerprint::from_bytes([1; 32]), Fingerprint::from_bytes([2; 32]));
        let source: Arc<dyn Error + Send + Sync> = Arc::from(BoxError::from(SECRET));
        vec![
            Invalid::Poll.into(),
            CallError::InProgress { key: key(), retry_after: Duration::from_secs(7) },
            CallError::Mismatch { key: key(), recorded: one, given: two },
            CallError::OutcomeUnknown { key: key(), attempts: 3 },
            CallError::ResponseNotKept { key: key(), why: NotKept::NoRoom },
            CallError::ReferenceUnavailable { key: key(), source: Arc::clone(&source) },
            CallError::Unreadable { key: key(), source },
            CallError::Reentrant { key: key() },
            CallError::store(&key(), StoreError::unavailable(Applied::No, SECRET)),
            CallError::Panicked { key: key(), message: SECRET.into() },
            CallError::Draining,
            CallError::NoRuntime,
            CallError::Interrupted,
        ]
    }

    // C129, C141: two versions of this crate in one process agree on them.
    #[test]
    fn codes_are_stable() {
        let codes: Vec<_> = all().iter().map(CallError::code).collect();
        let expected = [
            "invalid",
            "in_progress",
            "mismatch",
            "outcome_unknown",
            "response_not_kept",
            "reference_unavailable",
            "unreadable",
            "reentrant",
            "store_unavailable",
            "panicked",
            "draining",
            "no_runtime",
            "interrupted",
        ];
        assert_eq!(codes, expected);
        assert_eq!(RunError::<()>::from(CallError::Draining).code(), "draining");
    }

    // C141
    #[test]
    fn every_way_to_be_invalid_has_a_code() {
        let second = Duration::from_secs(1);
        let all = [
            Invalid::Key(KeyError::Empty(KeyPart::Tenant)),
            Invalid::Lease(second),
            Invalid::Retention(second),
            Invalid::LeaseTooShortForStore { lease: second, per_try: second },
            Invalid::Budget,
            Invalid::Poll,
            Invalid::Codec(7),
        ];
        let expected = [
            "tenant_empty",
            "lease_out_of_range",
            "retention_out_of_range",
            "lease_too_short_for_store",
            "store_budget_empty",
            "poll_zero",
            "codec_reserved",
        ];
        assert_eq!(all.each_ref().map(Invalid::code), expected);
    }

    // C130, C140: the operation, a hash and what is left of the lease; never a value.
    #[test]
    fn messages_name_the_key_by_its_hash_and_show_no_value() {
        for error in all() {
            let message = error.to_string();
            assert!(!message.contains(SECRET), "{message}");
            let names_no_key = matches!(
                error,
                CallError::Invalid(_)
                    | CallError::Draining
                    | CallError::NoRuntime
                    | CallError::Interrupted
            );
            assert_eq!(message.contains("charge#"), !names_no_key, "{message}");
        }
        assert!(all()[1].to_string().ends_with("its lease has 7s left"));
    }

    #[test]
    fn a_cause_is_a_source_and_not_in_the_message() {
        for error in all() {
            let Some(source) = error.source() else { continue };
            let (message, cause) = (error.to_string(), source.to_string());
            assert!(!message.contains(&cause), "{message:?} repeats {cause:?}");
        }
        let store = all().into_iter().find(|error| error.code() == "store_unavailable").unwrap();
        let driver = store.source().and_then(Error::source).map(ToString::to_string);
        assert_eq!(driver.as_deref(), Some(SECRET), "the driver's words are at the end");
        // A call's error adds no link of its own to the chain.
        let run = RunError::<std::fmt::Error>::from(store.clone());
        assert_eq!(run.to_string(), store.to_string());
    }
}
