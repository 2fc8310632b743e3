//! Keys, and the scope that each is unique in.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::hex::Hex;
use crate::limits::NAME_CHARS;

/// The part of a [`Key`] that a [`KeyError`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyPart {
    /// The name of the operation.
    Operation,
    /// The tenant within the operation.
    Tenant,
    /// The idempotency key, as the client sent it.
    Key,
}

impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operation => "operation",
            Self::Tenant => "tenant",
            Self::Key => "idempotency key",
        })
    }
}

/// Why a text cannot be (part of) a key. The text itself is never in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It has no characters.
    #[error("the {0} is empty; it must have 1 to 255 characters")]
    Empty(KeyPart),
    /// It has more than 255 characters (Unicode scalar values).
    #[error("the {0} is too long; it must have 1 to 255 characters")]
    TooLong(KeyPart),
}

impl KeyError {
    /// A stable name for logs, metrics and comparisons across versions of this crate.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty(KeyPart::Operation) => "operation_empty",
            Self::Empty(KeyPart::Tenant) => "tenant_empty",
            Self::Empty(KeyPart::Key) => "key_empty",
            Self::TooLong(KeyPart::Operation) => "operation_too_long",
            Self::TooLong(KeyPart::Tenant) => "tenant_too_long",
            Self::TooLong(KeyPart::Key) => "key_too_long",
        }
    }
}

/// What a key is unique in: an operation, and optionally a tenant of it.
///
/// The same key under `order.create` and `order.cancel` is two records, and so is the same key
/// of two tenants. No tenant differs from every tenant.
///
/// A tenant is whoever must not see another's answers: an account, a user, a principal. Use an
/// identity that outlives its credentials; a scope made of an access token splits in two when
/// the token is rotated between a request and its retry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    operation: Arc<str>,
    tenant: Option<Arc<str>>,
}

impl Scope {
    /// The scope of an operation without tenants.
    ///
    /// # Errors
    /// [`KeyError`] unless `operation` has 1 to 255 characters.
    pub fn new(operation: &str) -> Result<Self, KeyError> {
        Ok(Self { operation: checked(KeyPart::Operation, operation)?, tenant: None })
    }

    /// The same operation, narrowed to one tenant.
    ///
    /// # Errors
    /// [`KeyError`] unless `tenant` has 1 to 255 characters. An empty tenant is refused rather
    /// than taken for "no tenant": a missing identity must not share a scope by accident.
    pub fn tenant(self, tenant: &str) -> Result<Self, KeyError> {
        Ok(Self { tenant: Some(checked(KeyPart::Tenant, tenant)?), ..self })
    }

    /// The name of the operation.
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// The tenant, if there is one.
    pub fn tenant_id(&self) -> Option<&str> {
        self.tenant.as_deref()
    }
}

/// An idempotency key in its [`Scope`]: what a record is stored under.
///
/// Compared byte for byte: case, spaces, control characters and Unicode normal forms all count.
/// Cloning is cheap. `Debug` and `Display` show the operation and a hash, never the key's text,
/// so that a key may appear in a log.
///
/// ```
/// use idem_core::{Key, Scope};
///
/// let create = Key::new(Scope::new("order.create")?, "k-1")?;
/// let cancel = Key::new(Scope::new("order.cancel")?, "k-1")?;
/// assert_ne!(create, cancel);
/// assert!(!format!("{create}").contains("k-1"));
/// # Ok::<(), idem_core::KeyError>(())
/// ```
#[derive(Clone)]
pub struct Key(Arc<Inner>);

struct Inner {
    scope: Scope,
    text: Box<str>,
    digest: [u8; 32],
}

impl Key {
    /// The key `text`, as the client sent it, in its scope.
    ///
    /// # Errors
    /// [`KeyError`] unless `text` has 1 to 255 characters (so at most 1,020 bytes of UTF-8).
    pub fn new(scope: Scope, text: &str) -> Result<Self, KeyError> {
        check(KeyPart::Key, text)?;
        let digest = digest(&scope, text);
        Ok(Self(Arc::new(Inner { scope, text: text.into(), digest })))
    }

    /// The scope that the key is unique in.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// The key as the client sent it. Not for logs.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The 32 bytes that stand for scope and key together, the same in every process and build.
    ///
    /// SHA-256 over a version label and the length-prefixed operation, tenant and text, so that
    /// no two keys run together. A store that does not want the text as its primary key uses this.
    ///
    /// ```
    /// # use idem_core::{Key, Scope};
    /// let key = Key::new(Scope::new("payment.charge")?.tenant("acme")?, "k-1")?;
    /// let hex: String = key.digest().iter().map(|b| format!("{b:02x}")).collect();
    /// assert_eq!(hex, "8ffc6b5c154f0575c49ef5990cfd48d36a952c231f0ed118de39231b32ca9973");
    /// # Ok::<(), idem_core::KeyError>(())
    /// ```
    pub fn digest(&self) -> &[u8; 32] {
        &self.0.digest
    }
}

/// Version 1 of the digest; another layout needs another label.
const LABEL: &[u8] = b"idem key v1\0";

