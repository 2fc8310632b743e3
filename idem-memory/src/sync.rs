//! The primitives that a concurrency check replaces: `RUSTFLAGS="--cfg shuttle"`.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(shuttle)]
pub(crate) use std::sync::PoisonError;
