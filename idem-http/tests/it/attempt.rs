//! What a handler is told of its attempt.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::post as on_post;
use http::{Method, StatusCode};
use idem_http::axum::Attempt;

use crate::stores::Shared;
use crate::support::{Calls, app, behind, builder, charge, operation, send_json, text, unkeyed};

// D: a provider can tell a repeated charge, also from a worker that died half-way.
#[tokio::test(start_paused = true)]
async fn the_downstream_key_is_the_same_after_a_takeover() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let calls = Calls::default();
    let handler = {
        let seen = Arc::clone(&seen);
        move |Attempt(attempt): Attempt| {
            seen.lock().unwrap().push(attempt.clone());
            let first = calls.one_more() == 1;
            async move {
                assert!(!first, "the worker dies");
                "done"
            }
        }
    };
    let app = app(Router::new().route("/charges", on_post(handler)));
    assert_eq!(charge(&app).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(text(&charge(&app).await), "done");
    let seen = seen.lock().unwrap();
    let [first, second] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((first.number(), first.is_takeover()), (1, false));
    assert_eq!((second.number(), second.is_takeover()), (2, true));
    assert!(first.fence() < second.fence());
    assert_eq!(first.downstream_key(), second.downstream_key());
    assert_eq!(first.key().text(), "k");
    assert_eq!(first.key().scope().operation(), "charge");
}

#[tokio::test(start_paused = true)]
async fn without_a_key_there_is_no_attempt() {
    let optional = |attempt: Option<Attempt>| std::future::ready(attempt.is_some().to_string());
    let required = |Attempt(_): Attempt| std::future::ready("never".into_response());
    let routes =
        Router::new().route("/optional", on_post(optional)).route("/required", on_post(required));
    let layer = builder(operation(Shared::default())).optional_key().build().unwrap();
    let app = behind(routes, layer);
    let keyed = crate::support::request(Method::POST, "/optional");
    assert_eq!(text(&send_json(&app, keyed, "{}").await), "true");
    assert_eq!(text(&send_json(&app, unkeyed(Method::POST, "/optional"), "{}").await), "false");
    let answer = send_json(&app, unkeyed(Method::POST, "/required"), "{}").await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
}
