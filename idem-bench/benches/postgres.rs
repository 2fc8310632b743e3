//! The verbs of the Postgres store beside the bare statements, on the same server.

use std::time::{Duration, Instant};

use idem_bench::{Better, BoxError, Comparison, Options, fresh_attempts, time};
use idem_conformance::servers;
use idem_core::{Attempt, Lease, State, Store};
use idem_postgres::{PostgresStore, Purge, TransactionRequest};
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
        let each = options.count(640, 64) / callers;
        let bench = Bench { runtime: &runtime, pool: &pool, store: &store, callers, each };
        bench.apart(&options)?;
        bench.together(&options)?;
    }
    during_a_purge(&runtime, &pool, &options)
}

/// One pool for all: what differs is the statements alone.
async fn connect(url: &str) -> sqlx::Result<PgPool> {
    let pool = PgPoolOptions::new().max_connections(32).test_before_acquire(false);
    let pool = pool.connect(url).await?;
    sqlx::raw_sql(
        "CREATE TABLE bare (key bytea PRIMARY KEY, answer bytea) WITH (fillfactor = 70);
         CREATE TABLE wide (
             fence bigint NOT NULL, lease_until timestamptz NOT NULL,
             retain_until timestamptz NOT NULL, attempts integer NOT NULL, payload_bytes integer,
             format smallint NOT NULL, phase text NOT NULL, key bytea PRIMARY KEY,
             holder bytea NOT NULL, fingerprint bytea, operation text NOT NULL, tenant text,
             payload bytea
         ) WITH (fillfactor = 70);
         CREATE TABLE orders (id bigserial PRIMARY KEY, note text)",
    )
    .execute(&pool)
    .await?;
    Ok(pool)
}

/// What a key and an answer need.
const BARE: [&str; 3] = [
    "INSERT INTO bare (key) VALUES ($1) RETURNING key",
    "UPDATE bare SET answer = $2 WHERE key = $1 RETURNING key",
    "SELECT answer FROM bare WHERE key = $1",
];

/// The store's row, written and read without a question.
const WIDE: [&str; 3] = [
    "INSERT INTO wide (key, operation, format, phase, fingerprint, holder, fence, attempts,
                       lease_until, retain_until)
     VALUES ($1, 'bench', 1, 'pending', $1, substr($1, 1, 16), 1, 1,
             clock_timestamp() + interval '30 seconds', clock_timestamp() + interval '1 day')
     RETURNING phase, fingerprint, holder, fence, attempts, payload",
    "UPDATE wide
     SET phase = 'completed', payload = $2, payload_bytes = octet_length($2),
         retain_until = clock_timestamp() + interval '1 day'
     WHERE key = $1 RETURNING key",
    "SELECT phase, fingerprint, holder, fence, attempts, payload FROM wide WHERE key = $1",
];

struct Bench<'a> {
    runtime: &'a Runtime,
    pool: &'a PgPool,
    store: &'a PostgresStore,
    callers: usize,
    each: usize,
}

impl Bench<'_> {
    fn attempts(&self) -> Result<Vec<Vec<Attempt>>, BoxError> {
        fresh_attempts(self.callers, self.each)
    }

    fn apart(&self, options: &Options) -> Result<(), BoxError> {
        let targets = [Some(">= 0.90 (0.75 at 8)"), None, Some(">= 0.60")];
        let title = format!("postgres, reserve and complete apart, {} callers", self.callers);
        Comparison::new(title, "us", Better::Higher, ["reserve", "complete", "replay"])
            .way("INSERT, UPDATE, SELECT", || self.bare(BARE))
            .way("the same of the whole row", || self.bare(WIDE))
            .way_with_targets("PostgresStore", targets, || self.idem())
            .run(options)
    }

    fn bare(&self, [insert, update, select]: [&'static str; 3]) -> Result<[f64; 3], BoxError> {
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
        Ok([run(insert, false)?, run(update, true)?, run(select, false)?])
    }

    fn reserve(&self) -> Result<f64, BoxError> {
        self.reserve_all(self.attempts()?)
    }

    fn reserve_all(&self, attempts: Vec<Vec<Attempt>>) -> Result<f64, BoxError> {
        let store = self.store.clone();
        time(self.runtime, attempts, move |attempt: Attempt| {
            let store = store.clone();
            async move {
                let record = store.reserve(&attempt).await?;
                if record.holder == attempt.id() { Ok(()) } else { Err("not granted".into()) }
            }
        })
    }

    fn idem(&self) -> Result<[f64; 3], BoxError> {
        let attempts = self.attempts()?;
        let retries: Vec<Vec<Attempt>> =
            attempts.iter().map(|all| all.iter().map(again).collect()).collect();
        let leases: Vec<Vec<Lease>> =
            attempts.iter().map(|all| all.iter().map(lease).collect()).collect();
        let reserve = self.reserve_all(attempts)?;
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
        let title = format!("postgres, with the application's write, {} callers", self.callers);
        let targets = [Some(">= 0.65 (0.55 at 8)")];
        Comparison::new(title, "us", Better::Higher, ["fresh"])
            .way("BEGIN, INSERT, COMMIT", || Ok([self.by_hand(&[])?]))
            .way("and one bare statement", || Ok([self.by_hand(&BARE[..1])?]))
            .way("and two bare statements", || Ok([self.by_hand(&BARE[..2])?]))
            .way_with_targets("PostgresStore::transaction", targets, || Ok([self.all_in_one()?]))
            .way("reserve, and complete_in", || Ok([self.complete_inside()?]))
            .run(options)
    }

    /// The application's transaction, with more statements in it.
    fn by_hand(&self, more: &'static [&'static str]) -> Result<f64, BoxError> {
        let pool = self.pool.clone();
        time(self.runtime, self.attempts()?, move |attempt: Attempt| {
            let pool = pool.clone();
            async move {
                let mut tx = pool.begin().await?;
                for (at, sql) in more.iter().enumerate() {
                    let query = sqlx::query(*sql).bind(attempt.key().digest().as_slice());
                    let query = if at == 0 { query } else { query.bind(&ANSWER[..]) };
                    query.fetch_one(&mut *tx).await?;
                }
                order(&mut tx).await?;
                Ok(tx.commit().await?)
            }
        })
    }

    fn all_in_one(&self) -> Result<f64, BoxError> {
        let (store, pool) = (self.store.clone(), self.pool.clone());
        time(self.runtime, self.attempts()?, move |attempt: Attempt| {
            let (store, pool) = (store.clone(), pool.clone());
            async move {
                let (key, fingerprint) = (attempt.key().clone(), attempt.fingerprint());
                let request = TransactionRequest::new(key, fingerprint);
                store.transaction(&pool, &request, |on, _| Box::pin(order(on))).await?;
                Ok(())
            }
        })
    }

    fn complete_inside(&self) -> Result<f64, BoxError> {
        let (store, pool) = (self.store.clone(), self.pool.clone());
        time(self.runtime, self.attempts()?, move |attempt: Attempt| {
            let (store, pool) = (store.clone(), pool.clone());
            async move {
                store.reserve(&attempt).await?;
                let mut tx = pool.begin().await?;
                let id = order(&mut tx).await?;
                let payload = id.to_string().into();
                store.complete_in(&mut tx, &lease(&attempt), &payload, DAY).await?;
                Ok(tx.commit().await?)
            }
        })
    }
}

