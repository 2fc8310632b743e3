//! The events.

use std::time::Duration;

use crate::attempt::Fence;
use crate::envelope::NotKept;
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::key::Key;

/// Something that happened to a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The key. Its `Display` shows the operation and a hash.
    pub key: Key,
    /// What happened.
    pub what: Transition,
}

/// What happened. Each has a stable [`name`](Self::name).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Transition {
    /// The key was reserved for a first attempt.
    Reserved {
        /// The fence of its lease.
        fence: Fence,
    },
    /// An abandoned key was taken over.
    TakenOver {
        /// The fence of the new lease.
        fence: Fence,
        /// How many attempts have held the key, the new one included.
        attempts: u32,
    },
    /// A stored answer was given.
    Replayed {
        /// How long the caller waited for it while it was in progress; `None` if it was there.
        waited: Option<Duration>,
    },
    /// The same request was still running when the caller's patience ended, or it had none.
    Rejected {
        /// How much of the running attempt's lease was left.
        retry_after: Duration,
    },
    /// The key was used with another request.
    Mismatch {
        /// The fingerprint that the record was made with.
        recorded: Fingerprint,
        /// The fingerprint of the refused request.
        given: Fingerprint,
    },
    /// An abandoned key was refused, because its outcome is unknown.
    OutcomeUnknown {
        /// How many attempts have held the key.
        attempts: u32,
    },
    /// A lease was lost: the store said so, or it ended here without a renewal.
    LeaseLost,
    /// A lease is no longer renewed: the action took longer than the ceiling.
    RenewalEnded,
    /// A result was recorded.
    Completed {
        /// Whether it was recorded only after the caller had its answer.
        late: bool,
    },
    /// The store did not take a result; the write is being retried.
    CompletionRetried {
        /// What the store said.
        error: StoreError,
    },
    /// A result was not recorded, and will not be.
    NotRecorded {
        /// What the store said, if it is the store's fault.
        error: Option<StoreError>,
    },
    /// That an action is done was recorded, and its response was not.
    ResponseNotKept {
        /// Why.
        why: NotKept,
    },
    /// An attempt that had been taken over gave way: its result, or its failure, is not the key's.
    Superseded,
    /// A failed action had no effect: its key is free again.
    Released,
    /// An attempt gave its key up, not knowing whether its action had an effect, or its action was
    /// dropped half-way.
    Abandoned,
    /// The store failed.
    StoreFailed {
        /// What it said.
        error: StoreError,
    },
    /// The action runs without the store's protection.
    RanUnprotected,
}

impl Transition {
    /// A stable name for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reserved { .. } => "reserved",
            Self::TakenOver { .. } => "taken_over",
            Self::Replayed { waited: None } => "replayed",
            Self::Replayed { waited: Some(_) } => "waited",
            Self::Rejected { .. } => "rejected",
            Self::Mismatch { .. } => "mismatch",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::LeaseLost => "lease_lost",
            Self::RenewalEnded => "renewal_ended",
            Self::Completed { .. } => "completed",
            Self::CompletionRetried { .. } => "completion_retried",
            Self::NotRecorded { .. } => "not_recorded",
            Self::ResponseNotKept { .. } => "response_not_kept",
            Self::Superseded => "superseded",
            Self::Released => "released",
            Self::Abandoned => "abandoned",
            Self::StoreFailed { .. } => "store_failed",
            Self::RanUnprotected => "ran_unprotected",
        }
    }

    /// Whether somebody should look: a guarantee was weakened, or something was lost.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::OutcomeUnknown { .. }
                | Self::LeaseLost
                | Self::RenewalEnded
                | Self::CompletionRetried { .. }
                | Self::NotRecorded { .. }
                | Self::ResponseNotKept { .. }
                | Self::Superseded
                | Self::Abandoned
                | Self::StoreFailed { .. }
                | Self::RanUnprotected
        )
    }

    /// The store's error behind it, if there is one.
    pub fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::CompletionRetried { error } | Self::StoreFailed { error } => Some(error),
            Self::NotRecorded { error } => error.as_ref(),
            _ => None,
        }
    }
}
