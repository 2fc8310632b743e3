//! A store out of any table that can compare and swap.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::attempt::{Attempt, Lease};
use crate::error::{Applied, StoreError};
use crate::key::Key;
use crate::limits;
use crate::model::{self, Row, Step, Timestamp};
use crate::record::Record;
use crate::store::Store;
use crate::watch::Watch;

/// A key's row as it was read.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "implementors build it")]
pub struct Snapshot<V> {
    /// The row; `None` if there is none.
    pub row: Option<Row>,
    /// What a later [`Cas::swap`] must still find: a revision, an etag, the bytes themselves.
    pub version: V,
    /// The store's clock at the read (law L7). Not this process's, if others share the store.
    pub now: Timestamp,
}

/// A table that can compare and swap: all that [`CasStore`] needs of a backend.
///
/// # Implementing
/// Rows past [`Row::retain_until`] may be deleted at any time, by a condition on that field which
/// the deletion itself re-checks. [`Row::encode`] and [`Row::decode`] are there for backends that
/// keep bytes.
#[async_trait]
pub trait Cas: Send + Sync {
    /// Names one state of a key's row, its absence included.
    type Version: Send + Sync;

    /// Reads the key's row, its version, and the store's clock.
    ///
    /// The read must not be older than the last acknowledged swap of the key: an eventually
    /// consistent read cannot keep the laws.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if there is a row that cannot be read;
    /// [`StoreError::Unavailable`], [`StoreError::Refused`].
    async fn read(&self, key: &Key) -> Result<Snapshot<Self::Version>, StoreError>;

    /// Writes `row` if the key is still at `expected`, and says whether it did.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with [`Applied::Unknown`] if the row may have been written;
    /// [`StoreError::Refused`].
    async fn swap(&self, key: &Key, expected: Self::Version, row: &Row)
    -> Result<bool, StoreError>;

    /// Hints as [`Store::watch`]; the default never does.
    ///
    /// # Errors
    /// As [`Store::watch`].
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        let _ = key;
        Ok(Watch::never())
    }
}

/// A [`Store`] over any [`Cas`]: reads, asks the [`model`], and swaps, until a swap succeeds.
///
/// The clock is read with the row, so a lease starts at the read and is never longer than asked.
pub struct CasStore<C>(C);

impl<C> CasStore<C> {
    /// How often one verb tries to swap before it gives up as unavailable, not applied.
    pub const MAX_TRIES: usize = 64;

    /// The store over this table.
    pub fn new(table: C) -> Self {
        Self(table)
    }

    /// The table.
    pub fn table(&self) -> &C {
        &self.0
    }
}

impl<C: Cas> CasStore<C> {
    async fn step<T>(
        &self,
        key: &Key,
        verb: impl Fn(Option<&Row>, Timestamp) -> Result<Step<T>, StoreError> + Send + Sync,
    ) -> Result<T, StoreError>
    where
        T: Send,
    {
        for _ in 0..Self::MAX_TRIES {
            let Snapshot { row, version, now } = self.0.read(key).await?;
            let Step { write, answer } = verb(row.as_ref(), now)?;
            let Some(row) = write else { return Ok(answer) };
            if self.0.swap(key, version, &row).await? {
                return Ok(answer);
            }
        }
        Err(StoreError::unavailable(Applied::No, "the key's row changed at every try to swap it"))
    }
}

#[async_trait]
impl<C: Cas> Store for CasStore<C> {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        attempt.check()?;
        self.step(attempt.key(), |row, now| model::reserve(row, attempt, now)).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        limits::check_renewal(duration)?;
        self.step(lease.key(), |row, now| model::renew(row, lease, duration, now)).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        limits::check_retention(retention)?;
        let verb = |row: Option<&Row>, now| model::complete(row, lease, payload, retention, now);
        self.step(lease.key(), verb).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.step(lease.key(), |row, now| model::release(row, lease, now)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.0.watch(key).await
    }
}

impl<C: fmt::Debug> fmt::Debug for CasStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CasStore").field(&self.0).finish()
    }
}
