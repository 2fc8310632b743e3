//! Verbs that meet: one atomic step reads the clock, judges and writes.

use std::time::Duration;

use idem_core::{Attempt, StoreError, Verdict as Meaning};
use tokio::task::JoinSet;

use crate::failure::{Failure, Verdict, ensure};
use crate::lab::{LONG, Lab, OTHER, attempt_at, rival};
use crate::subject::Subject;

const RACERS: usize = 16;
const ROUNDS: usize = 12;

/// What one racer was told.
type Told = Result<Meaning, StoreError>;

/// Reserves with every attempt at once, alternating between two handles.
async fn race(lab: &Lab, racers: Vec<Attempt>) -> Verdict<Vec<Told>> {
    let (one, two) = (lab.store(), lab.fork_or_store().await?);
    let mut running = JoinSet::new();
    for (number, attempt) in racers.into_iter().enumerate() {
        let store = if number % 2 == 0 { one.clone() } else { two.clone() };
        running.spawn(async move { store.reserve(&attempt).await?.verdict(&attempt) });
    }
    let mut told = Vec::new();
    while let Some(racer) = running.join_next().await {
        told.push(racer?);
    }
    Ok(told)
}

fn is_grant(told: &Told) -> bool {
    matches!(told, Ok(Meaning::Acquired { .. }))
}

/// One was granted the key, and every other was told that it is in progress.
fn has_one_winner(told: &[Told]) -> Verdict {
    let grants = told.iter().filter(|told| is_grant(told)).count();
    ensure!(grants == 1, "{grants} of {} racers were granted one key", told.len());
    let odd =
        told.iter().find(|told| !matches!(told, Ok(Meaning::InProgress { .. })) && !is_grant(told));
    odd.map_or(Ok(()), |odd| Err(Failure::violated(format!("a racer was told {odd:?}"))))
}

/// Of many attempts at one key at once, one is granted it.
// C1, C2, C3
pub(crate) async fn one_of_many_racers_acquires(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS {
        let a = lab.attempt()?;
        has_one_winner(&race(&lab, (0..RACERS).map(|_| rival(&a)).collect()).await?)?;
    }
    Ok(())
}

/// Of many attempts at one abandoned key at once, one takes it over.
pub(crate) async fn one_of_many_racers_takes_over(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS {
        let a = lab.attempt()?;
        lab.store().abandoned(&a).await?;
        let told = race(&lab, (0..RACERS).map(|_| rival(&a)).collect()).await?;
        has_one_winner(&told)?;
        for told in told {
            if let Ok(Meaning::Acquired { attempts, .. }) = told {
                ensure!(attempts == 2, "the takeover was counted as attempt {attempts}");
            }
        }
    }
    Ok(())
}

/// Of many attempts at one released key at once, one is granted it.
pub(crate) async fn one_of_many_racers_acquires_after_a_release(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS {
        let (store, a) = (lab.store(), lab.attempt()?);
        let held = store.acquires(&a).await?;
        store.release(&held.lease).await?;
        has_one_winner(&race(&lab, (0..RACERS).map(|_| rival(&a)).collect()).await?)?;
    }
    Ok(())
}

/// Of two requests that race for one key, one is granted it and every attempt at the other is a
/// mismatch.
// C8
pub(crate) async fn racing_requests_do_not_mix(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS {
        let a = lab.attempt()?;
        let other = || attempt_at(a.key().clone());
        let racers = (0..RACERS).map(|number| match number % 4 {
            0 | 1 => other(),
            _ => Attempt::new(a.key().clone(), OTHER).lease(LONG),
        });
        let told = race(&lab, racers.collect()).await?;
        let grants = told.iter().filter(|told| is_grant(told)).count();
        ensure!(grants == 1, "{grants} racers were granted one key");
        let mismatches = told.iter().filter(|told| matches!(told, Ok(Meaning::Mismatch { .. })));
        let mismatches = mismatches.count();
        ensure!(mismatches == RACERS / 2, "{mismatches} of {} mismatched", RACERS / 2);
    }
    Ok(())
}

/// A verb of the old holder, and a takeover, at once.
async fn against_takeover<T, F>(
    lab: &Lab,
    verb: impl Fn(Subject, idem_core::Lease) -> F,
) -> Verdict<(Attempt, Result<T, StoreError>, Meaning)>
where
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
    T: Send + 'static,
{
    let (store, a) = (lab.store(), lab.attempt()?);
    let held = store.abandoned(&a).await?;
    let (b, other) = (rival(&a), lab.fork_or_store().await?);
    let takeover = tokio::spawn(async move { other.reserve(&b).await?.verdict(&b) });
    let own = tokio::spawn(verb(store, held.lease));
    Ok((a, own.await?, takeover.await??))
}

