//! What a jump of the server's clock does: leases end early or late, and nothing worse.

use std::time::Duration;

use idem_conformance::servers::{self, WallClock};
use idem_core::{Store, Verdict};
use idem_redis::RedisStore;

use crate::support::{attempt, fresh_key};

// L3, L4
#[tokio::test]
async fn ahead_by_a_minute_a_lease_ends_early_and_its_holder_is_fenced() {
    let clock = WallClock::new().unwrap();
    let server = servers::redis().clock(&clock).await.unwrap();
    let store = RedisStore::builder().connect(server.url()).await.unwrap();
    let key = fresh_key();
    let first = attempt(&key, 1);
    let verdict = store.reserve(&first).await.unwrap().verdict(&first).unwrap();
    let Verdict::Acquired { lease: early, .. } = verdict else { panic!("{verdict:?}") };

    clock.jump(60).unwrap();

    let second = attempt(&key, 1);
    let verdict = store.reserve(&second).await.unwrap().verdict(&second).unwrap();
    let Verdict::Acquired { lease, attempts: 2, .. } = verdict else { panic!("{verdict:?}") };
    assert!(lease.fence() > early.fence());
    let lost = store.complete(&early, &"late".into(), first.retention_for()).await;
    assert!(lost.unwrap_err().is_lease_lost());
    store.complete(&lease, &"done".into(), second.retention_for()).await.unwrap();
}

// L3, L6
#[tokio::test]
async fn back_by_an_hour_a_lease_ends_late_and_a_fence_still_grows() {
    let clock = WallClock::new().unwrap();
    let server = servers::redis().clock(&clock).await.unwrap();
    let store = RedisStore::builder().connect(server.url()).await.unwrap();
    let key = fresh_key();
    let first = attempt(&key, 1);
    let verdict = store.reserve(&first).await.unwrap().verdict(&first).unwrap();
    let Verdict::Acquired { lease: early, .. } = verdict else { panic!("{verdict:?}") };

    clock.jump(-3_600).unwrap();

    let second = attempt(&key, 1);
    let verdict = store.reserve(&second).await.unwrap().verdict(&second).unwrap();
    let Verdict::InProgress { left } = verdict else { panic!("{verdict:?}") };
    assert!(left > Duration::from_mins(59) && left < Duration::from_mins(61), "{left:?}");
    // The holder is not disturbed.
    store.release(&early).await.unwrap();
    let verdict = store.reserve(&second).await.unwrap().verdict(&second).unwrap();
    let Verdict::Acquired { lease, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(lease.fence().0, early.fence().0 + 1);
    store.complete(&lease, &"done".into(), second.retention_for()).await.unwrap();
    let third = attempt(&key, 1);
    let verdict = store.reserve(&third).await.unwrap().verdict(&third).unwrap();
    assert_eq!(verdict, Verdict::Replay("done".into()));
}
