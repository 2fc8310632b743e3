//! L1: every verb may be repeated verbatim after a lost answer, with the effect of once.

use std::time::Duration;

use crate::failure::{Verdict, ensure};
use crate::lab::{Lab, rival, stranger};
use crate::subject::lost;

/// A `reserve` repeated by the same attempt is answered with its own reservation: the same
/// fence, not counted again.
// C103
pub(crate) async fn repeated_reserve_answers_with_the_same_lease(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let first = store.acquires(&a).await?;
    let again = store.acquires(&a).await?;
    ensure!(again.lease == first.lease, "granted {:?}, then {:?}", first.lease, again.lease);
    ensure!(again.attempts == 1, "the repeat was counted as attempt {}", again.attempts);
    store.complete(&first.lease, b"done").await?;
    Ok(())
}

/// A repeated `reserve` does not extend the lease.
pub(crate) async fn repeated_reserve_does_not_extend_the_lease(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short() / 2).await?;
    let again = store.acquires(&a).await?;
    ensure!(again.left < held.left, "{:?} left at first, {:?} later", held.left, again.left);
    lab.pass(lab.short() / 2).await?;
    store.acquires(&rival(&a)).await?;
    Ok(())
}

/// A `reserve` repeated after its lease has ended is still answered with its own reservation,
/// which has nothing left.
pub(crate) async fn repeated_reserve_shows_its_own_ended_lease(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short()).await?;
    let again = store.acquires(&a).await?;
    ensure!(again.lease == held.lease, "granted {:?}, then {:?}", held.lease, again.lease);
    ensure!(again.left.is_zero(), "an ended lease has {:?} left", again.left);
    Ok(())
}

/// A repeated takeover is counted once.
pub(crate) async fn repeated_takeover_counts_once(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let b = rival(&a);
    let (_, taken) = store.taken_over(&a, &b).await?;
    let again = store.acquires(&b).await?;
    ensure!(again.lease == taken.lease, "granted {:?}, then {:?}", taken.lease, again.lease);
    ensure!(
        again.attempts == taken.attempts,
        "attempt {} was counted as {} when repeated",
        taken.attempts,
        again.attempts
    );
    Ok(())
}

/// A `reserve` repeated after the completion is answered with the completion.
pub(crate) async fn reserve_repeated_after_completion_replays(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.completed(&a, b"done").await?;
    store.replays(&a, b"done").await
}

/// A repeated `complete` is `Ok`.
// C103
pub(crate) async fn repeated_complete_is_ok(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.completed(&a, b"done").await?;
    store.complete(&held.lease, b"done").await?;
    store.replays(&rival(&a), b"done").await
}

/// A repeated `release` is `Ok`.
pub(crate) async fn repeated_release_is_ok(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    store.release(&held.lease).await?;
    store.release(&held.lease).await?;
    Ok(())
}

/// A repeated `renew` is `Ok` and the lease ends no later than once.
pub(crate) async fn repeated_renew_is_ok(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    let by = Duration::from_mins(20);
    store.renew(&held.lease, by).await?;
    let left = store.renew(&held.lease, by).await?;
    ensure!(left <= by, "renewed by {by:?} twice, and {left:?} is left");
    Ok(())
}

/// Giving up may be repeated, and leaves the record abandoned.
pub(crate) async fn repeated_abandoning_is_ok(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.abandoned(&a).await?;
    store.abandon(&held.lease).await?;
    store.is_abandoned(&rival(&a).takeover(false)).await?;
    Ok(())
}

/// An attempt that has released its key does not take it again: a `reserve` that arrives late
/// cannot hold the key for nobody.
pub(crate) async fn released_attempt_does_not_return(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    store.release(&held.lease).await?;
    lost("reserve after release", store.reserve(&a).await)?;
    store.acquires(&rival(&a)).await?;
    Ok(())
}

/// A `release` repeated after another attempt took the key is lost and leaves the other alone.
// C11
pub(crate) async fn late_release_leaves_the_next_holder_alone(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let b = stranger(&a);
    let old = store.acquires(&a).await?;
    store.release(&old.lease).await?;
    let new = store.acquires(&b).await?;
    lost("late release", store.release(&old.lease).await)?;
    store.is_in_progress(&rival(&b)).await?;
    store.complete(&new.lease, b"done").await?;
    Ok(())
}

/// A `reserve` whose reply was lost is repeated, and finds that it holds the key.
// C103
pub(crate) async fn lost_reply_to_reserve_is_recovered(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let _ = lab.store_about_to_lose_a_reply().await?.reserve(&a).await;
    let held = store.acquires(&a).await?;
    ensure!(held.attempts == 1, "the repeat was counted as attempt {}", held.attempts);
    store.is_in_progress(&rival(&a)).await?;
    store.complete(&held.lease, b"done").await?;
    Ok(())
}

/// A `renew` whose reply was lost is repeated, and the lease is as long as asked.
pub(crate) async fn lost_reply_to_renew_is_recovered(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    let by = Duration::from_mins(20);
    let _ = lab.store_about_to_lose_a_reply().await?.renew(&held.lease, by).await;
    let left = store.renew(&held.lease, by).await?;
    ensure!(left <= by && left > by / 2, "renewed by {by:?}, and {left:?} is left");
    Ok(())
}

/// A `complete` whose reply was lost is repeated, and the payload is there once.
pub(crate) async fn lost_reply_to_complete_is_recovered(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let _ = lab.store_about_to_lose_a_reply().await?.complete(&held.lease, b"done").await;
    store.complete(&held.lease, b"done").await?;
    store.replays(&rival(&a), b"done").await
}

/// A `release` whose reply was lost is repeated, and the key is free.
pub(crate) async fn lost_reply_to_release_is_recovered(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let _ = lab.store_about_to_lose_a_reply().await?.release(&held.lease).await;
    store.release(&held.lease).await?;
    store.acquires(&stranger(&a)).await?;
    Ok(())
}
