//! The conformance suite, at virtual time, for every client, topology and protocol.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_conformance::{Clock, Damage, Fault, Harness, HookError, Options, Skew, proxy, run_all};
use idem_core::{Attempt, BoxError, Key, Lease, Record, Store, StoreError, Watch};
use idem_redis::RedisStore;

use crate::support::client::{Client, Resp2, Resp3};
use crate::support::rig::{Lent, rig};
use crate::support::wire::{Reply, ask};
use crate::support::{attempt, fresh_key};

/// A test must not fail because the machine is busy.
const DEADLINE: Duration = Duration::from_secs(20);

struct Redis {
    client: Client,
    rig: Arc<Lent>,
    store: Mutex<Arc<Faulty>>,
}

impl Redis {
    async fn over(client: Client) -> Self {
        let rig = Arc::new(rig(client.is_cluster()).await);
        let store = Faulty::connect(client, &rig).await;
        store.warm_up().await;
        Self { client, rig, store: Mutex::new(store) }
    }

    fn faulty(&self) -> Arc<Faulty> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the node that has the key's record.
    async fn ask(&self, key: &Key, words: &[&[u8]]) -> Reply {
        let node = self.rig.node_of(&self.faulty().store.record_name(key)).await;
        ask(self.rig.addresses[node], words).await
    }
}

