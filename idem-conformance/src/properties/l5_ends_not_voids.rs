//! L5: until an ended lease is taken over, its holder may still renew, complete or release.

use crate::failure::{Verdict, ensure};
use crate::lab::{LONG, Lab, rival, stranger};

/// A lease that has ended still completes.
pub(crate) async fn ended_lease_completes(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short()).await?;
    store.complete(&held.lease, b"late").await?;
    store.replays(&rival(&a), b"late").await
}

/// A lease that has ended is still renewed, and holds the key again.
pub(crate) async fn ended_lease_renews(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short() * 2).await?;
    let left = store.renew(&held.lease, LONG).await?;
    ensure!(left <= LONG && left > LONG / 2, "renewed by {LONG:?}, and {left:?} is left");
    store.is_in_progress(&rival(&a)).await?;
    Ok(())
}

/// A lease that has ended still frees its key.
pub(crate) async fn ended_lease_releases(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let held = store.acquires(&a).await?;
    lab.pass(lab.short()).await?;
    store.release(&held.lease).await?;
    store.acquires(&stranger(&a)).await?;
    Ok(())
}

/// A holder that gave up may still complete, until it is taken over.
pub(crate) async fn abandoned_lease_completes(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.abandoned(&a).await?;
    store.complete(&held.lease, b"after all").await?;
    store.replays(&rival(&a), b"after all").await
}

/// A holder that gave up may still renew, until it is taken over.
pub(crate) async fn abandoned_lease_renews(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.abandoned(&a).await?;
    store.renew(&held.lease, LONG).await?;
    store.is_in_progress(&rival(&a)).await?;
    Ok(())
}

/// An attempt that was not allowed to take over, and one with another request, take nothing
/// from the holder of an ended lease.
pub(crate) async fn refused_takeover_leaves_the_holder(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.abandoned(&a).await?;
    store.is_abandoned(&rival(&a).takeover(false)).await?;
    store.mismatches(&stranger(&a)).await?;
    store.complete(&held.lease, b"after all").await?;
    store.replays(&rival(&a), b"after all").await
}
