//! A response as bytes in a record.
//!
//! Numbers are big-endian. The envelope around it says that it is one (`CodecId::HTTP`).
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format version, `1` |
//! | 2 | status |
//! | 4 | number of headers; then for each: 4 bytes length, name, 4 bytes length, value |
//! | 4 | number of trailers, as the headers |
//! | rest | the body |

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode, response};
use http_body::Body as HttpBody;
use idem_core::envelope::CodecId;
use idem_core::{BoxError, Codec};
use thiserror::Error;

use crate::answer::{Answer, Kept};
use crate::body::Whole;
use crate::config::Config;
use crate::headers::StoredHeaders;

const VERSION: u8 = 1;

/// Stores what is kept of an [`Answer`].
pub(crate) struct HttpCodec(pub(crate) Arc<Config>);

/// Why stored bytes are no response.
#[derive(Debug, Error)]
enum Unreadable {
    #[error("the stored response ends too early")]
    Truncated(#[from] TryGetError),
    #[error("the stored response has format version {0}, and this build reads version 1")]
    Version(u8),
    #[error("the stored response has no status")]
    Status(#[from] http::status::InvalidStatusCode),
    #[error("the stored response has a header without a name")]
    Name(#[from] http::header::InvalidHeaderName),
    #[error("the stored response has a header without a value")]
    Value(#[from] http::header::InvalidHeaderValue),
}

impl<B: HttpBody + 'static> Codec<Answer<B>> for HttpCodec {
    fn id(&self) -> CodecId {
        CodecId::HTTP
    }

    fn encode(&self, answer: &Answer<B>) -> Result<Bytes, BoxError> {
        match answer {
            Answer::Kept(kept) => Ok(encode(kept, &self.0.stored_headers)),
            Answer::Flowing(flowing) => Err(flowing.why.into()),
        }
    }

    fn decode(&self, bytes: &Bytes) -> Result<Answer<B>, BoxError> {
        Ok(Answer::Kept(Arc::new(decode(bytes.clone())?)))
    }

    /// The first caller is given what is never stored too, such as a cookie that is its own.
    fn replayed(&self, answer: &Answer<B>, _: &Bytes) -> Result<Answer<B>, BoxError> {
        match answer {
            Answer::Kept(kept) => Ok(Answer::Kept(Arc::clone(kept))),
            Answer::Flowing(flowing) => Err(flowing.why.into()),
        }
    }

    fn retention(&self, answer: &Answer<B>) -> Option<Duration> {
        match answer {
            Answer::Kept(kept) => kept.keep_for(),
            Answer::Flowing(flowing) => flowing.keep_for(),
        }
    }
}

fn encode(kept: &Kept, stored: &StoredHeaders) -> Bytes {
    let Kept { parts, body } = kept;
    let headers: Vec<_> = stored.of(&parts.headers).collect();
    let trailers: Vec<_> = body.trailers.iter().flat_map(|map| stored.of(map)).collect();
    let fields = headers.iter().chain(&trailers);
    let fields: usize = fields.map(|(name, value)| 8 + name.as_str().len() + value.len()).sum();
    let mut out = BytesMut::with_capacity(11 + fields + body.data.len());
    out.put_u8(VERSION);
    out.put_u16(parts.status.as_u16());
    for list in [headers, trailers] {
        out.put_u32(length(list.len()));
        for (name, value) in list {
            put(&mut out, name.as_ref());
            put(&mut out, value.as_bytes());
        }
    }
    out.put_slice(&body.data);
    out.freeze()
}

fn put(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(length(bytes.len()));
    out.put_slice(bytes);
}

/// A header map holds at most 32,768 entries, and no header is 4 GiB long.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn decode(mut bytes: Bytes) -> Result<Kept, Unreadable> {
    let version = bytes.try_get_u8()?;
    if version != VERSION {
        return Err(Unreadable::Version(version));
    }
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(bytes.try_get_u16()?)?;
    parts.headers = fields(&mut bytes)?.unwrap_or_default();
    let trailers = fields(&mut bytes)?;
    Ok(Kept { parts, body: Whole { data: bytes, trailers } })
}

fn fields(bytes: &mut Bytes) -> Result<Option<HeaderMap>, Unreadable> {
    let mut fields = None::<HeaderMap>;
    for _ in 0..bytes.try_get_u32()? {
        let name = HeaderName::from_bytes(&take(bytes)?)?;
        let value = HeaderValue::from_maybe_shared(take(bytes)?)?;
        fields.get_or_insert_default().append(name, value);
    }
    Ok(fields)
}

fn take(bytes: &mut Bytes) -> Result<Bytes, TryGetError> {
    let requested = usize::try_from(bytes.try_get_u32()?).unwrap_or(usize::MAX);
    let available = bytes.len();
    if requested > available {
        return Err(TryGetError { requested, available });
    }
    Ok(bytes.split_to(requested))
}

/// The parts of a stored response, for a response that is given.
pub(crate) fn parts(kept: Arc<Kept>) -> (response::Parts, Whole) {
    let Kept { parts, body } = Arc::unwrap_or_clone(kept);
    (parts, body)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(status: u16, headers: &[(&str, &[u8])], data: &'static [u8]) -> Kept {
        let (mut parts, ()) = Response::new(()).into_parts();
        parts.status = StatusCode::from_u16(status).unwrap();
        parts.headers = map(headers);
        Kept { parts, body: Whole { data: Bytes::from_static(data), trailers: None } }
    }

    fn map(headers: &[(&str, &[u8])]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        map
    }

    fn written(kept: &Kept) -> Bytes {
        encode(kept, &StoredHeaders::default())
    }

    // Bytes of today's build, for the builds to come.
    #[test]
    fn the_format_stands_still() {
        let mut kept = kept(201, &[("location", b"/c/1")], b"ok");
        kept.body.trailers = Some(map(&[("t", b"v")]));
        let golden = b"\x01\x00\xc9\0\0\0\x01\0\0\0\x08location\0\0\0\x04/c/1\
            \0\0\0\x01\0\0\0\x01t\0\0\0\x01vok";
        assert_eq!(written(&kept), &golden[..]);
        let read = decode(Bytes::from_static(golden)).unwrap();
        assert_eq!(
            (read.parts.status, read.parts.headers),
            (StatusCode::CREATED, kept.parts.headers)
        );
        assert_eq!(read.body, kept.body);
    }

    // C81, C82, C85
    #[test]
    fn what_is_about_one_message_or_caller_is_not_stored() {
        let all = kept(
            200,
            &[
                ("connection", b"close, X-Hop"),
                ("x-hop", b"1"),
                ("keep-alive", b"timeout=5"),
                ("proxy-connection", b"close"),
                ("te", b"trailers"),
                ("trailer", b"x"),
                ("transfer-encoding", b"chunked"),
                ("upgrade", b"h2c"),
                ("content-length", b"2"),
                ("date", b"Mon, 30 Nov 2026 00:00:00 GMT"),
                ("set-cookie", b"a=1"),
                ("set-cookie2", b"a=1"),
                ("www-authenticate", b"Basic"),
                ("proxy-authenticate", b"Basic"),
                ("authentication-info", b"x"),
                ("proxy-authentication-info", b"x"),
                ("idempotent-replayed", b"true"),
                ("x-name", b"caf\xe9"),
                ("x-name", b""),
                ("vary", b"accept"),
                ("content-encoding", b"gzip"),
            ],
            b"{}",
        );
        let kept = map(&[
            ("x-name", b"caf\xe9"),
            ("x-name", b""),
            ("vary", b"accept"),
            ("content-encoding", b"gzip"),
        ]);
        assert_eq!(decode(written(&all)).unwrap().parts.headers, kept);
        // Asked for, or asked away.
        let stored = StoredHeaders {
            kept: vec![http::header::SET_COOKIE],
            dropped: vec![http::header::VARY, HeaderName::from_static("x-name")],
        };
        let kept = map(&[("set-cookie", b"a=1"), ("content-encoding", b"gzip")]);
        assert_eq!(decode(encode(&all, &stored)).unwrap().parts.headers, kept);
    }

    fn any_map() -> impl Strategy<Value = HeaderMap> {
        let value = prop::collection::vec(prop_oneof![0x20_u8..0x7f, 0x80_u8..], 0..20);
        prop::collection::vec(("x-[a-d]", value), 0..8).prop_map(|headers| {
            let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_slice())).collect();
            map(&headers)
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            status in 100_u16..1000,
            headers in any_map(),
            trailers in any_map(),
            data: Vec<u8>,
        ) {
            let (mut parts, ()) = Response::new(()).into_parts();
            parts.status = StatusCode::from_u16(status).unwrap();
            parts.headers = headers.clone();
            let trailers = Some(trailers).filter(|map| !map.is_empty());
            let body = Whole { data: data.into(), trailers };
            let read = decode(written(&Kept { parts, body: body.clone() })).unwrap();
            prop_assert_eq!((read.parts.status.as_u16(), read.parts.headers), (status, headers));
            prop_assert_eq!(read.body, body);
        }

        // C81: never a panic, and never another response but for a shorter body, which the
        // store's own length rules out.
        #[test]
        fn a_cut_or_foreign_record_is_an_error_or_a_response(bytes: Vec<u8>, cut: usize) {
            let _ = decode(bytes.into());
            let whole = written(&kept(201, &[("location", b"/c/1"), ("x", b"\xff")], b""));
            let cut = cut % whole.len();
            prop_assert!(decode(whole.slice(..cut)).is_err());
        }
    }
}
