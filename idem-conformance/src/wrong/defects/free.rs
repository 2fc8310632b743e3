//! Stores that take a key which is not free, or do not take one which is (L2).

use idem_core::model::{Phase, Row, Step};
use idem_core::{Attempt, AttemptId, Fingerprint, Record, State};

use crate::wrong::laws::{Answer, At, Completion, Laws, granting, only, writing};

pub(super) const ALL: &[&dyn Laws] = &[
    &HeldKeyIsTaken,
    &LeaseNeverEnds,
    &LeaseEndsEarly,
    &PendingFingerprintIsIgnored,
    &CompletedFingerprintIsIgnored,
    &AbandonedFingerprintIsIgnored,
    &TakeoverNeedsNoRight,
    &FreeKeyNeedsTheRight,
    &RefusedTakeoverIsCounted,
    &TakeoversAreNotCounted,
    &CountsOnAfterARelease,
    &ReleasedKeyRemembersItsRequest,
    &TakenOverAttemptReturns,
    &LoserExtendsTheLease,
    &CompletionIsKeptForItsLease,
    &RecordNamesNobody,
    &TakeoverDropsTheFingerprint,
];

/// C1: an unconditional write, so that whoever comes last has the key.
#[derive(Debug)]
struct HeldKeyIsTaken;

impl Laws for HeldKeyIsTaken {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let id = attempt.id();
        at.seeing(|row| match &row.phase {
            Phase::Pending { fingerprint, .. }
                if row.holder != id && *fingerprint == attempt.fingerprint() =>
            {
                row.phase = Phase::Released;
            }
            _ => {}
        })
        .reserve(attempt)
    }
}

/// C24, C33: the marker of a dead worker stays.
#[derive(Debug)]
struct LeaseNeverEnds;

impl Laws for LeaseNeverEnds {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let now = at.now;
        at.seeing(|row| {
            if let Phase::Pending { lease_until, .. } = &mut row.phase {
                *lease_until = (*lease_until).max(now.after(attempt.lease_for()));
            }
        })
        .reserve(attempt)
    }
}

/// The lease is half as long as it was said to be.
#[derive(Debug)]
struct LeaseEndsEarly;

impl Laws for LeaseEndsEarly {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let now = at.now;
        writing(at.reserve(attempt), |row| {
            if let Phase::Pending { lease_until, .. } = &mut row.phase {
                *lease_until = now.after(attempt.lease_for() / 2);
            }
        })
    }
}

fn take_for(request: Fingerprint, row: &mut Row) {
    match &mut row.phase {
        Phase::Pending { fingerprint, .. } | Phase::Completed { fingerprint, .. } => {
            *fingerprint = request;
        }
        Phase::Released => {}
    }
}

/// C52: while the first runs, another request is told that it is in progress.
#[derive(Debug)]
struct PendingFingerprintIsIgnored;

impl Laws for PendingFingerprintIsIgnored {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let live = !at.is_abandoned();
        at.seeing(|row| {
            if live && matches!(row.phase, Phase::Pending { .. }) {
                take_for(attempt.fingerprint(), row);
            }
        })
        .reserve(attempt)
    }
}

/// C45: another request is given the first one's answer.
#[derive(Debug)]
struct CompletedFingerprintIsIgnored;

impl Laws for CompletedFingerprintIsIgnored {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        at.seeing(|row| {
            if matches!(row.phase, Phase::Completed { .. }) {
                take_for(attempt.fingerprint(), row);
            }
        })
        .reserve(attempt)
    }
}

/// Another request takes over from a dead one, and its retry is given the other's answer.
#[derive(Debug)]
struct AbandonedFingerprintIsIgnored;

impl Laws for AbandonedFingerprintIsIgnored {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let abandoned = at.is_abandoned();
        at.seeing(|row| {
            if abandoned {
                take_for(attempt.fingerprint(), row);
            }
        })
        .reserve(attempt)
    }
}

/// C27: a payment of unknown outcome is run again, although that was forbidden.
#[derive(Debug)]
struct TakeoverNeedsNoRight;

impl Laws for TakeoverNeedsNoRight {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let takes = at.is_abandoned() && !at.is_pending_for(attempt.id());
        let same = at.kept().is_some_and(|row| {
            matches!(row.phase, Phase::Pending { fingerprint, .. } if fingerprint == attempt.fingerprint())
        });
        if !(takes && same) {
            return at.reserve(attempt);
        }
        let attempts = at.kept().map_or(0, |row| row.attempts);
        granting(at.seeing(|row| row.phase = Phase::Released).reserve(attempt), |row, record| {
            row.attempts = attempts + 1;
            record.attempts = row.attempts;
        })
    }
}

/// A released key is taken for an abandoned one.
#[derive(Debug)]
struct FreeKeyNeedsTheRight;

