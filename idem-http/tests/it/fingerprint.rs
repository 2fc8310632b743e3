//! What makes two requests the same request.

use axum::Router;
use axum::body::Body;
use http::{Method, StatusCode};
use idem_core::{Fingerprint, FingerprintKey};
use idem_http::{BodyPart, FingerprintParts};

use crate::stores::Shared;
use crate::support::{Calls, behind, builder, charging, code, operation, request, send, send_json};

fn app(parts: FingerprintParts) -> Router {
    let layer = builder(operation(Shared::default())).fingerprint(parts).build().unwrap();
    behind(charging(&Calls::default()), layer)
}

/// Whether the second body is the same request as the first.
async fn same(parts: FingerprintParts, first: &str, second: &str) -> bool {
    same_at(parts, ("/charges", first), ("/charges", second)).await
}

async fn same_at(parts: FingerprintParts, first: (&str, &str), second: (&str, &str)) -> bool {
    let app = app(parts);
    let status = async |(path, body): (&str, &str)| {
        send_json(&app, request(Method::POST, path), body).await.status()
    };
    assert_eq!(status(first).await, StatusCode::CREATED);
    match status(second).await {
        StatusCode::CREATED => true,
        StatusCode::UNPROCESSABLE_ENTITY => false,
        other => panic!("{other}"),
    }
}

// C47
#[tokio::test(start_paused = true)]
async fn a_query_counts_unless_it_is_said_not_to() {
    let (dry, real) = (("/charges?dry=1", "{}"), ("/charges", "{}"));
    assert!(!same_at(FingerprintParts::default(), dry, real).await);
    assert!(!same_at(FingerprintParts::default(), ("/charges?", "{}"), real).await);
    assert!(same_at(FingerprintParts::default(), dry, dry).await);
    assert!(same_at(FingerprintParts::default().ignore_query(), dry, real).await);
}

// C49
#[tokio::test(start_paused = true)]
async fn members_have_an_order_only_in_bytes() {
    let (one, other) = (r#"{"a":{"x":1,"y":2},"b":0}"#, r#"{ "b":0, "a":{"y":2,"x":1}}"#);
    assert!(!same(FingerprintParts::default(), one, other).await);
    let json = || FingerprintParts::default().body(BodyPart::Json);
    assert!(same(json(), one, other).await);
    assert!(!same(json(), one, r#"{"a":{"x":1,"y":3},"b":0}"#).await);
    // Types and the order of arrays count, and what is no JSON counts as it is.
    for (one, other) in
        [("1", "\"1\""), ("[1,2]", "[2,1]"), ("{", "{ "), ("null", ""), ("{}", "[]")]
    {
        assert!(!same(json(), one, other).await, "{one} {other}");
    }
    assert!(same(json(), "{", "{").await);
}

// C51, C54, C94: only what is named defines the request.
#[tokio::test(start_paused = true)]
async fn a_rule_can_name_the_fields() {
    let amount = || {
        FingerprintParts::by(|_, body| {
            let body: serde_json::Value = serde_json::from_slice(body)?;
            Ok(Fingerprint::of(&body["amount"])?)
        })
    };
    assert!(same(amount(), r#"{"amount":1,"at":"10:00"}"#, r#"{"amount":1,"at":"10:01"}"#).await);
    assert!(!same(amount(), r#"{"amount":1}"#, r#"{"amount":2}"#).await);
    let broken = send_json(&app(amount()), request(Method::POST, "/charges"), "{").await;
    assert_eq!(
        (broken.status(), code(&broken).as_str()),
        (StatusCode::BAD_REQUEST, "no_fingerprint")
    );
}

#[tokio::test(start_paused = true)]
async fn an_ignored_body_does_not_count() {
    assert!(same(FingerprintParts::default().body(BodyPart::Ignored), "1", "2").await);
}

// C45: nothing is something.
#[tokio::test(start_paused = true)]
async fn an_empty_body_is_a_body() {
    assert!(same(FingerprintParts::default(), "", "").await);
    assert!(!same(FingerprintParts::default(), "", "{}").await);
}

#[tokio::test(start_paused = true)]
async fn headers_count_if_they_are_named() {
    let of = async |parts: FingerprintParts, name: &str| {
        let app = app(parts);
        let mut statuses = Vec::new();
        for value in ["a/b", "a/c"] {
            let mut request = request(Method::POST, "/charges").body(Body::empty()).unwrap();
            let name: http::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
            statuses.push(send(&app, Ok(request)).await.status().as_u16());
        }
        statuses[1] == 201
    };
    assert!(!of(FingerprintParts::default(), "content-type").await);
    assert!(of(FingerprintParts::default().ignore_content_type(), "content-type").await);
    assert!(of(FingerprintParts::default(), "api-version").await);
    assert!(!of(FingerprintParts::default().header("api-version").unwrap(), "api-version").await);
    // Named twice is named.
    let twice = FingerprintParts::default().header("content-type").unwrap();
    assert!(!of(twice, "content-type").await);
}

#[tokio::test(start_paused = true)]
async fn a_keyed_fingerprint_tells_requests_apart_as_well() {
    let keyed = || {
        let key = FingerprintKey::new(b"sixteen bytes, or more").unwrap();
        FingerprintParts::default().keyed(key)
    };
    assert!(same(keyed(), "{}", "{}").await);
    assert!(!same(keyed(), "{}", "[]").await);
}
