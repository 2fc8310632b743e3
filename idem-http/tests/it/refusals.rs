//! What is refused, and how the client is told.

use axum::body::Body;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Response, StatusCode};
use idem_http::{KeyFormat, Problem};
use tokio::time::sleep;

use crate::stores::{Shared, Tampered};
use crate::support::{
    Calls, MS, SEC, app, behind, builder, charge, charging, code, is_replay, operation, post,
    rejecting, routes, send, send_json, text, unkeyed,
};

// C58, C73, C74, C76, C78: by a table of what clients send.
#[tokio::test(start_paused = true)]
async fn each_bad_key_is_a_400_that_names_the_rule_and_asks_nothing_of_the_store() {
    let long = "k".repeat(256);
    let huge = "k".repeat(1 << 20);
    let cases: [(&[&[u8]], &str); 11] = [
        (&[], "key_missing"),
        (&[b"a", b"a"], "key_repeated"),
        (&[b""], "key_empty"),
        (&[b"\"\""], "key_empty"),
        (&[long.as_bytes()], "key_too_long"),
        (&[huge.as_bytes()], "key_too_long"),
        (&[b"\"a"], "key_malformed"),
        (&[b"caf\xc3\xa9"], "key_malformed"),
        (&[b":YWJj:"], "key_malformed"),
        (&[b"a, b"], "key_malformed"),
        (&[b"\"a\tb\""], "key_malformed"),
    ];
    let (calls, store) = (Calls::default(), Tampered::counting());
    let layer = builder(operation(store.clone())).build().unwrap();
    let app = behind(charging(&calls), layer);
    for (lines, rule) in cases {
        let mut request = unkeyed(Method::POST, "/charges").body(Body::from("{}")).unwrap();
        for line in lines {
            let line = HeaderValue::from_bytes(line).unwrap();
            request.headers_mut().append("idempotency-key", line);
        }
        let answer = send(&app, Ok(request)).await;
        assert_eq!((answer.status(), code(&answer).as_str()), (StatusCode::BAD_REQUEST, rule));
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/problem+json");
        assert!(text(&answer).contains(&format!("urn:idem:problem:{}", rule.replace('_', "-"))));
        assert!(!text(&answer).contains("caf"), "a key is in no message");
    }
    assert_eq!((calls.count(), store.reserves.count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_strict_layer_takes_only_quoted_keys() {
    let layer = builder(operation(Shared::default())).key_format(KeyFormat::Strict);
    let app = behind(charging(&Calls::default()), layer.build().unwrap());
    assert_eq!(code(&charge(&app).await), "key_not_quoted");
    let quoted = unkeyed(Method::POST, "/charges").header("idempotency-key", "\"k\"");
    assert_eq!(send_json(&app, quoted, "{}").await.status(), StatusCode::CREATED);
}

// C59: without a key nothing is stored, and nobody meets anybody.
#[tokio::test(start_paused = true)]
async fn an_optional_key_may_be_missing_but_not_malformed() {
    let (calls, store) = (Calls::default(), Shared::default());
    let layer = builder(operation(store.clone())).optional_key().build().unwrap();
    let app = behind(charging(&calls), layer);
    for expected in ["ch_1", "ch_2"] {
        let answer = send_json(&app, unkeyed(Method::POST, "/charges"), "{}").await;
        assert_eq!(text(&answer), expected);
    }
    assert!(store.is_empty());
    let empty = unkeyed(Method::POST, "/charges").header("idempotency-key", "");
    assert_eq!(code(&send_json(&app, empty, "{}").await), "key_empty");
    let (first, replay) = (charge(&app).await, charge(&app).await);
    assert_eq!((text(&first), text(&replay), is_replay(&replay)), ("ch_3", "ch_3", true));
}

// C52: what is wrong with a request is said before what is in its way. C141: by a code.
#[tokio::test(start_paused = true)]
async fn another_request_under_the_key_is_422_also_while_the_first_runs() {
    let app = behind(
        routes(|_| async {
            sleep(SEC).await;
            "done"
        }),
        rejecting(),
    );
    let other = async {
        sleep(50 * MS).await;
        (charge(&app).await, send_json(&app, post(), r#"{"amount":999}"#).await)
    };
    let (first, (same, other)) = tokio::join!(charge(&app), other);
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!((same.status(), code(&same).as_str()), (StatusCode::CONFLICT, "in_progress"));
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(code(&other), "mismatch");
    assert!(!other.headers().contains_key(RETRY_AFTER), "it never fares better");
    // C140: the parts are named, the values are not.
    let parts = "the same method, path, query, content-type and body";
    assert!(text(&other).contains(parts) && !text(&other).contains("100"), "{other:?}");
    let later = send_json(&app, post(), r#"{"amount":999}"#).await;
    assert_eq!(code(&later), "mismatch");
}

#[tokio::test(start_paused = true)]
async fn a_problem_is_told_in_the_form_that_is_asked_for() {
    let app = app(charging(&Calls::default()));
    let bad = |accept: &str| {
        let request = unkeyed(Method::POST, "/charges").header(ACCEPT, accept);
        let app = app.clone();
        async move { send_json(&app, request, "{}").await }
    };
    let json = bad("application/json").await;
    assert_eq!(json.headers()[CONTENT_TYPE], "application/problem+json");
    let plain = bad("text/plain").await;
    assert_eq!(plain.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
    assert_eq!(plain.status(), StatusCode::BAD_REQUEST);
    assert!(text(&plain).contains("urn:idem:problem:key-missing"), "{plain:?}");
}

#[tokio::test(start_paused = true)]
async fn problems_can_be_rendered_in_ones_own_way() {
    let operation = operation(Shared::default()).in_flight(idem_core::InFlight::Reject);
    let layer = builder(operation).render(|problem: &Problem| {
        let body = format!("<{}/>", problem.code());
        Response::builder().status(problem.status()).body(body.into()).unwrap()
    });
    let app = behind(
        routes(|_| async {
            sleep(SEC).await;
            "done"
        }),
        layer.build().unwrap(),
    );
    let second = async {
        sleep(50 * MS).await;
        charge(&app).await
    };
    let (_, second) = tokio::join!(charge(&app), second);
    assert_eq!((text(&second), second.status()), ("<in_progress/>", StatusCode::CONFLICT));
    assert!(second.headers().contains_key(RETRY_AFTER), "it is not for the hook to forget");
}

#[tokio::test(start_paused = true)]
async fn type_uris_can_be_ones_own() {
    let base = "https://api.example.com/problems/";
    let layer = builder(operation(Shared::default())).problem_base(base).build().unwrap();
    let app = behind(charging(&Calls::default()), layer);
    let answer = send_json(&app, unkeyed(Method::POST, "/charges"), "{}").await;
    assert!(text(&answer).contains("https://api.example.com/problems/key-missing"), "{answer:?}");
}

// A request that is refused takes no key with it.
#[tokio::test(start_paused = true)]
async fn a_coordinator_that_drains_answers_503() {
    let idem = idem_core::Coordinator::builder(Shared::default()).without_logs().build().unwrap();
    let calls = Calls::default();
    let app = behind(charging(&calls), builder(idem.operation("charge")).build().unwrap());
    assert_eq!(charge(&app).await.status(), StatusCode::CREATED);
    idem.drain(SEC).await.unwrap();
    let answer = charge(&app).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!((code(&answer).as_str(), calls.count()), ("shutting_down", 1));
}
