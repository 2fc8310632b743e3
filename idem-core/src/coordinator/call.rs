//! One call under one key.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::action::RunningAttempt;
use super::admission::{Admission, admit};
use super::classify::{Classify, Effect, NoEffect};
use super::codec::{Codec, Json};
use super::detached::{Caller, Stopped, detached};
use super::ending::{give_up, release};
use super::engine::{Engine, Request};
use super::error::{CallError, Invalid, RunError};
use super::heartbeat::Heartbeat;
use super::nesting::Nesting;
use super::outcome::Outcome;
use super::policy::{Abandoned, Policy};
use super::probe::{NoProbe, Probe, ProbeFn, Probed};
use super::recording::{Recorded, record};
use super::replaying::{Reading, read};
use super::ticket::{Started, Ticket};
use super::work::{Finished, Work};
use crate::fingerprint::Fingerprint;
use crate::key::{Key, KeyError};
use crate::panics::{Panicked, caught};

/// A key, of which it is not said yet what request it stands for.
#[derive(Debug)]
#[must_use = "a key does nothing until its call is run"]
pub struct Keyed {
    engine: Arc<Engine>,
    policy: Policy,
    key: Result<Key, KeyError>,
}

impl Keyed {
    pub(super) fn new(engine: Arc<Engine>, policy: Policy, key: Result<Key, KeyError>) -> Self {
        Self { engine, policy, key }
    }

    /// What the request is: another request under the same key is refused.
    pub fn fingerprint(self, fingerprint: Fingerprint) -> Call {
        let Self { engine, policy, key } = self;
        let (codec, errors, probe) = (Json, NoEffect, NoProbe);
        Call { engine, policy, key, fingerprint, codec, errors, probe }
    }

    /// Takes every request under the key for the same: a client that reuses a key for another
    /// request is given the first one's answer. For keys that are made from the request itself.
    pub fn without_fingerprint(self) -> Call {
        self.fingerprint(Fingerprint::from_bytes([0; 32]))
    }
}

/// One call under one key: [`run`](Self::run) it.
#[must_use = "a call does nothing until it is run"]
pub struct Call<C = Json, X = NoEffect, P = NoProbe> {
    engine: Arc<Engine>,
    policy: Policy,
    key: Result<Key, KeyError>,
    fingerprint: Fingerprint,
    codec: C,
    errors: X,
    probe: P,
}

impl<C, X, P> Call<C, X, P> {
    /// How the value is stored. Default: [`Json`].
    pub fn codec<D>(self, codec: D) -> Call<D, X, P> {
        let Self { engine, policy, key, fingerprint, errors, probe, .. } = self;
        Call { engine, policy, key, fingerprint, codec, errors, probe }
    }

    /// What the action's errors mean. Default: [`no_effect`](super::no_effect).
    pub fn errors<Y>(self, errors: Y) -> Call<C, Y, P> {
        let Self { engine, policy, key, fingerprint, codec, probe, .. } = self;
        Call { engine, policy, key, fingerprint, codec, errors, probe }
    }

    /// Asks what became of an abandoned attempt, before the action is run again.
    ///
    /// Goes before the operation's [`Abandoned`] policy.
    pub fn probe<T, F, Fut>(self, ask: F) -> Call<C, X, ProbeFn<F>>
    where
        F: FnOnce(RunningAttempt) -> Fut + Send,
        Fut: Future<Output = Probed<T>> + Send,
    {
        let Self { engine, policy, key, fingerprint, codec, errors, .. } = self;
        Call { engine, policy, key, fingerprint, codec, errors, probe: ProbeFn(ask) }
    }

    /// Runs `action` once for the key, and gives every caller its answer.
    ///
    /// Whether and when it runs is decided by the key's record and the operation's policy. It is
    /// driven to its end and recorded **even if this future is dropped**: it moves to a task of
    /// its own as soon as it has to wait for anything.
    ///
    /// The value on the first run is the value as it comes out of the codec, so first answer and
    /// replay cannot differ.
    ///
    /// # Errors
    /// [`RunError::Action`] if the action failed, now or, for an error that was kept, before;
    /// otherwise [`RunError::Call`] says why there is no answer.
    ///
    /// # Cancellation
    /// Dropped before the action has begun: nothing happened, the key is given back. After:
    /// the action goes on, and a retry gets its answer. While waiting for another: nothing.
    pub async fn run<T, E, F, Fut>(self, action: F) -> Result<Outcome<T>, RunError<E>>
    where
        F: FnOnce(RunningAttempt) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
        C: Codec<T>,
        X: Classify<E>,
        P: Probe<T> + 'static,
    {
        let (prepared, tracked) = self.prepare::<T>()?;
        let key = prepared.request.key.clone();
        detached(tracked, |caller| async move {
            let admission = admit(&prepared.request, &caller).await?;
            prepared.conduct(admission, action, Stay(caller)).await
        })
        .await
        .unwrap_or_else(|stopped| Err(stopped.of(&key).into()))
    }

