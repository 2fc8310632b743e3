#![doc = include_str!("../README.md")]

#[cfg(feature = "servers")]
pub mod servers;
