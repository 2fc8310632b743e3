//! Stores that take what they cannot read for something else (L8).

use crate::harness::Damage;
use crate::wrong::laws::{Laws, Unreadable, Verb};

pub(super) const ALL: &[&dyn Laws] = &[
    &AbsentIfDamaged(Damage::Garbage),
    &AbsentIfDamaged(Damage::Truncated),
    &AbsentIfDamaged(Damage::NewerFormat),
    &AbsentIfDamaged(Damage::ForeignType),
    &LostIfDamaged(Verb::Renew),
    &LostIfDamaged(Verb::Complete),
    &LostIfDamaged(Verb::Release),
    &DamageIsRemoved,
    &PurgeRemovesDamage,
];

/// C109: what cannot be read is taken for a free key, and the charge is made again.
#[derive(Debug)]
struct AbsentIfDamaged(Damage);

impl Laws for AbsentIfDamaged {
    fn unreadable(&self, damage: Damage, verb: Verb) -> Unreadable {
        if damage == self.0 && verb == Verb::Reserve {
            Unreadable::Absent
        } else {
            Unreadable::Corrupt
        }
    }
}

/// A holder whose record is damaged is told that it was taken over.
#[derive(Debug)]
struct LostIfDamaged(Verb);

impl Laws for LostIfDamaged {
    fn unreadable(&self, _damage: Damage, verb: Verb) -> Unreadable {
        if verb == self.0 { Unreadable::Absent } else { Unreadable::Corrupt }
    }
}

/// The error is told once, and clears the way for the next.
#[derive(Debug)]
struct DamageIsRemoved;

impl Laws for DamageIsRemoved {
    fn unreadable(&self, _damage: Damage, _verb: Verb) -> Unreadable {
        Unreadable::Removed
    }
}

/// The sweep clears the way for the next.
#[derive(Debug)]
struct PurgeRemovesDamage;

impl Laws for PurgeRemovesDamage {
    fn purges_damaged(&self) -> bool {
        true
    }
}
