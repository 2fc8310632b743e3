//! Spreads in time what would otherwise happen at once.

use std::time::Duration;

use super::moment::FAR;

/// The duration, plus or minus up to a quarter of it.
pub(super) fn jittered(around: Duration) -> Duration {
    // Without randomness there is no jitter, which costs some contention and nothing else.
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    around.min(FAR).mul_f64(0.75 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}
