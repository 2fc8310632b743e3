//! What a request may cost.

use std::io;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::routing::post as on_post;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tower::ServiceExt;

use crate::stores::Tampered;
use crate::support::{Calls, behind, builder, charging, code, operation, post, routes, send, text};

/// A layer that takes 1,000 bytes, the calls of its handler, and its store.
fn limited() -> (Router, Calls, Tampered) {
    let (calls, store) = (Calls::default(), Tampered::counting());
    let layer = builder(operation(store.clone())).max_body(1_000).build().unwrap();
    (behind(charging(&calls), layer), calls, store)
}

// C90: whether it says its length or not.
#[tokio::test(start_paused = true)]
async fn a_body_above_the_limit_is_413_and_reserves_nothing() {
    let (app, calls, store) = limited();
    let chunk = Bytes::from(vec![b'x'; 400]);
    let endless = stream::repeat(chunk).map(Ok::<_, io::Error>);
    for body in [Body::from(vec![b'x'; 1_001]), Body::from_stream(endless)] {
        let answer = send(&app, post().body(body)).await;
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(code(&answer), "body_too_large");
        assert!(text(&answer).contains("1000 bytes"), "{answer:?}");
    }
    assert_eq!((calls.count(), store.reserves.count()), (0, 0));
    let whole = send(&app, post().body(Body::from(vec![b'x'; 1_000]))).await;
    assert_eq!(whole.status(), StatusCode::CREATED);
}

// C90: a body that says it has three gigabytes is not even begun.
#[tokio::test(start_paused = true)]
async fn a_body_that_says_it_is_too_large_is_not_read() {
    struct Huge;
    impl http_body::Body for Huge {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<Bytes>, io::Error>>> {
            panic!("it is read")
        }

        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(3 << 30)
        }
    }
    let (app, ..) = limited();
    let answer = send(&app, post().body(Body::new(Huge))).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

// C90: a client that leaves during its upload leaves nothing else behind.
#[tokio::test(start_paused = true)]
async fn an_upload_that_breaks_off_is_400_and_reserves_nothing() {
    let (app, calls, store) = limited();
    let broken = [Ok("{\"amount\":"), Err(io::Error::other("connection reset"))];
    let answer = send(&app, post().body(Body::from_stream(stream::iter(broken)))).await;
    assert_eq!(
        (answer.status(), code(&answer).as_str()),
        (StatusCode::BAD_REQUEST, "body_unreadable")
    );
    // Or it is never heard of again.
    let stalled =
        Body::from_stream(stream::iter(["{"]).map(Ok::<_, io::Error>).chain(stream::pending()));
    let gone = tokio::time::timeout(crate::support::SEC, send(&app, post().body(stalled))).await;
    assert!(gone.is_err());
    assert_eq!((calls.count(), store.reserves.count()), (0, 0));
}

// C90: limits of the routes behind the layer are in force.
#[tokio::test(start_paused = true)]
async fn a_limit_behind_the_layer_is_in_force() {
    let routes = Router::new()
        .route("/charges", on_post(|body: Bytes| std::future::ready(body.len().to_string())))
        .layer(DefaultBodyLimit::max(10));
    let app = crate::support::app(routes);
    let answer = send(&app, post().body(Body::from("x".repeat(11)))).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(text(&send(&app, post().body(Body::from("x".repeat(10)))).await), "10");
}

// C91: the handler reads the body that the layer has read, trailers included.
#[tokio::test(start_paused = true)]
async fn the_handler_is_given_the_whole_body() {
    let app = crate::support::app(routes(|request: axum::extract::Request| async move {
        let length = request.headers().get(CONTENT_LENGTH).cloned();
        let collected = request.into_body().collect().await.unwrap();
        let trailer = collected.trailers().map(|trailers| trailers["x-sum"].clone());
        format!("{:?} {trailer:?} {length:?}", collected.to_bytes())
    }));
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-sum", http::HeaderValue::from_static("7"));
    let frames =
        [Frame::data(Bytes::from("ab")), Frame::data("c".into()), Frame::trailers(trailers)];
    let body = StreamBody::new(stream::iter(frames.map(Ok::<_, io::Error>)));
    let request = post().body(Body::new(body)).unwrap();
    let response = app.oneshot(request).await.unwrap();
    let seen = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(seen, "b\"abc\" Some(\"7\") None");
}
