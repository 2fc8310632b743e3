//! Stores that take a duration which they cannot keep.

use std::time::Duration;

use idem_core::{Attempt, Lease, Record, Refusal, StoreError, limits};

use crate::wrong::laws::{Answer, Asked, At, Completion, Laws};

pub(super) const ALL: &[&dyn Laws] = &[
    &ZeroLeaseIsForever,
    &AnyLeaseIsTaken,
    &LeaseWrapsAt32Bits,
    &AnyRetentionOfAnAttemptIsTaken,
    &AnyRenewalIsTaken,
    &AnyRetentionOfACompletionIsTaken,
    &LimitsAreExclusive,
    &ChecksLast,
];

fn refused() -> StoreError {
    StoreError::refused(Refusal::Invalid, "out of range")
}

/// No end is no end.
#[derive(Debug)]
struct ZeroLeaseIsForever;

impl Laws for ZeroLeaseIsForever {
    fn check(&self, asked: Asked<'_>) -> Result<(), StoreError> {
        match asked {
            Asked::Attempt(attempt) if attempt.lease_for().is_zero() => Ok(()),
            asked => asked.check(),
        }
    }
}

/// A lease is whatever was asked for, but nothing.
#[derive(Debug)]
struct AnyLeaseIsTaken;

impl Laws for AnyLeaseIsTaken {
    fn check(&self, asked: Asked<'_>) -> Result<(), StoreError> {
        match asked {
            Asked::Attempt(attempt) if attempt.lease_for().is_zero() => Err(refused()),
            Asked::Attempt(attempt) => limits::check_retention(attempt.retention_for()),
            asked => asked.check(),
        }
    }
}

/// Milliseconds in 32 bits, wrapped before they are checked.
#[derive(Debug)]
struct LeaseWrapsAt32Bits;

impl Laws for LeaseWrapsAt32Bits {
    fn check(&self, asked: Asked<'_>) -> Result<(), StoreError> {
        match asked {
            Asked::Attempt(attempt) if !attempt.lease_for().is_zero() => {
                let wrapped = attempt.lease_for().as_millis() & u128::from(u32::MAX);
                let wrapped = u64::try_from(wrapped).unwrap_or(u64::MAX).max(10);
                limits::check_lease(Duration::from_millis(wrapped))?;
                limits::check_retention(attempt.retention_for())
            }
            asked => asked.check(),
        }
    }
}

/// An abandoned record is kept for however long was asked, or not at all.
#[derive(Debug)]
struct AnyRetentionOfAnAttemptIsTaken;

impl Laws for AnyRetentionOfAnAttemptIsTaken {
    fn check(&self, asked: Asked<'_>) -> Result<(), StoreError> {
        match asked {
            Asked::Attempt(attempt) => limits::check_lease(attempt.lease_for()),
            asked => asked.check(),
        }
    }
}

/// A renewal is as long as was asked.
#[derive(Debug)]
struct AnyRenewalIsTaken;

impl Laws for AnyRenewalIsTaken {
    fn check(&self, asked: Asked<'_>) -> Result<(), StoreError> {
        if matches!(asked, Asked::Renewal(_)) { Ok(()) } else { asked.check() }
    }
}

/// A completion is kept for however long was asked, or not at all.
#[derive(Debug)]
struct AnyRetentionOfACompletionIsTaken;

impl Laws for AnyRetentionOfACompletionIsTaken {
    fn check(&self, asked: Asked<'_>) -> Result<(), StoreError> {
        if matches!(asked, Asked::Retention(_)) { Ok(()) } else { asked.check() }
    }
}

/// The limits themselves are out of bounds.
#[derive(Debug)]
struct LimitsAreExclusive;

impl Laws for LimitsAreExclusive {
    fn check(&self, asked: Asked<'_>) -> Result<(), StoreError> {
        let at_the_limit = match asked {
            Asked::Attempt(attempt) => attempt.lease_for() == *limits::LEASE.end(),
            Asked::Renewal(by) => by == *limits::LEASE.end(),
            Asked::Retention(retention) => retention == *limits::RETENTION.end(),
        };
        if at_the_limit { Err(refused()) } else { asked.check() }
    }
}

/// A constraint of the table: nothing is refused unless it would be written.
#[derive(Debug)]
struct ChecksLast;

impl Laws for ChecksLast {
    fn check(&self, _asked: Asked<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let step = at.reserve(attempt)?;
        if step.write.is_some() {
            attempt.check()?;
        }
        Ok(step)
    }

    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        let step = at.renew(lease, by)?;
        limits::check_renewal(by)?;
        Ok(step)
    }

    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let step = at.complete(lease, with)?;
        limits::check_retention(with.retention)?;
        Ok(step)
    }
}
