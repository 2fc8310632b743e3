//! Giving a key up: it is free again, or nobody knows what happened.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::engine::Request;
use super::error::is_store_failure;
use super::flight::Flight;
use super::heartbeat::Heartbeat;
use super::jitter::jittered;
use super::moment::after;
use super::recording::RETRY;
use super::ticket::{Hold, Started};
use crate::attempt::{Attempt, Lease};
use crate::error::StoreError;
use crate::observe::Transition;
use crate::record::Verdict;

/// Frees the key of an action that had no effect, now or as soon as the store takes it.
pub(super) async fn release(started: Started, heartbeat: Heartbeat) {
    drop(heartbeat);
    let lease = started.lease();
    let Started { request, flight, hold, .. } = started;
    let Some(lease) = lease else { return request.tell(Transition::Released) };
    match request.engine.store.release(&lease).await {
        Err(error) if is_store_failure(&error) => {
            request.tell(Transition::StoreFailed { error });
            let engine = Arc::clone(&request.engine);
            engine.spawn(release_later(request, lease, hold));
        }
        released => tell_released(&request, &hold, &released),
    }
    drop(flight);
}

/// After its lease has ended the record is abandoned, which releasing it still mends.
async fn release_later(request: Arc<Request>, lease: Lease, hold: Hold) {
    sleep(jittered(*RETRY.start())).await;
    let released = insist(&request, || (), || request.engine.store.release(&lease)).await;
    tell_released(&request, &hold, &released);
}

fn tell_released(request: &Request, hold: &Hold, released: &Result<(), StoreError>) {
    request.tell(match (released, hold) {
        // Without a lease: the reservation that might have been there is not.
        (Ok(()), _) | (Err(StoreError::LeaseLost), Hold::None { .. }) => Transition::Released,
        (Err(StoreError::LeaseLost), Hold::Leased { holding, .. }) => {
            request.lost(holding);
            Transition::Superseded
        }
        // Its lease ends by itself.
        (Err(_), _) => Transition::Abandoned,
    });
}

/// Ends the lease of an action of which nobody knows whether it had an effect.
pub(super) async fn give_up(started: Started, heartbeat: Heartbeat) {
    // A renewal that the store takes after this would hold the key for nobody.
    heartbeat.stop().await;
    started.request.tell(Transition::Abandoned);
    if let Some(lease) = started.lease() {
        // If it fails, the lease ends by itself.
        let _ = started.request.engine.store.renew(&lease, Duration::ZERO).await;
    }
}

/// Gives back, in the background, the key of an attempt whose action never began.
///
/// `known` is the lease and how many attempts have held it; `None` if the store never said whether
/// it took the key. Left alone, the reservation would end as abandoned, and an operation that
/// refuses abandoned keys would refuse this one for good, although nothing has happened.
pub(super) fn give_back(
    request: Arc<Request>,
    attempt: Arc<Attempt>,
    known: Option<(Lease, u32)>,
    flight: Option<Arc<Flight>>,
) {
    let engine = Arc::clone(&request.engine);
    engine.spawn(async move {
        let mut flight = flight;
        // Those who follow look again after the first try: a store that is down is theirs to judge.
        let once_tried = || drop(flight.take());
        // If it fails in the end, the lease has ended by itself.
        let _ =
            insist(&request, once_tried, || unreserve(&request, &attempt, known.as_ref())).await;
    });
}

async fn unreserve(
    request: &Request,
    attempt: &Attempt,
    known: Option<&(Lease, u32)>,
) -> Result<(), StoreError> {
    let store = &request.engine.store;
    let (lease, attempts) = if let Some(known) = known {
        known.clone()
    } else {
        let attempt = attempt.without_takeover();
        match store.reserve(&attempt).await?.verdict(&attempt)? {
            Verdict::Acquired { lease, attempts, .. } => (lease, attempts),
            _ => return Ok(()),
        }
    };
    if attempts > 1 {
        // An attempt before may have had its effect: its key stays abandoned.
        return store.renew(&lease, Duration::ZERO).await.map(drop);
    }
    store.release(&lease).await
}

/// Asks until the store answers, for as long as a result would be offered to it.
async fn insist<Fut>(
    request: &Request,
    mut once_tried: impl FnMut(),
    verb: impl Fn() -> Fut,
) -> Result<(), StoreError>
where
    Fut: Future<Output = Result<(), StoreError>>,
{
    let end = after(Instant::now(), request.policy.record_for);
    let mut pause = *RETRY.start();
    loop {
        let done = verb().await;
        let again = done.as_ref().is_err_and(is_store_failure) && Instant::now() + pause < end;
        if !again {
            return done;
        }
        once_tried();
        sleep(jittered(pause)).await;
        pause = (2 * pause).min(*RETRY.end());
    }
}
