//! The ranges that durations and names must lie in.
//!
//! Every store refuses a value outside its range before it does any work, so that no duration
//! wraps, rounds to nothing or becomes "for ever" in one backend and not in another.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::{Refusal, StoreError};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// How long a lease may be: 10 milliseconds to 24 hours.
pub const LEASE: RangeInclusive<Duration> = Duration::from_millis(10)..=DAY;

/// How long a record may be retained: 1 minute to 10 years (3,650 days).
pub const RETENTION: RangeInclusive<Duration> = MINUTE..=Duration::from_hours(3_650 * 24);

/// How many characters (Unicode scalar values) a key, an operation or a tenant may have: 1 to 255.
pub const NAME_CHARS: RangeInclusive<usize> = 1..=255;

/// Refuses a lease outside [`LEASE`].
///
/// # Errors
/// [`StoreError::Refused`] with [`Refusal::Invalid`]; nothing was written.
pub fn check_lease(lease: Duration) -> Result<(), StoreError> {
    check("lease", lease, &LEASE)
}

/// Refuses what [`Store::renew`](crate::Store::renew) does not take: neither zero nor in [`LEASE`].
///
/// # Errors
/// [`StoreError::Refused`] with [`Refusal::Invalid`]; nothing was written.
pub fn check_renewal(lease: Duration) -> Result<(), StoreError> {
    if lease.is_zero() { Ok(()) } else { check_lease(lease) }
}

/// Refuses a retention outside [`RETENTION`].
///
/// # Errors
/// [`StoreError::Refused`] with [`Refusal::Invalid`]; nothing was written.
pub fn check_retention(retention: Duration) -> Result<(), StoreError> {
    check("retention", retention, &RETENTION)
}

/// The retention in [`RETENTION`] that is nearest to the given one.
pub(crate) fn nearest_retention(retention: Duration) -> Duration {
    retention.clamp(*RETENTION.start(), *RETENTION.end())
}

fn check(what: &str, given: Duration, range: &RangeInclusive<Duration>) -> Result<(), StoreError> {
    if range.contains(&given) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    Err(StoreError::refused(
        Refusal::Invalid,
        format!("a {what} of {given:?} is outside {least:?} to {most:?}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(Duration) -> Result<(), StoreError>;

    const NANO: Duration = Duration::from_nanos(1);

    #[test]
    fn both_ends_of_a_range_are_in_it_and_nothing_beyond() {
        let ranges: [(Check, _); 3] =
            [(check_lease, LEASE), (check_renewal, LEASE), (check_retention, RETENTION)];
        for (check, range) in ranges {
            let (least, most) = (*range.start(), *range.end());
            for inside in [least, least + NANO, most.saturating_sub(NANO), most] {
                assert!(check(inside).is_ok(), "{inside:?}");
            }
            for outside in [NANO, least.saturating_sub(NANO), most + NANO, Duration::MAX] {
                let error = check(outside).unwrap_err();
                assert_eq!(error.refusal(), Some(Refusal::Invalid), "{outside:?}");
            }
        }
    }

    #[test]
    fn zero_ends_a_lease_and_is_none() {
        assert!(check_renewal(Duration::ZERO).is_ok());
        assert!(check_lease(Duration::ZERO).is_err());
        assert!(check_retention(Duration::ZERO).is_err());
    }

    #[test]
    fn a_refusal_says_what_was_given_and_what_is_taken() {
        let error = check_lease(Duration::from_millis(9)).unwrap_err();
        let source = std::error::Error::source(&error).unwrap();
        assert_eq!(source.to_string(), "a lease of 9ms is outside 10ms to 86400s");
    }
}
