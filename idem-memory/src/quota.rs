//! How much the store may hold.

use idem_core::{Refusal, StoreError};

use crate::sync::{AtomicUsize, Ordering};

/// What a row takes, or a change of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

/// Counts what is held against what may be.
#[derive(Debug)]
pub(crate) struct Quota {
    entries: Counter,
    bytes: Counter,
}

#[derive(Debug)]
struct Counter {
    used: AtomicUsize,
    most: usize,
}

impl Counter {
    /// Replaces `old` by `new` in the count, if the sum stays within bounds or does not grow.
    fn replace(&self, old: usize, new: usize) -> bool {
        let change = |used: usize| {
            let after = used.saturating_sub(old).saturating_add(new);
            (after <= self.most || new <= old).then_some(after)
        };
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).is_ok()
    }
}

impl Quota {
    pub(crate) fn new(most: Size) -> Self {
        let counter = |most| Counter { used: AtomicUsize::new(0), most };
        Self { entries: counter(most.entries), bytes: counter(most.bytes) }
    }

    /// Replaces `old` by `new` in the count, or refuses and changes nothing.
    pub(crate) fn replace(&self, old: Size, new: Size) -> Result<(), StoreError> {
        if !self.entries.replace(old.entries, new.entries) {
            let most = self.entries.most;
            return Err(StoreError::refused(Refusal::Full, format!("it holds {most} records")));
        }
        if !self.bytes.replace(old.bytes, new.bytes) {
            self.entries.replace(new.entries, old.entries);
            let most = self.bytes.most;
            return Err(StoreError::refused(Refusal::Full, format!("it may hold {most} bytes")));
        }
        Ok(())
    }

    pub(crate) fn used(&self) -> Size {
        let read = |counter: &Counter| counter.used.load(Ordering::SeqCst);
        Size { entries: read(&self.entries), bytes: read(&self.bytes) }
    }
}
