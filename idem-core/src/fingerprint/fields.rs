//! A fingerprint, field by field.

use std::fmt;

use serde::Serialize;
use serde::ser::Serializer;

use super::Fingerprint;
use super::canonical::{Canonical, Order};
use super::compound::{Kind, Open};
use super::error::FingerprintError;
use super::keyed::FingerprintKey;
use super::unordered::{NAME, Once};

/// Names and values that a [`Fingerprint`] is made of, one by one.
///
/// For a request that is no single value, or of which only some fields define it. The order of
/// the calls means nothing. The fingerprint is that of a struct with these fields:
///
/// ```
/// use idem_core::Fingerprint;
/// use serde::Serialize;
///
/// #[derive(Serialize)]
/// struct Charge<'a> {
///     order: &'a str,
///     amount: u64,
/// }
///
/// let print = Fingerprint::fields().field("amount", &1_999u64).field("order", "ord_1").finish()?;
/// assert_eq!(print, Fingerprint::of(&Charge { order: "ord_1", amount: 1_999 })?);
///
/// let hex = "2229c26a8e8cb0b460c557f7c063238454212e15b9c6a00947d1b41012bfbb0b";
/// assert_eq!(print.to_string(), hex);
/// # Ok::<(), idem_core::FingerprintError>(())
/// ```
///
/// Made by [`Fingerprint::fields`] and [`FingerprintKey::fields`].
#[must_use = "fields have a fingerprint once they are finished"]
pub struct Fields {
    key: Option<FingerprintKey>,
    canonical: Canonical,
    /// The map of the fields, or what went wrong first.
    open: Result<Open, FingerprintError>,
}

impl Fields {
    pub(super) fn new(key: Option<FingerprintKey>) -> Self {
        let mut canonical = Canonical::new(Order::AsGiven);
        let open = canonical.open(Kind::Map, None);
        Self { key, canonical, open }
    }

    /// Adds a field. The first error is kept for [`finish`](Self::finish).
    ///
    /// Sets are a trap here as well: see [`Fingerprint::of`], and [`unordered`](Self::unordered).
    pub fn field<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Self {
        self.add(name, |canonical| value.serialize(canonical))
    }

    /// Adds bytes, such as a request's body, as they are. They differ from a text of the same
    /// bytes, and from another JSON text of the same meaning.
    pub fn bytes(self, name: &str, value: &[u8]) -> Self {
        self.add(name, |canonical| canonical.serialize_bytes(value))
    }

    /// Adds elements whose order means nothing, as [`unordered`](super::unordered) does.
    pub fn unordered<I>(self, name: &str, elements: I) -> Self
    where
        I: IntoIterator<Item: Serialize>,
    {
        let elements = Once::new(elements);
        self.add(name, |canonical| canonical.serialize_newtype_struct(NAME, &elements))
    }

    /// The fingerprint of the fields.
    ///
    /// # Errors
    /// What [`Fingerprint::of`] says of any of them;
    /// [`DuplicateKey`](FingerprintError::DuplicateKey) if two have one name.
    pub fn finish(mut self) -> Result<Fingerprint, FingerprintError> {
        self.canonical.close_sorted(self.open?)?;
        let bytes = self.canonical.into_bytes();
        Ok(match &self.key {
            Some(key) => key.keyed(&bytes),
            None => Fingerprint::plain(&bytes),
        })
    }

    fn add(
        mut self,
        name: &str,
        value: impl FnOnce(&mut Canonical) -> Result<(), FingerprintError>,
    ) -> Self {
        if self.open.is_ok()
            && let Err(error) = self.canonical.field(name, value)
        {
            self.open = Err(error);
        }
        self
    }
}

impl fmt::Debug for Fields {
    /// Shows no field: they may be personal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_given_twice_is_an_error_and_not_a_choice() {
        let twice = Fingerprint::fields().field("a", &1).field("b", &2).field("a", &1);
        let here = FingerprintError::DuplicateKey { path: "$".into() };
        assert_eq!(twice.finish(), Err(here));
    }

    #[test]
    fn the_first_error_is_kept() {
        let fields = Fingerprint::fields()
            .field("rate", &f64::NAN)
            .field("ratio", &f64::INFINITY)
            .field("amount", &1);
        let first = FingerprintError::NotFinite { path: "$.rate".into() };
        assert_eq!(fields.finish(), Err(first));
    }

    // C45
    #[test]
    fn every_byte_of_a_body_counts() {
        let of = |body: &[u8]| Fingerprint::fields().bytes("body", body).finish().unwrap();
        assert_ne!(of(b"{\"a\":1}"), of(b"{\"a\":2}"));
        assert_ne!(of(b""), of(b"\0"));
        assert_ne!(of(b""), Fingerprint::fields().finish().unwrap());
        let text = Fingerprint::fields().field("body", "a").finish().unwrap();
        assert_ne!(of(b"a"), text);
    }

    #[test]
    fn debug_shows_no_field() {
        let fields = Fingerprint::fields().field("card", "4111");
        assert!(!format!("{fields:?}").contains("4111"));
    }

    #[test]
    fn elements_in_any_order_agree() {
        let of = |tags: &[&str]| Fingerprint::fields().unordered("tags", tags).finish().unwrap();
        assert_eq!(of(&["b", "a", "a"]), of(&["a", "b", "a"]));
        assert_ne!(of(&["b", "a", "a"]), of(&["a", "b"]));
        assert_ne!(of(&[]), Fingerprint::fields().finish().unwrap());
    }
}
