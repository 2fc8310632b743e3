//! The laws as pure functions: no clock, no randomness, no I/O.
//!
//! Each verb is a function of what the key's row is, what is asked, and what time it is by the
//! store's clock. It says what to answer and what row to write, if any. A store that can run
//! these in one atomic step keeps the laws; `idem-memory` and [`CasStore`](crate::CasStore) do,
//! and every other store is tested against them.
//!
//! Durations are expected to be checked already (see [`limits`](crate::limits)).

use std::time::Duration;

use bytes::Bytes;

use crate::attempt::{Attempt, AttemptId, Fence, Lease};
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::record::{Record, State};

/// A moment by the store's clock, in microseconds since the Unix epoch.
///
/// For stores only: no timestamp crosses the [`Store`](crate::Store) trait (law L7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// This moment and `by` more; saturates far beyond any date a store can hold.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_micros()).unwrap_or(u64::MAX)))
    }

    /// How long it is until `later`; zero if that has passed.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_micros(later.0.saturating_sub(self.0))
    }
}

/// All that a store keeps for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores build it; a new field must break them")]
pub struct Row {
    /// The attempt that holds, completed or released the key.
    pub holder: AttemptId,
    /// The fence of its lease.
    pub fence: Fence,
    /// How many attempts have held the reservation, the holder included.
    pub attempts: u32,
    /// When the row may be forgotten. A row past it counts as absent.
    pub retain_until: Timestamp,
    /// What has become of the reservation.
    pub phase: Phase,
}

/// What has become of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores build it; a new phase must break them")]
pub enum Phase {
    /// Held until its lease ends; after that, abandoned.
    Pending {
        /// What the request is.
        fingerprint: Fingerprint,
        /// When the lease ends. The row is retained for the attempt's retention beyond it.
        lease_until: Timestamp,
    },
    /// Completed with these bytes.
    Completed {
        /// What the request is.
        fingerprint: Fingerprint,
        /// What `complete` was given.
        payload: Bytes,
    },
    /// Released: the key is free, and only fence and holder are remembered.
    Released,
}

/// What a verb comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores take it apart")]
pub struct Step<T> {
    /// The row to write, in the same atomic step; `None` leaves the row as it is.
    pub write: Option<Row>,
    /// What to answer.
    pub answer: T,
}

impl Row {
    /// The record that an attempt with the fingerprint `asking` is shown; `None` if the row is a
    /// released one.
    ///
    /// For stores whose verbs are translations of these: they have a row to answer with.
    pub fn record(&self, asking: Fingerprint, now: Timestamp) -> Option<Record> {
        let (fingerprint, state) = match &self.phase {
            Phase::Pending { fingerprint, lease_until } => {
                (*fingerprint, State::Pending { left: now.until(*lease_until) })
            }
            Phase::Completed { fingerprint, payload } => {
                let payload = (*fingerprint == asking).then(|| payload.clone());
                (*fingerprint, State::Completed { payload })
            }
            Phase::Released => return None,
        };
        let Self { holder, fence, attempts, .. } = *self;
        Some(Record { fingerprint, holder, fence, attempts, state })
    }

    /// Whether `attempt` may have the key, although there is this row (law L2).
    fn is_free_for(&self, attempt: &Attempt, now: Timestamp) -> bool {
        match &self.phase {
            Phase::Released => true,
            Phase::Completed { .. } => false,
            Phase::Pending { fingerprint, lease_until } => {
                self.holder != attempt.id()
                    && *lease_until <= now
                    && *fingerprint == attempt.fingerprint()
                    && attempt.may_take_over()
            }
        }
    }
}

/// The row, unless its retention has passed.
fn kept(row: Option<&Row>, now: Timestamp) -> Option<&Row> {
    row.filter(|row| row.retain_until > now)
}

/// The row, if `lease` is the current holder's (law L4).
fn held<'a>(row: Option<&'a Row>, lease: &Lease, now: Timestamp) -> Result<&'a Row, StoreError> {
    kept(row, now).filter(|row| row.holder == lease.attempt()).ok_or(StoreError::LeaseLost)
}

