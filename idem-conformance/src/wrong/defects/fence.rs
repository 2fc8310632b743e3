//! Stores whose fences do not grow (L3).

use idem_core::model::Phase;
use idem_core::{Attempt, Fence, Lease, Record};

use crate::wrong::laws::{Answer, At, Laws, granting, writing};

pub(super) const ALL: &[&dyn Laws] = &[
    &FenceIsTheClockAtTakeover,
    &ReleaseForgetsTheRow,
    &ReleaseForgetsTheFence,
    &RetentionForgetsTheFence,
    &FenceRestartsWithTheStore,
];

fn mint(fence: u64, answer: Answer<Record>) -> Answer<Record> {
    granting(answer, |row, record| {
        row.fence = Fence(fence);
        record.fence = row.fence;
    })
}

/// The clock alone: two leases within a microsecond, or after it was set back, are one.
#[derive(Debug)]
struct FenceIsTheClockAtTakeover;

impl Laws for FenceIsTheClockAtTakeover {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let (abandoned, now) = (at.is_abandoned(), at.now.0);
        let answer = at.reserve(attempt);
        if abandoned { mint(now, answer) } else { answer }
    }
}

/// Releasing deletes the row, and with it all that was to be remembered.
#[derive(Debug)]
struct ReleaseForgetsTheRow;

impl Laws for ReleaseForgetsTheRow {
    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        let now = at.now;
        writing(at.release(lease), |row| row.retain_until = now)
    }
}

/// Whoever comes after a release starts counting again.
#[derive(Debug)]
struct ReleaseForgetsTheFence;

impl Laws for ReleaseForgetsTheFence {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let released = at.kept().is_some_and(|row| row.phase == Phase::Released);
        let now = at.now.0;
        let answer = at.reserve(attempt);
        if released { mint(now, answer) } else { answer }
    }
}

/// A counter per key that is deleted with the key's record.
#[derive(Debug)]
struct RetentionForgetsTheFence;

impl Laws for RetentionForgetsTheFence {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let forgotten = at.row.is_some() && at.kept().is_none();
        let answer = at.reserve(attempt);
        if forgotten { mint(1, answer) } else { answer }
    }
}

/// C14: a counter in memory.
#[derive(Debug)]
struct FenceRestartsWithTheStore;

impl Laws for FenceRestartsWithTheStore {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let next = at.granted + 1;
        mint(next, at.reserve(attempt))
    }
}
