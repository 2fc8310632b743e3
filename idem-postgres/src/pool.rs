//! The store's own connections, and what is done about those that may be dead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, PgPool};

/// When a connection last broke. Those that were made before are replaced instead of used: the
/// server was restarted, or is a standby now.
///
/// With it nothing has to be asked of a connection before it is used, which would cost a round
/// trip each time.
#[derive(Clone, Debug)]
pub(crate) struct Trouble(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    began: Instant,
    /// In microseconds since then; zero for never.
    last: AtomicU64,
}

impl Trouble {
    pub(crate) fn none() -> Self {
        Self(Arc::new(Inner { began: Instant::now(), last: AtomicU64::new(0) }))
    }

    /// A connection broke just now.
    pub(crate) fn note(&self) {
        self.0.last.fetch_max(self.now().max(1), Ordering::Relaxed);
    }

    /// Whether a connection of this age was made before the last trouble.
    fn has_seen(&self, age: Duration) -> bool {
        let made = self.now().saturating_sub(micros(age));
        made < self.0.last.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        micros(self.0.began.elapsed())
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A pool of the store's own, which connects when it is first asked.
pub(crate) fn own(options: PgConnectOptions, connections: u32, trouble: &Trouble) -> PgPool {
    let trouble = trouble.clone();
    // A statement in one piece has keys and payloads in it, which no log is to have.
    let options = options.disable_statement_logging();
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        .before_acquire(move |_, about| {
            let fit = !trouble.has_seen(about.age);
            Box::pin(async move { Ok(fit) })
        })
        .connect_lazy_with(options)
}

/// How long a verb waits for a connection. The coordinator's budget for a try is shorter.
const ACQUIRE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_there_has_seen_the_trouble() {
        let trouble = Trouble::none();
        std::thread::sleep(Duration::from_millis(5));
        assert!(!trouble.has_seen(Duration::from_millis(5)), "there was none");
        trouble.note();
        assert!(trouble.has_seen(Duration::from_millis(5)));
        std::thread::sleep(Duration::from_millis(1));
        assert!(!trouble.has_seen(Duration::ZERO));
    }
}
