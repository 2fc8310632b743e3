//! Getting the end of an action into the store: a completion is never lost in silence.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::detached::Caller;
use super::engine::Request;
use super::error::{CallError, is_store_failure};
use super::flight::{Flight, Landed};
use super::heartbeat::Heartbeat;
use super::jitter::jittered;
use super::policy::{InFlight, Oversize};
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
const RETRY: std::ops::RangeInclusive<Duration> =
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
    attempt: Attempt,
    /// `None` once it is known to be lost, or was never held.
    lease: Option<Lease>,
    payload: Bytes,
    retention: Duration,
    not_kept: Option<NotKept>,
    is_error: bool,
}

/// Records the end of an action that had its effect.
pub(super) async fn record(
    started: Started,
    envelope: Envelope,
    retention: Duration,
    heartbeat: Option<Heartbeat>,
    caller: Caller,
) -> Recorded {
    let Started { request, attempt, hold, flight } = started;
    let (lease, was_leased) = match hold {
        Hold::Leased { lease, .. } => (Some(lease), true),
        Hold::None { .. } => (None, false),
    };
    let envelope = fit(&request, envelope).await;
    let (not_kept, is_error) = match &envelope.body {
        Body::NotKept { why, error } => (Some(*why), *error),
        body => (None, matches!(body, Body::Error(_))),
    };
    let payload = envelope.encode();
    let recorder = Recorder { request, attempt, lease, payload, retention, not_kept, is_error };
    recorder.record(flight, heartbeat, was_leased, caller).await
}

/// The envelope, within the limit on results.
async fn fit(request: &Request, envelope: Envelope) -> Envelope {
    let (Body::Value(body) | Body::Error(body)) = &envelope.body else { return envelope };
    let policy = &request.policy;
    if body.len() <= policy.max_result {
        return envelope;
    }
    let error = matches!(envelope.body, Body::Error(_));
    let bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
    if let Oversize::Reference(hook) = &policy.oversize {
        match hook.save(&request.key, envelope.encode()).await {
            Ok(reference) if reference.len() <= MAX_REFERENCE => {
                return Envelope { codec: CodecId::NONE, body: Body::Reference(reference) };
            }
            Ok(_) | Err(_) => {}
        }
    }
    not_kept(NotKept::TooLarge { bytes }, error)
}

pub(super) fn not_kept(why: NotKept, error: bool) -> Envelope {
    Envelope { codec: CodecId::NONE, body: Body::NotKept { why, error } }
}

