#![doc = include_str!("../README.md")]

mod comparison;
mod hand;
mod load;
mod options;
mod remote;
mod report;
mod subject;
pub mod wake;

pub use crate::comparison::{Better, BoxError, Comparison};
pub use crate::hand::{CacheByHand, Found, MapByHand};
pub use crate::load::time;
pub use crate::options::Options;
pub use crate::remote::Remote;
pub use crate::subject::{Charge, attempts, fresh_attempts, key_text};
