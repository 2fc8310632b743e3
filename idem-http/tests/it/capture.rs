//! A replay is the response that was given, or says that there is none.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, SET_COOKIE,
    TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use idem_core::NotKept;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tower_http::compression::CompressionLayer;

use crate::stores::{Shared, Tampered};
use crate::support::{
    Calls, MS, SEC, app, behind, builder, charge, code, is_replay, operation, post, routes, send,
    text,
};

// C93, C95: captured as an HTTP response, whatever it was made of.
#[tokio::test(start_paused = true)]
async fn every_form_of_a_response_replays() {
    let forms: [fn() -> Response; 9] = [
        || ().into_response(),
        || StatusCode::NO_CONTENT.into_response(),
        || "text".into_response(),
        || axum::Json(serde_json::json!({"id": "ch_1"})).into_response(),
        || axum::Json(Option::<u8>::None).into_response(),
        || Redirect::to("/charges/1").into_response(),
        || (StatusCode::CREATED, [(LOCATION, "/charges/1")], "x").into_response(),
        || vec![0_u8, 255].into_response(),
        || Result::<&str, StatusCode>::Err(StatusCode::PAYMENT_REQUIRED).into_response(),
    ];
    for form in forms {
        let calls = Calls::default();
        let counted = calls.clone();
        let app = app(routes(move |_| {
            counted.one_more();
            std::future::ready(form())
        }));
        let (first, mut replay) = (charge(&app).await, charge(&app).await);
        assert_eq!((calls.count(), is_replay(&replay)), (1, true));
        replay.headers_mut().remove("idempotent-replayed");
        assert_eq!((first.status(), first.body()), (replay.status(), replay.body()));
        assert_eq!(first.headers(), replay.headers());
    }
}

// C81, L8: a stored response that was cut is an error, whatever is left of it; nothing runs.
#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_an_error_and_nothing_runs() {
    // Envelope, head: all before the body, whose length the store knows.
    for cut in 0..15 {
        let calls = Calls::default();
        let counted = calls.clone();
        let routes = routes(move |_| {
            counted.one_more();
            std::future::ready("")
        });
        let layer = builder(operation(Tampered::cutting(cut))).build().unwrap();
        let app = behind(routes, layer);
        assert_eq!(charge(&app).await.status(), StatusCode::OK);
        let retry = charge(&app).await;
        assert_eq!(retry.status(), StatusCode::INTERNAL_SERVER_ERROR, "cut at {cut}");
        assert_eq!((code(&retry).as_str(), calls.count()), ("unreadable", 1));
    }
}

// C85: framing is the connection's. The handler says "chunked" itself, as a proxy might.
#[tokio::test(start_paused = true)]
async fn framing_is_not_replayed() {
    let app = app(routes(|_| async {
        let chunks = ["one", "two"].map(Ok::<_, io::Error>);
        let mut response = Response::new(Body::from_stream(stream::iter(chunks)));
        response.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        response
    }));
    assert_eq!(text(&charge(&app).await), "onetwo");
    let replay = charge(&app).await;
    assert_eq!(text(&replay), "onetwo");
    assert!(!replay.headers().contains_key(TRANSFER_ENCODING));
    assert_eq!(replay.headers()[CONTENT_LENGTH], "6");
}

// C85: encoded inside the layer, the stored bytes are encoded and say so; outside, each client
// gets what it can read.
#[tokio::test(start_paused = true)]
async fn compression_may_be_inside_or_outside() {
    let large = || routes(|_| std::future::ready("x".repeat(10_000)));
    let inside = behind(large().layer(CompressionLayer::new()), crate::support::layer());
    let outside = behind(large(), crate::support::layer()).layer(CompressionLayer::new());
    let ask = async |app: &axum::Router, encoding: &str| {
        send(app, post().header(ACCEPT_ENCODING, encoding).body(Body::empty())).await
    };
    let (first, replay) = (ask(&inside, "gzip").await, ask(&inside, "gzip").await);
    assert!(first.body().starts_with(b"\x1f\x8b") && first.body().len() < 1_000);
    assert_eq!((replay.body(), is_replay(&replay)), (first.body(), true));
    assert_eq!(replay.headers()[CONTENT_ENCODING], "gzip");
    let (first, replay) = (ask(&outside, "gzip").await, ask(&outside, "identity").await);
    assert_eq!(first.headers()[CONTENT_ENCODING], "gzip");
    assert!(is_replay(&replay) && !replay.headers().contains_key(CONTENT_ENCODING));
    assert_eq!(replay.body().len(), 10_000);
}

