#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(any(feature = "redis-rs", feature = "fred")),
    allow(dead_code, unused_imports, reason = "without a client there is nothing to connect")
)]

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
