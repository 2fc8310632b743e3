//! Stores that renew badly.

use std::time::Duration;

use idem_core::model::{Phase, Row, Timestamp};
use idem_core::{AttemptId, Lease};

use crate::wrong::laws::{Answer, At, Laws, only, writing};

pub(super) const ALL: &[&dyn Laws] = &[
    &RenewDoesNothing,
    &RenewedLeaseNeverEnds,
    &RenewAnswersWhatWasAsked,
    &RenewShortens,
    &RenewIsCounted,
    &RenewMintsAFence,
    &ZeroFreesTheKey,
    &ZeroDoesNothing,
    &ZeroRevives,
    &ZeroCompletes,
];

fn end_at(row: &mut Row, end: Timestamp) {
    if let Phase::Pending { lease_until, .. } = &mut row.phase {
        *lease_until = end;
    }
}

/// C18: a heartbeat that touches something else than the lease.
#[derive(Debug)]
struct RenewDoesNothing;

impl Laws for RenewDoesNothing {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let step = at.renew(lease, by)?;
        if by.is_zero() { Ok(step) } else { Ok(only(step.answer)) }
    }
}

/// A lease that was renewed once is held for ever.
#[derive(Debug)]
struct RenewedLeaseNeverEnds;

impl Laws for RenewedLeaseNeverEnds {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let far = at.now.after(Duration::from_hours(24));
        writing(at.renew(lease, by), |row| {
            if !by.is_zero() {
                end_at(row, far);
            }
        })
    }
}

/// The answer is what was asked for, whatever is left.
#[derive(Debug)]
struct RenewAnswersWhatWasAsked;

impl Laws for RenewAnswersWhatWasAsked {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let mut step = at.renew(lease, by)?;
        step.answer = by;
        Ok(step)
    }
}

/// Two heartbeats that cross cut the lease short.
#[derive(Debug)]
struct RenewShortens;

impl Laws for RenewShortens {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let end = at.now.after(by);
        let mut step = writing(at.renew(lease, by), |row| {
            if !by.is_zero() {
                end_at(row, end);
            }
        })?;
        step.answer = by;
        Ok(step)
    }
}

/// Every heartbeat counts as an attempt.
#[derive(Debug)]
struct RenewIsCounted;

impl Laws for RenewIsCounted {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        writing(at.renew(lease, by), |row| {
            if !by.is_zero() {
                row.attempts += 1;
            }
        })
    }
}

/// Every heartbeat is a new lease, and the holder is not told its fence.
#[derive(Debug)]
struct RenewMintsAFence;

impl Laws for RenewMintsAFence {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        writing(at.renew(lease, by), |row| {
            if !by.is_zero() {
                row.fence.0 += 1;
            }
        })
    }
}

/// Who gives up frees the key: unknown becomes "took no effect".
#[derive(Debug)]
struct ZeroFreesTheKey;

impl Laws for ZeroFreesTheKey {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        writing(at.renew(lease, by), |row| {
            if by.is_zero() {
                row.phase = Phase::Released;
                row.holder = AttemptId::from_bytes([0; 16]);
            }
        })
    }
}

/// Nothing is taken for "no change".
#[derive(Debug)]
struct ZeroDoesNothing;

impl Laws for ZeroDoesNothing {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let step = at.renew(lease, by)?;
        if by.is_zero() { Ok(only(Duration::ZERO)) } else { Ok(step) }
    }
}

/// Giving up after the lease has ended moves its end to now, and its retention along.
#[derive(Debug)]
struct ZeroRevives;

impl Laws for ZeroRevives {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let kept = at.lease_end_of(lease.attempt()).zip(at.kept().map(|row| row.retain_until));
        let now = at.now;
        writing(at.renew(lease, by), |row| {
            if let Some((end, until)) = kept.filter(|_| by.is_zero()) {
                end_at(row, now);
                row.retain_until = now.after(end.until(until));
            }
        })
    }
}

/// C36: giving up is stored as an answer.
#[derive(Debug)]
struct ZeroCompletes;

impl Laws for ZeroCompletes {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        writing(at.renew(lease, by), |row| {
            if let (true, Phase::Pending { fingerprint, .. }) = (by.is_zero(), &row.phase) {
                let payload = "unknown".into();
                row.phase = Phase::Completed { fingerprint: *fingerprint, payload };
            }
        })
    }
}
