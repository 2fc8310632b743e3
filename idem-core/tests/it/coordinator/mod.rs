//! The coordinator over the memory store, on Tokio's virtual clock.

mod abandoned;
mod cancelled;
mod codecs;
mod completion;
mod drain;
mod errors;
mod extremes;
mod flights;
mod given_back;
mod in_flight;
mod invalid;
mod lease;
mod mixed;
mod observed;
mod oversize;
mod panics;
mod scripts;
mod store_down;
mod support;
