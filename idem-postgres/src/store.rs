//! The store: the statement of a verb commits by itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::{Attempt, Key, Lease, Record, Store, StoreError, Watch, limits};
use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Postgres};

use crate::builder::Builder;
use crate::error::{is_broken, of_connecting, wants_a_repeat};
use crate::hints::Hints;
use crate::pool::Trouble;
use crate::verbs::{Done, Failure, REPEATS, Reserved, Verb, Verbs};

/// A store on Postgres 14 or later.
///
/// Keeps every law of [`Store`]; each verb is one statement in a transaction of its own, and its
/// answer is always one row. A reserve that does not get the key is answered from a snapshot: it
/// locks no row, writes nothing, and takes no transaction id.
///
/// For effects in the same database there is more: [`transaction`](Self::transaction),
/// [`reserve_in`](Self::reserve_in) and [`complete_in`](Self::complete_in).
///
/// Cloning is cheap, and the clones are one store. A call that is dropped leaves no transaction
/// open: none is ever begun here.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) pool: PgPool,
    pub(crate) verbs: Arc<Verbs>,
    pub(crate) trouble: Trouble,
    pub(crate) hints: Option<Hints>,
}

impl PostgresStore {
    /// A store with a small pool of its own and the defaults of [`Builder`].
    ///
    /// # Errors
    /// As [`Builder::connect`].
    ///
    /// # Cancellation
    /// As [`Builder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }

    /// Configures a store.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The pool that the verbs use.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Sends a verb, and gives the connection back with its answer.
    pub(crate) async fn send<'q, T>(
        &self,
        verb: impl Fn() -> Verb<'q, T>,
    ) -> Result<(T, PoolConnection<Postgres>), StoreError> {
        let mut repeats = 0;
        loop {
            let mut on = self.pool.acquire().await.map_err(of_connecting)?;
            let failure = match verb().send(&mut on).await {
                Ok(answer) => return Ok((answer, on)),
                Err(failure) => failure,
            };
            if let Failure::Driver(error) = &failure {
                if wants_a_repeat(error) && repeats < REPEATS {
                    repeats += 1;
                    continue;
                }
                if is_broken(error) {
                    self.trouble.note();
                    on.close_on_drop();
                }
            }
            return Err(failure.into());
        }
    }

    /// Tells those who wait for the key, on the connection that made the news. Nobody waits for
    /// this: whoever is not told finds out by a poll.
    fn announce_later(&self, done: Done, key: &Key, mut on: PoolConnection<Postgres>) {
        if done.awaited && self.hints.is_some() {
            let (verbs, key) = (Arc::clone(&self.verbs), key.clone());
            tokio::spawn(async move {
                if let Err(failure) = verbs.announce(&key).send(&mut on).await {
                    not_told(&key, &failure.into());
                }
            });
        }
    }
}

/// They find out by a poll.
pub(crate) fn not_told(key: &Key, error: &StoreError) {
    tracing::debug!(%key, %error, "those who wait for a key could not be told");
}

#[async_trait]
impl Store for PostgresStore {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        attempt.check()?;
        let (answer, _) = self.send(|| self.verbs.reserve(attempt, false)).await?;
        match answer {
            Reserved::Record(record) => Ok(record),
            // `Busy` is the answer to those who knock at the door, and this does not.
            Reserved::Lost | Reserved::Busy => Err(StoreError::LeaseLost),
        }
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        limits::check_renewal(duration)?;
        let ((left, done), on) = self.send(|| self.verbs.renew(lease, duration)).await?;
        self.announce_later(done, lease.key(), on);
        Ok(left)
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        limits::check_retention(retention)?;
        let complete = || self.verbs.complete(lease, payload, retention, false);
        let (done, on) = self.send(complete).await?;
        self.announce_later(done, lease.key(), on);
        Ok(())
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let (done, on) = self.send(|| self.verbs.release(lease)).await?;
        self.announce_later(done, lease.key(), on);
        Ok(())
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        match &self.hints {
            Some(hints) => hints.watch(key).await,
            None => Ok(Watch::never()),
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("table", &self.verbs.table).finish_non_exhaustive()
    }
}
