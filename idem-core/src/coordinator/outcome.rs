//! What a call comes to.

use crate::envelope::NotKept;

/// The value of a call, and how it was come by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome<T> {
    /// What the action gave, now or before. On the first run it is what a replay will give:
    /// the value as it comes out of the codec.
    pub value: T,
    /// Whether the action ran for an earlier or another call, and this is its stored value.
    pub replayed: bool,
    /// Whether the store has it. `false`: the store failed when it should have been recorded, or
    /// the action ran unprotected; the write is being retried where it can be, and until it
    /// succeeds another process may run the action again.
    pub recorded: bool,
    /// Why a retry will be told that the effect happened, without this value; `None` if it will
    /// be given the value.
    pub not_kept: Option<NotKept>,
}

impl<T> Outcome<T> {
    /// The same outcome with another value.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Outcome<U> {
        let Self { value, replayed, recorded, not_kept } = self;
        Outcome { value: with(value), replayed, recorded, not_kept }
    }
}
