//! L8: unreadable is not absent.

use idem_core::Key;

use crate::failure::Verdict;
use crate::harness::Damage;
use crate::lab::{LONG, Lab, rival, stranger};
use crate::subject::{Grant, Subject, corrupt};

/// Every verb says that the record is corrupt, and says so again: it did not clear it away.
async fn is_corrupt(store: &Subject, held: &Grant, lab: &Lab) -> Verdict {
    let key: &Key = held.lease.key();
    let attempt = crate::lab::attempt_at(key.clone());
    for _ in 0..2 {
        corrupt("reserve", store.reserve(&attempt).await)?;
        corrupt("renew", store.renew(&held.lease, LONG).await)?;
        corrupt("complete", store.complete(&held.lease, b"late").await)?;
        corrupt("release", store.release(&held.lease).await)?;
    }
    corrupt("reserve another request", store.reserve(&stranger(&attempt)).await)?;
    let another = lab.attempt()?;
    store.acquires(&another).await?;
    Ok(())
}

/// A pending and a completed record, damaged alike.
async fn is_corrupt_when(damage: Damage, lab: Lab) -> Verdict {
    let (store, pending, completed) = (lab.store(), lab.attempt()?, lab.attempt()?);
    let held = store.acquires(&pending).await?;
    lab.harness().corrupt(pending.key(), damage).await?;
    is_corrupt(&store, &held, &lab).await?;
    let done = store.completed(&completed, b"the answer").await?;
    lab.harness().corrupt(completed.key(), damage).await?;
    is_corrupt(&store, &done, &lab).await
}

/// Bytes that mean nothing are corrupt.
// C109
pub(crate) async fn garbage_is_corrupt(lab: Lab) -> Verdict {
    is_corrupt_when(Damage::Garbage, lab).await
}

/// A record that was cut short is corrupt, even if only its payload was.
// C81, C109
pub(crate) async fn truncated_record_is_corrupt(lab: Lab) -> Verdict {
    is_corrupt_when(Damage::Truncated, lab).await
}

/// A record in a newer format is corrupt to an older store.
// C109
pub(crate) async fn newer_format_is_corrupt(lab: Lab) -> Verdict {
    is_corrupt_when(Damage::NewerFormat, lab).await
}

/// A value of another type is corrupt.
// C73, C109
pub(crate) async fn foreign_type_is_corrupt(lab: Lab) -> Verdict {
    is_corrupt_when(Damage::ForeignType, lab).await
}

/// A sweep does not clear a damaged record away: it cannot know whether it is needed.
pub(crate) async fn purge_keeps_a_damaged_record(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.acquires(&a).await?;
    lab.harness().corrupt(a.key(), Damage::Garbage).await?;
    lab.harness().purge().await?;
    corrupt("reserve", store.reserve(&rival(&a)).await)
}
