//! The suite, tried on stores that are right and on stores that are wrong.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cas;
mod file_store;
mod history;
mod laws;
mod matrix;
mod report;
