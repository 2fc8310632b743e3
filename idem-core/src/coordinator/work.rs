//! The action, and what its result means.

use std::future::Future;
use std::time::Duration;

use super::action::RunningAttempt;
use super::classify::{Classify, Effect};
use super::codec::Codec;
use super::probe::{Probe, Probed};
use super::recording::not_kept;
use crate::envelope::{Body, CodecId, Envelope, NotKept};
use crate::limits;

/// What there is to do for a granted key.
pub(super) struct Work<'a, C, X, P, F> {
    pub(super) codec: &'a C,
    pub(super) errors: &'a X,
    pub(super) probe: P,
    pub(super) action: F,
}

/// How it ended, with what is to be stored.
pub(super) enum Finished<T, E> {
    /// With a value; how long it is kept, if not as long as the operation says.
    Value(T, Envelope, Option<Duration>),
    /// With an error that is kept.
    Kept(E, Envelope),
    /// With an error, and without effect. An attempt before this one may have had it all the same.
    NoEffect { error: E, in_doubt: bool },
    /// With an error, and perhaps with an effect.
    Unknown(E),
    /// It was not begun: an earlier attempt may have had its effect, and nobody knows.
    Inconclusive,
}

impl<C, X, P, F> Work<'_, C, X, P, F> {
    pub(super) async fn run<T, E, Fut>(self, attempt: RunningAttempt) -> Finished<T, E>
    where
        F: FnOnce(RunningAttempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Codec<T>,
        X: Classify<E>,
        P: Probe<T>,
    {
        let Self { codec, errors, probe, action } = self;
        let in_doubt = attempt.is_takeover() && !probe.is_some();
        if attempt.is_takeover() {
            match probe.ask(attempt.clone()).await {
                Probed::Happened(value) => return keep_value(codec, value),
                Probed::Unknown => return Finished::Inconclusive,
                Probed::DidNotHappen => {}
            }
        }
        match action(attempt).await {
            Ok(value) => keep_value(codec, value),
            Err(error) => match errors.effect(&error) {
                Effect::None => Finished::NoEffect { error, in_doubt },
                Effect::Unknown => Finished::Unknown(error),
                Effect::Keep => keep_error(errors, error),
            },
        }
    }
}

/// The value as a replay will give it. One that would replay as another is not kept, and the
/// caller of the first run has it as it is.
fn keep_value<T, E, C: Codec<T>>(codec: &C, value: T) -> Finished<T, E> {
    let kept = Envelope::of_value(codec, &value);
    let retention = codec.retention(&value).map(limits::nearest_retention);
    match kept {
        Ok((replayed, envelope)) => Finished::Value(replayed, envelope, retention),
        Err(error) => {
            let why = error.downcast_ref().copied().unwrap_or(NotKept::NotReplayable);
            Finished::Value(value, not_kept(why, false), retention)
        }
    }
}

fn keep_error<T, E, X: Classify<E>>(errors: &X, error: E) -> Finished<T, E> {
    let envelope = match errors.encode(&error) {
        Ok(bytes) => Envelope { codec: CodecId::NONE, body: Body::Error(bytes) },
        Err(_) => not_kept(NotKept::NotReplayable, true),
    };
    Finished::Kept(error, envelope)
}
