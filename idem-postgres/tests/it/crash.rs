//! A worker that is killed at every step, and a connection that is cut at every message: each order
//! is there once, with its entry in the ledger, as soon as somebody asks again.

use std::time::{Duration, Instant};

use idem_conformance::proxy::{Fault, Proxy};
use idem_conformance::worker::{self, Worker};
use idem_core::{BoxError, Store, Verdict};
use idem_postgres::{
    PostgresStore, Reservation, Rivals, Schema, TransactionError, TransactionRequest,
};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgConnection, PgPool};

use crate::database::{Database, HOUR, REQUEST, address, attempt, key};

/// The lease of what is reserved outside the transaction.
const LEASE: Duration = Duration::from_millis(300);
/// Far longer than a retry takes once the lease has ended.
const PATIENCE: Duration = Duration::from_secs(30);
const AMOUNT: i64 = 42;

/// How an order is placed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// All in one, by `transaction`.
    Whole,
    /// All in one, by its pieces.
    Pieces,
    /// Reserved outside, completed inside.
    Apart,
}

const MODES: [Mode; 3] = [Mode::Whole, Mode::Pieces, Mode::Apart];

/// Where a worker is when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begin,
    Reserved,
    Ordered,
    Entered,
    Completed,
    Committed,
}

const STEPS: [Step; 6] =
    [Step::Begin, Step::Reserved, Step::Ordered, Step::Entered, Step::Completed, Step::Committed];

/// Called at each step; a worker that is to be killed there does not come back from it.
type At<'a> = &'a (dyn Fn(Step) + Sync);

async fn setup() -> Database {
    let database = Database::fresh().await;
    let _store = database.store().await;
    database
        .run(
            "CREATE TABLE orders (id bigserial PRIMARY KEY, key text NOT NULL, amount bigint);
             CREATE TABLE ledger (order_id bigint REFERENCES orders, amount bigint)",
        )
        .await;
    database
}

async fn write(on: &mut PgConnection, text: &str, at: At<'_>) -> sqlx::Result<i64> {
    let order = "INSERT INTO orders (key, amount) VALUES ($1, $2) RETURNING id";
    let id: i64 = sqlx::query_scalar(order).bind(text).bind(AMOUNT).fetch_one(&mut *on).await?;
    at(Step::Ordered);
    let entry = sqlx::query("INSERT INTO ledger VALUES ($1, $2)").bind(id).bind(AMOUNT);
    entry.execute(on).await?;
    at(Step::Entered);
    Ok(id)
}

/// Places the order, or fails somewhere. `Ok(false)`: another has the key.
async fn place(
    mode: Mode,
    store: &PostgresStore,
    pool: &PgPool,
    text: &str,
    at: At<'_>,
) -> Result<bool, BoxError> {
    at(Step::Begin);
    let placed = match mode {
        Mode::Whole => whole(store, pool, text, at).await?,
        Mode::Pieces => pieces(store, pool, text, at).await?,
        Mode::Apart => apart(store, pool, text, at).await?,
    };
    at(Step::Committed);
    Ok(placed)
}

