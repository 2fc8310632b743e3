//! Spreads in time what would otherwise happen at once.

use std::time::Duration;

/// The duration, plus or minus up to half of it.
pub(crate) fn jittered(around: Duration) -> Duration {
    // Without randomness there is no jitter, which costs some contention and nothing else.
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    around.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX))
}
