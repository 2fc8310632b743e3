//! The layer.

use std::sync::Arc;

use idem_core::Operation;
use tower_layer::Layer;

use crate::builder::Builder;
use crate::config::Config;
use crate::principal::Principals;
use crate::service::Idempotency;

/// Gives the same request with the same `Idempotency-Key` its effect once, and its answer always.
///
/// Cloning is cheap. Put it **inside** what authenticates and authorises a request, so that no
/// response is replayed to one who may not have it any more, and **inside** compression, so that
/// a replay is compressed for whoever asks.
#[derive(Clone, Debug)]
pub struct IdempotencyLayer(Arc<Config>);

impl IdempotencyLayer {
    /// A layer for the requests of `operation`, made by `principals`.
    ///
    /// The operation says what a coordinator's does: retention, lease, what to do in flight, with
    /// an abandoned key and when the store fails. Its name is a label in logs and metrics, one of
    /// few; a key is unique in the operation, the method, the concrete path and the principal, so
    /// routes can share one.
    ///
    /// ```
    /// use idem_core::{Coordinator, InFlight};
    /// use idem_http::{IdempotencyLayer, by_extension};
    /// use idem_memory::MemoryStore;
    ///
    /// #[derive(Clone)]
    /// struct User { id: u64 }
    ///
    /// let idem = Coordinator::builder(MemoryStore::new()).build()?;
    /// let charge = idem.operation("payment.charge").in_flight(InFlight::Reject);
    /// let layer = IdempotencyLayer::builder(charge, by_extension(|user: &User| user.id.to_string()))
    ///     .max_body(64 << 10)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Whose requests they are has to be said:
    /// ```compile_fail
    /// # let idem = idem_core::Coordinator::builder(idem_memory::MemoryStore::new()).build().unwrap();
    /// idem_http::IdempotencyLayer::builder(idem.operation("payment.charge"));
    /// ```
    pub fn builder(operation: Operation, principals: impl Principals) -> Builder {
        Builder::new(operation, principals)
    }

    pub(crate) fn new(config: Config) -> Self {
        Self(Arc::new(config))
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        Idempotency::new(inner, Arc::clone(&self.0))
    }
}
