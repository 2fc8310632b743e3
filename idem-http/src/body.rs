//! Bodies that were read, that were not, and that were read in part.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;

/// A whole body in memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) data: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

/// What follows the part of a body that was read.
pub(crate) enum Rest<B: HttpBody> {
    /// The body, of which more is to be read.
    Body(Pin<Box<B>>),
    /// Its error. `None` once it was given.
    Error(Option<B::Error>),
}

pin_project! {
    /// The body of a request or a response that went through the layer.
    ///
    /// Either the original, its chunks as [`Bytes`], or what was read of it beforehand.
    #[must_use = "a body does nothing unless it is polled"]
    pub struct Body<B: HttpBody> {
        #[pin]
        inner: Inner<B>,
    }
}

pin_project! {
    #[project = Projected]
    enum Inner<B: HttpBody> {
        Passed { #[pin] body: B },
        Whole { whole: Whole },
        Resumed { before: Bytes, rest: Rest<B> },
    }
}

impl<B: HttpBody> Body<B> {
    /// The original.
    pub(crate) fn passed(body: B) -> Self {
        Self { inner: Inner::Passed { body } }
    }

    /// What was read of it, all of it.
    pub(crate) fn whole(whole: Whole) -> Self {
        Self { inner: Inner::Whole { whole } }
    }

    /// What was read of it, and then the rest.
    pub(crate) fn resumed(before: Bytes, rest: Rest<B>) -> Self {
        Self { inner: Inner::Resumed { before, rest } }
    }
}

impl<B: HttpBody> HttpBody for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().inner.project() {
            Projected::Passed { body } => poll_bytes(body, cx),
            Projected::Whole { whole } => Poll::Ready(whole.next_frame().map(Ok)),
            Projected::Resumed { before, .. } if !before.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(before)))))
            }
            Projected::Resumed { rest: Rest::Body(body), .. } => poll_bytes(body.as_mut(), cx),
            Projected::Resumed { rest: Rest::Error(error), .. } => {
                Poll::Ready(error.take().map(Err))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Passed { body } => body.is_end_stream(),
            Inner::Whole { whole } => whole.data.is_empty() && whole.trailers.is_none(),
            Inner::Resumed { before, .. } if !before.is_empty() => false,
            Inner::Resumed { rest: Rest::Body(body), .. } => body.is_end_stream(),
            Inner::Resumed { rest: Rest::Error(error), .. } => error.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Passed { body } => body.size_hint(),
            Inner::Whole { whole } => SizeHint::with_exact(length(&whole.data)),
            Inner::Resumed { before, rest } => {
                let mut hint = match rest {
                    Rest::Body(body) => body.size_hint(),
                    Rest::Error(_) => SizeHint::new(),
                };
                let read = length(before);
                if let Some(upper) = hint.upper() {
                    hint.set_upper(upper.saturating_add(read));
                }
                hint.set_lower(hint.lower().saturating_add(read));
                hint
            }
        }
    }
}

impl Whole {
    fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        if !self.data.is_empty() {
            return Some(Frame::data(std::mem::take(&mut self.data)));
        }
        self.trailers.take().map(Frame::trailers)
    }
}

/// The next frame of a body, its data without a copy if it is `Bytes` already.
pub(crate) fn poll_bytes<B: HttpBody>(
    body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
    let frame = ready!(body.poll_frame(cx));
    Poll::Ready(frame.map(|frame| {
        frame.map(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
    }))
}

pub(crate) fn length(data: &Bytes) -> u64 {
    u64::try_from(data.len()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Whole {
    /// Shows no content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Whole({} bytes)", self.data.len())
    }
}

impl<B: HttpBody> fmt::Debug for Body<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.inner {
            Inner::Passed { .. } => "Body(as it came)",
            Inner::Whole { .. } => "Body(read)",
            Inner::Resumed { .. } => "Body(read in part)",
        })
    }
}
