//! What a client did, when, and what it was told.

use std::sync::Arc;
use std::time::Duration;

use idem_core::{Attempt, AttemptId, Record, StoreError};

use crate::lab::Moment;

/// One verb, as one client saw it.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// When it was sent and when its answer came, by a counter all clients share.
    pub(crate) sent: u64,
    /// Never, if no answer came: it may still take effect.
    pub(crate) answered: u64,
    /// When it took effect, by the store's clock.
    pub(crate) moment: Moment,
    pub(crate) call: Call,
    /// `None` if the answer was lost.
    pub(crate) answer: Option<Answer>,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Reserve(Arc<Attempt>),
    Renew(AttemptId, Duration),
    Complete(AttemptId, Vec<u8>),
    Release(AttemptId),
}

/// What was answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Record(Record),
    Left(Duration),
    Done,
    LeaseLost,
}

impl Answer {
    /// The answer, unless it is that there is none.
    pub(crate) fn of<T>(
        result: Result<T, StoreError>,
        answer: impl FnOnce(T) -> Self,
    ) -> Result<Self, StoreError> {
        match result {
            Ok(value) => Ok(answer(value)),
            Err(StoreError::LeaseLost) => Ok(Self::LeaseLost),
            Err(error) => Err(error),
        }
    }
}
