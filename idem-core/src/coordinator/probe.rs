//! Asking the provider what became of an abandoned attempt.

use std::fmt;
use std::future::Future;

use async_trait::async_trait;

use super::action::RunningAttempt;

/// What the provider says of an attempt that was abandoned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it happened, it did not, or it is not known")]
pub enum Probed<T> {
    /// The effect happened, with this value. It is recorded, and the action does not run.
    Happened(T),
    /// It certainly did not happen. The action runs.
    DidNotHappen,
    /// It cannot be told. The record stays abandoned, and the call is
    /// [`CallError::OutcomeUnknown`](super::CallError::OutcomeUnknown).
    Unknown,
}

/// Asks what became of an abandoned attempt; made by [`Call::probe`](super::Call::probe).
///
/// It is asked under a lease of its own, so only one caller asks at a time.
#[async_trait]
pub trait Probe<T>: Send {
    /// Whether there is anything to ask.
    fn is_some(&self) -> bool {
        true
    }

    /// What became of the attempts before `attempt`.
    async fn ask(self, attempt: RunningAttempt) -> Probed<T>;
}

/// Nobody is asked. The default.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct NoProbe;

#[async_trait]
impl<T> Probe<T> for NoProbe {
    fn is_some(&self) -> bool {
        false
    }

    async fn ask(self, _: RunningAttempt) -> Probed<T> {
        Probed::DidNotHappen
    }
}

/// A closure is asked.
pub struct ProbeFn<F>(pub(super) F);

#[async_trait]
impl<T, F, Fut> Probe<T> for ProbeFn<F>
where
    F: FnOnce(RunningAttempt) -> Fut + Send,
    Fut: Future<Output = Probed<T>> + Send,
{
    async fn ask(self, attempt: RunningAttempt) -> Probed<T> {
        (self.0)(attempt).await
    }
}

impl<F> fmt::Debug for ProbeFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProbeFn")
    }
}