#[async_trait]
impl Harness for Redis {
    fn store(&self) -> Arc<dyn Store> {
        self.faulty()
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    async fn advance(&self, by: Duration) -> Result<(), HookError> {
        self.rig.clock.advance(by).map_err(BoxError::from)?;
        Ok(())
    }

    async fn fork(&self) -> Result<Arc<dyn Store>, HookError> {
        Ok(Faulty::connect(self.client, &self.rig).await)
    }

    /// The clock of the process under test cannot be set, and need not be: a handle has none. It
    /// measures its deadlines by the monotonic clock and reads no other.
    async fn skewed(&self, _: Skew) -> Result<Arc<dyn Store>, HookError> {
        self.fork().await
    }

    async fn corrupt(&self, key: &Key, damage: Damage) -> Result<(), HookError> {
        let name = self.faulty().store.record_name(key);
        let name = name.as_bytes();
        if damage == Damage::ForeignType {
            self.ask(key, &[b"DEL", name]).await;
            self.ask(key, &[b"RPUSH", name, b"1", b"2"]).await;
        } else {
            let stored = self.ask(key, &[b"GET", name]).await.bytes();
            self.ask(key, &[b"SET", name, &damage.of(&stored), b"KEEPTTL"]).await;
        }
        Ok(())
    }

    /// Reading past what has expired removes it.
    async fn purge(&self) -> Result<(), HookError> {
        for &node in &self.rig.addresses {
            let mut cursor = b"0".to_vec();
            loop {
                let scanned = ask(node, &[b"SCAN", &cursor, b"COUNT", b"1000"]).await;
                let Reply::List(parts) = scanned else { panic!("{scanned:?}") };
                cursor = parts[0].clone().bytes();
                if cursor == b"0" {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn bounded(&self, records: usize) -> Result<Arc<dyn Store>, HookError> {
        Ok(Arc::new(Bounded::connect(self.client, &self.rig, records).await))
    }

    async fn restart(&self) -> Result<(), HookError> {
        self.rig.restart().await.map_err(|error| HookError::Failed(error.into()))?;
        let store = Faulty::connect(self.client, &self.rig).await;
        store.warm_up().await;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store;
        Ok(())
    }

    async fn fail_next(&self, fault: Fault) -> Result<(), HookError> {
        self.faulty().fault.lock().unwrap_or_else(PoisonError::into_inner).replace(fault);
        Ok(())
    }
}

/// A store whose next verb meets a fault at the proxy of its node.
struct Faulty {
    store: RedisStore,
    rig: Arc<Lent>,
    fault: Mutex<Option<Fault>>,
}

impl Faulty {
    async fn connect(client: Client, rig: &Arc<Lent>) -> Arc<Self> {
        let builder = RedisStore::builder().deadline(DEADLINE);
        let store = client.connect(builder, &rig.doors()).await.unwrap();
        Arc::new(Self { store, rig: rig.clone(), fault: Mutex::new(None) })
    }

    /// Leaves no script unknown to a server, so that a fault meets the verb and not its reload.
    async fn warm_up(&self) {
        for node in 0..self.rig.addresses.len() {
            let first = loop {
                let first = attempt(&fresh_key(), 1);
                if self.rig.node_of(&self.store.record_name(first.key())).await == node {
                    break first;
                }
            };
            let record = self.store.reserve(&first).await.unwrap();
            let lease = Lease::new(first.key().clone(), first.id(), record.fence);
            self.store.renew(&lease, first.lease_for()).await.unwrap();
            self.store.complete(&lease, &Bytes::new(), first.retention_for()).await.unwrap();
            self.store.release(&lease).await.unwrap_err();
        }
    }

    async fn met(&self, key: &Key) -> &RedisStore {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(fault) = fault {
            let node = self.rig.node_of(&self.store.record_name(key)).await;
            self.rig.proxies[node].next(match fault {
                Fault::Before => proxy::Fault::ResetBefore,
                Fault::After => proxy::Fault::ResetAfter,
            });
        }
        &self.store
    }
}

#[async_trait]
impl Store for Faulty {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.met(attempt.key()).await.reserve(attempt).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        self.met(lease.key()).await.renew(lease, duration).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        self.met(lease.key()).await.complete(lease, payload, retention).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.met(lease.key()).await.release(lease).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.store.watch(key).await
    }
}

/// A store whose servers run out of memory when it has so many records.
struct Bounded {
    store: RedisStore,
    rig: Arc<Lent>,
    prefix: String,
    records: usize,
}

impl Bounded {
    async fn connect(client: Client, rig: &Arc<Lent>, records: usize) -> Self {
        let prefix = format!("bounded-{}", fresh_key().text());
        let builder = RedisStore::builder().deadline(DEADLINE).prefix(&prefix);
        let store = client.connect(builder, &rig.doors()).await.unwrap();
        Self { store, rig: rig.clone(), prefix, records }
    }

    /// The store, on servers that have no byte left if it has all its records.
    async fn limited(&self) -> &RedisStore {
        let pattern = format!("{}:*", self.prefix);
        let mut found = 0;
        for &node in &self.rig.addresses {
            for name in ask(node, &[b"KEYS", pattern.as_bytes()]).await.list() {
                // The server forgets a record in the millisecond after its retention.
                let left = ask(node, &[b"PTTL", &name.bytes()]).await.number();
                found += usize::from(left > 1);
            }
        }
        self.rig.out_of_memory(found >= self.records).await;
        &self.store
    }
}

#[async_trait]
impl Store for Bounded {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.limited().await.reserve(attempt).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        self.limited().await.renew(lease, duration).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        self.limited().await.complete(lease, payload, retention).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.limited().await.release(lease).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.limited().await.watch(key).await
    }
}

mod redis_rs {
    use super::*;
    idem_conformance::suite!(async { Redis::over(Client::RedisRs(Resp2)).await }, no skips);
}

mod redis_rs_resp3 {
    use super::*;
    idem_conformance::suite!(async { Redis::over(Client::RedisRs(Resp3)).await }, no skips);
}

mod redis_rs_cluster {
    use super::*;
    idem_conformance::suite!(async { Redis::over(Client::RedisRsCluster(Resp3)).await }, no skips);
}

#[cfg(feature = "fred")]
mod fred {
    use super::*;
    idem_conformance::suite!(async { Redis::over(Client::Fred(Resp2)).await }, no skips);
}

#[cfg(feature = "fred")]
mod fred_resp3 {
    use super::*;
    idem_conformance::suite!(async { Redis::over(Client::Fred(Resp3)).await }, no skips);
}

#[cfg(feature = "fred")]
mod fred_cluster {
    use super::*;
    idem_conformance::suite!(async { Redis::over(Client::FredCluster(Resp3)).await }, no skips);
}

/// Over the older protocol the cluster clients differ in nothing but how an answer is spelled.
#[test]
#[ignore = "slow: the whole suite twice more"]
fn clusters_hold_over_resp2_too() {
    let clients = [
        Client::RedisRsCluster(Resp2),
        #[cfg(feature = "fred")]
        Client::FredCluster(Resp2),
    ];
    for client in clients {
        let options = Options::from_env().unwrap();
        let report = run_all(async || Redis::over(client).await, &options).unwrap();
        let counts = report.counts();
        assert_eq!((counts.failed, counts.skipped), (0, 0), "{client:?}: {report}");
    }
}
