//! Why a value has no fingerprint.

use std::fmt;

use serde::ser;
use thiserror::Error;

/// Why a value has no fingerprint.
///
/// A `path` leads from the value, `$`, to what is wrong: `$.items[2].price`. It is made of the
/// names of fields and variants, as the code has them, and of positions; a map's keys are data,
/// and stand as `[*]`. Neither a message nor a field ever holds a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FingerprintError {
    /// A number is NaN or infinite, and equals nothing.
    #[error("the number at {path} is not finite")]
    NotFinite {
        /// Where.
        path: String,
    },
    /// A map has a key twice, a struct two fields of one name, or [`Fields`](super::Fields) were
    /// given a name twice.
    #[error("the map at {path} has the same key twice")]
    DuplicateKey {
        /// Where the map is.
        path: String,
    },
    /// More than 128 levels are nested.
    #[error("the value at {path} is nested more than 128 levels deep")]
    TooDeep {
        /// Where.
        path: String,
    },
    /// The value's own `Serialize` gave up. What it said is not kept: it may quote the value.
    #[error("the value at {path} cannot be serialized")]
    Unserializable {
        /// Where.
        path: String,
    },
    /// A [`FingerprintKey`](super::FingerprintKey) has fewer than 16 bytes.
    #[error("a fingerprint key must have at least 16 bytes")]
    KeyTooShort,
}

/// One step of a path.
#[derive(Clone, Copy)]
pub(super) enum At<'a> {
    /// A field or a variant.
    Name(&'a str),
    /// An element of a sequence.
    Index(u64),
    /// An entry of a map, or an element whose position means nothing.
    Any,
}

/// Where a path starts.
const ROOT: &str = "$";

impl FingerprintError {
    /// A stable name for logs, metrics and comparisons across versions of this crate.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFinite { .. } => "fingerprint_not_finite",
            Self::DuplicateKey { .. } => "fingerprint_duplicate_key",
            Self::TooDeep { .. } => "fingerprint_too_deep",
            Self::Unserializable { .. } => "fingerprint_unserializable",
            Self::KeyTooShort => "fingerprint_key_too_short",
        }
    }

    pub(super) fn not_finite() -> Self {
        Self::NotFinite { path: ROOT.into() }
    }

    pub(super) fn duplicate_key() -> Self {
        Self::DuplicateKey { path: ROOT.into() }
    }

    pub(super) fn too_deep() -> Self {
        Self::TooDeep { path: ROOT.into() }
    }

    pub(super) fn unserializable() -> Self {
        Self::Unserializable { path: ROOT.into() }
    }

    /// The same error, seen from one level further out.
    pub(super) fn within(mut self, at: At<'_>) -> Self {
        match &mut self {
            Self::NotFinite { path }
            | Self::DuplicateKey { path }
            | Self::TooDeep { path }
            | Self::Unserializable { path } => {
                let step = match at {
                    At::Name(name) => format!(".{name}"),
                    At::Index(index) => format!("[{index}]"),
                    At::Any => "[*]".into(),
                };
                path.insert_str(ROOT.len(), &step);
            }
            Self::KeyTooShort => {}
        }
        self
    }
}

impl ser::Error for FingerprintError {
    fn custom<T: fmt::Display>(_may_quote_the_value: T) -> Self {
        Self::unserializable()
    }
}

#[cfg(test)]
mod tests {
    use serde::{Serialize, Serializer};

    use super::*;
    use crate::fingerprint::{Fingerprint, FingerprintKey};

    fn assert_error<T: std::error::Error + Send + Sync + 'static>() {}

    #[test]
    fn codes_are_distinct_and_stable() {
        assert_error::<FingerprintError>();
        let all = [
            (FingerprintError::not_finite(), "fingerprint_not_finite"),
            (FingerprintError::duplicate_key(), "fingerprint_duplicate_key"),
            (FingerprintError::too_deep(), "fingerprint_too_deep"),
            (FingerprintError::unserializable(), "fingerprint_unserializable"),
            (FingerprintError::KeyTooShort, "fingerprint_key_too_short"),
        ];
        for (error, code) in all {
            assert_eq!(error.code(), code);
        }
    }

    #[test]
    fn a_path_leads_to_the_fault_and_shows_no_data() {
        #[derive(Serialize)]
        enum Line {
            Item { price: f64 },
        }
        #[derive(Serialize)]
        struct Order {
            lines: std::collections::BTreeMap<&'static str, (u8, Line)>,
        }
        let lines = [("4111-1111", (7, Line::Item { price: f64::NAN }))].into();
        let error = Fingerprint::of(&Order { lines }).unwrap_err();
        assert_eq!(error, FingerprintError::NotFinite { path: "$.lines[*][1].Item.price".into() });
        assert_eq!(error.to_string(), "the number at $.lines[*][1].Item.price is not finite");
    }

    #[test]
    fn every_kind_of_variant_is_a_step() {
        #[derive(Serialize)]
        enum Rate {
            Newtype(f64),
            Tuple(u8, f64),
            Struct { rate: f64 },
        }
        let path = |rate: Rate| match Fingerprint::of(&rate) {
            Err(FingerprintError::NotFinite { path }) => path,
            other => panic!("{other:?}"),
        };
        assert_eq!(path(Rate::Newtype(f64::NAN)), "$.Newtype");
        assert_eq!(path(Rate::Tuple(1, f64::NAN)), "$.Tuple[1]");
        assert_eq!(path(Rate::Struct { rate: f64::NAN }), "$.Struct.rate");
    }

    #[test]
    fn what_a_serialize_says_is_not_repeated() {
        struct Talkative;
        impl Serialize for Talkative {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(ser::Error::custom("card 4111-1111 has expired"))
            }
        }
        let error = Fingerprint::of(&[Talkative]).unwrap_err();
        assert_eq!(error, FingerprintError::Unserializable { path: "$[0]".into() });
        assert!(!format!("{error} {error:?}").contains("4111"));
    }

    #[test]
    fn a_short_key_has_no_path() {
        let error = FingerprintKey::new(&[0; 15]).unwrap_err();
        assert_eq!(error.clone().within(At::Any), error);
    }
}
