//! What becomes of a response.

use axum::extract::Json;
use axum::response::IntoResponse;
use axum::routing::post as on_post;
use axum::{Extension, Router};
use http::StatusCode;
use idem_core::Abandoned;
use idem_http::{Disposition, IdempotencyLayer, KeepFor};
use std::time::Duration;
use tower::ServiceBuilder;

use crate::stores::Shared;
use crate::support::{
    Calls, SEC, app, behind, builder, charge, code, is_replay, operation, post, routes, send_json,
    text,
};

/// Answers this status and a number.
fn answering(status: StatusCode) -> Router {
    let calls = Calls::default();
    routes(move |_| std::future::ready((status, calls.one_more().to_string())))
}

/// Whether the answer of a handler is kept.
async fn is_kept(app: &Router) -> bool {
    let (first, second) = (charge(app).await, charge(app).await);
    assert_eq!(first.status(), second.status());
    // An answer that came with a body has it in every replay (C88).
    assert_eq!(first.body().is_empty(), second.body().is_empty());
    assert_eq!(is_replay(&second), first.body() == second.body());
    is_replay(&second)
}

// C39, C43
#[tokio::test(start_paused = true)]
async fn statuses_are_kept_or_released_by_a_table() {
    let kept = [200, 201, 202, 203, 207, 226, 300, 301, 302, 303, 307, 308];
    let kept = kept.into_iter().chain([402, 404, 409, 410, 412, 418, 451]);
    let released = [400, 401, 403, 405, 406, 407, 408, 411, 413, 414, 415, 417, 421, 422, 423];
    let released = released.into_iter().chain([424, 425, 426, 428, 429, 431]);
    let released = released.chain([500, 501, 502, 503, 504, 507, 511, 599]);
    let table = kept.map(|status| (status, true)).chain(released.map(|status| (status, false)));
    for (status, kept) in table {
        let app = app(answering(StatusCode::from_u16(status).unwrap()));
        assert_eq!(is_kept(&app).await, kept, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_table_can_be_ones_own() {
    let layer = builder(operation(Shared::default())).statuses(|status| match status {
        StatusCode::UNPROCESSABLE_ENTITY => Disposition::Keep,
        StatusCode::NOT_FOUND => Disposition::Release,
        other => Disposition::of(other),
    });
    let layer = layer.build().unwrap();
    for (status, kept) in [(422, true), (404, false), (200, true), (500, false)] {
        let app = behind(answering(StatusCode::from_u16(status).unwrap()), layer.clone());
        // One store for all: another path for each.
        let path = format!("/{status}");
        let send = async || {
            let request = crate::support::request(http::Method::POST, &path);
            is_replay(&send_json(&app, request, "{}").await)
        };
        assert_eq!((send().await, send().await), (false, kept), "{status}");
    }
}

/// Answers with this status, and says itself what that means.
fn saying(status: StatusCode, disposition: Disposition) -> Router {
    let calls = Calls::default();
    routes(move |_| {
        let answer = (status, Extension(disposition), calls.one_more().to_string());
        std::future::ready(answer)
    })
}

#[tokio::test(start_paused = true)]
async fn the_handler_has_the_last_word() {
    assert!(is_kept(&app(saying(StatusCode::BAD_GATEWAY, Disposition::Keep))).await);
    assert!(!is_kept(&app(saying(StatusCode::OK, Disposition::Release))).await);
    assert!(!is_kept(&app(saying(StatusCode::OK, Disposition::Abandon))).await);
    // A response that is shown once: the effect happens once all the same.
    let app = app(saying(StatusCode::OK, Disposition::Done));
    let (first, retry) = (charge(&app).await, charge(&app).await);
    assert_eq!((first.status(), text(&first)), (StatusCode::OK, "1"));
    assert_eq!((retry.status(), code(&retry).as_str()), (StatusCode::GONE, "response_not_kept"));
}

#[tokio::test(start_paused = true)]
async fn the_handler_says_how_long() {
    let keep_for = KeepFor(Duration::from_hours(48));
    let calls = Calls::default();
    let app = app(routes(move |_| {
        std::future::ready((Extension(keep_for), calls.one_more().to_string()))
    }));
    assert_eq!(text(&charge(&app).await), "1");
    tokio::time::advance(Duration::from_hours(47)).await;
    assert_eq!(text(&charge(&app).await), "1", "longer than the operation's 24 hours");
    tokio::time::advance(Duration::from_hours(2)).await;
    assert_eq!(text(&charge(&app).await), "2");
}

/// A handler that takes its body apart, and counts.
fn extracting(calls: &Calls) -> Router {
    let calls = calls.clone();
    let handler = move |Json(amount): Json<u32>| {
        calls.one_more();
        std::future::ready((StatusCode::CREATED, amount.to_string()))
    };
    Router::new().route("/charges", on_post(handler))
}

// C41: what an extractor refuses never began, and may be corrected under its key.
#[tokio::test(start_paused = true)]
async fn a_rejection_by_an_extractor_is_not_stored() {
    let calls = Calls::default();
    let app = app(extracting(&calls));
    for (body, status) in [("1 2", 400), ("\"text\"", 422)] {
        for _ in 0..2 {
            let answer = send_json(&app, post(), body).await;
            assert_eq!((answer.status().as_u16(), is_replay(&answer)), (status, false));
        }
    }
    let corrected = send_json(&app, post(), "100").await;
    assert_eq!((text(&corrected), calls.count()), ("100", 1));
}

// C38: never stuck, and nobody claims to know.
#[tokio::test(start_paused = true)]
async fn a_panic_leaves_the_key_abandoned() {
    let panicking = |calls: &Calls| {
        let calls = calls.clone();
        routes(move |_| {
            let first = calls.one_more() == 1;
            async move {
                assert!(!first, "out of order");
                "done"
            }
        })
    };
    let calls = Calls::default();
    let rerun = app(panicking(&calls));
    let first = charge(&rerun).await;
    assert_eq!(first.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(code(&first), "panicked");
    assert!(!text(&first).contains("out of order"), "a panic's text is not the client's");
    assert_eq!(text(&charge(&rerun).await), "done");
    let calls = Calls::default();
    let operation = operation(Shared::default()).abandoned(Abandoned::Refuse);
    let refuse = behind(panicking(&calls), builder(operation).build().unwrap());
    assert_eq!(code(&charge(&refuse).await), "panicked");
    for _ in 0..2 {
        let retry = charge(&refuse).await;
        assert_eq!(retry.status(), StatusCode::CONFLICT);
        assert_eq!((code(&retry).as_str(), calls.count()), ("outcome_unknown", 1));
    }
}

// C44: a service that fails under the layer may have had its effect.
#[tokio::test(start_paused = true)]
async fn an_error_of_the_service_is_given_and_leaves_the_key_abandoned() {
    use tower::{ServiceExt, service_fn};
    let calls = Calls::default();
    let counted = calls.clone();
    let operation = operation(Shared::default()).abandoned(Abandoned::Refuse);
    let layer = IdempotencyLayer::builder(operation, idem_http::Anonymous).build().unwrap();
    let service = ServiceBuilder::new().layer(layer).service(service_fn(
        move |_: http::Request<idem_http::Body<axum::body::Body>>| {
            counted.one_more();
            std::future::ready(Err::<http::Response<axum::body::Body>, _>("timed out"))
        },
    ));
    let request = || post().body(axum::body::Body::empty()).unwrap();
    assert_eq!(service.clone().oneshot(request()).await.unwrap_err(), "timed out");
    let retry = service.oneshot(request()).await.unwrap();
    assert_eq!((retry.status(), calls.count()), (StatusCode::CONFLICT, 1));
}

// C37: an outage ends with the outage.
#[tokio::test(start_paused = true)]
async fn a_request_waits_for_another_that_fails_and_then_runs() {
    let calls = Calls::default();
    let counted = calls.clone();
    let app = app(routes(move |_| {
        let first = counted.one_more() == 1;
        async move {
            tokio::time::sleep(SEC).await;
            if first { StatusCode::BAD_GATEWAY.into_response() } else { "done".into_response() }
        }
    }));
    let (first, second) = tokio::join!(charge(&app), charge(&app));
    assert_eq!(first.status(), StatusCode::BAD_GATEWAY);
    assert_eq!((text(&second), is_replay(&second), calls.count()), ("done", false, 2));
}
