//! What a client was told.

use std::fmt;

use super::super::payment::Paid;
use super::super::provider::Declined;

use idem_kit::RunError;

/// What a client was told, in the order of the report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    /// A charge that was made for this very request.
    Charged,
    /// A charge that was made for an earlier one.
    Replayed,
    /// That the card was declined.
    Declined,
    /// An error of this code.
    Refused(&'static str),
    /// Nothing: it gave up.
    GaveUp,
    /// Nothing: the worker died.
    WorkerDied,
}

impl Answer {
    pub(super) fn of(paid: &Paid) -> Self {
        match paid {
            Ok(outcome) if outcome.replayed => Self::Replayed,
            Ok(_) => Self::Charged,
            Err(RunError::Action { .. }) => Self::Declined,
            Err(RunError::Call(error)) => Self::Refused(error.code()),
        }
    }

    pub(super) fn without_store(charged: &Result<String, Declined>) -> Self {
        if charged.is_ok() { Self::Charged } else { Self::Declined }
    }

    /// A name for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Charged => "charged",
            Self::Replayed => "replayed",
            Self::Declined => "declined",
            Self::Refused(code) => code,
            Self::GaveUp => "gave_up",
            Self::WorkerDied => "worker_died",
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Charged => f.write_str("charge id, charged now"),
            Self::Replayed => f.write_str("charge id, replayed"),
            Self::Declined => f.write_str("declined"),
            Self::Refused(code) => write!(f, "refused: {code}"),
            Self::GaveUp => f.write_str("none, the client gave up"),
            Self::WorkerDied => f.write_str("none, the worker died"),
        }
    }
}
