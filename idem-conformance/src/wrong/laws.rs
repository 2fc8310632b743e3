//! What a store does, cut into pieces that can be got wrong one at a time.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use idem_core::model::{self, Phase, Row, Step, Timestamp};
use idem_core::{Applied, Attempt, AttemptId, Key, Lease, Record, StoreError, limits};

use crate::harness::{Damage, Fault};

/// What a verb comes to.
pub type Answer<T> = Result<Step<T>, StoreError>;

/// What [`Store::complete`](idem_core::Store::complete) is given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The bytes to keep.
    pub payload: Bytes,
    /// For how long.
    pub retention: Duration,
}

/// Where and when a verb takes effect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct At {
    /// What the store has for the key.
    pub row: Option<Row>,
    /// The store's clock.
    pub now: Timestamp,
    /// The clock of the process that asks.
    pub client: Timestamp,
    /// Every attempt that has held the key.
    pub holders: Vec<AttemptId>,
    /// How many leases the store has granted since it was started.
    pub granted: u64,
}

/// A verb of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the contract has four verbs")]
pub enum Verb {
    /// [`Store::reserve`](idem_core::Store::reserve).
    Reserve,
    /// [`Store::renew`](idem_core::Store::renew).
    Renew,
    /// [`Store::complete`](idem_core::Store::complete).
    Complete,
    /// [`Store::release`](idem_core::Store::release).
    Release,
}

/// Durations that are checked before any work.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the contract checks these three")]
pub enum Asked<'a> {
    /// The lease and the retention of an attempt.
    Attempt(&'a Attempt),
    /// By how much a lease is renewed.
    Renewal(Duration),
    /// How long a completion is kept.
    Retention(Duration),
}

/// What a verb makes of a record that it cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// It says so.
    Corrupt,
    /// It takes the record for absent.
    Absent,
    /// It says so and removes the record.
    Removed,
}

/// How a key is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Watching {
    /// From the moment that `watch` returns, until it is dropped.
    Properly,
    /// `watch` does not return.
    Hangs,
    /// Only from the moment that somebody waits.
    Late,
    /// Only until the first hint.
    Once,
    /// Only until another key is watched.
    OneKey,
    /// Only until another watch of the same key.
    OneWatcher,
    /// By making a record for the key, if it has none.
    WithARecord,
    /// Not at all.
    Never,
}

/// What is done with a new key when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It is refused.
    Refuse,
    /// It is taken in all the same.
    TakeIn,
    /// It is refused, and written.
    WriteAndRefuse,
    /// A pending row makes room.
    EvictPending,
    /// A completed row makes room.
    EvictCompleted,
    /// It is refused, and so is every write to the keys that are there.
    RefuseAll,
    /// It is refused without looking for rows whose retention has passed.
    KeepTheDead,
}

/// What a store does. The methods as they stand are right; a wrong store replaces one.
pub trait Laws: Debug + Send + Sync {
    /// What a key's row is stored under.
    fn name(&self, key: &Key) -> Vec<u8> {
        key.digest().to_vec()
    }

    /// Refuses a duration outside its range, before any work.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    fn check(&self, asked: Asked<'_>) -> Result<(), StoreError> {
        asked.check()
    }

    /// Judges a `reserve`.
    ///
    /// # Errors
    /// As the verb.
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        at.reserve(attempt)
    }

    /// Judges a `renew`.
    ///
    /// # Errors
    /// As the verb.
    fn renew(&self, at: At, lease: &Lease, by: Duration) -> Answer<Duration> {
        at.renew(lease, by)
    }

    /// Judges a `complete`.
    ///
    /// # Errors
    /// As the verb.
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        at.complete(lease, with)
    }

    /// Judges a `release`.
    ///
    /// # Errors
    /// As the verb.
    fn release(&self, at: At, lease: &Lease) -> Answer<()> {
        at.release(lease)
    }

    /// Whether reading, judging and writing are separate steps.
    fn is_torn(&self, _verb: Verb) -> bool {
        false
    }

    /// Whether a handle reads the last write of another only after the next one.
    fn lags(&self) -> bool {
        false
    }

    /// Whether `reserve` answers only when the key is no longer held.
    fn waits(&self) -> bool {
        false
    }

    /// What a verb makes of a damaged record.
    fn unreadable(&self, _damage: Damage, _verb: Verb) -> Unreadable {
        Unreadable::Corrupt
    }

    /// Whether the sweep removes this row.
    fn purges(&self, row: &Row, now: Timestamp) -> bool {
        row.retain_until <= now
    }

    /// Whether the sweep removes what cannot be read.
    fn purges_damaged(&self) -> bool {
        false
    }

    /// Whether the sweep looks, and removes later what it had seen.
    fn purge_is_torn(&self) -> bool {
        false
    }

    /// What is left of a row after a restart.
    fn survives(&self, row: Row) -> Option<Row> {
        Some(row)
    }

    /// How keys are watched.
    fn watching(&self) -> Watching {
        Watching::Properly
    }

    /// Whether watchers are woken after this verb has written this row.
    fn hints_after(&self, verb: Verb, _written: &Row) -> bool {
        verb != Verb::Reserve
    }

    /// What is done with a new key when there is no room.
    fn when_full(&self) -> WhenFull {
        WhenFull::Refuse
    }

    /// What a call says that failed in this way.
    fn applied(&self, fault: Fault) -> Applied {
        match fault {
            Fault::Before => Applied::No,
            Fault::After => Applied::Unknown,
        }
    }

    /// Whether a call that did not arrive is answered as if it had.
    fn pretends(&self, _verb: Verb) -> bool {
        false
    }

    /// Whether a call is made all the same that is then said not to have arrived.
    fn applies_what_it_denies(&self) -> bool {
        false
    }

    /// Whether calls succeed again after one has failed.
    fn recovers(&self) -> bool {
        true
    }
}

