//! Those who wait are woken.

use std::time::Duration;

use bytes::Bytes;
use idem_core::{Attempt, Fingerprint, Key, Scope, Store, Verdict};
use idem_memory::MemoryStore;

fn attempt() -> Attempt {
    let key = Key::new(Scope::new("op").unwrap(), "k").unwrap();
    Attempt::new(key, Fingerprint::from_bytes([1; 32]))
}

#[tokio::test]
async fn every_end_of_a_reservation_is_hinted_at() {
    for end in ["complete", "release", "give up"] {
        let (store, a) = (MemoryStore::new(), attempt());
        let Verdict::Acquired { lease, .. } = store.reserve(&a).await.unwrap().verdict(&a).unwrap()
        else {
            panic!("the key is free");
        };
        let mut watch = store.watch(a.key()).await.unwrap();
        match end {
            "complete" => {
                store.complete(&lease, &Bytes::new(), a.retention_for()).await.unwrap();
            }
            "release" => store.release(&lease).await.unwrap(),
            _ => {
                store.renew(&lease, Duration::ZERO).await.unwrap();
            }
        }
        // Hinted before anybody polls: the hint waits for the watcher.
        watch.changed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_disturbs_nobody() {
    let (store, a) = (MemoryStore::new(), attempt());
    let Verdict::Acquired { lease, .. } = store.reserve(&a).await.unwrap().verdict(&a).unwrap()
    else {
        panic!("the key is free");
    };
    let mut watch = store.watch(a.key()).await.unwrap();
    store.renew(&lease, a.lease_for()).await.unwrap();
    let hinted = tokio::time::timeout(Duration::from_secs(1), watch.changed()).await;
    assert!(hinted.is_err(), "a waiter was woken for nothing");
}
