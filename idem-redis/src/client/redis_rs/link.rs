//! One connection for all calls, made when there is none.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::RedisResult;
use tokio::time::Instant;

/// Younger than this, a connection is not to blame for a call that was given up: it was made
/// while that call waited.
const YOUNG: Duration = Duration::from_millis(100);

type Dial<C> = Box<dyn Fn() -> BoxFuture<'static, RedisResult<C>> + Send + Sync>;

/// Holds a connection that is shared by cloning, and makes another when it is gone.
///
/// Why not the client's own `ConnectionManager`: it cannot tell a call that was never sent from
/// one whose answer was lost (law L9), it stays with a connection on which nothing comes back any
/// more, and after an outage it answers once with the failure of the past.
pub(super) struct Link<C> {
    dial: Dial<C>,
    live: Mutex<Option<Live<C>>>,
    /// Held while a connection is made, so that many callers make one.
    dialling: tokio::sync::Mutex<()>,
    made: AtomicU64,
    tries: AtomicU32,
}

struct Live<C> {
    id: u64,
    since: Instant,
    connection: C,
}

impl<C: Clone> Link<C> {
    pub(super) fn new(
        dial: impl Fn() -> BoxFuture<'static, RedisResult<C>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            dial: Box::new(dial),
            live: Mutex::new(None),
            dialling: tokio::sync::Mutex::new(()),
            made: AtomicU64::new(0),
            tries: AtomicU32::new(0),
        })
    }

    /// The connection, and what to call it when it has failed.
    pub(super) async fn get(&self) -> RedisResult<(u64, C)> {
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let _dialling = self.dialling.lock().await;
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let connection = (self.dial)().await?;
        let id = self.made.fetch_add(1, Ordering::Relaxed);
        let live = Live { id, since: Instant::now(), connection: connection.clone() };
        *self.live() = Some(live);
        Ok((id, connection))
    }

    /// Forgets this connection, unless another has taken its place already.
    pub(super) fn replace(&self, id: u64) {
        self.live().take_if(|live| live.id == id);
    }

    /// Forgets the connection, unless it was made a moment ago.
    pub(super) fn replace_if_old(&self) {
        self.live().take_if(|live| live.since.elapsed() > YOUNG);
    }

    /// Counts the tries to connect a subscriber.
    pub(super) fn next_try(&self) -> u32 {
        self.tries.fetch_add(1, Ordering::Relaxed)
    }

    fn current(&self) -> Option<(u64, C)> {
        self.live().as_ref().map(|live| (live.id, live.connection.clone()))
    }

    fn live(&self) -> MutexGuard<'_, Option<Live<C>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
