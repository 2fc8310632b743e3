#![doc = include_str!("../README.md")]

#[cfg(feature = "proxy")]
pub mod proxy;
#[cfg(feature = "servers")]
pub mod servers;
