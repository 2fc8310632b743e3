//! Reserve, the application's writes and complete: committed together, or not at all.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use idem_core::envelope::{Body, CodecId, Envelope};
use idem_core::{BoxError, Codec as _, Json, Key, Lease, Store as _, StoreError, Watch};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::error::TransactionError;
use super::pieces::{POLL, Reservation};
use super::request::{Isolation, TransactionRequest};
use crate::error::wants_a_repeat;
use crate::finished::Finished;
use crate::jitter::jittered;
use crate::store::PostgresStore;
use crate::verbs::Failure;

/// How long it is waited, whatever the request says, for a transaction of the request's own whose
/// connection was lost during the commit.
const AFTERMATH: Duration = Duration::from_secs(5);

/// The value of a transaction, and how it was come by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed<T> {
    /// What the action gave, now or before, as it comes out of the codec.
    pub value: T,
    /// Whether the action ran for an earlier or another request, and this is its stored value.
    pub replayed: bool,
}

/// What an action is told about the reservation it runs under.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The lease; its fence is larger than that of any attempt that was committed before.
    pub lease: Lease,
    /// How many attempts have held the key, this one included.
    pub attempts: u32,
}

/// What one transaction came to.
enum Once<T, E> {
    Committed(Committed<T>),
    InProgress(Option<Duration>),
    /// It was rolled back, and may be repeated.
    Repeat(TransactionError<E>),
    /// It was committed or rolled back, and the next one finds out which.
    Find(sqlx::Error),
}

type Ended<T, E> = Result<Once<T, E>, TransactionError<E>>;

impl PostgresStore {
    /// Runs `action` in one transaction with its reservation and its completion: its writes and
    /// the record are committed together, or neither is. **For what it writes through the
    /// connection it is given, this is exactly once.** What it does elsewhere is not: use the
    /// coordinator for that, or [`complete_in`](Self::complete_in).
    ///
    /// - The first of several runs; the others wait for its commit and replay its value, or are
    ///   told at once ([`Rivals`](super::Rivals)). If it is rolled back, another runs. Nobody holds
    ///   a connection while it waits.
    /// - When the server rolls the transaction back to keep it apart from others (`40001`,
    ///   `40P01`), the whole of it, `action` included, is repeated. `action` is therefore called
    ///   more than once, and each call's writes but the last's are gone. The error may be the
    ///   action's own, with the driver's among its sources.
    /// - When the connection is lost during the commit, the record says what came of it.
    ///
    /// `pool` is of the database that the store's table is in. It may be the store's own.
    ///
    /// ```no_run
    /// # use idem_core::{Fingerprint, Key, Scope};
    /// # use idem_postgres::{PostgresStore, TransactionError, TransactionRequest};
    /// # async fn example(store: PostgresStore, pool: sqlx::PgPool)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// let key = Key::new(Scope::new("order.create")?, "k-1")?;
    /// let request = TransactionRequest::new(key, Fingerprint::of(&("book", 2))?);
    /// let order = store
    ///     .transaction(&pool, &request, |tx, _| {
    ///         Box::pin(async move {
    ///             sqlx::query_scalar::<_, i64>(
    ///                 "INSERT INTO orders (item, quantity) VALUES ('book', 2) RETURNING id",
    ///             )
    ///             .fetch_one(tx)
    ///             .await
    ///         })
    ///     })
    ///     .await?;
    /// println!("order {}{}", order.value, if order.replayed { ", again" } else { "" });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`TransactionError`]; only [`CommitUnknown`](TransactionError::CommitUnknown) leaves open
    /// whether something was committed.
    ///
    /// # Cancellation
    /// Nothing is left, or all of it is committed: the same request again tells which. The
    /// connection is fit for use.
    pub async fn transaction<T, E, F>(
        &self,
        pool: &PgPool,
        request: &TransactionRequest,
        mut action: F,
    ) -> Result<Committed<T>, TransactionError<E>>
    where
        T: Serialize + DeserializeOwned + Send,
        E: Error + Send + Sync + 'static,
        F: for<'c> FnMut(&'c mut PgConnection, Held) -> BoxFuture<'c, Result<T, E>> + Send,
    {
        let key = request.attempt.key();
        let mut wait = Wait::until(Instant::now() + request.rivals.patience());
        let mut repeats = 0;
        loop {
            let failed = match self.once(pool, request, &mut action).await? {
                Once::Committed(committed) => return Ok(committed),
                Once::InProgress(left) => {
                    if !wait.pause(self, key).await {
                        return Err(TransactionError::InProgress {
                            key: key.clone(),
                            retry_after: left,
                        });
                    }
                    continue;
                }
                Once::Repeat(error) => error,
                Once::Find(source) => {
                    wait.at_least(AFTERMATH);
                    TransactionError::CommitUnknown { key: key.clone(), source }
                }
            };
            if repeats == request.repeats {
                return Err(failed);
            }
            repeats += 1;
            tokio::time::sleep(jittered(POLL.0 * repeats)).await;
        }
    }

    async fn once<T, E, F>(
        &self,
        pool: &PgPool,
        request: &TransactionRequest,
        action: &mut F,
    ) -> Ended<T, E>
    where
        T: Serialize + DeserializeOwned + Send,
        E: Error + Send + Sync + 'static,
        F: for<'c> FnMut(&'c mut PgConnection, Held) -> BoxFuture<'c, Result<T, E>> + Send,
    {
        let (key, given) = (request.attempt.key(), request.attempt.fingerprint());
        let database = |source| TransactionError::Database { key: key.clone(), source };
        let mut tx = begin(pool, request.isolation).await.map_err(database)?;
        let held = match self.try_reserve_in(&mut tx, &request.attempt).await {
            Ok(Reservation::Held { lease, attempts }) => Held { lease, attempts },
            // Dropping a transaction rolls it back.
            Ok(Reservation::Replay(payload)) => return replay(key, &payload).map(Once::Committed),
            Ok(Reservation::InProgress { left }) => return Ok(Once::InProgress(left)),
            Ok(Reservation::Abandoned { .. }) => return Ok(Once::InProgress(None)),
            Ok(Reservation::Mismatch { recorded }) => {
                return Err(TransactionError::Mismatch { key: key.clone(), recorded, given });
            }
            Err(failure) => return of_verb(key, failure),
        };
        let lease = held.lease.clone();
        let value = match action(&mut tx, held).await {
            Ok(value) => value,
            Err(error) => {
                let again = asks_for_a_repeat(&error);
                // The key is free again, and whoever waits may have it.
                drop(tx.rollback().await);
                self.tell_later(key);
                let error = TransactionError::Action(error);
                return if again { Ok(Once::Repeat(error)) } else { Err(error) };
            }
        };
        let (value, payload) = store_as(&value)
            .map_err(|source| TransactionError::Unstorable { key: key.clone(), source })?;
        let retention = request.attempt.retention_for();
        let completion = match self.try_complete_in(&mut tx, &lease, &payload, retention).await {
            Ok(completion) => completion,
            Err(failure) => return of_verb(key, failure),
        };
        match tx.commit().await {
            Ok(()) => {
                if completion.done.awaited {
                    self.tell_later(key);
                }
                Ok(Once::Committed(Committed { value, replayed: false }))
            }
            Err(error) if wants_a_repeat(&error) => Ok(Once::Repeat(database(error))),
            // The server says that it did not: a deferred constraint, for one.
            Err(error) if error.as_database_error().is_some() => Err(database(error)),
            Err(error) => Ok(Once::Find(error)),
        }
    }

    fn tell_later(&self, key: &Key) {
        if self.hints.is_some() {
            let (store, key) = (self.clone(), key.clone());
            tokio::spawn(async move { store.tell(&key).await });
        }
    }
}

