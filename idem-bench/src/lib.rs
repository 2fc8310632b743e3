#![doc = include_str!("../README.md")]

mod comparison;
mod hand;
mod options;
mod remote;
mod report;
mod subject;

pub use crate::comparison::{Better, BoxError, Comparison};
pub use crate::hand::{CacheByHand, Found, MapByHand};
pub use crate::options::Options;
pub use crate::remote::Remote;
pub use crate::subject::{Charge, attempts, key_text};
