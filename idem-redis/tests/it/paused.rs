//! A worker that is paused for longer than its lease, and a server that crashes under a call: what
//! the provider was asked for, and what every caller is told.

use std::net::SocketAddr;
use std::time::Duration;

use idem_conformance::servers::{self, Setup};
use idem_conformance::worker::{self, Worker};
use idem_core::{Coordinator, InFlight, OnStoreFailure, Outcome, RunError, StoreBudget};
use idem_redis::RedisStore;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::support::client::{Client, Resp3};
use crate::support::ledger::Ledger;
use crate::support::{fresh_key, serves, soon};

/// Long enough for a busy machine, short enough to be waited for.
const LEASE: Duration = Duration::from_secs(2);
const KEY: &str = "order-1";

const CLIENTS: &[Client] = &[
    Client::RedisRs(Resp3),
    #[cfg(feature = "fred")]
    Client::Fred(Resp3),
];

async fn coordinator(client: Client, server: SocketAddr) -> Coordinator {
    let builder = RedisStore::builder().deadline(LEASE / 4);
    let store = client.connect(builder, &[server]).await.unwrap();
    Coordinator::builder(store)
        .lease(LEASE)
        .in_flight(InFlight::Wait { at_most: Duration::from_secs(25) })
        .store_budget(StoreBudget::default().per_try(LEASE / 4).total(LEASE))
        .on_store_failure(OnStoreFailure::Refuse)
        .build()
        .unwrap()
}

/// Asks the provider, which counts by the key that it is handed.
async fn charge(
    idem: &Coordinator,
    provider: Ledger,
    key: &str,
    before: impl Future<Output = ()> + Send + 'static,
) -> Result<Outcome<String>, RunError<String>> {
    let call = idem.operation("payment.charge").key(key).without_fingerprint();
    let asked = key.to_owned();
    let charged = call.run(async move |attempt| {
        before.await;
        let number = provider.add(&asked, &attempt.downstream_key()).await;
        Ok(format!("ch_{number}"))
    });
    soon(charged).await
}

/// The process of a worker that is paused while it charges.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker() {
    let Some([client, server, provider]) = worker::told() else { return };
    let client = *CLIENTS.iter().find(|known| format!("{known:?}") == client).unwrap();
    let idem = coordinator(client, server.parse().unwrap()).await;
    let stands = async {
        worker::here();
        // It is paused meanwhile.
        tokio::time::sleep(LEASE / 2).await;
    };
    let told = charge(&idem, Ledger(provider.parse().unwrap()), KEY, stands).await.unwrap();
    // The winner's answer: it finds out that it has lost before it tells anybody.
    assert_eq!((told.value.as_str(), told.replayed), ("ch_1", true));
}

// C26, C33: a pause longer than the lease. The key is handed on, the provider is asked twice with
// one key, and everybody is told what the second was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_paused_for_longer_than_its_lease_answers_with_the_winners_result() {
    for &client in CLIENTS {
        let server = servers::redis().own().await.unwrap();
        let provider = servers::redis().own().await.unwrap();
        let ledger = Ledger(provider.addr());
        let told = [format!("{client:?}"), server.addr().to_string(), provider.addr().to_string()];
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        let mut paused = Worker::start("paused::worker", &told).unwrap();
        soon(paused.is_here()).await.unwrap();
        paused.pause().unwrap();

        let idem = coordinator(client, server.addr()).await;
        let taken_over = charge(&idem, ledger, KEY, async {}).await.unwrap();
        assert_eq!((taken_over.value.as_str(), taken_over.replayed), ("ch_1", false));

        paused.resume().unwrap();
        soon(paused.ends_well()).await.unwrap();
        let again = charge(&idem, ledger, KEY, async {}).await.unwrap();
        assert_eq!((again.value.as_str(), again.replayed), ("ch_1", true));
        let charges = ledger.read(KEY).await;
        assert_eq!(charges.len(), 2, "{client:?}");
        assert_eq!(charges[0], charges[1], "a provider that deduplicates has charged twice");
    }
}

/// The server is killed while an action runs and others wait for it, and comes back. Says how often
/// the provider was asked; whoever is given an answer is given the same.
async fn server_crashes(client: Client, setup: Setup) -> usize {
    let mut server = setup.own().await.unwrap();
    let provider = servers::redis().own().await.unwrap();
    let ledger = Ledger(provider.addr());
    let store = client.connect(RedisStore::builder(), &[server.addr()]).await.unwrap();
    let idem = coordinator(client, server.addr()).await;
    let key = fresh_key();
    let (go_on, goes_on) = oneshot::channel::<()>();
    let (began, begins) = oneshot::channel::<()>();
    let mut callers = JoinSet::new();
    let (owner, of_owner) = (idem.clone(), key.clone());
    callers.spawn(async move {
        let stands = async {
            began.send(()).unwrap();
            goes_on.await.unwrap();
        };
        charge(&owner, ledger, of_owner.text(), stands).await
    });
    soon(begins).await.unwrap();
    let other = coordinator(client, server.addr()).await;
    for _ in 0..5 {
        let (other, key) = (other.clone(), key.clone());
        callers.spawn(async move { charge(&other, ledger, key.text(), async {}).await });
    }
    tokio::time::sleep(LEASE / 8).await;

    server.kill().await.unwrap();
    server.restart().await.unwrap();
    serves(&store).await;
    go_on.send(()).unwrap();

    let mut answers = Vec::new();
    while let Some(told) = callers.join_next().await {
        // A store that is down may be told of; nothing else may.
        match told.unwrap() {
            Ok(outcome) => answers.push(outcome.value),
            Err(error) => assert!(error.call().is_some(), "{error:?}"),
        }
    }
    let later = charge(&other, ledger, key.text(), async {}).await.unwrap();
    answers.push(later.value);
    let charges = ledger.read(key.text()).await;
    assert!(charges.iter().all(|downstream| *downstream == charges[0]), "{client:?}");
    if charges.len() == 1 {
        assert!(answers.iter().all(|answer| answer == "ch_1"), "{client:?}: {answers:?}");
    }
    charges.len()
}

// C14
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_appends_and_crashes_under_a_call_charges_once() {
    for &client in CLIENTS {
        for appendfsync in ["always", "everysec"] {
            let setup = servers::redis().setting("appendonly", "yes");
            let setup = setup.setting("appendfsync", appendfsync);
            assert_eq!(server_crashes(client, setup).await, 1, "{client:?} {appendfsync}");
        }
    }
}

// C14: it has forgotten the reservation, and the action runs again under the same downstream key.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_nothing_and_crashes_charges_again_under_one_downstream_key() {
    for &client in CLIENTS {
        let charges = server_crashes(client, servers::redis()).await;
        assert!((1..=2).contains(&charges), "{client:?}: {charges}");
    }
}
