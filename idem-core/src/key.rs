//! Keys, and the scope that each is unique in.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use thiserror::Error;

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
        self.0.digest.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}
