//! Where results go that are too large for the store.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::timeout;

use crate::error::BoxError;
use crate::key::Key;
use crate::panics::caught;

/// Keeps large results elsewhere: an object store, a table, a file.
///
/// Either call may take as long as the operation's lease (default 30 s), and is dropped then. A
/// panic is an error.
#[async_trait]
pub trait References: Send + Sync {
    /// Keeps a result and says by what to load it: at most 64 KiB, opaque to the coordinator.
    ///
    /// Called once per completed action, before its record is completed. What is saved must be
    /// kept for the record's retention at least.
    ///
    /// # Errors
    /// The result then counts as not kept.
    async fn save(&self, key: &Key, result: Bytes) -> Result<Bytes, BoxError>;

    /// Loads what was saved, byte for byte.
    ///
    /// # Errors
    /// The caller is told [`CallError::ReferenceUnavailable`](super::CallError), and may try again.
    async fn load(&self, key: &Key, reference: Bytes) -> Result<Bytes, BoxError>;
}

/// What a hook comes to, that may hang or panic.
pub(super) async fn within(
    limit: Duration,
    hook: impl Future<Output = Result<Bytes, BoxError>>,
) -> Result<Bytes, BoxError> {
    timeout(limit, caught(hook)).await??
}
