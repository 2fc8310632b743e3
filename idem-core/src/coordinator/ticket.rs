//! The right to run an action, from its grant to its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::action::{Holding, RunningAttempt};
use super::detached::poll_once;
use super::ending::give_back;
use super::engine::Request;
use super::flight::Flight;
use super::heartbeat::Heartbeat;
use crate::attempt::{Attempt, Fence, Lease};
use crate::observe::Transition;

/// Whether the store protects the action.
#[derive(Clone, Debug)]
pub(super) enum Hold {
    /// It does, by this lease.
    Leased { lease: Lease, attempts: u32, holding: Arc<Holding> },
    /// It does not. It may have taken the key all the same, without an answer that said so.
    None { maybe_reserved: bool },
}

impl Hold {
    pub(super) fn leased(lease: Lease, until: Instant, attempts: u32) -> Self {
        Self::Leased { lease, attempts, holding: Holding::until(until) }
    }

    /// Until when the key is known to be held.
    pub(super) fn until(&self) -> Option<Instant> {
        match self {
            Self::Leased { holding, .. } => Some(holding.ends()),
            Self::None { .. } => None,
        }
    }
}

/// The right to run an action that has not begun. Dropped, it gives the key back: nothing has
/// happened yet.
#[derive(Debug)]
pub(super) struct Ticket(Option<Started>);

/// An action that has begun. Dropped, it leaves its lease to end: who knows what has happened.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) request: Arc<Request>,
    pub(super) attempt: Arc<Attempt>,
    pub(super) hold: Hold,
    pub(super) flight: Arc<Flight>,
}

impl Ticket {
    pub(super) fn new(request: Arc<Request>, attempt: Attempt, hold: Hold, flight: Flight) -> Self {
        let (attempt, flight) = (Arc::new(attempt), Arc::new(flight));
        Self(Some(Started { request, attempt, hold, flight }))
    }

    /// The action is about to begin. `None` only if it was begun before.
    pub(super) fn start(mut self) -> Option<Started> {
        let started = self.0.take()?;
        match &started.hold {
            Hold::Leased { lease, attempts: 1, .. } => {
                started.request.tell(Transition::Reserved { fence: lease.fence() });
            }
            Hold::Leased { lease, attempts, .. } => {
                let (fence, attempts) = (lease.fence(), *attempts);
                started.request.tell(Transition::TakenOver { fence, attempts });
            }
            Hold::None { .. } => started.request.tell(Transition::RanUnprotected),
        }
        Some(started)
    }
}

/// Says so if an action is dropped before its end.
struct Underway<'a>(Option<&'a Request>);

impl Underway<'_> {
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.0 {
            request.tell(Transition::Abandoned);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Without a runtime nothing can be sent; the lease then ends by itself.
        if let (Some(started), Ok(_)) = (self.0.take(), Handle::try_current()) {
            started.give_back();
        }
    }
}

impl Started {
    /// What the action is told.
    pub(super) fn running(&self) -> RunningAttempt {
        let (number, lease) = match &self.hold {
            Hold::Leased { lease, attempts, holding } => {
                (*attempts, Some((lease.clone(), Arc::clone(holding))))
            }
            Hold::None { .. } => (1, None),
        };
        let Request { key, fingerprint, .. } = &*self.request;
        RunningAttempt { key: key.clone(), fingerprint: *fingerprint, number, lease }
    }

    /// Drives `action`, keeping the lease alive. An action that is done when it is first polled
    /// needs no heartbeat.
    pub(super) async fn keeping_alive<T>(
        &self,
        mut action: Pin<&mut impl Future<Output = T>>,
    ) -> (T, Heartbeat) {
        let underway = Underway(Some(&self.request));
        let mut heartbeat = Heartbeat::of(self);
        let done = if let Some(done) = poll_once(action.as_mut()).await {
            done
        } else {
            heartbeat.start();
            action.await
        };
        underway.ended();
        heartbeat.settle();
        (done, heartbeat)
    }

    /// The lease to give back: one that is held, or that may be.
    pub(super) fn lease(&self) -> Option<Lease> {
        match &self.hold {
            Hold::Leased { lease, .. } => Some(lease.clone()),
            Hold::None { maybe_reserved: false } => None,
            // A store checks the attempt id, not the fence, which nobody was told.
            Hold::None { maybe_reserved: true } => {
                Some(Lease::new(self.request.key.clone(), self.attempt.id(), Fence(0)))
            }
        }
    }

    /// Gives back the key of an action that never began.
    fn give_back(self) {
        let Self { request, attempt, hold, flight } = self;
        let known = match hold {
            Hold::Leased { lease, attempts, .. } => Some((lease, attempts)),
            Hold::None { maybe_reserved: true } => None,
            Hold::None { maybe_reserved: false } => return,
        };
        give_back(request, attempt, known, Some(flight));
    }
}
