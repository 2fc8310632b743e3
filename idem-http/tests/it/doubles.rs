//! Wrong layers: a small right one, broken in one place at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use tokio::sync::watch;

use crate::properties::Mode;
use crate::support::{User, authenticate, authorize};

/// What a wrong layer does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    ScopeWithoutPrincipal,
    ScopeWithoutMethod,
    ScopeWithoutPath,
    TruncatedBodyKept,
    StatusLost,
    RepeatedHeadersLost,
    ForbiddenHeadersReplayed,
    ServerErrorKept,
    MissingKeyLetThrough,
    FirstOfTwoKeysTaken,
    QuotesKeptInKey,
    NoRetryAfter,
    AuthorisationAfterReplay,
    DisconnectCancels,
    ReplayNotMarked,
    GetDeduplicated,
    FingerprintOfIncompleteBody,
}

/// Each fault, and the property that catches it.
pub(crate) const FAULTS: [(Fault, &str); 17] = [
    (Fault::ScopeWithoutPrincipal, "principals_do_not_share_keys"),
    (Fault::ScopeWithoutMethod, "methods_do_not_share_keys"),
    (Fault::ScopeWithoutPath, "paths_do_not_share_keys"),
    (Fault::TruncatedBodyKept, "a_body_is_replayed_whole"),
    (Fault::StatusLost, "a_status_is_replayed"),
    (Fault::RepeatedHeadersLost, "headers_are_replayed_with_repeats_and_bytes"),
    (Fault::ForbiddenHeadersReplayed, "what_is_about_one_caller_or_message_is_not_replayed"),
    (Fault::ServerErrorKept, "a_server_error_is_not_replayed"),
    (Fault::MissingKeyLetThrough, "a_request_without_its_key_is_refused"),
    (Fault::FirstOfTwoKeysTaken, "two_key_lines_are_refused"),
    (Fault::QuotesKeptInKey, "quoted_and_bare_forms_of_a_key_meet"),
    (Fault::NoRetryAfter, "a_request_in_progress_is_told_when_to_retry"),
    (Fault::AuthorisationAfterReplay, "a_revoked_right_is_no_right_to_a_replay"),
    (Fault::DisconnectCancels, "a_client_that_leaves_does_not_cancel_its_charge"),
    (Fault::ReplayNotMarked, "replays_are_marked_and_nothing_else_is"),
    (Fault::GetDeduplicated, "a_safe_method_is_not_deduplicated"),
    (Fault::FingerprintOfIncompleteBody, "every_byte_of_a_body_counts"),
];

/// The routes behind a layer with this fault, or none.
pub(crate) fn app(routes: Router, mode: Mode, fault: Option<Fault>) -> Router {
    let double = Double { fault, mode, records: Arc::default() };
    let idempotency = from_fn_with_state(double, handle);
    let routes = if fault == Some(Fault::AuthorisationAfterReplay) {
        routes.layer(from_fn(authorize)).layer(idempotency)
    } else {
        routes.layer(idempotency).layer(from_fn(authorize))
    };
    routes.layer(from_fn(authenticate))
}

#[derive(Clone)]
struct Double {
    fault: Option<Fault>,
    mode: Mode,
    records: Arc<Mutex<HashMap<Scoped, Record>>>,
}

/// Method, path, principal and key.
type Scoped = (String, String, String, String);

#[derive(Clone)]
struct Record {
    fingerprint: Bytes,
    /// `None` while the handler runs; closed without an answer if it was released.
    answer: watch::Receiver<Option<Stored>>,
}

