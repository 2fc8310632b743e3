#![doc = include_str!("../README.md")]

#[cfg(not(any(feature = "redis-rs", feature = "fred")))]
compile_error!("idem-redis needs a client: turn on the feature `redis-rs` or `fred`");

mod answer;
mod builder;
mod check;
mod client;
mod failure;
mod name;
mod script;
mod store;
mod wake;

pub use crate::builder::{AtStart, Builder};
pub use crate::check::{Finding, Severity};
pub use crate::store::RedisStore;

#[cfg(feature = "fred")]
pub use fred;
#[cfg(feature = "redis-rs")]
pub use redis;
