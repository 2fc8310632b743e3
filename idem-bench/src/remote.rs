//! A store that is a round trip away.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::{Applied, Attempt, Key, Lease, Record, Store, StoreError, Watch};
use tokio::sync::oneshot;

/// Any store, at the distance of a network: each verb is answered a round trip later.
///
/// A thread of its own stands for the network and wakes the callers, as a socket's reactor would.
/// Tokio's timer could not: it counts in milliseconds.
#[derive(Debug)]
pub struct Remote<S> {
    store: S,
    round_trip: Duration,
    network: mpsc::Sender<(Instant, oneshot::Sender<()>)>,
}

impl<S> Remote<S> {
    /// The store, so far away.
    pub fn new(store: S, round_trip: Duration) -> Self {
        let (network, flying) = mpsc::channel::<(Instant, oneshot::Sender<()>)>();
        // Ends with the last sender.
        thread::spawn(move || {
            for (arrives, caller) in flying {
                thread::sleep(arrives.saturating_duration_since(Instant::now()));
                // A caller that is gone needs no answer.
                let _ = caller.send(());
            }
        });
        Self { store, round_trip, network }
    }

    async fn there_and_back(&self) -> Result<(), StoreError> {
        let (caller, answered) = oneshot::channel();
        let sent = self.network.send((Instant::now() + self.round_trip, caller));
        sent.map_err(|_| StoreError::unavailable(Applied::No, "the network is gone"))?;
        answered.await.map_err(|lost| StoreError::unavailable(Applied::No, lost))
    }
}

#[async_trait]
impl<S: Store> Store for Remote<S> {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.there_and_back().await?;
        self.store.reserve(attempt).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        self.there_and_back().await?;
        self.store.renew(lease, duration).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        self.there_and_back().await?;
        self.store.complete(lease, payload, retention).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.there_and_back().await?;
        self.store.release(lease).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.there_and_back().await?;
        self.store.watch(key).await
    }
}
