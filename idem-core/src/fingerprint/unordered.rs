//! Collections whose order means nothing.

use std::cell::Cell;
use std::fmt;

use serde::ser::{Error, Serialize, Serializer};

/// The name by which a fingerprint knows them. Formats write a newtype as its content.
pub(super) const NAME: &str = "$idem::unordered";

/// Serializes a collection as one whose order means nothing, for a field of a struct that a
/// [`Fingerprint`](super::Fingerprint) is made of.
///
/// For a fingerprint it is a multiset: order does not count, repetition does. For any format that
/// writes a newtype as its content, such as JSON, it is the sequence that it was.
///
/// ```
/// use idem_core::{Fingerprint, fingerprint::unordered};
/// use serde::Serialize;
///
/// #[derive(Serialize)]
/// struct Refund {
///     #[serde(serialize_with = "unordered")]
///     lines: Vec<u32>,
/// }
///
/// let print = Fingerprint::of(&Refund { lines: vec![3, 1] })?;
/// assert_eq!(print, Fingerprint::of(&Refund { lines: vec![1, 3] })?);
/// assert_ne!(print, Fingerprint::of(&Refund { lines: vec![1, 3, 3] })?);
/// # Ok::<(), idem_core::FingerprintError>(())
/// ```
///
/// # Errors
/// The serializer's, and those of the elements.
pub fn unordered<'a, T, S>(collection: &'a T, serializer: S) -> Result<S::Ok, S::Error>
where
    T: ?Sized,
    &'a T: IntoIterator<Item: Serialize>,
    S: Serializer,
{
    Unordered(collection).serialize(serializer)
}

/// A collection whose order means nothing; [`unordered`] as a value.
///
/// ```
/// use std::collections::HashSet;
/// use idem_core::{Fingerprint, fingerprint::Unordered};
///
/// let (some, same) = (HashSet::from(["a", "b"]), ["b", "a"]);
/// let print = Fingerprint::of(&("ord_1", Unordered(&some)))?;
/// assert_eq!(print, Fingerprint::of(&("ord_1", Unordered(&same)))?);
/// # Ok::<(), idem_core::FingerprintError>(())
/// ```
#[expect(clippy::exhaustive_structs, reason = "it is its content")]
pub struct Unordered<'a, T: ?Sized>(pub &'a T);

impl<'a, T: ?Sized> Serialize for Unordered<'a, T>
where
    &'a T: IntoIterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(NAME, &Once::new(self.0))
    }
}

impl<T: ?Sized> Clone for Unordered<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Unordered<'_, T> {}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Unordered<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unordered").field(&self.0).finish()
    }
}

/// A sequence that can be serialized one time, so that any iterator will do.
pub(super) struct Once<I>(Cell<Option<I>>);

impl<I> Once<I> {
    pub(super) fn new(items: I) -> Self {
        Self(Cell::new(Some(items)))
    }
}

impl<I: IntoIterator<Item: Serialize>> Serialize for Once<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.take() {
            Some(items) => serializer.collect_seq(items),
            None => Err(S::Error::custom("the iterator is used up")),
        }
    }
}
