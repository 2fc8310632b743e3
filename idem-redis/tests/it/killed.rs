//! A worker is killed at every step of a call: what the next callers are told, and how often the
//! provider was asked to charge, is what the policy for abandoned keys says.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_conformance::servers;
use idem_conformance::worker::{self, Worker};
use idem_core::{
    Abandoned, Attempt, CallError, Coordinator, Fingerprint, Lease, OnStoreFailure, Outcome,
    Probed, Record, RunError, Store, StoreBudget, StoreError, Watch,
};
use idem_redis::RedisStore;
use tokio::task::JoinSet;

use crate::support::client::{Client, Resp3};
use crate::support::ledger::Ledger;
use crate::support::soon;

/// Long enough for a busy machine, short enough to be waited for.
const LEASE: Duration = Duration::from_secs(3);

const SINGLE: Client = Client::RedisRs(Resp3);
const CLUSTER: Client = Client::RedisRsCluster(Resp3);
#[cfg(feature = "fred")]
const FRED: Client = Client::Fred(Resp3);
#[cfg(feature = "fred")]
const FRED_CLUSTER: Client = Client::FredCluster(Resp3);

/// Every client whose workers are killed.
const CLIENTS: &[Client] = &[
    SINGLE,
    CLUSTER,
    #[cfg(feature = "fred")]
    FRED,
    #[cfg(feature = "fred")]
    FRED_CLUSTER,
];

/// Where a worker is when it is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Before the key is reserved.
    Called,
    /// The key is reserved, and nothing has begun.
    Reserved,
    /// Inside the action.
    Began,
    /// Inside the action, which has charged.
    Charged,
    /// After the action, before its result is sent to the store.
    Acted,
    /// The store has the result, and the caller does not know yet.
    Completed,
    /// The call is over.
    Answered,
}

/// What a dead worker has left in the world.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    Nothing,
    Reservation,
    ReservationAndCharge,
    Answer,
}

impl Step {
    const ALL: [Self; 7] = [
        Self::Called,
        Self::Reserved,
        Self::Began,
        Self::Charged,
        Self::Acted,
        Self::Completed,
        Self::Answered,
    ];

    fn leaves(self) -> Left {
        match self {
            Self::Called => Left::Nothing,
            Self::Reserved | Self::Began => Left::Reservation,
            Self::Charged | Self::Acted => Left::ReservationAndCharge,
            Self::Completed | Self::Answered => Left::Answer,
        }
    }
}

/// What an operation does with an abandoned key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    Rerun,
    Refuse,
    Ask,
}

impl Policy {
    const ALL: [Self; 3] = [Self::Rerun, Self::Refuse, Self::Ask];

    /// What the callers after a dead worker are told: an answer, or that the outcome is unknown.
    fn tells(self, left: Left) -> Option<&'static str> {
        match (left, self) {
            (Left::Reservation | Left::ReservationAndCharge, Self::Refuse) => None,
            // A provider that does not deduplicate charges again.
            (Left::ReservationAndCharge, Self::Rerun) => Some("ch_2"),
            _ => Some("ch_1"),
        }
    }

    /// How often the provider is asked to charge in the end.
    fn charges(self, left: Left) -> usize {
        match (left, self) {
            (Left::ReservationAndCharge, Self::Rerun) => 2,
            (Left::Reservation, Self::Refuse) => 0,
            _ => 1,
        }
    }
}

/// Where a process stops to be killed, if it does.
#[derive(Clone, Copy)]
struct Stop(Option<Step>);

impl Stop {
    fn at(self, step: Step) {
        if self.0 == Some(step) {
            worker::stop_here();
        }
    }
}

/// A store whose process stops at a step.
struct Stopping {
    store: RedisStore,
    stop: Stop,
}

#[async_trait]
impl Store for Stopping {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.stop.at(Step::Called);
        let record = self.store.reserve(attempt).await?;
        self.stop.at(Step::Reserved);
        Ok(record)
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
        self.stop.at(Step::Acted);
        self.store.complete(lease, payload, retention).await?;
        self.stop.at(Step::Completed);
        Ok(())
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.store.release(lease).await
    }

    async fn watch(&self, key: &idem_core::Key) -> Result<Watch, StoreError> {
        self.store.watch(key).await
    }
}

/// One key that one worker dies of.
#[derive(Clone)]
struct Case {
    client: Client,
    servers: Vec<SocketAddr>,
    provider: Ledger,
    policy: Policy,
    key: String,
}

