//! A change made after `watch` has returned is hinted at, if the store gives hints at all.

use std::time::Duration;

use idem_core::{Attempt, Key, Lease, Watch};
use tokio::time::timeout;

use crate::failure::{Failure, Skip, Verdict};
use crate::harness::Hook;
use crate::lab::{LONG, Lab, rival};
use crate::subject::Subject;

/// Watches the key; skips the property if the store gives no hints.
async fn watch(lab: &Lab, store: &Subject, key: &Key) -> Verdict<Watch> {
    let watch = timeout(lab.hint_within(), store.raw().watch(key)).await;
    let watch = watch.map_err(|_| Failure::violated("`watch` did not return"))??;
    if watch.is_never() {
        return Err(Failure::Skipped(Skip::Missing(Hook::Watch)));
    }
    Ok(watch)
}

async fn is_hinted(lab: &Lab, watch: &mut Watch) -> Verdict {
    timeout(lab.hint_within(), watch.changed())
        .await
        .map_err(|_| Failure::violated(format!("no hint came within {:?}", lab.hint_within())))
}

/// Watches a held key from another handle, changes it, and expects a hint.
async fn hints_after<F>(lab: &Lab, change: impl FnOnce(Subject, Lease) -> F) -> Verdict
where
    F: Future<Output = Verdict>,
{
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let mut hints = watch(lab, &lab.fork_or_store().await?, a.key()).await?;
    change(store, held.lease).await?;
    is_hinted(lab, &mut hints).await
}

/// A completion is hinted at.
pub(crate) async fn completion_is_hinted_at(lab: Lab) -> Verdict {
    hints_after(&lab, |store, lease| async move { Ok(store.complete(&lease, b"done").await?) })
        .await
}

/// A release is hinted at.
pub(crate) async fn release_is_hinted_at(lab: Lab) -> Verdict {
    hints_after(&lab, |store, lease| async move { Ok(store.release(&lease).await?) }).await
}

/// Giving up is hinted at.
pub(crate) async fn giving_up_is_hinted_at(lab: Lab) -> Verdict {
    hints_after(&lab, |store, lease| async move { store.abandon(&lease).await }).await
}

/// A change between the return of `watch` and the first look at it is not missed.
pub(crate) async fn watch_is_subscribed_when_it_returns(lab: Lab) -> Verdict {
    for _ in 0..8 {
        let (store, a) = (lab.store(), lab.attempt()?);
        let held = store.acquires(&a).await?;
        let mut hints = watch(&lab, &store, a.key()).await?;
        store.complete(&held.lease, b"done").await?;
        tokio::task::yield_now().await;
        is_hinted(&lab, &mut hints).await?;
    }
    Ok(())
}

/// Every watcher of a key is woken.
pub(crate) async fn every_watcher_is_woken(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let mut watches = Vec::new();
    for _ in 0..8 {
        watches.push(watch(&lab, &store, a.key()).await?);
    }
    let waiting = watches.into_iter().map(|mut hints| {
        let lab = lab.clone();
        tokio::spawn(async move { is_hinted(&lab, &mut hints).await })
    });
    let waiting: Vec<_> = waiting.collect();
    store.complete(&held.lease, b"done").await?;
    for woken in waiting {
        woken.await??;
    }
    Ok(())
}

/// A watch goes on: the second change is hinted at as well as the first.
pub(crate) async fn watch_goes_on(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.acquires(&a).await?;
    let mut hints = watch(&lab, &store, a.key()).await?;
    store.abandon(&held.lease).await?;
    is_hinted(&lab, &mut hints).await?;
    let b: Attempt = rival(&a);
    let taken = store.acquires(&b).await?;
    // Hints may be spurious, so the old ones are waited out before the change that matters.
    while timeout(lab.tick().max(Duration::from_millis(20)), hints.changed()).await.is_ok() {}
    store.complete(&taken.lease, b"done").await?;
    is_hinted(&lab, &mut hints).await
}

/// Watching one key does not depend on, nor disturb, the watch of another.
pub(crate) async fn watches_of_two_keys_are_apart(lab: Lab) -> Verdict {
    let (store, a, b) = (lab.store(), lab.attempt()?, lab.attempt()?);
    let (held, other) = (store.acquires(&a).await?, store.acquires(&b).await?);
    let mut of_a = watch(&lab, &store, a.key()).await?;
    let of_b = watch(&lab, &store, b.key()).await?;
    store.release(&other.lease).await?;
    drop(of_b);
    while timeout(lab.tick().max(Duration::from_millis(20)), of_a.changed()).await.is_ok() {}
    store.complete(&held.lease, b"done").await?;
    is_hinted(&lab, &mut of_a).await
}

/// Watching changes nothing: neither a free key, nor a held one.
pub(crate) async fn watching_changes_nothing(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let before = watch(&lab, &store, a.key()).await?;
    let held = store.acquires(&a).await?;
    let during = watch(&lab, &store, a.key()).await?;
    store.is_in_progress(&rival(&a)).await?;
    drop((before, during));
    store.renew(&held.lease, LONG).await?;
    store.complete(&held.lease, b"done").await?;
    Ok(())
}
