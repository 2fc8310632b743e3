//! The client's half.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use idem_http::client::{MintKey, RetryWithKey};
use tokio::time::Instant;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::support::{Calls, MS, SEC, rejecting, routes};

type Answer = Result<Response<&'static str>, &'static str>;

/// A server that gives these answers and then 201, and remembers the keys it was sent, with when.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// The key of a request, and when it came.
type Seen = (Option<String>, Instant);

impl Server {
    fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }

    fn answer(&self, request: &Request<Full<Bytes>>) -> Answer {
        let key = request.headers().get("idempotency-key");
        let key = key.map(|key| key.to_str().unwrap().to_owned());
        self.seen.lock().unwrap().push((key, Instant::now()));
        self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(status(201)))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let server = self.clone();
        let mut client = ServiceBuilder::new()
            .layer(MintKey::default())
            .retry(RetryWithKey::default())
            .service(service_fn(move |request| std::future::ready(server.answer(&request))));
        client.ready().await.unwrap().call(request).await
    }

    fn keys(&self) -> Vec<Option<String>> {
        self.seen.lock().unwrap().iter().map(|(key, _)| key.clone()).collect()
    }

    /// The pauses between the tries.
    fn pauses(&self) -> Vec<Duration> {
        self.seen.lock().unwrap().windows(2).map(|two| two[1].1 - two[0].1).collect()
    }
}

fn status(status: u16) -> Response<&'static str> {
    Response::builder().status(status).body("").unwrap()
}

fn retry_after(code: u16, after: &str) -> Response<&'static str> {
    let mut response = status(code);
    response.headers_mut().insert("retry-after", after.parse().unwrap());
    response
}

fn request(method: Method) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("/charges").body(Full::from("{}")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_logical_request_has_one_key_and_another_has_another() {
    let server = Server::answering([Err("reset"), Ok(status(503))]);
    assert_eq!(server.send(request(Method::POST)).await.unwrap().status(), 201);
    server.send(request(Method::POST)).await.unwrap();
    let keys = server.keys();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3], "{keys:?}");
    let key = keys[0].as_ref().unwrap();
    assert!(key.len() == 34 && key.starts_with('"') && key.ends_with('"'), "{key}");
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_callers_own_is_kept() {
    let server = Server::answering([Err("reset")]);
    let mut own = request(Method::POST);
    own.headers_mut().insert("idempotency-key", "\"own\"".parse().unwrap());
    server.send(own).await.unwrap();
    assert_eq!(server.keys(), vec![Some("\"own\"".to_owned()); 2]);
}

// Without a key nobody can tell a retry from another request.
#[tokio::test(start_paused = true)]
async fn a_request_without_a_key_is_sent_once() {
    let server = Server::answering([Err("reset")]);
    assert_eq!(server.send(request(Method::DELETE)).await.unwrap_err(), "reset");
    assert_eq!(server.keys(), [None]);
}

#[tokio::test(start_paused = true)]
async fn only_what_may_fare_better_is_sent_again() {
    let again = [408, 425, 429, 500, 502, 503, 504].map(status);
    for answer in again.into_iter().chain([retry_after(409, "1")]) {
        let first = answer.status();
        let server = Server::answering([Ok(answer)]);
        assert_eq!(server.send(request(Method::POST)).await.unwrap().status(), 201, "{first}");
    }
    let final_ones = [200, 303, 400, 401, 402, 403, 404, 409, 410, 413, 501].map(status);
    for answer in final_ones.into_iter().chain([status(422), retry_after(422, "1")]) {
        let first = answer.status();
        let server = Server::answering([Ok(answer)]);
        assert_eq!(server.send(request(Method::PATCH)).await.unwrap().status(), first);
        assert_eq!(server.keys().len(), 1, "{first}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_when_is_heard_within_reason() {
    let at = |after: Duration| httpdate::fmt_http_date(SystemTime::now() + after);
    let waits = [
        (retry_after(503, "7"), 7 * SEC..=7 * SEC + MS),
        (retry_after(503, "0"), Duration::ZERO..=MS),
        (retry_after(503, "86400"), 30 * SEC..=30 * SEC + MS),
        (retry_after(503, &at(20 * SEC)), 15 * SEC..=20 * SEC),
        (retry_after(503, "Mon, 30 Nov 1998 00:00:00 GMT"), Duration::ZERO..=MS),
        (retry_after(503, "soon"), 150 * MS..=251 * MS),
    ];
    for (answer, expected) in waits {
        let server = Server::answering([Ok(answer)]);
        server.send(request(Method::POST)).await.unwrap();
        let pauses = server.pauses();
        assert!(expected.contains(&pauses[0]), "{pauses:?}, not {expected:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_after_pauses_that_grow() {
    let server = Server::answering((0..9).map(|_| Err("reset")));
    assert_eq!(server.send(request(Method::POST)).await.unwrap_err(), "reset");
    let pauses = server.pauses();
    assert_eq!(pauses.len(), 4);
    for (at, pause) in (0..).zip(pauses) {
        let middle = 200 * MS * 2_u32.pow(at);
        assert!((middle * 3 / 4..=middle * 5 / 4 + MS).contains(&pause), "{at}: {pause:?}");
    }
}

// Both halves together: the answer to the first try is lost, the second is told to wait, the
// third is the replay, and there is one charge.
#[tokio::test(start_paused = true)]
async fn client_and_layer_charge_once() {
    let calls = Calls::default();
    let counted = calls.clone();
    let slow = routes(move |_| {
        let charge = format!("ch_{}", counted.one_more());
        async move {
            tokio::time::sleep(SEC).await;
            (StatusCode::CREATED, charge)
        }
    });
    let app = crate::support::behind(slow, rejecting());
    let impatient = service_fn(move |request: Request<Full<Bytes>>| {
        let answer = app.clone().oneshot(request.map(Body::new));
        async move {
            tokio::time::timeout(100 * MS, answer)
                .await
                .map_err(|_| "no answer")
                .map(Result::unwrap)
        }
    });
    let mut client = ServiceBuilder::new()
        .layer(MintKey::default())
        .retry(RetryWithKey::default())
        .service(impatient);
    let mut charge = request(Method::POST);
    charge.headers_mut().insert("authorization", "Bearer alice".parse().unwrap());
    let response = client.ready().await.unwrap().call(charge).await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()["idempotent-replayed"], "true");
    assert_eq!(calls.count(), 1);
}
