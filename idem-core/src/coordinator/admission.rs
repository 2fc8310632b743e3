//! The way to the action: reserve, replay, wait or refuse.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::detached::Caller;
use super::ending::give_back;
use super::engine::Request;
use super::error::{CallError, is_store_failure};
use super::flight::{Flight, Follower, Landed, Seat, Standing};
use super::moment::after;
use super::policy::{InFlight, OnStoreFailure};
use super::ticket::{Hold, Ticket};
use super::waiting::{Paused, Waiting};
use crate::attempt::Attempt;
use crate::error::{Applied, StoreError};
use crate::fingerprint::Fingerprint;
use crate::observe::Transition;
use crate::record::Verdict;

/// What a call may do.
#[derive(Debug)]
pub(super) enum Admission {
    /// Run its action.
    Run(Ticket),
    /// Replay this answer, the bytes of an envelope, whether or not the store has it yet.
    Replay { answer: Bytes, recorded: bool },
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
    let entered = Entrance { request, caller, since, deadline }.enter().await;
    entered.inspect_err(|error| {
        // Whoever is refused is counted, whether it asked the store or followed one who did.
        if let Some(refused) = refusal(error) {
            request.tell(refused);
        }
    })
}

/// The transition that a call's refusal is.
fn refusal(error: &CallError) -> Option<Transition> {
    Some(match error {
        CallError::InProgress { retry_after, .. } => {
            Transition::Rejected { retry_after: *retry_after }
        }
        CallError::Mismatch { recorded, given, .. } => {
            Transition::Mismatch { recorded: *recorded, given: *given }
        }
        CallError::OutcomeUnknown { attempts, .. } => {
            Transition::OutcomeUnknown { attempts: *attempts }
        }
        CallError::Store { source, .. } => Transition::StoreFailed { error: source.clone() },
        _ => return None,
    })
}

