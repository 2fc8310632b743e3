//! Reading a stored answer.

use std::sync::Arc;

use bytes::Bytes;

use super::classify::{Classify, Effect};
use super::codec::Codec;
use super::engine::Request;
use super::error::{CallError, RunError};
use super::outcome::Outcome;
use super::policy::Oversize;
use super::reference::within;
use crate::envelope::{Body, Envelope};
use crate::error::BoxError;
use crate::panics::caught_now;

/// How a call reads what is stored.
pub(super) struct Reading<'a, C, X> {
    pub(super) request: &'a Request,
    pub(super) codec: &'a C,
    pub(super) errors: &'a X,
}

/// What an answer is to the call, `recorded` or on its way into the store: the value, the error
/// that was kept, or why there is neither. It never means that the action may run (law L8).
pub(super) async fn read<T, E, C: Codec<T>, X: Classify<E>>(
    reading: &Reading<'_, C, X>,
    answer: &Bytes,
    recorded: bool,
) -> Result<Outcome<T>, RunError<E>> {
    let request = reading.request;
    let envelope = Envelope::decode(answer).map_err(|error| unreadable(request, error.into()))?;
    let envelope = match &envelope.body {
        Body::Reference(reference) => load(request, reference.clone()).await?,
        _ => envelope,
    };
    match envelope.body {
        Body::Value(bytes) => {
            if envelope.codec != reading.codec.id() {
                let why = format!("it was stored with codec {}", envelope.codec.0);
                return Err(unreadable(request, why.into()).into());
            }
            let value =
                decoded(|| reading.codec.decode(&bytes)).map_err(|why| unreadable(request, why))?;
            Ok(Outcome { value, replayed: true, recorded, not_kept: None })
        }
        Body::Error(bytes) => {
            let error = decoded(|| reading.errors.decode(&bytes))
                .map_err(|why| unreadable(request, why))?;
            Err(RunError::Action { error, effect: Effect::Keep, replayed: true })
        }
        Body::NotKept { why, .. } => {
            Err(CallError::ResponseNotKept { key: request.key.clone(), why }.into())
        }
        _ => Err(unreadable(request, "a kind of answer that cannot stand here".into()).into()),
    }
}

/// A decoder that panics has read nothing.
fn decoded<T>(decode: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    caught_now(decode)?
}

async fn load(request: &Request, reference: Bytes) -> Result<Envelope, CallError> {
    let key = &request.key;
    let failed = |source: BoxError| CallError::ReferenceUnavailable {
        key: key.clone(),
        source: Arc::from(source),
    };
    let Oversize::Reference(hook) = &request.policy.oversize else {
        return Err(failed("this operation has no hook to load references by".into()));
    };
    let bytes = within(request.policy.lease, hook.load(key, reference)).await.map_err(failed)?;
    Envelope::decode(&bytes).map_err(|error| unreadable(request, error.into()))
}

fn unreadable(request: &Request, source: BoxError) -> CallError {
    CallError::Unreadable { key: request.key.clone(), source: Arc::from(source) }
}
