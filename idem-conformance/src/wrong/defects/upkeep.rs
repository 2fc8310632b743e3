//! Stores that clear away too much, or too little.

use idem_core::model::{Phase, Row, Timestamp};

use crate::wrong::laws::{Laws, WhenFull, lease_end};

pub(super) const ALL: &[&dyn Laws] = &[
    &PurgesThePending,
    &PurgesTheAbandoned,
    &PurgesTheCompleted,
    &PurgesTheReleased,
    &PurgeDoesNotLookAgain,
    &Full(WhenFull::TakeIn),
    &Full(WhenFull::WriteAndRefuse),
    &Full(WhenFull::EvictPending),
    &Full(WhenFull::EvictCompleted),
    &Full(WhenFull::RefuseAll),
    &Full(WhenFull::KeepTheDead),
    &RestartForgetsAll,
    &RestartForgetsCompletions,
    &RestartForgetsReservations,
];

/// C23: the sweep judges a live reservation dead.
#[derive(Debug)]
struct PurgesThePending;

impl Laws for PurgesThePending {
    fn purges(&self, row: &Row, now: Timestamp) -> bool {
        row.retain_until <= now || lease_end(row).is_some_and(|end| end > now)
    }
}

/// The sweep removes what has ended: unknown becomes "never seen".
#[derive(Debug)]
struct PurgesTheAbandoned;

impl Laws for PurgesTheAbandoned {
    fn purges(&self, row: &Row, now: Timestamp) -> bool {
        row.retain_until <= now || lease_end(row).is_some_and(|end| end <= now)
    }
}

/// The sweep removes what has an answer.
#[derive(Debug)]
struct PurgesTheCompleted;

impl Laws for PurgesTheCompleted {
    fn purges(&self, row: &Row, now: Timestamp) -> bool {
        row.retain_until <= now || matches!(row.phase, Phase::Completed { .. })
    }
}

/// The sweep removes what is free, and with it the fence and who released it.
#[derive(Debug)]
struct PurgesTheReleased;

impl Laws for PurgesTheReleased {
    fn purges(&self, row: &Row, now: Timestamp) -> bool {
        row.retain_until <= now || row.phase == Phase::Released
    }
}

/// C23: the sweep makes a list, and then removes what is on it.
#[derive(Debug)]
struct PurgeDoesNotLookAgain;

impl Laws for PurgeDoesNotLookAgain {
    fn purge_is_torn(&self) -> bool {
        true
    }
}

/// C104, C135: no room is made, or the wrong one.
#[derive(Debug)]
struct Full(WhenFull);

impl Laws for Full {
    fn when_full(&self) -> WhenFull {
        self.0
    }
}

/// What was acknowledged was in memory.
#[derive(Debug)]
struct RestartForgetsAll;

impl Laws for RestartForgetsAll {
    fn survives(&self, _row: Row) -> Option<Row> {
        None
    }
}

/// What was completed was written behind.
#[derive(Debug)]
struct RestartForgetsCompletions;

impl Laws for RestartForgetsCompletions {
    fn survives(&self, row: Row) -> Option<Row> {
        (!matches!(row.phase, Phase::Completed { .. })).then_some(row)
    }
}

/// Who holds a key was in memory; what it was completed with was not.
#[derive(Debug)]
struct RestartForgetsReservations;

impl Laws for RestartForgetsReservations {
    fn survives(&self, row: Row) -> Option<Row> {
        matches!(row.phase, Phase::Completed { .. }).then_some(row)
    }
}
