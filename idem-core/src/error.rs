//! Why a store could not do what was asked (law L9).

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Any error that caused another.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// Whether a call that failed may have taken effect all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a call was applied, or it is not known")]
pub enum Applied {
    /// It certainly did not: the request never reached the store, or was turned away.
    No,
    /// It may have: the request was sent, and no answer came back.
    Unknown,
}

/// Why a store will not do what was asked, now or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The call itself is wrong: a duration outside its range (see [`limits`](crate::limits)).
    Invalid,
    /// The store is set up in a way that it cannot keep the laws.
    Configuration,
    /// The store's user lacks a right.
    Permission,
    /// The store has no room, or none for a record of this size.
    Full,
}

/// Why a store could not do what was asked. **An error is never a grant** (law L9).
///
/// Every variant says whether something may have been written; only [`Unavailable`] leaves it
/// open. Every verb may be repeated verbatim after any of them (law L1). Cloning is cheap: the
/// cause is shared, so that one failure can be told to every caller who waited for it.
///
/// [`Unavailable`]: StoreError::Unavailable
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The attempt does not hold the key, or no longer does. Nothing was written (law L4).
    ///
    /// An error, not an answer, so that `?` rolls the caller's transaction back.
    LeaseLost,
    /// The store did not answer. Asking again may succeed.
    Unavailable {
        /// Whether the call may have taken effect.
        applied: Applied,
        /// What the driver said.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// There is a record, and it cannot be read: damaged, of a newer format, or of a foreign type
    /// (law L8). Nothing was written; the key is not free.
    Corrupt {
        /// What is wrong with it.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The store answered, and will answer the same again. Nothing was written.
    Refused {
        /// The kind of refusal.
        refusal: Refusal,
        /// What the driver said.
        source: Arc<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// The store did not answer; see [`StoreError::Unavailable`].
    pub fn unavailable(applied: Applied, source: impl Into<BoxError>) -> Self {
        Self::Unavailable { applied, source: Arc::from(source.into()) }
    }

    /// The record cannot be read; see [`StoreError::Corrupt`].
    pub fn corrupt(source: impl Into<BoxError>) -> Self {
        Self::Corrupt { source: Arc::from(source.into()) }
    }

    /// The store will not; see [`StoreError::Refused`].
    pub fn refused(refusal: Refusal, source: impl Into<BoxError>) -> Self {
        Self::Refused { refusal, source: Arc::from(source.into()) }
    }

    /// Whether asking again may succeed: true for [`StoreError::Unavailable`] alone.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Whether the attempt does not hold the key.
    pub fn is_lease_lost(&self) -> bool {
        matches!(self, Self::LeaseLost)
    }

    /// The kind of refusal, if it is one.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        }
    }

    /// A stable name for logs, metrics and comparisons across versions of this crate.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LeaseLost => "lease_lost",
            Self::Unavailable { .. } => "store_unavailable",
            Self::Corrupt { .. } => "record_corrupt",
            Self::Refused { refusal, .. } => match refusal {
                Refusal::Invalid => "store_refused_invalid",
                Refusal::Configuration => "store_refused_configuration",
                Refusal::Permission => "store_refused_permission",
                Refusal::Full => "store_refused_full",
            },
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaseLost => "the attempt does not hold this key",
            Self::Unavailable { applied: Applied::No, .. } => {
                "the store is unavailable; the call was not applied"
            }
            Self::Unavailable { applied: Applied::Unknown, .. } => {
                "the store did not answer; the call may have been applied"
            }
            Self::Corrupt { .. } => "the stored record cannot be read",
            Self::Refused { refusal, .. } => match refusal {
                Refusal::Invalid => "the store refused an invalid call",
                Refusal::Configuration => {
                    "the store refused: its configuration cannot keep the laws"
                }
                Refusal::Permission => "the store refused: a right is missing",
                Refusal::Full => "the store refused: it is full",
            },
        })
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::LeaseLost => None,
            Self::Unavailable { source, .. }
            | Self::Corrupt { source }
            | Self::Refused { source, .. } => Some(&**source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSALS: [Refusal; 4] =
        [Refusal::Invalid, Refusal::Configuration, Refusal::Permission, Refusal::Full];

    fn all() -> Vec<StoreError> {
        let mut all = vec![
            StoreError::LeaseLost,
            StoreError::unavailable(Applied::No, "driver says so"),
            StoreError::unavailable(Applied::Unknown, "driver says so"),
            StoreError::corrupt("driver says so"),
        ];
        all.extend(REFUSALS.map(|refusal| StoreError::refused(refusal, "driver says so")));
        all
    }

    #[test]
    fn an_error_can_be_sent_anywhere() {
        fn assert_error<T: Error + Send + Sync + Clone + 'static>() {}
        assert_error::<StoreError>();
        let _: BoxError = Box::new(StoreError::LeaseLost);
    }

    // C141
    #[test]
    fn codes_are_stable() {
        let codes: Vec<_> = all().iter().map(StoreError::code).collect();
        let expected = [
            "lease_lost",
            "store_unavailable",
            "store_unavailable",
            "record_corrupt",
            "store_refused_invalid",
            "store_refused_configuration",
            "store_refused_permission",
            "store_refused_full",
        ];
        assert_eq!(codes, expected);
    }

    // L9
    #[test]
    fn a_message_says_whether_the_call_may_have_been_applied() {
        let [_, no, unknown, ..] = &all()[..] else { panic!("too few errors") };
        assert!(no.to_string().ends_with("the call was not applied"));
        assert!(unknown.to_string().ends_with("the call may have been applied"));
        let messages: std::collections::HashSet<_> =
            all().iter().map(ToString::to_string).collect();
        assert_eq!(messages.len(), all().len(), "two errors read alike");
    }

    #[test]
    fn the_cause_is_a_source_and_not_in_the_message() {
        for error in all() {
            let source = error.source().map(ToString::to_string);
            let expected = (!error.is_lease_lost()).then(|| "driver says so".to_owned());
            assert_eq!(source, expected);
            assert!(!error.to_string().contains("driver says so"));
        }
    }

    #[test]
    fn only_unavailable_may_be_asked_again_and_only_refused_has_a_refusal() {
        for error in all() {
            assert_eq!(error.is_unavailable(), error.code() == "store_unavailable");
            let refused = error.code().starts_with("store_refused");
            assert_eq!(error.refusal().is_some(), refused);
            assert_eq!(error.is_lease_lost(), error.code() == "lease_lost");
        }
        let refusals: Vec<_> = all().iter().filter_map(StoreError::refusal).collect();
        assert_eq!(refusals, REFUSALS);
    }

    #[test]
    fn a_clone_shares_its_cause() {
        let error = StoreError::corrupt("driver says so");
        let clone = error.clone();
        let cause = |error: &StoreError| match error {
            StoreError::Corrupt { source } => Arc::as_ptr(source).cast::<()>(),
            other => panic!("{other}"),
        };
        assert_eq!(cause(&error), cause(&clone));
    }
}
