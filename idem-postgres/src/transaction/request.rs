//! What a transaction is asked with.

use std::time::Duration;

use idem_core::{Attempt, Fingerprint, Key};

/// What to do while another transaction has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rivals {
    /// Wait for its commit, and replay; or for its rollback, and run. At most so long.
    Wait {
        /// How long at most.
        at_most: Duration,
    },
    /// Say so at once.
    Reject,
}

impl Default for Rivals {
    /// Waits for 10 seconds at most.
    fn default() -> Self {
        Self::Wait { at_most: Duration::from_secs(10) }
    }
}

impl Rivals {
    pub(super) fn patience(self) -> Duration {
        match self {
            Self::Wait { at_most } => at_most,
            Self::Reject => Duration::ZERO,
        }
    }
}

/// How far a transaction is kept apart from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "Postgres has these three")]
pub enum Isolation {
    /// `READ COMMITTED`, which is the server's default.
    ReadCommitted,
    /// `REPEATABLE READ`.
    RepeatableRead,
    /// `SERIALIZABLE`.
    Serializable,
}

impl Isolation {
    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Self::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
            Self::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        }
    }
}

/// What [`PostgresStore::transaction`](crate::PostgresStore::transaction) is asked with.
#[derive(Debug)]
pub struct TransactionRequest {
    pub(super) attempt: Attempt,
    pub(super) rivals: Rivals,
    pub(super) isolation: Option<Isolation>,
    pub(super) repeats: u32,
}

impl TransactionRequest {
    /// A request under this key: retained for 24 hours, waits for a rival for 10 seconds, repeated
    /// up to 5 times, with the database's default isolation.
    pub fn new(key: Key, fingerprint: Fingerprint) -> Self {
        let attempt = Attempt::new(key, fingerprint);
        Self { attempt, rivals: Rivals::default(), isolation: None, repeats: 5 }
    }

    /// How long the record is kept, from the moment it is completed.
    pub fn retention(self, retention: Duration) -> Self {
        Self { attempt: self.attempt.retention(retention), ..self }
    }

    /// What to do while another transaction has the key.
    pub fn rivals(self, rivals: Rivals) -> Self {
        Self { rivals, ..self }
    }

    /// How far the transaction is kept apart from others.
    pub fn isolation(self, isolation: Isolation) -> Self {
        Self { isolation: Some(isolation), ..self }
    }

    /// How often the whole transaction is repeated at most, when the server rolled it back to keep
    /// it apart from others (`40001`, `40P01`), or its connection was lost during the commit.
    pub fn repeats(self, repeats: u32) -> Self {
        Self { repeats, ..self }
    }
}
