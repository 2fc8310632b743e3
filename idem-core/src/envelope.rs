//! What the core puts into a record's payload, and how tomorrow's build reads it.
//!
//! A store keeps payloads as opaque bytes. These are they, for whoever has to read a store without
//! the coordinator. Numbers are big-endian.
//!
//! | offset | bytes | what | why |
//! |---|---|---|---|
//! | 0 | 1 | magic, `0x1D` | no text and no JSON starts with it: a foreign value is seen at once |
//! | 1 | 1 | format version, `1` | a later layout is refused, not guessed at |
//! | 2 | 1 | kind: 1 value, 2 error, 3 not kept, 4 reference | "done" has more than one meaning |
//! | 3 | 1 | codec of the content ([`CodecId`]) | a change of codec must not misread what is stored |
//! | 4 | rest | the body | |
//!
//! The body of a value, an error or a reference is its content, as the codec wrote it; it may be
//! empty. The body of a response that was not kept is:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 4 | 1 | 0 if the response was a value, 1 if it was an error |
//! | 5 | 1 | why: 1 too large, 2 not replayable, 3 no room, 4 chosen |
//! | 6 | 8 | only if it was too large: its size in bytes |
//!
//! # Compatibility
//! A build that writes version *n* reads every version up to *n*, and the meaning of a byte in a
//! version never changes. What a build does not know, such as a newer version during a rolling
//! deploy, is an error and **never absence** (law L8): the key is not free, the action does not
//! run again.

use std::fmt;
use std::ops::RangeInclusive;

use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};
use thiserror::Error;

use crate::error::StoreError;

const MAGIC: u8 = 0x1D;
const VERSION: u8 = 1;

const VALUE: u8 = 1;
const ERROR: u8 = 2;
const NOT_KEPT: u8 = 3;
const REFERENCE: u8 = 4;

const TOO_LARGE: u8 = 1;
const NOT_REPLAYABLE: u8 = 2;
const NO_ROOM: u8 = 3;
const CHOSEN: u8 = 4;

/// What encoded the content of an [`Envelope`].
///
/// An envelope carries any id; whether a build has that codec is for its reader to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "it is a byte")]
pub struct CodecId(pub u8);

impl CodecId {
    /// There is no content, or it is bytes as they are.
    pub const NONE: Self = Self(0);
    /// JSON (RFC 8259).
    pub const JSON: Self = Self(1);
    /// An HTTP response, as `idem-http` writes it.
    pub const HTTP: Self = Self(2);
    /// The ids for codecs of your own. Those below are this crate's, now or later.
    pub const USERS: RangeInclusive<u8> = 128..=255;

    /// Whether a codec may have this id: one that is named here, or one of the users'.
    pub(crate) fn is_given(self) -> bool {
        matches!(self, Self::JSON | Self::HTTP) || Self::USERS.contains(&self.0)
    }
}

/// A completed record's payload.
///
/// ```
/// use idem_core::envelope::{Body, CodecId, Envelope};
///
/// let done = Envelope { codec: CodecId::JSON, body: Body::Value("42".into()) };
/// let bytes = done.encode();
/// assert_eq!(bytes, &b"\x1d\x01\x01\x0142"[..]);
/// assert_eq!(Envelope::decode(&bytes)?, done);
/// # Ok::<(), idem_core::envelope::EnvelopeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "another field is another format version")]
pub struct Envelope {
    /// What encoded the content.
    pub codec: CodecId,
    /// What the action came to.
    pub body: Body,
}

/// What an action came to. `Debug` shows the size of the content, never the content.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// It succeeded with this value.
    Value(Bytes),
    /// It failed for good with this error.
    Error(Bytes),
    /// It is done, and its response was not kept.
    NotKept {
        /// Why not.
        why: NotKept,
        /// Whether the response was an error.
        error: bool,
    },
    /// It succeeded with a value that is kept elsewhere, under this reference.
    Reference(Bytes),
}

/// Why a response was not kept, although the action is done.
///
/// It is an error too, so that a [`Codec`](crate::Codec) can say why it does not encode a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotKept {
    /// It was over the limit.
    TooLarge {
        /// Its size, in bytes.
        bytes: u64,
    },
    /// It would have replayed as something else than it was.
    NotReplayable,
    /// The store had no room for it.
    NoRoom,
    /// The operation asked not to keep it.
    Chosen,
}