/// The laws as they are.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to add")]
pub struct Right;

impl Laws for Right {}

impl Asked<'_> {
    /// Refuses what is outside its range.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    pub fn check(self) -> Result<(), StoreError> {
        match self {
            Self::Attempt(attempt) => attempt.check(),
            Self::Renewal(by) => limits::check_renewal(by),
            Self::Retention(retention) => limits::check_retention(retention),
        }
    }
}

/// The model, as the laws call it.
impl At {
    pub(crate) fn reserve(&self, attempt: &Attempt) -> Answer<Record> {
        model::reserve(self.row.as_ref(), attempt, self.now)
    }

    pub(crate) fn renew(&self, lease: &Lease, by: Duration) -> Answer<Duration> {
        model::renew(self.row.as_ref(), lease, by, self.now)
    }

    pub(crate) fn complete(&self, lease: &Lease, with: &Completion) -> Answer<()> {
        let Completion { payload, retention } = with;
        model::complete(self.row.as_ref(), lease, payload, *retention, self.now)
    }

    pub(crate) fn release(&self, lease: &Lease) -> Answer<()> {
        model::release(self.row.as_ref(), lease, self.now)
    }
}

/// What defects look at, and turn.
impl At {
    /// With the row as `change` leaves it, if there is one within its retention.
    pub(crate) fn seeing(mut self, change: impl FnOnce(&mut Row)) -> Self {
        let now = self.now;
        if let Some(row) = self.row.as_mut().filter(|row| row.retain_until > now) {
            change(row);
        }
        self
    }

    /// With the row in the hands of whoever asks.
    pub(crate) fn held_by(self, lease: &Lease) -> Self {
        self.seeing(|row| row.holder = lease.attempt())
    }

    /// As if there were no row, if `condition` holds for it.
    pub(crate) fn blind_if(mut self, condition: impl FnOnce(&Row) -> bool) -> Self {
        self.row = self.row.filter(|row| !condition(row));
        self
    }

    /// The row, within its retention.
    pub(crate) fn kept(&self) -> Option<&Row> {
        self.row.as_ref().filter(|row| row.retain_until > self.now)
    }

    /// Whether this attempt holds a row that is pending.
    pub(crate) fn is_pending_for(&self, id: AttemptId) -> bool {
        self.lease_end_of(id).is_some()
    }

    /// When the lease of this attempt ends, if it holds a pending row.
    pub(crate) fn lease_end_of(&self, id: AttemptId) -> Option<Timestamp> {
        self.kept().filter(|row| row.holder == id).and_then(lease_end)
    }

    /// Whether the row is pending and its lease has ended.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.kept().and_then(lease_end).is_some_and(|end| end <= self.now)
    }
}

/// When the lease of a pending row ends.
pub(crate) fn lease_end(row: &Row) -> Option<Timestamp> {
    match row.phase {
        Phase::Pending { lease_until, .. } => Some(lease_until),
        _ => None,
    }
}

/// The answer, with what is written as `change` leaves it.
pub(crate) fn writing<T>(answer: Answer<T>, change: impl FnOnce(&mut Row)) -> Answer<T> {
    let mut step = answer?;
    if let Some(row) = &mut step.write {
        change(row);
    }
    Ok(step)
}

/// The answer, with what is written and what is said as `change` leaves them.
pub(crate) fn granting(
    answer: Answer<Record>,
    change: impl FnOnce(&mut Row, &mut Record),
) -> Answer<Record> {
    let mut step = answer?;
    if let Some(row) = &mut step.write {
        change(row, &mut step.answer);
    }
    Ok(step)
}

/// Says this and writes nothing.
pub(crate) fn only<T>(answer: T) -> Step<T> {
    Step { write: None, answer }
}
