//! Stores in which a verb cannot be repeated (L1).

use std::time::Duration;

use idem_core::model::{Phase, Row, Step, Timestamp};
use idem_core::{Attempt, AttemptId, Lease, Record, State, StoreError};

use crate::wrong::laws::{Answer, At, Completion, Laws, granting};

pub(super) const ALL: &[&dyn Laws] = &[
    &RepeatedReserveIsInProgress,
    &RepeatedReserveMintsAFence,
    &RepeatedReserveExtends,
    &RepeatedReserveCounts,
    &RepeatedReserveTakesOverItself,
    &RepeatedTakeoverCounts,
    &CompletedAttemptStillHolds,
    &AnySameRequestIsTheHolder,
    &RepeatedCompleteIsLost,
    &RepeatedReleaseIsLost,
    &RepeatedRenewAddsUp,
    &RepeatedAbandonIsLost,
    &ReleasedAttemptReturns,
    &LateReleaseFreesTheNext,
];

/// C103: a holder that lost its answer is told that somebody holds the key: itself.
#[derive(Debug)]
struct RepeatedReserveIsInProgress;

impl Laws for RepeatedReserveIsInProgress {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let own = at.is_pending_for(attempt.id());
        let mut step = at.reserve(attempt)?;
        if own {
            step.answer.holder = AttemptId::from_bytes([0; 16]);
        }
        Ok(step)
    }
}

/// A repeat is a new lease, and the first answer, if it arrives after all, names an old fence.
#[derive(Debug)]
struct RepeatedReserveMintsAFence;

impl Laws for RepeatedReserveMintsAFence {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let fence = at.kept().map(|row| row.fence.0);
        if !at.is_pending_for(attempt.id()) {
            return at.reserve(attempt);
        }
        granting(at.blind_if(|_| true).reserve(attempt), |row, record| {
            row.fence.0 = fence.map_or(row.fence.0, |fence| row.fence.0.max(fence + 1));
            record.fence = row.fence;
        })
    }
}

/// A client that re-sends holds its key for ever.
#[derive(Debug)]
struct RepeatedReserveExtends;

impl Laws for RepeatedReserveExtends {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let end = at.now.after(attempt.lease_for());
        let was = at.lease_end_of(attempt.id());
        let mut step = at.reserve(attempt)?;
        if was.is_some_and(|was| was < end) {
            step.write = at.row.map(|row| leased_until(row, end));
            step.answer.state = State::Pending { left: attempt.lease_for() };
        }
        Ok(step)
    }
}

fn leased_until(row: Row, end: Timestamp) -> Row {
    match row.phase {
        Phase::Pending { fingerprint, .. } => {
            Row { phase: Phase::Pending { fingerprint, lease_until: end }, ..row }
        }
        _ => row,
    }
}

/// A repeat of the first attempt counts as another.
#[derive(Debug)]
struct RepeatedReserveCounts;

impl Laws for RepeatedReserveCounts {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let first =
            at.is_pending_for(attempt.id()) && at.kept().is_some_and(|row| row.attempts == 1);
        if !first {
            return at.reserve(attempt);
        }
        let at = at.seeing(|row| row.attempts += 1);
        let step = at.reserve(attempt)?;
        Ok(Step { write: at.row, ..step })
    }
}

/// A repeat of a takeover counts as another.
#[derive(Debug)]
struct RepeatedTakeoverCounts;

impl Laws for RepeatedTakeoverCounts {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let later =
            at.is_pending_for(attempt.id()) && at.kept().is_some_and(|row| row.attempts > 1);
        let mut step = at.reserve(attempt)?;
        if later {
            step.answer.attempts += 1;
        }
        Ok(step)
    }
}

/// An attempt whose own lease has ended takes over from itself.
#[derive(Debug)]
struct RepeatedReserveTakesOverItself;

impl Laws for RepeatedReserveTakesOverItself {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let ended = at.is_abandoned() && at.is_pending_for(attempt.id());
        let at = at.seeing(|row| {
            if ended {
                row.holder = AttemptId::from_bytes([0; 16]);
            }
        });
        at.reserve(attempt)
    }
}

/// C96: the attempt that completed, and lost the answer to that, is told to go on.
#[derive(Debug)]
struct CompletedAttemptStillHolds;

impl Laws for CompletedAttemptStillHolds {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let mut step = at.reserve(attempt)?;
        let own = step.answer.holder == attempt.id();
        if own && matches!(step.answer.state, State::Completed { .. }) {
            step.answer.state = State::Pending { left: attempt.lease_for() };
        }
        Ok(step)
    }
}

/// Whoever has the same request is taken for the holder.
#[derive(Debug)]
struct AnySameRequestIsTheHolder;

impl Laws for AnySameRequestIsTheHolder {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let mut step = at.reserve(attempt)?;
        let live = matches!(step.answer.state, State::Pending { left } if !left.is_zero());
        if live && step.answer.fingerprint == attempt.fingerprint() {
            step.answer.holder = attempt.id();
        }
        Ok(step)
    }
}

/// A completion is acknowledged once.
#[derive(Debug)]
struct RepeatedCompleteIsLost;

impl Laws for RepeatedCompleteIsLost {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        if !at.is_pending_for(lease.attempt()) {
            return Err(StoreError::LeaseLost);
        }
        at.complete(lease, with)
    }
}

/// A release is acknowledged once.
#[derive(Debug)]
struct RepeatedReleaseIsLost;

impl Laws for RepeatedReleaseIsLost {
    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        if !at.is_pending_for(lease.attempt()) {
            return Err(StoreError::LeaseLost);
        }
        at.release(lease)
    }
}

/// Renewing adds to the end of the lease, so that a re-sent renewal counts twice.
#[derive(Debug)]
struct RepeatedRenewAddsUp;

impl Laws for RepeatedRenewAddsUp {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let more = match at.lease_end_of(lease.attempt()) {
            Some(end) if !by.is_zero() => at.now.until(end),
            _ => Duration::ZERO,
        };
        at.renew(lease, by + more)
    }
}

/// Who has given up is refused when it says so again.
#[derive(Debug)]
struct RepeatedAbandonIsLost;

impl Laws for RepeatedAbandonIsLost {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        if by.is_zero() && at.is_abandoned() {
            return Err(StoreError::LeaseLost);
        }
        at.renew(lease, by)
    }
}

/// A `reserve` that arrives after the `release` holds the key for nobody.
#[derive(Debug)]
struct ReleasedAttemptReturns;

impl Laws for ReleasedAttemptReturns {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        at.seeing(|row| {
            if row.phase == Phase::Released {
                row.holder = AttemptId::from_bytes([0; 16]);
            }
        })
        .reserve(attempt)
    }
}

/// C11: a release that is repeated late frees the key of whoever has it by then.
#[derive(Debug)]
struct LateReleaseFreesTheNext;

impl Laws for LateReleaseFreesTheNext {
    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        let late = at.kept().is_some_and(|row| {
            row.attempts == 1 && row.holder != lease.attempt() && at.holders.len() > 1
        });
        let pending = at.kept().is_some_and(|row| matches!(row.phase, Phase::Pending { .. }));
        if late && pending && at.holders.contains(&lease.attempt()) {
            return at.held_by(lease).release(lease);
        }
        at.release(lease)
    }
}
