//! Getting the end of an action into the store: a completion is never lost in silence.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::action::Holding;
use super::detached::Caller;
use super::engine::Request;
use super::error::{CallError, is_store_failure};
use super::flight::{Flight, Landed};
use super::heartbeat::Heartbeat;
use super::jitter::jittered;
use super::moment::after;
use super::policy::{InFlight, Oversize};
use super::reference::within;
use super::ticket::{Hold, Started};
use super::waiting::{Paused, Waiting};
use crate::attempt::{Attempt, Lease};
use crate::envelope::{Body, CodecId, Envelope, NotKept};
use crate::error::{Refusal, StoreError};
use crate::observe::Transition;
use crate::record::Verdict;

/// The longest reference that is stored, in bytes.
const MAX_REFERENCE: usize = 64 << 10;

/// How often one recording takes the key back after it was lost, before it is retried later.
const MAX_RECLAIMS: u32 = 8;

/// The pauses between two tries to record in the background.
pub(super) const RETRY: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(5);

/// How a result was recorded.
#[derive(Debug)]
pub(super) enum Recorded {
    /// As this call's.
    Ours { recorded: bool, not_kept: Option<NotKept> },
    /// Not at all: another attempt's answer stands.
    Theirs(Bytes),
    /// Another attempt has taken over and is still running.
    Elsewhere(CallError),
}

/// Why a result is not recorded yet, or never will be.
enum Unrecorded {
    Theirs(Bytes),
    Busy(Duration),
    /// The key was used for another request meanwhile.
    Mismatch,
    Failed(StoreError),
}

/// A result on its way into the store.
struct Recorder {
    request: Arc<Request>,
    attempt: Arc<Attempt>,
    /// `None` once it is known to be lost, or was never held.
    lease: Option<Lease>,
    payload: Bytes,
    retention: Duration,
    not_kept: Option<NotKept>,
    is_error: bool,
    /// Of the lease that the action ran under, until it is known to be lost.
    holding: Option<Arc<Holding>>,
    /// Whether the action ran under a lease.
    was_leased: bool,
    heartbeat: Heartbeat,
}

/// Records the end of an action that had its effect.
pub(super) async fn record(
    started: Started,
    envelope: Envelope,
    retention: Duration,
    mut heartbeat: Heartbeat,
    caller: Caller,
) -> Recorded {
    let Started { request, attempt, hold, flight } = started;
    let (lease, holding) = match hold {
        Hold::Leased { lease, holding, .. } => (Some(lease), Some(holding)),
        Hold::None { .. } => (None, None),
    };
    let was_leased = lease.is_some();
    let envelope = fit(&request, envelope, &mut heartbeat).await;
    let (not_kept, is_error) = match &envelope.body {
        Body::NotKept { why, error } => (Some(*why), *error),
        body => (None, matches!(body, Body::Error(_))),
    };
    let payload = envelope.encode();
    let recorder = Recorder {
        request,
        attempt,
        lease,
        payload,
        retention,
        not_kept,
        is_error,
        holding,
        was_leased,
        heartbeat,
    };
    recorder.record(flight, caller).await
}

/// The envelope, within the limit on results.
async fn fit(request: &Request, envelope: Envelope, heartbeat: &mut Heartbeat) -> Envelope {
    let (Body::Value(body) | Body::Error(body)) = &envelope.body else { return envelope };
    let policy = &request.policy;
    if body.len() <= policy.max_result {
        return envelope;
    }
    let error = matches!(envelope.body, Body::Error(_));
    let bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
    if let Oversize::Reference(hook) = &policy.oversize {
        heartbeat.start();
        let saved = within(policy.lease, hook.save(&request.key, envelope.encode())).await;
        if let Ok(reference) = saved
            && reference.len() <= MAX_REFERENCE
        {
            return Envelope { codec: CodecId::NONE, body: Body::Reference(reference) };
        }
    }
    not_kept(NotKept::TooLarge { bytes }, error)
}

pub(super) fn not_kept(why: NotKept, error: bool) -> Envelope {
    Envelope { codec: CodecId::NONE, body: Body::NotKept { why, error } }
}

impl Recorder {
    async fn record(mut self, flight: Arc<Flight>, caller: Caller) -> Recorded {
        let patience = self.request.policy.in_flight.patience();
        let mut waiting: Option<Waiting> = None;
        loop {
            match self.try_once().await {
                Ok(()) => return self.done(&flight),
                Err(Unrecorded::Theirs(answer)) => {
                    self.request.tell(Transition::Superseded);
                    flight.land(Landed::Answer { answer: answer.clone(), recorded: true });
                    return Recorded::Theirs(answer);
                }
                Err(Unrecorded::Mismatch) => return self.lost(None),
                Err(Unrecorded::Failed(error)) if is_store_failure(&error) => {
                    return self.later(flight, error);
                }
                Err(Unrecorded::Failed(error)) => return self.lost(Some(error)),
                Err(Unrecorded::Busy(left)) => {
                    let paused = match &mut waiting {
                        Some(waiting) => waiting.pause(left, &caller).await,
                        None if patience.is_zero() => Paused::TimedOut,
                        None => {
                            // Those who follow here wait for the other now.
                            flight.land(Landed::Again);
                            let begun =
                                Waiting::begin(&self.request, after(Instant::now(), patience));
                            waiting = Some(begun.await);
                            Paused::Look
                        }
                    };
                    if paused != Paused::Look {
                        return self.outrun(&flight, left);
                    }
                }
            }
        }
    }

