//! What each property belongs to.

use std::fmt;

use serde::Serialize;

/// The part of the contract that a property shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// L1.
    Repeatable,
    /// L2.
    Free,
    /// L3.
    Fence,
    /// L4.
    Fenced,
    /// L5.
    EndsNotVoids,
    /// L6.
    FirstCompletion,
    /// L7.
    StoreClock,
    /// L8.
    Unreadable,
    /// L9.
    Errors,
    /// Which texts are different keys.
    Keys,
    /// Which bytes come back.
    Payloads,
    /// Which durations are refused.
    Limits,
    /// How long a record is kept.
    Retention,
    /// What renewing a lease does.
    Renewal,
    /// What a watch hints at.
    Hints,
    /// What a sweep, a bound and a restart may not take away.
    Upkeep,
    /// What the laws are for.
    OneEffect,
    /// All of them at once.
    All,
}

impl Law {
    /// A short name: `L1` to `L9` for the laws of [`Store`](idem_core::Store), a word otherwise.
    pub fn label(self) -> &'static str {
        match self {
            Self::Repeatable => "L1",
            Self::Free => "L2",
            Self::Fence => "L3",
            Self::Fenced => "L4",
            Self::EndsNotVoids => "L5",
            Self::FirstCompletion => "L6",
            Self::StoreClock => "L7",
            Self::Unreadable => "L8",
            Self::Errors => "L9",
            Self::Keys => "keys",
            Self::Payloads => "payloads",
            Self::Limits => "limits",
            Self::Retention => "retention",
            Self::Renewal => "renewal",
            Self::Hints => "hints",
            Self::Upkeep => "upkeep",
            Self::OneEffect => "one effect",
            Self::All => "all",
        }
    }

    /// What it says, in a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Repeatable => "every verb may be repeated verbatim, with the effect of once",
            Self::Free => "only a free key is taken",
            Self::Fence => "each lease of a key has a larger fence than the one before",
            Self::Fenced => "only the current holder, known by its random id, writes",
            Self::EndsNotVoids => "until it is taken over, the holder of an ended lease may write",
            Self::FirstCompletion => "the first completion stands until its retention has passed",
            Self::StoreClock => "the store's clock decides, and no other",
            Self::Unreadable => "what cannot be read is an error, never a free key",
            Self::Errors => "an error is never a grant, and says whether it was applied",
            Self::Keys => "two keys are the same only if scope and text are, byte for byte",
            Self::Payloads => "a payload comes back byte for byte, and only to its own request",
            Self::Limits => "a duration outside its range is refused before any work",
            Self::Retention => "a record is kept for its retention and no longer",
            Self::Renewal => "renewing moves the end of a lease, never to an earlier moment",
            Self::Hints => "a change made after `watch` has returned is hinted at",
            Self::Upkeep => "no sweep, bound or restart takes away what is still needed",
            Self::OneEffect => "the same request twice has one effect, and one answer",
            Self::All => "whatever happens could have happened one verb at a time",
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// How much a property asks of the harness, and how much it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Level {
    /// The verbs, as they stand: nothing but a store is needed.
    Core,
    /// Time passes.
    Time,
    /// Something goes wrong: a lost reply, damage, a full store, a restart.
    Faults,
    /// Random runs against the laws as a whole.
    History,
    /// The coordinator on the store: that the laws are enough.
    Coordinator,
}

impl Level {
    /// Every level, the least demanding first.
    pub const ALL: [Self; 5] =
        [Self::Core, Self::Time, Self::Faults, Self::History, Self::Coordinator];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Time => "time",
            Self::Faults => "faults",
            Self::History => "history",
            Self::Coordinator => "coordinator",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