/// Why a payload cannot be read. It is there, all the same (law L8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// It ends too early, or is empty.
    #[error("the payload ends too early")]
    Truncated,
    /// It does not start with the magic byte: something else wrote it.
    #[error("the payload is no envelope: it starts with byte {0:#04x}")]
    Magic(u8),
    /// It has a format version that this build does not know; a newer build wrote it.
    #[error("the payload has format version {0}, and this build reads version 1")]
    Version(u8),
    /// It is of a kind that its format version does not have.
    #[error("the payload has unknown kind {0}")]
    Kind(u8),
    /// A response was not kept, for a reason that its format version does not have.
    #[error("the response was not kept for unknown reason {0}")]
    Reason(u8),
    /// A response was not kept that is neither a value nor an error.
    #[error("the response that was not kept is of unknown kind {0}")]
    Flag(u8),
    /// It has so many bytes more than its format says.
    #[error("the payload has {0} bytes left over")]
    Trailing(usize),
}

impl EnvelopeError {
    /// A stable name for logs, metrics and comparisons across versions of this crate.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Truncated => "envelope_truncated",
            Self::Magic(_) => "envelope_magic",
            Self::Version(_) => "envelope_version",
            Self::Kind(_) => "envelope_kind",
            Self::Reason(_) => "envelope_reason",
            Self::Flag(_) => "envelope_flag",
            Self::Trailing(_) => "envelope_trailing",
        }
    }
}

impl From<TryGetError> for EnvelopeError {
    fn from(_: TryGetError) -> Self {
        Self::Truncated
    }
}

impl From<EnvelopeError> for StoreError {
    /// [`StoreError::Corrupt`], so that `?` keeps law L8.
    fn from(error: EnvelopeError) -> Self {
        Self::corrupt(error)
    }
}

impl Envelope {
    /// The bytes for a store to keep; see the [layout](self).
    pub fn encode(&self) -> Bytes {
        let (kind, content): (u8, &[u8]) = match &self.body {
            Body::Value(content) => (VALUE, content),
            Body::Error(content) => (ERROR, content),
            Body::NotKept { .. } => (NOT_KEPT, &[]),
            Body::Reference(content) => (REFERENCE, content),
        };
        let mut out = BytesMut::with_capacity(16 + content.len());
        out.put_slice(&[MAGIC, VERSION, kind, self.codec.0]);
        out.put_slice(content);
        if let Body::NotKept { why, error } = self.body {
            out.put_u8(error.into());
            why.encode(&mut out);
        }
        out.freeze()
    }

    /// The envelope that [`encode`](Self::encode) wrote. Any bytes give an envelope or an error;
    /// the content is not copied.
    ///
    /// # Errors
    /// [`EnvelopeError`] if these are not the bytes of an envelope that this build knows.
    pub fn decode(payload: &Bytes) -> Result<Self, EnvelopeError> {
        let mut rest = payload.clone();
        let magic = rest.try_get_u8()?;
        if magic != MAGIC {
            return Err(EnvelopeError::Magic(magic));
        }
        let version = rest.try_get_u8()?;
        if version != VERSION {
            return Err(EnvelopeError::Version(version));
        }
        let kind = rest.try_get_u8()?;
        let codec = CodecId(rest.try_get_u8()?);
        let body = match kind {
            VALUE => Body::Value(rest),
            ERROR => Body::Error(rest),
            NOT_KEPT => decode_not_kept(rest)?,
            REFERENCE => Body::Reference(rest),
            other => return Err(EnvelopeError::Kind(other)),
        };
        Ok(Self { codec, body })
    }
}

impl NotKept {
    fn encode(self, out: &mut BytesMut) {
        match self {
            Self::TooLarge { bytes } => {
                out.put_u8(TOO_LARGE);
                out.put_u64(bytes);
            }
            Self::NotReplayable => out.put_u8(NOT_REPLAYABLE),
            Self::NoRoom => out.put_u8(NO_ROOM),
            Self::Chosen => out.put_u8(CHOSEN),
        }
    }
}

fn decode_not_kept(mut rest: Bytes) -> Result<Body, EnvelopeError> {
    let error = match rest.try_get_u8()? {
        0 => false,
        1 => true,
        other => return Err(EnvelopeError::Flag(other)),
    };
    let why = match rest.try_get_u8()? {
        TOO_LARGE => NotKept::TooLarge { bytes: rest.try_get_u64()? },
        NOT_REPLAYABLE => NotKept::NotReplayable,
        NO_ROOM => NotKept::NoRoom,
        CHOSEN => NotKept::Chosen,
        other => return Err(EnvelopeError::Reason(other)),
    };
    if rest.is_empty() {
        Ok(Body::NotKept { why, error })
    } else {
        Err(EnvelopeError::Trailing(rest.len()))
    }
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => write!(f, "its {bytes} bytes are over the limit"),
            Self::NotReplayable => f.write_str("it would not replay as it was"),
            Self::NoRoom => f.write_str("the store had no room for it"),
            Self::Chosen => f.write_str("the operation does not keep it"),
        }
    }
}

