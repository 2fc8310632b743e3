//! Moments that no duration can push beyond what a clock can hold.

use std::time::Duration;

use tokio::time::Instant;

/// Far enough to count as never, near enough for every clock: 30 years.
pub(super) const FAR: Duration = Duration::from_hours(30 * 365 * 24);

/// The moment `by` after `from`: adding to an `Instant` panics where this stops at [`FAR`].
pub(super) fn after(from: Instant, by: Duration) -> Instant {
    from + by.min(FAR)
}
