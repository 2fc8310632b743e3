//! Routes, requests, and a handler that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, StatusCode, request};
use http_body_util::BodyExt;
use idem_core::{Coordinator, InFlight, Operation, Store};
use idem_http::{IDEMPOTENT_REPLAYED, IdempotencyLayer, by_extension};
use idem_memory::MemoryStore;
use tower::ServiceExt;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SEC: Duration = Duration::from_secs(1);

/// How often a handler has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<AtomicU32>);

impl Calls {
    /// Counts one more, and says which it is.
    pub(crate) fn one_more(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Every path and method, answered by one handler.
pub(crate) fn routes<F, Fut, R>(handler: F) -> Router
where
    F: Fn(Request) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoResponse + 'static,
{
    Router::new().route("/{*path}", any(handler))
}

/// A handler that answers `ch_1`, `ch_2` and so on, 201.
pub(crate) fn charging(calls: &Calls) -> Router {
    let calls = calls.clone();
    routes(move |_| {
        let charge = format!("ch_{}", calls.one_more());
        async move { (StatusCode::CREATED, charge) }
    })
}

/// Who sent a request.
#[derive(Clone, Debug)]
pub(crate) struct User(pub(crate) String);

/// Says who sent a request, by `Bearer NAME` or `Bearer NAME:revoked`; 401 for the rest.
pub(crate) async fn authenticate(mut request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(name) = header.and_then(|value| value.strip_prefix("Bearer ")) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let name = name.strip_suffix(":revoked").unwrap_or(name).to_owned();
    request.extensions_mut().insert(User(name));
    next.run(request).await
}

/// 403 for those whose right was revoked.
pub(crate) async fn authorize(request: Request, next: Next) -> Response {
    if request.headers()[AUTHORIZATION].as_bytes().ends_with(b":revoked") {
        return StatusCode::FORBIDDEN.into_response();
    }
    next.run(request).await
}

/// The routes behind `idempotency`, and that behind those who say whose request it is.
pub(crate) fn behind<L>(routes: Router, idempotency: L) -> Router
where
    L: tower::Layer<axum::routing::Route> + Clone + Send + Sync + 'static,
    L::Service:
        tower::Service<Request, Error = std::convert::Infallible> + Clone + Send + Sync + 'static,
    <L::Service as tower::Service<Request>>::Response: IntoResponse + 'static,
    <L::Service as tower::Service<Request>>::Future: Send + 'static,
{
    routes.layer(idempotency).layer(from_fn(authorize)).layer(from_fn(authenticate))
}

pub(crate) fn operation(store: impl Store + 'static) -> Operation {
    Coordinator::builder(store).without_logs().build().unwrap().operation("charge")
}

/// A builder whose principals are [`User`]s.
pub(crate) fn builder(operation: Operation) -> idem_http::Builder {
    IdempotencyLayer::builder(operation, by_extension(|user: &User| user.0.clone()))
}

/// The layer with its defaults, over a store of its own.
pub(crate) fn layer() -> IdempotencyLayer {
    builder(operation(MemoryStore::new())).build().unwrap()
}

/// As [`layer`], and it does not wait.
pub(crate) fn rejecting() -> IdempotencyLayer {
    let operation = operation(MemoryStore::new()).in_flight(InFlight::Reject);
    builder(operation).build().unwrap()
}

/// The routes behind the layer with its defaults.
pub(crate) fn app(routes: Router) -> Router {
    behind(routes, layer())
}

/// A request by alice, under key `k`.
pub(crate) fn request(method: Method, path: &str) -> request::Builder {
    unkeyed(method, path).header("idempotency-key", "k")
}

pub(crate) fn post() -> request::Builder {
    request(Method::POST, "/charges")
}

/// A request by alice, without a key.
pub(crate) fn unkeyed(method: Method, path: &str) -> request::Builder {
    http::Request::builder()
        .method(method)
        .uri(path)
        .header(AUTHORIZATION, "Bearer alice")
        .header(CONTENT_TYPE, "application/json")
}

/// What came of a request.
pub(crate) type Answer = http::Response<Bytes>;

pub(crate) async fn send(app: &Router, request: http::Result<Request<Body>>) -> Answer {
    let response = app.clone().oneshot(request.unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    Answer::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

/// Sends a request with a body of JSON.
pub(crate) async fn send_json(app: &Router, request: request::Builder, json: &str) -> Answer {
    send(app, request.body(Body::from(json.to_owned()))).await
}

/// Sends the same charge.
pub(crate) async fn charge(app: &Router) -> Answer {
    send_json(app, post(), r#"{"amount":100}"#).await
}

pub(crate) fn is_replay(answer: &Answer) -> bool {
    answer.headers().get(IDEMPOTENT_REPLAYED).is_some_and(|value| value == "true")
}

pub(crate) fn text(answer: &Answer) -> &str {
    str::from_utf8(answer.body()).unwrap()
}

/// The `code` of a problem document.
pub(crate) fn code(answer: &Answer) -> String {
    let document: serde_json::Value =
        serde_json::from_slice(answer.body()).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    document["code"].as_str().unwrap().to_owned()
}
