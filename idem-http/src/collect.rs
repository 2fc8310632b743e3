//! Reading a body into memory, up to a limit and with an end to one's patience.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body as HttpBody;

use crate::body::{Rest, Whole, length, poll_bytes};

/// What reading a body came to. What was read is never lost.
pub(crate) enum Collected<B: HttpBody> {
    /// All of it.
    Whole(Whole),
    /// It is larger than the limit: so many bytes, or more.
    TooLarge { before: Bytes, rest: Rest<B>, bytes: u64 },
    /// It did not end in time.
    Unfinished { before: Bytes, rest: Rest<B> },
    /// It failed.
    Failed { before: Bytes, error: B::Error },
}

/// Reads a body of at most `limit` bytes.
///
/// One that says it is larger is not read at all. `patience` is for a body that does not say how
/// long it is; `None` is all the patience there is.
pub(crate) async fn collect<B: HttpBody>(
    body: B,
    limit: usize,
    patience: Option<Duration>,
) -> Collected<B> {
    let hint = body.size_hint();
    let mut body = Box::pin(body);
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    if hint.lower() > limit {
        let (before, rest) = (Bytes::new(), Rest::Body(body));
        return Collected::TooLarge { before, rest, bytes: hint.lower() };
    }
    let patience = patience.filter(|_| hint.exact().is_none());
    let mut out_of_patience = pin!(sleep(patience));
    let mut read = Read::default();
    loop {
        let frame = tokio::select! {
            biased;
            frame = next_frame(&mut body) => frame,
            () = &mut out_of_patience => {
                return Collected::Unfinished { before: read.data(), rest: Rest::Body(body) };
            }
        };
        match frame {
            None => return Collected::Whole(read.whole()),
            Some(Ok(frame)) => read.add(frame),
            Some(Err(error)) => return Collected::Failed { before: read.data(), error },
        }
        if read.bytes > limit {
            let bytes = read.bytes;
            return Collected::TooLarge { before: read.data(), rest: Rest::Body(body), bytes };
        }
    }
}

async fn sleep(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => pending().await,
    }
}

type Frame<B> = Option<Result<http_body::Frame<Bytes>, <B as HttpBody>::Error>>;

fn next_frame<B: HttpBody>(body: &mut Pin<Box<B>>) -> impl Future<Output = Frame<B>> {
    poll_fn(|cx| poll_bytes(body.as_mut(), cx))
}

/// What was read so far.
#[derive(Default)]
struct Read {
    chunks: Vec<Bytes>,
    bytes: u64,
    trailers: Option<HeaderMap>,
}

impl Read {
    fn add(&mut self, frame: http_body::Frame<Bytes>) {
        match frame.into_data() {
            Ok(data) => {
                self.bytes = self.bytes.saturating_add(length(&data));
                self.chunks.push(data);
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.trailers.get_or_insert_default().extend(trailers);
                }
            }
        }
    }

    /// The data in one piece; one chunk is not copied.
    fn data(&mut self) -> Bytes {
        let mut chunks = std::mem::take(&mut self.chunks);
        if chunks.len() > 1 {
            let mut all = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
            for chunk in &chunks {
                all.extend_from_slice(chunk);
            }
            return all.freeze();
        }
        chunks.pop().unwrap_or_default()
    }

    fn whole(mut self) -> Whole {
        Whole { data: self.data(), trailers: self.trailers }
    }
}
