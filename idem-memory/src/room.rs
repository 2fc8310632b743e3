//! Whether a sweep could make room: a full store must not search itself in vain at every call.

use idem_core::model::{Phase, Row, Timestamp};

use crate::shard::Sweep;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// What is known, without looking, of the rows that a sweep could remove.
#[derive(Debug)]
pub(crate) struct Room {
    /// No row expires before this.
    next_expiry: AtomicU64,
    /// At least one row is released if this is not zero.
    released: AtomicUsize,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self { next_expiry: AtomicU64::new(u64::MAX), released: AtomicUsize::new(0) }
    }

    /// A row was written, or left by a sweep.
    pub(crate) fn note(&self, row: &Row) {
        self.next_expiry.fetch_min(row.retain_until.0, Ordering::SeqCst);
        if row.phase == Phase::Released {
            self.released.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A sweep is about to begin. It, and all who write meanwhile, note what will be there.
    pub(crate) fn sweeping(&self, which: Sweep) {
        self.next_expiry.store(u64::MAX, Ordering::SeqCst);
        if which == Sweep::ExpiredAndReleased {
            self.released.store(0, Ordering::SeqCst);
        }
    }

    pub(crate) fn may_be_made(&self, now: Timestamp) -> bool {
        self.next_expiry.load(Ordering::SeqCst) <= now.0 || self.released.load(Ordering::SeqCst) > 0
    }
}
