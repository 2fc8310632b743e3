//! Waking those who wait: one connection, subscribed before it matters, and back after a loss.

use std::time::Duration;

use idem_conformance::proxy::Proxy;
use idem_conformance::servers::{self, Server};
use idem_core::{Store, Watch};
use idem_redis::RedisStore;
use tokio::time::timeout;

use crate::support::client::Client;
use crate::support::wire::say;
use crate::support::{acquire_in_the_end, attempt, fresh_key, serves, soon};

async fn behind_a_proxy(client: Client) -> (Server, Proxy, RedisStore) {
    let server = servers::redis().own().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let builder = RedisStore::builder().deadline(Duration::from_secs(2));
    let store = client.connect(builder, &[proxy.addr()]).await.unwrap();
    serves(&store).await;
    (server, proxy, store)
}

async fn is_hinted(watch: &mut Watch) {
    soon(watch.changed()).await;
}

async fn is_silent(watch: &mut Watch) -> bool {
    timeout(Duration::from_millis(150), watch.changed()).await.is_err()
}

/// How often the server published anything.
async fn published(server: &Server) -> u64 {
    let stats = say(server.addr(), "INFO commandstats").await.text();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_publish:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_on_a_thousand_keys_share_one_connection() {
    for &client in Client::SINGLE {
        let (server, _proxy, store) = behind_a_proxy(client).await;
        let mut held = Vec::new();
        for _ in 0..1_000 {
            let attempt = attempt(&fresh_key(), 1);
            held.push((acquire_in_the_end(&store, &attempt).await, attempt));
        }
        let watching = held.iter().map(|(lease, _)| {
            let (store, key) = (store.clone(), lease.key().clone());
            tokio::spawn(async move { store.watch(&key).await.unwrap() })
        });
        let watching: Vec<_> = watching.collect();
        let mut watches = Vec::new();
        for watch in watching {
            watches.push(soon(watch).await.unwrap());
        }
        let clients = say(server.addr(), "CLIENT LIST TYPE pubsub").await.text();
        assert_eq!(clients.lines().count(), 1, "{clients}");
        for (lease, attempt) in &held {
            store.complete(lease, &"done".into(), attempt.retention_for()).await.unwrap();
        }
        for watch in &mut watches {
            is_hinted(watch).await;
        }
        // Nobody waits any more, and nothing stays subscribed.
        drop(watches);
        soon(async {
            while say(server.addr(), "PUBSUB CHANNELS").await
                != crate::support::wire::Reply::List(vec![])
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_when_nobody_waits() {
    for &client in Client::SINGLE {
        let (server, _proxy, store) = behind_a_proxy(client).await;
        for _ in 0..3 {
            let attempt = attempt(&fresh_key(), 1);
            let lease = acquire_in_the_end(&store, &attempt).await;
            store.renew(&lease, Duration::ZERO).await.unwrap();
            store.release(&lease).await.unwrap();
        }
        assert_eq!(published(&server).await, 0);
        let attempt = attempt(&fresh_key(), 1);
        let lease = acquire_in_the_end(&store, &attempt).await;
        let mut watch = store.watch(attempt.key()).await.unwrap();
        store.renew(&lease, attempt.lease_for()).await.unwrap();
        assert_eq!(published(&server).await, 0, "a lease that goes on is no news");
        store.complete(&lease, &"done".into(), attempt.retention_for()).await.unwrap();
        is_hinted(&mut watch).await;
        assert_eq!(published(&server).await, 1);
    }
}

// C122
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_subscriber_comes_back_and_hints_at_what_it_missed() {
    for &client in Client::SINGLE {
        let (server, proxy, store) = behind_a_proxy(client).await;
        let [missed, later] = [(); 2].map(|()| attempt(&fresh_key(), 1));
        let lease = acquire_in_the_end(&store, &missed).await;
        let other = acquire_in_the_end(&store, &later).await;
        let mut watch = store.watch(missed.key()).await.unwrap();
        let mut second = store.watch(later.key()).await.unwrap();
        assert!(is_silent(&mut watch).await);

        say(server.addr(), "CLIENT KILL TYPE pubsub").await;
        soon(async {
            while store.complete(&lease, &"done".into(), missed.retention_for()).await.is_err() {}
        })
        .await;
        is_hinted(&mut watch).await;
        // Everybody was hinted at, and is subscribed again.
        is_hinted(&mut second).await;
        assert!(is_silent(&mut second).await);
        store.complete(&other, &"done".into(), later.retention_for()).await.unwrap();
        is_hinted(&mut second).await;
        drop(proxy);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_there_is_no_connection_a_waiter_is_told_so() {
    for &client in Client::SINGLE {
        let (_server, mut proxy, store) = behind_a_proxy(client).await;
        let attempt = attempt(&fresh_key(), 1);
        let _ = acquire_in_the_end(&store, &attempt).await;
        proxy.shut().await;
        proxy.cut();
        assert!(soon(store.watch(attempt.key())).await.unwrap_err().is_unavailable());
        proxy.open().await.unwrap();
        soon(async {
            while store.watch(attempt.key()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}
