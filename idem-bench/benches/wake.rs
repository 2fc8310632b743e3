//! How soon those who wait for a key have its answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use idem_bench::{Better, BoxError, Charge, Comparison, Options, key_text};
use idem_conformance::servers;
use idem_core::{Coordinator, Fingerprint, Operation, Store};
use idem_memory::MemoryStore;
use idem_postgres::PostgresStore;
use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

const FINGERPRINT: Fingerprint = Fingerprint::from_bytes([7; 32]);
/// Long enough for every waiter to be waiting.
const SETTLE: Duration = Duration::from_millis(50);

fn main() -> Result<(), BoxError> {
    let options = Options::from_args();
    let runtime =
        &tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for waiters in [1, 100, options.count(1_000, 200)] {
        Comparison::new(
            format!("wake-up, {waiters} waiter(s) on one key"),
            "us",
            Better::Lower,
            ["median", "last"],
        )
        .way("tokio watch, same value", || in_rounds(&options, || runtime.block_on(bare(waiters))))
        .way("another coordinator", || {
            let store = Arc::new(MemoryStore::new());
            in_rounds(&options, || runtime.block_on(coordinated([&store, &store], waiters)))
        })
        .run(&options)?;
    }
    over_postgres(&options, runtime)
}

/// The action and those who wait for it are in two processes, as far as the server knows.
fn over_postgres(options: &Options, runtime: &Runtime) -> Result<(), BoxError> {
    let server = runtime.block_on(async { servers::postgres().own().await })?;
    let store = || runtime.block_on(PostgresStore::connect(server.url()));
    let (here, there) = (Arc::new(store()?), Arc::new(store()?));
    let targets = ["<= 2", "<= 2.5", "<= 6"].map(|median| [Some(median), None]);
    for (waiters, targets) in [1, 100, options.count(1_000, 200)].into_iter().zip(targets) {
        Comparison::new(
            format!("wake-up over Postgres, {waiters} waiter(s) on one key"),
            "us",
            Better::Lower,
            ["median", "last"],
        )
        .way("a cold SELECT 1", || {
            in_rounds(options, || runtime.block_on(cold_round_trip(here.pool())))
        })
        .way("by hand, one waiter", || {
            in_rounds(options, || runtime.block_on(by_hand(here.pool(), there.pool())))
        })
        .way_with_targets("another coordinator", targets, || {
            in_rounds(options, || runtime.block_on(coordinated([&here, &there], waiters)))
        })
        .run(options)?;
    }
    Ok(())
}

/// As little as it takes: a commit, a notice of it, and a look at what was committed.
async fn by_hand(here: &PgPool, there: &PgPool) -> Result<[f64; 2], BoxError> {
    let create = "CREATE TABLE IF NOT EXISTS by_hand (answer text)";
    sqlx::query(create).execute(there).await?;
    let mut listener = PgListener::connect_with(here).await?;
    listener.listen("by_hand").await?;
    let (mut waiting, here) = (JoinSet::new(), here.clone());
    waiting.spawn(async move {
        listener.recv().await?;
        sqlx::query("SELECT answer FROM by_hand LIMIT 1").fetch_one(&here).await?;
        Ok(Instant::now())
    });
    tokio::time::sleep(2 * SETTLE).await;
    let started = Instant::now();
    sqlx::query("INSERT INTO by_hand VALUES ('done')").execute(there).await?;
    sqlx::query("SELECT pg_notify('by_hand', '')").execute(there).await?;
    delays(started, waiting).await
}

/// One round trip after a while without any.
async fn cold_round_trip(pool: &PgPool) -> Result<[f64; 2], BoxError> {
    tokio::time::sleep(2 * SETTLE).await;
    let started = Instant::now();
    sqlx::query("SELECT 1").execute(pool).await?;
    Ok([started.elapsed().as_secs_f64() * 1e6; 2])
}

/// The median of some rounds: one wake-up is over too soon to be measured alone.
fn in_rounds(
    options: &Options,
    round: impl Fn() -> Result<[f64; 2], BoxError>,
) -> Result<[f64; 2], BoxError> {
    let rounds = (0..options.count(11, 3)).map(|_| round()).collect::<Result<Vec<_>, _>>()?;
    Ok([0, 1].map(|at| median(rounds.iter().filter_map(|round| round.get(at).copied()))))
}

fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<_> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// As little as a wake-up can be: a channel that all waiters watch.
async fn bare(waiters: usize) -> Result<[f64; 2], BoxError> {
    let (send, receive) = watch::channel(None::<Arc<Charge>>);
    let mut waiting = JoinSet::new();
    for _ in 0..waiters {
        let mut receive = receive.clone();
        waiting.spawn(async move {
            let charge = receive.wait_for(Option::is_some).await?.as_deref().cloned();
            charge.ok_or("no charge")?;
            Ok(Instant::now())
        });
    }
    tokio::time::sleep(SETTLE).await;
    let started = Instant::now();
    send.send(Some(Arc::new(Charge::sample())))?;
    delays(started, waiting).await
}

/// The action runs in one process, and others wait for it in another: two coordinators over the
/// same records.
async fn coordinated<S: Store + 'static>(
    stores: [&Arc<S>; 2],
    waiters: usize,
) -> Result<[f64; 2], BoxError> {
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    let operation = |store: &Arc<S>| -> Result<Operation, BoxError> {
        Ok(Coordinator::builder(Arc::clone(store)).build()?.operation("payment.charge"))
    };
    let [here, there] = stores;
    let (here, there) = (operation(here)?, operation(there)?);
    let (finish, finished) = oneshot::channel::<()>();
    let key = key_text(ROUND.fetch_add(1, Ordering::Relaxed));
    let call = there.key(&key).fingerprint(FINGERPRINT);
    let action = tokio::spawn(call.run(|_| async {
        finished.await?;
        Ok::<_, oneshot::error::RecvError>(Charge::sample())
    }));
    tokio::time::sleep(SETTLE).await;
    let mut waiting = JoinSet::new();
    for _ in 0..waiters {
        let call = here.key(&key).fingerprint(FINGERPRINT);
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
async fn delays(
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