    /// One try: takes the key back if it has to, and completes.
    async fn try_once(&mut self) -> Result<(), Unrecorded> {
        for _ in 0..MAX_RECLAIMS {
            let lease = match self.lease.take() {
                Some(lease) => lease,
                None => self.reclaim().await?,
            };
            let store = &self.request.engine.store;
            let done = store.complete(&lease, &self.payload, self.retention).await;
            match done {
                Ok(()) => return Ok(()),
                Err(StoreError::LeaseLost) => match self.holding.take() {
                    Some(holding) => self.request.lost(&holding),
                    None => self.request.tell(Transition::LeaseLost),
                },
                Err(error) => {
                    self.lease = Some(lease);
                    if error.refusal() != Some(Refusal::Full) || self.not_kept.is_some() {
                        return Err(Unrecorded::Failed(error));
                    }
                    // No room for the response: that it is done must be known all the same.
                    self.not_kept = Some(NotKept::NoRoom);
                    self.payload = not_kept(NotKept::NoRoom, self.is_error).encode();
                }
            }
        }
        Err(Unrecorded::Busy(Duration::ZERO))
    }

    /// Takes the key again, if it is free.
    async fn reclaim(&mut self) -> Result<Lease, Unrecorded> {
        loop {
            let record = self.request.engine.store.reserve(&self.attempt).await;
            let verdict =
                record.map_err(StoreError::from).and_then(|record| record.verdict(&self.attempt));
            match verdict.map_err(Unrecorded::Failed)? {
                Verdict::Acquired { lease, .. } => return Ok(lease),
                Verdict::Replay(answer) => return Err(Unrecorded::Theirs(answer)),
                Verdict::InProgress { left } => return Err(Unrecorded::Busy(left)),
                Verdict::Mismatch { .. } => return Err(Unrecorded::Mismatch),
                // Whoever has a result in hand resolves what was abandoned.
                Verdict::Abandoned { .. } => {
                    let fresh = self.request.attempt();
                    self.attempt = Arc::new(fresh.takeover(true));
                }
            }
        }
    }

    fn done(&self, flight: &Flight) -> Recorded {
        self.tell_completed(false);
        flight.land(Landed::Answer { answer: self.payload.clone(), recorded: true });
        Recorded::Ours { recorded: true, not_kept: self.not_kept }
    }

    fn tell_completed(&self, late: bool) {
        self.request.tell(Transition::Completed { late });
        if let Some(why) = self.not_kept {
            self.request.tell(Transition::ResponseNotKept { why });
        }
    }

    /// It cannot be recorded, now or later.
    fn lost(&self, error: Option<StoreError>) -> Recorded {
        self.request.tell(Transition::NotRecorded { error });
        Recorded::Ours { recorded: false, not_kept: self.not_kept }
    }

    /// Another attempt holds the key, and still does when the patience is over, or nobody waits any
    /// more. Should it end without an answer of its own, this result is the key's after all.
    fn outrun(self, flight: &Flight, left: Duration) -> Recorded {
        if self.request.policy.in_flight == InFlight::Run {
            return self.lost(None);
        }
        flight.land(Landed::Again);
        let (key, engine) = (self.request.key.clone(), Arc::clone(&self.request.engine));
        let recorded = if self.was_leased {
            // Its answer will be the truth; this one must not be told as if it were.
            self.request.tell(Transition::Rejected { retry_after: left });
            Recorded::Elsewhere(CallError::InProgress { key, retry_after: left })
        } else {
            Recorded::Ours { recorded: false, not_kept: self.not_kept }
        };
        engine.spawn(self.retry(None));
        recorded
    }

    /// Answers now and goes on trying. Until it is recorded, this process remembers the answer.
    fn later(mut self, flight: Arc<Flight>, error: StoreError) -> Recorded {
        self.request.tell(Transition::CompletionRetried { error });
        self.heartbeat.start();
        flight.answered(self.payload.clone());
        let recorded = Recorded::Ours { recorded: false, not_kept: self.not_kept };
        let engine = Arc::clone(&self.request.engine);
        engine.spawn(self.retry(Some(flight)));
        recorded
    }

    /// Tries until the store has the result, or another attempt's. `flight` is remembered so long.
    async fn retry(mut self, flight: Option<Arc<Flight>>) {
        let end = after(Instant::now(), self.request.policy.record_for);
        let mut pause = *RETRY.start();
        let mut last = None;
        while Instant::now() + pause < end {
            sleep(jittered(pause)).await;
            pause = (2 * pause).min(*RETRY.end());
            match self.try_once().await {
                Ok(()) => return self.tell_completed(true),
                Err(Unrecorded::Theirs(_)) => return self.request.tell(Transition::Superseded),
                Err(Unrecorded::Mismatch) => break,
                Err(Unrecorded::Busy(_)) => {}
                Err(Unrecorded::Failed(error)) => last = Some(error),
            }
        }
        self.request.tell(Transition::NotRecorded { error: last });
        drop(flight);
    }
}
