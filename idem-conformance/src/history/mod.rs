//! Random runs against the laws as a whole.
//!
//! [`runs`] tries random verbs one after the other, and the [`model`](idem_core::model) must
//! have given the same answers. [`clients`] tries them all at once, and [`search`] looks for an
//! order in which one verb at a time, by [`spec`], would have given the same answers.

pub(crate) mod clients;
pub(crate) mod operation;
pub(crate) mod runs;
pub(crate) mod search;
pub(crate) mod spec;
