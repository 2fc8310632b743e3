//! Stores in which the end of a lease voids it (L5).

use std::time::Duration;

use idem_core::model::{Phase, Step};
use idem_core::{Attempt, AttemptId, Lease, Record, StoreError};

use crate::wrong::laws::{Answer, At, Completion, Laws, writing};

pub(super) const ALL: &[&dyn Laws] = &[
    &EndedLeaseCannotComplete,
    &EndedLeaseCannotRenew,
    &EndedLeaseCannotRelease,
    &AbandonedLeaseIsVoid,
    &AbandonedLeaseCannotRenew,
    &RefusedTakeoverVoidsTheHolder,
];

/// A completion that is a moment late is lost, although nobody has come since.
#[derive(Debug)]
struct EndedLeaseCannotComplete;

impl Laws for EndedLeaseCannotComplete {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        if at.is_abandoned() { Err(StoreError::LeaseLost) } else { at.complete(lease, with) }
    }
}

/// A heartbeat that is a moment late is lost, although nobody has come since.
#[derive(Debug)]
struct EndedLeaseCannotRenew;

impl Laws for EndedLeaseCannotRenew {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let late = at.lease_end_of(lease.attempt()).is_some_and(|end| end < at.now);
        if late && !by.is_zero() { Err(StoreError::LeaseLost) } else { at.renew(lease, by) }
    }
}

/// A release that is a moment late is lost, and a retry has to wait for a takeover.
#[derive(Debug)]
struct EndedLeaseCannotRelease;

impl Laws for EndedLeaseCannotRelease {
    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        if at.is_abandoned() { Err(StoreError::LeaseLost) } else { at.release(lease) }
    }
}

/// Giving up gives up the right to complete.
#[derive(Debug)]
struct AbandonedLeaseIsVoid;

impl Laws for AbandonedLeaseIsVoid {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        writing(at.renew(lease, by), |row| {
            if by.is_zero() {
                row.holder = AttemptId::from_bytes([0; 16]);
            }
        })
    }
}

/// Giving up gives up the right to go on.
#[derive(Debug)]
struct AbandonedLeaseCannotRenew;

impl Laws for AbandonedLeaseCannotRenew {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let given_up = at.lease_end_of(lease.attempt()).is_some_and(|end| end == at.now);
        if given_up && !by.is_zero() { Err(StoreError::LeaseLost) } else { at.renew(lease, by) }
    }
}

/// Whoever looks at an ended lease takes it away, even if it may not have it.
#[derive(Debug)]
struct RefusedTakeoverVoidsTheHolder;

impl Laws for RefusedTakeoverVoidsTheHolder {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let voids = at.is_abandoned() && !at.is_pending_for(attempt.id());
        let step = at.reserve(attempt)?;
        if !voids || step.write.is_some() {
            return Ok(step);
        }
        let voided = at.seeing(|row| {
            if matches!(row.phase, Phase::Pending { .. }) {
                row.holder = AttemptId::from_bytes([0; 16]);
            }
        });
        Ok(Step { write: voided.row, ..step })
    }
}