/// [`Store::reserve`](crate::Store::reserve).
///
/// # Errors
/// [`StoreError::LeaseLost`] if this attempt was the last to hold the key and has released it;
/// [`StoreError::Corrupt`] if no larger fence than the row's can be issued.
pub fn reserve(
    row: Option<&Row>,
    attempt: &Attempt,
    now: Timestamp,
) -> Result<Step<Record>, StoreError> {
    let row = kept(row, now);
    if let Some(row) = row {
        if row.phase == Phase::Released && row.holder == attempt.id() {
            return Err(StoreError::LeaseLost);
        }
        if !row.is_free_for(attempt, now)
            && let Some(answer) = row.record(attempt.fingerprint(), now)
        {
            return Ok(Step { write: None, answer });
        }
    }
    let fence = match row {
        Some(row) => {
            let next = row.fence.0.checked_add(1);
            now.0.max(next.ok_or_else(|| StoreError::corrupt("the fence cannot grow"))?)
        }
        None => now.0,
    };
    let taken_over = row.filter(|row| row.phase != Phase::Released);
    let lease_until = now.after(attempt.lease_for());
    let fingerprint = attempt.fingerprint();
    let row = Row {
        holder: attempt.id(),
        fence: Fence(fence),
        attempts: taken_over.map_or(1, |row| row.attempts.saturating_add(1)),
        retain_until: lease_until.after(attempt.retention_for()),
        phase: Phase::Pending { fingerprint, lease_until },
    };
    let answer = Record {
        fingerprint,
        holder: row.holder,
        fence: row.fence,
        attempts: row.attempts,
        state: State::Pending { left: attempt.lease_for() },
    };
    Ok(Step { write: Some(row), answer })
}

/// [`Store::renew`](crate::Store::renew).
///
/// # Errors
/// [`StoreError::LeaseLost`] unless the lease holds a pending row.
pub fn renew(
    row: Option<&Row>,
    lease: &Lease,
    duration: Duration,
    now: Timestamp,
) -> Result<Step<Duration>, StoreError> {
    let row = held(row, lease, now)?;
    let Phase::Pending { fingerprint, lease_until: was } = row.phase else {
        return Err(StoreError::LeaseLost);
    };
    let lease_until = if duration.is_zero() { was.min(now) } else { was.max(now.after(duration)) };
    let row = Row {
        // An abandoned row is kept for the attempt's retention, counted from the lease's end.
        retain_until: lease_until.after(was.until(row.retain_until)),
        phase: Phase::Pending { fingerprint, lease_until },
        ..*row
    };
    Ok(Step { write: Some(row), answer: now.until(lease_until) })
}

/// [`Store::complete`](crate::Store::complete).
///
/// # Errors
/// [`StoreError::LeaseLost`] unless the lease holds the row, pending or completed.
pub fn complete(
    row: Option<&Row>,
    lease: &Lease,
    payload: &Bytes,
    retention: Duration,
    now: Timestamp,
) -> Result<Step<()>, StoreError> {
    let row = held(row, lease, now)?;
    match row.phase {
        Phase::Released => Err(StoreError::LeaseLost),
        Phase::Completed { .. } => Ok(Step { write: None, answer: () }),
        Phase::Pending { fingerprint, .. } => {
            let row = Row {
                retain_until: now.after(retention),
                phase: Phase::Completed { fingerprint, payload: payload.clone() },
                ..*row
            };
            Ok(Step { write: Some(row), answer: () })
        }
    }
}

/// [`Store::release`](crate::Store::release).
///
/// # Errors
/// [`StoreError::LeaseLost`] unless the lease holds the row, pending or released.
pub fn release(row: Option<&Row>, lease: &Lease, now: Timestamp) -> Result<Step<()>, StoreError> {
    let row = held(row, lease, now)?;
    match row.phase {
        Phase::Completed { .. } => Err(StoreError::LeaseLost),
        Phase::Released => Ok(Step { write: None, answer: () }),
        Phase::Pending { .. } => {
            Ok(Step { write: Some(Row { phase: Phase::Released, ..*row }), answer: () })
        }
    }
}
