//! Giving each request a key.

use std::task::{Context, Poll};

use http::{HeaderValue, Method, Request};
use tower_layer::Layer;
use tower_service::Service;

use crate::key::IDEMPOTENCY_KEY;

/// Gives each POST and PATCH without an `Idempotency-Key` a random one: 128 bits, as a
/// structured-field String.
///
/// It goes outside what retries, so that every try has the same key. A caller that repeats a
/// request over a restart has to keep the key, and set the header itself.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct MintKey;

/// A service whose requests have keys; made by [`MintKey`].
#[derive(Clone, Copy, Debug)]
pub struct MintingService<S>(S);

impl<S> Layer<S> for MintKey {
    type Service = MintingService<S>;

    fn layer(&self, inner: S) -> MintingService<S> {
        MintingService(inner)
    }
}

impl<S, B> Service<Request<B>> for MintingService<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        let has_effects = [Method::POST, Method::PATCH].contains(request.method());
        if has_effects && !request.headers().contains_key(IDEMPOTENCY_KEY) {
            // Without randomness there is no key that nobody else has, and a request without a
            // key is at least refused.
            if let Some(key) = new_key() {
                request.headers_mut().insert(IDEMPOTENCY_KEY, key);
            }
        }
        self.0.call(request)
    }
}

fn new_key() -> Option<HeaderValue> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    HeaderValue::try_from(format!("\"{:032x}\"", u128::from_be_bytes(random))).ok()
}
