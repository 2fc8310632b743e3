//! The response future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::Body as HttpBody;
use pin_project_lite::pin_project;

use crate::body::Body;

type Handled<R, E> = Pin<Box<dyn Future<Output = Result<Response<Body<R>>, E>> + Send>>;

pin_project! {
    /// The response of an [`Idempotency`](crate::Idempotency) service.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct ResponseFuture<F, R: HttpBody, E> {
        #[pin]
        inner: Inner<F, R, E>,
    }
}

pin_project! {
    #[project = Projected]
    enum Inner<F, R: HttpBody, E> {
        Passed { #[pin] future: F },
        Handled { future: Handled<R, E> },
        Refused { response: Option<Response<Body<R>>> },
    }
}

impl<F, R: HttpBody, E> ResponseFuture<F, R, E> {
    /// The handler's own.
    pub(crate) fn passed(future: F) -> Self {
        Self { inner: Inner::Passed { future } }
    }

    /// That of a request with a key.
    pub(crate) fn handled(
        future: impl Future<Output = Result<Response<Body<R>>, E>> + Send + 'static,
    ) -> Self {
        Self { inner: Inner::Handled { future: Box::pin(future) } }
    }

    /// One that is there already.
    pub(crate) fn refused(response: Response<Body<R>>) -> Self {
        Self { inner: Inner::Refused { response: Some(response) } }
    }
}

impl<F, R, E> Future for ResponseFuture<F, R, E>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: HttpBody,
{
    type Output = Result<Response<Body<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().inner.project() {
            Projected::Passed { future } => {
                Poll::Ready(Ok(ready!(future.poll(cx))?.map(Body::passed)))
            }
            Projected::Handled { future } => future.as_mut().poll(cx),
            // A future is not polled again after it was ready.
            Projected::Refused { response } => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
            }
        }
    }
}

impl<F, R: HttpBody, E> fmt::Debug for ResponseFuture<F, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