impl Case {
    /// Makes the call, as any process would.
    async fn call(self, stop: Stop) -> Result<Outcome<String>, RunError<String>> {
        let Self { client, servers, provider, policy, key } = self;
        let builder = RedisStore::builder().deadline(LEASE / 3);
        let store = client.connect(builder, &servers).await.unwrap();
        let refuses = policy == Policy::Refuse;
        let idem = Coordinator::builder(Stopping { store, stop })
            .lease(LEASE)
            .store_budget(StoreBudget::default().per_try(LEASE / 3).total(LEASE))
            .on_store_failure(OnStoreFailure::Refuse)
            .abandoned(if refuses { Abandoned::Refuse } else { Abandoned::Rerun })
            .build()
            .unwrap();
        let request = Fingerprint::from_bytes([1; 32]);
        let call = idem.operation("payment.charge").key(&key).fingerprint(request);
        let asked_for = key.clone();
        let action = async move |attempt: idem_core::RunningAttempt| {
            stop.at(Step::Began);
            let number = provider.add(&key, &attempt.downstream_key()).await;
            stop.at(Step::Charged);
            Ok(format!("ch_{number}"))
        };
        let outcome = if policy == Policy::Ask {
            let ask = move |_| async move {
                match provider.read(&asked_for).await.len() {
                    0 => Probed::DidNotHappen,
                    number => Probed::Happened(format!("ch_{number}")),
                }
            };
            call.probe(ask).run(action).await
        } else {
            call.run(action).await
        };
        stop.at(Step::Answered);
        outcome
    }

    /// Starts a worker that makes the call, and kills it at the step.
    async fn kill_at(&self, step: Step) {
        let Self { client, servers, provider, policy, key } = self;
        let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
        let worker = Worker::start(
            "killed::worker",
            &[
                &format!("{client:?}"),
                &servers.join(","),
                &provider.0.to_string(),
                &format!("{policy:?}"),
                &format!("{step:?}"),
                key,
            ],
        );
        let mut worker = worker.unwrap();
        soon(worker.is_here()).await.unwrap();
        worker.kill().await.unwrap();
    }

    /// Two coordinators make the call again, at once.
    async fn ask_again(self, left: Left) {
        let Self { policy, provider, key, .. } = self.clone();
        let context = format!("{left:?}, {policy:?}, {key}");
        let callers = tokio::join!(self.clone().call(Stop(None)), self.call(Stop(None)));
        let mut ran = 0;
        for told in [callers.0, callers.1] {
            match (told, policy.tells(left)) {
                (Ok(told), Some(answer)) => {
                    assert_eq!((told.value.as_str(), told.recorded), (answer, true), "{context}");
                    ran += usize::from(!told.replayed);
                }
                (Err(RunError::Call(CallError::OutcomeUnknown { attempts: 1, .. })), None) => {}
                (told, _) => panic!("{context}: {told:?}"),
            }
        }
        let runs = left != Left::Answer && policy.tells(left).is_some();
        assert_eq!(ran, usize::from(runs), "{context}");
        let charges = provider.read(&key).await;
        assert_eq!(charges.len(), policy.charges(left), "{context}");
        // A provider that deduplicates has charged once.
        assert!(charges.iter().all(|downstream| *downstream == charges[0]), "{context}");
    }
}

/// The worker's process.
#[tokio::test]
async fn worker() {
    let Some([client, servers, provider, policy, step, key]) = worker::told() else { return };
    let client = *CLIENTS.iter().find(|known| format!("{known:?}") == client).unwrap();
    let servers = servers.split(',').map(|server| server.parse().unwrap()).collect();
    let provider = Ledger(provider.parse().unwrap());
    let policy = Policy::ALL.into_iter().find(|p| format!("{p:?}") == policy).unwrap();
    let step = Step::ALL.into_iter().find(|s| format!("{s:?}") == step).unwrap();
    let case = Case { client, servers, provider, policy, key };
    case.call(Stop(Some(step))).await.unwrap();
}

/// For each policy, kills a worker at each step, and then asks again under all their keys.
async fn kill_at_every_step(client: Client, servers: &[SocketAddr], rounds: usize) {
    let provider = servers::redis().own().await.unwrap();
    for round in 0..rounds {
        let mut again = JoinSet::new();
        for policy in Policy::ALL {
            for step in Step::ALL {
                let (servers, provider) = (servers.to_vec(), Ledger(provider.addr()));
                let key = format!("{policy:?} {step:?} {round}");
                let case = Case { client, servers, provider, policy, key };
                case.kill_at(step).await;
                again.spawn(soon(case.ask_again(step.leaves())));
            }
        }
        again.join_all().await;
    }
}

async fn on_one_server(client: Client, rounds: usize) {
    let server = servers::redis().setting("appendonly", "yes").setting("appendfsync", "always");
    let server = server.await.unwrap();
    kill_at_every_step(client, &[server.addr()], rounds).await;
}

async fn on_a_cluster(client: Client, rounds: usize) {
    let cluster = servers::redis_cluster().await.unwrap();
    let nodes: Vec<_> = cluster.nodes().iter().map(servers::Server::addr).collect();
    kill_at_every_step(client, &nodes, rounds).await;
}

// C24, C27, C33, C126
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_at_any_step_leaves_what_the_policy_says() {
    on_one_server(SINGLE, 1).await;
}

// C24, C27, C33, C126
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_a_cluster_killed_at_any_step_leaves_what_the_policy_says() {
    on_a_cluster(CLUSTER, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 420 killed workers"]
async fn workers_killed_again_and_again_leave_what_the_policy_says() {
    for &client in CLIENTS {
        if client.is_cluster() {
            on_a_cluster(client, 5).await;
        } else {
            on_one_server(client, 5).await;
        }
    }
}

#[cfg(feature = "fred")]
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_the_other_client_killed_at_any_step_leaves_the_same() {
    on_one_server(FRED, 1).await;
}
