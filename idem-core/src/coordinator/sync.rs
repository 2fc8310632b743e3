//! The primitives that a concurrency check replaces: `RUSTFLAGS="--cfg shuttle"`.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
