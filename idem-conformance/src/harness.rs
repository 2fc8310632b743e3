//! What the suite needs to know about a store under test.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use idem_core::{BoxError, Key, Store};
use thiserror::Error;

/// A store under test, and what can be done to it from outside.
///
/// Only [`store`](Self::store) is required. Every other method is a hook with a default that
/// says "not there"; a property that needs a missing hook is skipped, with the hook's name as the
/// reason, and is never counted as passed. The more hooks, the more is shown.
///
/// The suite makes a fresh harness for every property. It writes under random keys only, so the
/// data behind the store need not be fresh, nor empty.
#[async_trait]
pub trait Harness: Send + Sync {
    /// A handle to the store. Every call reaches the same data.
    fn store(&self) -> Arc<dyn Store>;

    /// How time passes for the store: really, unless told otherwise.
    fn clock(&self) -> Clock {
        Clock::Real { tick: Duration::from_millis(50) }
    }

    /// Lets `by` pass at once on a [virtual](Clock::Virtual) clock. Not called for a real one.
    ///
    /// # Errors
    /// [`HookError::Missing`] by default.
    async fn advance(&self, by: Duration) -> Result<(), HookError> {
        let _ = by;
        Err(Hook::Advance.missing())
    }

    /// A second handle to the same data, as another process would have it: a connection of its
    /// own, nothing shared in memory that two processes would not share.
    ///
    /// # Errors
    /// [`HookError::Missing`] by default; races then run on one handle.
    async fn fork(&self) -> Result<Arc<dyn Store>, HookError> {
        Err(Hook::Fork.missing())
    }

    /// A handle to the same data in a process whose own clock is wrong by `skew`.
    ///
    /// # Errors
    /// [`HookError::Missing`] by default.
    async fn skewed(&self, skew: Skew) -> Result<Arc<dyn Store>, HookError> {
        let _ = skew;
        Err(Hook::Skewed.missing())
    }

    /// Damages the record under `key`, which is there, behind the store's back.
    ///
    /// # Errors
    /// [`HookError::Missing`] by default, and for a kind of damage that cannot happen to the
    /// backend.
    async fn corrupt(&self, key: &Key, damage: Damage) -> Result<(), HookError> {
        let _ = (key, damage);
        Err(Hook::Corrupt.missing())
    }

    /// Runs the backend's sweep of records past their retention, now and to its end.
    ///
    /// # Errors
    /// [`HookError::Missing`] by default.
    async fn purge(&self) -> Result<(), HookError> {
        Err(Hook::Purge.missing())
    }

    /// An empty store of the same kind with room for `records` records and no more, on the same
    /// clock.
    ///
    /// # Errors
    /// [`HookError::Missing`] by default.
    async fn bounded(&self, records: usize) -> Result<Arc<dyn Store>, HookError> {
        let _ = records;
        Err(Hook::Bounded.missing())
    }

    /// Stops the backend and starts it again, as a deployment would. The next call of
    /// [`store`](Self::store) reaches what survived.
    ///
    /// # Errors
    /// [`HookError::Missing`] by default: a store that lives in a process dies with it.
    async fn restart(&self) -> Result<(), HookError> {
        Err(Hook::Restart.missing())
    }

    /// Makes the next verb on [`store`](Self::store), and only that, fail in this way.
    ///
    /// # Errors
    /// [`HookError::Missing`] by default. A lost reply is then imitated (see
    /// [`Faulty`](crate::Faulty)), and what a failed call says is not tested.
    async fn fail_next(&self, fault: Fault) -> Result<(), HookError> {
        let _ = fault;
        Err(Hook::FailNext.missing())
    }
}

/// How time passes for a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// It passes by itself, and the suite sleeps. Properties that would sleep for longer than
    /// [`Options::patience`](crate::Options::patience) are skipped.
    Real {
        /// The least difference in time that is told apart reliably: the coarseness of the
        /// store's clock, of its expiry, and of sleeping here, together. At least 10 ms.
        tick: Duration,
    },
    /// It stands still except for [`Harness::advance`], to the microsecond.
    Virtual,
}

/// How wrong a client's own clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a clock is ahead or behind")]
pub enum Skew {
    /// It is later there than at the store.
    Ahead(Duration),
    /// It is earlier there than at the store.
    Behind(Duration),
}

/// What can happen to a record behind a store's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Damage {
    /// Bytes that mean nothing.
    Garbage,
    /// The end is missing, if only a little of it.
    Truncated,
    /// A later version of the store wrote it, in a format this one does not know.
    NewerFormat,
    /// Another program put something of another type there.
    ForeignType,
}

impl Damage {
    /// Every kind of damage.
    pub const ALL: [Self; 4] =
        [Self::Garbage, Self::Truncated, Self::NewerFormat, Self::ForeignType];

    /// The damaged form of `stored`, for a backend that keeps bytes which begin with the version
    /// of their format, as [`Row::encode`](idem_core::model::Row::encode) does.
    pub fn of(self, stored: &[u8]) -> Vec<u8> {
        match self {
            Self::Garbage => stored.iter().map(|byte| byte ^ 0xa5).collect(),
            Self::Truncated => stored.split_last().map_or(&[][..], |(_, rest)| rest).to_vec(),
            Self::NewerFormat => {
                let mut newer = stored.to_vec();
                if let Some(version) = newer.first_mut() {
                    *version = version.saturating_add(1);
                }
                newer
            }
            Self::ForeignType => br#"{"basket":[1,2,3]}"#.to_vec(),
        }
    }
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a fault is before or after the effect")]
pub enum Fault {
    /// Before the store has done anything: the request does not arrive.
    Before,
    /// After the store has done it: the reply does not arrive.
    After,
}

/// A hook of the [`Harness`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hook {
    /// [`Harness::advance`] on a [`Clock::Virtual`].
    Advance,
    /// [`Harness::fork`].
    Fork,
    /// [`Harness::skewed`].
    Skewed,
    /// [`Harness::corrupt`].
    Corrupt,
    /// [`Harness::purge`].
    Purge,
    /// [`Harness::bounded`].
    Bounded,
    /// [`Harness::restart`].
    Restart,
    /// [`Harness::fail_next`].
    FailNext,
    /// [`Store::watch`], if it gives hints. Not a hook, but as optional.
    Watch,
}

impl Hook {
    /// The name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Advance => "advance",
            Self::Fork => "fork",
            Self::Skewed => "skewed",
            Self::Corrupt => "corrupt",
            Self::Purge => "purge",
            Self::Bounded => "bounded",
            Self::Restart => "restart",
            Self::FailNext => "fail_next",
            Self::Watch => "watch",
        }
    }

    /// The error that says this hook is not there.
    pub fn missing(self) -> HookError {
        HookError::Missing(self)
    }
}

/// Why a hook did nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HookError {
    /// The harness does not have it. What needs it is skipped.
    #[error("the harness has no `{}`", .0.name())]
    Missing(Hook),
    /// It did not work. What needs it fails.
    #[error("a hook of the harness failed: {0}")]
    Failed(#[from] BoxError),
}
