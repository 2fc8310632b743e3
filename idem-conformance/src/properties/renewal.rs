//! Renewing moves the end of a lease, never to an earlier moment, except to now.

use std::time::Duration;

use crate::failure::{Verdict, ensure};
use crate::lab::{LONG, Lab, rival, stranger};

/// A renewed lease holds the key beyond its first end.
// C17, C18
pub(crate) async fn renewed_lease_holds_on(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    store.renew(&held.lease, LONG).await?;
    lab.pass(lab.short()).await?;
    store.is_in_progress(&rival(&a)).await?;
    store.complete(&held.lease, b"done").await?;
    Ok(())
}

/// A renewed lease ends as any other.
pub(crate) async fn renewed_lease_ends(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    store.renew(&held.lease, lab.short()).await?;
    lab.pass(lab.short()).await?;
    store.acquires(&rival(&a)).await?;
    Ok(())
}

/// Renewing answers with what is then left of the lease, as others see it.
// C18
pub(crate) async fn renewing_answers_with_what_is_left(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let by = LONG * 2;
    let (before, left) = (lab.now(), store.renew(&held.lease, by).await?);
    ensure!(left <= by && left > LONG, "renewed by {by:?}, and {left:?} is left");
    let seen = store.is_in_progress(&rival(&a)).await?;
    let gone = lab.now().latest.saturating_sub(before.earliest);
    ensure!(seen <= left && seen + gone >= left, "{left:?} left, and a rival saw {seen:?}");
    Ok(())
}

/// Renewing by less than is left does not shorten a lease.
pub(crate) async fn renewing_never_shortens(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let left = store.renew(&held.lease, lab.short()).await?;
    ensure!(left > LONG / 2, "renewed to {left:?} from {:?}", held.left);
    lab.pass(lab.short()).await?;
    store.is_in_progress(&rival(&a)).await?;
    Ok(())
}

/// Renewing changes neither the fence nor the count, and grants nothing new.
pub(crate) async fn renewing_changes_nothing_else(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    store.renew(&held.lease, LONG).await?;
    let record = store.reserve(&rival(&a)).await?;
    ensure!(record.holder == a.id(), "held by {:?}, says the record", record.holder);
    ensure!(record.fence == held.lease.fence(), "the fence was changed to {}", record.fence);
    ensure!(record.attempts == 1, "the renewal was counted as attempt {}", record.attempts);
    ensure!(record.fingerprint == a.fingerprint(), "the fingerprint was changed");
    Ok(())
}

/// Renewing to zero ends the lease now and leaves the record abandoned: known, and not free.
pub(crate) async fn zero_ends_the_lease_now(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.abandoned(&a).await?;
    store.is_abandoned(&rival(&a).takeover(false)).await?;
    store.acquires(&rival(&a)).await?;
    Ok(())
}

/// Renewing an ended lease to zero does not move its end, nor its retention, to a later moment.
pub(crate) async fn zero_does_not_revive_an_ended_lease(lab: Lab) -> Verdict {
    let minute = Duration::from_mins(1);
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()).retention(minute));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short() + minute / 2).await?;
    store.abandon(&held.lease).await?;
    lab.pass(minute / 2).await?;
    store.acquires(&stranger(&a)).await?;
    Ok(())
}
