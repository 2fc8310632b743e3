//! What a store holds for a key, and what that means to the attempt that asked.

use std::time::Duration;

use bytes::Bytes;

use crate::attempt::{Attempt, AttemptId, Fence, Lease};
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;

/// What a store holds for a key, as of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores build it; a new field must break them")]
pub struct Record {
    /// What the request is that the record was made for.
    pub fingerprint: Fingerprint,
    /// The attempt that holds the key, or completed it.
    pub holder: AttemptId,
    /// The fence of its lease.
    pub fence: Fence,
    /// How many attempts have held the reservation, the holder included: 1, and one more for
    /// each takeover.
    pub attempts: u32,
    /// Whether the outcome is known.
    pub state: State,
}

/// Whether the outcome behind a key is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores build it; a new state must break them")]
pub enum State {
    /// Reserved, and not completed.
    Pending {
        /// How much of the lease is left by the store's clock. Zero exactly if it has ended, in
        /// which case the record is *abandoned*; a live lease is rounded up, never down to zero.
        left: Duration,
    },
    /// Completed, and kept until its retention has passed.
    Completed {
        /// The bytes given to `complete`. `None` exactly if the attempt that asked has another
        /// fingerprint: it must not see the answer, and a store need not read it.
        payload: Option<Bytes>,
    },
}

/// What a record means to the attempt that asked. The core decides this, for every store alike.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The attempt holds the key.
    Acquired {
        /// The right to complete it.
        lease: Lease,
        /// How much of the lease is left.
        left: Duration,
        /// How many attempts have held the reservation, this one included. More than one means
        /// a takeover: an earlier attempt was abandoned, and may have had its effect.
        attempts: u32,
    },
    /// The request was completed before; this is what `complete` was given.
    Replay(Bytes),
    /// Another attempt holds the key.
    InProgress {
        /// How much of its lease is left.
        left: Duration,
    },
    /// Another attempt held the key, its lease has ended, and this attempt may not take over.
    /// The outcome is unknown.
    Abandoned {
        /// How many attempts have held the reservation.
        attempts: u32,
    },
    /// The key was used with another request.
    Mismatch {
        /// The fingerprint that the record was made with.
        recorded: Fingerprint,
    },
}

impl Record {
    /// What the record means to `attempt`.
    ///
    /// The fingerprint is compared first: a reused key is a mismatch whether the first request
    /// is running, abandoned or done.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the store left out the payload of a matching record.
    pub fn verdict(self, attempt: &Attempt) -> Result<Verdict, StoreError> {
        if self.fingerprint != attempt.fingerprint() {
            return Ok(Verdict::Mismatch { recorded: self.fingerprint });
        }
        Ok(match self.state {
            State::Completed { payload: Some(payload) } => Verdict::Replay(payload),
            State::Completed { payload: None } => {
                return Err(StoreError::corrupt("a completed record came without its payload"));
            }
            State::Pending { left } if self.holder == attempt.id() => Verdict::Acquired {
                lease: Lease::new(attempt.key().clone(), self.holder, self.fence),
                left,
                attempts: self.attempts,
            },
            State::Pending { left } if left.is_zero() && !attempt.may_take_over() => {
                Verdict::Abandoned { attempts: self.attempts }
            }
            State::Pending { left } => Verdict::InProgress { left },
        })
    }
}
