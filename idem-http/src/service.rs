//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use tower_service::Service;

use crate::body::{Body, Whole};
use crate::config::Config;
use crate::future::ResponseFuture;
use crate::handling::Handling;
use crate::key::{BadKey, read_key};
use crate::problem::Problem;
use crate::render::{Form, render};

/// A service whose requests have their effect once per key; made by
/// [`IdempotencyLayer`](crate::IdempotencyLayer).
///
/// The handler finds its [`RunningAttempt`](idem_core::RunningAttempt) among the request's
/// extensions.
///
/// # The handler's task
/// The handler starts in its caller's task, and moves to one of its own as soon as it waits for
/// anything. Its log span moves with it; Tokio's task-locals of the layers in front do not. Hand
/// on what it needs in the request's extensions.
///
/// # Cancellation
/// Dropping the response future while the request's body is read, or while another attempt is
/// waited for, leaves nothing behind. Once the handler runs, it is driven to its end and its
/// response recorded, whether or not the client is still there.
#[derive(Clone, Debug)]
pub struct Idempotency<S> {
    inner: S,
    config: Arc<Config>,
}

impl<S> Idempotency<S> {
    pub(crate) fn new(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
    }
}

impl<S, B, R> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<Body<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: HttpBody<Data: Send, Error: Send> + Send + 'static,
    R: HttpBody<Data: Send, Error: Send> + Send + 'static,
{
    type Response = Response<Body<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let config = &self.config;
        if !config.methods.contains(request.method()) {
            return ResponseFuture::passed(self.inner.call(request.map(Body::passed)));
        }
        let key = match read_key(request.headers(), config.format) {
            Ok(Some(key)) => key.into_owned(),
            Ok(None) if !config.required => {
                return ResponseFuture::passed(self.inner.call(request.map(Body::passed)));
            }
            Ok(None) => return refused(&request, &BadKey::Missing.into(), config),
            Err(why) => return refused(&request, &why.into(), config),
        };
        // The service that was polled ready is the one to call.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        let handling = Handling { inner, config: Arc::clone(config), key };
        ResponseFuture::handled(handling.respond(request))
    }
}

fn refused<F, B, R: HttpBody, E>(
    request: &Request<B>,
    problem: &Problem,
    config: &Config,
) -> ResponseFuture<F, R, E> {
    let form = Form::wanted(request.headers());
    ResponseFuture::refused(render(problem, form, config).map(read))
}

/// The body of a problem.
pub(crate) fn read<R: HttpBody>(data: Bytes) -> Body<R> {
    Body::whole(Whole { data, trailers: None })
}
