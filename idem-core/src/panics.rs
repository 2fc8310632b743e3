//! Code that is not ours may panic: a store, a codec, a hook, an observer, the action itself. What
//! is ours, a lease above all, must not be lost with it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;
use thiserror::Error;

/// What it panicked with, if that was text.
#[derive(Debug, Error)]
#[error("it panicked: {0}")]
pub(crate) struct Panicked(pub(crate) String);

impl Panicked {
    fn with(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        Self(
            text.or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a value that is not text".to_owned()),
        )
    }
}

/// The future's output, or its panic. Whatever the future shared is foreign code's to keep whole.
///
/// Not an `async fn`, which would hold a future of any size twice: as its argument, and as what it
/// awaits.
pub(crate) fn caught<T>(
    future: impl Future<Output = T>,
) -> impl Future<Output = Result<T, Panicked>> {
    let caught = AssertUnwindSafe(future).catch_unwind();
    caught.map(|done| done.map_err(|panic| Panicked::with(&*panic)))
}

/// What the function returns, or its panic.
pub(crate) fn caught_now<T>(function: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| Panicked::with(&*panic))
}
