//! Why a property did not pass.

use std::fmt;

use idem_core::{KeyError, StoreError};

use crate::harness::{Hook, HookError};

/// What a property comes to.
pub(crate) type Verdict<T = ()> = Result<T, Failure>;

/// Why a property did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The store broke it; this is what was seen.
    Violated(String),
    /// It could not be shown; this is why.
    Skipped(Skip),
}

/// Why a property could not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skip {
    /// The harness, or the store, does not have what it needs.
    Missing(Hook),
    /// It would have slept for longer than allowed.
    Patience(String),
}

impl Failure {
    pub(crate) fn violated(what: impl Into<String>) -> Self {
        Self::Violated(what.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violated(what) => f.write_str(what),
            Self::Skipped(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(Hook::Watch) => f.write_str("the store gives no hints"),
            Self::Missing(hook) => HookError::Missing(*hook).fmt(f),
            Self::Patience(why) => f.write_str(why),
        }
    }
}

impl From<HookError> for Failure {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Missing(hook) => Self::Skipped(Skip::Missing(hook)),
            HookError::Failed(_) => Self::Violated(error.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Violated(format!("unexpected error: {error:?}"))
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::Violated(format!("a key was refused: {error}"))
    }
}

impl From<tokio::task::JoinError> for Failure {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Violated(format!("a call panicked: {error}"))
    }
}

/// Leaves the property with what was seen, unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($seen:tt)+) => {
        if !$holds {
            return Err($crate::failure::Failure::violated(format!($($seen)+)));
        }
    };
}

pub(crate) use ensure;
