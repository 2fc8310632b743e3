//! L3: each lease of a key has a larger fence than the one before, also across a release.

use idem_core::Lease;

use crate::failure::{Verdict, ensure};
use crate::lab::{Lab, rival, stranger};

fn grew(old: &Lease, new: &Lease) -> Verdict {
    ensure!(new.fence() > old.fence(), "fence {} came after {}", new.fence(), old.fence());
    Ok(())
}

/// A takeover has a larger fence.
pub(crate) async fn fence_grows_by_takeover(lab: Lab) -> Verdict {
    let (store, mut a) = (lab.store(), lab.attempt()?);
    let mut last = store.abandoned(&a).await?;
    for _ in 0..3 {
        a = rival(&a);
        let next = store.abandoned(&a).await?;
        grew(&last.lease, &next.lease)?;
        last = next;
    }
    Ok(())
}

/// The next holder after a release has a larger fence.
pub(crate) async fn fence_grows_across_a_release(lab: Lab) -> Verdict {
    let (store, mut a) = (lab.store(), lab.attempt()?);
    let mut last = store.acquires(&a).await?;
    for _ in 0..3 {
        store.release(&last.lease).await?;
        a = stranger(&a);
        let next = store.acquires(&a).await?;
        grew(&last.lease, &next.lease)?;
        last = next;
    }
    Ok(())
}

/// A key used again after its retention has a larger fence.
pub(crate) async fn fence_grows_past_the_retention(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let (_, old) = store.taken_over(&a, &rival(&a)).await?;
    let minute = *idem_core::limits::RETENTION.start();
    store.complete_for(&old.lease, b"done", minute).await?;
    lab.pass(minute).await?;
    let new = store.acquires(&stranger(&a)).await?;
    grew(&old.lease, &new.lease)
}

/// A sweep does not make a released key forget its fence.
pub(crate) async fn fence_grows_across_a_purge(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let (_, old) = store.taken_over(&a, &rival(&a)).await?;
    store.release(&old.lease).await?;
    lab.harness().purge().await?;
    let new = store.acquires(&stranger(&a)).await?;
    grew(&old.lease, &new.lease)
}

/// A restart of the backend does not turn fences back.
// C14
pub(crate) async fn fence_grows_across_a_restart(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let old = store.abandoned(&a).await?;
    lab.harness().restart().await?;
    let new = lab.store().acquires(&rival(&a)).await?;
    grew(&old.lease, &new.lease)
}
