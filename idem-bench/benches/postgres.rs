//! The verbs of the Postgres store beside the bare statements, on the same server.

use std::time::Duration;

use idem_bench::{Better, BoxError, Comparison, Options, time};
use idem_conformance::servers;
use idem_core::{Attempt, Fingerprint, Key, Lease, Scope, State, Store};
use idem_postgres::{PostgresStore, TransactionRequest};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::Runtime;

const DAY: Duration = Duration::from_hours(24);
/// The size of an answer.
const ANSWER: [u8; 200] = [7; 200];

fn main() -> Result<(), BoxError> {
    let options = Options::from_args();
    let runtime = Runtime::new()?;
    let server = runtime.block_on(async { servers::postgres().setting("fsync", "on").await })?;
    let pool = runtime.block_on(connect(server.url()))?;
    let store = runtime.block_on(PostgresStore::builder().on_pool(pool.clone()))?;
    for callers in [1, 8, 32] {
        let each = options.count(1_600, 64) / callers;
        let bench = Bench { runtime: &runtime, pool: &pool, store: &store, callers, each };
        bench.apart(&options)?;
        bench.together(&options)?;
    }
    Ok(())
}

/// One pool for all: what differs is the statements alone.
async fn connect(url: &str) -> sqlx::Result<PgPool> {
    let pool = PgPoolOptions::new().max_connections(32).test_before_acquire(false);
    let pool = pool.connect(url).await?;
    sqlx::raw_sql(
        "CREATE TABLE bare (key bytea PRIMARY KEY, answer bytea) WITH (fillfactor = 70);
         CREATE TABLE orders (id bigserial PRIMARY KEY, note text)",
    )
    .execute(&pool)
    .await?;
    Ok(pool)
}

struct Bench<'a> {
    runtime: &'a Runtime,
    pool: &'a PgPool,
    store: &'a PostgresStore,
    callers: usize,
    each: usize,
}

impl Bench<'_> {
    fn attempts(&self) -> Result<Vec<Vec<Attempt>>, BoxError> {
        // Keys that no turn before had.
        let key = |_| {
            let text = format!("{:?}", idem_core::AttemptId::random());
            Ok(Attempt::new(
                Key::new(Scope::new("bench")?, &text)?,
                Fingerprint::from_bytes([7; 32]),
            ))
        };
        let caller = |_| (0..self.each).map(key).collect::<Result<Vec<_>, BoxError>>();
        (0..self.callers).map(caller).collect()
    }

    fn apart(&self, options: &Options) -> Result<(), BoxError> {
        let targets = [Some(">= 0.90 (0.75 at 8)"), None, Some(">= 0.60")];
        let title = format!("postgres, reserve and complete apart, {} callers", self.callers);
        Comparison::new(title, "us", Better::Higher, ["reserve", "complete", "replay"])
            .way("INSERT, UPDATE, SELECT", || self.bare())
            .way_with_targets("PostgresStore", targets, || self.idem())
            .run(options)
    }

    fn bare(&self) -> Result<[f64; 3], BoxError> {
        let keys: Vec<Vec<Vec<u8>>> = self
            .attempts()?
            .into_iter()
            .map(|all| all.iter().map(|one| one.key().digest().to_vec()).collect())
            .collect();
        let run = |sql: &'static str, answers: bool| {
            let pool = self.pool.clone();
            time(self.runtime, keys.clone(), move |key: Vec<u8>| {
                let pool = pool.clone();
                async move {
                    let query = sqlx::query(sql).bind(key);
                    let query = if answers { query.bind(&ANSWER[..]) } else { query };
                    query.fetch_one(&pool).await?;
                    Ok(())
                }
            })
        };
        Ok([
            run("INSERT INTO bare (key) VALUES ($1) RETURNING key", false)?,
            run("UPDATE bare SET answer = $2 WHERE key = $1 RETURNING key", true)?,
            run("SELECT answer FROM bare WHERE key = $1", false)?,
        ])
    }

    fn idem(&self) -> Result<[f64; 3], BoxError> {
        let attempts = self.attempts()?;
        let retries: Vec<Vec<Attempt>> =
            attempts.iter().map(|all| all.iter().map(again).collect()).collect();
        let leases: Vec<Vec<Lease>> =
            attempts.iter().map(|all| all.iter().map(lease).collect()).collect();
        let store = self.store.clone();
        let reserve = time(self.runtime, attempts, move |attempt: Attempt| {
            let store = store.clone();
            async move {
                let record = store.reserve(&attempt).await?;
                if record.holder == attempt.id() { Ok(()) } else { Err("not granted".into()) }
            }
        })?;
        let store = self.store.clone();
        let complete = time(self.runtime, leases, move |lease: Lease| {
            let store = store.clone();
            async move { Ok(store.complete(&lease, &ANSWER.to_vec().into(), DAY).await?) }
        })?;
        let store = self.store.clone();
        let replay = time(self.runtime, retries, move |retry: Attempt| {
            let store = store.clone();
            async move {
                match store.reserve(&retry).await?.state {
                    State::Completed { payload: Some(_) } => Ok(()),
                    other => Err(format!("not replayed: {other:?}").into()),
                }
            }
        })?;
        Ok([reserve, complete, replay])
    }

    fn together(&self, options: &Options) -> Result<(), BoxError> {
        let title = format!("postgres, one transaction, {} callers", self.callers);
        let targets = [Some(">= 0.65 (0.55 at 8)")];
        Comparison::new(title, "us", Better::Higher, ["fresh"])
            .way("BEGIN, INSERT, COMMIT", || {
                let pool = self.pool.clone();
                let cost = time(self.runtime, self.attempts()?, move |_| {
                    let pool = pool.clone();
                    async move {
                        let mut tx = pool.begin().await?;
                        order(&mut tx).await?;
                        Ok(tx.commit().await?)
                    }
                })?;
                Ok([cost])
            })
            .way_with_targets("PostgresStore::transaction", targets, || {
                let (store, pool) = (self.store.clone(), self.pool.clone());
                let cost = time(self.runtime, self.attempts()?, move |attempt: Attempt| {
                    let (store, pool) = (store.clone(), pool.clone());
                    async move {
                        let (key, fingerprint) = (attempt.key().clone(), attempt.fingerprint());
                        let request = TransactionRequest::new(key, fingerprint);
                        store.transaction(&pool, &request, |on, _| Box::pin(order(on))).await?;
                        Ok(())
                    }
                })?;
                Ok([cost])
            })
            .run(options)
    }
}

async fn order(on: &mut sqlx::PgConnection) -> sqlx::Result<i64> {
    let insert = "INSERT INTO orders (note) VALUES ('book') RETURNING id";
    sqlx::query_scalar(insert).fetch_one(on).await
}

fn again(attempt: &Attempt) -> Attempt {
    Attempt::new(attempt.key().clone(), attempt.fingerprint())
}

/// The lease that the attempt will be granted. A store does not check its fence.
fn lease(attempt: &Attempt) -> Lease {
    Lease::new(attempt.key().clone(), attempt.id(), idem_core::Fence(1))
}
