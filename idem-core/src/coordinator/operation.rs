//! What is set once for all calls of an operation.

use std::sync::Arc;
use std::time::Duration;

use super::call::Keyed;
use super::engine::Engine;
use super::error::Invalid;
use super::policy::{Abandoned, InFlight, OnStoreFailure, Oversize, Policy, policy_setters};
use crate::key::{Key, KeyError, Scope};

/// An operation: the scope of its keys, and what to do in each case.
///
/// Cheap to make and to clone; keep one, or make one per call.
#[derive(Clone, Debug)]
#[must_use = "an operation does nothing until one of its calls is run"]
pub struct Operation {
    engine: Arc<Engine>,
    policy: Policy,
    scope: Result<Scope, KeyError>,
}

impl Operation {
    pub(super) fn new(engine: Arc<Engine>, policy: Policy, name: &str) -> Self {
        Self { engine, policy, scope: Scope::new(name) }
    }

    policy_setters!(policy);

    /// Narrows the scope to a tenant: one never sees another's answers.
    ///
    /// A tenant that has not 1 to 255 characters is refused when a call is run.
    pub fn tenant(mut self, tenant: &str) -> Self {
        self.scope = self.scope.and_then(|scope| scope.tenant(tenant));
        self
    }

    /// Whether calls can be run at all: what [`Call::run`](super::Call::run) would refuse of an
    /// operation is refused here, for those who build on one and want to know at the start.
    ///
    /// # Errors
    /// [`Invalid`]: the operation's or tenant's name, a duration outside its range, a lease too
    /// short for the store's budget.
    pub fn check(&self) -> Result<(), Invalid> {
        self.policy.check(self.engine.store.budget())?;
        self.scope.as_ref().map(drop).map_err(|error| Invalid::Key(*error))
    }

    /// The largest result, in bytes as encoded, that is stored with the record.
    pub fn largest_result(&self) -> usize {
        self.policy.max_result
    }

    /// A call under this key, as the client sent it.
    ///
    /// A key that has not 1 to 255 characters is refused when the call is run.
    pub fn key(&self, key: &str) -> Keyed {
        let key = self.scope.clone().and_then(|scope| Key::new(scope, key));
        Keyed::new(Arc::clone(&self.engine), self.policy.clone(), key)
    }
}
