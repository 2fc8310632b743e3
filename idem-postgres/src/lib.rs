#![doc = include_str!("../README.md")]

mod builder;
mod error;
mod finished;
mod hints;
mod jitter;
mod pool;
mod purge;
mod schema;
mod statement;
mod store;
mod table;
mod transaction;
mod verbs;

pub use crate::builder::Builder;
pub use crate::purge::{Purge, PurgeReport, Purging};
pub use crate::schema::{Schema, schema_sql};
pub use crate::store::PostgresStore;
pub use crate::table::NameError;
pub use crate::transaction::{
    Committed, Completion, Held, Isolation, Reservation, Rivals, TransactionError,
    TransactionRequest,
};
