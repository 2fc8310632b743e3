//! The store on a real Postgres.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod cancel;
mod completed_inside;
mod conformance;
mod counts;
mod crash;
mod database;
mod faults;
mod hints;
mod operators;
mod pgbouncer;
mod purge;
mod races;
mod schema;
mod sqlite_store;
mod standby;
mod transaction;
mod virtual_time;
