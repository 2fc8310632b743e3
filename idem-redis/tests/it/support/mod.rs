//! Servers, and stores on them.

pub(crate) mod client;
pub(crate) mod ledger;
pub(crate) mod rig;
pub(crate) mod sentinel;
pub(crate) mod wire;

use std::sync::atomic::{AtomicU64, Ordering};

use std::time::Duration;

use idem_core::{Applied, Attempt, Fingerprint, Key, Lease, Scope, Store, StoreError, Verdict};
use idem_redis::RedisStore;
use tokio::time::timeout;

/// A key that no other test uses.
pub(crate) fn fresh_key() -> Key {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let text = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Key::new(Scope::new("payment.charge").unwrap(), &text).unwrap()
}

/// An attempt at `key` with the request number `request`.
pub(crate) fn attempt(key: &Key, request: u8) -> Attempt {
    Attempt::new(key.clone(), Fingerprint::from_bytes([request; 32]))
}

/// Ends a test that hangs; no budget of a call is longer.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Ends a test that hangs.
pub(crate) async fn soon<T>(call: impl Future<Output = T>) -> T {
    timeout(LONG, call).await.expect("it does not end")
}

/// The lease that the attempt is granted.
pub(crate) async fn acquire(store: &RedisStore, attempt: &Attempt) -> Lease {
    match soon(store.reserve(attempt)).await.unwrap().verdict(attempt).unwrap() {
        Verdict::Acquired { lease, .. } => lease,
        other => panic!("{other:?}"),
    }
}

/// The same, as soon as the store serves.
pub(crate) async fn acquire_in_the_end(store: &RedisStore, attempt: &Attempt) -> Lease {
    soon(async {
        while let Err(error) = store.reserve(attempt).await {
            assert!(error.is_unavailable(), "{error:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    acquire(store, attempt).await
}

/// Repeats a call until it is answered.
pub(crate) async fn answered<T>(
    call: impl AsyncFn() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    soon(async {
        loop {
            match call().await {
                Err(StoreError::Unavailable { .. }) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                answer => return answer,
            }
        }
    })
    .await
}

/// Waits until the store serves.
pub(crate) async fn serves(store: &RedisStore) {
    let _ = acquire_in_the_end(store, &attempt(&fresh_key(), 1)).await;
}

/// Whether the failed call may have been applied.
pub(crate) fn applied<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> Applied {
    match answer {
        Err(StoreError::Unavailable { applied, .. }) => applied,
        other => panic!("expected unavailable: {other:?}"),
    }
}
