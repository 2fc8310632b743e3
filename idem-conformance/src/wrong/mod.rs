//! Deliberately wrong stores, and the right one that they are made from.
//!
//! [`Reference`] is the [`model`](idem_core::model) over a table in memory, with every hook of
//! the [`Harness`](crate::Harness) and a virtual clock. Each of the wrong stores in [`all`]
//! differs from it in one thing, which somebody has got wrong somewhere. A suite is worth what
//! it catches: `cargo run -p idem-conformance --example kill-matrix` shows which property
//! catches which store.
//!
//! They are public so that whatever sits on a store can be tested against them, too.

mod defects;
mod hints;
mod laws;
mod matrix;
mod reasons;
mod reference;
mod table;

pub use crate::wrong::defects::all;
pub use crate::wrong::laws::{
    Answer, Asked, At, Completion, Laws, Right, Unreadable, Verb, Watching, WhenFull,
};
pub use crate::wrong::matrix::{Matrix, Row as MatrixRow};
pub use crate::wrong::reasons::reason_to_exist;
pub use crate::wrong::reference::Reference;
