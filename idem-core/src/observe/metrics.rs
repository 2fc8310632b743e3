//! Events as counters.

use super::{Event, Observer};

/// Counts every transition: `idem_transitions_total{operation, transition}`.
///
/// The operation is a label, so its name must be one of few; keys and tenants are not labels.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Metrics;

impl Metrics {
    /// An observer that counts with the process's metrics recorder.
    pub fn new() -> Self {
        Self
    }
}

impl Observer for Metrics {
    fn observe(&self, event: &Event) {
        let operation = event.key.scope().operation().to_owned();
        let transition = event.what.name();
        metrics::counter!(
            "idem_transitions_total",
            "operation" => operation,
            "transition" => transition
        )
        .increment(1);
    }
}
