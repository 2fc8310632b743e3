//! Orders that are placed once, however often they are asked for and whatever crashes.
//!
//! `cargo run -p idem-postgres --example orders` starts a Postgres of its own. Twelve customers send
//! the same request four times each, at once. Half of the workers die on the way, at any moment, and
//! their requests are sent again.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use idem_conformance::servers;
use idem_core::{Fingerprint, Key, Scope};
use idem_postgres::{Committed, PostgresStore, TransactionError, TransactionRequest};
use sqlx::{PgConnection, PgPool};
use tokio::task::JoinSet;

const CUSTOMERS: u64 = 12;
const REQUESTS_EACH: u64 = 4;

/// What the customers' requests came to.
#[derive(Debug, Default)]
struct Seen {
    fresh: u64,
    replayed: u64,
    crashed: u64,
    /// Every answer that a customer was given.
    answers: BTreeMap<u64, Vec<i64>>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = servers::postgres().own().await?;
    let pool = PgPool::connect(server.url()).await?;
    sqlx::raw_sql(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, customer bigint, amount bigint);
         CREATE TABLE ledger (order_id bigint REFERENCES orders, amount bigint)",
    )
    .execute(&pool)
    .await?;
    let store = PostgresStore::builder().on_pool(pool.clone()).await?;

    let seen = serve(&store, &pool).await?;
    report(&pool, &seen).await
}

/// One request: the order, its entry in the ledger and the record are committed together.
async fn place(
    store: &PostgresStore,
    pool: &PgPool,
    customer: u64,
) -> Result<Committed<i64>, Box<TransactionError<sqlx::Error>>> {
    let amount = i64::try_from(customer).unwrap_or(i64::MAX).saturating_mul(100);
    let key = Scope::new("order.place").and_then(|scope| Key::new(scope, &customer.to_string()));
    let (Ok(key), Ok(fingerprint)) = (key, Fingerprint::of(&(customer, amount))) else {
        unreachable!("a number makes a key and a fingerprint")
    };
    let request = TransactionRequest::new(key, fingerprint);
    let placed = store.transaction(pool, &request, |on, _| {
        Box::pin(async move { write(on, customer, amount).await })
    });
    placed.await.map_err(Box::new)
}

async fn write(on: &mut PgConnection, customer: u64, amount: i64) -> sqlx::Result<i64> {
    let order = "INSERT INTO orders (customer, amount) VALUES ($1, $2) RETURNING id";
    let id: i64 = sqlx::query_scalar(order)
        .bind(i64::try_from(customer).unwrap_or(i64::MAX))
        .bind(amount)
        .fetch_one(&mut *on)
        .await?;
    // Long enough for the others to arrive, and for a crash.
    tokio::time::sleep(Duration::from_millis(20)).await;
    sqlx::query("INSERT INTO ledger VALUES ($1, $2)").bind(id).bind(amount).execute(on).await?;
    Ok(id)
}

/// All requests at once; every other worker crashes the first time.
async fn serve(store: &PostgresStore, pool: &PgPool) -> Result<Seen, Box<dyn Error>> {
    let mut requests = JoinSet::new();
    for number in 0..CUSTOMERS * REQUESTS_EACH {
        let (store, pool, customer) = (store.clone(), pool.clone(), number % CUSTOMERS + 1);
        requests.spawn(async move {
            let mut crashes = 0;
            if number % 2 == 0 {
                // The worker is gone in the middle of whatever it does: before, inside or after
                // the transaction.
                let lives = Duration::from_millis(number * 3 % 40);
                let worker = tokio::time::timeout(lives, place(&store, &pool, customer));
                crashes = u64::from(worker.await.is_err());
            }
            (customer, crashes, place(&store, &pool, customer).await)
        });
    }
    let mut seen = Seen::default();
    while let Some(done) = requests.join_next().await {
        let (customer, crashes, placed) = done?;
        let placed = placed?;
        seen.crashed += crashes;
        *(if placed.replayed { &mut seen.replayed } else { &mut seen.fresh }) += 1;
        seen.answers.entry(customer).or_default().push(placed.value);
    }
    Ok(seen)
}

/// Prints what is in the database, and fails if it does not add up.
async fn report(pool: &PgPool, seen: &Seen) -> Result<(), Box<dyn Error>> {
    let rows: Vec<(i64, i64, i64, i64)> = sqlx::query_as(
        "SELECT customer, count(DISTINCT id), count(order_id), sum(ledger.amount)::bigint
         FROM orders LEFT JOIN ledger ON order_id = id GROUP BY customer ORDER BY customer",
    )
    .fetch_all(pool)
    .await?;
    println!("customer  orders  entries  charged  answers");
    for (customer, orders, entries, charged) in &rows {
        let answers = seen.answers.get(&customer.unsigned_abs()).cloned().unwrap_or_default();
        println!("{customer:>8}  {orders:>6}  {entries:>7}  {charged:>7}  {answers:?}");
        let alike = answers.windows(2).all(|two| two.first() == two.last());
        if (*orders, *entries, *charged) != (1, 1, customer * 100) || !alike {
            return Err(format!("customer {customer} does not add up").into());
        }
    }
    let Seen { fresh, replayed, crashed, .. } = seen;
    println!("{fresh} placed, {replayed} replayed, {crashed} workers crashed");
    if rows.len() as u64 != CUSTOMERS {
        return Err(format!("{} of {CUSTOMERS} customers have an order", rows.len()).into());
    }
    Ok(())
}
