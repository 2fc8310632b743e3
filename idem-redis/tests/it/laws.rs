//! The scripts and the model agree: every step, every answer, every stored byte.
//!
//! A random history is played to a real server at virtual time and to `idem_core::model`. The
//! record in Redis is the model's row, byte for byte, after each step.

use std::time::Duration;

use bytes::Bytes;
use idem_conformance::servers::{self, WallClock};
use idem_core::model::{self, Row, Step, Timestamp};
use idem_core::{Attempt, AttemptId, Fence, Key, Lease, Store, StoreError};
use idem_redis::RedisStore;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::wire::{Reply, ask, say};
use crate::support::{attempt, fresh_key};

/// One step; attempts are named by number.
#[derive(Clone, Copy, Debug)]
enum Do {
    Reserve(usize),
    Renew(usize, Duration),
    Complete(usize, u8),
    Release(usize),
    Pass(Duration),
}

const LEASE: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_mins(10);
const ATTEMPTS: usize = 4;

fn step() -> impl Strategy<Value = Do> {
    let who = 0..ATTEMPTS;
    let micro = Duration::from_micros(1);
    let passing = prop_oneof![
        Just(micro),
        Just(LEASE.checked_sub(micro).unwrap()),
        Just(LEASE),
        Just(LEASE + micro),
        Just(RETENTION.checked_sub(micro).unwrap()),
        Just(RETENTION),
        Just(RETENTION + LEASE),
        (0..1_000_000_000_u64).prop_map(Duration::from_micros),
    ];
    let longer = prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_millis(10)),
        Just(LEASE * 2),
        Just(Duration::from_hours(24)),
    ];
    prop_oneof![
        4 => who.clone().prop_map(Do::Reserve),
        2 => (who.clone(), longer).prop_map(|(who, by)| Do::Renew(who, by)),
        1 => (who.clone(), any::<u8>()).prop_map(|(who, payload)| Do::Complete(who, payload)),
        1 => who.prop_map(Do::Release),
        2 => passing.prop_map(Do::Pass),
    ]
}

/// A payload that no two numbers share, some of them empty, some of them large.
fn payload(number: u8) -> Bytes {
    vec![number; usize::from(number) * usize::from(number)].into()
}

/// The attempts of one history: one of another request, one that may not take over.
fn attempts(key: &Key) -> Vec<Attempt> {
    let of = |who: usize| {
        let request = if who == 2 { 9 } else { 7 };
        attempt(key, request).lease(LEASE).retention(RETENTION).takeover(who != 3)
    };
    (0..ATTEMPTS).map(of).collect()
}

/// What can be compared of an answer.
fn outcome<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    answer.map_or_else(|error| error.code().to_owned(), |answer| format!("{answer:?}"))
}

/// The model's answer; its row is replaced as it says.
fn modelled<T: std::fmt::Debug>(
    row: &mut Option<Row>,
    step: Result<Step<T>, StoreError>,
) -> String {
    outcome(step.map(|Step { write, answer }| {
        if write.is_some() {
            *row = write;
        }
        answer
    }))
}

#[test]
fn the_scripts_do_what_the_model_does() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let clock = WallClock::new().unwrap();
    clock.stop().unwrap();
    let server = runtime.block_on(async { servers::redis().clock(&clock).await.unwrap() });
    let store = runtime.block_on(RedisStore::builder().connect(server.url())).unwrap();
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let history = prop::collection::vec(step(), 1..24);
    let played = TestRunner::new(config).run(&history, |history| {
        runtime.block_on(async {
            let key = fresh_key();
            let attempts = attempts(&key);
            let mut row = None;
            for (at, &step) in history.iter().enumerate() {
                let now = time(server.addr()).await;
                let (done, expected) = play(&store, &clock, &attempts, &mut row, step, now).await;
                prop_assert_eq!(done, expected, "step {}: {:?}", at, step);
                let now = time(server.addr()).await;
                let kept = row.as_ref().filter(|row| row.retain_until > now);
                let stored = stored(&store, &key, server.addr()).await;
                prop_assert_eq!(stored, kept.map(|row| row.encode().to_vec()), "step {}", at);
            }
            Ok(())
        })
    });
    played.unwrap_or_else(|why| panic!("{why}"));
}

