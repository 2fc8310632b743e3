//! The store under test, with what a property expects of an answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use idem_core::{Attempt, Lease, Record, Refusal, Store, StoreError, Verdict as Meaning};

use crate::failure::{Failure, Verdict, ensure};
use crate::lab::KEPT;

/// A handle to the store under test. Clones are the same handle.
#[derive(Clone)]
pub(crate) struct Subject(Arc<dyn Store>);

/// What an attempt that acquired its key was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) lease: Lease,
    pub(crate) left: Duration,
    pub(crate) attempts: u32,
}

impl Subject {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    pub(crate) fn into_inner(self) -> Arc<dyn Store> {
        self.0
    }

    pub(crate) fn raw(&self) -> &dyn Store {
        &*self.0
    }

    pub(crate) async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.0.reserve(attempt).await
    }

    pub(crate) async fn renew(&self, lease: &Lease, by: Duration) -> Result<Duration, StoreError> {
        self.0.renew(lease, by).await
    }

    /// Completes with these bytes, kept for the usual retention.
    pub(crate) async fn complete(&self, lease: &Lease, payload: &[u8]) -> Result<(), StoreError> {
        self.complete_for(lease, payload, KEPT).await
    }

    pub(crate) async fn complete_for(
        &self,
        lease: &Lease,
        payload: &[u8],
        retention: Duration,
    ) -> Result<(), StoreError> {
        self.0.complete(lease, &Bytes::copy_from_slice(payload), retention).await
    }

    pub(crate) async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.0.release(lease).await
    }

    /// Ends the lease now, and leaves the record abandoned.
    pub(crate) async fn abandon(&self, lease: &Lease) -> Verdict {
        let left = self.0.renew(lease, Duration::ZERO).await?;
        ensure!(left.is_zero(), "a lease given up has {left:?} left");
        Ok(())
    }
}

/// What a reservation must come to.
impl Subject {
    async fn meaning(&self, attempt: &Attempt) -> Verdict<Meaning> {
        Ok(self.0.reserve(attempt).await?.verdict(attempt)?)
    }

    pub(crate) async fn acquires(&self, attempt: &Attempt) -> Verdict<Grant> {
        match self.meaning(attempt).await? {
            Meaning::Acquired { lease, left, attempts } => Ok(Grant { lease, left, attempts }),
            other => Err(Failure::violated(format!("the key was not granted: {other:?}"))),
        }
    }

    pub(crate) async fn replays(&self, attempt: &Attempt, payload: &[u8]) -> Verdict {
        match self.meaning(attempt).await? {
            Meaning::Replay(seen) => {
                ensure!(
                    seen == payload,
                    "{} bytes were stored, and {} other bytes came back",
                    payload.len(),
                    seen.len()
                );
                Ok(())
            }
            other => Err(Failure::violated(format!("the answer was not replayed: {other:?}"))),
        }
    }

    pub(crate) async fn is_in_progress(&self, attempt: &Attempt) -> Verdict<Duration> {
        match self.meaning(attempt).await? {
            Meaning::InProgress { left } => {
                ensure!(!left.is_zero(), "a live lease has nothing left");
                Ok(left)
            }
            other => Err(Failure::violated(format!("the key was not held: {other:?}"))),
        }
    }

    /// `attempt` may not take over.
    pub(crate) async fn is_abandoned(&self, attempt: &Attempt) -> Verdict<u32> {
        match self.meaning(attempt).await? {
            Meaning::Abandoned { attempts } => Ok(attempts),
            other => Err(Failure::violated(format!("the key was not abandoned: {other:?}"))),
        }
    }

    /// `attempt` is of another request than the record.
    pub(crate) async fn mismatches(&self, attempt: &Attempt) -> Verdict {
        match self.meaning(attempt).await? {
            Meaning::Mismatch { .. } => Ok(()),
            other => Err(Failure::violated(format!("a reused key was not noticed: {other:?}"))),
        }
    }

    /// A fresh key, completed with these bytes by `attempt`.
    pub(crate) async fn completed(&self, attempt: &Attempt, payload: &[u8]) -> Verdict<Grant> {
        let held = self.acquires(attempt).await?;
        self.complete(&held.lease, payload).await?;
        Ok(held)
    }

    /// A fresh key, reserved and given up by `attempt`.
    pub(crate) async fn abandoned(&self, attempt: &Attempt) -> Verdict<Grant> {
        let held = self.acquires(attempt).await?;
        self.abandon(&held.lease).await?;
        Ok(held)
    }

    /// A fresh key, reserved by `attempt`, given up, and taken over by `rival`.
    pub(crate) async fn taken_over(
        &self,
        attempt: &Attempt,
        rival: &Attempt,
    ) -> Verdict<(Grant, Grant)> {
        let old = self.abandoned(attempt).await?;
        Ok((old, self.acquires(rival).await?))
    }
}

/// Which lease verb a message is about, and what it must come to.
impl Subject {
    /// Every verb of a lease is lost to this one.
    pub(crate) async fn may_not_write(&self, lease: &Lease) -> Verdict {
        lost("complete", self.complete(lease, b"not yours").await)?;
        lost("renew", self.renew(lease, Duration::from_mins(20)).await)?;
        lost("renew to zero", self.renew(lease, Duration::ZERO).await)?;
        lost("release", self.release(lease).await)
    }
}

pub(crate) fn lost<T: std::fmt::Debug>(verb: &str, answer: Result<T, StoreError>) -> Verdict {
    match answer {
        Err(StoreError::LeaseLost) => Ok(()),
        other => Err(Failure::violated(format!("{verb}: expected a lost lease, got {other:?}"))),
    }
}

pub(crate) fn corrupt<T: std::fmt::Debug>(verb: &str, answer: Result<T, StoreError>) -> Verdict {
    match answer {
        Err(StoreError::Corrupt { .. }) => Ok(()),
        other => Err(Failure::violated(format!("{verb}: expected corrupt, got {other:?}"))),
    }
}

pub(crate) fn refused<T: std::fmt::Debug>(
    why: Refusal,
    verb: &str,
    answer: Result<T, StoreError>,
) -> Verdict {
    match answer {
        Err(error) if error.refusal() == Some(why) => Ok(()),
        other => Err(Failure::violated(format!("{verb}: expected a refusal, got {other:?}"))),
    }
}
