//! The store on a real Postgres.

mod conformance;
mod database;
mod transaction;
mod verbs;
mod virtual_time;
