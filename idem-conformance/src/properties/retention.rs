//! A record is kept for its retention and no longer.

use std::time::Duration;

use idem_core::limits;

use crate::failure::{Verdict, ensure};
use crate::lab::{KEPT, LONG, Lab, rival, stranger};

const MINUTE: Duration = *limits::RETENTION.start();

/// The retention of a completion is counted from the completion, not from the reservation.
// C106
pub(crate) async fn retention_counts_from_completion(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    lab.pass(MINUTE).await?;
    store.complete_for(&held.lease, b"done", MINUTE).await?;
    lab.pass(MINUTE * 3 / 4).await?;
    store.replays(&rival(&a), b"done").await
}

/// The retention of a late completion is counted from the completion, not from the lease's end.
pub(crate) async fn retention_counts_from_a_late_completion(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short() + MINUTE).await?;
    store.complete_for(&held.lease, b"done", MINUTE).await?;
    lab.pass(MINUTE * 3 / 4).await?;
    store.replays(&rival(&a), b"done").await
}

/// After its retention a completed key is free for any request, and starts over.
pub(crate) async fn completion_is_forgotten_after_its_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let (_, held) = store.taken_over(&a, &rival(&a)).await?;
    store.complete_for(&held.lease, b"done", MINUTE).await?;
    lab.pass(MINUTE).await?;
    let new = store.acquires(&stranger(&a).takeover(false)).await?;
    ensure!(new.attempts == 1, "a forgotten key was counted on: attempt {}", new.attempts);
    Ok(())
}

/// The attempt's own retention does not bound its completion's.
pub(crate) async fn completion_has_its_own_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(MINUTE).retention(MINUTE));
    let held = store.acquires(&a).await?;
    store.complete_for(&held.lease, b"done", MINUTE * 10).await?;
    lab.pass(MINUTE * 9).await?;
    store.replays(&rival(&a), b"done").await
}

/// The longest retention is kept, and ends.
// C108
pub(crate) async fn longest_retention_is_kept(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let most = *limits::RETENTION.end();
    let held = store.acquires(&a).await?;
    store.complete_for(&held.lease, b"done", most).await?;
    lab.pass(most.saturating_sub(MINUTE)).await?;
    store.replays(&rival(&a), b"done").await?;
    lab.pass(MINUTE).await?;
    store.acquires(&stranger(&a)).await?;
    Ok(())
}

/// An abandoned record is recognised for the attempt's retention after its lease has ended, and
/// then it is free for any request, and starts over.
// C25, C27
pub(crate) async fn abandoned_record_is_kept_for_its_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()).retention(MINUTE));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short() + MINUTE * 3 / 4).await?;
    store.mismatches(&stranger(&a)).await?;
    store.is_abandoned(&rival(&a).takeover(false)).await?;
    lab.pass(MINUTE / 4).await?;
    let new = store.acquires(&stranger(&a).takeover(false)).await?;
    ensure!(new.attempts == 1, "a forgotten key was counted on: attempt {}", new.attempts);
    store.may_not_write(&held.lease).await
}

/// A record past its retention is nobody's: its holder has lost the lease.
pub(crate) async fn holder_past_the_retention_has_lost_its_lease(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()).retention(MINUTE));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short() + MINUTE).await?;
    store.may_not_write(&held.lease).await?;
    store.acquires(&rival(&a)).await?;
    Ok(())
}

/// Renewing moves the retention along with the lease.
pub(crate) async fn renewing_moves_the_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()).retention(MINUTE));
    let held = store.acquires(&a).await?;
    let by = lab.short() + MINUTE;
    store.renew(&held.lease, by).await?;
    lab.pass(by + MINUTE * 3 / 4).await?;
    store.is_abandoned(&rival(&a).takeover(false)).await?;
    lab.pass(MINUTE / 4).await?;
    store.acquires(&stranger(&a)).await?;
    Ok(())
}

/// What a holder gave up is kept for the attempt's retention from then, not from the end that
/// its lease would have had.
pub(crate) async fn giving_up_moves_the_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(LONG).retention(MINUTE));
    store.abandoned(&a).await?;
    lab.pass(MINUTE * 3 / 4).await?;
    store.is_abandoned(&rival(&a).takeover(false)).await?;
    lab.pass(MINUTE / 4).await?;
    store.acquires(&stranger(&a)).await?;
    Ok(())
}

/// A takeover is kept for as long as it asked for, not for what the first attempt asked for.
pub(crate) async fn takeover_has_its_own_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()).retention(MINUTE));
    let b = rival(&a).retention(KEPT);
    let (_, taken) = store.taken_over(&a, &b).await?;
    store.abandon(&taken.lease).await?;
    lab.pass(KEPT.saturating_sub(MINUTE)).await?;
    let attempts = store.is_abandoned(&rival(&a).takeover(false)).await?;
    ensure!(attempts == 2, "counted {attempts} attempts");
    Ok(())
}
