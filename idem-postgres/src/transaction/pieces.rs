//! The verbs inside a transaction of the application's.

use std::time::Duration;

use bytes::Bytes;
use idem_core::{Attempt, Fingerprint, Key, Lease, StoreError, Verdict, limits};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep};

use super::request::Rivals;
use crate::jitter::jittered;
use crate::store::{PostgresStore, not_told};
use crate::verbs::{Done, Failure, Reserved};

/// The first and the longest pause before a key is looked at again.
pub(super) const POLL: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_millis(250));

/// What came of a reservation inside a transaction. After any of them the transaction is usable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a caller has to handle each")]
pub enum Reservation {
    /// The key is this transaction's until it ends.
    Held {
        /// The right to complete it.
        lease: Lease,
        /// How many attempts have held the key, this one included. More than one: an earlier one
        /// was committed, outside or by itself, and abandoned.
        attempts: u32,
    },
    /// The request was completed before, with these bytes.
    Replay(Bytes),
    /// Another attempt has the key, and still had it when the wait was over.
    InProgress {
        /// How much of its lease is left; `None` if it is a transaction that is still open.
        left: Option<Duration>,
    },
    /// Another attempt had the key, its lease has ended, and this attempt may not take over.
    Abandoned {
        /// How many attempts have held the key.
        attempts: u32,
    },
    /// The key was used with another request.
    Mismatch {
        /// The fingerprint that the record was made with.
        recorded: Fingerprint,
    },
}

/// A completion that is committed together with its transaction.
#[derive(Clone, Debug)]
pub struct Completion {
    pub(super) key: Key,
    pub(super) done: Done,
}

impl PostgresStore {
    /// Reserves the key inside the caller's transaction: it is held until the transaction ends,
    /// and a rollback leaves nothing of it, not even a fence.
    ///
    /// Until the commit nobody sees the record. A rival inside a transaction of its own finds that
    /// the key is taken without waiting for it; by way of the coordinator, or of
    /// [`Store::reserve`](idem_core::Store::reserve), it would wait for this transaction, so let an
    /// operation be served in one way.
    ///
    /// With [`Rivals::Wait`] the connection, and the caller's transaction, are held for as long:
    /// [`transaction`](Self::transaction) waits without either. Under `REPEATABLE READ` and
    /// `SERIALIZABLE` a transaction does not see what was committed since it began: what it would
    /// have to wait for is an error then, `40001`, and the transaction has to be repeated.
    ///
    /// Inside a savepoint, rolling back to it frees the key.
    ///
    /// # Errors
    /// As [`Store::reserve`](idem_core::Store::reserve). After
    /// [`Unavailable`](StoreError::Unavailable) the transaction has failed, and can only be rolled
    /// back.
    ///
    /// # Cancellation
    /// The transaction may hold the key. Roll it back.
    pub async fn reserve_in(
        &self,
        on: &mut PgConnection,
        attempt: &Attempt,
        rivals: Rivals,
    ) -> Result<Reservation, StoreError> {
        let deadline = Instant::now() + rivals.patience();
        let (mut pause, longest) = POLL;
        loop {
            let seen = self.try_reserve_in(on, attempt).await?;
            let now = Instant::now();
            if !matches!(seen, Reservation::InProgress { .. }) || now >= deadline {
                return Ok(seen);
            }
            sleep(jittered(pause).min(deadline - now)).await;
            pause = (2 * pause).min(longest);
        }
    }

    pub(super) async fn try_reserve_in(
        &self,
        on: &mut PgConnection,
        attempt: &Attempt,
    ) -> Result<Reservation, Failure> {
        attempt.check()?;
        let record = match self.verbs.reserve(attempt, true).send(on).await? {
            Reserved::Record(record) => record,
            Reserved::Busy => return Ok(Reservation::InProgress { left: None }),
            Reserved::Lost => return Err(StoreError::LeaseLost.into()),
        };
        match record.verdict(attempt)? {
            Verdict::Acquired { lease, attempts, .. } => Ok(Reservation::Held { lease, attempts }),
            Verdict::Replay(payload) => Ok(Reservation::Replay(payload)),
            Verdict::InProgress { left } => Ok(Reservation::InProgress { left: Some(left) }),
            Verdict::Abandoned { attempts } => Ok(Reservation::Abandoned { attempts }),
            Verdict::Mismatch { recorded } => Ok(Reservation::Mismatch { recorded }),
            other => Err(StoreError::corrupt(format!("an unknown verdict: {other:?}")).into()),
        }
    }

    /// Completes the key inside the caller's transaction: the record and the caller's rows are
    /// committed together, or neither is.
    ///
    /// The lease may be of a reservation inside the same transaction, or of one made outside: then
    /// it may have been lost, and the error, passed on with `?`, rolls the caller's rows back.
    ///
    /// Once committed, [`announce`](Self::announce) tells those who wait for the key.
    ///
    /// # Errors
    /// As [`Store::complete`](idem_core::Store::complete). After
    /// [`Unavailable`](StoreError::Unavailable) the transaction has failed, and can only be rolled
    /// back.
    ///
    /// # Cancellation
    /// The transaction may hold the completion. Roll it back.
    pub async fn complete_in(
        &self,
        on: &mut PgConnection,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<Completion, StoreError> {
        Ok(self.try_complete_in(on, lease, payload, retention).await?)
    }

    pub(super) async fn try_complete_in(
        &self,
        on: &mut PgConnection,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<Completion, Failure> {
        limits::check_retention(retention)?;
        let done = self.verbs.complete(lease, payload, retention, true).send(on).await?;
        Ok(Completion { key: lease.key().clone(), done })
    }

    /// Tells those who wait for the key of a completion that is committed. Sends nothing if nobody
    /// waits; without it, they find out by their next poll.
    ///
    /// # Cancellation
    /// They may have been told.
    pub async fn announce(&self, completion: &Completion) {
        let Completion { key, done } = completion;
        if done.awaited && self.hints.is_some() {
            self.tell(key).await;
        }
    }

    /// Tells those who wait for the key to look again, if anybody does.
    pub(super) async fn tell(&self, key: &Key) {
        if let Err(error) = self.send(|| self.verbs.announce(key)).await {
            not_told(key, &error);
        }
    }
}
