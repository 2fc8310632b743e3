//! No sweep, bound or restart takes away what is still needed.

use std::time::Duration;

use idem_core::{Refusal, limits};

use crate::failure::{Failure, Verdict, ensure};
use crate::lab::{KEPT, Lab, attempt_at, rival, stranger};
use crate::subject::{Subject, lost, refused};

const MINUTE: Duration = *limits::RETENTION.start();
/// Room in the bounded store.
const ROOM: usize = 8;

/// A sweep keeps a live reservation.
// C23
pub(crate) async fn purge_keeps_a_live_reservation(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    lab.harness().purge().await?;
    store.is_in_progress(&rival(&a)).await?;
    store.complete(&held.lease, b"done").await?;
    Ok(())
}

/// A sweep keeps an abandoned reservation for its retention: unknown is not "never seen".
// C27
pub(crate) async fn purge_keeps_an_abandoned_reservation(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.abandoned(&a).await?;
    lab.harness().purge().await?;
    store.mismatches(&stranger(&a)).await?;
    store.is_abandoned(&rival(&a).takeover(false)).await?;
    store.complete(&held.lease, b"after all").await?;
    Ok(())
}

/// A sweep keeps a completion for its retention, also beyond the end of its lease.
pub(crate) async fn purge_keeps_a_completion(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    store.completed(&a, b"done").await?;
    lab.pass(lab.short()).await?;
    lab.harness().purge().await?;
    store.replays(&rival(&a), b"done").await
}

/// A sweep keeps who released a key, so that the released attempt does not return.
pub(crate) async fn purge_keeps_who_released(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    store.release(&held.lease).await?;
    lab.harness().purge().await?;
    lost("reserve after release", store.reserve(&a).await)
}

/// A sweep that meets a new reservation of a dead key does not take it away.
// C23, C119
pub(crate) async fn purge_meets_reserve(lab: Lab) -> Verdict {
    let store = lab.store();
    for _ in 0..8 {
        let a = lab.attempt()?.lease(lab.short()).retention(MINUTE);
        store.abandoned(&a).await?;
        lab.pass(MINUTE).await?;
        let b = stranger(&a).retention(KEPT);
        let (reserving, swept) = (lab.fork_or_store().await?, lab.clone());
        let sweep = tokio::spawn(async move { swept.harness().purge().await });
        tokio::task::yield_now().await;
        let held = reserving.acquires(&b).await?;
        sweep.await??;
        store.complete(&held.lease, b"done").await?;
        store.replays(&rival(&b), b"done").await?;
    }
    Ok(())
}

/// Reserves fresh keys until the store says that it is full.
async fn fill(store: &Subject, lab: &Lab) -> Verdict<usize> {
    for taken in 0..ROOM * 4 {
        match store.reserve(&lab.attempt()?).await {
            Ok(_) => {}
            Err(error) if error.refusal() == Some(Refusal::Full) => return Ok(taken),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::violated(format!("a store with room for {ROOM} took {}", ROOM * 4)))
}

async fn bounded(lab: &Lab) -> Verdict<Subject> {
    Ok(Subject::new(lab.harness().bounded(ROOM).await?))
}

/// A full store refuses a new key, and what it refused it has not written.
// C135
pub(crate) async fn full_store_refuses(lab: Lab) -> Verdict {
    let store = bounded(&lab).await?;
    let a = lab.attempt()?;
    let held = store.acquires(&a).await?;
    fill(&store, &lab).await?;
    let refused_one = lab.attempt()?;
    refused(Refusal::Full, "reserve", store.reserve(&refused_one).await)?;
    let lease =
        idem_core::Lease::new(refused_one.key().clone(), refused_one.id(), held.lease.fence());
    lost("complete what was refused", store.complete(&lease, b"").await)
}

/// A full store never gives up a live reservation, nor an abandoned one, to make room.
// C104
pub(crate) async fn full_store_keeps_reservations(lab: Lab) -> Verdict {
    let store = bounded(&lab).await?;
    let (live, abandoned) = (lab.attempt()?, lab.attempt()?);
    store.acquires(&live).await?;
    store.abandoned(&abandoned).await?;
    fill(&store, &lab).await?;
    store.is_in_progress(&rival(&live)).await?;
    store.is_abandoned(&rival(&abandoned).takeover(false)).await?;
    Ok(())
}

/// A full store never gives up a completion within its retention to make room.
pub(crate) async fn full_store_keeps_completions(lab: Lab) -> Verdict {
    let store = bounded(&lab).await?;
    let a = lab.attempt()?;
    store.completed(&a, b"done").await?;
    fill(&store, &lab).await?;
    store.replays(&rival(&a), b"done").await
}

/// A full store still serves the keys it has: repeat, renew, takeover, complete, release.
pub(crate) async fn full_store_serves_the_keys_it_has(lab: Lab) -> Verdict {
    let store = bounded(&lab).await?;
    let (a, b, c) = (lab.attempt()?, lab.attempt()?, lab.attempt()?);
    let (held, freed) = (store.acquires(&a).await?, store.acquires(&b).await?);
    store.abandoned(&c).await?;
    fill(&store, &lab).await?;
    store.acquires(&a).await?;
    store.renew(&held.lease, a.lease_for()).await?;
    store.complete(&held.lease, b"done").await?;
    store.release(&freed.lease).await?;
    store.acquires(&rival(&c)).await?;
    store.acquires(&stranger(&b)).await?;
    Ok(())
}

/// A full store has room again once a retention has passed.
pub(crate) async fn full_store_has_room_after_a_retention(lab: Lab) -> Verdict {
    let store = bounded(&lab).await?;
    let a = lab.attempt()?;
    let held = store.acquires(&a).await?;
    store.complete_for(&held.lease, b"done", MINUTE).await?;
    fill(&store, &lab).await?;
    lab.pass(MINUTE).await?;
    store.acquires(&lab.attempt()?).await?;
    Ok(())
}

/// What was acknowledged survives a restart: who holds a key, and what it was completed with.
// C14
pub(crate) async fn restart_keeps_what_was_acknowledged(lab: Lab) -> Verdict {
    let (store, a, b) = (lab.store(), lab.attempt()?, lab.attempt()?);
    let held = store.acquires(&a).await?;
    store.completed(&b, b"done").await?;
    lab.harness().restart().await?;
    let store = lab.store();
    store.is_in_progress(&rival(&a)).await?;
    store.mismatches(&stranger(&a)).await?;
    store.replays(&rival(&b), b"done").await?;
    let again = store.acquires(&a).await?;
    ensure!(again.lease == held.lease, "{:?} became {:?}", held.lease, again.lease);
    store.complete(&held.lease, b"done").await?;
    Ok(())
}

/// What one handle writes, another reads, at once.
// C10, C131
pub(crate) async fn handles_see_one_truth(lab: Lab) -> Verdict {
    let (one, two) = (lab.store(), Subject::new(lab.harness().fork().await?));
    let a = lab.attempt()?;
    let b = attempt_at(a.key().clone());
    let held = one.acquires(&a).await?;
    two.is_in_progress(&b).await?;
    two.renew(&held.lease, Duration::ZERO).await?;
    let taken = one.acquires(&b).await?;
    lost("complete", two.complete(&held.lease, b"a").await)?;
    two.complete(&taken.lease, b"b").await?;
    one.replays(&a, b"b").await
}
