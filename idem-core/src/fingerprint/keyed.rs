//! Fingerprints that cannot be guessed.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;

use super::canonical::{Order, canonical_bytes};
use super::error::FingerprintError;
use super::{Fields, Fingerprint, LABEL};

/// A secret that makes fingerprints of personal data.
///
/// A plain fingerprint of something guessable can be turned back: all 10⁹ numbers of a country's
/// telephones take SHA-256 some two minutes. With a secret key (HMAC-SHA256, RFC 2104) only its
/// holder can try. The canonical form is the same; the fingerprints are others than the plain
/// ones, and others for each key.
///
/// Every process that sees retries of one request needs the same key. With a new key, records in
/// flight are a mismatch until their retention has passed, as with a new
/// [`VERSION`](Fingerprint::VERSION).
///
/// ```
/// use idem_core::FingerprintKey;
///
/// let key = FingerprintKey::new(b"sixteen bytes, or more")?;
/// let print = key.of(&("+49 151 1234567", 1_999))?;
/// let hex = "7742b3c732069efaee5ba2a03a10b9fdce3dbd2b9aa6069eeba86dab67083ae6";
/// assert_eq!(print.to_string(), hex);
/// # Ok::<(), idem_core::FingerprintError>(())
/// ```
#[derive(Clone)]
pub struct FingerprintKey(Hmac<Sha256>);

impl FingerprintKey {
    /// The fewest bytes that a key may have.
    pub const MIN_BYTES: usize = 16;

    /// The key with these bytes, which should come from a random source; 32 are plenty.
    ///
    /// # Errors
    /// [`KeyTooShort`](FingerprintError::KeyTooShort) if there are fewer than 16.
    pub fn new(secret: &[u8]) -> Result<Self, FingerprintError> {
        if secret.len() < Self::MIN_BYTES {
            return Err(FingerprintError::KeyTooShort);
        }
        // HMAC takes a key of any length, so the only error there is left is this one.
        Hmac::new_from_slice(secret).map(Self).map_err(|_| FingerprintError::KeyTooShort)
    }

    /// The fingerprint of a value under this key; see [`Fingerprint::of`], its trap included.
    ///
    /// # Errors
    /// As [`Fingerprint::of`].
    pub fn of<T: Serialize + ?Sized>(&self, value: &T) -> Result<Fingerprint, FingerprintError> {
        canonical_bytes(value, Order::AsGiven).map(|bytes| self.keyed(&bytes))
    }

    /// A fingerprint under this key, field by field; see [`Fields`].
    pub fn fields(&self) -> Fields {
        Fields::new(Some(self.clone()))
    }

    pub(super) fn keyed(&self, canonical: &[u8]) -> Fingerprint {
        let mac = self.0.clone().chain_update(LABEL).chain_update(canonical);
        Fingerprint(mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8; 16] = b"0123456789abcdef";

    #[test]
    fn a_key_has_at_least_16_bytes() {
        assert_eq!(FingerprintKey::new(&SECRET[1..]).unwrap_err(), FingerprintError::KeyTooShort);
        assert!(FingerprintKey::new(SECRET).is_ok());
        assert!(FingerprintKey::new(&[7; 1000]).is_ok());
    }

    #[test]
    fn each_key_has_its_own_fingerprints_and_none_is_plain() {
        let (a, b) = (FingerprintKey::new(SECRET).unwrap(), FingerprintKey::new(&[7; 16]).unwrap());
        let plain = Fingerprint::of("+49 151 1234567").unwrap();
        assert_ne!(a.of("+49 151 1234567").unwrap(), plain);
        assert_ne!(a.of("+49 151 1234567").unwrap(), b.of("+49 151 1234567").unwrap());
        assert_eq!(a.of(&1).unwrap(), a.clone().of(&1.0).unwrap());
    }

    #[test]
    fn fields_and_value_agree_under_a_key() {
        let key = FingerprintKey::new(SECRET).unwrap();
        let map = std::collections::BTreeMap::from([("a", 1), ("b", 2)]);
        let fields = key.fields().field("b", &2).field("a", &1).finish();
        assert_eq!(fields, key.of(&map));
    }

    #[test]
    fn debug_shows_nothing_of_the_secret() {
        let key = FingerprintKey::new(SECRET).unwrap();
        assert_eq!(format!("{key:?}"), "FingerprintKey(..)");
        assert!(!format!("{:?}", key.fields()).contains("0123"));
    }
}
