//! The store on a real Postgres.

mod cancel;
mod conformance;
mod counts;
mod database;
mod faults;
mod hints;
mod purge;
mod schema;
mod transaction;
mod verbs;
mod virtual_time;
