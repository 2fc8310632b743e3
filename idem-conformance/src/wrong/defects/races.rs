//! Stores whose verbs are not one step.

use crate::wrong::laws::{Laws, Verb};

pub(super) const ALL: &[&dyn Laws] = &[
    &Torn(Verb::Reserve),
    &Torn(Verb::Renew),
    &Torn(Verb::Complete),
    &Torn(Verb::Release),
    &ReadsFromAReplica,
    &ReserveWaits,
];

/// C1, C6: looks, and writes later what followed from what it saw.
#[derive(Debug)]
struct Torn(Verb);

impl Laws for Torn {
    fn is_torn(&self, verb: Verb) -> bool {
        verb == self.0
    }
}

/// C10: eventually consistent; each process reads its own writes.
#[derive(Debug)]
struct ReadsFromAReplica;

impl Laws for ReadsFromAReplica {
    fn lags(&self) -> bool {
        true
    }
}

/// C115, C116: waits inside the store, with whatever it holds there.
#[derive(Debug)]
struct ReserveWaits;

impl Laws for ReserveWaits {
    fn waits(&self) -> bool {
        true
    }
}
