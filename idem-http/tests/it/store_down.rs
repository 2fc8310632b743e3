//! When the store fails.

use axum::Extension;
use axum::routing::any;
use http::StatusCode;
use idem_core::{OnStoreFailure, RunningAttempt};

use crate::stores::Down;
use crate::support::{Calls, behind, builder, charge, charging, code, is_replay, operation, text};

// C98, C111: one policy, and it is the operation's.
#[tokio::test(start_paused = true)]
async fn closed_is_503_and_nothing_runs() {
    let calls = Calls::default();
    let closed = operation(Down).on_store_failure(OnStoreFailure::Refuse);
    let app = behind(charging(&calls), builder(closed).build().unwrap());
    for _ in 0..3 {
        let answer = charge(&app).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!((code(&answer).as_str(), calls.count()), ("store_unavailable", 0));
    }
}

#[tokio::test(start_paused = true)]
async fn open_runs_and_the_handler_knows() {
    let routes = axum::Router::new().route(
        "/{*path}",
        any(|Extension(attempt): Extension<RunningAttempt>| {
            std::future::ready(format!("protected: {}", attempt.is_protected()))
        }),
    );
    let app = behind(routes, builder(operation(Down)).build().unwrap());
    let answer = charge(&app).await;
    assert_eq!((text(&answer), is_replay(&answer)), ("protected: false", false));
}
