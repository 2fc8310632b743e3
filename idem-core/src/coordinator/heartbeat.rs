//! Keeps a lease alive while its action runs.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::action::Holding;
use super::detached::in_span;
use super::engine::Request;
use super::flight::{Flight, Landed};
use super::moment::after;
use super::ticket::{Hold, Started};
use crate::attempt::{Attempt, Lease};
use crate::error::StoreError;
use crate::record::Verdict;

/// Renews, once it is started and until it is dropped. Without a lease it does nothing.
#[derive(Debug)]
pub(super) struct Heartbeat {
    beat: Option<Arc<Beat>>,
    task: Option<JoinHandle<()>>,
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Heartbeat {
    /// For the lease that the action runs under, if it has one. Not started yet.
    pub(super) fn of(started: &Started) -> Self {
        let Started { request, attempt, hold, flight } = started;
        let beat = match hold {
            Hold::Leased { lease, holding, .. } => Some(Arc::new(Beat {
                request: Arc::clone(request),
                attempt: Arc::clone(attempt),
                lease: lease.clone(),
                holding: Arc::clone(holding),
                flight: Arc::downgrade(flight),
                settled: AtomicBool::new(false),
                stop: CancellationToken::new(),
            })),
            Hold::None { .. } => None,
        };
        Self { beat, task: None }
    }

    /// Renews at every third of the lease, up to the ceiling. In a task of its own, so that an
    /// action that computes for long does not lose its lease.
    pub(super) fn start(&mut self) {
        if let (Some(beat), None) = (&self.beat, &self.task) {
            let beat = Arc::clone(beat);
            self.task = Some(tokio::spawn(in_span(async move { beat.run().await })));
        }
    }

    /// The action is done. It goes on renewing; what becomes of the lease is now for the one who
    /// records the result to find out: a completed record is not renewed either.
    pub(super) fn settle(&self) {
        if let Some(beat) = &self.beat {
            beat.settled.store(true, Ordering::SeqCst);
        }
    }

    /// Stops, and not in the middle of a renewal: none reaches the store after this.
    pub(super) async fn stop(mut self) {
        if let (Some(beat), Some(task)) = (&self.beat, &mut self.task) {
            beat.stop.cancel();
            // It does not panic, and nobody else aborts it.
            let _ = task.await;
        }
    }
}

/// What became of a key whose lease was not renewed, if it is not another's.
enum Found {
    /// It was free, and is this attempt's again.
    Free,
    /// The action has completed it itself.
    Completed,
}

#[derive(Debug)]
struct Beat {
    request: Arc<Request>,
    attempt: Arc<Attempt>,
    lease: Lease,
    holding: Arc<Holding>,
    /// Weak: a flight lands with its call, not with the heartbeat.
    flight: Weak<Flight>,
    settled: AtomicBool,
    stop: CancellationToken,
}

impl Beat {
    async fn run(&self) {
        let every = self.request.policy.lease / 3;
        let ceiling = after(Instant::now(), self.request.policy.renew_for);
        let mut next = Instant::now() + every;
        while next < ceiling {
            if self.stopped_before(self.while_watching(sleep_until(next))).await {
                return;
            }
            let asked = Instant::now();
            let renewed = match self.while_watching(self.renew()).await {
                Err(StoreError::LeaseLost) if self.settled.load(Ordering::SeqCst) => return,
                Err(StoreError::LeaseLost) => match self.while_watching(self.retake()).await {
                    Ok(Found::Completed) => return,
                    found => {
                        self.request.lost(&self.holding);
                        found.map(drop)
                    }
                },
                renewed => renewed,
            };
            match renewed {
                Ok(()) => next = asked + every,
                Err(StoreError::LeaseLost) => return self.taken_over(),
                // Asked again before long, and until then the local clock judges.
                Err(_) => next = Instant::now() + every / 4,
            }
        }
        self.request.tell(crate::observe::Transition::RenewalEnded);
        if !self.stopped_before(sleep_until(self.holding.ends())).await {
            self.request.lost(&self.holding);
            self.taken_over();
        }
    }

    async fn stopped_before(&self, other: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => true,
            () = other => false,
        }
    }

    /// One renewal.
    async fn renew(&self) -> Result<(), StoreError> {
        let asked = Instant::now();
        let Request { engine, policy, .. } = &*self.request;
        let left = engine.store.renew(&self.lease, policy.lease).await?;
        self.held_until(after(asked, left));
        Ok(())
    }

    /// Takes the key back if nobody else has it: its record has vanished, with a store that forgets
    /// or fails over. The action still runs, so the key must not look free for the rest of it.
    async fn retake(&self) -> Result<Found, StoreError> {
        let asked = Instant::now();
        let record = self.request.engine.store.reserve(&self.attempt).await?;
        let own = record.holder == self.attempt.id();
        match record.verdict(&self.attempt)? {
            Verdict::Acquired { left, .. } => {
                self.held_until(after(asked, left));
                Ok(Found::Free)
            }
            Verdict::Replay(_) if own => Ok(Found::Completed),
            _ => Err(StoreError::LeaseLost),
        }
    }

    /// Counted from before the store was asked: never longer than it grants.
    fn held_until(&self, until: Instant) {
        self.holding.renewed(until);
        if let Some(flight) = self.flight.upgrade() {
            flight.renewed(self.holding.ends());
        }
    }

    /// Awaits `other`, and says so if the lease ends here meanwhile. The store may still give it
    /// (law L5), but the action must know that another may run.
    async fn while_watching<T>(&self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        if !self.holding.is_lost() {
            tokio::select! {
                biased;
                done = &mut other => return done,
                () = sleep_until(self.holding.ends()) => self.request.lost(&self.holding),
            }
        }
        other.await
    }

    /// The key is another's, or may be: those who follow here follow the other from now on.
    fn taken_over(&self) {
        if let Some(flight) = self.flight.upgrade() {
            flight.land(Landed::Again);
        }
    }
}
