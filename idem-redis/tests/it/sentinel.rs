//! A master that is found through a sentinel, and another that takes its place.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_conformance::servers;
use idem_core::{Coordinator, InFlight, OnStoreFailure, Outcome, RunError, Store, Verdict};
use idem_redis::RedisStore;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::support::sentinel::{Replicated, Sentinel, Watched};
use crate::support::wire::say;
use crate::support::{acquire_in_the_end, attempt, fresh_key, serves, soon};

fn builder() -> idem_redis::Builder {
    RedisStore::builder().deadline(Duration::from_secs(2))
}

async fn does_its_work(store: &RedisStore) {
    let first = attempt(&fresh_key(), 1);
    let lease = acquire_in_the_end(store, &first).await;
    let mut watch = store.watch(first.key()).await.unwrap();
    store.complete(&lease, &"done".into(), first.retention_for()).await.unwrap();
    soon(watch.changed()).await;
    let again = attempt(first.key(), 1);
    let verdict = store.reserve(&again).await.unwrap().verdict(&again).unwrap();
    assert_eq!(verdict, Verdict::Replay("done".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_that_a_sentinel_names_serves() {
    let master = servers::redis().process().await.unwrap();
    let sentinel = Sentinel::of(&master).await;
    for &client in Watched::ALL {
        does_its_work(&sentinel.connect(client, builder()).await.unwrap()).await;
    }
}

/// A sentinel that names what it is told to.
async fn told(named: Arc<Mutex<SocketAddr>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let named = named.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while let Some(words) = command(&mut stream).await {
                    let at = *named.lock().unwrap();
                    let (host, port) = (at.ip().to_string(), at.port().to_string());
                    let answer = match words[0].as_str() {
                        "SENTINEL" => format!(
                            "*2\r\n${}\r\n{host}\r\n${}\r\n{port}\r\n",
                            host.len(),
                            port.len()
                        ),
                        _ => "+OK\r\n".to_owned(),
                    };
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    address
}

/// The words of the next command; `None` at the end.
async fn command(stream: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut lines = stream.lines();
    let count = lines.next_line().await.ok()??[1..].parse().unwrap();
    let mut words = Vec::new();
    for _ in 0..count {
        lines.next_line().await.ok()??;
        words.push(lines.next_line().await.ok()??);
    }
    Some(words)
}

// Also one that was named when nobody had asked a second time.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_follows_the_sentinels_word() {
    let masters = [servers::redis().own().await.unwrap(), servers::redis().own().await.unwrap()];
    let named = Arc::new(Mutex::new(masters[0].addr()));
    let sentinel = format!("redis://{}/", told(named.clone()).await);
    let store = builder().connect_sentinel([sentinel], "main", "redis://any/").await.unwrap();
    serves(&store).await;
    for master in masters.iter().rev() {
        *named.lock().unwrap() = master.addr();
        soon(async {
            let arrives = async || {
                let first = attempt(&fresh_key(), 1);
                let _ = store.reserve(&first).await;
                let name = store.record_name(first.key());
                say(master.addr(), &format!("EXISTS {name}")).await.number() == 1
            };
            while !arrives().await {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

/// How another node comes to be the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The master is killed.
    Crash,
    /// It is planned, and nothing is broken.
    Command,
    /// The master hangs, and comes back when another has taken its place.
    Pause,
}

/// A provider that counts by the key that it is handed.
#[derive(Clone, Default)]
struct Provider(Arc<Mutex<BTreeMap<String, usize>>>);

impl Provider {
    async fn charge(self, downstream: String) -> Result<String, String> {
        // Before it is done, its master may be another.
        sleep(Duration::from_millis(5)).await;
        let mut charges = self.0.lock().unwrap();
        *charges.entry(downstream.clone()).or_default() += 1;
        Ok(format!("ch_{downstream}"))
    }

    fn charges(&self) -> (usize, usize) {
        let charges = self.0.lock().unwrap();
        (charges.len(), charges.values().sum())
    }
}

type Answer = Result<Outcome<String>, RunError<String>>;

/// A process that has a connection of its own.
async fn process(replicated: &Replicated, client: Watched, confirm: u32) -> Coordinator {
    let store = RedisStore::builder().deadline(Duration::from_millis(400));
    let store = store.confirm_replicas(confirm);
    let store = replicated.sentinel.connect(client, store).await.unwrap();
    serves(&store).await;
    Coordinator::builder(store)
        // A completion that is lost alone leaves its key to whoever comes after the lease.
        .lease(Duration::from_secs(3))
        .in_flight(InFlight::Wait { at_most: Duration::from_secs(20) })
        .on_store_failure(OnStoreFailure::Refuse)
        .build()
        .unwrap()
}

async fn charge(idem: Coordinator, provider: Provider, key: String) -> Answer {
    let call = idem.operation("payment.charge").key(&key).without_fingerprint();
    call.run(|attempt| provider.charge(attempt.downstream_key())).await
}

/// What became of the calls of one failover.
#[derive(Debug, Default)]
struct Told {
    /// Keys whose result was said to be recorded.
    recorded: Vec<String>,
    refused: usize,
}

/// Charges under key after key until it is told to stop.
async fn charges(
    idem: Coordinator,
    provider: Provider,
    caller: usize,
    on: Arc<AtomicBool>,
) -> Told {
    let mut told = Told::default();
    for number in 0.. {
        if !on.load(Ordering::SeqCst) {
            break;
        }
        let key = format!("{caller}.{number}");
        match soon(charge(idem.clone(), provider.clone(), key.clone())).await {
            Ok(outcome) if outcome.recorded => told.recorded.push(key),
            Ok(_) => {}
            Err(RunError::Call(_)) => {
                told.refused += 1;
                sleep(Duration::from_millis(10)).await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    told
}

/// A failover among callers, and what is left of what they were told. Whatever is lost is lost with
/// its key: a retry is a new call, under the downstream key of the first, and not an error.
async fn fails_over(client: Watched, how: How, confirm: u32) {
    let mut replicated = Replicated::start().await;
    let idem = process(&replicated, client, confirm).await;
    let provider = Provider::default();

    // An action that is under way, and those who wait for it in another process.
    let (go_on, goes_on) = tokio::sync::oneshot::channel::<()>();
    let owner = idem.operation("payment.charge").key("long").without_fingerprint();
    let charging = provider.clone();
    let owner = tokio::spawn(owner.run(async move |attempt| {
        goes_on.await.unwrap();
        charging.charge(attempt.downstream_key()).await
    }));
    let other = process(&replicated, client, confirm).await;
    let mut waiters = JoinSet::new();
    for _ in 0..10 {
        waiters.spawn(charge(other.clone(), provider.clone(), "long".to_owned()));
    }

    let on = Arc::new(AtomicBool::new(true));
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        callers.spawn(charges(idem.clone(), provider.clone(), caller, on.clone()));
    }
    sleep(Duration::from_millis(300)).await;

    let began = Instant::now();
    let sentinel = replicated.sentinel.address;
    let master = replicated.master().await;
    let port = master.port();
    match how {
        How::Crash => master.kill().await.unwrap(),
        How::Pause => master.pause().await.unwrap(),
        How::Command => {
            let said = say(sentinel, "SENTINEL FAILOVER main").await;
            assert_eq!(said.text(), "OK");
        }
    }
    replicated.sentinel.has_left(port).await;
    if how == How::Pause {
        replicated.resume(port).await;
    }
    let store = replicated.sentinel.connect(client, builder()).await.unwrap();
    serves(&store).await;
    let recovered = began.elapsed();
    sleep(Duration::from_millis(300)).await;
    on.store(false, Ordering::SeqCst);
    let mut told = Told::default();
    while let Some(one) = callers.join_next().await {
        let one = one.unwrap();
        told.recorded.extend(one.recorded);
        told.refused += one.refused;
    }

    // Whoever waited is told something, and those who are told an answer are told one.
    go_on.send(()).unwrap();
    let mut answers: Vec<String> =
        soon(owner).await.unwrap().into_iter().map(|outcome| outcome.value).collect();
    for answer in soon(waiters.join_all()).await {
        answers.extend(answer.into_iter().map(|outcome| outcome.value));
    }
    answers.dedup();
    assert!(answers.len() <= 1, "{client:?} {how:?}: {answers:?}");

    // Each key once more, by a process that knows of nothing.
    let later = process(&replicated, client, 0).await;
    let mut retries = JoinSet::new();
    for key in &told.recorded {
        retries.spawn(soon(charge(later.clone(), provider.clone(), key.clone())));
    }
    let answers = retries.join_all().await.into_iter();
    let lost = answers.filter(|answer| !answer.as_ref().unwrap().replayed).count();
    let (keys, charges) = provider.charges();
    println!(
        "{client:?}, {how:?}, {confirm} confirm: served after {recovered:?}; of {} recorded answers {lost} lost; \
         {} calls refused; {charges} charges under {keys} keys",
        told.recorded.len(),
        told.refused,
    );
    assert!(told.recorded.len() > 10, "{client:?} {how:?}: hardly anything was asked: {told:?}");
    // Of two replicas, one of which is the next master.
    assert!(confirm < 2 || lost == 0, "{client:?} {how:?}: {lost} lost that both had confirmed");
}

// C14
#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_master_is_replaced_and_every_caller_is_told_something() {
    fails_over(Watched::RedisRs, How::Crash, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_failover_ends_and_every_caller_is_told_something() {
    fails_over(Watched::RedisRs, How::Command, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: a minute of failovers"]
async fn every_failover_ends_with_every_client_and_every_caller_is_told_something() {
    for &client in Watched::ALL {
        for how in [How::Crash, How::Command, How::Pause] {
            fails_over(client, how, 0).await;
            fails_over(client, how, 2).await;
        }
    }
}
