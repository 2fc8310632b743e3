//! A cluster whose slots move, or are not served.

use std::net::SocketAddr;
use std::time::Duration;

use idem_conformance::servers::{self, RedisCluster, Server};
use idem_core::{
    Applied, Attempt, Coordinator, InFlight, Key, OnStoreFailure, Scope, Store, StoreBudget,
    Verdict,
};
use idem_redis::RedisStore;

use crate::support::client::Client;
use crate::support::wire::say;
use crate::support::{
    acquire, acquire_in_the_end, answered, applied, attempt, fresh_key, serves, soon,
};
use crate::troubles::coordinator_copes_with;

fn addresses(cluster: &RedisCluster) -> Vec<SocketAddr> {
    cluster.nodes().iter().map(Server::addr).collect()
}

async fn store(client: Client, nodes: &[SocketAddr]) -> RedisStore {
    let builder = RedisStore::builder().deadline(Duration::from_secs(2));
    client.connect(builder, nodes).await.unwrap()
}

async fn slot(node: SocketAddr, name: &str) -> i64 {
    say(node, &format!("CLUSTER KEYSLOT {name}")).await.number()
}

/// An attempt whose record is in the first node's part, and its slot.
async fn of_the_first_node(store: &RedisStore, nodes: &[SocketAddr]) -> (Attempt, i64) {
    loop {
        let attempt = attempt(&fresh_key(), 1);
        let slot = slot(nodes[0], &store.record_name(attempt.key())).await;
        if slot <= 5460 {
            return (attempt, slot);
        }
    }
}

// C99, C100, C73
#[tokio::test(flavor = "multi_thread")]
async fn any_key_has_one_slot_and_any_node_learns_the_scripts() {
    let cluster = servers::redis_cluster().await.unwrap();
    let nodes = addresses(&cluster);
    let texts = ["{a}", "{}{b}", "}{", "a\r\nb", "\0", "*", "{user}:1"];
    for &client in Client::CLUSTER {
        let store = store(client, &nodes).await;
        for node in &nodes {
            say(*node, "SCRIPT FLUSH").await;
        }
        let long = "\u{1f980}".repeat(255);
        for text in texts.iter().copied().chain([long.as_str()]) {
            let scope = Scope::new(text).unwrap().tenant(text).unwrap();
            let first = attempt(&Key::new(scope, text).unwrap(), 1);
            let lease = acquire(&store, &first).await;
            store.release(&lease).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_is_followed() {
    for &client in Client::CLUSTER {
        let cluster = servers::redis_cluster().await.unwrap();
        let nodes = addresses(&cluster);
        let store = store(client, &nodes).await;
        let (first, slot) = of_the_first_node(&store, &nodes).await;
        let lease = acquire(&store, &first).await;
        let name = store.record_name(first.key());
        let (from, to) = (nodes[0], nodes[1]);
        let [from_id, to_id] =
            [say(from, "CLUSTER MYID").await.text(), say(to, "CLUSTER MYID").await.text()];

        // ASK: the slot is on its way, and this key has arrived.
        say(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}")).await;
        say(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}")).await;
        let migrate = format!("MIGRATE 127.0.0.1 {} {name} 0 5000", to.port());
        assert_eq!(say(from, &migrate).await.text(), "OK");
        let renewed = soon(store.renew(&lease, first.lease_for())).await;
        let rival = attempt(first.key(), 1);
        if client.needs_a_whole_cluster() {
            assert!(renewed.unwrap_err().is_unavailable());
        } else {
            renewed.unwrap();
            let verdict = soon(store.reserve(&rival)).await.unwrap().verdict(&rival).unwrap();
            assert!(matches!(verdict, Verdict::InProgress { .. }), "{client:?} {verdict:?}");
        }

        // A coordinator finds the key held, or the store out of reach; it does not run.
        let budget = StoreBudget::default().tries(1);
        let idem = Coordinator::builder(store.clone())
            .in_flight(InFlight::Reject)
            .on_store_failure(OnStoreFailure::Refuse)
            .store_budget(budget)
            .build()
            .unwrap();
        let call = idem.operation("payment.charge").key(first.key().text());
        let call = call.fingerprint(first.fingerprint());
        let told = soon(call.run(async |_| -> Result<(), String> { panic!("it ran") })).await;
        let refused = told.unwrap_err();
        let code = if client.needs_a_whole_cluster() { "store_unavailable" } else { "in_progress" };
        assert_eq!(refused.code(), code, "{client:?}: {refused:?}");

        // MOVED: the slot has arrived.
        for node in [to, from, nodes[2]] {
            say(node, &format!("CLUSTER SETSLOT {slot} NODE {to_id}")).await;
        }
        let complete = async || store.complete(&lease, &"done".into(), first.retention_for()).await;
        if client.needs_a_whole_cluster() {
            answered(complete).await.unwrap();
        } else {
            soon(complete()).await.unwrap();
        }
        let verdict = soon(store.reserve(&rival)).await.unwrap().verdict(&rival).unwrap();
        assert_eq!(verdict, Verdict::Replay("done".into()), "{client:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_does_not_serve_has_not_applied_anything() {
    for &client in Client::CLUSTER {
        let cluster = servers::redis_cluster().await.unwrap();
        let nodes = addresses(&cluster);
        let store = store(client, &nodes).await;
        let (first, slot) = of_the_first_node(&store, &nodes).await;
        let _ = acquire(&store, &first).await;
        let gone = i64::from(slot == 0);
        say(nodes[0], &format!("CLUSTER DELSLOTS {gone}")).await;
        let down = async {
            while !say(nodes[0], "CLUSTER INFO").await.text().contains("cluster_state:fail") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        soon(down).await;
        assert_eq!(applied(soon(store.reserve(&first)).await), Applied::No, "{client:?}");
        let keys = async || of_the_first_node(&store, &nodes).await.0.key().clone();
        coordinator_copes_with(&store, keys).await;
        say(nodes[0], &format!("CLUSTER ADDSLOTS {gone}")).await;
        let _ = acquire_in_the_end(&store, &first).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_gone_does_not_take_the_others_along() {
    for &client in Client::CLUSTER {
        let partial = |node: servers::Setup| node.setting("cluster-require-full-coverage", "no");
        let mut cluster = servers::redis_cluster_with(partial).await.unwrap();
        let nodes = addresses(&cluster);
        let store = store(client, &nodes).await;
        let (first, _) = of_the_first_node(&store, &nodes).await;
        let _ = acquire(&store, &first).await;
        cluster.nodes_mut()[2].kill().await.unwrap();
        let others = if client.needs_a_whole_cluster() { 0 } else { 20 };
        for _ in 0..others {
            let (other, _) = of_the_first_node(&store, &nodes).await;
            let _ = acquire_in_the_end(&store, &other).await;
        }
        cluster.nodes_mut()[2].restart().await.unwrap();
        for _ in 0..20 {
            serves(&store).await;
        }
    }
}