impl Laws for FreeKeyNeedsTheRight {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let Some(row) = at.kept().filter(|row| row.phase == Phase::Released) else {
            return at.reserve(attempt);
        };
        if attempt.may_take_over() {
            return at.reserve(attempt);
        }
        Ok(only(Record {
            fingerprint: attempt.fingerprint(),
            holder: row.holder,
            fence: row.fence,
            attempts: row.attempts,
            state: State::Pending { left: std::time::Duration::ZERO },
        }))
    }
}

/// An attempt that was not let in has been counted all the same.
#[derive(Debug)]
struct RefusedTakeoverIsCounted;

impl Laws for RefusedTakeoverIsCounted {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let refused = at.is_abandoned() && !attempt.may_take_over();
        let step = at.reserve(attempt)?;
        if refused && step.answer.holder != attempt.id() {
            let counted = at.seeing(|row| row.attempts += 1);
            return Ok(Step { write: counted.row, ..step });
        }
        Ok(step)
    }
}

/// Nobody is told that an earlier attempt may have had its effect.
#[derive(Debug)]
struct TakeoversAreNotCounted;

impl Laws for TakeoversAreNotCounted {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        granting(at.reserve(attempt), |row, record| {
            row.attempts = 1;
            record.attempts = 1;
        })
    }
}

/// Whoever takes a released key is told of a takeover.
#[derive(Debug)]
struct CountsOnAfterARelease;

impl Laws for CountsOnAfterARelease {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let released = at.kept().filter(|row| row.phase == Phase::Released);
        let before = released.map_or(0, |row| row.attempts);
        granting(at.reserve(attempt), |row, record| {
            row.attempts += before;
            record.attempts = row.attempts;
        })
    }
}

/// A released key is free for the suite's usual request only.
#[derive(Debug)]
struct ReleasedKeyRemembersItsRequest;

impl Laws for ReleasedKeyRemembersItsRequest {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let released = at.kept().filter(|row| row.phase == Phase::Released);
        if let Some(row) = released.filter(|_| attempt.fingerprint() != crate::lab::REQUEST) {
            return Ok(only(Record {
                fingerprint: crate::lab::REQUEST,
                holder: row.holder,
                fence: row.fence,
                attempts: row.attempts,
                state: State::Pending { left: attempt.lease_for() },
            }));
        }
        at.reserve(attempt)
    }
}

/// Whoever has held the key holds it when it asks.
#[derive(Debug)]
struct TakenOverAttemptReturns;

impl Laws for TakenOverAttemptReturns {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let returns = at.holders.contains(&attempt.id());
        let at = at.seeing(|row| {
            if returns && matches!(row.phase, Phase::Pending { .. }) {
                row.holder = attempt.id();
            }
        });
        let step = at.reserve(attempt)?;
        Ok(if returns { Step { write: at.row, ..step } } else { step })
    }
}

/// Every look at a held key makes its lease as long as the one who looks would have liked.
#[derive(Debug)]
struct LoserExtendsTheLease;

impl Laws for LoserExtendsTheLease {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let step = at.reserve(attempt)?;
        let lost = step.write.is_none() && step.answer.holder != attempt.id();
        let end = at.now.after(attempt.lease_for());
        if !lost || at.is_abandoned() {
            return Ok(step);
        }
        let extended = at.seeing(|row| {
            if let Phase::Pending { lease_until, .. } = &mut row.phase {
                *lease_until = (*lease_until).max(end);
            }
        });
        Ok(Step { write: extended.row, ..step })
    }
}

/// The end of the lease is the end of the record, completed or not.
#[derive(Debug)]
struct CompletionIsKeptForItsLease;

impl Laws for CompletionIsKeptForItsLease {
    fn complete(&self, at: At, lease: &idem_core::Lease, with: &Completion) -> Answer<()> {
        let end = at.lease_end_of(lease.attempt());
        writing(at.complete(lease, with), |row| {
            row.retain_until = end.map_or(row.retain_until, |end| end.min(row.retain_until));
        })
    }
}

/// C130: a record that is in the way does not say whose it is.
#[derive(Debug)]
struct RecordNamesNobody;

impl Laws for RecordNamesNobody {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let mut step = at.reserve(attempt)?;
        if step.answer.holder != attempt.id() {
            step.answer.holder = AttemptId::from_bytes([0xee; 16]);
        }
        Ok(step)
    }
}

/// C54: the fingerprint is dropped when the record is written again by a takeover.
#[derive(Debug)]
struct TakeoverDropsTheFingerprint;

impl Laws for TakeoverDropsTheFingerprint {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        at.seeing(|row| {
            if row.attempts > 1 {
                take_for(attempt.fingerprint(), row);
            }
        })
        .reserve(attempt)
    }
}
