//! What a request is, as 32 bytes: fingerprints, and how to make them.
//!
//! [`Fingerprint::of`] takes any [`Serialize`], [`Fingerprint::fields`] takes named fields one by
//! one, and a [`FingerprintKey`] makes either from personal data. All of them hash the same
//! canonical form.
//!
//! # The canonical form
//! Every value is a tag, a length and its content, so that no two values run together. A length
//! is a 64-bit big-endian number: bytes of a text, entries of a collection.
//!
//! | value | bytes |
//! |---|---|
//! | `None`, `()`, a unit struct | `n` |
//! | `true`, `false` | `t`, `f` |
//! | a number | `#`, length, the decimal in scientific notation: `1e0`, `-1.25e2`, `0e0` |
//! | a string, a `char`, a unit variant's name | `s`, length, UTF-8 |
//! | bytes (`serialize_bytes`) | `b`, length, the bytes |
//! | a sequence, a tuple, an array | `[`, length, the elements |
//! | a map, a struct | `{`, length, each key and value; sorted by the bytes of the key |
//! | [`unordered`] elements | `<`, length, the elements; sorted by their bytes |
//!
//! - **A number is the decimal that JSON writes for it**: `1u8`, `1i64` and `1.0` are one number,
//!   `-0.0` is `0`. A float is the shortest decimal that reads back as it, so `0.1f32` is `0.1f64`;
//!   beyond 2⁵³, where it no longer tells integers apart, it need not equal one. NaN and the
//!   infinities are an error.
//! - **Maps and structs are one thing**, whatever their order. Names and keys count. A key keeps
//!   its type: `{1: …}` and `{"1": …}` differ. The same key twice is an error.
//! - **`Some(x)` and a newtype are `x`**, other variants are `{name: content}`, as in `serde_json`.
//!   A field that is `None` differs from one that is skipped.
//! - Types that have a text form and a binary form are asked for the text.
//! - At most 128 levels may be nested; `Some` and a newtype count as levels.

mod canonical;
mod compound;
mod error;
mod fields;
mod keyed;
mod number;
mod unordered;

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::hex::Hex;

pub use self::error::FingerprintError;
pub use self::fields::Fields;
pub use self::keyed::FingerprintKey;
pub use self::unordered::{Unordered, unordered};

pub(crate) use self::canonical::{Order, canonical_bytes};

/// What is hashed ahead of the canonical form. Another form gets another number.
const LABEL: &[u8] = b"idem fingerprint v1\0";

/// What a request is: a hash of the fields that define it.
///
/// A key identifies a request, it does not describe it. Two requests with one key and different
/// fingerprints are two requests, and the second is refused.
///
/// A fingerprint is the same in every process, build and architecture. It hides long secrets, not
/// guessable ones: see [`FingerprintKey`] for personal data.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The version of the canonical form. It is part of the hash.
    ///
    /// Under a new version every request has a new fingerprint. A record that was made under the
    /// old one, and is retried under the new one, is a mismatch until its retention has passed:
    /// the retry is refused, not run twice.
    pub const VERSION: u32 = 1;

    /// The fingerprint of a value: SHA-256 of a label with the [`VERSION`](Self::VERSION) and the
    /// value's [canonical form](crate::fingerprint).
    ///
    /// Give it what defines the request, and nothing that a retry changes: no timestamp, no
    /// request id, no attempt number. A struct with one more field has another fingerprint, so a
    /// release that adds one makes every retry across it a mismatch, unless the field is skipped
    /// (`skip_serializing_if`) while it has the meaning that its absence had.
    ///
    /// # Sets are a trap
    /// A `HashSet` serializes as a sequence, in an order that differs from one instance to the
    /// next, and no serializer can see that it was a set. Its fingerprint is a different one each
    /// time, and **every retry is a mismatch**. Say that the order means nothing, with
    /// [`unordered`] on the field or [`Unordered`] around the value, or use a `BTreeSet`. A
    /// `HashMap` is safe.
    ///
    /// # Examples
    /// A tuple of what defines the request:
    /// ```
    /// use idem_core::Fingerprint;
    ///
    /// let print = Fingerprint::of(&("ord_1", 1_999, "EUR"))?;
    /// let hex = "eb58dc0580b6a0adccfb8533d8b0884c5a7fb7009d03cd99c35391cbf3784c73";
    /// assert_eq!(print.to_string(), hex);
    /// # Ok::<(), idem_core::FingerprintError>(())
    /// ```
    ///
    /// A struct with a set in it; the order of the fields means nothing either:
    /// ```
    /// use std::collections::HashSet;
    /// use idem_core::{Fingerprint, fingerprint::unordered};
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// struct Charge<'a> {
    ///     order: &'a str,
    ///     amount: u64,
    ///     #[serde(serialize_with = "unordered")]
    ///     tags: HashSet<&'a str>,
    /// }
    ///
    /// let tags = HashSet::from(["gift", "express"]);
    /// let print = Fingerprint::of(&Charge { order: "ord_1", amount: 1_999, tags })?;
    /// let hex = "c3e6b86cda1144eec8ff29b6e55e8d15db726fbc1a2f748928ec7610fe8ba611";
    /// assert_eq!(print.to_string(), hex);
    /// # Ok::<(), idem_core::FingerprintError>(())
    /// ```
    ///
    /// # Errors
    /// - [`NotFinite`](FingerprintError::NotFinite): a number in it is NaN or infinite.
    /// - [`DuplicateKey`](FingerprintError::DuplicateKey): a map has the same key twice.
    /// - [`TooDeep`](FingerprintError::TooDeep): more than 128 levels are nested.
    /// - [`Unserializable`](FingerprintError::Unserializable): its own `Serialize` gave up.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, FingerprintError> {
        canonical_bytes(value, Order::AsGiven).map(|bytes| Self::plain(&bytes))
    }

    /// A fingerprint field by field, in any order; see [`Fields`].
    pub fn fields() -> Fields {
        Fields::new(None)
    }

    fn plain(canonical: &[u8]) -> Self {
        Self(Sha256::new().chain_update(LABEL).chain_update(canonical).finalize().into())
    }

    /// The fingerprint that was written down as these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes to write down.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}
