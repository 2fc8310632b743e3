//! Which fault meets which request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fault::Fault;
use super::needle::Tail;

/// What a proxy is told to do, and what it has seen.
#[derive(Debug, Default)]
pub(super) struct Rules {
    plan: Mutex<Plan>,
    connections: AtomicU64,
    hits: AtomicU64,
}

#[derive(Debug, Default)]
struct Plan {
    needle: Vec<u8>,
    next: VecDeque<Fault>,
    always: Fault,
}

impl Rules {
    pub(super) fn only_with(&self, needle: Vec<u8>) {
        self.plan().needle = needle;
    }

    pub(super) fn set(&self, fault: Fault) {
        self.plan().always = fault;
    }

    pub(super) fn next(&self, fault: Fault) {
        self.plan().next.push_back(fault);
    }

    pub(super) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::SeqCst)
    }

    /// What happens to what was just read from a connection.
    pub(super) fn judge(&self, tail: &mut Tail, read: &[u8]) -> Fault {
        let mut plan = self.plan();
        if !tail.finds(&plan.needle, read) {
            return Fault::Pass;
        }
        self.hits.fetch_add(1, Ordering::SeqCst);
        plan.next.pop_front().unwrap_or(plan.always)
    }

    /// No step of a plan can be left half done, so a poisoned one is as good as any.
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