/// Begins, whatever becomes of the caller: sqlx 0.9.0 forgets a `BEGIN` whose caller is gone, and the
/// next user of the connection would be in a transaction without knowing.
async fn begin(
    pool: &PgPool,
    isolation: Option<Isolation>,
) -> sqlx::Result<Transaction<'static, Postgres>> {
    let pool = pool.clone();
    Finished::of(async move {
        match isolation {
            None => pool.begin().await,
            Some(isolation) => pool.begin_with(isolation.begin()).await,
        }
    })
    .await
}

fn of_verb<T, E>(key: &Key, failure: Failure) -> Ended<T, E> {
    match failure {
        Failure::Driver(source) if wants_a_repeat(&source) => {
            Ok(Once::Repeat(TransactionError::Database { key: key.clone(), source }))
        }
        failure => {
            let source = StoreError::from(failure);
            Err(TransactionError::Store { key: key.clone(), source })
        }
    }
}

/// Whether the server's wish for a repeat is among the sources of the action's error.
fn asks_for_a_repeat(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<sqlx::Error>().is_some_and(wants_a_repeat) {
            return true;
        }
        next = error.source();
    }
    false
}

/// The value that a replay will give, and the payload it comes from.
fn store_as<T: Serialize + DeserializeOwned>(value: &T) -> Result<(T, Bytes), BoxError> {
    let (value, envelope) = Envelope::of_value(&Json::default(), value)?;
    Ok((value, envelope.encode()))
}

fn replay<T: Serialize + DeserializeOwned, E>(
    key: &Key,
    payload: &Bytes,
) -> Result<Committed<T>, TransactionError<E>> {
    let read = || -> Result<T, BoxError> {
        match Envelope::decode(payload)? {
            Envelope { codec: CodecId::JSON, body: Body::Value(bytes) } => {
                Json::default().decode(&bytes)
            }
            other => Err(format!("it is no value in JSON: {other:?}").into()),
        }
    };
    match read() {
        Ok(value) => Ok(Committed { value, replayed: true }),
        Err(source) => Err(TransactionError::Unreadable { key: key.clone(), source }),
    }
}

/// A wait for another transaction; no connection is held meanwhile.
struct Wait {
    deadline: Instant,
    pause: Duration,
    watch: Option<Watch>,
}

impl Wait {
    fn until(deadline: Instant) -> Self {
        Self { deadline, pause: POLL.0, watch: None }
    }

    fn at_least(&mut self, patience: Duration) {
        self.deadline = self.deadline.max(Instant::now() + patience);
    }

    /// Waits for a hint or the next poll; `false` if the time is over.
    async fn pause(&mut self, store: &PostgresStore, key: &Key) -> bool {
        let now = Instant::now();
        if now >= self.deadline {
            return false;
        }
        let Some(watch) = &mut self.watch else {
            // Subscribed first, and looked at again at once.
            let watch = timeout_at(self.deadline, store.watch(key)).await;
            self.watch = Some(watch.ok().and_then(Result::ok).unwrap_or_else(Watch::never));
            return true;
        };
        let next = (now + jittered(self.pause)).min(self.deadline);
        self.pause = (2 * self.pause).min(POLL.1);
        tokio::select! {
            () = watch.changed() => {}
            () = sleep_until(next) => {}
        }
        true
    }
}
