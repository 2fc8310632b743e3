//! Why a transaction has no answer to give.

use std::time::Duration;

use idem_core::{BoxError, Fingerprint, Key, StoreError};
use thiserror::Error;

/// Why a transaction has no answer to give. Unless it says otherwise, nothing was committed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransactionError<E> {
    /// Another has the key, and it took longer than this one may wait. HTTP 409.
    #[error("{key} is in progress")]
    InProgress {
        /// The key.
        key: Key,
        /// How much of the other's lease is left; `None` if it is a transaction, which ends when it
        /// ends.
        retry_after: Option<Duration>,
    },
    /// The key was used with another request. HTTP 422.
    #[error("{key} was used with another request: it was {recorded}, now it is {given}")]
    Mismatch {
        /// The key.
        key: Key,
        /// The fingerprint of the request that the key was used with.
        recorded: Fingerprint,
        /// The fingerprint of this request.
        given: Fingerprint,
    },
    /// The key was completed, and its answer is not a value of this type: damaged, of another
    /// version or codec, an error, or not kept. The action does not run (law L8).
    #[error("{key} was completed, and its answer cannot be read")]
    Unreadable {
        /// The key.
        key: Key,
        /// What is wrong with it.
        source: BoxError,
    },
    /// The value would not replay as what it is, so nothing was committed.
    #[error("{key}: the value cannot be stored")]
    Unstorable {
        /// The key.
        key: Key,
        /// What is wrong with it.
        source: BoxError,
    },
    /// The store failed, or refused.
    #[error("{key}: {source}")]
    Store {
        /// The key.
        key: Key,
        /// How.
        source: StoreError,
    },
    /// The transaction could not be begun or committed.
    #[error("{key}: the transaction failed")]
    Database {
        /// The key.
        key: Key,
        /// What the driver said.
        source: sqlx::Error,
    },
    /// The connection was lost during the commit, and it could not be found out what came of it.
    /// **It may have been committed.** The same request again gets the answer, or runs.
    #[error("{key}: whether the transaction was committed is not known")]
    CommitUnknown {
        /// The key.
        key: Key,
        /// What the driver said.
        source: sqlx::Error,
    },
    /// The action failed, and its writes are rolled back. The key is as free as it was.
    #[error(transparent)]
    Action(E),
}

impl<E> TransactionError<E> {
    /// The action's own error, if it is one.
    pub fn action(self) -> Option<E> {
        match self {
            Self::Action(error) => Some(error),
            _ => None,
        }
    }

    /// A stable name for logs, metrics and comparisons across versions of this crate.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InProgress { .. } => "in_progress",
            Self::Mismatch { .. } => "mismatch",
            Self::Unreadable { .. } => "unreadable",
            Self::Unstorable { .. } => "unstorable",
            Self::Store { source, .. } => source.code(),
            Self::Database { .. } => "transaction_failed",
            Self::CommitUnknown { .. } => "commit_unknown",
            Self::Action(_) => "action_failed",
        }
    }
}
