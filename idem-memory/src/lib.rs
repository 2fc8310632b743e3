#![doc = include_str!("../README.md")]

mod clock;
#[cfg(all(test, shuttle))]
mod concurrency;
mod quota;
mod room;
mod shard;
mod store;
mod sync;

pub use crate::clock::TestClock;
pub use crate::store::{Builder, MemoryStore};
