#![doc = include_str!("../README.md")]

mod catalogue;
mod failure;
mod faulty;
mod harness;
mod history;
mod lab;
mod law;
mod properties;
#[cfg(feature = "proxy")]
pub mod proxy;
mod report;
mod runner;
#[cfg(feature = "servers")]
pub mod servers;
mod subject;
mod suite;
#[cfg(feature = "servers")]
pub mod worker;
#[cfg(feature = "wrong-stores")]
pub mod wrong;

pub use crate::catalogue::Property;
pub use crate::failure::Skip;
pub use crate::faulty::{Faulty, Trouble, Verb};
pub use crate::harness::{Clock, Damage, Fault, Harness, Hook, HookError, Skew};
pub use crate::law::{Law, Level};
pub use crate::report::{Case, Counts, Outcome, Report};
pub use crate::runner::{Options, OptionsError, run_all};
#[doc(hidden)]
pub use crate::suite::__run_as_test;
