//! One part of the map: rows, and who watches them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use idem_core::model::{Phase, Row, Step, Timestamp};
use idem_core::{Key, StoreError};
use tokio::sync::watch;

use crate::quota::{Quota, Size};
use crate::room::Room;

/// What stands for a key. The digest is uniform and has no text in it, so a row costs the same
/// whatever its key is, and a dump of the map names nobody.
pub(crate) type Digest = [u8; 32];

/// A digest is spread evenly already, so a light hash will do. It is seeded all the same: clients
/// choose the keys, and must not be able to choose one bucket.
type Map<T> = HashMap<Digest, T, foldhash::fast::RandomState>;

/// The fewest rows that make a sweep on insertion worth it.
const SWEEP_FROM: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Shard {
    /// Boxed: what a map keeps to spare, and moves when it grows, is then 40 bytes a row, not 144.
    rows: Map<Box<Row>>,
    watchers: Map<watch::Sender<()>>,
    /// Sweep when there are this many rows: twice those left by the last sweep, so that sweeping
    /// costs a constant per insertion and no background task is needed.
    sweep_at: usize,
}

/// Which rows a sweep removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// Those whose retention has passed.
    Expired,
    /// And released ones, of which only a fence is remembered. This store's clock does not go
    /// back, so the next fence is larger without it.
    ExpiredAndReleased,
}

impl Shard {
    pub(crate) fn row(&self, key: &Key) -> Option<&Row> {
        self.rows.get(key.digest()).map(Box::as_ref)
    }

    /// Runs one step of the model on the key's row and writes what comes of it, if there is room.
    /// Answers with the step's answer and whether it wrote.
    pub(crate) fn step<T>(
        &mut self,
        key: &Key,
        now: Timestamp,
        quota: &Quota,
        room: &Room,
        verb: impl Fn(Option<&Row>, Timestamp) -> Result<Step<T>, StoreError>,
    ) -> Result<(T, bool), StoreError> {
        let place = self.rows.entry(*key.digest());
        let old = match &place {
            Entry::Occupied(place) => Some(&**place.get()),
            Entry::Vacant(_) => None,
        };
        let is_new = old.is_none();
        let Step { write, answer } = verb(old, now)?;
        let Some(row) = write else { return Ok((answer, false)) };
        room.note(&row);
        quota.replace(old.map_or_else(Size::default, size), size(&row))?;
        match place {
            Entry::Occupied(mut place) => **place.get_mut() = row,
            Entry::Vacant(place) => _ = place.insert(Box::new(row)),
        }
        if is_new && self.rows.len() >= self.sweep_at.max(SWEEP_FROM) {
            self.remove(Sweep::Expired, now, quota, |_| ());
        }
        Ok((answer, true))
    }

    pub(crate) fn forget(&mut self, key: &Key, quota: &Quota) -> Option<Row> {
        let row = self.rows.remove(key.digest())?;
        let _ = quota.replace(size(&row), Size::default());
        self.hint(key);
        Some(*row)
    }

    /// Removes what `which` says, notes what is left, and says how many rows went.
    pub(crate) fn sweep(
        &mut self,
        which: Sweep,
        now: Timestamp,
        quota: &Quota,
        room: &Room,
    ) -> usize {
        self.remove(which, now, quota, |left| room.note(left))
    }

    fn remove(
        &mut self,
        which: Sweep,
        now: Timestamp,
        quota: &Quota,
        left: impl Fn(&Row),
    ) -> usize {
        let before = self.rows.len();
        self.rows.retain(|_, row| {
            let released = which == Sweep::ExpiredAndReleased && row.phase == Phase::Released;
            let keep = row.retain_until > now && !released;
            if keep {
                left(row);
            } else {
                // Giving back never fails.
                let _ = quota.replace(size(row), Size::default());
            }
            keep
        });
        self.watchers.retain(|_, watcher| watcher.receiver_count() > 0);
        self.sweep_at = 2 * self.rows.len();
        before - self.rows.len()
    }

    pub(crate) fn watch(&mut self, key: &Key) -> watch::Receiver<()> {
        if self.watchers.len() >= SWEEP_FROM.max(2 * self.rows.len()) {
            self.watchers.retain(|_, watcher| watcher.receiver_count() > 0);
        }
        self.watchers.entry(*key.digest()).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Tells those who watch the key that it may have changed.
    pub(crate) fn hint(&mut self, key: &Key) {
        if let Some(watcher) = self.watchers.get(key.digest())
            && watcher.send(()).is_err()
        {
            self.watchers.remove(key.digest());
        }
    }
}

/// What a row is counted as: its place in the map, and its payload.
fn size(row: &Row) -> Size {
    let payload = match &row.phase {
        Phase::Completed { payload, .. } => payload.len(),
        Phase::Pending { .. } | Phase::Released => 0,
    };
    Size { entries: 1, bytes: size_of::<(Digest, Box<Row>)>() + size_of::<Row>() + payload }
}
