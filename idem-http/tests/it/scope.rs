//! Whose key it is, and of what.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::post as on_post;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Method, StatusCode};
use idem_core::Coordinator;
use idem_http::{Anonymous, IdempotencyLayer, Principals, or_anonymous};

use crate::stores::{Shared, Tampered};
use crate::support::{
    Answer, Calls, app, behind, builder, charge, charging, code, operation, post, request, send,
    send_json, text, unkeyed,
};

/// The routes behind a layer whose principals these are, and nothing else.
fn by(principals: impl Principals, routes: Router) -> Router {
    let layer = IdempotencyLayer::builder(operation(Shared::default()), principals);
    routes.layer(layer.build().unwrap())
}

async fn charge_as(app: &Router, credentials: &[(&'static str, &'static str)]) -> Answer {
    let mut request = Request::post("/charges").header("idempotency-key", "k");
    for (name, value) in credentials {
        request = request.header(*name, *value);
    }
    send(app, request.body(Body::empty())).await
}

// C62: who is nobody shares no scope by accident.
#[tokio::test(start_paused = true)]
async fn a_request_without_a_principal_is_refused() {
    let calls = Calls::default();
    for principal in [None, Some(String::new())] {
        let app = by(move |_: &Parts| principal.clone(), charging(&calls));
        let answer = charge_as(&app, &[]).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
        assert_eq!((code(&answer).as_str(), calls.count()), ("no_principal", 0));
    }
}

// C62: and no principal is named so that it is anonymous.
#[tokio::test(start_paused = true)]
async fn anonymous_is_no_principal() {
    let named =
        |parts: &Parts| parts.headers.get("x-user").map(|user| user.to_str().unwrap().to_owned());
    let app = by(or_anonymous(named), charging(&Calls::default()));
    let anonymous = charge_as(&app, &[]).await;
    for user in ["anonymous", "Anonymous", "none", "null", "0"] {
        let theirs = charge_as(&app, &[("x-user", user)]).await;
        assert_ne!(theirs.body(), anonymous.body());
    }
    assert_eq!(charge_as(&app, &[]).await.body(), anonymous.body());
}

#[tokio::test(start_paused = true)]
async fn anonymous_has_to_be_spelled_out_and_is_shared() {
    let app = by(Anonymous, charging(&Calls::default()));
    let (first, other) = (charge_as(&app, &[]).await, charge_as(&app, &[("x-user", "bob")]).await);
    assert_eq!((text(&first), text(&other)), ("ch_1", "ch_1"));
}

