//! What is true of any right layer, and what each wrong one breaks.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use http::header::{LOCATION, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, StatusCode};
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use crate::support::{
    Calls, MS, SEC, charge, charging, is_replay, post, request, routes, send, send_json, text,
    unkeyed,
};

/// What a layer does while the same request runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Wait,
    Reject,
}

/// Puts routes behind authentication, authorisation and the layer in question.
pub(crate) type Candidate<'a> = &'a (dyn Fn(Router, Mode) -> Router + Sync);

/// What was seen and should not have been.
#[derive(Debug)]
pub(crate) struct Violated(String);

impl fmt::Display for Violated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

type Checked<'a> = Pin<Box<dyn Future<Output = Result<(), Violated>> + 'a>>;

pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) check: for<'a> fn(Candidate<'a>) -> Checked<'a>,
}

macro_rules! properties {
    ($($name:ident),* $(,)?) => {
        pub(crate) const ALL: &[Property] = &[
            $(Property { name: stringify!($name), check: |layer| Box::pin($name(layer)) },)*
        ];
    };
}

properties![
    the_same_request_is_charged_once_and_answered_alike,
    a_retry_in_flight_gets_the_first_ones_answer,
    principals_do_not_share_keys,
    methods_do_not_share_keys,
    paths_do_not_share_keys,
    a_body_is_replayed_whole,
    a_status_is_replayed,
    headers_are_replayed_with_repeats_and_bytes,
    what_is_about_one_caller_or_message_is_not_replayed,
    a_server_error_is_not_replayed,
    a_request_without_its_key_is_refused,
    two_key_lines_are_refused,
    quoted_and_bare_forms_of_a_key_meet,
    a_request_in_progress_is_told_when_to_retry,
    a_revoked_right_is_no_right_to_a_replay,
    a_client_that_leaves_does_not_cancel_its_charge,
    replays_are_marked_and_nothing_else_is,
    a_safe_method_is_not_deduplicated,
    every_byte_of_a_body_counts,
];

macro_rules! ensure {
    ($holds:expr, $($seen:tt)+) => {
        if !$holds {
            return Err(Violated(format!($($seen)+)));
        }
    };
}

// C88, C96: that the handler did not run is seen, not assumed.
async fn the_same_request_is_charged_once_and_answered_alike(
    layer: Candidate<'_>,
) -> Result<(), Violated> {
    let calls = Calls::default();
    let app = layer(charging(&calls), Mode::Wait);
    for _ in 0..3 {
        let answer = charge(&app).await;
        ensure!(text(&answer) == "ch_1", "{answer:?}");
    }
    ensure!(calls.count() == 1, "{} charges", calls.count());
    Ok(())
}

// C7
async fn a_retry_in_flight_gets_the_first_ones_answer(
    layer: Candidate<'_>,
) -> Result<(), Violated> {
    let calls = Calls::default();
    let app = layer(slow(&calls), Mode::Wait);
    let retry = async {
        sleep(50 * MS).await;
        charge(&app).await
    };
    let (first, retry) = tokio::join!(charge(&app), retry);
    ensure!(text(&first) == text(&retry), "{first:?}, {retry:?}");
    ensure!(calls.count() == 1, "{} charges", calls.count());
    Ok(())
}

/// The provider of the article's scenario: it needs 300 ms. What counts is a charge that was made.
fn slow(done: &Calls) -> Router {
    let done = done.clone();
    routes(move |_| {
        let done = done.clone();
        async move {
            sleep(300 * MS).await;
            (StatusCode::CREATED, format!("ch_{}", done.one_more()))
        }
    })
}

/// Two requests that must not meet: each is charged.
async fn apart(
    layer: Candidate<'_>,
    one: http::request::Builder,
    other: http::request::Builder,
) -> Result<(), Violated> {
    let calls = Calls::default();
    let app = layer(charging(&calls), Mode::Wait);
    let one = send_json(&app, one, "{}").await;
    let other = send_json(&app, other, "{}").await;
    ensure!((text(&one), text(&other)) == ("ch_1", "ch_2"), "{one:?}, {other:?}");
    Ok(())
}

// C61, C63
async fn principals_do_not_share_keys(layer: Candidate<'_>) -> Result<(), Violated> {
    let mut bobs = post();
    bobs.headers_mut().unwrap().insert("authorization", HeaderValue::from_static("Bearer bob"));
    apart(layer, post(), bobs).await
}

async fn methods_do_not_share_keys(layer: Candidate<'_>) -> Result<(), Violated> {
    apart(layer, post(), request(Method::PATCH, "/charges")).await
}

// C66
async fn paths_do_not_share_keys(layer: Candidate<'_>) -> Result<(), Violated> {
    let capture = |order| request(Method::POST, &format!("/orders/{order}/capture"));
    apart(layer, capture(1), capture(2)).await
}

