//! L9: an error is never a grant, and says whether it was certainly not applied, or may have been.

use idem_core::{Applied, StoreError};

use crate::failure::{Failure, Verdict, ensure};
use crate::harness::Fault;
use crate::lab::{LONG, Lab, rival, stranger};

/// The call was said to have failed, or to have succeeded in spite of the fault.
fn failed<T>(verb: &str, answer: Result<T, StoreError>) -> Verdict<bool> {
    match answer {
        Ok(_) => Ok(false),
        Err(StoreError::Unavailable { .. }) => Ok(true),
        Err(other) => Err(Failure::violated(format!("{verb}: expected unavailable: {other:?}"))),
    }
}

/// A `reserve` that did not arrive grants nothing, and the key is as free as it was.
// C111
pub(crate) async fn failed_reserve_is_no_grant(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    lab.harness().fail_next(Fault::Before).await?;
    if failed("reserve", store.reserve(&a).await)? {
        store.acquires(&stranger(&a)).await?;
    } else {
        store.is_in_progress(&rival(&a)).await?;
    }
    Ok(())
}

/// A `complete` that did not arrive is not `Ok`, and the holder may repeat it.
// C134
pub(crate) async fn failed_complete_is_said(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    lab.harness().fail_next(Fault::Before).await?;
    if failed("complete", store.complete(&held.lease, b"done").await)? {
        store.is_in_progress(&rival(&a)).await?;
        store.complete(&held.lease, b"done").await?;
    }
    store.replays(&rival(&a), b"done").await
}

/// A `renew` that did not arrive is not `Ok`, and the holder may repeat it.
// C18
pub(crate) async fn failed_renew_is_said(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.abandoned(&a).await?;
    lab.harness().fail_next(Fault::Before).await?;
    if failed("renew", store.renew(&held.lease, LONG).await)? {
        store.is_abandoned(&rival(&a).takeover(false)).await?;
        store.renew(&held.lease, LONG).await?;
    }
    store.is_in_progress(&rival(&a)).await?;
    Ok(())
}

/// A `release` that did not arrive is not `Ok`, and the holder may repeat it.
pub(crate) async fn failed_release_is_said(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    lab.harness().fail_next(Fault::Before).await?;
    if failed("release", store.release(&held.lease).await)? {
        store.is_in_progress(&rival(&a)).await?;
        store.release(&held.lease).await?;
    }
    store.acquires(&stranger(&a)).await?;
    Ok(())
}

/// A call that took effect, and whose reply was lost, is never said to be certainly not applied.
pub(crate) async fn applied_is_never_said_to_be_not_applied(lab: Lab) -> Verdict {
    let store = lab.store();
    let honest = |verb: &str, error: Option<StoreError>| {
        let denied = matches!(error, Some(StoreError::Unavailable { applied: Applied::No, .. }));
        ensure!(!denied, "{verb} was applied, and said that it was not");
        Ok(())
    };
    let a = lab.attempt()?;
    lab.harness().fail_next(Fault::After).await?;
    honest("reserve", store.reserve(&a).await.err())?;
    let held = store.acquires(&a).await?;
    lab.harness().fail_next(Fault::After).await?;
    honest("renew", store.renew(&held.lease, LONG).await.err())?;
    lab.harness().fail_next(Fault::After).await?;
    honest("complete", store.complete(&held.lease, b"done").await.err())?;
    let freed = store.acquires(&lab.attempt()?).await?;
    lab.harness().fail_next(Fault::After).await?;
    honest("release", store.release(&freed.lease).await.err())
}

/// After a fault the store serves again.
pub(crate) async fn fault_passes(lab: Lab) -> Verdict {
    let store = lab.store();
    for fault in [Fault::Before, Fault::After] {
        lab.harness().fail_next(fault).await?;
        let _ = store.reserve(&lab.attempt()?).await;
        let held = store.acquires(&lab.attempt()?).await?;
        store.complete(&held.lease, b"done").await?;
    }
    Ok(())
}
