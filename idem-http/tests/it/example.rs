//! The example does what it shows.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};
use idem_core::{Coordinator, InFlight};
use proptest::prelude::*;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::stores::Shared;
use crate::support::{Answer, MS, code, is_replay, post, send, send_json, text, unkeyed};

#[path = "../../examples/payments_api/app.rs"]
mod app;
#[path = "../../examples/payments_api/auth.rs"]
mod auth;
#[path = "../../examples/payments_api/provider.rs"]
mod provider;

const TAKES: Duration = Duration::from_millis(300);

fn api(in_flight: InFlight) -> Router {
    let idem = Coordinator::builder(Shared::default()).in_flight(in_flight).without_logs();
    app::router(&idem.build().unwrap(), provider::Provider::new(TAKES)).unwrap()
}

fn waiting() -> Router {
    api(InFlight::Wait { at_most: Duration::from_secs(30) })
}

async fn charge(api: &Router, amount: u64) -> Answer {
    send_json(api, post(), &format!(r#"{{"order_id":"o-1","amount":{amount}}}"#)).await
}

/// What was really charged.
async fn charges(api: &Router) -> Vec<Value> {
    let answer = send(api, http::Request::get("/charges").body(Body::empty())).await;
    serde_json::from_slice(answer.body()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_four_calls_of_the_readme() {
    let api = waiting();
    let first = charge(&api, 100).await;
    assert_eq!((first.status(), is_replay(&first)), (StatusCode::CREATED, false));
    assert_eq!(first.headers()[LOCATION], "/charges/ch_1");
    let replay = charge(&api, 100).await;
    assert_eq!((replay.status(), replay.body()), (StatusCode::CREATED, first.body()));
    assert!(is_replay(&replay) && replay.headers()[LOCATION] == "/charges/ch_1");
    assert_eq!(charge(&api, 999).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(charges(&api).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_at_once_wait_or_are_rejected() {
    let retry = async |api: &Router| {
        tokio::time::sleep(50 * MS).await;
        charge(api, 100).await
    };
    let api_that_waits = waiting();
    let (first, second) = tokio::join!(charge(&api_that_waits, 100), retry(&api_that_waits));
    assert_eq!((first.body(), is_replay(&second)), (second.body(), true));
    assert_eq!(charges(&api_that_waits).await.len(), 1);
    let rejecting = api(InFlight::Reject);
    let (first, second) = tokio::join!(charge(&rejecting, 100), retry(&rejecting));
    assert_eq!(first.status(), StatusCode::CREATED);
    assert_eq!((second.status(), code(&second).as_str()), (StatusCode::CONFLICT, "in_progress"));
    assert!(second.headers().contains_key(RETRY_AFTER));
    assert_eq!(charges(&rejecting).await.len(), 1);
}

// A charge outlives its client, so it is charges that are counted, not connections.
#[tokio::test(start_paused = true)]
async fn above_its_cap_the_example_refuses_and_stores_nothing() {
    let api = waiting();
    let keyed = |number: usize| {
        let mut keyed = post();
        let key = format!("\"k-{number}\"").parse().unwrap();
        keyed.headers_mut().unwrap().insert("idempotency-key", key);
        let api = api.clone();
        async move { send_json(&api, keyed, r#"{"order_id":"o-1","amount":100}"#).await }
    };
    let mut under_way: JoinSet<_> = (0..provider::IN_FLIGHT_CAP).map(keyed).collect();
    tokio::time::sleep(50 * MS).await;
    let refused = keyed(999).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[RETRY_AFTER], "1");
    tokio::time::sleep(TAKES).await;
    let retried = keyed(999).await;
    assert_eq!((retried.status(), is_replay(&retried)), (StatusCode::CREATED, false));
    while let Some(answer) = under_way.join_next().await {
        assert_eq!(answer.unwrap().status(), StatusCode::CREATED);
    }
}

// As a layer of the route it sees POST alone.
#[tokio::test(start_paused = true)]
async fn a_method_without_a_handler_is_told_so_and_not_asked_for_a_key() {
    let patch = unkeyed(Method::PATCH, "/charges");
    let answer = send_json(&waiting(), patch, "{}").await;
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(start_paused = true)]
async fn alice_and_bob_share_no_key_and_strangers_have_none() {
    let api = waiting();
    charge(&api, 100).await;
    let mut bobs = post();
    bobs.headers_mut().unwrap().insert(AUTHORIZATION, HeaderValue::from_static("Bearer bob"));
    let bobs = send_json(&api, bobs, r#"{"order_id":"o-1","amount":100}"#).await;
    assert!(text(&bobs).contains("bob") && !is_replay(&bobs), "{bobs:?}");
    let stranger = http::Request::post("/charges").header("idempotency-key", "k");
    let stranger = send(&api, stranger.body(Body::empty())).await;
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(charges(&api).await.len(), 2);
}

// The document and the code name the same problems, each under its status.
#[tokio::test(start_paused = true)]
async fn the_document_describes_the_problems() {
    let request = http::Request::get("/openapi.json").body(Body::empty());
    let answer = send(&waiting(), request).await;
    let document: Value = serde_json::from_slice(answer.body()).unwrap();
    let responses = &document["paths"]["/charges"]["post"]["responses"];
    let documented = |status: StatusCode, code: &str| {
        let content = &responses[status.as_str()]["content"]["application/problem+json"];
        let codes = &content["schema"]["allOf"][1]["properties"]["code"]["enum"];
        codes.as_array().is_some_and(|codes| codes.iter().any(|known| known == code))
    };
    let api = waiting();
    let unkeyed = || unkeyed(Method::POST, "/charges");
    let large = "x".repeat(1 << 17);
    let seen = [
        send_json(&api, unkeyed(), "{}").await,
        send_json(&api, unkeyed().header("idempotency-key", "\"k"), "{}").await,
        send_json(&api, post(), &large).await,
        {
            charge(&api, 100).await;
            charge(&api, 999).await
        },
    ];
    for answer in seen {
        assert!(documented(answer.status(), &code(&answer)), "{answer:?}");
    }
    let parameter = &document["components"]["parameters"]["IdempotencyKey"];
    assert_eq!(parameter["name"], "Idempotency-Key");
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        bytes(40),
        "[ -~]{0,300}".prop_map(String::into_bytes),
        "\"[ -~]{0,20}\"?(;[a-z]=[0-9]?)?".prop_map(String::into_bytes),
        "[ab]".prop_map(String::into_bytes),
    ]
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        bytes(100),
        any::<u8>().prop_map(|n| format!(r#"{{"order_id":"o","amount":{n}}}"#).into_bytes()),
        (0..100_000_usize).prop_map(|length| vec![b' '; length]),
    ]
}

/// One request, as anybody may send it.
fn any_request() -> impl Strategy<Value = http::Request<Body>> {
    let method =
        prop::sample::select(vec!["POST", "PATCH", "GET", "PUT", "DELETE", "OPTIONS", "X"]);
    let path =
        prop::sample::select(vec!["/charges", "/charges?a=1", "/charges/", "/", "/%ff", "*"]);
    let accept = prop::option::of("[a-z*/;=.,0-9 ]{0,30}");
    let media_type = prop::option::of(prop::sample::select(vec!["application/json", "text/plain"]));
    let keys = prop::collection::vec(any_key(), 0..3);
    (method, path, keys, accept, media_type, any_body()).prop_map(
        |(method, path, keys, accept, media_type, body)| {
            let mut request = http::Request::new(Body::from(body));
            *request.method_mut() = method.parse().unwrap();
            *request.uri_mut() = path.parse().unwrap();
            let headers = request.headers_mut();
            headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer alice"));
            for key in keys {
                if let Ok(key) = HeaderValue::from_bytes(&key) {
                    headers.append("idempotency-key", key);
                }
            }
            if let Some(accept) = accept {
                headers.insert("accept", accept.parse().unwrap());
            }
            if let Some(media_type) = media_type {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            }
            request
        },
    )
}

proptest! {
    // Whatever is sent, in whatever order: no server error, and no charge without a 201.
    #[test]
    fn no_request_is_a_server_error(requests in prop::collection::vec(any_request(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let api = waiting();
            let mut fresh = 0;
            for request in requests {
                let answer = send(&api, Ok(request)).await;
                prop_assert!(!answer.status().is_server_error(), "{answer:?}");
                fresh += usize::from(answer.status() == 201 && !is_replay(&answer));
            }
            prop_assert_eq!(charges(&api).await.len(), fresh);
            Ok(())
        })?;
    }
}
