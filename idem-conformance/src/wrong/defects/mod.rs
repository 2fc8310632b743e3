//! The wrong stores: one file per law or theme, one type per defect.
//!
//! A comment says whose fault it was, if it was met in the wild (`C12` is a case number), and
//! the name says what the store does.

use crate::wrong::laws::Laws;

mod clock;
mod ends;
mod errors;
mod fence;
mod fenced;
mod first_completion;
mod free;
mod hints;
mod keys;
mod limits;
mod payloads;
mod races;
mod renewal;
mod repeatable;
mod retention;
mod unreadable;
mod upkeep;

/// Every wrong store. Its `Debug` form is its name.
pub fn all() -> Vec<&'static dyn Laws> {
    [
        repeatable::ALL,
        free::ALL,
        fence::ALL,
        fenced::ALL,
        ends::ALL,
        first_completion::ALL,
        clock::ALL,
        unreadable::ALL,
        errors::ALL,
        keys::ALL,
        payloads::ALL,
        limits::ALL,
        retention::ALL,
        renewal::ALL,
        races::ALL,
        hints::ALL,
        upkeep::ALL,
    ]
    .concat()
}