impl Entrance<'_> {
    async fn enter(&self) -> Result<Admission, CallError> {
        loop {
            let Request { engine, key, fingerprint, policy, .. } = &**self.request;
            let seat = match policy.in_flight {
                InFlight::Wait { .. } => engine.flights.board(key, *fingerprint),
                InFlight::Reject | InFlight::Run => engine.flights.board_alone(key, *fingerprint),
            };
            let follower = match seat {
                Seat::Lead(flight) => match self.lead(flight).await? {
                    Led::Admitted(admission) => return Ok(admission),
                    Led::Behind(follower) => follower,
                },
                Seat::Follow(follower) => follower,
            };
            match self.follow(follower).await? {
                Landed::Answer { answer, recorded } => {
                    return Ok(self.replay(answer, recorded, true));
                }
                Landed::Refused(error) if self.heeds(&error) => return Err(error),
                Landed::Refused(_) | Landed::Again => {}
            }
        }
    }

    /// Whether what the leader was refused for holds for this call too. It does not where this
    /// call's policy is another.
    fn heeds(&self, error: &CallError) -> bool {
        let Request { policy, takeover, .. } = &**self.request;
        match error {
            CallError::Store { source, .. } if is_store_failure(source) => {
                policy.on_store_failure != OnStoreFailure::RunUnprotected
            }
            CallError::OutcomeUnknown { .. } => !takeover,
            _ => true,
        }
    }

    /// Waits for another call in this process.
    async fn follow(&self, mut follower: Follower) -> Result<Landed, CallError> {
        tokio::select! {
            biased;
            landed = follower.landed() => Ok(landed),
            () = sleep_until(self.deadline) => Err(self.in_progress(follower.held_until())),
            () = self.caller.gone() => Err(CallError::Interrupted),
        }
    }

    /// Asks the store, for this call and all that follow it.
    async fn lead(&self, flight: Flight) -> Result<Led, CallError> {
        let attempt = self.request.attempt();
        let mut in_doubt = false;
        match self.seek(&flight, &attempt, &mut in_doubt).await {
            Ok(Found::Grant(hold)) => self.run(flight, attempt, hold),
            Ok(Found::Busy) => {
                // It runs beside the holder, whom others had better follow.
                flight.land(Landed::Again);
                let hold = Hold::None { maybe_reserved: false };
                Ok(Led::Admitted(Admission::Run(self.ticket(flight, attempt, hold))))
            }
            Ok(Found::Answer { answer, waited }) => {
                flight.land(Landed::Answer { answer: answer.clone(), recorded: true });
                Ok(Led::Admitted(self.replay(answer, true, waited)))
            }
            Err(error) => {
                // A patience is this call's own, and so is an error about no key.
                if !matches!(error, CallError::InProgress { .. } | CallError::Interrupted) {
                    flight.land(Landed::Refused(error.clone()));
                }
                if in_doubt {
                    let (attempt, flight) = (Arc::new(attempt), Arc::new(flight));
                    give_back(Arc::clone(self.request), attempt, None, Some(flight));
                }
                Err(error)
            }
        }
    }

    /// The action may run, unless it runs in this process already.
    fn run(&self, flight: Flight, attempt: Attempt, hold: Hold) -> Result<Led, CallError> {
        let standing = match flight.run(hold.until()) {
            Ok(()) => return Ok(Led::Admitted(Admission::Run(self.ticket(flight, attempt, hold)))),
            Err(standing) => standing,
        };
        if self.request.policy.in_flight == InFlight::Run {
            flight.land(Landed::Again);
            return Ok(Led::Admitted(Admission::Run(self.ticket(flight, attempt, hold))));
        }
        // Dropped, the ticket gives back what the store may have granted.
        drop(self.ticket(flight, attempt, hold));
        match standing {
            Standing::OtherRequest(recorded) => Err(self.mismatch(recorded)),
            Standing::SameRequest(follower) => Ok(Led::Behind(follower)),
        }
    }

    fn ticket(&self, flight: Flight, attempt: Attempt, hold: Hold) -> Ticket {
        Ticket::new(Arc::clone(self.request), attempt, hold, flight)
    }

    /// Reserves, waiting as long as the call may. Says in `in_doubt` whether the store may have
    /// taken the key without an answer.
    async fn seek(
        &self,
        flight: &Flight,
        attempt: &Attempt,
        in_doubt: &mut bool,
    ) -> Result<Found, CallError> {
        let request = self.request;
        let mut waiting: Option<Waiting> = None;
        let mut held_until = None;
        loop {
            let asked = Instant::now();
            let answer = request.engine.store.reserve(attempt).await;
            match &answer {
                Ok(_) => *in_doubt = false,
                Err(failure) => *in_doubt |= failure.applied == Applied::Unknown,
            }
            let left = match answer
                .map_err(StoreError::from)
                .and_then(|record| record.verdict(attempt))
            {
                Ok(Verdict::Acquired { lease, left, attempts }) => {
                    let hold = Hold::leased(lease, after(asked, left), attempts);
                    return Ok(Found::Grant(hold));
                }
                Ok(Verdict::Replay(answer)) => {
                    return Ok(Found::Answer { answer, waited: waiting.is_some() });
                }
                Ok(Verdict::Mismatch { recorded }) => return Err(self.mismatch(recorded)),
                Ok(Verdict::Abandoned { attempts }) => {
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
                Err(error) => return self.without_store(error, *in_doubt),
            };
            if request.policy.in_flight == InFlight::Run {
                return Ok(Found::Busy);
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
    fn without_store(&self, error: StoreError, maybe_reserved: bool) -> Result<Found, CallError> {
        let request = self.request;
        let runs = request.policy.on_store_failure == OnStoreFailure::RunUnprotected;
        if !runs || !is_store_failure(&error) {
            return Err(CallError::store(&request.key, error));
        }
        request.tell(Transition::StoreFailed { error });
        Ok(Found::Grant(Hold::None { maybe_reserved }))
    }

    fn replay(&self, answer: Bytes, recorded: bool, waited: bool) -> Admission {
        let waited = waited.then(|| self.since.elapsed());
        self.request.tell(Transition::Replayed { waited });
        Admission::Replay { answer, recorded }
    }

    fn mismatch(&self, recorded: Fingerprint) -> CallError {
        let given = self.request.fingerprint;
        CallError::Mismatch { key: self.request.key.clone(), recorded, given }
    }

    fn in_progress(&self, held_until: Option<Instant>) -> CallError {
        let retry_after = held_until.map_or(self.request.policy.lease, |until| {
            until.saturating_duration_since(Instant::now())
        });
        CallError::InProgress { key: self.request.key.clone(), retry_after }
    }
}

/// What a leader comes to.
enum Led {
    Admitted(Admission),
    /// The action runs in this process already.
    Behind(Follower),
}

/// What the store came to.
enum Found {
    /// The action may run.
    Grant(Hold),
    /// Another attempt runs, and this call does not mind.
    Busy,
    /// There is an answer; whether it had to be waited for.
    Answer { answer: Bytes, waited: bool },
}
