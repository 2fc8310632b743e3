//! One effect per key, over any store.

mod action;
mod admission;
mod breaker;
mod call;
mod classify;
mod codec;
#[cfg(all(test, shuttle))]
mod concurrency;
mod detached;
mod ending;
mod engine;
mod error;
mod flight;
mod guarded;
mod heartbeat;
mod jitter;
mod moment;
mod nesting;
mod operation;
mod outcome;
mod policy;
mod probe;
mod recording;
mod reference;
mod replaying;
mod sync;
mod ticket;
mod waiting;
mod work;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

pub use self::action::RunningAttempt;
pub use self::call::{Call, Keyed};
pub use self::classify::{
    ActionError, ByEffect, ByTrait, Classify, Effect, Keeping, NoEffect, by_trait, effect, keeping,
    no_effect,
};
pub use self::codec::{Codec, Json};
pub use self::error::{CallError, Invalid, RunError};
pub use self::guarded::StoreBudget;
pub use self::operation::Operation;
pub use self::outcome::Outcome;
pub use self::policy::{Abandoned, InFlight, OnStoreFailure, Oversize};
pub use self::probe::{NoProbe, Probe, ProbeFn, Probed};
pub use self::reference::References;

use self::engine::Engine;
use self::flight::Flights;
use self::guarded::Guarded;
use self::policy::{Policy, policy_setters};
use crate::observe::{Observer, Observers};
use crate::store::Store;

/// Runs an action once per key, over any [`Store`].
///
/// Cloning is cheap, and clones share everything. Use one coordinator per store in a process:
/// callers with the same key then share one remote wait and, while the store is down, one run.
#[derive(Clone, Debug)]
pub struct Coordinator {
    engine: Arc<Engine>,
    defaults: Policy,
}

impl Coordinator {
    /// A coordinator over `store` with every default.
    ///
    /// An `Arc` of a store is a store: pass one to share it.
    pub fn builder(store: impl Store + 'static) -> Builder {
        Builder {
            store: Arc::new(store),
            budget: StoreBudget::default(),
            policy: Policy::default(),
            observers: Observers::default(),
            logs: true,
        }
    }

    /// The operation of this name: the scope of its keys, and what its policy is.
    ///
    /// A name that has not 1 to 255 characters is refused when a call is run.
    pub fn operation(&self, name: &str) -> Operation {
        Operation::new(Arc::clone(&self.engine), self.defaults.clone(), name)
    }

    /// Takes no new calls and waits until those under way are done and recorded, those included
    /// whose callers have left.
    ///
    /// # Errors
    /// [`StillRunning`] if some are not after `timeout`. They go on as long as the runtime does.
    ///
    /// # Cancellation
    /// The coordinator stays closed to new calls.
    pub async fn drain(&self, timeout: Duration) -> Result<(), StillRunning> {
        let tracker = &self.engine.tracker;
        tracker.close();
        tokio::time::timeout(timeout, tracker.wait())
            .await
            .map_err(|_| StillRunning { calls: tracker.len() })
    }
}

/// Calls were still under way when the time to drain was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{calls} calls are still under way")]
#[non_exhaustive]
pub struct StillRunning {
    /// How many calls, and results on their way into the store.
    pub calls: usize,
}

/// Configures a [`Coordinator`].
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    store: Arc<dyn Store>,
    budget: StoreBudget,
    policy: Policy,
    observers: Observers,
    logs: bool,
}

impl Builder {
    policy_setters!(policy);

    /// How much time the store gets.
    pub fn store_budget(self, budget: StoreBudget) -> Self {
        Self { budget, ..self }
    }

    /// Tells `observer` of every transition.
    pub fn observe(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.add(Arc::new(observer));
        self
    }

    /// Does not log by itself. With the feature `tracing`, a coordinator otherwise reports to
    /// [`Tracing`](crate::observe::Tracing).
    pub fn without_logs(self) -> Self {
        Self { logs: false, ..self }
    }

    /// The coordinator.
    ///
    /// # Errors
    /// [`Invalid`] if the defaults cannot work: a duration outside its range, a lease too short
    /// for the store's budget.
    pub fn build(self) -> Result<Coordinator, Invalid> {
        let Self { store, budget, policy, observers, logs } = self;
        policy.check(&budget)?;
        let observers = if logs { observers.with_logs() } else { observers };
        let engine = Engine {
            store: Guarded::new(store, budget),
            flights: Flights::default(),
            observers,
            tracker: TaskTracker::new(),
        };
        Ok(Coordinator { engine: Arc::new(engine), defaults: policy })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store: _, budget, policy, observers, logs: _ } = self;
        f.debug_struct("Builder")
            .field("budget", budget)
            .field("policy", policy)
            .field("observers", observers)
            .finish_non_exhaustive()
    }
}
