//! Stores that keep a record for too long, or not long enough.

use std::time::Duration;

use idem_core::model::{Phase, Timestamp};
use idem_core::{Attempt, Lease, Record, StoreError};

use crate::wrong::laws::{Answer, At, Completion, Laws, granting, lease_end, writing};

pub(super) const ALL: &[&dyn Laws] = &[
    &RetentionCountsFromTheReservation,
    &RetentionCountsFromTheLeasesEnd,
    &CompletionIsNeverForgotten,
    &ForgottenKeyIsCountedOn,
    &CompletionIsKeptAsTheAttemptAsked,
    &LongRetentionIsCut,
    &AbandonedIsForgottenAtItsEnd,
    &AbandonedIsNeverForgotten,
    &ForgottenHolderWrites,
    &RenewKeepsTheRetention,
    &GivingUpKeepsTheRetention,
    &TakeoverKeepsTheFirstRetention,
];

/// C106: a slow action has its answer forgotten early. The lease's start is not in the row, so
/// it is taken from the suite's usual lease.
#[derive(Debug)]
struct RetentionCountsFromTheReservation;

impl Laws for RetentionCountsFromTheReservation {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let end = at.lease_end_of(lease.attempt());
        let long = crate::lab::LONG;
        writing(at.complete(lease, with), |row| {
            // A lease that was not asked for with the usual length is left alone.
            if let Some(started) = end.and_then(|end| end.0.checked_sub(Timestamp(0).after(long).0))
            {
                let counted = Timestamp(started).after(with.retention);
                row.retain_until = row.retain_until.min(counted).max(at.now);
            }
        })
    }
}

/// A late completion is forgotten early.
#[derive(Debug)]
struct RetentionCountsFromTheLeasesEnd;

impl Laws for RetentionCountsFromTheLeasesEnd {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let ended = at.lease_end_of(lease.attempt()).filter(|end| *end < at.now);
        writing(at.complete(lease, with), |row| {
            if let Some(end) = ended {
                row.retain_until = end.after(with.retention);
            }
        })
    }
}

/// C108: a value and its expiry are two commands, and the second was not sent.
#[derive(Debug)]
struct CompletionIsNeverForgotten;

impl Laws for CompletionIsNeverForgotten {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        writing(at.complete(lease, with), |row| row.retain_until = Timestamp(u64::MAX))
    }
}

/// A key that is used again after its retention is told of a takeover.
#[derive(Debug)]
struct ForgottenKeyIsCountedOn;

impl Laws for ForgottenKeyIsCountedOn {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let forgotten = at.row.as_ref().filter(|_| at.kept().is_none());
        let before = forgotten.map_or(0, |row| row.attempts);
        granting(at.reserve(attempt), |row, record| {
            row.attempts += before;
            record.attempts = row.attempts;
        })
    }
}

/// The record was given its end when it was made.
#[derive(Debug)]
struct CompletionIsKeptAsTheAttemptAsked;

impl Laws for CompletionIsKeptAsTheAttemptAsked {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let end = at.kept().map(|row| row.retain_until);
        writing(at.complete(lease, with), |row| {
            row.retain_until = end.map_or(row.retain_until, |end| end.min(row.retain_until));
        })
    }
}

/// No expiry is longer than a year.
#[derive(Debug)]
struct LongRetentionIsCut;

impl Laws for LongRetentionIsCut {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let most = at.now.after(Duration::from_hours(365 * 24));
        writing(at.complete(lease, with), |row| row.retain_until = row.retain_until.min(most))
    }
}

/// The lease is the expiry of the record: what is unknown becomes "never seen".
#[derive(Debug)]
struct AbandonedIsForgottenAtItsEnd;

impl Laws for AbandonedIsForgottenAtItsEnd {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let now = at.now;
        let own = at.is_pending_for(attempt.id());
        at.blind_if(|row| !own && lease_end(row).is_some_and(|end| end < now)).reserve(attempt)
    }
}

/// C25: what nobody completed is kept for ever.
#[derive(Debug)]
struct AbandonedIsNeverForgotten;

impl Laws for AbandonedIsNeverForgotten {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let far = at.now.after(Duration::from_mins(1));
        let mut at = at;
        if let Some(row) = at.row.as_mut().filter(|row| matches!(row.phase, Phase::Pending { .. }))
        {
            row.retain_until = row.retain_until.max(far);
        }
        at.reserve(attempt)
    }
}

/// A holder writes to a record that was to be forgotten, until somebody looks.
#[derive(Debug)]
struct ForgottenHolderWrites;

impl Laws for ForgottenHolderWrites {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let far = at.now.after(Duration::from_mins(1));
        let mut at = at;
        if let Some(row) = at.row.as_mut() {
            row.retain_until = row.retain_until.max(far);
        }
        at.complete(lease, with)
    }

    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        if at.kept().is_none() { Err(StoreError::LeaseLost) } else { at.release(lease) }
    }
}

/// A renewal moves the lease beyond the end of its record.
#[derive(Debug)]
struct RenewKeepsTheRetention;

impl Laws for RenewKeepsTheRetention {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let was = at.kept().map(|row| row.retain_until);
        writing(at.renew(lease, by), |row| {
            if !by.is_zero() {
                row.retain_until = was.unwrap_or(row.retain_until);
            }
        })
    }
}

/// What was given up is kept until its lease would have ended, and then its retention.
#[derive(Debug)]
struct GivingUpKeepsTheRetention;

impl Laws for GivingUpKeepsTheRetention {
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let was = at.kept().map(|row| row.retain_until);
        writing(at.renew(lease, by), |row| {
            if by.is_zero() {
                row.retain_until = was.unwrap_or(row.retain_until);
            }
        })
    }
}

/// A takeover updates the lease, and not for how long the record is kept.
#[derive(Debug)]
struct TakeoverKeepsTheFirstRetention;

impl Laws for TakeoverKeepsTheFirstRetention {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let first = at.kept().and_then(|row| Some((lease_end(row)?, row.retain_until)));
        writing(at.reserve(attempt), |row| {
            if let (Some((end, until)), Some(now_ends)) = (first, lease_end(row)) {
                row.retain_until = now_ends.after(end.until(until));
            }
        })
    }
}
