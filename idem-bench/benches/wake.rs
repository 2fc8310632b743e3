//! How soon those who wait for a key have its answer, on the memory store and over Postgres.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use idem_bench::wake::{SETTLE, coordinated, delays, in_rounds};
use idem_bench::{Better, BoxError, Charge, Comparison, Options, key_text};
use idem_conformance::servers;
use idem_memory::MemoryStore;
use idem_postgres::PostgresStore;
use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

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
            in_rounds(&options, || {
                let store = Arc::new(MemoryStore::new());
                runtime.block_on(coordinated(store.clone(), store, &key_text(1), waiters))
            })
        })
        .run(&options)?;
    }
    over_postgres(&options, runtime)
}

/// Each has a key of its own.
static ROUND: AtomicUsize = AtomicUsize::new(0);

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
            in_rounds(options, || {
                let key = key_text(ROUND.fetch_add(1, Ordering::Relaxed));
                runtime.block_on(coordinated(here.clone(), there.clone(), &key, waiters))
            })
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
