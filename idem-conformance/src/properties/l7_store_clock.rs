//! L7: the store's clock decides.

use std::time::Duration;

use crate::failure::{Verdict, ensure};
use crate::harness::Skew;
use crate::lab::{LONG, Lab, rival};
use crate::subject::Subject;

const HOUR: Duration = Duration::from_hours(1);

/// A client whose clock is ahead does not see a live lease as ended.
// C28
pub(crate) async fn client_ahead_takes_nothing(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let ahead = Subject::new(lab.harness().skewed(Skew::Ahead(HOUR)).await?);
    store.acquires(&a).await?;
    let left = ahead.is_in_progress(&rival(&a)).await?;
    ensure!(left <= LONG, "a lease of {LONG:?} has {left:?} left");
    Ok(())
}

/// A lease given to a client whose clock is behind lives as long as any other.
// C28
pub(crate) async fn client_behind_is_not_cut_short(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let behind = Subject::new(lab.harness().skewed(Skew::Behind(HOUR)).await?);
    behind.acquires(&a).await?;
    store.is_in_progress(&rival(&a)).await?;
    Ok(())
}

/// A lease given to a client whose clock is ahead does not live longer than any other, and one
/// whose clock is behind sees that it has ended.
// C28
pub(crate) async fn skewed_clients_see_the_same_end(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    let ahead = Subject::new(lab.harness().skewed(Skew::Ahead(HOUR)).await?);
    let behind = Subject::new(lab.harness().skewed(Skew::Behind(HOUR)).await?);
    let held = ahead.acquires(&a).await?;
    ensure!(held.left <= lab.short(), "a lease of {:?} has {:?} left", lab.short(), held.left);
    lab.pass(lab.short()).await?;
    behind.is_abandoned(&rival(&a).takeover(false)).await?;
    store.acquires(&rival(&a)).await?;
    Ok(())
}

/// What is left of a lease is what was asked for less what has passed.
pub(crate) async fn left_counts_down(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    let asked = lab.now();
    store.acquires(&a).await?;
    let granted = lab.now();
    lab.pass(lab.short() / 4).await?;
    let before = lab.now();
    let left = store.is_in_progress(&rival(&a)).await?;
    let after = lab.now();
    let most = (LONG + granted.latest).saturating_sub(before.earliest);
    let least = (LONG + asked.earliest).saturating_sub(after.latest);
    ensure!((least..=most).contains(&left), "{left:?} left is not in {least:?} to {most:?}");
    Ok(())
}

/// A live lease is never said to have nothing left, and is not taken over, to its last moment.
pub(crate) async fn lease_lives_to_its_last_moment(lab: Lab) -> Verdict {
    lab.needs_virtual_clock()?;
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    store.acquires(&a).await?;
    lab.pass(lab.short().saturating_sub(lab.tick())).await?;
    store.is_in_progress(&rival(&a)).await?;
    Ok(())
}

/// A lease ends when it said it would.
pub(crate) async fn lease_ends_on_time(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?.lease(lab.short()));
    store.acquires(&a).await?;
    lab.pass(lab.short()).await?;
    store.is_abandoned(&rival(&a).takeover(false)).await?;
    Ok(())
}
