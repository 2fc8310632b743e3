//! Integration tests of the Redis store, against servers of their own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

mod clock_jumps;
mod cluster;
mod confirmed;
mod conformance;
mod counted;
mod dead_owner;
mod killed;
mod laws;
mod lost_replies;
mod operators;
mod paused;
mod sentinel;
mod start;
mod support;
mod troubles;
mod wake;
