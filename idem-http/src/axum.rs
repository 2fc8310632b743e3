//! Extractors for [axum](https://docs.rs/axum).

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use idem_core::RunningAttempt;

/// The attempt that a handler runs for: its key, fence, and the key to hand on to a provider.
///
/// ```
/// use idem_http::axum::Attempt;
///
/// async fn charge(Attempt(attempt): Attempt) -> String {
///     // The same for every attempt at this request: the provider can tell a repeated charge.
///     attempt.downstream_key()
/// }
///
/// async fn with_an_optional_key(attempt: Option<Attempt>) -> String {
///     attempt.map_or_else(String::new, |Attempt(attempt)| attempt.downstream_key())
/// }
/// # let _: axum::Router = axum::Router::new()
/// #     .route("/a", axum::routing::post(charge))
/// #     .route("/b", axum::routing::post(with_an_optional_key));
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "it is taken apart by its handler")]
pub struct Attempt(pub RunningAttempt);

/// There is no attempt: no layer is around the handler, or the request has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is not handled under an idempotency key")]
#[non_exhaustive]
pub struct NoAttempt;

impl IntoResponse for NoAttempt {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.to_string()).into_response()
    }
}

fn attempt(parts: &Parts) -> Option<Attempt> {
    parts.extensions.get::<RunningAttempt>().cloned().map(Attempt)
}

impl<S: Sync> FromRequestParts<S> for Attempt {
    type Rejection = NoAttempt;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, NoAttempt> {
        attempt(parts).ok_or(NoAttempt)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for Attempt {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(attempt(parts))
    }
}
