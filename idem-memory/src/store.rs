//! The store: the laws under a mutex.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use idem_core::model::{self, Row, Step, Timestamp};
use idem_core::{Attempt, Key, Lease, Record, Store, StoreError, Watch, limits};

use crate::clock::{Clock, TestClock};
use crate::quota::{Quota, Size};
use crate::room::Room;
use crate::shard::{Shard, Sweep};
use crate::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 16;

/// A store in this process's memory.
///
/// Keeps every law of [`Store`] while the process lives, and forgets everything when it ends.
/// Bounded: when it holds as many records or bytes as it may, it drops what has expired and then
/// refuses ([`Refusal::Full`](idem_core::Refusal::Full)). It never evicts a reservation or a
/// result to make room.
///
/// Its verbs never wait: a mutex over one of 16 shards is held for one step of the
/// [`model`](idem_core::model), and never across an `.await`. A call dropped before its first
/// poll did nothing; after it, everything.
#[derive(Debug)]
pub struct MemoryStore {
    shards: [Mutex<Shard>; SHARDS],
    clock: Clock,
    quota: Quota,
    room: Room,
}

/// Configures a [`MemoryStore`].
#[derive(Debug)]
pub struct Builder {
    most: Size,
    clock: Clock,
}

impl Builder {
    /// How many records it may hold. Default: 1,000,000.
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.most.entries = entries;
        self
    }

    /// How many bytes of records and payloads it may hold. Default: 268,435,456 (256 MiB).
    ///
    /// A record counts with its place in the map and its payload. The map's spare capacity and the
    /// allocator's own need, up to as much again as the records without their payloads, come on
    /// top.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.most.bytes = bytes;
        self
    }

    /// Takes the time from a clock that moves only when told to.
    pub fn clock(mut self, clock: TestClock) -> Self {
        self.clock = Clock::Test(clock);
        self
    }

    /// The empty store.
    pub fn build(self) -> MemoryStore {
        MemoryStore {
            shards: std::array::from_fn(|_| Mutex::new(Shard::default())),
            clock: self.clock,
            quota: Quota::new(self.most),
            room: Room::new(),
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store with the default bounds.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Configures a store.
    pub fn builder() -> Builder {
        Builder { most: Size { entries: 1_000_000, bytes: 256 << 20 }, clock: Clock::monotonic() }
    }

    /// How many records it holds, those included that have expired and were not swept yet.
    pub fn len(&self) -> usize {
        self.quota.used().entries
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes its records count for, see [`Builder::max_bytes`].
    pub fn bytes(&self) -> usize {
        self.quota.used().bytes
    }

    /// Removes the records whose retention has passed, and says how many.
    ///
    /// Not needed for correctness, and called by the store itself as it grows; useful after a
    /// burst, to give memory back.
    pub fn sweep(&self) -> usize {
        self.sweep_all(Sweep::Expired)
    }

    /// What is kept for a key, for an operator to look at: an abandoned record, say.
    pub fn inspect(&self, key: &Key) -> Option<Row> {
        let shard = self.shard(key);
        let now = self.clock.now();
        shard.row(key).filter(|row| row.retain_until > now).cloned()
    }

    /// Forgets a key, whatever its record is, and returns what was forgotten.
    ///
    /// This is an operator's tool: to resolve by hand an abandoned record whose outcome has been
    /// looked up. Forgetting a key that is being worked on lets its request run again.
    pub fn forget(&self, key: &Key) -> Option<Row> {
        self.shard(key).forget(key, &self.quota)
    }

    #[expect(clippy::indexing_slicing, reason = "the index is taken modulo the length")]
    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        let [first, ..] = key.digest();
        lock(&self.shards[usize::from(*first) % SHARDS])
    }

    /// Runs one step of the model; when there is no room, once more after a sweep.
    fn step<T>(
        &self,
        key: &Key,
        verb: impl Fn(Option<&Row>, Timestamp) -> Result<Step<T>, StoreError>,
        hint: Hint,
    ) -> Result<T, StoreError> {
        match self.try_step(key, &verb, hint) {
            Err(StoreError::Refused { .. }) if self.make_room() => self.try_step(key, &verb, hint),
            done => done,
        }
    }

    fn try_step<T>(
        &self,
        key: &Key,
        verb: impl Fn(Option<&Row>, Timestamp) -> Result<Step<T>, StoreError>,
        hint: Hint,
    ) -> Result<T, StoreError> {
        let mut shard = self.shard(key);
        let now = self.clock.now();
        let (answer, wrote) = shard.step(key, now, &self.quota, &self.room, verb)?;
        if wrote && hint == Hint::Yes {
            shard.hint(key);
        }
        Ok(answer)
    }

    /// Removes all that may go, if something may, and says whether something went.
    fn make_room(&self) -> bool {
        self.room.may_be_made(self.clock.now()) && self.sweep_all(Sweep::ExpiredAndReleased) > 0
    }

    fn sweep_all(&self, which: Sweep) -> usize {
        let now = self.clock.now();
        self.room.sweeping(which);
        self.shards.iter().map(|shard| lock(shard).sweep(which, now, &self.quota, &self.room)).sum()
    }
}

/// Whether a step is news to those who wait for the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    Yes,
    No,
}

/// No step panics with a shard half written, so a poisoned shard is as good as any.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Store for MemoryStore {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        attempt.check()?;
        self.step(attempt.key(), |row, now| model::reserve(row, attempt, now), Hint::No)
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        limits::check_renewal(duration)?;
        let hint = if duration.is_zero() { Hint::Yes } else { Hint::No };
        self.step(lease.key(), |row, now| model::renew(row, lease, duration, now), hint)
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        limits::check_retention(retention)?;
        // A copy of its own: the caller's bytes may be a slice of something much larger.
        let payload = Bytes::copy_from_slice(payload);
        let verb = |row: Option<&Row>, now| model::complete(row, lease, &payload, retention, now);
        self.step(lease.key(), verb, Hint::Yes)
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.step(lease.key(), |row, now| model::release(row, lease, now), Hint::Yes)
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        let hints = self.shard(key).watch(key);
        Ok(Watch::new(stream::unfold(hints, |mut hints| async move {
            hints.changed().await.ok()?;
            Some(((), hints))
        })))
    }
}
