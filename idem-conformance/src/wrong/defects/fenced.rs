//! Stores in which others than the holder write (L4).

use std::time::Duration;

use idem_core::model::{Phase, Row, Step};
use idem_core::{Fingerprint, Lease, StoreError};

use crate::wrong::laws::{Answer, At, Completion, Laws, only};

pub(super) const ALL: &[&dyn Laws] = &[
    &CompletedByAnyone,
    &RenewedByAnyone,
    &ReleasedByAnyone,
    &EndedByAnyone,
    &HolderIsItsFence,
    &HolderIsIdAndFence,
    &LateOwnerReplacesTheAnswer,
    &LostLeaseIsSwallowed,
    &CompletesWhatIsNotThere,
    &RenewsWhatIsNotThere,
    &RenewReopensACompletion,
    &ReleaseDeletesACompletion,
    &ReleasedLeaseCompletes,
    &ReleasedLeaseRenews,
    &AnyEarlierHolderCompletes,
];

fn is_pending(row: &Row) -> bool {
    matches!(row.phase, Phase::Pending { .. })
}

/// C12: a late owner's answer replaces the record of whoever took over.
#[derive(Debug)]
struct CompletedByAnyone;

impl Laws for CompletedByAnyone {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        if at.kept().is_some_and(is_pending) {
            return at.held_by(lease).complete(lease, with);
        }
        at.complete(lease, with)
    }
}

/// C13: a heartbeat without an owner.
#[derive(Debug)]
struct RenewedByAnyone;

impl Laws for RenewedByAnyone {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let holder = at.kept().map(|row| row.holder);
        if by.is_zero() {
            return at.renew(lease, by);
        }
        let mut step = at.held_by(lease).renew(lease, by)?;
        if let (Some(row), Some(holder)) = (&mut step.write, holder) {
            row.holder = holder;
        }
        Ok(step)
    }
}

/// Whoever gives up ends the lease of whoever has it.
#[derive(Debug)]
struct EndedByAnyone;

impl Laws for EndedByAnyone {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let holder = at.kept().map(|row| row.holder);
        if !by.is_zero() {
            return at.renew(lease, by);
        }
        let mut step = at.held_by(lease).renew(lease, by)?;
        if let (Some(row), Some(holder)) = (&mut step.write, holder) {
            row.holder = holder;
        }
        Ok(step)
    }
}

/// C11: the key of the next owner is deleted.
#[derive(Debug)]
struct ReleasedByAnyone;

impl Laws for ReleasedByAnyone {
    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        if at.kept().is_some_and(is_pending) {
            return at.held_by(lease).release(lease);
        }
        at.release(lease)
    }
}

/// Whether the fence is the row's.
fn same_fence(at: &At, lease: &Lease) -> bool {
    at.kept().is_some_and(|row| row.fence == lease.fence())
}

/// C14: a number makes the holder.
#[derive(Debug)]
struct HolderIsItsFence;

impl HolderIsItsFence {
    fn seen(at: At, lease: &Lease) -> At {
        if same_fence(&at, lease) { at.held_by(lease) } else { at }
    }
}

impl Laws for HolderIsItsFence {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        Self::seen(at, lease).renew(lease, by)
    }

    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        Self::seen(at, lease).complete(lease, with)
    }

    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        Self::seen(at, lease).release(lease)
    }
}

/// The number is checked as well, and a failover issues it again.
#[derive(Debug)]
struct HolderIsIdAndFence;

impl Laws for HolderIsIdAndFence {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        if same_fence(&at, lease) { at.renew(lease, by) } else { Err(StoreError::LeaseLost) }
    }

    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        if same_fence(&at, lease) { at.complete(lease, with) } else { Err(StoreError::LeaseLost) }
    }
}

/// C12: the last completion wins.
#[derive(Debug)]
struct LateOwnerReplacesTheAnswer;

