//! Where results go that are too large for the store.

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::BoxError;
use crate::key::Key;

/// Keeps large results elsewhere: an object store, a table, a file.
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