// C91
async fn a_body_is_replayed_whole(layer: Candidate<'_>) -> Result<(), Violated> {
    for length in [0, 1, 100_000] {
        let body: Vec<u8> = (0..length).map(|n: u32| n.to_le_bytes()[0]).collect();
        let given = body.clone();
        let app = layer(routes(move |_| std::future::ready(given.clone())), Mode::Wait);
        let (first, replay) = (charge(&app).await, charge(&app).await);
        ensure!(first.body() == &body, "{} bytes at first", first.body().len());
        ensure!(is_replay(&replay) && replay.body() == &body, "{} bytes", replay.body().len());
    }
    Ok(())
}

// C87, C93, C95
async fn a_status_is_replayed(layer: Candidate<'_>) -> Result<(), Violated> {
    for status in [200, 201, 202, 204, 303, 402, 404] {
        let status = StatusCode::from_u16(status).unwrap();
        let respond = move |_| std::future::ready((status, [(LOCATION, "/charges/1")]));
        let app = layer(routes(respond), Mode::Wait);
        let (first, replay) = (charge(&app).await, charge(&app).await);
        ensure!(is_replay(&replay), "{replay:?}");
        for answer in [first, replay] {
            ensure!(answer.status() == status, "{answer:?}");
            ensure!(answer.headers()[LOCATION] == "/charges/1", "{answer:?}");
        }
    }
    Ok(())
}

// C81
async fn headers_are_replayed_with_repeats_and_bytes(layer: Candidate<'_>) -> Result<(), Violated> {
    let values: [&[u8]; 3] = [b"one", b"caf\xe9", b""];
    let app = layer(
        routes(move |_| async move {
            let mut response = "ok".into_response();
            for value in values {
                let value = HeaderValue::from_bytes(value).unwrap();
                response.headers_mut().append("x-repeated", value);
            }
            response
        }),
        Mode::Wait,
    );
    for _ in 0..2 {
        let answer = charge(&app).await;
        let seen = answer.headers().get_all("x-repeated").iter().map(HeaderValue::as_bytes);
        ensure!(seen.eq(values), "{answer:?}");
    }
    Ok(())
}

// C82, C85
async fn what_is_about_one_caller_or_message_is_not_replayed(
    layer: Candidate<'_>,
) -> Result<(), Violated> {
    let app = layer(
        routes(|_| {
            let cookie = (SET_COOKIE, "session=alice");
            std::future::ready(([cookie, (WWW_AUTHENTICATE, "Basic")], "ok"))
        }),
        Mode::Wait,
    );
    let (first, replay) = (charge(&app).await, charge(&app).await);
    ensure!(first.headers()[SET_COOKIE] == "session=alice", "its own caller's: {first:?}");
    for name in [SET_COOKIE, WWW_AUTHENTICATE] {
        ensure!(!replay.headers().contains_key(&name), "{replay:?}");
    }
    Ok(())
}

// C37, C39, C43
async fn a_server_error_is_not_replayed(layer: Candidate<'_>) -> Result<(), Violated> {
    for status in [500, 502, 503, 504] {
        let status = StatusCode::from_u16(status).unwrap();
        let calls = Calls::default();
        let counted = calls.clone();
        let outage = move |_| {
            let first = counted.one_more() == 1;
            std::future::ready(if first { status } else { StatusCode::CREATED })
        };
        let app = layer(routes(outage), Mode::Reject);
        let (first, retry) = (charge(&app).await, charge(&app).await);
        ensure!(first.status() == status && !is_replay(&first), "{first:?}");
        ensure!(retry.status() == StatusCode::CREATED && !is_replay(&retry), "{retry:?}");
    }
    Ok(())
}

async fn a_request_without_its_key_is_refused(layer: Candidate<'_>) -> Result<(), Violated> {
    let calls = Calls::default();
    let app = layer(charging(&calls), Mode::Wait);
    let answer = send_json(&app, unkeyed(Method::POST, "/charges"), "{}").await;
    ensure!(answer.status() == StatusCode::BAD_REQUEST && calls.count() == 0, "{answer:?}");
    Ok(())
}

// C78
async fn two_key_lines_are_refused(layer: Candidate<'_>) -> Result<(), Violated> {
    let calls = Calls::default();
    let app = layer(charging(&calls), Mode::Wait);
    for second in ["k", "other"] {
        let answer = send_json(&app, post().header("idempotency-key", second), "{}").await;
        ensure!(answer.status() == StatusCode::BAD_REQUEST && calls.count() == 0, "{answer:?}");
    }
    Ok(())
}