    /// Runs `action` like [`run`](Self::run), but in this future: it may borrow.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancellation
    /// Dropped before the action has begun: nothing happened, the key is given back. **While the
    /// action runs: the action is dropped with it**, whether it had an effect is unknown, and the
    /// lease is left to end; the key is then abandoned. After the action: it is recorded all the
    /// same.
    pub async fn run_borrowed<T, E, F, Fut>(self, action: F) -> Result<Outcome<T>, RunError<E>>
    where
        F: FnOnce(RunningAttempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Codec<T>,
        X: Classify<E>,
        P: Probe<T>,
    {
        let (prepared, tracked) = self.prepare::<T>()?;
        let request = Arc::clone(&prepared.request);
        let admission =
            detached(tracked.clone(), |caller| async move { admit(&request, &caller).await });
        let key = &prepared.request.key;
        let admission = admission.await.unwrap_or_else(|stopped| Err(stopped.of(key)))?;
        // Until the end of this future, or its drop.
        let _tracked = tracked;
        prepared.conduct(admission, action, Leave).await
    }

    /// All that can be refused is refused here, before anything is done.
    fn prepare<T>(self) -> Result<(Prepared<C, X, P>, TaskTrackerToken), CallError>
    where
        C: Codec<T>,
        P: Probe<T>,
    {
        let Self { engine, policy, key, fingerprint, codec, errors, probe } = self;
        if Handle::try_current().is_err() {
            return Err(CallError::NoRuntime);
        }
        policy.check(engine.store.budget())?;
        let codec_id = codec.id();
        if !codec_id.is_given() {
            return Err(Invalid::Codec(codec_id.0).into());
        }
        let key = key.map_err(Invalid::Key)?;
        let takeover = probe.is_some() || policy.abandoned != Abandoned::Refuse;
        let request = Arc::new(Request { engine, key, fingerprint, policy, takeover });
        let nesting = Nesting::here();
        if nesting.contains(&request) {
            return Err(CallError::Reentrant { key: request.key.clone() });
        }
        // First tracked, then checked: a drain either waits for the call or is seen by it.
        let tracked = request.engine.tracker.token();
        if request.engine.tracker.is_closed() {
            return Err(CallError::Draining);
        }
        Ok((Prepared { request, nesting, codec, errors, probe }, tracked))
    }
}

impl<C, X, P> fmt::Debug for Call<C, X, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A call that may be made.
struct Prepared<C, X, P> {
    request: Arc<Request>,
    nesting: Nesting,
    codec: C,
    errors: X,
    probe: P,
}

impl<C, X, P> Prepared<C, X, P> {
    async fn conduct<T, E, F, Fut>(
        self,
        admission: Admission,
        action: F,
        shore: impl Shore,
    ) -> Result<Outcome<T>, RunError<E>>
    where
        F: FnOnce(RunningAttempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Codec<T>,
        X: Classify<E>,
        P: Probe<T>,
    {
        let Self { request, nesting, codec, errors, probe } = self;
        let ticket = match admission {
            Admission::Run(ticket) => ticket,
            Admission::Replay { answer, recorded } => {
                let reading = Reading { request: &request, codec: &codec, errors: &errors };
                return read(&reading, &answer, recorded).await;
            }
        };
        if shore.is_deserted() {
            // The caller left before the action began; dropping the ticket gives the key back.
            drop(ticket);
            return Err(CallError::Interrupted.into());
        }
        let Some(started) = Ticket::start(ticket) else {
            return Err(CallError::Interrupted.into());
        };
        let work = Work { codec: &codec, errors: &errors, probe, action };
        let work = caught(work.run(started.running()));
        let work = pin!(nesting.inside(Arc::clone(&request), work));
        let (finished, heartbeat) = started.keeping_alive(work).await;
        let reading = Reading { request: &request, codec: &codec, errors: &errors };
        conclude(finished, started, heartbeat, shore, &reading).await
    }
}

impl Stopped {
    /// What a call for `key` comes to that was stopped.
    fn of(self, key: &Key) -> CallError {
        match self {
            Self::Shutdown => CallError::Interrupted,
            Self::Panicked(Panicked(message)) => CallError::Panicked { key: key.clone(), message },
        }
    }
}

/// Whether a call is driven by a task that outlives its caller.
trait Shore: Sized {
    /// Whether the caller is known to have left.
    fn is_deserted(&self) -> bool;

    /// Drives what must not stop half-way.
    fn finish<T: Send + 'static, Fut: Future<Output = T> + Send + 'static>(
        self,
        request: &Request,
        make: impl FnOnce(Caller) -> Fut,
    ) -> impl Future<Output = Result<T, CallError>>;
}

/// The call has a task of its own.
struct Stay(Caller);

/// The call is in its caller's future, and goes with it.
struct Leave;

impl Shore for Stay {
    fn is_deserted(&self) -> bool {
        self.0.is_gone()
    }

