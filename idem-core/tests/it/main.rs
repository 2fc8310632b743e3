//! Tests of `idem-core` from outside.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod fingerprint;
mod golden;