/// A completion that meets a takeover: either it stands and is replayed, or it is lost and the
/// key was taken.
// C5, C12
pub(crate) async fn completion_meets_takeover(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS * 2 {
        let complete = |store: Subject, lease| async move { store.complete(&lease, b"a").await };
        match against_takeover(&lab, complete).await? {
            (_, Ok(()), Meaning::Replay(_)) => {}
            (a, Err(StoreError::LeaseLost), Meaning::Acquired { lease, .. }) => {
                lab.store().complete(&lease, b"b").await?;
                lab.store().replays(&rival(&a), b"b").await?;
            }
            (_, completed, taken) => {
                let what = format!("the completion was {completed:?}, the takeover {taken:?}");
                return Err(Failure::violated(what));
            }
        }
    }
    Ok(())
}

/// A renewal that meets a takeover: either the lease lives, or it is lost.
// C23
pub(crate) async fn renewal_meets_takeover(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS * 2 {
        let renew = |store: Subject, lease| async move { store.renew(&lease, LONG).await };
        match against_takeover(&lab, renew).await? {
            (a, Ok(_), Meaning::InProgress { .. }) => {
                lab.store().acquires(&a).await?;
            }
            (_, Err(StoreError::LeaseLost), Meaning::Acquired { lease, .. }) => {
                lab.store().complete(&lease, b"b").await?;
            }
            (_, renewed, taken) => {
                let what = format!("the renewal was {renewed:?}, the takeover {taken:?}");
                return Err(Failure::violated(what));
            }
        }
    }
    Ok(())
}

/// A release that meets a takeover: either the key was freed first, and the next holder starts
/// over, or the release is lost. The next holder has the key in both cases.
pub(crate) async fn release_meets_takeover(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS * 2 {
        let release = |store: Subject, lease| async move { store.release(&lease).await };
        match against_takeover(&lab, release).await? {
            (_, Ok(()), Meaning::Acquired { lease, attempts: 1, .. })
            | (_, Err(StoreError::LeaseLost), Meaning::Acquired { lease, attempts: 2, .. }) => {
                lab.store().complete(&lease, b"b").await?;
            }
            (_, released, taken) => {
                let what = format!("the release was {released:?}, the takeover {taken:?}");
                return Err(Failure::violated(what));
            }
        }
    }
    Ok(())
}

/// Of many completions of one lease at once, every one is `Ok` and one stands for all.
pub(crate) async fn one_of_many_completions_stands(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS {
        let (store, a) = (lab.store(), lab.attempt()?);
        let held = store.acquires(&a).await?;
        let mut running = JoinSet::new();
        for number in 0..RACERS {
            let (store, other) = (store.clone(), lab.fork_or_store().await?);
            let (lease, b) = (held.lease.clone(), rival(&a));
            running.spawn(async move {
                store.complete(&lease, number.to_string().as_bytes()).await?;
                other.reserve(&b).await?.verdict(&b)
            });
        }
        let mut seen: Option<Meaning> = None;
        while let Some(told) = running.join_next().await {
            let told = told??;
            ensure!(matches!(told, Meaning::Replay(_)), "after a completion: {told:?}");
            let first = seen.get_or_insert_with(|| told.clone());
            ensure!(told == *first, "{first:?} was replayed, and then {told:?}");
        }
    }
    Ok(())
}

/// A `reserve` sent many times at once by one attempt is one reservation.
// C103
pub(crate) async fn one_attempt_sent_many_times_is_one(lab: Lab) -> Verdict {
    for _ in 0..ROUNDS {
        let a = std::sync::Arc::new(lab.attempt()?);
        let (one, two) = (lab.store(), lab.fork_or_store().await?);
        let mut running = JoinSet::new();
        for number in 0..RACERS {
            let (store, a) = (if number % 2 == 0 { one.clone() } else { two.clone() }, a.clone());
            running.spawn(async move { store.acquires(&a).await });
        }
        let mut fences = Vec::new();
        while let Some(grant) = running.join_next().await {
            let grant = grant??;
            ensure!(grant.attempts == 1, "counted as attempt {}", grant.attempts);
            fences.push(grant.lease.fence());
        }
        fences.dedup();
        ensure!(fences.len() == 1, "one attempt was given the fences {fences:?}");
    }
    Ok(())
}

/// A `reserve` answers at once while another attempt holds the key: a store does not wait.
// C116
pub(crate) async fn reserve_does_not_wait(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.acquires(&a).await?;
    let (other, b) = (lab.fork_or_store().await?, rival(&a));
    // Far longer than any answer takes, and far shorter than the lease.
    let asked = tokio::time::timeout(lab.hint_within().max(Duration::from_secs(1)), async {
        other.is_in_progress(&b).await
    });
    match asked.await {
        Ok(told) => told.map(drop),
        Err(_) => Err(Failure::violated("reserve did not answer while the key was held")),
    }
}
