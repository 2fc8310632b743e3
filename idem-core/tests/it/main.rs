//! Tests of `idem-core` from outside.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod coordinator;
mod fingerprint;
mod golden;
