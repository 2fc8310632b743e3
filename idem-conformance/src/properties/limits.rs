//! A duration outside its range is refused before any work: none wraps, rounds to nothing, or
//! becomes "for ever".

use std::time::Duration;

use idem_core::{AttemptId, Fence, Lease, Refusal, limits};

use crate::failure::{Verdict, ensure};
use crate::lab::{LONG, Lab, rival, stranger};
use crate::subject::refused;

const NANOSECOND: Duration = Duration::from_nanos(1);

/// Durations that overflow something: milliseconds or microseconds in an integer of some size.
const HUGE: [Duration; 4] = [
    Duration::MAX,
    Duration::from_secs(u64::MAX / 1_000_000),
    Duration::from_millis(i64::MAX as u64),
    Duration::from_millis(1 << 32),
];

fn wrong_leases() -> impl Iterator<Item = Duration> {
    let (least, most) = (*limits::LEASE.start(), *limits::LEASE.end());
    [NANOSECOND, least.saturating_sub(NANOSECOND), most + NANOSECOND].into_iter().chain(HUGE)
}

fn wrong_retentions() -> impl Iterator<Item = Duration> {
    let (least, most) = (*limits::RETENTION.start(), *limits::RETENTION.end());
    let huge = HUGE.into_iter().filter(move |huge| *huge > most);
    [Duration::ZERO, NANOSECOND, least.saturating_sub(NANOSECOND), most + NANOSECOND]
        .into_iter()
        .chain(huge)
}

/// The shortest and the longest lease and retention are taken.
pub(crate) async fn limits_themselves_are_taken(lab: Lab) -> Verdict {
    let store = lab.store();
    for lease in [*limits::LEASE.start(), *limits::LEASE.end()] {
        for retention in [*limits::RETENTION.start(), *limits::RETENTION.end()] {
            let held = store.acquires(&lab.attempt()?.lease(lease).retention(retention)).await?;
            let left = store.renew(&held.lease, lease).await?;
            ensure!(left <= lease, "a lease of {lease:?} has {left:?} left");
            store.complete_for(&held.lease, b"done", retention).await?;
        }
    }
    Ok(())
}

/// A lease of nothing is refused.
pub(crate) async fn zero_lease_is_refused(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(Duration::ZERO));
    refused(Refusal::Invalid, "reserve", store.reserve(&a).await)?;
    store.acquires(&stranger(&a).lease(LONG)).await?;
    Ok(())
}

/// A lease too short or too long is refused, and the key stays free.
pub(crate) async fn wrong_lease_is_refused(lab: Lab) -> Verdict {
    let store = lab.store();
    for lease in wrong_leases() {
        let a = lab.attempt()?.lease(lease);
        refused(Refusal::Invalid, &format!("a lease of {lease:?}"), store.reserve(&a).await)?;
        store.acquires(&stranger(&a).lease(LONG)).await?;
    }
    Ok(())
}

/// A retention too short or too long is refused by `reserve`, and the key stays free.
pub(crate) async fn wrong_retention_of_an_attempt_is_refused(lab: Lab) -> Verdict {
    let store = lab.store();
    for retention in wrong_retentions() {
        let a = lab.attempt()?.retention(retention);
        refused(Refusal::Invalid, &format!("keeping {retention:?}"), store.reserve(&a).await)?;
        store.acquires(&stranger(&a).retention(Duration::from_hours(1))).await?;
    }
    Ok(())
}

/// A renewal too short or too long is refused, and the lease is as it was.
pub(crate) async fn wrong_renewal_is_refused(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    for by in wrong_leases() {
        let answer = store.renew(&held.lease, by).await;
        refused(Refusal::Invalid, &format!("renewing by {by:?}"), answer)?;
        let left = store.is_in_progress(&rival(&a)).await?;
        ensure!(left <= held.left, "a refused renewal by {by:?} left {left:?}");
    }
    Ok(())
}

/// A retention too short or too long is refused by `complete`, and the record stays pending.
pub(crate) async fn wrong_retention_of_a_completion_is_refused(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    for retention in wrong_retentions() {
        let answer = store.complete_for(&held.lease, b"done", retention).await;
        refused(Refusal::Invalid, &format!("keeping {retention:?}"), answer)?;
        store.is_in_progress(&rival(&a)).await?;
    }
    store.complete(&held.lease, b"done").await?;
    Ok(())
}

/// A wrong duration is refused before the store looks who holds the key, or whether it is free.
pub(crate) async fn wrong_durations_are_refused_first(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.completed(&a, b"done").await?;
    refused(Refusal::Invalid, "reserve", store.reserve(&rival(&a).lease(Duration::MAX)).await)?;
    let nobody = Lease::new(a.key().clone(), AttemptId::random(), Fence(1));
    refused(Refusal::Invalid, "renew", store.renew(&nobody, Duration::MAX).await)?;
    let answer = store.complete_for(&nobody, b"", Duration::MAX).await;
    refused(Refusal::Invalid, "complete", answer)
}
