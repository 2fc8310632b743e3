//! The store on a real Postgres.

mod conformance;
mod database;
mod verbs;
mod virtual_time;
