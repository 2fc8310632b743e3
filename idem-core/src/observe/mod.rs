//! What a coordinator reports: one typed event per transition.

mod event;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

use std::fmt;
use std::sync::Arc;

pub use self::event::{Event, Transition};
#[cfg(feature = "metrics")]
pub use self::metrics::Metrics;
#[cfg(feature = "tracing")]
pub use self::tracing::Tracing;
use crate::panics::caught_now;

/// Is told of every transition.
///
/// Called in the middle of a call: it must not block. A panic in it is caught, and changes nothing
/// for the call. A closure over [`&Event`](Event) is an observer.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// All observers of a coordinator.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(observer);
    }

    /// And the log, if there is one.
    #[cfg(feature = "tracing")]
    pub(crate) fn with_logs(mut self) -> Self {
        self.add(Arc::new(Tracing::new()));
        self
    }

    #[cfg(not(feature = "tracing"))]
    pub(crate) fn with_logs(self) -> Self {
        self
    }

    pub(crate) fn tell(&self, event: &Event) {
        for observer in &self.0 {
            // To be observed must not cost a charge.
            let _ = caught_now(|| observer.observe(event));
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.0.len())
    }
}
