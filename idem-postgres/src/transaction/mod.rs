//! One transaction with the application's writes.

mod error;
mod pieces;
mod request;
mod run;

pub use self::error::TransactionError;
pub use self::pieces::{Completion, Reservation};
pub use self::request::{Isolation, Rivals, TransactionRequest};
pub use self::run::{Committed, Held};
