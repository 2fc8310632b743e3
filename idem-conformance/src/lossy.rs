//! A store whose replies can be lost.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::{Applied, Attempt, Key, Lease, Record, Store, StoreError, Watch};

/// A store whose replies can be lost: the verb takes effect, and its caller is told
/// [`Unavailable`](StoreError::Unavailable) with [`Applied::Unknown`].
///
/// This is what a broken connection looks like to a client (case C103). Works over any store.
pub struct LosesReplies<S> {
    store: S,
    armed: AtomicBool,
}

impl<S> LosesReplies<S> {
    /// The store, losing nothing yet.
    pub fn new(store: S) -> Self {
        Self { store, armed: AtomicBool::new(false) }
    }

    /// Loses the reply of the next verb, and only that.
    pub fn lose_next(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    fn reply<T>(&self, reply: Result<T, StoreError>) -> Result<T, StoreError> {
        if self.armed.swap(false, Ordering::SeqCst) {
            return Err(StoreError::unavailable(Applied::Unknown, ReplyLost));
        }
        reply
    }
}

#[derive(Debug)]
struct ReplyLost;

impl fmt::Display for ReplyLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reply was lost")
    }
}

impl Error for ReplyLost {}

#[async_trait]
impl<S: Store> Store for LosesReplies<S> {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.reply(self.store.reserve(attempt).await)
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        self.reply(self.store.renew(lease, duration).await)
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        self.reply(self.store.complete(lease, payload, retention).await)
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.reply(self.store.release(lease).await)
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.store.watch(key).await
    }
}

impl<S> fmt::Debug for LosesReplies<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LosesReplies").field("armed", &self.armed).finish_non_exhaustive()
    }
}