    async fn finish<T: Send + 'static, Fut: Future<Output = T> + Send + 'static>(
        self,
        _: &Request,
        make: impl FnOnce(Caller) -> Fut,
    ) -> Result<T, CallError> {
        Ok(make(self.0).await)
    }
}

impl Shore for Leave {
    fn is_deserted(&self) -> bool {
        false
    }

    async fn finish<T: Send + 'static, Fut: Future<Output = T> + Send + 'static>(
        self,
        request: &Request,
        make: impl FnOnce(Caller) -> Fut,
    ) -> Result<T, CallError> {
        let done = detached(request.engine.tracker.token(), make).await;
        done.map_err(|stopped| stopped.of(&request.key))
    }
}

/// Brings the end of an action into the store, and says what the call comes to.
async fn conclude<T, E, C: Codec<T>, X: Classify<E>>(
    finished: Result<Finished<T, E>, Panicked>,
    started: Started,
    heartbeat: Heartbeat,
    shore: impl Shore,
    reading: &Reading<'_, C, X>,
) -> Result<Outcome<T>, RunError<E>> {
    let request = reading.request;
    let key = &request.key;
    let (result, envelope, retention) = match finished {
        Ok(Finished::Value(value, envelope, retention)) => (Ok(value), envelope, retention),
        Ok(Finished::Kept(error, envelope)) => (Err(error), envelope, None),
        Ok(Finished::NoEffect { error, in_doubt }) => {
            if in_doubt {
                // What is known of this attempt says nothing of the one it took over from.
                shore.finish(request, |_| give_up(started, heartbeat)).await?;
            } else {
                shore.finish(request, |_| release(started, heartbeat)).await?;
            }
            return Err(RunError::Action { error, effect: Effect::None, replayed: false });
        }
        Ok(Finished::Unknown(error)) => {
            shore.finish(request, |_| give_up(started, heartbeat)).await?;
            return Err(RunError::Action { error, effect: Effect::Unknown, replayed: false });
        }
        Ok(Finished::Inconclusive) => {
            let attempts = started.running().number();
            shore.finish(request, |_| give_up(started, heartbeat)).await?;
            return Err(CallError::OutcomeUnknown { key: key.clone(), attempts }.into());
        }
        Err(Panicked(message)) => {
            shore.finish(request, |_| give_up(started, heartbeat)).await?;
            return Err(CallError::Panicked { key: key.clone(), message }.into());
        }
    };
    let retention = retention.unwrap_or(request.policy.retention);
    let recorded = shore
        .finish(request, |caller| record(started, envelope, retention, heartbeat, caller))
        .await?;
    match recorded {
        Recorded::Theirs(answer) => read(reading, &answer, true).await,
        Recorded::Elsewhere(error) => Err(error.into()),
        Recorded::Ours { recorded, not_kept } => match result {
            Ok(value) => Ok(Outcome { value, replayed: false, recorded, not_kept }),
            Err(error) => Err(RunError::Action { error, effect: Effect::Keep, replayed: false }),
        },
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use bytes::Bytes;

    use super::*;
    use crate::cas::{Cas, CasStore, Snapshot};
    use crate::coordinator::Coordinator;
    use crate::error::{Applied, StoreError};
    use crate::model::Row;

    struct Unasked;

    fn unasked<T>() -> Result<T, StoreError> {
        Err(StoreError::unavailable(Applied::No, "nobody asks"))
    }

    #[async_trait]
    impl Cas for Unasked {
        type Version = ();

        async fn read(&self, _: &Key) -> Result<Snapshot<()>, StoreError> {
            unasked()
        }

        async fn swap(&self, _: &Key, (): (), _: &Row) -> Result<bool, StoreError> {
            unasked()
        }
    }

    /// How large a call's future is whose action captures so many bytes.
    fn size<const BYTES: usize>(idem: &Coordinator) -> usize {
        let captured = [7_u8; BYTES];
        let action = move |_| async move {
            tokio::task::yield_now().await;
            Ok::<_, String>(captured.len())
        };
        let call = idem.operation("payment.charge").key("k").without_fingerprint();
        let (prepared, _tracked) = call.prepare::<usize>().unwrap();
        let admission = Admission::Replay { answer: Bytes::new(), recorded: true };
        size_of_val(&prepared.conduct(admission, action, Leave))
    }

    // A call moves: into a box, and into a task. An `async fn` holds what it is given twice, so each
    // of them on the way from the call to the action would double it.
    #[tokio::test]
    async fn a_call_holds_what_its_action_captures_a_few_times_at_most() {
        let idem = Coordinator::builder(CasStore::new(Unasked)).build().unwrap();
        let grown = size::<10_000>(&idem) - size::<0>(&idem);
        assert!(grown < 50_000, "10 kB of an action are {grown} bytes of its call");
    }
}
