//! What an operation does in each case.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::error::Invalid;
use super::guarded::StoreBudget;
use super::reference::References;
use crate::attempt::Attempt;
use crate::limits;

/// What a call does while the same request runs elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InFlight {
    /// Waits for its answer, so long; then [`CallError::InProgress`](super::CallError::InProgress).
    Wait {
        /// How long. It counts from the start of the call.
        at_most: Duration,
    },
    /// Does not wait: `InProgress` at once, with what is left of the lease.
    Reject,
    /// Runs the action all the same. **Unsafe**: this is the result cache that charges twice. It
    /// is here to compare with, and for actions that may run more than once.
    Run,
}

impl InFlight {
    /// How long a call may wait: not at all unless it is [`Wait`](Self::Wait).
    pub(super) fn patience(self) -> Duration {
        match self {
            Self::Wait { at_most } => at_most,
            Self::Reject | Self::Run => Duration::ZERO,
        }
    }
}

/// What a call does with a key whose holder's lease has ended: it crashed, was dropped, or gave
/// up not knowing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abandoned {
    /// Runs the action again; it sees that it is a takeover, and a
    /// [`downstream_key`](super::RunningAttempt::downstream_key) that is the same as before.
    Rerun,
    /// Does not: [`CallError::OutcomeUnknown`](super::CallError::OutcomeUnknown), until an
    /// operator has resolved the key. The effect happens at most once.
    Refuse,
}

/// What a call does when the store cannot protect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// Runs the action unprotected (fail open): two processes may both run it. Calls in one
    /// process still run it once. It is reported, and the result is recorded when the store is
    /// back.
    RunUnprotected,
    /// Refuses the call (fail closed) with [`CallError::Store`](super::CallError::Store).
    Refuse,
}

/// What is stored of a result above [`max_result`](super::Builder::max_result).
#[derive(Clone)]
#[non_exhaustive]
pub enum Oversize {
    /// Only that it is done: a retry is told so by
    /// [`CallError::ResponseNotKept`](super::CallError::ResponseNotKept), and does not run.
    NotKept,
    /// A reference that the hook gives for it, and loads it by on replay.
    Reference(Arc<dyn References>),
}

impl fmt::Debug for Oversize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotKept => "NotKept",
            Self::Reference(_) => "Reference(..)",
        })
    }
}

/// All that is set per operation.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) in_flight: InFlight,
    pub(super) abandoned: Abandoned,
    pub(super) on_store_failure: OnStoreFailure,
    pub(super) lease: Duration,
    pub(super) renew_for: Duration,
    pub(super) retention: Duration,
    pub(super) poll: Duration,
    pub(super) record_for: Duration,
    pub(super) max_result: usize,
    pub(super) oversize: Oversize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            in_flight: InFlight::Wait { at_most: Duration::from_secs(30) },
            abandoned: Abandoned::Rerun,
            on_store_failure: OnStoreFailure::RunUnprotected,
            lease: Attempt::DEFAULT_LEASE,
            renew_for: Duration::from_hours(1),
            retention: Attempt::DEFAULT_RETENTION,
            poll: Duration::from_secs(1),
            record_for: Duration::from_mins(10),
            max_result: 1 << 20,
            oversize: Oversize::NotKept,
        }
    }
}

impl Policy {
    /// Refuses what could only fail later.
    pub(super) fn check(&self, budget: &StoreBudget) -> Result<(), Invalid> {
        limits::check_lease(self.lease).map_err(|_| Invalid::Lease(self.lease))?;
        limits::check_retention(self.retention).map_err(|_| Invalid::Retention(self.retention))?;
        if budget.tries == 0 || budget.per_try.is_zero() || budget.total.is_zero() {
            return Err(Invalid::Budget);
        }
        if budget.per_try > self.lease / 3 {
            let per_try = budget.per_try;
            return Err(Invalid::LeaseTooShortForStore { lease: self.lease, per_try });
        }
        if self.poll.is_zero() { Err(Invalid::Poll) } else { Ok(()) }
    }
}

/// The setters of a policy, the same for a coordinator's defaults and for one operation.
macro_rules! policy_setters {
    ($policy:ident) => {
        /// What to do while the same request runs elsewhere. Default: wait for 30 s at most.
        pub fn in_flight(mut self, in_flight: InFlight) -> Self {
            self.$policy.in_flight = in_flight;
            self
        }

        /// What to do with a key whose holder's lease has ended. Default: run again.
        pub fn abandoned(mut self, abandoned: Abandoned) -> Self {
            self.$policy.abandoned = abandoned;
            self
        }

        /// What to do when the store cannot protect the call. Default: run unprotected.
        pub fn on_store_failure(mut self, on_store_failure: OnStoreFailure) -> Self {
            self.$policy.on_store_failure = on_store_failure;
            self
        }

        /// How long a reservation is held without being renewed: 10 ms to 24 h. Default: 30 s.
        ///
        /// It is renewed at every third of it while the action runs, so it need not be as long as
        /// the action takes; it is how long a key stays held when its worker has died.
        pub fn lease(mut self, lease: Duration) -> Self {
            self.$policy.lease = lease;
            self
        }

        /// For how long a lease is renewed. Default: 1 h. An action that takes longer is taken
        /// for stuck: its lease ends, and it is told by
        /// [`RunningAttempt::lost`](crate::RunningAttempt::lost).
        pub fn renew_for(mut self, renew_for: Duration) -> Self {
            self.$policy.renew_for = renew_for;
            self
        }

        /// How long a completed record is kept, from its completion: 1 minute to 10 years.
        /// Default: 24 h. A retry that comes later runs the action again. An abandoned record is
        /// kept as long from the end of its lease.
        pub fn retention(mut self, retention: Duration) -> Self {
            self.$policy.retention = retention;
            self
        }

        /// The longest interval between two looks at the store while waiting, give or take a
        /// quarter. Default: 1 s. A store that cannot hint is polled more often at first.
        pub fn poll(mut self, poll: Duration) -> Self {
            self.$policy.poll = poll;
            self
        }

        /// For how long a result that the store would not take is offered to it again, with the
        /// lease kept alive, or one whose key another attempt holds. For as long, a key whose
        /// action had no effect or never began is given back. Default: 10 min.
        pub fn record_for(mut self, record_for: Duration) -> Self {
            self.$policy.record_for = record_for;
            self
        }

        /// The largest result, in bytes as encoded, that is stored with the record.
        /// Default: 1 MiB (1,048,576).
        pub fn max_result(mut self, bytes: usize) -> Self {
            self.$policy.max_result = bytes;
            self
        }

        /// What is stored of a larger result. Default: only that it is done.
        pub fn oversize(mut self, oversize: Oversize) -> Self {
            self.$policy.oversize = oversize;
            self
        }
    };
}

pub(super) use policy_setters;
