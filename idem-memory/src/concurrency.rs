//! The store under every schedule that shuttle finds.
//!
//! Shuttle fails a schedule in which somebody waits for ever.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use idem_core::{Attempt, Fingerprint, Key, Lease, Refusal, Scope, Store, StoreError, Verdict};
use shuttle::future::block_on;
use shuttle::thread;

use crate::{MemoryStore, TestClock};

const SCHEDULES: usize = 5_000;

fn attempt(key: &str) -> Attempt {
    let key = Key::new(Scope::new("op").unwrap(), key).unwrap();
    Attempt::new(key, Fingerprint::from_bytes([1; 32]))
}

fn reserve(store: &MemoryStore, attempt: &Attempt) -> Verdict {
    block_on(store.reserve(attempt)).unwrap().verdict(attempt).unwrap()
}

fn take(store: &MemoryStore, attempt: &Attempt) -> Lease {
    match reserve(store, attempt) {
        Verdict::Acquired { lease, .. } => lease,
        other => panic!("expected to acquire, got {other:?}"),
    }
}

fn complete(store: &MemoryStore, lease: &Lease, with: &'static [u8]) -> Result<(), StoreError> {
    block_on(store.complete(lease, &Bytes::from_static(with), Duration::from_mins(1)))
}

// L2, C1
#[test]
fn one_racer_takes_the_key() {
    shuttle::check_random(
        || {
            let store = Arc::new(MemoryStore::new());
            let racers: Vec<_> = (0..3)
                .map(|_| {
                    let store = Arc::clone(&store);
                    thread::spawn(move || reserve(&store, &attempt("k")))
                })
                .collect();
            let verdicts: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
            let won = |verdict: &&Verdict| matches!(verdict, Verdict::Acquired { .. });
            assert_eq!(verdicts.iter().filter(won).count(), 1, "{verdicts:?}");
        },
        SCHEDULES,
    );
}

// L4, L6, C12
#[test]
fn a_completion_and_a_takeover_do_not_both_succeed() {
    shuttle::check_random(
        || {
            let clock = TestClock::new();
            let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
            let first = take(&store, &attempt("k"));
            clock.advance(Duration::from_mins(1));
            let late = {
                let store = Arc::clone(&store);
                thread::spawn(move || complete(&store, &first, b"late"))
            };
            let next = attempt("k");
            let verdict = reserve(&store, &next);
            let late = late.join().unwrap();
            match verdict {
                Verdict::Acquired { lease, .. } => {
                    assert!(late.unwrap_err().is_lease_lost());
                    complete(&store, &lease, b"next").unwrap();
                }
                Verdict::Replay(payload) => {
                    late.unwrap();
                    assert_eq!(payload, "late");
                }
                other => panic!("{other:?}"),
            }
        },
        SCHEDULES,
    );
}

#[test]
fn who_watches_before_looking_is_woken() {
    shuttle::check_random(
        || {
            let store = Arc::new(MemoryStore::new());
            let held = attempt("k");
            let lease = take(&store, &held);
            let waiter = {
                let store = Arc::clone(&store);
                thread::spawn(move || {
                    let waiting = attempt("k");
                    let mut watch = block_on(store.watch(waiting.key())).unwrap();
                    loop {
                        match reserve(&store, &waiting) {
                            Verdict::InProgress { .. } => block_on(watch.changed()),
                            Verdict::Replay(payload) => return payload,
                            other => panic!("{other:?}"),
                        }
                    }
                })
            };
            complete(&store, &lease, b"done").unwrap();
            assert_eq!(waiter.join().unwrap(), "done");
        },
        SCHEDULES,
    );
}

// C104
#[test]
fn a_full_store_takes_no_more_than_it_may_and_loses_count_of_nothing() {
    shuttle::check_random(
        || {
            let store = Arc::new(MemoryStore::builder().max_entries(1).build());
            let comers: Vec<_> = ["a", "b", "c"]
                .map(|key| {
                    let store = Arc::clone(&store);
                    thread::spawn(move || {
                        let attempt = attempt(key);
                        match block_on(store.reserve(&attempt)) {
                            Ok(_) => {
                                let lease = take(&store, &attempt);
                                block_on(store.release(&lease)).unwrap();
                            }
                            Err(error) => assert_eq!(error.refusal(), Some(Refusal::Full)),
                        }
                    })
                })
                .into();
            for comer in comers {
                comer.join().unwrap();
            }
            // What is left is a released row, which makes room for the next.
            assert_eq!(store.len(), 1);
            let _d = take(&store, &attempt("d"));
            assert_eq!(store.len(), 1);
        },
        SCHEDULES,
    );
}
