//! Keeps a lease alive while its action runs.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Weak};

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::action::Holding;
use super::detached::in_span;
use super::engine::Request;
use super::flight::{Flight, Landed};
use super::moment::after;
use crate::attempt::Lease;
use crate::error::StoreError;
use crate::observe::Transition;

/// Renews until it is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat(JoinHandle<()>);

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Heartbeat {
    /// Renews at every third of the lease, up to the ceiling. In a task of its own, so that an
    /// action that computes for long does not lose its lease.
    pub(super) fn start(
        request: Arc<Request>,
        lease: Lease,
        holding: Arc<Holding>,
        flight: &Arc<Flight>,
    ) -> Self {
        let beat = Beat { request, lease, holding, flight: Arc::downgrade(flight) };
        Self(tokio::spawn(in_span(beat.run())))
    }
}

struct Beat {
    request: Arc<Request>,
    lease: Lease,
    holding: Arc<Holding>,
    /// Weak: a flight lands with its call, not with the heartbeat.
    flight: Weak<Flight>,
}

impl Beat {
    async fn run(self) {
        let every = self.request.policy.lease / 3;
        let ceiling = after(Instant::now(), self.request.policy.renew_for);
        let mut next = Instant::now() + every;
        while next < ceiling {
            self.while_watching(sleep_until(next)).await;
            let asked = Instant::now();
            match self.while_watching(self.renew()).await {
                Ok(()) => next = asked + every,
                Err(StoreError::LeaseLost) => return self.lost(),
                // Asked again before long, and until then the local clock judges.
                Err(_) => next = Instant::now() + every / 4,
            }
        }
        self.request.tell(Transition::RenewalEnded);
        sleep_until(self.holding.ends()).await;
        self.lost();
    }

    /// One renewal.
    async fn renew(&self) -> Result<(), StoreError> {
        let asked = Instant::now();
        let Request { engine, policy, .. } = &*self.request;
        let left = engine.store.renew(&self.lease, policy.lease).await?;
        // Counted from before the store was asked: never longer than it grants.
        self.holding.renewed(after(asked, left));
        if let Some(flight) = self.flight.upgrade() {
            flight.renewed(self.holding.ends());
        }
        Ok(())
    }

    /// Awaits `other`, and says so if the lease ends here meanwhile.
    async fn while_watching<T>(&self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        if !self.holding.is_lost() {
            tokio::select! {
                biased;
                done = &mut other => return done,
                () = sleep_until(self.holding.ends()) => self.ended(),
            }
        }
        other.await
    }

    /// The lease ended here without a renewal. The store may still give it (law L5), but the
    /// action must know that another may run.
    fn ended(&self) {
        if !self.holding.is_lost() {
            self.holding.lose();
            self.request.tell(Transition::LeaseLost);
        }
    }

    /// The store says it is another's: those who follow here follow the other from now on.
    fn lost(&self) {
        self.ended();
        if let Some(flight) = self.flight.upgrade() {
            flight.land(Landed::Again);
        }
    }
}