async fn play(
    store: &RedisStore,
    clock: &WallClock,
    attempts: &[Attempt],
    row: &mut Option<Row>,
    step: Do,
    now: Timestamp,
) -> (String, String) {
    let lease = |who: usize| Lease::new(attempts[who].key().clone(), attempts[who].id(), Fence(0));
    let was = row.clone();
    match step {
        Do::Reserve(who) => (
            outcome(store.reserve(&attempts[who]).await),
            modelled(row, model::reserve(was.as_ref(), &attempts[who], now)),
        ),
        Do::Renew(who, by) => (
            outcome(store.renew(&lease(who), by).await),
            modelled(row, model::renew(was.as_ref(), &lease(who), by, now)),
        ),
        Do::Complete(who, number) => (
            outcome(store.complete(&lease(who), &payload(number), RETENTION).await),
            modelled(
                row,
                model::complete(was.as_ref(), &lease(who), &payload(number), RETENTION, now),
            ),
        ),
        Do::Release(who) => (
            outcome(store.release(&lease(who)).await),
            modelled(row, model::release(was.as_ref(), &lease(who), now)),
        ),
        Do::Pass(by) => {
            clock.advance(by).unwrap();
            (String::new(), String::new())
        }
    }
}

async fn time(server: std::net::SocketAddr) -> Timestamp {
    let Reply::List(parts) = say(server, "TIME").await else { panic!("no time") };
    let [seconds, micros] =
        [&parts[0], &parts[1]].map(|part| part.clone().text().parse::<u64>().unwrap());
    Timestamp(seconds * 1_000_000 + micros)
}

/// What is stored under the key, unless it is only still there: a key expires by the millisecond.
async fn stored(store: &RedisStore, key: &Key, server: std::net::SocketAddr) -> Option<Vec<u8>> {
    let name = store.record_name(key);
    let bytes = match ask(server, &[b"GET", name.as_bytes()]).await {
        Reply::Nil => return None,
        reply => reply.bytes(),
    };
    let row = Row::decode(&bytes.clone().into()).unwrap();
    let expires = ask(server, &[b"PEXPIRETIME", name.as_bytes()]).await.number();
    assert_eq!(expires, i64::try_from(row.retain_until.0.div_ceil(1_000)).unwrap());
    (row.retain_until > time(server).await).then_some(bytes)
}

// L3: beyond 1e15 a fence keeps every digit, and grows by one where the clock does not.
#[tokio::test]
async fn a_fence_keeps_every_digit() {
    let clock = WallClock::new().unwrap();
    clock.stop().unwrap();
    let server = servers::redis().clock(&clock).await.unwrap();
    let store = RedisStore::builder().connect(server.url()).await.unwrap();
    let key = fresh_key();
    let now = time(server.addr()).await.0;
    assert!(now > 1_000_000_000_000_000);
    for grown in 0..3 {
        let attempt = attempt(&key, 1);
        let record = store.reserve(&attempt).await.unwrap();
        assert_eq!(record.fence, Fence(now + grown));
        store.release(&Lease::new(key.clone(), attempt.id(), record.fence)).await.unwrap();
    }
}

// L8: no fence is issued that could not be told from its neighbours.
#[tokio::test]
async fn a_fence_that_cannot_grow_is_corrupt() {
    let server = servers::redis().await.unwrap();
    let store = RedisStore::builder().connect(server.url()).await.unwrap();
    let key = fresh_key();
    for fence in [(1 << 53) - 1, 1 << 53, u64::MAX] {
        let row = Row {
            holder: AttemptId::random(),
            fence: Fence(fence),
            attempts: 1,
            retain_until: Timestamp(u64::MAX >> 12),
            phase: model::Phase::Released,
        };
        let name = store.record_name(&key);
        ask(server.addr(), &[b"SET", name.as_bytes(), &row.encode()]).await;
        let error = store.reserve(&attempt(&key, 1)).await.unwrap_err();
        assert_eq!(error.code(), "record_corrupt");
    }
}
