//! The store's clock (law L7).

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idem_core::model::Timestamp;

use crate::sync::{AtomicU64, Ordering};

/// What the store asks for the time.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// Tokio's clock, anchored to the system's when the store was made. It never goes back, and
    /// stands still where a test has paused it.
    Monotonic {
        anchor: Timestamp,
        since: tokio::time::Instant,
    },
    Test(TestClock),
}

impl Clock {
    pub(crate) fn monotonic() -> Self {
        Self::Monotonic { anchor: wall(), since: tokio::time::Instant::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Monotonic { anchor, since } => anchor.after(since.elapsed()),
            Self::Test(clock) => clock.now(),
        }
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(0).after(since)
}

/// A clock that moves only when told to: virtual time for tests.
///
/// Clones are handles to one clock.
///
/// ```
/// use std::time::Duration;
/// use idem_memory::{MemoryStore, TestClock};
///
/// let clock = TestClock::new();
/// let store = MemoryStore::builder().clock(clock.clone()).build();
/// clock.advance(Duration::from_hours(24)); // every retention of a day has passed
/// # let _ = store;
/// ```
#[derive(Clone, Debug)]
pub struct TestClock(Arc<AtomicU64>);

impl TestClock {
    /// A clock that stands at the system's time.
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(wall().0)))
    }

    /// The time it shows.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        let to = self.now().after(by);
        self.0.store(to.0, Ordering::SeqCst);
    }

    /// Moves it back, as an operator's or a time server's correction would.
    pub fn set_back(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.0.store(self.now().0.saturating_sub(micros), Ordering::SeqCst);
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}
