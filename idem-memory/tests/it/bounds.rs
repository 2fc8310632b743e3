//! Full means refused: nothing live is ever evicted.

use std::time::Duration;

use bytes::Bytes;
use idem_core::{Attempt, Fingerprint, Key, Lease, Refusal, Scope, Store, StoreError, Verdict};
use idem_memory::{Builder, MemoryStore, TestClock};

fn attempt(key: &str) -> Attempt {
    let key = Key::new(Scope::new("op").unwrap(), key).unwrap();
    Attempt::new(key, Fingerprint::from_bytes([1; 32]))
}

async fn take(store: &MemoryStore, attempt: &Attempt) -> Lease {
    match store.reserve(attempt).await.unwrap().verdict(attempt).unwrap() {
        Verdict::Acquired { lease, .. } => lease,
        other => panic!("expected to acquire, got {other:?}"),
    }
}

fn full<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert_eq!(result.unwrap_err().refusal(), Some(Refusal::Full));
}

fn with_clock(configure: impl Fn(Builder) -> Builder) -> (MemoryStore, TestClock) {
    let clock = TestClock::new();
    (configure(MemoryStore::builder()).clock(clock.clone()).build(), clock)
}

// C135: keys that somebody makes up fill the store, and no more than it.
#[tokio::test]
async fn a_full_store_refuses_and_keeps_what_it_has() {
    let (store, _) = with_clock(|b| b.max_entries(2));
    let (a, b) = (attempt("a"), attempt("b"));
    let lease = take(&store, &a).await;
    let _b = take(&store, &b).await;
    full(store.reserve(&attempt("c")).await);
    // C104: neither the reservation nor its answer was given up for the newcomer.
    assert_eq!(take(&store, &a).await, lease);
    store.complete(&lease, &Bytes::from_static(b"x"), a.retention_for()).await.unwrap();
    full(store.reserve(&attempt("c")).await);
    assert_eq!(store.len(), 2);
}

#[tokio::test]
async fn expired_and_released_rows_make_room() {
    let (store, clock) = with_clock(|b| b.max_entries(1));
    let a = attempt("a");
    let lease = take(&store, &a).await;
    store.release(&lease).await.unwrap();
    let b = attempt("b");
    let lease = take(&store, &b).await;
    store.complete(&lease, &Bytes::new(), Duration::from_mins(1)).await.unwrap();
    full(store.reserve(&attempt("c")).await);
    clock.advance(Duration::from_mins(1));
    let _c = take(&store, &attempt("c")).await;
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn a_payload_that_does_not_fit_is_refused_and_the_reservation_stands() {
    let (store, _) = with_clock(|b| b.max_bytes(1_000));
    let a = attempt("a");
    let lease = take(&store, &a).await;
    full(store.complete(&lease, &Bytes::from(vec![0; 1_000]), a.retention_for()).await);
    assert_eq!(take(&store, &a).await, lease);
    store.complete(&lease, &Bytes::from_static(b"small"), a.retention_for()).await.unwrap();
}

#[tokio::test]
async fn what_is_counted_goes_back_to_nothing() {
    let (store, clock) = with_clock(|b| b);
    for n in 0..500 {
        let a = attempt(&n.to_string());
        let lease = take(&store, &a).await;
        match n % 3 {
            0 => store.release(&lease).await.unwrap(),
            1 => store
                .complete(&lease, &Bytes::from(vec![0; n]), Duration::from_mins(1))
                .await
                .unwrap(),
            _ => {}
        }
    }
    assert_eq!(store.len(), 500);
    clock.advance(Duration::from_hours(25));
    assert_eq!(store.sweep(), 500);
    assert_eq!((store.len(), store.bytes()), (0, 0));
}

#[tokio::test]
async fn a_store_that_grows_sweeps_itself() {
    let (store, clock) = with_clock(|b| b);
    for n in 0..10_000 {
        let a = attempt(&n.to_string()).retention(Duration::from_mins(1));
        let lease = take(&store, &a).await;
        store.complete(&lease, &Bytes::new(), Duration::from_mins(1)).await.unwrap();
        clock.advance(Duration::from_secs(1));
    }
    // 60 are kept at any time; each of 16 parts may hold 64 before it looks.
    assert!(store.len() <= 16 * 64 + 60, "{} rows are left", store.len());
}

#[tokio::test]
async fn an_operator_sees_an_abandoned_record_and_resolves_it() {
    // C27: the refused state is visible to inspection.
    let (store, clock) = with_clock(|b| b);
    let a = attempt("a");
    let lease = take(&store, &a).await;
    clock.advance(Duration::from_mins(1));
    let row = store.inspect(a.key()).expect("an abandoned record is remembered");
    assert_eq!((row.holder, row.fence), (a.id(), lease.fence()));
    assert!(store.forget(a.key()).is_some());
    assert!(store.inspect(a.key()).is_none());
    assert!(store.complete(&lease, &Bytes::new(), a.retention_for()).await.is_err());
}
