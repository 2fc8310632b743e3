//! The rows, as bytes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use idem_core::model::{Phase, Row, Timestamp};
use idem_core::{AttemptId, Refusal, StoreError};

use crate::harness::Damage;
use crate::wrong::laws::{Laws, Unreadable, Verb, WhenFull};

/// Enters a mutex. That somebody panicked inside is told by the property that they broke.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows of a store.
#[derive(Debug, Default)]
pub(crate) struct Table {
    cells: HashMap<Vec<u8>, Cell>,
    /// How many rows there may be.
    room: Option<usize>,
    /// How many leases were granted since the store was started.
    pub(crate) granted: u64,
}

/// One row, and what only some wrong stores look at.
#[derive(Clone, Debug)]
struct Cell {
    bytes: Bytes,
    damage: Option<Damage>,
    /// The handle that wrote it, and what was there before.
    writer: usize,
    before: Option<Bytes>,
    holders: Vec<AttemptId>,
}

impl Table {
    pub(crate) fn with_room(records: usize) -> Self {
        Self { room: Some(records), ..Self::default() }
    }

    /// The row as this handle sees it.
    pub(crate) fn read(
        &mut self,
        laws: &dyn Laws,
        name: &[u8],
        handle: usize,
        verb: Verb,
    ) -> Result<Option<Row>, StoreError> {
        let Some(cell) = self.cells.get(name) else { return Ok(None) };
        let bytes = if laws.lags() && cell.writer != handle {
            cell.before.as_ref()
        } else {
            Some(&cell.bytes)
        };
        match (bytes.map(Row::decode).transpose(), cell.damage) {
            (Err(unreadable), Some(damage)) => match laws.unreadable(damage, verb) {
                Unreadable::Absent => Ok(None),
                Unreadable::Corrupt => Err(unreadable),
                Unreadable::Removed => {
                    self.cells.remove(name);
                    Err(unreadable)
                }
            },
            (row, _) => row,
        }
    }

    /// Every attempt that has held the key.
    pub(crate) fn holders(&self, name: &[u8]) -> Vec<AttemptId> {
        self.cells.get(name).map(|cell| cell.holders.clone()).unwrap_or_default()
    }

    /// Writes a row, if there is room for it.
    pub(crate) fn write(
        &mut self,
        laws: &dyn Laws,
        name: &[u8],
        handle: usize,
        row: &Row,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let room = self.make_room(laws, name, now);
        if room.is_err() && laws.when_full() != WhenFull::WriteAndRefuse {
            return room;
        }
        let old = self.cells.remove(name);
        let mut holders = old.as_ref().map(|cell| cell.holders.clone()).unwrap_or_default();
        if !holders.contains(&row.holder) {
            holders.push(row.holder);
            self.granted += 1;
        }
        let before = old.map(|cell| cell.bytes);
        let cell = Cell { bytes: row.encode(), damage: None, writer: handle, before, holders };
        self.cells.insert(name.to_vec(), cell);
        room
    }

    fn make_room(
        &mut self,
        laws: &dyn Laws,
        name: &[u8],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(room) = self.room.filter(|room| self.cells.len() >= *room) else { return Ok(()) };
        let when_full = laws.when_full();
        if self.cells.contains_key(name) && when_full != WhenFull::RefuseAll {
            return Ok(());
        }
        match when_full {
            WhenFull::TakeIn => return Ok(()),
            WhenFull::KeepTheDead => {}
            WhenFull::EvictPending => {
                self.evict_one(|row| matches!(row.phase, Phase::Pending { .. }));
            }
            WhenFull::EvictCompleted => {
                self.evict_one(|row| matches!(row.phase, Phase::Completed { .. }));
            }
            _ => self.remove_where(|row| row.retain_until <= now),
        }
        if self.cells.len() < room {
            return Ok(());
        }
        Err(StoreError::refused(Refusal::Full, format!("there is room for {room} rows")))
    }

    fn evict_one(&mut self, which: impl Fn(&Row) -> bool) {
        let victim = self.names_where(which).into_iter().next();
        if let Some(victim) = victim {
            self.cells.remove(&victim);
        }
    }

    /// The names of the rows that can be read and are such.
    pub(crate) fn names_where(&self, which: impl Fn(&Row) -> bool) -> Vec<Vec<u8>> {
        let such = |cell: &Cell| Row::decode(&cell.bytes).is_ok_and(|row| which(&row));
        self.cells.iter().filter(|(_, cell)| such(cell)).map(|(name, _)| name.clone()).collect()
    }

    /// Removes the rows that can be read and are such.
    pub(crate) fn remove_where(&mut self, which: impl Fn(&Row) -> bool) {
        self.remove(&self.names_where(which));
    }

    pub(crate) fn remove(&mut self, names: &[Vec<u8>]) {
        for name in names {
            self.cells.remove(name);
        }
    }

    pub(crate) fn remove_damaged(&mut self) {
        self.cells.retain(|_, cell| cell.damage.is_none());
    }

    /// Damages the row behind the store's back; false if there is none.
    pub(crate) fn damage(&mut self, name: &[u8], damage: Damage) -> bool {
        let Some(cell) = self.cells.get_mut(name) else { return false };
        cell.bytes = Bytes::from(damage.of(&cell.bytes));
        cell.damage = Some(damage);
        true
    }

    /// Starts anew with what survives.
    pub(crate) fn restart(&mut self, survives: impl Fn(Row) -> Option<Row>) {
        self.granted = 0;
        self.cells.retain(|_, cell| match Row::decode(&cell.bytes) {
            Err(_) => true,
            Ok(row) => survives(row).is_some_and(|row| {
                cell.bytes = row.encode();
                true
            }),
        });
    }
}