impl std::error::Error for NotKept {}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, content) = match self {
            Self::Value(content) => ("Value", content),
            Self::Error(content) => ("Error", content),
            Self::Reference(content) => ("Reference", content),
            Self::NotKept { why, error } => {
                return f.debug_struct("NotKept").field("why", why).field("error", error).finish();
            }
        };
        write!(f, "{kind}({} bytes)", content.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &'static [u8]) -> Result<Envelope, EnvelopeError> {
        Envelope::decode(&Bytes::from_static(bytes))
    }

    // C109, L8
    #[test]
    fn what_cannot_be_read_is_told_apart() {
        let cases = [
            (decode(b""), EnvelopeError::Truncated, "envelope_truncated"),
            (decode(b"\x1d\x01\x01"), EnvelopeError::Truncated, "envelope_truncated"),
            (decode(b"null"), EnvelopeError::Magic(b'n'), "envelope_magic"),
            (decode(b"{"), EnvelopeError::Magic(b'{'), "envelope_magic"),
            (decode(b"\x1d\x02\x01\x01"), EnvelopeError::Version(2), "envelope_version"),
            (decode(b"\x1d\x00\x01\x01"), EnvelopeError::Version(0), "envelope_version"),
            (decode(b"\x1d\x01\x05\x01"), EnvelopeError::Kind(5), "envelope_kind"),
            (decode(b"\x1d\x01\x00\x01"), EnvelopeError::Kind(0), "envelope_kind"),
            (decode(b"\x1d\x01\x03\x00\x00\x05"), EnvelopeError::Reason(5), "envelope_reason"),
            (decode(b"\x1d\x01\x03\x00\x02\x04"), EnvelopeError::Flag(2), "envelope_flag"),
            (
                decode(b"\x1d\x01\x03\x00\x00\x04\x00"),
                EnvelopeError::Trailing(1),
                "envelope_trailing",
            ),
        ];
        for (read, error, code) in cases {
            assert_eq!(read, Err(error));
            assert_eq!(error.code(), code);
            assert_eq!(StoreError::from(error).code(), "record_corrupt");
        }
    }

    // A newer version may have other kinds: it is the version that is reported.
    #[test]
    fn a_newer_version_is_said_to_be_one_whatever_follows() {
        assert_eq!(decode(b"\x1d\x02"), Err(EnvelopeError::Version(2)));
        assert_eq!(decode(b"\x1d\x09\xff\xff\xff"), Err(EnvelopeError::Version(9)));
    }

    #[test]
    fn content_is_not_copied() {
        let payload = Bytes::from_static(b"\x1d\x01\x01\x01content");
        let Body::Value(content) = Envelope::decode(&payload).unwrap().body else {
            panic!("not a value");
        };
        assert_eq!(content.as_ptr(), payload.slice(4..).as_ptr());
    }

    #[test]
    fn debug_shows_no_content() {
        let body = Body::Value("4111".into());
        assert_eq!(format!("{body:?}"), "Value(4 bytes)");
    }

    fn body() -> impl Strategy<Value = Body> {
        let content = || prop::collection::vec(any::<u8>(), 0..64).prop_map(Bytes::from);
        let why = prop_oneof![
            any::<u64>().prop_map(|bytes| NotKept::TooLarge { bytes }),
            Just(NotKept::NotReplayable),
            Just(NotKept::NoRoom),
            Just(NotKept::Chosen),
        ];
        prop_oneof![
            content().prop_map(Body::Value),
            content().prop_map(Body::Error),
            content().prop_map(Body::Reference),
            (why, any::<bool>()).prop_map(|(why, error)| Body::NotKept { why, error }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(codec: u8, body in body()) {
            let envelope = Envelope { codec: CodecId(codec), body };
            prop_assert_eq!(Envelope::decode(&envelope.encode()), Ok(envelope));
        }

        #[test]
        fn what_is_read_is_what_was_written(
            head in prop::collection::vec(prop_oneof![Just(MAGIC), 0u8..6], 0..8),
            tail: Vec<u8>,
        ) {
            let bytes = Bytes::from([head, tail].concat());
            if let Ok(envelope) = Envelope::decode(&bytes) {
                prop_assert_eq!(envelope.encode(), bytes);
            }
        }

        // C81
        #[test]
        fn a_shorter_payload_is_never_taken_for_the_whole(codec: u8, body in body()) {
            let envelope = Envelope { codec: CodecId(codec), body };
            let bytes = envelope.encode();
            for end in 0..bytes.len() {
                let cut = Envelope::decode(&bytes.slice(..end));
                match (&envelope.body, cut) {
                    // How long a content is, the store knows.
                    (Body::Value(_) | Body::Error(_) | Body::Reference(_), Ok(cut)) => {
                        prop_assert!(end >= 4 && cut != envelope);
                    }
                    (_, cut) => prop_assert_eq!(cut, Err(EnvelopeError::Truncated)),
                }
            }
        }
    }
}
