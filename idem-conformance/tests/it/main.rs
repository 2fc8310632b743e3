//! The suite, tried on stores that are right and on stores that are wrong; and the test kit.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod cas;
#[cfg(feature = "containers")]
mod containers;
mod file_store;
mod history;
mod laws;
#[cfg(feature = "proxy")]
mod proxy;
mod report;
#[cfg(feature = "servers")]
mod servers;
#[cfg(feature = "servers")]
mod worker;