// C82
#[tokio::test(start_paused = true)]
async fn a_cookie_is_replayed_only_if_it_is_asked_for() {
    let layer = builder(operation(Shared::default())).keep_header(SET_COOKIE).build().unwrap();
    let cookie = || routes(|_| std::future::ready(([(SET_COOKIE, "a=1")], "ok")));
    let (asked, default) = (behind(cookie(), layer), app(cookie()));
    for app in [&asked, &default] {
        assert_eq!(charge(app).await.headers()[SET_COOKIE], "a=1");
    }
    assert_eq!(charge(&asked).await.headers()[SET_COOKIE], "a=1");
    assert!(!charge(&default).await.headers().contains_key(SET_COOKIE));
}

#[tokio::test(start_paused = true)]
async fn trailers_are_replayed() {
    let app = app(routes(|_| async {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-checksum", HeaderValue::from_static("7"));
        let frames =
            [http_body::Frame::data(Bytes::from("data")), http_body::Frame::trailers(trailers)];
        Response::new(Body::new(StreamBody::new(stream::iter(frames.map(Ok::<_, io::Error>)))))
    }));
    for _ in 0..2 {
        let request = post().body(Body::empty()).unwrap();
        let collected = app.clone().oneshot(request).await.unwrap().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["x-checksum"], "7");
        assert_eq!(collected.to_bytes(), "data");
    }
}

// C84: above the limit the effect still happens once. Both when a body says its length and when
// it does not.
#[tokio::test(start_paused = true)]
async fn a_large_response_flows_and_is_known_to_be_done() {
    for says_its_length in [true, false] {
        let calls = Calls::default();
        let counted = calls.clone();
        let routes = routes(move |_| {
            counted.one_more();
            let data = Bytes::from(vec![7; 5_000]);
            let chunks = stream::iter([data.clone(), data].map(Ok::<_, io::Error>));
            let body = if says_its_length {
                Body::from(vec![7; 10_000])
            } else {
                Body::from_stream(chunks)
            };
            std::future::ready((StatusCode::CREATED, body))
        });
        let layer = builder(operation(Shared::default()).max_result(6_000)).build().unwrap();
        let app = behind(routes, layer);
        let first = charge(&app).await;
        assert_eq!((first.status(), first.body().len()), (StatusCode::CREATED, 10_000));
        assert!(first.body().iter().all(|byte| *byte == 7));
        let retry = charge(&app).await;
        assert_eq!(
            (retry.status(), code(&retry).as_str()),
            (StatusCode::GONE, "response_not_kept")
        );
        assert!(text(&retry).contains(&NotKept::TooLarge { bytes: 10_000 }.to_string()));
        assert_eq!((calls.count(), is_replay(&retry)), (1, false));
    }
}

// Head and body together are what fits a record.
#[tokio::test(start_paused = true)]
async fn a_large_head_counts_too() {
    let layer = builder(operation(Shared::default()).max_result(1_000)).build().unwrap();
    let app =
        behind(routes(|_| std::future::ready(([("x-large", "x".repeat(2_000))], "ok"))), layer);
    assert_eq!(charge(&app).await.headers()["x-large"].len(), 2_000);
    assert_eq!(code(&charge(&app).await), "response_not_kept");
}

