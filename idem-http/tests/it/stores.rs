//! Stores that do not do as they should.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::{Applied, Attempt, Fingerprint, Key, Lease, Record, Store, StoreError};
use idem_memory::MemoryStore;

use crate::support::Calls;

/// A memory store that a test can see into while a layer uses it.
pub(crate) type Shared = Arc<MemoryStore>;

/// Does not answer.
#[derive(Debug)]
pub(crate) struct Down;

fn down<T>() -> Result<T, StoreError> {
    Err(StoreError::unavailable(Applied::No, "connection refused"))
}

#[async_trait]
impl Store for Down {
    async fn reserve(&self, _: &Attempt) -> Result<Record, StoreError> {
        down()
    }

    async fn renew(&self, _: &Lease, _: Duration) -> Result<Duration, StoreError> {
        down()
    }

    async fn complete(&self, _: &Lease, _: &Bytes, _: Duration) -> Result<(), StoreError> {
        down()
    }

    async fn release(&self, _: &Lease) -> Result<(), StoreError> {
        down()
    }
}

/// Counts what it is asked, and does something to what is completed.
#[derive(Clone)]
pub(crate) struct Tampered {
    store: Arc<dyn Store>,
    /// How often a key was reserved, or asked for.
    pub(crate) reserves: Calls,
    delay: Duration,
    cut: Option<usize>,
    last: Arc<Mutex<Option<(Key, Fingerprint)>>>,
}

impl Tampered {
    /// Only counts.
    pub(crate) fn counting() -> Self {
        Self::slow(Duration::ZERO)
    }

    /// Takes so long to complete.
    pub(crate) fn slow(delay: Duration) -> Self {
        Self { delay, ..Self::on(Shared::default()) }
    }

    /// Only counts, over this store.
    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        let (reserves, last) = (Calls::default(), Arc::default());
        Self { store, reserves, delay: Duration::ZERO, cut: None, last }
    }

    /// Another process's attempt at what was asked for last.
    pub(crate) fn rival(&self) -> Attempt {
        let (key, fingerprint) = self.last.lock().unwrap().clone().unwrap();
        Attempt::new(key, fingerprint)
    }

    /// Keeps only so many bytes of what is completed.
    pub(crate) fn cutting(cut: usize) -> Self {
        Self { cut: Some(cut), ..Self::counting() }
    }
}

#[async_trait]
impl Store for Tampered {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.reserves.one_more();
        *self.last.lock().unwrap() = Some((attempt.key().clone(), attempt.fingerprint()));
        self.store.reserve(attempt).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        self.store.renew(lease, duration).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        tokio::time::sleep(self.delay).await;
        let payload = payload.slice(..self.cut.unwrap_or(payload.len()).min(payload.len()));
        self.store.complete(lease, &payload, retention).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.store.release(lease).await
    }
}
