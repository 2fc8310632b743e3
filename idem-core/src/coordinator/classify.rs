//! What a failed action means for its record.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec::{Codec, Json};
use crate::error::BoxError;

/// What an action's error says about its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "an error means nothing, everything, or who knows")]
pub enum Effect {
    /// The action certainly had no effect: the key is released, and a retry runs it again.
    /// The default for every error.
    ///
    /// After a takeover this speaks for one attempt only. Unless a [probe](super::Call::probe)
    /// has said that the attempts before had no effect either, the key stays abandoned: a retry
    /// takes over again, knows that it does, and no other request is given the key.
    None,
    /// The refusal is final: the error is stored and replayed like a value.
    Keep,
    /// The action may have had its effect (a time-out, a lost answer): the lease ends at once and
    /// the record stays abandoned, for the operation's policy to decide.
    Unknown,
}

/// Says what an error means, and how one that is kept is stored.
///
/// Made by [`no_effect`], [`effect`], [`keeping`] or [`by_trait`]; implement it for a rule of your own.
pub trait Classify<E>: Send + Sync + 'static {
    /// What `error` says about the action's effect.
    fn effect(&self, error: &E) -> Effect;

    /// The bytes of an error that is kept. Replayed by [`decode`](Self::decode).
    ///
    /// # Errors
    /// If it cannot be stored so that it would replay alike.
    fn encode(&self, error: &E) -> Result<Bytes, BoxError>;

    /// The error that was kept as these bytes.
    ///
    /// # Errors
    /// If these bytes are no such error.
    fn decode(&self, bytes: &Bytes) -> Result<E, BoxError>;
}

/// An error that knows what it means; see [`by_trait`].
pub trait ActionError: Serialize + DeserializeOwned {
    /// What the error says about the action's effect.
    fn effect(&self) -> Effect;
}

/// Every error means that there was no effect. The default.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct NoEffect;

/// Every error means that there was no effect.
pub fn no_effect() -> NoEffect {
    NoEffect
}

impl<E> Classify<E> for NoEffect {
    fn effect(&self, _: &E) -> Effect {
        Effect::None
    }

    fn encode(&self, _: &E) -> Result<Bytes, BoxError> {
        Err(NOT_KEPT.into())
    }

    fn decode(&self, _: &Bytes) -> Result<E, BoxError> {
        Err(NOT_KEPT.into())
    }
}

const NOT_KEPT: &str = "this operation does not keep errors";

/// A closure decides whether there was an effect; see [`effect`].
#[derive(Clone, Copy)]
pub struct ByEffect<F>(F);

/// A closure decides whether an error says that there was certainly no effect (`true`), or that
/// it is unknown (`false`). For errors that cannot be stored.
pub fn effect<E, F>(had_none: F) -> ByEffect<F>
where
    F: Fn(&E) -> bool + Send + Sync + 'static,
{
    ByEffect(had_none)
}

impl<E, F: Fn(&E) -> bool + Send + Sync + 'static> Classify<E> for ByEffect<F> {
    fn effect(&self, error: &E) -> Effect {
        if (self.0)(error) { Effect::None } else { Effect::Unknown }
    }

    fn encode(&self, _: &E) -> Result<Bytes, BoxError> {
        Err(NOT_KEPT.into())
    }

    fn decode(&self, _: &Bytes) -> Result<E, BoxError> {
        Err(NOT_KEPT.into())
    }
}

impl<F> fmt::Debug for ByEffect<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByEffect")
    }
}

/// A closure decides; kept errors are JSON. See [`keeping`].
#[derive(Clone, Copy)]
pub struct Keeping<F>(F);

/// A closure decides what an error means. Errors that it keeps are stored as JSON.
pub fn keeping<E, F>(effect: F) -> Keeping<F>
where
    F: Fn(&E) -> Effect + Send + Sync + 'static,
{
    Keeping(effect)
}

impl<E, F> Classify<E> for Keeping<F>
where
    E: Serialize + DeserializeOwned,
    F: Fn(&E) -> Effect + Send + Sync + 'static,
{
    fn effect(&self, error: &E) -> Effect {
        (self.0)(error)
    }

    fn encode(&self, error: &E) -> Result<Bytes, BoxError> {
        encode_json(error)
    }

    fn decode(&self, bytes: &Bytes) -> Result<E, BoxError> {
        Json.decode(bytes)
    }
}

impl<F> fmt::Debug for Keeping<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keeping")
    }
}

/// The error decides for itself; see [`by_trait`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ByTrait;

/// The error decides for itself, by [`ActionError`]. Errors that are kept are stored as JSON.
pub fn by_trait() -> ByTrait {
    ByTrait
}

impl<E: ActionError> Classify<E> for ByTrait {
    fn effect(&self, error: &E) -> Effect {
        ActionError::effect(error)
    }

    fn encode(&self, error: &E) -> Result<Bytes, BoxError> {
        encode_json(error)
    }

    fn decode(&self, bytes: &Bytes) -> Result<E, BoxError> {
        Json.decode(bytes)
    }
}

fn encode_json<E: Serialize + DeserializeOwned>(error: &E) -> Result<Bytes, BoxError> {
    let bytes = Json.encode(error)?;
    Json.replayed(error, &bytes)?;
    Ok(bytes)
}
