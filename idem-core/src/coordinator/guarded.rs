//! The store within a time budget.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};

use super::breaker::Breaker;
use super::jitter::jittered;
use super::moment::after;
use crate::attempt::{Attempt, Lease};
use crate::error::{Applied, StoreError};
use crate::key::Key;
use crate::panics::caught;
use crate::record::Record;
use crate::store::Store;
use crate::watch::Watch;

/// How much time a store gets, and when it is given up for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreBudget {
    /// How long one try may take. Default: 500 ms. A third of the shortest lease at most.
    pub per_try: Duration,
    /// How often a verb is tried (law L1 makes that safe). Default: 3.
    pub tries: u32,
    /// How long all tries of one verb may take together. Default: 2 s.
    pub total: Duration,
    /// After how many failed tries in a row the store is not asked for a while. Default: 5.
    pub breaker_after: u32,
    /// For how long. Default: 1 s.
    pub breaker_pause: Duration,
}

impl Default for StoreBudget {
    fn default() -> Self {
        Self {
            per_try: Duration::from_millis(500),
            tries: 3,
            total: Duration::from_secs(2),
            breaker_after: 5,
            breaker_pause: Duration::from_secs(1),
        }
    }
}

impl StoreBudget {
    /// How long one try may take.
    pub fn per_try(self, per_try: Duration) -> Self {
        Self { per_try, ..self }
    }

    /// How often a verb is tried.
    pub fn tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// How long all tries of one verb may take together.
    pub fn total(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    /// After how many failed tries in a row the store is left alone, and for how long.
    pub fn breaker(self, after: u32, pause: Duration) -> Self {
        Self { breaker_after: after, breaker_pause: pause, ..self }
    }
}

/// Whether an open breaker stops a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// It does: the caller has something else to do than wait for a store that is down.
    Breaker,
    /// It does not: what happens to a lease that is held must not depend on other calls.
    Open,
}

/// Why a verb failed, in the end.
#[derive(Debug)]
pub(super) struct Failure {
    /// What its last try came to.
    pub(super) error: StoreError,
    /// Whether any of its tries may have been applied.
    pub(super) applied: Applied,
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// A store whose every call ends within the budget.
pub(super) struct Guarded {
    store: Arc<dyn Store>,
    budget: StoreBudget,
    breaker: Breaker,
}

impl Guarded {
    pub(super) fn new(store: Arc<dyn Store>, budget: StoreBudget) -> Self {
        let breaker = Breaker::new(budget.breaker_after, budget.breaker_pause);
        Self { store, budget, breaker }
    }

    pub(super) fn budget(&self) -> &StoreBudget {
        &self.budget
    }

    pub(super) async fn reserve(&self, attempt: &Attempt) -> Result<Record, Failure> {
        self.call(Gate::Breaker, self.budget.tries, || self.store.reserve(attempt)).await
    }

    /// One try: the heartbeat has a rhythm of its own.
    pub(super) async fn renew(&self, lease: &Lease, by: Duration) -> Result<Duration, StoreError> {
        Ok(self.call(Gate::Open, 1, || self.store.renew(lease, by)).await?)
    }

    pub(super) async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        let verb = || self.store.complete(lease, payload, retention);
        Ok(self.call(Gate::Open, self.budget.tries, verb).await?)
    }

    pub(super) async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        Ok(self.call(Gate::Open, self.budget.tries, || self.store.release(lease)).await?)
    }

    /// Hints, or none if the store gives none now: polling is the truth.
    pub(super) async fn watch(&self, key: &Key) -> Watch {
        let watch = self.call(Gate::Breaker, 1, || self.store.watch(key)).await;
        watch.unwrap_or_else(|_| Watch::never())
    }

    async fn call<T, Fut>(
        &self,
        gate: Gate,
        tries: u32,
        verb: impl Fn() -> Fut,
    ) -> Result<T, Failure>
    where
        Fut: Future<Output = Result<T, StoreError>>,
    {
        if gate == Gate::Breaker && !self.breaker.lets_through() {
            let error = StoreError::unavailable(Applied::No, "the store did not answer lately");
            return Err(Failure { error, applied: Applied::No });
        }
        let mut now = Instant::now();
        let end = after(now, self.budget.total);
        let mut applied = Applied::No;
        for tried in 1.. {
            let asked = caught(async { verb().await });
            let error = match timeout_at(end.min(after(now, self.budget.per_try)), asked).await {
                Ok(Ok(Ok(done))) => {
                    self.breaker.answered();
                    return Ok(done);
                }
                Ok(Ok(Err(error))) => error,
                Ok(Err(panicked)) => StoreError::unavailable(Applied::Unknown, panicked),
                Err(_) => StoreError::unavailable(Applied::Unknown, "no answer in time"),
            };
            let StoreError::Unavailable { applied: this, source } = error else {
                self.breaker.answered();
                return Err(Failure { error, applied });
            };
            self.breaker.failed();
            if this == Applied::Unknown {
                applied = Applied::Unknown;
            }
            let pause = jittered(Duration::from_millis(10) * 4_u32.saturating_pow(tried.min(4)));
            if tried >= tries || Instant::now() + pause >= end {
                let error = StoreError::Unavailable { applied, source };
                return Err(Failure { error, applied });
            }
            sleep(pause).await;
            now = Instant::now();
        }
        let error = StoreError::unavailable(applied, "no try was made");
        Err(Failure { error, applied })
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store: _, budget, breaker } = self;
        f.debug_struct("Guarded")
            .field("budget", budget)
            .field("breaker", breaker)
            .finish_non_exhaustive()
    }
}
