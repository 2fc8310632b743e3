//! Only the holder acts, and nothing is swept from under it.

use std::time::Duration;

use bytes::Bytes;
use idem_core::{Attempt, Fingerprint, Key, Lease, Scope, Store, StoreError, Verdict};
use idem_memory::{MemoryStore, TestClock};

const LEASE: Duration = Duration::from_secs(1);

fn attempt() -> Attempt {
    let key = Key::new(Scope::new("op").unwrap(), "k").unwrap();
    Attempt::new(key, Fingerprint::from_bytes([1; 32])).lease(LEASE)
}

async fn take(store: &MemoryStore, attempt: &Attempt) -> Lease {
    match store.reserve(attempt).await.unwrap().verdict(attempt).unwrap() {
        Verdict::Acquired { lease, .. } => lease,
        other => panic!("expected to acquire, got {other:?}"),
    }
}

fn with_clock() -> (MemoryStore, TestClock) {
    let clock = TestClock::new();
    (MemoryStore::builder().clock(clock.clone()).build(), clock)
}

async fn every_verb_is_lost(store: &MemoryStore, stale: &Lease) {
    let payload = Bytes::from_static(b"stale");
    let retention = Duration::from_hours(1);
    for lost in [
        store.renew(stale, LEASE).await.map(drop),
        store.renew(stale, Duration::ZERO).await.map(drop),
        store.complete(stale, &payload, retention).await,
        store.release(stale).await,
    ] {
        assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
    }
}

// L4, C12, C13
#[tokio::test]
async fn a_stale_lease_changes_nothing_by_any_verb() {
    let (store, clock) = with_clock();
    let (a, b) = (attempt(), attempt());
    let stale = take(&store, &a).await;
    clock.advance(LEASE);
    let lease = take(&store, &b).await;
    let before = store.inspect(a.key());
    every_verb_is_lost(&store, &stale).await;
    assert_eq!(store.inspect(a.key()), before);
    store.complete(&lease, &Bytes::from_static(b"b"), b.retention_for()).await.unwrap();
    every_verb_is_lost(&store, &stale).await;
    let replay = store.reserve(&attempt()).await.unwrap().verdict(&attempt()).unwrap();
    assert_eq!(replay, Verdict::Replay(Bytes::from_static(b"b")));
}

// C14: a store that has forgotten everything, as after a restart, knows no lease from before.
#[tokio::test]
async fn a_lease_from_before_a_restart_never_matches() {
    let (store, _) = with_clock();
    let stale = take(&store, &attempt()).await;
    store.forget(stale.key()).expect("there is a reservation");
    every_verb_is_lost(&store, &stale).await;
    let _fresh = take(&store, &attempt()).await;
    every_verb_is_lost(&store, &stale).await;
}

// C23: a sweep at the edge of a lease leaves it to be renewed, and an abandoned one to be seen.
#[tokio::test]
async fn a_sweep_at_the_end_of_a_lease_takes_nothing() {
    let (store, clock) = with_clock();
    let a = attempt();
    let lease = take(&store, &a).await;
    let micro = Duration::from_micros(1);
    for step in [LEASE.saturating_sub(micro), micro, micro] {
        clock.advance(step);
        assert_eq!(store.sweep(), 0);
    }
    assert_eq!(store.renew(&lease, LEASE).await.unwrap(), LEASE);
    clock.advance(LEASE + a.retention_for().saturating_sub(micro));
    assert_eq!(store.sweep(), 0, "an abandoned record is kept for its retention");
    clock.advance(micro);
    assert_eq!(store.sweep(), 1);
}
