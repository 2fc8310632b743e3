//! Stops asking a store that does not answer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::moment::after;

/// Opens after so many failures in a row; while open, calls fail at once. When the pause is over,
/// one call per pause is let through, and the first success closes it.
#[derive(Debug)]
pub(super) struct Breaker {
    after: u32,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    pub(super) fn new(after: u32, pause: Duration) -> Self {
        Self { after, pause, state: Mutex::default() }
    }

    /// Whether a call may be made now. One that may has to be reported, unless it is dropped:
    /// then the next is let through after another pause.
    pub(super) fn lets_through(&self) -> bool {
        let mut state = self.state();
        match state.open_until {
            None => true,
            Some(until) if Instant::now() < until => false,
            Some(_) => {
                state.open_until = Some(after(Instant::now(), self.pause));
                true
            }
        }
    }

    pub(super) fn answered(&self) {
        *self.state() = State::default();
    }

    pub(super) fn failed(&self) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        // Once open, only a call that is let through begins another pause: one that failed late, or
        // that no breaker stops, says nothing about the store now.
        if state.failures >= self.after && state.open_until.is_none() {
            state.open_until = Some(after(Instant::now(), self.pause));
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn opens_after_failures_in_a_row_and_lets_one_through_after_the_pause() {
        let breaker = Breaker::new(2, PAUSE);
        breaker.failed();
        breaker.answered();
        breaker.failed();
        assert!(breaker.lets_through(), "a success in between starts the count again");
        breaker.failed();
        assert!(!breaker.lets_through());
        tokio::time::advance(PAUSE).await;
        assert!(breaker.lets_through());
        assert!(!breaker.lets_through(), "one per pause");
        tokio::time::advance(PAUSE / 2).await;
        breaker.failed();
        tokio::time::advance(PAUSE / 2).await;
        assert!(breaker.lets_through(), "a failure while it is open does not keep it open");
        assert!(!breaker.lets_through());
        breaker.answered();
        assert!(breaker.lets_through() && breaker.lets_through());
    }
}