/// One chunk a second, for ever.
fn endless(content_type: &'static str) -> axum::Router {
    routes(move |_| {
        let ticks = stream::unfold(0_u32, |tick| async move {
            sleep(SEC).await;
            Some((Ok::<_, io::Error>(format!("data: {tick}\n\n")), tick + 1))
        });
        std::future::ready(([(CONTENT_TYPE, content_type)], Body::from_stream(ticks)))
    })
}

// C90: a stream flows, and its effect is known to have happened.
#[tokio::test(start_paused = true)]
async fn a_stream_flows_to_its_client_at_once() {
    for (content_type, head_after) in [
        ("text/event-stream", Duration::ZERO),
        ("Text/Event-Stream; charset=utf-8", Duration::ZERO),
        ("text/plain", SEC),
    ] {
        let app = app(endless(content_type));
        let asked = Instant::now();
        let response = app.clone().oneshot(post().body(Body::empty()).unwrap()).await.unwrap();
        assert!(asked.elapsed() <= head_after + MS, "{:?}", asked.elapsed());
        let mut chunks = response.into_body().into_data_stream();
        for tick in 0..3 {
            let chunk = chunks.next().await.unwrap().unwrap();
            assert_eq!(chunk, format!("data: {tick}\n\n"), "{content_type}");
        }
        let retry = send(&app, post().body(Body::empty())).await;
        assert_eq!(code(&retry), "response_not_kept");
    }
}

// A body that ends within the patience is kept, however it comes.
#[tokio::test(start_paused = true)]
async fn a_slow_body_is_kept_if_it_ends_in_time() {
    for (pieces, kept) in [(9, true), (11, false)] {
        let app = app(routes(move |_| {
            let pieces = stream::iter(0..pieces).then(async |piece| {
                sleep(100 * MS).await;
                Ok::<_, io::Error>(piece.to_string())
            });
            std::future::ready(Body::from_stream(pieces))
        }));
        let first = charge(&app).await;
        let all: String = (0..pieces).map(|piece| piece.to_string()).collect();
        assert_eq!(text(&first), all, "nothing is lost where it begins to flow");
        let retry = charge(&app).await;
        assert_eq!((is_replay(&retry), retry.status() == StatusCode::GONE), (kept, !kept));
    }
}

// A body that breaks half-way breaks for its client, and is not replayed as if it were whole.
#[tokio::test(start_paused = true)]
async fn a_body_that_fails_is_given_as_far_as_it_goes() {
    let app = app(routes(|_| {
        let broken = [Ok("half"), Err(io::Error::other("broken"))];
        std::future::ready(Body::from_stream(stream::iter(broken)))
    }));
    let response = app.clone().oneshot(post().body(Body::from("{}")).unwrap()).await.unwrap();
    let mut chunks = response.into_body().into_data_stream();
    assert_eq!(chunks.next().await.unwrap().unwrap(), "half");
    assert!(chunks.next().await.unwrap().is_err());
    assert!(chunks.next().await.is_none());
    let retry = send(&app, post().body(Body::from("{}"))).await;
    assert_eq!(code(&retry), "response_not_kept");
}

// C36: the response is sent once it is recorded, so a retry right after it is a replay.
#[tokio::test(start_paused = true)]
async fn a_response_is_recorded_before_it_is_sent() {
    let store = Tampered::slow(100 * MS);
    let calls = Calls::default();
    let layer = builder(operation(store)).build().unwrap();
    let app = behind(crate::support::charging(&calls), layer);
    let asked = Instant::now();
    assert_eq!(text(&charge(&app).await), "ch_1");
    assert!(asked.elapsed() >= 100 * MS);
    assert!(is_replay(&charge(&app).await));
}

// What a handler says about replays is not what the layer says.
#[tokio::test(start_paused = true)]
async fn only_the_layer_marks_replays() {
    let upstream = || routes(|_| std::future::ready(([("idempotent-replayed", "true")], "ok")));
    let app = app(upstream());
    assert!(!is_replay(&charge(&app).await));
    assert!(is_replay(&charge(&app).await));
}