impl Recorder {
    async fn record(
        mut self,
        flight: Arc<Flight>,
        heartbeat: Option<Heartbeat>,
        was_leased: bool,
        caller: Caller,
    ) -> Recorded {
        let patience = self.request.policy.in_flight.patience();
        let mut waiting: Option<Waiting> = None;
        loop {
            match self.try_once().await {
                Ok(()) => return self.done(&flight),
                Err(Unrecorded::Theirs(answer)) => {
                    self.request.tell(Transition::Superseded);
                    flight.land(Landed::Answer(answer.clone()));
                    return Recorded::Theirs(answer);
                }
                Err(Unrecorded::Mismatch) => return self.lost(None),
                Err(Unrecorded::Failed(error)) if is_store_failure(&error) => {
                    return self.later(flight, heartbeat, error);
                }
                Err(Unrecorded::Failed(error)) => return self.lost(Some(error)),
                Err(Unrecorded::Busy(left)) => {
                    let paused = match &mut waiting {
                        Some(waiting) => waiting.pause(left, &caller).await,
                        None if patience.is_zero() => Paused::TimedOut,
                        None => {
                            // Those who follow here wait for the other now.
                            flight.land(Landed::Again);
                            let begun = Waiting::begin(&self.request, Instant::now() + patience);
                            waiting = Some(begun.await);
                            Paused::Look
                        }
                    };
                    if paused != Paused::Look {
                        return self.outrun(was_leased, left);
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
                None => match self.reclaim().await? {
                    Some(lease) => lease,
                    None => return Ok(()),
                },
            };
            let store = &self.request.engine.store;
            let done = store.complete(&lease, &self.payload, self.retention).await;
            match done {
                Ok(()) => return Ok(()),
                Err(StoreError::LeaseLost) => self.request.tell(Transition::LeaseLost),
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

    /// Takes the key again, if it is free; `None` if this very result is there already.
    async fn reclaim(&mut self) -> Result<Option<Lease>, Unrecorded> {
        loop {
            let record = self.request.engine.store.reserve(&self.attempt).await;
            let verdict = record.and_then(|record| record.verdict(&self.attempt));
            match verdict.map_err(Unrecorded::Failed)? {
                Verdict::Acquired { lease, .. } => return Ok(Some(lease)),
                Verdict::Replay(answer) if answer == self.payload => return Ok(None),
                Verdict::Replay(answer) => return Err(Unrecorded::Theirs(answer)),
                Verdict::InProgress { left } => return Err(Unrecorded::Busy(left)),
                Verdict::Mismatch { .. } => return Err(Unrecorded::Mismatch),
                // Whoever has a result in hand resolves what was abandoned.
                Verdict::Abandoned { .. } => {
                    let fresh = self.request.attempt();
                    self.attempt = fresh.takeover(true);
                }
            }
        }
    }

    fn done(&self, flight: &Flight) -> Recorded {
        self.request.tell(Transition::Completed { late: false });
        if let Some(why) = self.not_kept {
            self.request.tell(Transition::ResponseNotKept { why });
        }
        flight.land(Landed::Answer(self.payload.clone()));
        Recorded::Ours { recorded: true, not_kept: self.not_kept }
    }

    /// It cannot be recorded, now or later.
    fn lost(&self, error: Option<StoreError>) -> Recorded {
        self.request.tell(Transition::NotRecorded { error });
        Recorded::Ours { recorded: false, not_kept: self.not_kept }
    }

    /// Another attempt holds the key, and still does when the patience is over.
    fn outrun(&self, was_leased: bool, left: Duration) -> Recorded {
        let key = self.request.key.clone();
        if was_leased && self.request.policy.in_flight != InFlight::Run {
            // Its answer will be the truth; this one must not be told as if it were.
            self.request.tell(Transition::Superseded);
            return Recorded::Elsewhere(CallError::InProgress { key, retry_after: left });
        }
        self.lost(None)
    }

    /// Answers now and goes on trying. Until it is recorded, this process remembers the answer.
    fn later(
        self,
        flight: Arc<Flight>,
        heartbeat: Option<Heartbeat>,
        error: StoreError,
    ) -> Recorded {
        self.request.tell(Transition::CompletionRetried { error });
        flight.answered(self.payload.clone());
        let not_kept = self.not_kept;
        let tracker = self.request.engine.tracker.clone();
        tracker.spawn(self.retry(flight, heartbeat));
        Recorded::Ours { recorded: false, not_kept }
    }

    async fn retry(mut self, flight: Arc<Flight>, heartbeat: Option<Heartbeat>) {
        let end = Instant::now() + self.request.policy.record_for;
        let mut pause = *RETRY.start();
        let mut last = None;
        while Instant::now() + pause < end {
            sleep(jittered(pause)).await;
            pause = (2 * pause).min(*RETRY.end());
            match self.try_once().await {
                Ok(()) => {
                    self.request.tell(Transition::Completed { late: true });
                    drop((flight, heartbeat));
                    return;
                }
                Err(Unrecorded::Theirs(_)) => {
                    self.request.tell(Transition::Superseded);
                    return;
                }
                Err(Unrecorded::Mismatch) => break,
                Err(Unrecorded::Busy(_)) => {}
                Err(Unrecorded::Failed(error)) => last = Some(error),
            }
        }
        self.request.tell(Transition::NotRecorded { error: last });
    }
}

/// Frees the key of an action that had no effect, now or as soon as the store takes it.
pub(super) async fn release(started: Started, heartbeat: Option<Heartbeat>) {
    drop(heartbeat);
    let Some(lease) = started.lease() else { return };
    let Started { request, flight, hold, .. } = started;
    let certain = matches!(hold, Hold::Leased { .. });
    match request.engine.store.release(&lease).await {
        Ok(()) => request.tell(Transition::Released),
        Err(StoreError::LeaseLost) if certain => request.tell(Transition::LeaseLost),
        // The reservation that might have been there is not.
        Err(StoreError::LeaseLost) => {}
        Err(error) => {
            request.tell(Transition::StoreFailed { error });
            let tracker = request.engine.tracker.clone();
            tracker.spawn(release_later(request, lease));
        }
    }
    drop(flight);
}

async fn release_later(request: Arc<Request>, lease: Lease) {
    // After its lease has ended the record is abandoned, which releasing it still mends.
    let end = Instant::now() + request.policy.record_for;
    let mut pause = *RETRY.start();
    while Instant::now() + pause < end {
        sleep(jittered(pause)).await;
        pause = (2 * pause).min(*RETRY.end());
        match request.engine.store.release(&lease).await {
            Ok(()) => return request.tell(Transition::Released),
            Err(error) if is_store_failure(&error) => {}
            Err(_) => return,
        }
    }
}

/// Ends the lease of an action of which nobody knows whether it had an effect.
pub(super) async fn give_up(started: Started, heartbeat: Option<Heartbeat>) {
    drop(heartbeat);
    started.request.tell(Transition::Abandoned);
    if let Some(lease) = started.lease() {
        // If it fails, the lease ends by itself.
        let _ = started.request.engine.store.renew(&lease, Duration::ZERO).await;
    }
}
