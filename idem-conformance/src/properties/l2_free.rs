//! L2: only a free key is taken.

use crate::failure::{Verdict, ensure};
use crate::lab::{LONG, Lab, rival, stranger};

/// The first attempt at a key holds it, for the lease it asked for.
pub(crate) async fn first_attempt_acquires(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    ensure!(held.lease.attempt() == a.id(), "the lease is {:?}'s", held.lease.attempt());
    ensure!(held.attempts == 1, "the first attempt was counted as {}", held.attempts);
    ensure!(held.left <= LONG && held.left > LONG / 2, "{:?} of {LONG:?} is left", held.left);
    Ok(())
}

/// A free key needs no right to take over.
pub(crate) async fn free_key_needs_no_right_to_take_over(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.takeover(false));
    let held = store.acquires(&a).await?;
    store.release(&held.lease).await?;
    store.acquires(&rival(&a).takeover(false)).await?;
    Ok(())
}

/// While a lease lives, another attempt at the same request is told that it is in progress, by
/// whom and for how long.
// C1, C7
pub(crate) async fn held_key_is_in_progress(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let left = store.is_in_progress(&rival(&a)).await?;
    ensure!(left <= LONG && left > LONG / 2, "{left:?} of {LONG:?} is left");
    let record = store.reserve(&rival(&a)).await?;
    ensure!(record.holder == a.id(), "held by {:?}, says the record", record.holder);
    ensure!(record.fence == held.lease.fence(), "the fence was changed to {}", record.fence);
    Ok(())
}

/// An attempt that does not get the key leaves no trace: the holder keeps lease, fence and count.
pub(crate) async fn losing_attempt_changes_nothing(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let longer = LONG * 6;
    store.reserve(&rival(&a).lease(longer)).await?;
    store.reserve(&stranger(&a).lease(longer)).await?;
    let left = store.is_in_progress(&rival(&a)).await?;
    ensure!(left <= held.left, "{:?} left became {left:?}", held.left);
    let record = store.reserve(&rival(&a)).await?;
    ensure!(record.fence == held.lease.fence(), "the fence was changed to {}", record.fence);
    ensure!(record.attempts == 1, "counted {} attempts", record.attempts);
    Ok(())
}

/// Another request under a key that is held is a mismatch, whichever is asked first.
// C8, C52
pub(crate) async fn pending_key_mismatches_another_request(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.acquires(&a).await?;
    store.mismatches(&stranger(&a)).await
}

/// Another request under a completed key is a mismatch.
// C55
pub(crate) async fn completed_key_mismatches_another_request(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.completed(&a, b"done").await?;
    store.mismatches(&stranger(&a)).await?;
    store.replays(&rival(&a), b"done").await
}

/// Another request under an abandoned key is a mismatch; it does not take over.
// C52
pub(crate) async fn abandoned_key_mismatches_another_request(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.abandoned(&a).await?;
    store.mismatches(&stranger(&a)).await?;
    store.acquires(&rival(&a)).await?;
    Ok(())
}

/// A reservation whose lease has ended by itself is taken over by the same request.
// C24, C33
pub(crate) async fn ended_lease_is_taken_over(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    store.acquires(&a).await?;
    lab.pass(lab.short()).await?;
    store.acquires(&rival(&a).lease(LONG)).await?;
    store.is_in_progress(&rival(&a)).await?;
    Ok(())
}

/// An abandoned reservation is not taken over by an attempt that may not, which changes nothing.
// C27
pub(crate) async fn abandoned_key_is_left_to_those_who_may_take_over(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.abandoned(&a).await?;
    let may_not = rival(&a).takeover(false);
    for _ in 0..2 {
        let attempts = store.is_abandoned(&may_not).await?;
        ensure!(attempts == 1, "a refused takeover was counted as attempt {attempts}");
    }
    store.acquires(&rival(&a)).await?;
    Ok(())
}

/// Every takeover is counted.
pub(crate) async fn takeovers_are_counted(lab: Lab) -> Verdict {
    let (store, mut a) = (lab.store(), lab.attempt()?);
    for number in 1..=4 {
        let held = store.abandoned(&a).await?;
        ensure!(held.attempts == number, "attempt {number} was counted as {}", held.attempts);
        a = rival(&a);
    }
    Ok(())
}

/// An attempt that was taken over does not get the key back by asking again.
pub(crate) async fn taken_over_attempt_waits_like_anyone(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let b = rival(&a);
    store.taken_over(&a, &b).await?;
    store.is_in_progress(&a).await?;
    store.acquires(&b).await?;
    Ok(())
}

/// A released key is free for any request, and starts over.
pub(crate) async fn released_key_is_free_for_any_request(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let (_, second) = store.taken_over(&a, &rival(&a)).await?;
    store.release(&second.lease).await?;
    let held = store.acquires(&stranger(&a)).await?;
    ensure!(held.attempts == 1, "the key did not start over: attempt {}", held.attempts);
    Ok(())
}

/// A completed key is taken by nobody, ended lease or not.
// C5
pub(crate) async fn completed_key_is_never_taken(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    store.completed(&a, b"done").await?;
    lab.pass(lab.short()).await?;
    store.replays(&rival(&a), b"done").await
}
