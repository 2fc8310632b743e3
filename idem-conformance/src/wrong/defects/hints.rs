//! Stores whose hints do not come.

use idem_core::model::Row;

use crate::wrong::laws::{Laws, Verb, Watching};

pub(super) const ALL: &[&dyn Laws] = &[
    &NoHintAfter(Verb::Complete),
    &NoHintAfter(Verb::Release),
    &NoHintAfter(Verb::Renew),
    &Watches(Watching::Hangs),
    &Watches(Watching::Late),
    &Watches(Watching::Once),
    &Watches(Watching::OneKey),
    &Watches(Watching::OneWatcher),
    &Watches(Watching::WithARecord),
];

/// A change that nobody is told of.
#[derive(Debug)]
struct NoHintAfter(Verb);

impl Laws for NoHintAfter {
    fn hints_after(&self, verb: Verb, _written: &Row) -> bool {
        verb != self.0 && verb != Verb::Reserve
    }
}

/// A watch that is not what it says.
#[derive(Debug)]
struct Watches(Watching);

impl Laws for Watches {
    fn watching(&self) -> Watching {
        self.0
    }
}