fn digest(scope: &Scope, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(LABEL);
    let mut part = |tag: u8, text: &str| {
        hash.update([tag]);
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    part(1, &scope.operation);
    if let Some(tenant) = &scope.tenant {
        part(2, tenant);
    }
    part(3, text);
    hash.finalize().into()
}

fn checked(part: KeyPart, text: &str) -> Result<Arc<str>, KeyError> {
    check(part, text)?;
    Ok(text.into())
}

fn check(part: KeyPart, text: &str) -> Result<(), KeyError> {
    let (least, most) = (*NAME_CHARS.start(), *NAME_CHARS.end());
    if text.len() < least {
        return Err(KeyError::Empty(part));
    }
    // No character is shorter than a byte or longer than four: a megabyte is not even counted.
    if text.len() > 4 * most || (text.len() > most && text.chars().count() > most) {
        return Err(KeyError::TooLong(part));
    }
    Ok(())
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.digest == other.0.digest
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.digest.hash(state);
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#", self.0.scope.operation.escape_debug())?;
        let (shown, _) = self.0.digest.split_at(8);
        Hex(shown).fmt(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "client-sent-4111";

    fn key(operation: &str, tenant: Option<&str>, text: &str) -> Key {
        let scope = Scope::new(operation).unwrap();
        let scope = tenant.into_iter().try_fold(scope, Scope::tenant).unwrap();
        Key::new(scope, text).unwrap()
    }

    fn make(part: KeyPart, text: &str) -> Result<(), KeyError> {
        let scope = Scope::new("op")?;
        match part {
            KeyPart::Operation => Scope::new(text).map(drop),
            KeyPart::Tenant => scope.tenant(text).map(drop),
            KeyPart::Key => Key::new(scope, text).map(drop),
        }
    }

    // C74, C76
    #[test]
    fn each_part_has_1_to_255_characters_of_any_width() {
        for part in [KeyPart::Operation, KeyPart::Tenant, KeyPart::Key] {
            assert_eq!(make(part, ""), Err(KeyError::Empty(part)));
            for character in ["a", "\0", "\u{e9}", "\u{20ac}", "\u{1f980}"] {
                assert_eq!(make(part, character), Ok(()));
                assert_eq!(make(part, &character.repeat(255)), Ok(()));
                for much in [256, 1 << 20] {
                    assert_eq!(make(part, &character.repeat(much)), Err(KeyError::TooLong(part)));
                }
            }
        }
    }

    // C141
    #[test]
    fn codes_name_the_part_and_the_fault() {
        let parts = [KeyPart::Operation, KeyPart::Tenant, KeyPart::Key];
        let empty = parts.map(|part| KeyError::Empty(part).code());
        assert_eq!(empty, ["operation_empty", "tenant_empty", "key_empty"]);
        let too_long = parts.map(|part| KeyError::TooLong(part).code());
        assert_eq!(too_long, ["operation_too_long", "tenant_too_long", "key_too_long"]);
    }

    // C61, C66, C68, C73
    #[test]
    fn keys_that_look_alike_are_told_apart() {
        let keys = [
            key("a", None, "b"),
            key("b", None, "a"),
            key("a", Some("b"), "c"),
            key("a", Some("c"), "b"),
            key("ab", None, "c"),
            key("a", None, "bc"),
            key("a", Some("b"), "cd"),
            key("a", Some("bc"), "d"),
            key("ab", Some("c"), "d"),
            key("a", None, "b\u{3}c"),
            key("a\u{3}b", None, "c"),
            key("a\u{2}b", None, "c"),
            key("a", None, "B"),
            key("a", None, " b"),
            key("a", None, "b\0"),
            key("a", None, "\0"),
            key("a", None, "0"),
            key("a", None, "../b"),
            key("a", None, "{b}"),
            key("a", None, "*"),
            key("a", None, "a\r\nb"),
            key("a", None, "\u{e9}"),
            key("a", None, "e\u{301}"),
        ];
        for (at, a) in keys.iter().enumerate() {
            assert!(!keys[at + 1..].contains(a), "{:?} has a double", a.text());
        }
    }

    // C62
    #[test]
    fn no_tenant_is_not_a_tenant() {
        for tenant in ["anonymous", "none", "null", "\0", "k"] {
            assert_ne!(key("op", None, "k"), key("op", Some(tenant), "k"));
        }
        let scope = Scope::new("op").unwrap();
        assert_eq!(scope.tenant_id(), None);
        assert_eq!(scope.tenant(""), Err(KeyError::Empty(KeyPart::Tenant)));
    }

    #[test]
    fn a_key_gives_back_what_it_was_made_of() {
        let key = key("payment.charge", Some("acme"), SECRET);
        assert_eq!(key.scope().operation(), "payment.charge");
        assert_eq!(key.scope().tenant_id(), Some("acme"));
        assert_eq!(key.text(), SECRET);
        assert_eq!(key.clone(), key);
    }

    // C130
    #[test]
    fn text_is_in_no_message() {
        let key = key("payment.charge", None, SECRET);
        assert_eq!(key.to_string().len(), "payment.charge#".len() + 16);
        let shown = format!("{key} {key:?} {key:#?}");
        assert!(shown.contains("payment.charge") && !shown.contains("4111"), "{shown}");
        let error = Key::new(key.scope().clone(), &SECRET.repeat(99)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the idempotency key is too long; it must have 1 to 255 characters"
        );
        assert!(!format!("{error:?}").contains("4111"));
    }

    #[test]
    fn a_name_breaks_no_line_of_a_log() {
        let shown = key("op\r\nforged", None, "k").to_string();
        assert!(!shown.contains(['\r', '\n']), "{shown}");
    }

    proptest! {
        #[test]
        fn keys_are_equal_exactly_if_their_parts_are(
            a in ("[ab]{1,2}", prop::option::of("[ab]{1,2}"), "[ab]{1,2}"),
            b in ("[ab]{1,2}", prop::option::of("[ab]{1,2}"), "[ab]{1,2}"),
        ) {
            let of = |(operation, tenant, text): &(String, Option<String>, String)| {
                key(operation, tenant.as_deref(), text)
            };
            prop_assert_eq!(of(&a) == of(&b), a == b);
        }
    }
}
