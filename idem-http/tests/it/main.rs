//! The layer through routers, services and real connections.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod attempt;
mod build;
mod cancelled;
mod capture;
mod client;
mod doubles;
mod example;
mod example_process;
mod fingerprint;
mod grpc;
mod limits;
mod policy;
mod properties;
mod refusals;
mod scope;
mod services;
mod store_down;
mod stores;
mod support;
mod through;
mod wire;
mod wrong_layers;