// C64: whatever a principal is known by.
#[tokio::test(start_paused = true)]
async fn principals_are_told_apart_by_what_the_hook_reads() {
    for name in ["cookie", "x-api-key", "x-client-cert-subject"] {
        let of = move |parts: &Parts| {
            parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let app = by(of, charging(&Calls::default()));
        assert_eq!(text(&charge_as(&app, &[(name, "alice")]).await), "ch_1");
        assert_eq!(text(&charge_as(&app, &[(name, "bob")]).await), "ch_2");
        assert_eq!(text(&charge_as(&app, &[(name, "alice")]).await), "ch_1");
    }
}

// C65: a token that was rotated between a request and its retry is the same principal.
#[tokio::test(start_paused = true)]
async fn a_rotated_credential_is_the_same_principal() {
    let of = |parts: &Parts| {
        let token = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
        token.split('.').next().map(str::to_owned)
    };
    let app = by(of, charging(&Calls::default()));
    for token in ["alice.token-1", "alice.token-2"] {
        assert_eq!(text(&charge_as(&app, &[("authorization", token)]).await), "ch_1");
    }
}

// C66: the concrete path, not the route's template; also below nested routers, which cut it.
#[tokio::test(start_paused = true)]
async fn nested_routers_do_not_share_keys() {
    let calls = Calls::default();
    let inner = charging(&calls)
        .layer(IdempotencyLayer::builder(operation(Shared::default()), Anonymous).build().unwrap());
    let app = Router::new()
        .nest("/accounts/{id}", inner.clone())
        .nest("/v2", Router::new().nest("/accounts/{id}", inner));
    let mut answers = Vec::new();
    for path in ["/accounts/1/charges", "/accounts/2/charges", "/v2/accounts/1/charges"] {
        for _ in 0..2 {
            let answer = send_json(&app, request(Method::POST, path), "{}").await;
            answers.push(text(&answer).to_owned());
        }
    }
    assert_eq!(answers, ["ch_1", "ch_1", "ch_2", "ch_2", "ch_3", "ch_3"]);
}

// C68, C69, C70: a layer keeps nothing per call, so sharing a store and laying it on twice is safe.
#[tokio::test(start_paused = true)]
async fn operations_on_one_store_do_not_meet() {
    let idem = Coordinator::builder(Shared::default()).without_logs().build().unwrap();
    let calls = Calls::default();
    let apps = ["charge", "refund"]
        .map(|name| behind(charging(&calls), builder(idem.operation(name)).build().unwrap()));
    for expected in ["ch_1", "ch_2"].iter().cycle().zip(apps.iter().cycle()).take(4) {
        assert_eq!(&text(&charge(expected.1).await), expected.0);
    }
}

// C69: one inside the other, each completes its own record.
#[tokio::test(start_paused = true)]
async fn an_operation_inside_another_has_its_own_record() {
    let idem = Coordinator::builder(Shared::default()).without_logs().build().unwrap();
    let calls = Calls::default();
    let layer = |name| builder(idem.operation(name)).build().unwrap();
    let app = behind(charging(&calls).layer(layer("inner")), layer("outer"));
    for _ in 0..2 {
        assert_eq!(text(&charge(&app).await), "ch_1");
    }
    // A layer laid on twice asks for its own key inside its own action: an error, no deadlock.
    let twice = behind(charging(&calls).layer(layer("twice")), layer("twice"));
    assert_eq!(code(&charge(&twice).await), "reentrant");
}

// C73: whatever a key says, it is only a key.
#[tokio::test(start_paused = true)]
async fn keys_that_look_like_something_else_are_keys() {
    let app = app(charging(&Calls::default()));
    let keys = ["../x", "user", "{tag}", "*", "\"a b\"", "\"\\\"\"", "anonymous", "K", "k"];
    for replayed in [false, true] {
        for (at, key) in keys.iter().enumerate() {
            let keyed = unkeyed(Method::POST, "/charges").header("idempotency-key", *key);
            let answer = send_json(&app, keyed, "{}").await;
            assert_eq!(text(&answer), format!("ch_{}", at + 1), "{key}, {replayed}");
        }
    }
}

// C135: in front of the layer, who has no right costs no record.
#[tokio::test(start_paused = true)]
async fn a_caller_without_a_right_stores_nothing() {
    let store = Tampered::counting();
    let app =
        behind(charging(&Calls::default()), builder(operation(store.clone())).build().unwrap());
    for n in 0..1_000 {
        let stranger = Request::post("/charges").header("idempotency-key", n);
        assert_eq!(send(&app, stranger.body(Body::empty())).await.status(), 401);
        let mut revoked = unkeyed(Method::POST, "/charges").header("idempotency-key", n);
        let bearer = http::HeaderValue::from_static("Bearer alice:revoked");
        revoked.headers_mut().unwrap().insert(AUTHORIZATION, bearer);
        assert_eq!(send(&app, revoked.body(Body::empty())).await.status(), 403);
    }
    assert_eq!(store.reserves.count(), 0);
}

// C68: per route, by a layer of its own; other routes are left alone.
#[tokio::test(start_paused = true)]
async fn a_method_router_has_a_layer_of_its_own() {
    let calls = Calls::default();
    let counted = calls.clone();
    let handler = move || {
        let charge = format!("ch_{}", counted.one_more());
        async move { charge }
    };
    let layer = IdempotencyLayer::builder(operation(Shared::default()), Anonymous).build().unwrap();
    let app = Router::new()
        .route("/charges", on_post(handler.clone()).layer(layer))
        .route("/events", on_post(handler));
    let answers = async |path: &'static str| {
        let answer = send_json(&app, request(Method::POST, path), "{}").await;
        text(&answer).to_owned()
    };
    assert_eq!([answers("/charges").await, answers("/charges").await], ["ch_1", "ch_1"]);
    assert_eq!([answers("/events").await, answers("/events").await], ["ch_2", "ch_3"]);
    assert_eq!(send_json(&app, post(), "{}").await.status(), StatusCode::OK);
}