// C78
async fn quoted_and_bare_forms_of_a_key_meet(layer: Candidate<'_>) -> Result<(), Violated> {
    let app = layer(charging(&Calls::default()), Mode::Wait);
    for key in ["k", "\"k\"", "\"k\";v=1", "k;v=1"] {
        let keyed = unkeyed(Method::POST, "/charges").header("idempotency-key", key);
        let answer = send_json(&app, keyed, "{}").await;
        ensure!(text(&answer) == "ch_1", "{key}: {answer:?}");
    }
    Ok(())
}

async fn a_request_in_progress_is_told_when_to_retry(layer: Candidate<'_>) -> Result<(), Violated> {
    let calls = Calls::default();
    let app = layer(slow(&calls), Mode::Reject);
    let second = async {
        sleep(50 * MS).await;
        charge(&app).await
    };
    let (first, second) = tokio::join!(charge(&app), second);
    ensure!(first.status() == StatusCode::CREATED, "{first:?}");
    ensure!(second.status() == StatusCode::CONFLICT && calls.count() == 1, "{second:?}");
    let after = second.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
    let seconds = after.and_then(|after| after.parse::<u32>().ok());
    ensure!(seconds.is_some_and(|seconds| (1..=30).contains(&seconds)), "{second:?}");
    Ok(())
}

async fn a_revoked_right_is_no_right_to_a_replay(layer: Candidate<'_>) -> Result<(), Violated> {
    let app = layer(charging(&Calls::default()), Mode::Wait);
    let first = send_json(&app, post(), "{}").await;
    ensure!(first.status() == StatusCode::CREATED, "{first:?}");
    let mut again = post();
    let revoked = HeaderValue::from_static("Bearer alice:revoked");
    again.headers_mut().unwrap().insert("authorization", revoked);
    let again = send_json(&app, again, "{}").await;
    ensure!(again.status() == StatusCode::FORBIDDEN && again.body().is_empty(), "{again:?}");
    Ok(())
}

// C31
async fn a_client_that_leaves_does_not_cancel_its_charge(
    layer: Candidate<'_>,
) -> Result<(), Violated> {
    let done = Calls::default();
    let app = layer(slow(&done), Mode::Wait);
    let left = timeout(100 * MS, charge(&app)).await;
    ensure!(left.is_err(), "it was done already: {left:?}");
    sleep(SEC).await;
    ensure!(done.count() == 1, "{} charges without the client", done.count());
    let retry = charge(&app).await;
    ensure!(text(&retry) == "ch_1" && is_replay(&retry), "{retry:?}");
    Ok(())
}

async fn replays_are_marked_and_nothing_else_is(layer: Candidate<'_>) -> Result<(), Violated> {
    let app = layer(charging(&Calls::default()), Mode::Wait);
    let marks = |answer: &crate::support::Answer| {
        answer.headers().get_all("idempotent-replayed").iter().count()
    };
    let first = charge(&app).await;
    ensure!(marks(&first) == 0, "{first:?}");
    let replay = charge(&app).await;
    ensure!(marks(&replay) == 1 && is_replay(&replay), "{replay:?}");
    let mismatch = send_json(&app, post(), "{\"amount\":7}").await;
    ensure!(marks(&mismatch) == 0, "{mismatch:?}");
    Ok(())
}

async fn a_safe_method_is_not_deduplicated(layer: Candidate<'_>) -> Result<(), Violated> {
    let app = layer(charging(&Calls::default()), Mode::Wait);
    for expected in ["ch_1", "ch_2"] {
        let answer = send(&app, request(Method::GET, "/charges").body(Body::empty())).await;
        ensure!(text(&answer) == expected && !is_replay(&answer), "{answer:?}");
    }
    Ok(())
}

// C45, C8: also where the body comes in pieces, and differs in the last.
async fn every_byte_of_a_body_counts(layer: Candidate<'_>) -> Result<(), Violated> {
    let calls = Calls::default();
    let app = layer(charging(&calls), Mode::Wait);
    let in_pieces = |last: &'static str| {
        let chunks = ["{\"order\":\"o-1\",", "\"amount\":", last, "}"];
        let chunks = chunks.map(Ok::<_, std::io::Error>);
        post().body(Body::from_stream(futures_util::stream::iter(chunks))).unwrap()
    };
    let send = |last| {
        let app = app.clone();
        async move { app.oneshot(in_pieces(last)).await.unwrap().status() }
    };
    let statuses = [send("100").await, send("100").await, send("999").await, send("").await];
    ensure!(statuses.map(|status| status.as_u16()) == [201, 201, 422, 422], "{statuses:?}");
    ensure!(calls.count() == 1, "{} charges", calls.count());
    Ok(())
}

/// Runs a property, which must not take for ever.
pub(crate) async fn holds(property: &Property, layer: Candidate<'_>) -> Result<(), Violated> {
    timeout(Duration::from_hours(1), (property.check)(layer))
        .await
        .unwrap_or_else(|_| Err(Violated("it never ends".to_owned())))
}
