//! The way to the action: reserve, replay, wait or refuse.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::detached::Caller;
use super::engine::Request;
use super::error::{CallError, is_store_failure};
use super::flight::{Flight, Follower, Landed, Seat, Standing};
use super::moment::after;
use super::policy::{InFlight, OnStoreFailure};
use super::ticket::{Hold, Ticket};
use super::waiting::{Paused, Waiting};
use crate::attempt::Attempt;
use crate::error::StoreError;
use crate::observe::Transition;
use crate::record::Verdict;

/// What a call may do.
#[derive(Debug)]
pub(super) enum Admission {
    /// Run its action.
    Run(Ticket),
    /// Replay this stored answer: the bytes of an envelope.
    Replay(Bytes),
}

/// One call on its way.
struct Entrance<'a> {
    request: &'a Arc<Request>,
    caller: &'a Caller,
    since: Instant,
    deadline: Instant,
}

/// Finds out what the call may do. May take as long as the call's patience.
pub(super) async fn admit(request: &Arc<Request>, caller: &Caller) -> Result<Admission, CallError> {
    let since = Instant::now();
    let deadline = after(since, request.policy.in_flight.patience());
    Entrance { request, caller, since, deadline }.enter().await
}

impl Entrance<'_> {
    async fn enter(&self) -> Result<Admission, CallError> {
        loop {
            let Request { engine, key, fingerprint, policy, .. } = &**self.request;
            let seat = match policy.in_flight {
                InFlight::Wait { .. } => engine.flights.board(key, *fingerprint),
                InFlight::Reject | InFlight::Run => engine.flights.board_alone(key, *fingerprint),
            };
            let landed = match seat {
                Seat::Lead(flight) => return self.lead(flight).await,
                Seat::Follow(follower) => self.follow(follower).await?,
            };
            match landed {
                Landed::Answer(answer) => return Ok(self.replay(answer, true)),
                // What the leader was refused for holds for this call too, unless the store
                // failed and this call would rather run without it.
                Landed::Refused(error) if !self.runs_in_spite_of(&error) => return Err(error),
                Landed::Refused(_) | Landed::Again => {}
            }
        }
    }

    fn runs_in_spite_of(&self, error: &CallError) -> bool {
        self.request.policy.on_store_failure == OnStoreFailure::RunUnprotected
            && matches!(error, CallError::Store { source, .. } if is_store_failure(source))
    }

    /// Waits for another call in this process.
    async fn follow(&self, mut follower: Follower) -> Result<Landed, CallError> {
        let held_until = follower.held_until();
        tokio::select! {
            biased;
            landed = follower.landed() => Ok(landed),
            () = sleep_until(self.deadline) => Err(self.in_progress(held_until)),
            () = self.caller.gone() => Err(CallError::Interrupted),
        }
    }

    /// Asks the store, for this call and all that follow it.
    async fn lead(&self, flight: Flight) -> Result<Admission, CallError> {
        match self.seek(&flight).await {
            Ok(Found::Granted(attempt, hold)) => {
                Ok(Admission::Run(Ticket::new(Arc::clone(self.request), attempt, hold, flight)))
            }
            Ok(Found::Answer(answer, waited)) => {
                flight.land(Landed::Answer(answer.clone()));
                Ok(self.replay(answer, waited))
            }
            Ok(Found::Flying(follower)) => match self.follow(follower).await? {
                Landed::Answer(answer) => Ok(self.replay(answer, true)),
                Landed::Refused(error) => Err(error),
                Landed::Again => Err(self.in_progress(None)),
            },
            Err(error) => {
                // A patience is this call's own, and so is an error about no key.
                if !matches!(error, CallError::InProgress { .. } | CallError::Interrupted) {
                    flight.land(Landed::Refused(error.clone()));
                }
                Err(error)
            }
        }
    }

    /// Reserves, waiting as long as the call may.
    async fn seek(&self, flight: &Flight) -> Result<Found, CallError> {
        let request = self.request;
        let attempt = request.attempt();
        let mut waiting: Option<Waiting> = None;
        let mut held_until = None;
        loop {
            let asked = Instant::now();
            let verdict = match request.engine.store.reserve(&attempt).await {
                Ok(record) => record.verdict(&attempt),
                Err(error) => Err(error),
            };
            let left = match verdict {
                Ok(Verdict::Acquired { lease, left, attempts }) => {
                    return Ok(Found::Granted(
                        attempt,
                        Hold::leased(lease, after(asked, left), attempts),
                    ));
                }
                Ok(Verdict::Replay(answer)) => {
                    return Ok(Found::Answer(answer, waiting.is_some()));
                }
                Ok(Verdict::Mismatch { recorded }) => return Err(self.mismatch(recorded)),
                Ok(Verdict::Abandoned { attempts }) => {
                    request.tell(Transition::OutcomeUnknown { attempts });
                    return Err(CallError::OutcomeUnknown { key: request.key.clone(), attempts });
                }
                Ok(Verdict::InProgress { left }) => {
                    let until = after(asked, left);
                    held_until = Some(until);
                    flight.seeking(until);
                    left
                }
                // The key was seen to be held. Not to reach the store is no reason to doubt it.
                Err(error) if waiting.is_some() && error.is_unavailable() => {
                    request.tell(Transition::StoreFailed { error });
                    request.policy.poll
                }
                Err(error) => return self.without_store(flight, attempt, error),
            };
            if request.policy.in_flight == InFlight::Run {
                return Ok(Found::Granted(attempt, Hold::None { maybe_reserved: false }));
            }
            let Some(waiting) = &mut waiting else {
                if Instant::now() >= self.deadline {
                    return Err(self.in_progress(held_until));
                }
                waiting = Some(Waiting::begin(request, self.deadline).await);
                continue;
            };
            match waiting.pause(left, self.caller).await {
                Paused::Look => {}
                Paused::TimedOut => return Err(self.in_progress(held_until)),
                Paused::CallerGone => return Err(CallError::Interrupted),
            }
        }
    }

    /// What to do when the store failed before anything was known of the key.
    fn without_store(
        &self,
        flight: &Flight,
        attempt: Attempt,
        error: StoreError,
    ) -> Result<Found, CallError> {
        let request = self.request;
        request.tell(Transition::StoreFailed { error: error.clone() });
        let runs = request.policy.on_store_failure == OnStoreFailure::RunUnprotected;
        if !runs || !is_store_failure(&error) {
            return Err(CallError::store(&request.key, error));
        }
        let may_be_held = error.is_unavailable();
        match flight.run_unprotected() {
            Ok(()) => Ok(Found::Granted(attempt, Hold::None { maybe_reserved: may_be_held })),
            Err(Standing::OtherRequest(recorded)) => Err(self.mismatch(recorded)),
            Err(Standing::SameRequest(follower)) => Ok(Found::Flying(follower)),
        }
    }

    fn replay(&self, answer: Bytes, waited: bool) -> Admission {
        let waited = waited.then(|| self.since.elapsed());
        self.request.tell(Transition::Replayed { waited });
        Admission::Replay(answer)
    }

    fn mismatch(&self, recorded: crate::Fingerprint) -> CallError {
        let given = self.request.fingerprint;
        self.request.tell(Transition::Mismatch { recorded, given });
        CallError::Mismatch { key: self.request.key.clone(), recorded, given }
    }

    fn in_progress(&self, held_until: Option<Instant>) -> CallError {
        let retry_after = held_until.map_or(self.request.policy.lease, |until| {
            until.saturating_duration_since(Instant::now())
        });
        self.request.tell(Transition::Rejected { retry_after });
        CallError::InProgress { key: self.request.key.clone(), retry_after }
    }
}

/// What the store came to.
enum Found {
    /// The action may run.
    Granted(Attempt, Hold),
    /// There is an answer; whether it had to be waited for.
    Answer(Bytes, bool),
    /// The store is down, and the action runs in this process already.
    Flying(Follower),
}
