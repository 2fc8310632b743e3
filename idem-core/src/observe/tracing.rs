//! Events as log lines.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Event, Observer};

/// How often the same warning is written at most.
const WINDOW: Duration = Duration::from_secs(10);

/// Writes every transition with `tracing`, target `idem`: warnings at `WARN`, the rest at `DEBUG`.
///
/// A store that is down fails every call. The same warning of the same operation is therefore
/// written once in ten seconds, with how many were left out since; counters miss none.
#[derive(Debug, Default)]
pub struct Tracing {
    written: Mutex<HashMap<(String, &'static str), Written>>,
}

#[derive(Debug)]
struct Written {
    at: Instant,
    left_out: u64,
}

impl Tracing {
    /// An observer that writes to the process's subscriber.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to write now, and how many were left out since the last.
    fn due(&self, event: &Event) -> Option<u64> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let what = (event.key.scope().operation().to_owned(), event.what.name());
        let now = Instant::now();
        match written.get_mut(&what) {
            Some(last) if now.duration_since(last.at) < WINDOW => {
                last.left_out += 1;
                None
            }
            Some(last) => {
                last.at = now;
                Some(std::mem::take(&mut last.left_out))
            }
            None => {
                written.insert(what, Written { at: now, left_out: 0 });
                Some(0)
            }
        }
    }
}

impl Observer for Tracing {
    fn observe(&self, event: &Event) {
        let (key, what) = (&event.key, event.what.name());
        if !event.what.is_warning() {
            tracing::debug!(target: "idem", %key, transition = what);
            return;
        }
        if !tracing::enabled!(target: "idem", tracing::Level::WARN) {
            return;
        }
        if let Some(left_out) = self.due(event) {
            let error = event.what.store_error().map(|error| error as &dyn Error);
            tracing::warn!(target: "idem", %key, transition = what, error, left_out);
        }
    }
}
