//! Calls that wait for replicas.

use std::time::Duration;

use idem_conformance::servers::{self, Server};
use idem_core::{Applied, Store, Verdict};
use idem_redis::{Builder, RedisStore};

use crate::counted::sent;
use crate::support::client::{Client, Resp3};
use crate::support::wire::say;
use crate::support::{acquire, answered, applied, attempt, fresh_key, soon};

/// Long enough for a busy machine.
const LONG: Duration = Duration::from_secs(10);
/// For what does not come.
const SHORT: Duration = Duration::from_secs(1);

fn builder(replicas: u32, deadline: Duration) -> Builder {
    RedisStore::builder().deadline(deadline).confirm_replicas(replicas)
}

/// A master and its replica.
async fn pair() -> (Server, Server) {
    let master = servers::redis().process().await.unwrap();
    let of = format!("127.0.0.1 {}", master.port());
    let replica = servers::redis().process().setting("replicaof", of).await.unwrap();
    while say(master.addr(), "WAIT 1 1000").await.number() < 1 {}
    (master, replica)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_call_is_on_the_replica_and_costs_one_more_command() {
    for &client in Client::SINGLE {
        let (master, replica) = pair().await;
        let store = client.connect(builder(1, LONG), &[master.addr()]).await.unwrap();
        let first = attempt(&fresh_key(), 1);
        let lease = acquire(&store, &first).await;
        store.complete(&lease, &"done".into(), first.retention_for()).await.unwrap();
        let name = store.record_name(first.key());
        let kept = say(replica.addr(), &format!("GET {name}")).await.bytes();
        assert!(kept.ends_with(b"done"), "{client:?}");

        sent(master.addr()).await;
        let again = attempt(first.key(), 1);
        let verdict = store.reserve(&again).await.unwrap().verdict(&again).unwrap();
        assert_eq!(verdict, Verdict::Replay("done".into()));
        let mut counted = sent(master.addr()).await;
        assert_eq!((counted.remove("evalsha"), counted.remove("wait")), (Some(1), Some(1)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_too_few_replicas_have_may_have_been_applied_and_is_repeated() {
    for &client in Client::SINGLE {
        let (master, mut replica) = pair().await;
        let store = client.connect(builder(1, SHORT), &[master.addr()]).await.unwrap();
        replica.pause().await.unwrap();
        let first = attempt(&fresh_key(), 1);
        assert_eq!(applied(soon(store.reserve(&first)).await), Applied::Unknown, "{client:?}");
        // It is held all the same, and others see it.
        let plain = client.connect(builder(0, LONG), &[master.addr()]).await.unwrap();
        let other = attempt(first.key(), 1);
        let verdict = plain.reserve(&other).await.unwrap().verdict(&other).unwrap();
        assert!(matches!(verdict, Verdict::InProgress { .. }), "{client:?}: {verdict:?}");

        replica.resume().await.unwrap();
        let record = answered(async || store.reserve(&first).await).await.unwrap();
        assert_eq!(record.holder, first.id());
    }
}

// A cluster's node is asked about its own replicas, of which these have none.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster_the_keys_own_node_is_asked() {
    let clients = [
        Client::RedisRsCluster(Resp3),
        #[cfg(feature = "fred")]
        Client::FredCluster(Resp3),
    ];
    let cluster = servers::redis_cluster().await.unwrap();
    let nodes: Vec<_> = cluster.nodes().iter().map(Server::addr).collect();
    for client in clients {
        let store = client.connect(builder(1, SHORT), &nodes).await.unwrap();
        let plain = client.connect(builder(0, LONG), &nodes).await.unwrap();
        for _ in 0..16 {
            let first = attempt(&fresh_key(), 1);
            let unconfirmed = soon(store.reserve(&first)).await;
            assert_eq!(applied(unconfirmed), Applied::Unknown, "{client:?}");
            let record = plain.reserve(&first).await.unwrap();
            assert_eq!(record.holder, first.id(), "{client:?}");
        }
        for node in &nodes {
            assert!(sent(*node).await.contains_key("wait"), "{client:?}");
        }
    }
}
