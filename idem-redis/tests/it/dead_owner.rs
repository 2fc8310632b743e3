//! The owner of a key dies while callers in two processes wait for it: one of them takes over, and
//! all are told what that one came to.

use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use idem_conformance::servers;
use idem_conformance::worker::{self, Worker};
use idem_core::{Coordinator, Fingerprint, InFlight, Key, OnStoreFailure, Scope, StoreBudget};
use idem_redis::RedisStore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::client::{Client, Resp3};
use crate::support::ledger::Ledger;
use crate::support::soon;
use crate::support::wire::{Reply, ask};

const OPERATION: &str = "payment.charge";
const PROCESSES: usize = 2;
const WAITERS: usize = 25;

/// A living owner keeps it on a busy machine, and a dead one's end is soon waited for.
const LEASE: Duration = Duration::from_secs(3);
/// Longer than the way of two processes to the same key.
const ACTION: Duration = Duration::from_millis(50);

const OWNER: &str = "owner";
const WAITER: &str = "waiter";

async fn connect(server: SocketAddr) -> RedisStore {
    let builder = RedisStore::builder().deadline(LEASE / 3);
    Client::RedisRs(Resp3).connect(builder, &[server]).await.unwrap()
}

async fn coordinator(server: SocketAddr) -> Coordinator {
    Coordinator::builder(connect(server).await)
        .lease(LEASE)
        .in_flight(InFlight::Wait { at_most: Duration::from_mins(1) })
        .store_budget(StoreBudget::default().per_try(LEASE / 3).total(LEASE))
        .on_store_failure(OnStoreFailure::Refuse)
        .build()
        .unwrap()
}

fn keys(batch: &str, rounds: usize) -> impl Iterator<Item = String> {
    (0..rounds).map(move |round| format!("{batch}.{round}"))
}

/// Owns the key until it is killed.
async fn own(idem: Coordinator, key: String) {
    let call = idem.operation(OPERATION).key(&key).fingerprint(Fingerprint::from_bytes([1; 32]));
    let owned = call.run(|_| async {
        worker::here();
        pending::<Result<(), String>>().await
    });
    owned.await.unwrap();
}

/// Waits for the key, and writes down which attempt runs an action and what each caller is told.
async fn wait_for(idem: Coordinator, ledger: Ledger, key: String) {
    let call = idem.operation(OPERATION).key(&key).fingerprint(Fingerprint::from_bytes([1; 32]));
    let actions = format!("{key} actions");
    let action = async move |attempt: idem_core::RunningAttempt| {
        let number = ledger.add(&actions, &attempt.number().to_string()).await;
        sleep(ACTION).await;
        Ok::<_, String>(format!("ch_{number}"))
    };
    let told = call.run(action).await.unwrap();
    let how = if told.replayed { "replayed" } else { "ran" };
    ledger.add(&format!("{key} answers"), &format!("{how} {}", told.value)).await;
}

/// The process of an owner or of waiters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker() {
    let Some([role, server, ledger, batch, rounds]) = worker::told() else { return };
    let idem = coordinator(server.parse().unwrap()).await;
    let ledger = Ledger(ledger.parse().unwrap());
    let mut callers = JoinSet::new();
    for key in keys(&batch, rounds.parse().unwrap()) {
        if role == OWNER {
            callers.spawn(own(idem.clone(), key));
        } else {
            for _ in 0..WAITERS {
                callers.spawn(wait_for(idem.clone(), ledger, key.clone()));
            }
        }
    }
    callers.join_all().await;
}

/// Waits until every process waits for the key.
async fn is_waited_for(server: SocketAddr, store: &RedisStore, key: &str) {
    let key = Key::new(Scope::new(OPERATION).unwrap(), key).unwrap();
    // A waiter's process is subscribed to the channel that is named like the record.
    let channel = store.record_name(&key);
    let processes = Reply::Number(PROCESSES.try_into().unwrap());
    soon(async {
        while ask(server, &[b"PUBSUB", b"NUMSUB", channel.as_bytes()]).await.list()[1] != processes
        {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// So many keys at once, all of one owner.
async fn owner_dies(server: SocketAddr, ledger: Ledger, batch: usize, rounds: usize) {
    let start = |role| {
        let (server, ledger) = (server.to_string(), ledger.0.to_string());
        let (batch, rounds) = (batch.to_string(), rounds.to_string());
        Worker::start("dead_owner::worker", &[role, &server, &ledger, &batch, &rounds]).unwrap()
    };
    let keys = || keys(&batch.to_string(), rounds).collect::<Vec<_>>();
    let mut owner = start(OWNER);
    for _ in keys() {
        soon(owner.is_here()).await.unwrap();
    }
    let waiters = [(); PROCESSES].map(|()| start(WAITER));
    let store = connect(server).await;
    for key in keys() {
        is_waited_for(server, &store, &key).await;
    }
    owner.kill().await.unwrap();
    for waiter in waiters {
        waiter.ends_well().await.unwrap();
    }
    for key in keys() {
        // The owner's attempt was the first, and nobody died of the second.
        assert_eq!(ledger.read(&format!("{key} actions")).await, ["2"], "{key}");
        let mut answers = ledger.read(&format!("{key} answers")).await;
        answers.sort_unstable();
        let mut all = ["replayed ch_1"; PROCESSES * WAITERS];
        // The first in order.
        all[0] = "ran ch_1";
        assert_eq!(answers, all, "{key}");
    }
}

async fn owners_die(batches: usize, rounds: usize) {
    let server = servers::redis().own().await.unwrap();
    let ledger = servers::redis().own().await.unwrap();
    for batch in 0..batches {
        owner_dies(server.addr(), Ledger(ledger.addr()), batch, rounds).await;
    }
}

// C24
#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_waiters_in_two_processes_one_takes_over_a_dead_owner() {
    owners_die(1, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 200 dead owners of 50 waiters each"]
async fn of_all_waiters_one_takes_over_each_of_200_dead_owners() {
    owners_die(10, 20).await;
}
