//! Integration tests of the memory store.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod conformance;
mod fenced;
mod watch;
