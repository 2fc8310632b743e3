//! What a script answers with: a word, and what the word needs.

use std::time::Duration;

use bytes::Bytes;
use idem_core::model::{Row, Timestamp};
use idem_core::{Attempt, Record, Refusal, StoreError};

/// The strings of a script's answer.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) Vec<Bytes>);

impl Answer {
    /// The answer of `reserve`: the row that is there afterwards, and the time.
    pub(crate) fn record(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        match self.words() {
            (b"row", [row, now]) => {
                let now = Timestamp(number(now)?);
                let record = Row::decode(row)?.record(attempt.fingerprint(), now);
                record.ok_or_else(|| StoreError::corrupt("reserve answered with a released row"))
            }
            _ => Err(self.error()),
        }
    }

    /// The answer of `renew`: what is left of the lease.
    pub(crate) fn left(&self) -> Result<Duration, StoreError> {
        match self.words() {
            (b"left", [micros]) => number(micros).map(Duration::from_micros),
            _ => Err(self.error()),
        }
    }

    /// The answer of a verb that has nothing to say.
    pub(crate) fn done(&self) -> Result<(), StoreError> {
        match self.words() {
            (b"ok", []) => Ok(()),
            _ => Err(self.error()),
        }
    }

    fn words(&self) -> (&[u8], &[Bytes]) {
        self.0.split_first().map_or((&[], &[]), |(word, rest)| (word, rest))
    }

    fn error(&self) -> StoreError {
        match self.words() {
            (b"lost", []) => StoreError::LeaseLost,
            (b"full", []) => StoreError::refused(Refusal::Full, "the server has no room"),
            (b"corrupt", [why]) => StoreError::corrupt(String::from_utf8_lossy(why).into_owned()),
            // Not from these scripts: the verb may have been carried out or not.
            (word, rest) => StoreError::unavailable(
                idem_core::Applied::Unknown,
                format!("an answer of {word:?} and {} more strings", rest.len()),
            ),
        }
    }
}

fn number(digits: &Bytes) -> Result<u64, StoreError> {
    let text = std::str::from_utf8(digits).map_err(StoreError::corrupt)?;
    text.parse().map_err(StoreError::corrupt)
}
