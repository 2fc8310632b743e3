//! How soon those who wait for a key have its answer.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use idem_core::{Coordinator, Fingerprint, Operation, Store};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::comparison::BoxError;
use crate::options::Options;
use crate::subject::Charge;

/// Long enough for every waiter to be waiting.
pub const SETTLE: Duration = Duration::from_millis(50);

const FINGERPRINT: Fingerprint = Fingerprint::from_bytes([7; 32]);

/// The medians of some rounds: one wake-up is over too soon to be measured alone.
///
/// # Errors
/// The first error of a round.
pub fn in_rounds(
    options: &Options,
    round: impl Fn() -> Result<[f64; 2], BoxError>,
) -> Result<[f64; 2], BoxError> {
    let rounds = (0..options.count(11, 3)).map(|_| round()).collect::<Result<Vec<_>, _>>()?;
    Ok([0, 1].map(|at| median(rounds.iter().filter_map(|round| round.get(at).copied()))))
}

/// How long after the end of an action in one process the median and the last of the `waiters`
/// in another have its answer, in microseconds: two coordinators, each over a store of its own.
///
/// # Errors
/// If a call fails, or is not answered by the action of the other.
pub async fn coordinated(
    here: Arc<dyn Store>,
    there: Arc<dyn Store>,
    key: &str,
    waiters: usize,
) -> Result<[f64; 2], BoxError> {
    let operation = |store| -> Result<Operation, BoxError> {
        Ok(Coordinator::builder(store).build()?.operation("payment.charge"))
    };
    let (here, there) = (operation(here)?, operation(there)?);
    let (finish, finished) = oneshot::channel::<()>();
    let call = there.key(key).fingerprint(FINGERPRINT);
    let action = tokio::spawn(call.run(|_| async {
        finished.await?;
        Ok::<_, oneshot::error::RecvError>(Charge::sample())
    }));
    tokio::time::sleep(SETTLE).await;
    let mut waiting = JoinSet::new();
    for _ in 0..waiters {
        let call = here.key(key).fingerprint(FINGERPRINT);
        waiting.spawn(async move {
            // Its action must not run.
            let outcome = call.run(|_| async { Err::<Charge, _>(fmt::Error) }).await?;
            if outcome.replayed { Ok(Instant::now()) } else { Err("not replayed".into()) }
        });
    }
    tokio::time::sleep(SETTLE).await;
    let started = Instant::now();
    finish.send(()).map_err(|()| "the action is gone")?;
    let delays = delays(started, waiting).await;
    action.await??;
    delays
}

/// How long after `started` the median and the last waiter were awake, in microseconds.
///
/// # Errors
/// The first error of a waiter.
pub async fn delays(
    started: Instant,
    mut waiting: JoinSet<Result<Instant, BoxError>>,
) -> Result<[f64; 2], BoxError> {
    let mut delays = Vec::new();
    while let Some(woken) = waiting.join_next().await {
        delays.push((woken?? - started).as_secs_f64() * 1e6);
    }
    let last = delays.iter().copied().fold(0.0, f64::max);
    Ok([median(delays.into_iter()), last])
}

/// The median; NaN of nothing.
pub fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<_> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