#[derive(Clone)]
struct Stored {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

async fn handle(State(double): State<Double>, request: Request, next: Next) -> Response {
    let method = request.method();
    let deduplicated = *method == Method::POST
        || *method == Method::PATCH
        || (double.has(Fault::GetDeduplicated) && *method == Method::GET);
    if !deduplicated {
        return next.run(request).await;
    }
    match double.key(request.headers()) {
        Ok(Some(key)) => double.deduplicate(request, key, next).await,
        Ok(None) => next.run(request).await,
        Err(status) => status.into_response(),
    }
}

impl Double {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn key(&self, headers: &HeaderMap) -> Result<Option<String>, StatusCode> {
        let mut lines = headers.get_all("idempotency-key").iter();
        let Some(first) = lines.next() else {
            let through = self.has(Fault::MissingKeyLetThrough);
            return if through { Ok(None) } else { Err(StatusCode::BAD_REQUEST) };
        };
        if lines.next().is_some() && !self.has(Fault::FirstOfTwoKeysTaken) {
            return Err(StatusCode::BAD_REQUEST);
        }
        let text = first.to_str().map_err(|_| StatusCode::BAD_REQUEST)?;
        let text = text.split(';').next().unwrap_or_default();
        let bare = text.trim_matches('"');
        Ok(Some(if self.has(Fault::QuotesKeptInKey) { text } else { bare }.to_owned()))
    }

    fn scoped(&self, request: &Request, key: String) -> Scoped {
        let unless = |fault, part: &str| {
            if self.has(fault) { String::new() } else { part.to_owned() }
        };
        let user = request.extensions().get::<User>().unwrap();
        (
            unless(Fault::ScopeWithoutMethod, request.method().as_str()),
            unless(Fault::ScopeWithoutPath, request.uri().path()),
            unless(Fault::ScopeWithoutPrincipal, &user.0),
            key,
        )
    }

    async fn deduplicate(self, request: Request, key: String, next: Next) -> Response {
        let scoped = self.scoped(&request, key);
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let counted = if self.has(Fault::FingerprintOfIncompleteBody) { 16 } else { usize::MAX };
        let fingerprint = body.slice(..body.len().min(counted));
        let request = Request::from_parts(parts, Body::from(body));
        loop {
            let (send, receive) = watch::channel(None);
            let found = {
                let mut records = self.records.lock().unwrap();
                let found = records.get(&scoped).cloned();
                if found.is_none() {
                    let record = Record { fingerprint: fingerprint.clone(), answer: receive };
                    records.insert(scoped.clone(), record);
                }
                found
            };
            let Some(mut record) = found else {
                let running = self.clone().run(request, scoped, next, send);
                if self.has(Fault::DisconnectCancels) {
                    return running.await;
                }
                return tokio::spawn(running).await.unwrap();
            };
            if record.fingerprint != fingerprint {
                return StatusCode::UNPROCESSABLE_ENTITY.into_response();
            }
            let done = record.answer.borrow().clone();
            if let Some(stored) = done {
                return self.replay(stored);
            }
            if self.mode == Mode::Reject {
                let mut response = StatusCode::CONFLICT.into_response();
                if !self.has(Fault::NoRetryAfter) {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                }
                return response;
            }
            let _ = record.answer.changed().await;
        }
    }

    async fn run(
        self,
        request: Request,
        scoped: Scoped,
        next: Next,
        send: watch::Sender<Option<Stored>>,
    ) -> Response {
        let (parts, body) = next.run(request).await.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        if parts.status.is_server_error() && !self.has(Fault::ServerErrorKept) {
            self.records.lock().unwrap().remove(&scoped);
        } else {
            let most = if self.has(Fault::TruncatedBodyKept) { 1_024 } else { usize::MAX };
            let kept = body.slice(..body.len().min(most));
            let headers = parts.headers.clone();
            let _ = send.send(Some(Stored { status: parts.status, headers, body: kept }));
        }
        Response::from_parts(parts, Body::from(body))
    }

    fn replay(&self, stored: Stored) -> Response {
        let mut response = Response::new(Body::from(stored.body));
        if !self.has(Fault::StatusLost) {
            *response.status_mut() = stored.status;
        }
        for (name, value) in &stored.headers {
            let forbidden = [SET_COOKIE, WWW_AUTHENTICATE].contains(name);
            if forbidden && !self.has(Fault::ForbiddenHeadersReplayed) {
                continue;
            }
            if self.has(Fault::RepeatedHeadersLost) {
                response.headers_mut().insert(name, value.clone());
            } else {
                response.headers_mut().append(name, value.clone());
            }
        }
        if !self.has(Fault::ReplayNotMarked) {
            response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
        }
        response
    }
}