impl Laws for LateOwnerReplacesTheAnswer {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let late = at.holders.contains(&lease.attempt());
        let Some(row) = at.kept().filter(|row| late && row.holder != lease.attempt()) else {
            return at.complete(lease, with);
        };
        let Phase::Completed { fingerprint, .. } = row.phase else {
            return at.complete(lease, with);
        };
        let phase = Phase::Completed { fingerprint, payload: with.payload.clone() };
        Ok(Step { write: Some(Row { phase, ..row.clone() }), answer: () })
    }
}

/// C134: who has lost its lease is told that all is well.
#[derive(Debug)]
struct LostLeaseIsSwallowed;

impl Laws for LostLeaseIsSwallowed {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        at.complete(lease, with).or(Ok(only(())))
    }
}

/// The row that a verb makes where there is none.
fn out_of_nothing(at: &At, lease: &Lease, phase: Phase) -> Row {
    Row {
        holder: lease.attempt(),
        fence: lease.fence(),
        attempts: 1,
        retain_until: at.now.after(Duration::from_hours(1)),
        phase,
    }
}

/// An upsert: completing a key that nobody has reserved makes a completed record.
#[derive(Debug)]
struct CompletesWhatIsNotThere;

impl Laws for CompletesWhatIsNotThere {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        if at.kept().is_some() || at.row.is_some() {
            return at.complete(lease, with);
        }
        let (fingerprint, payload) = (Fingerprint::from_bytes([7; 32]), with.payload.clone());
        let row = out_of_nothing(&at, lease, Phase::Completed { fingerprint, payload });
        Ok(Step { write: Some(row), answer: () })
    }
}

/// C21: a lease that is gone is brought back by its heartbeat.
#[derive(Debug)]
struct RenewsWhatIsNotThere;

impl Laws for RenewsWhatIsNotThere {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        if at.row.is_none() || at.kept().is_some() {
            return at.renew(lease, by);
        }
        let (fingerprint, lease_until) = (Fingerprint::from_bytes([7; 32]), at.now.after(by));
        let row = out_of_nothing(&at, lease, Phase::Pending { fingerprint, lease_until });
        Ok(Step { write: Some(row), answer: by })
    }
}

/// A heartbeat that arrives after the completion makes it pending again.
#[derive(Debug)]
struct RenewReopensACompletion;

impl Laws for RenewReopensACompletion {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let now = at.now;
        at.seeing(|row| {
            if let Phase::Completed { fingerprint, .. } = row.phase {
                row.phase = Phase::Pending { fingerprint, lease_until: now };
            }
        })
        .renew(lease, by)
    }
}

/// A clean-up after the completion takes the answer away.
#[derive(Debug)]
struct ReleaseDeletesACompletion;

impl Laws for ReleaseDeletesACompletion {
    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        let now = at.now;
        at.seeing(|row| {
            if let Phase::Completed { fingerprint, .. } = row.phase {
                row.phase = Phase::Pending { fingerprint, lease_until: now };
            }
        })
        .release(lease)
    }
}

fn reopened(at: At) -> At {
    let lease_until = at.now;
    at.seeing(|row| {
        if row.phase == Phase::Released {
            let fingerprint = Fingerprint::from_bytes([7; 32]);
            row.phase = Phase::Pending { fingerprint, lease_until };
        }
    })
}

/// What was released as without effect is completed after all.
#[derive(Debug)]
struct ReleasedLeaseCompletes;

impl Laws for ReleasedLeaseCompletes {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        reopened(at).complete(lease, with)
    }
}

/// What was released is held again by a heartbeat that arrives late.
#[derive(Debug)]
struct ReleasedLeaseRenews;

impl Laws for ReleasedLeaseRenews {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        reopened(at).renew(lease, by)
    }
}

/// Whoever has held the key may complete it: the late owner, but no stranger.
#[derive(Debug)]
struct AnyEarlierHolderCompletes;

impl Laws for AnyEarlierHolderCompletes {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let once = at.holders.contains(&lease.attempt());
        if once && at.kept().is_some_and(is_pending) {
            return at.held_by(lease).complete(lease, with);
        }
        at.complete(lease, with)
    }
}
