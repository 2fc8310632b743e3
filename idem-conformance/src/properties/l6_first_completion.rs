//! L6: the first completion stands, byte for byte, until its retention has passed.

use std::time::Duration;

use crate::failure::{Verdict, ensure};
use crate::lab::{Lab, rival, stranger};

/// A second completion by the same holder is `Ok` and does not change the payload.
pub(crate) async fn second_completion_changes_nothing(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.completed(&a, b"first").await?;
    store.complete(&held.lease, b"second").await?;
    store.complete(&held.lease, b"").await?;
    store.replays(&rival(&a), b"first").await
}

/// A second completion does not lengthen the retention.
pub(crate) async fn second_completion_does_not_lengthen_the_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let minute = Duration::from_mins(1);
    let held = store.acquires(&a).await?;
    store.complete_for(&held.lease, b"first", minute).await?;
    store.complete_for(&held.lease, b"first", minute * 60).await?;
    lab.pass(minute).await?;
    store.acquires(&stranger(&a)).await?;
    Ok(())
}

/// A second completion does not shorten the retention.
pub(crate) async fn second_completion_does_not_shorten_the_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let minute = Duration::from_mins(1);
    let held = store.acquires(&a).await?;
    store.complete_for(&held.lease, b"first", minute * 60).await?;
    store.complete_for(&held.lease, b"first", minute).await?;
    lab.pass(minute).await?;
    store.replays(&rival(&a), b"first").await
}

/// Every later attempt is answered with the same bytes.
pub(crate) async fn every_later_attempt_replays(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.completed(&a, b"done").await?;
    for _ in 0..4 {
        store.replays(&rival(&a), b"done").await?;
        store.replays(&rival(&a).takeover(false), b"done").await?;
    }
    Ok(())
}

/// The record of a completion says who completed it, under which fence, at which attempt.
pub(crate) async fn completion_keeps_who_completed(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let b = rival(&a);
    let (_, held) = store.taken_over(&a, &b).await?;
    store.complete(&held.lease, b"done").await?;
    let record = store.reserve(&rival(&a)).await?;
    ensure!(record.holder == b.id(), "completed by {:?}, says the record", record.holder);
    ensure!(record.fence == held.lease.fence(), "the fence was changed to {}", record.fence);
    ensure!(record.attempts == 2, "completed at attempt {}, says the record", record.attempts);
    ensure!(record.fingerprint == a.fingerprint(), "the fingerprint was changed");
    Ok(())
}
