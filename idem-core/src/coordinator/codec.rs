//! How values are stored.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::envelope::{Body, CodecId, Envelope};
use crate::error::BoxError;
use crate::fingerprint::{Order, canonical_bytes};

/// How the values of an operation are stored and replayed.
///
/// # Implementing
/// Give the codec an [`id`](Self::id) of its own from 128 to 255: it is stored with every value,
/// and a record of another codec is an error on replay, never a misread value.
pub trait Codec<T>: Send + Sync + 'static {
    /// What is written beside the bytes, so that another codec does not read them.
    fn id(&self) -> CodecId;

    /// The bytes of a value.
    ///
    /// # Errors
    /// If it has none. The value is then given to its caller as it is, and is known to be done,
    /// response not kept: for the reason given, if the error is a
    /// [`NotKept`](crate::NotKept), else as not replayable.
    fn encode(&self, value: &T) -> Result<Bytes, BoxError>;

    /// The value that was stored as these bytes.
    ///
    /// # Errors
    /// If they are no such value.
    fn decode(&self, bytes: &Bytes) -> Result<T, BoxError>;

    /// The value that a replay would give, or why it would differ from the original.
    ///
    /// Called once on the first run, before anything is stored. The default decodes, encodes
    /// again and compares the bytes.
    ///
    /// # Errors
    /// If a replay would give something else, or nothing.
    fn replayed(&self, value: &T, bytes: &Bytes) -> Result<T, BoxError> {
        let _ = value;
        let replayed = self.decode(bytes)?;
        if self.encode(&replayed)? == *bytes { Ok(replayed) } else { Err(DIFFERS.into()) }
    }

    /// How long this value is kept, if not as long as the operation says. The default: `None`.
    ///
    /// A duration outside [`limits::RETENTION`](crate::limits::RETENTION) is taken for the end of
    /// that range it is beyond.
    fn retention(&self, value: &T) -> Option<Duration> {
        let _ = value;
        None
    }
}

impl Envelope {
    /// What is stored of a value, and the value as a replay gives it.
    ///
    /// The coordinator does this with what an action returns. It is here for whoever completes a
    /// record without it, or before it (see [`RunningAttempt::lease`](crate::RunningAttempt::lease)).
    ///
    /// ```
    /// use idem_core::Json;
    /// use idem_core::envelope::Envelope;
    ///
    /// let (charge, stored) = Envelope::of_value(&Json::default(), &"ch_1".to_owned())?;
    /// assert_eq!((charge.as_str(), &stored.encode()[..]), ("ch_1", &b"\x1d\x01\x01\x01\"ch_1\""[..]));
    /// assert!(Envelope::of_value(&Json::default(), &f64::NAN).is_err());
    /// # Ok::<(), idem_core::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// If the value cannot be encoded, or would replay as another.
    pub fn of_value<T>(codec: &impl Codec<T>, value: &T) -> Result<(T, Self), BoxError> {
        let bytes = codec.encode(value)?;
        let replayed = codec.replayed(value, &bytes)?;
        Ok((replayed, Self { codec: codec.id(), body: Body::Value(bytes) }))
    }
}

const DIFFERS: &str = "the stored value would replay as another";

/// Values as JSON. The default.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    fn id(&self) -> CodecId {
        CodecId::JSON
    }

    fn encode(&self, value: &T) -> Result<Bytes, BoxError> {
        Ok(serde_json::to_vec(value)?.into())
    }

    fn decode(&self, bytes: &Bytes) -> Result<T, BoxError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    fn replayed(&self, value: &T, bytes: &Bytes) -> Result<T, BoxError> {
        let replayed = self.decode(bytes)?;
        // JSON writes NaN and infinities as null; only where there is a null can there be one.
        let has_null = str::from_utf8(bytes).map_or(true, |text| text.contains("null"));
        if !has_null && is_written_as(&replayed, bytes) {
            return Ok(replayed);
        }
        // The slow way: hash maps and sets come back in another order, and are the same.
        let (first, second) = (
            canonical_bytes(value, Order::AnyOrder)?,
            canonical_bytes(&replayed, Order::AnyOrder)?,
        );
        if first == second { Ok(replayed) } else { Err(DIFFERS.into()) }
    }
}

/// Whether this is the JSON of a value. Compares as it writes, and keeps nothing.
fn is_written_as<T: Serialize>(value: &T, json: &[u8]) -> bool {
    let mut rest = Expected(json);
    serde_json::to_writer(&mut rest, value).is_ok() && rest.0.is_empty()
}

/// Takes these bytes and no others.
struct Expected<'a>(&'a [u8]);

impl io::Write for Expected<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
