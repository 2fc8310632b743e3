//! Waiting for a record to change: hints are an optimisation, polling is the truth.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::detached::Caller;
use super::engine::Request;
use super::jitter::jittered;
use super::moment::after;
use crate::watch::Watch;

/// The first interval between two looks at a store that cannot hint.
const FIRST_POLL: Duration = Duration::from_millis(20);

/// One wait for one key: no connection is held, and nothing is sent while nothing happens.
#[derive(Debug)]
pub(super) struct Waiting {
    watch: Watch,
    interval: Duration,
    longest: Duration,
    deadline: Instant,
}

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paused {
    /// There may be something new.
    Look,
    /// The caller's patience is over.
    TimedOut,
    /// Nobody waits any more.
    CallerGone,
}

impl Waiting {
    /// Subscribes. The record has to be looked at once after this, and before the first pause.
    pub(super) async fn begin(request: &Request, deadline: Instant) -> Self {
        let watch = request.engine.store.watch(&request.key).await;
        let longest = request.policy.poll;
        let interval = if watch.is_never() { FIRST_POLL.min(longest) } else { longest };
        Self { watch, interval, longest, deadline }
    }

    /// Waits for a hint, the end of the other's lease, the next poll or the deadline.
    pub(super) async fn pause(&mut self, left: Duration, caller: &Caller) -> Paused {
        let now = Instant::now();
        if now >= self.deadline {
            return Paused::TimedOut;
        }
        // A lease that ends within the pause is looked at just after it has ended.
        let nap = jittered(self.interval).min(left.saturating_add(Duration::from_millis(1)));
        self.interval = self.interval.saturating_mul(2).min(self.longest);
        tokio::select! {
            () = self.watch.changed() => Paused::Look,
            () = sleep_until(after(now, nap).min(self.deadline)) => Paused::Look,
            () = caller.gone() => Paused::CallerGone,
        }
    }
}
