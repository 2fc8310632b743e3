//! Around any tower service, with bodies of any kind.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use idem_http::{Anonymous, IdempotencyLayer};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::stores::Shared;
use crate::support::{Calls, operation};

pin_project_lite::pin_project! {
    /// So many bytes, in a body that is neither `Clone` nor `Unpin` nor `Sync`, and whose data
    /// are not `Bytes`.
    struct Awkward {
        left: usize,
        not_sync: std::cell::Cell<u8>,
        #[pin]
        not_unpin: std::marker::PhantomPinned,
    }
}

impl Awkward {
    fn of(left: usize) -> Self {
        Self { left, not_sync: std::cell::Cell::new(b'x'), not_unpin: std::marker::PhantomPinned }
    }
}

impl http_body::Body for Awkward {
    type Data = std::io::Cursor<Vec<u8>>;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Infallible>>> {
        let this = self.project();
        let Some(left) = this.left.checked_sub(1) else { return Poll::Ready(None) };
        *this.left = left;
        Poll::Ready(Some(Ok(Frame::data(std::io::Cursor::new(vec![this.not_sync.get()])))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_service_with_plain_bodies() {
    let calls = Calls::default();
    let counted = calls.clone();
    let layer = IdempotencyLayer::builder(operation(Shared::default()), Anonymous).build().unwrap();
    let mut service = ServiceBuilder::new().layer(layer).service(service_fn(
        move |request: Request<idem_http::Body<Full<Bytes>>>| {
            let call = counted.one_more();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(format!(
                    "{call}: {} bytes",
                    body.len()
                )))))
            }
        },
    ));
    for replayed in [false, true] {
        let request = Request::post("/").header("idempotency-key", "k");
        let request = request.body(Full::new(Bytes::from_static(b"abc"))).unwrap();
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(response.headers().contains_key("idempotent-replayed"), replayed);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "1: 3 bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_service_with_awkward_bodies() {
    let layer = IdempotencyLayer::builder(operation(Shared::default()), Anonymous).build().unwrap();
    let service = ServiceBuilder::new().layer(layer).service(service_fn(
        |request: Request<idem_http::Body<Awkward>>| async {
            let body = request.into_body().collect().await?.to_bytes();
            Ok::<_, Infallible>(Response::new(Awkward::of(2 * body.len())))
        },
    ));
    for (length, status) in [(3, 200), (3, 200), (4, 422)] {
        let request = Request::post("/").header("idempotency-key", "k");
        let request = request.body(Awkward::of(length)).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), status);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(status == 422 || body == "xxxxxx", "{body:?}");
    }
    // Without a key, or with another method, it is as if there were no layer.
    let passed = Request::get("/").body(Awkward::of(5)).unwrap();
    let response = service.oneshot(passed).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "xxxxxxxxxx");
}

/// Has to be asked whether it is ready before each call, as tower's services may require.
struct Particular {
    ready: bool,
}

impl Clone for Particular {
    fn clone(&self) -> Self {
        // To be ready is of one service, not of its clones.
        Self { ready: false }
    }
}

impl Service<Request<idem_http::Body<Full<Bytes>>>> for Particular {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<idem_http::Body<Full<Bytes>>>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "it was not asked");
        std::future::ready(Ok(Response::new(Full::default())))
    }
}

#[tokio::test(start_paused = true)]
async fn the_service_that_is_called_is_the_one_that_was_ready() {
    let layer = IdempotencyLayer::builder(operation(Shared::default()), Anonymous).build().unwrap();
    let mut service = ServiceBuilder::new().layer(layer).service(Particular { ready: false });
    for key in ["a", "b", "a"] {
        let request = Request::post("/").header("idempotency-key", key);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(response.status(), 200);
    }
}
