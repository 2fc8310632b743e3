//! Where one property is tried: keys nobody else uses, attempts, and time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use idem_core::{Attempt, AttemptId, Fingerprint, Key, KeyError, Scope, Store};

use crate::failure::{Failure, Skip, Verdict};
use crate::faulty::{Faulty, Trouble};
use crate::harness::{Clock, Fault, Harness, Hook, HookError};
use crate::runner::Options;
use crate::subject::Subject;

/// The request that a property is about, unless it says otherwise.
pub(crate) const REQUEST: Fingerprint = Fingerprint::from_bytes([7; 32]);
/// Another request under the same key.
pub(crate) const OTHER: Fingerprint = Fingerprint::from_bytes([8; 32]);

/// A lease that does not end during a property unless time is moved on purpose.
pub(crate) const LONG: Duration = Duration::from_mins(10);
/// The retention of what a property writes, unless it says otherwise.
pub(crate) const KEPT: Duration = Duration::from_hours(1);

/// Where one property is tried. Clones share everything.
#[derive(Clone)]
pub(crate) struct Lab(Arc<Inner>);

struct Inner {
    harness: Arc<dyn Harness>,
    patience: Duration,
    hint_within: Duration,
    seed: u64,
    /// Random, so that runs on the same data do not meet.
    operation: String,
    began: Instant,
    /// Microseconds that have certainly passed, and that may have passed, on a virtual clock.
    passed: AtomicU64,
    passing: AtomicU64,
}

/// A stretch that a moment of the store's clock lies in, in time since the lab was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) earliest: Duration,
    pub(crate) latest: Duration,
}

impl Lab {
    pub(crate) fn new(harness: Arc<dyn Harness>, options: &Options, seed: u64) -> Self {
        let run = u128::from_be_bytes(*AttemptId::random().as_bytes());
        Self(Arc::new(Inner {
            harness,
            patience: options.patience,
            hint_within: options.hint_within,
            seed,
            operation: format!("conformance.{run:032x}"),
            began: Instant::now(),
            passed: AtomicU64::new(0),
            passing: AtomicU64::new(0),
        }))
    }

    pub(crate) fn harness(&self) -> &dyn Harness {
        &*self.0.harness
    }

    pub(crate) fn store(&self) -> Subject {
        Subject::new(self.0.harness.store())
    }

    /// A second handle if the harness has one, the first otherwise.
    pub(crate) async fn fork_or_store(&self) -> Verdict<Subject> {
        match self.0.harness.fork().await {
            Ok(store) => Ok(Subject::new(store)),
            Err(HookError::Missing(_)) => Ok(self.store()),
            Err(failed) => Err(failed.into()),
        }
    }

    /// A handle whose next verb takes effect and then fails; imitated if the harness cannot.
    pub(crate) async fn store_about_to_lose_a_reply(&self) -> Verdict<Subject> {
        match self.0.harness.fail_next(Fault::After).await {
            Ok(()) => Ok(self.store()),
            Err(HookError::Missing(_)) => {
                let store: Arc<dyn Store> = self.0.harness.store();
                let lossy = Faulty::new(store);
                lossy.next_of_any(Trouble::ReplyLost);
                Ok(Subject::new(Arc::new(lossy)))
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// The source of chance for this property in this run.
    pub(crate) fn rng(&self) -> Rng {
        Rng::with_seed(self.0.seed)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.0.seed
    }

    /// How long a hint, or a subscription, may take before it counts as missing.
    pub(crate) fn hint_within(&self) -> Duration {
        self.0.hint_within
    }
}

/// Keys and attempts.
impl Lab {
    /// The name of an operation that no other run uses.
    pub(crate) fn operation(&self) -> &str {
        &self.0.operation
    }

    /// The key with this text in the run's own scope.
    pub(crate) fn key_named(&self, text: &str) -> Result<Key, KeyError> {
        Key::new(Scope::new(&self.0.operation)?, text)
    }

    /// An attempt at a key that nobody has used.
    pub(crate) fn attempt(&self) -> Verdict<Attempt> {
        let text = u128::from_be_bytes(*AttemptId::random().as_bytes());
        Ok(attempt_at(self.key_named(&format!("{text:032x}"))?))
    }
}

/// An attempt at this key with the suite's usual request, lease and retention.
pub(crate) fn attempt_at(key: Key) -> Attempt {
    Attempt::new(key, REQUEST).lease(LONG).retention(KEPT)
}

/// Another attempt at the same request.
pub(crate) fn rival(of: &Attempt) -> Attempt {
    asks(of, of.fingerprint())
}

/// An attempt at another request under the same key.
pub(crate) fn stranger(to: &Attempt) -> Attempt {
    asks(to, OTHER)
}

fn asks(like: &Attempt, fingerprint: Fingerprint) -> Attempt {
    Attempt::new(like.key().clone(), fingerprint)
        .lease(like.lease_for())
        .retention(like.retention_for())
}

/// Time.
impl Lab {
    pub(crate) fn has_virtual_clock(&self) -> bool {
        self.0.harness.clock() == Clock::Virtual
    }

    /// Skips the property unless time can be told to the microsecond.
    pub(crate) fn needs_virtual_clock(&self) -> Verdict {
        if self.has_virtual_clock() {
            return Ok(());
        }
        Err(Failure::Skipped(Skip::Missing(Hook::Advance)))
    }

    /// The least difference in time that is told apart: one microsecond if time is virtual.
    pub(crate) fn tick(&self) -> Duration {
        match self.0.harness.clock() {
            Clock::Real { tick } => tick.max(Duration::from_millis(10)),
            Clock::Virtual => Duration::from_micros(1),
        }
    }

    /// A lease short enough to wait for its end.
    pub(crate) fn short(&self) -> Duration {
        if self.has_virtual_clock() { Duration::from_secs(30) } else { self.tick() * 4 }
    }

    /// Lets `by` pass for the store, and a tick more if time is not exact.
    pub(crate) async fn pass(&self, by: Duration) -> Verdict {
        if self.has_virtual_clock() {
            let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
            self.0.passing.fetch_add(micros, Ordering::SeqCst);
            self.0.harness.advance(by).await?;
            self.0.passed.fetch_add(micros, Ordering::SeqCst);
            return Ok(());
        }
        if by > self.0.patience {
            return Err(Failure::Skipped(Skip::Patience(format!(
                "needs {by:?} to pass, and really sleeps for {:?} at most",
                self.0.patience
            ))));
        }
        tokio::time::sleep(by + self.tick()).await;
        Ok(())
    }

    /// Now, by the store's clock.
    pub(crate) fn now(&self) -> Moment {
        if self.has_virtual_clock() {
            return Moment {
                earliest: Duration::from_micros(self.0.passed.load(Ordering::SeqCst)),
                latest: Duration::from_micros(self.0.passing.load(Ordering::SeqCst)),
            };
        }
        let (elapsed, tick) = (self.0.began.elapsed(), self.tick());
        Moment { earliest: elapsed.saturating_sub(tick), latest: elapsed + tick }
    }
}

impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab").field("seed", &self.0.seed).finish_non_exhaustive()
    }
}
