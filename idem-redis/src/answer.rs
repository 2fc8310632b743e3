//! What a script answers with: a record, or a word and what it needs.

use std::time::Duration;

use bytes::Bytes;
use idem_core::model::{Row, Timestamp};
use idem_core::{Applied, Attempt, Record, Refusal, StoreError};

/// A script's answer. A record begins with the version of its format, which is no letter.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) Bytes);

impl Answer {
    /// The answer of `reserve`: the record that is there afterwards.
    pub(crate) fn record(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        if self.0.first().is_none_or(u8::is_ascii_graphic) {
            return Err(self.error());
        }
        // The end of its lease is what is left of it.
        let record = Row::decode(&self.0)?.record(attempt.fingerprint(), Timestamp(0));
        record.ok_or_else(|| StoreError::corrupt("reserve answered with a released row"))
    }

    /// The answer of `renew`: what is left of the lease.
    pub(crate) fn left(&self) -> Result<Duration, StoreError> {
        let micros = self.0.strip_prefix(b"left ").ok_or_else(|| self.error())?;
        let micros = std::str::from_utf8(micros).map_err(StoreError::corrupt)?;
        micros.parse().map(Duration::from_micros).map_err(StoreError::corrupt)
    }

    /// The answer of a verb that has nothing to say.
    pub(crate) fn done(&self) -> Result<(), StoreError> {
        if self.0 == b"ok"[..] { Ok(()) } else { Err(self.error()) }
    }

    fn error(&self) -> StoreError {
        if self.0 == b"lost"[..] {
            return StoreError::LeaseLost;
        }
        if self.0 == b"full"[..] {
            return StoreError::refused(Refusal::Full, "the server has no room");
        }
        if let Some(why) = self.0.strip_prefix(b"corrupt ") {
            return StoreError::corrupt(String::from_utf8_lossy(why).into_owned());
        }
        // Not from these scripts: the verb may have been carried out or not.
        let size = self.0.len();
        StoreError::unavailable(Applied::Unknown, format!("an unknown answer of {size} bytes"))
    }
}

#[cfg(test)]
mod tests {
    use idem_core::{Fingerprint, Key, Scope};

    use super::*;

    fn answer(bytes: &'static [u8]) -> Answer {
        Answer(Bytes::from_static(bytes))
    }

    // L9
    #[test]
    fn an_answer_of_no_script_of_ours_is_no_grant() {
        let key = Key::new(Scope::new("op").unwrap(), "k").unwrap();
        let attempt = Attempt::new(key, Fingerprint::from_bytes([7; 32]));
        for odd in [b"".as_slice(), b"OK", b"okay", b"left", b"nothing"] {
            let errors = [
                answer(odd).record(&attempt).unwrap_err(),
                answer(odd).left().unwrap_err(),
                answer(odd).done().unwrap_err(),
            ];
            for error in errors {
                let unknown =
                    matches!(error, StoreError::Unavailable { applied: Applied::Unknown, .. });
                assert!(unknown, "{odd:?}: {error:?}");
            }
        }
        for damaged in [b"\x01".as_slice(), b"\x02\x01", &[1; 77]] {
            let error = answer(damaged).record(&attempt).unwrap_err();
            assert_eq!(error.code(), "record_corrupt");
        }
    }

    #[test]
    fn a_word_is_an_error_whatever_was_asked() {
        for (word, code) in [
            (b"lost".as_slice(), "lease_lost"),
            (b"full", "store_refused_full"),
            (b"corrupt unknown row phase", "record_corrupt"),
        ] {
            assert_eq!(answer(word).left().unwrap_err().code(), code);
            assert_eq!(answer(word).done().unwrap_err().code(), code);
        }
    }
}