async fn whole(
    store: &PostgresStore,
    pool: &PgPool,
    text: &str,
    at: At<'_>,
) -> Result<bool, BoxError> {
    // What an action borrows has to live for ever; the steps inside are those of the pieces.
    let request = TransactionRequest::new(key(text), REQUEST).rivals(Rivals::Reject);
    at(Step::Reserved);
    let placed = store
        .transaction(pool, &request, |on, _| {
            let text = text.to_owned();
            Box::pin(async move { write(on, &text, &|_| ()).await })
        })
        .await;
    match placed {
        Ok(_) => Ok(true),
        Err(TransactionError::InProgress { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn pieces(
    store: &PostgresStore,
    pool: &PgPool,
    text: &str,
    at: At<'_>,
) -> Result<bool, BoxError> {
    let mut tx = pool.begin().await?;
    let lease = match store.reserve_in(&mut tx, &attempt(text), Rivals::Reject).await? {
        Reservation::Held { lease, .. } => lease,
        Reservation::Replay(_) => return Ok(true),
        _ => return Ok(false),
    };
    at(Step::Reserved);
    let id = write(&mut tx, text, at).await?;
    store.complete_in(&mut tx, &lease, &id.to_string().into(), HOUR).await?;
    at(Step::Completed);
    tx.commit().await?;
    Ok(true)
}

async fn apart(
    store: &PostgresStore,
    pool: &PgPool,
    text: &str,
    at: At<'_>,
) -> Result<bool, BoxError> {
    let a = attempt(text).lease(LEASE);
    let lease = match store.reserve(&a).await?.verdict(&a)? {
        Verdict::Acquired { lease, .. } => lease,
        Verdict::Replay(_) => return Ok(true),
        _ => return Ok(false),
    };
    at(Step::Reserved);
    let mut tx = pool.begin().await?;
    let id = write(&mut tx, text, at).await?;
    store.complete_in(&mut tx, &lease, &id.to_string().into(), HOUR).await?;
    at(Step::Completed);
    tx.commit().await?;
    Ok(true)
}

/// Asks again until the order is placed, which takes no longer than a lease and a little.
async fn ask_again(mode: Mode, store: &PostgresStore, pool: &PgPool, text: &str) {
    let since = Instant::now();
    while !place(mode, store, pool, text, &|_| ()).await.unwrap() {
        assert!(since.elapsed() < PATIENCE, "{mode:?}: {text} is stuck");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Each of so many keys has one order, and each order one entry of the same amount.
async fn adds_up(database: &Database, keys: i64) {
    let number = async |sql: &str| database.number(sql).await;
    assert_eq!(number("SELECT count(*) FROM orders").await, keys);
    assert_eq!(number("SELECT count(DISTINCT key) FROM orders").await, keys);
    let both = "SELECT count(*) FROM orders JOIN ledger ON order_id = id
                WHERE orders.amount = ledger.amount";
    assert_eq!(number(both).await, keys);
    assert_eq!(number("SELECT sum(amount)::bigint FROM ledger").await, keys * AMOUNT);
    let done = "SELECT count(*) FROM idem_record WHERE phase = 'completed'";
    assert_eq!(number(done).await, keys);
}

/// Cuts the connection at the n-th message of each mode, in each way, `rounds` times.
async fn cut_at_every_message(rounds: usize) {
    let database = setup().await;
    let store = PostgresStore::builder().on_pool(database.pool.clone()).await.unwrap();
    let (mut keys, mut cut) = (0, 0);
    for round in 0..rounds {
        for mode in MODES {
            for fault in [Fault::ResetBefore, Fault::ResetAfter, Fault::Truncate(3)] {
                // A transaction takes about twenty messages, with the statements' preparation.
                for message in 0..24 {
                    let text = format!("{mode:?} {fault:?} {message} {round}");
                    let proxy = Proxy::start(address(&database.url)).await.unwrap();
                    let (_, name) = database.url.rsplit_once('/').unwrap();
                    let url = format!("postgres://postgres@{}/{name}", proxy.addr());
                    let pool = PgPoolOptions::new().max_connections(1).connect(&url).await.unwrap();
                    let builder = PostgresStore::builder().schema(Schema::None).hints(false);
                    let worker = builder.on_pool(pool.clone()).await.unwrap();
                    (0..message).for_each(|_| proxy.next(Fault::Pass));
                    proxy.next(fault);
                    cut += i64::from(place(mode, &worker, &pool, &text, &|_| ()).await.is_err());
                    ask_again(mode, &store, &database.pool, &text).await;
                    keys += 1;
                    pool.close().await;
                }
            }
        }
    }
    adds_up(&database, keys).await;
    assert!(cut * 3 > keys, "only {cut} of {keys} were cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_at_any_message_loses_and_doubles_nothing() {
    cut_at_every_message(1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 648 cut connections"]
async fn connections_cut_again_and_again_lose_and_double_nothing() {
    cut_at_every_message(3).await;
}

/// Starts a worker, and kills it at the step.
async fn kill_worker_at(step: Step, mode: Mode, url: &str, text: &str) {
    let told = [url, &format!("{mode:?}"), &format!("{step:?}"), text];
    let mut worker = Worker::start("crash::worker", &told).unwrap();
    worker.is_here().await.unwrap();
    worker.kill().await.unwrap();
}

/// The worker's own process.
#[tokio::test]
async fn worker() {
    let Some([url, mode, until, text]) = worker::told() else { return };
    let mode = MODES.into_iter().find(|known| format!("{known:?}") == mode).unwrap();
    let pool = PgPool::connect(&url).await.unwrap();
    let store = PostgresStore::builder().on_pool(pool.clone()).await.unwrap();
    let at = |step: Step| {
        if format!("{step:?}") == until {
            worker::stop_here();
        }
    };
    place(mode, &store, &pool, &text, &at).await.unwrap();
}

async fn kill_at_every_step(rounds: usize) {
    let database = setup().await;
    let store = database.store().await;
    let mut keys = 0;
    for round in 0..rounds {
        for mode in [Mode::Pieces, Mode::Apart] {
            for step in STEPS {
                let text = format!("{mode:?} {step:?} {round}");
                kill_worker_at(step, mode, &database.url, &text).await;
                ask_again(mode, &store, &database.pool, &text).await;
                keys += 1;
            }
        }
    }
    adds_up(&database, keys).await;
}

// C24, C33, C126
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_at_any_step_loses_and_doubles_nothing() {
    kill_at_every_step(1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 300 killed workers"]
async fn workers_killed_again_and_again_lose_and_double_nothing() {
    kill_at_every_step(25).await;
}
