//! The primitives that a concurrency check replaces: `RUSTFLAGS="--cfg shuttle"`.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

/// A point at which a concurrency check may let another thread go first, where the primitive that
/// follows is not one that it replaces. Nothing otherwise.
#[cfg(not(shuttle))]
pub(crate) fn interleave() {}

#[cfg(shuttle)]
pub(crate) use shuttle::thread::yield_now as interleave;
