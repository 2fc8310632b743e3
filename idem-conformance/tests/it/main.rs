//! Integration tests of the test kit itself.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[cfg(feature = "containers")]
mod containers;
#[cfg(feature = "proxy")]
mod proxy;
#[cfg(feature = "servers")]
mod servers;