/// How many rows are past their retention in each turn.
const EXPIRED: usize = 60_000;

/// Reserves of 8 callers alone, and while as many rows as above are purged from their table.
fn during_a_purge(runtime: &Runtime, pool: &PgPool, options: &Options) -> Result<(), BoxError> {
    let expired = options.count(EXPIRED, 2_000);
    let builder = PostgresStore::builder().table("purged");
    let store = &runtime.block_on(builder.on_pool(pool.clone()))?;
    let each = options.count(3_200, 64) / 8;
    let bench = Bench { runtime, pool, store, callers: 8, each };
    let targets = [Some(">= 0.90"), Some("<= 33 us")];
    Comparison::new("postgres, during a purge", "us", Better::Higher, ["reserve", "a row"])
        .way("alone; one DELETE", || {
            let reserve = bench.reserve()?;
            runtime.block_on(expire(pool, expired))?;
            let began = Instant::now();
            let delete = "DELETE FROM purged WHERE retain_until <= clock_timestamp()";
            let deleted = runtime.block_on(sqlx::query(delete).execute(pool))?.rows_affected();
            Ok([reserve, each_of(began.elapsed(), deleted)?])
        })
        .way_with_targets("PostgresStore::purge", targets, || {
            runtime.block_on(expire(pool, expired))?;
            let purging = store.clone();
            let purge = runtime.spawn(async move {
                let began = Instant::now();
                let report = purging.purge(Purge::default()).await?;
                Ok::<_, BoxError>((began.elapsed(), report))
            });
            let mut reserves = Vec::new();
            while reserves.is_empty() || !purge.is_finished() {
                reserves.push(bench.reserve()?);
            }
            let (took, report) = runtime.block_on(purge)??;
            if !report.complete {
                return Err("another purge was under way".into());
            }
            // The last one may have outlived the purge.
            let during = reserves.get(..(reserves.len() - 1).max(1)).unwrap_or_default();
            let reserve = during.iter().sum::<f64>() / f64::from(u32::try_from(during.len())?);
            Ok([reserve, each_of(took, report.deleted)?])
        })
        .run(options)
}

/// Microseconds for each of so many.
fn each_of(took: Duration, many: u64) -> Result<f64, BoxError> {
    Ok(took.as_secs_f64() * 1e6 / f64::from(u32::try_from(many)?))
}

/// Rows that are past their retention, beside those that are not.
async fn expire(pool: &PgPool, rows: usize) -> Result<(), BoxError> {
    let rows = i64::try_from(rows)?;
    sqlx::query(
        "INSERT INTO purged (key, operation, format, phase, fingerprint, holder, fence, attempts,
                             lease_until, retain_until, payload, payload_bytes)
         SELECT sha256(uuid_send(gen_random_uuid())), 'bench', 1, 'completed', sha256('f'),
                substr(sha256('h'), 1, 16), 1, 1, now() - interval '2 days',
                now() - interval '1 day', $2, octet_length($2)
         FROM generate_series(1, $1)",
    )
    .bind(rows)
    .bind(&ANSWER[..])
    .execute(pool)
    .await?;
    Ok(())
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
