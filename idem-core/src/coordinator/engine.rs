//! What all calls of a coordinator share.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::action::Holding;
use super::detached::in_span;
use super::flight::Flights;
use super::guarded::Guarded;
use super::policy::Policy;
use crate::attempt::Attempt;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::observe::{Event, Observers, Transition};

#[derive(Debug)]
pub(super) struct Engine {
    pub(super) store: Guarded,
    pub(super) flights: Flights,
    pub(super) observers: Observers,
    /// Everything that `drain` waits for.
    pub(super) tracker: TaskTracker,
}

impl Engine {
    /// Does `work` in the background, in the log span at hand; `drain` waits for it.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(in_span(work));
    }
}

/// What a call asks for, checked.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) engine: Arc<Engine>,
    pub(super) key: Key,
    pub(super) fingerprint: Fingerprint,
    pub(super) policy: Policy,
    /// Whether an abandoned key may be taken over: to run again, or to ask a probe.
    pub(super) takeover: bool,
}

impl Request {
    pub(super) fn attempt(&self) -> Attempt {
        Attempt::new(self.key.clone(), self.fingerprint)
            .lease(self.policy.lease)
            .retention(self.policy.retention)
            .takeover(self.takeover)
    }

    /// The lease is lost. Whoever finds out, and however often: it is told once.
    pub(super) fn lost(&self, holding: &Holding) {
        if holding.lose() {
            self.tell(Transition::LeaseLost);
        }
    }

    pub(super) fn tell(&self, what: Transition) {
        self.engine.observers.tell(&Event { key: self.key.clone(), what });
    }
}
