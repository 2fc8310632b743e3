//! L4: `renew`, `complete` and `release` act only for the current holder, known by its random id.

use idem_core::{AttemptId, Fence, Lease};

use crate::failure::{Verdict, ensure};
use crate::lab::{Lab, rival};
use crate::subject::lost;

/// A holder that was taken over can write nothing, and the new holder is undisturbed.
// C11, C12, C13
pub(crate) async fn taken_over_holder_can_write_nothing(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let b = rival(&a);
    let (old, new) = store.taken_over(&a, &b).await?;
    store.may_not_write(&old.lease).await?;
    let still = store.acquires(&b).await?;
    ensure!(still.lease == new.lease, "{:?} became {:?}", new.lease, still.lease);
    ensure!(!still.left.is_zero(), "the new holder's lease was ended");
    store.complete(&new.lease, b"new").await?;
    store.replays(&rival(&a), b"new").await
}

/// A late owner cannot replace the answer of the one that took over.
// C12
pub(crate) async fn late_owner_cannot_replace_the_answer(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let (old, new) = store.taken_over(&a, &rival(&a)).await?;
    store.complete(&new.lease, b"new").await?;
    store.may_not_write(&old.lease).await?;
    store.replays(&rival(&a), b"new").await
}

/// The right fence with another id is not the holder: numbers can be issued again, ids cannot.
// C14
pub(crate) async fn fence_alone_does_not_make_a_holder(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let fence = held.lease.fence();
    let forged = Lease::new(a.key().clone(), AttemptId::random(), fence);
    store.may_not_write(&forged).await?;
    store.complete(&held.lease, b"mine").await?;
    store.may_not_write(&forged).await?;
    store.replays(&rival(&a), b"mine").await
}

/// The id alone makes a holder: a store does not check the fence.
pub(crate) async fn id_alone_makes_a_holder(lab: Lab) -> Verdict {
    let store = lab.store();
    for fence in [0, u64::MAX] {
        let a = lab.attempt()?;
        store.acquires(&a).await?;
        let lease = Lease::new(a.key().clone(), a.id(), Fence(fence));
        store.renew(&lease, a.lease_for()).await?;
        store.complete(&lease, b"done").await?;
    }
    Ok(())
}

/// Nobody holds a key that was never reserved, and trying does not make a record.
// C79
pub(crate) async fn nobody_holds_a_free_key(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let lease = Lease::new(a.key().clone(), AttemptId::random(), Fence(1));
    store.may_not_write(&lease).await?;
    let held = store.acquires(&a).await?;
    ensure!(held.attempts == 1, "the first attempt was counted as {}", held.attempts);
    Ok(())
}

/// The lease of one key holds no other.
// C69
pub(crate) async fn lease_holds_its_own_key_only(lab: Lab) -> Verdict {
    let (store, a, b) = (lab.store(), lab.attempt()?, lab.attempt()?);
    let held = store.acquires(&a).await?;
    let other = store.acquires(&b).await?;
    let crossed = Lease::new(b.key().clone(), a.id(), held.lease.fence());
    store.may_not_write(&crossed).await?;
    store.complete(&other.lease, b"b").await?;
    store.complete(&held.lease, b"a").await?;
    store.replays(&rival(&a), b"a").await?;
    store.replays(&rival(&b), b"b").await
}

/// A completed lease can be neither renewed nor released; the answer stays.
pub(crate) async fn completed_lease_is_over(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.completed(&a, b"done").await?;
    lost("renew", store.renew(&held.lease, a.lease_for()).await)?;
    lost("renew to zero", store.renew(&held.lease, std::time::Duration::ZERO).await)?;
    lost("release", store.release(&held.lease).await)?;
    store.replays(&rival(&a), b"done").await
}

/// A released lease can be neither renewed nor completed; the key stays free.
pub(crate) async fn released_lease_is_over(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    store.release(&held.lease).await?;
    lost("renew", store.renew(&held.lease, a.lease_for()).await)?;
    lost("complete", store.complete(&held.lease, b"late").await)?;
    store.acquires(&rival(&a)).await?;
    Ok(())
}
