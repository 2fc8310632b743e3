//! The conformance suite, with virtual time on a real server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_conformance::proxy::{self, Proxy};
use idem_conformance::{Clock, Damage, Fault, Harness, HookError, Options, Skew};
use idem_core::{Attempt, BoxError, Key, Lease, Record, Store, StoreError, Watch};
use idem_postgres::{Builder, PostgresStore, Purge};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};
use tokio::time::{sleep, timeout};

use crate::database::{Database, HOUR, acquire, address, attempt};
use crate::pgbouncer::Pgbouncer;
use crate::virtual_time::{self, Timed};

struct Postgres {
    timed: Mutex<OwnedMutexGuard<Timed>>,
    database: Database,
    /// Where the stores connect: the server, or a pooler in front of it.
    front: String,
    _pooler: Option<Pgbouncer>,
    /// What is in the message of a call, and not in one that keeps a connection alive.
    needle: &'static str,
    /// How a store is made; a restart makes another.
    builder: Builder,
    store: RwLock<Arc<Fragile>>,
    proxy: Proxy,
}

impl Postgres {
    async fn new() -> Self {
        Self::directly(PostgresStore::builder(), "sqlx_s_").await
    }

    /// Each call is one message, with the statement in it.
    async fn unprepared() -> Self {
        Self::directly(PostgresStore::builder().prepared(false), "idem_record").await
    }

    async fn directly(builder: Builder, needle: &'static str) -> Self {
        let timed = virtual_time::server().await;
        let database = Database::on(timed.server.url()).await;
        let front = database.url.clone();
        Self::in_front(timed, database, front, None, builder, needle).await
    }

    /// Through pgbouncer, which hands out connections by transaction. Hints come past it.
    async fn behind_pgbouncer(prepared: bool) -> Self {
        let timed = virtual_time::server().await;
        let database = Database::on(timed.server.url()).await;
        let needle = if prepared { "sqlx_s_" } else { "idem_record" };
        let pooler = Pgbouncer::start(timed.server.port(), prepared);
        let front = pooler.url_of(&database.url);
        let listen_at = database.url.parse().unwrap();
        let builder = PostgresStore::builder().prepared(prepared).listen_at(listen_at);
        Self::in_front(timed, database, front, Some(pooler), builder, needle).await
    }

    async fn in_front(
        timed: OwnedMutexGuard<Timed>,
        database: Database,
        front: String,
        pooler: Option<Pgbouncer>,
        builder: Builder,
        needle: &'static str,
    ) -> Self {
        let proxy = Proxy::start(address(&front)).await.unwrap();
        let store = Fragile::new(&builder, &front, &proxy).await;
        let (timed, store) = (Mutex::new(timed), RwLock::new(Arc::new(store)));
        Self { timed, database, front, _pooler: pooler, needle, builder, store, proxy }
    }

    fn fragile(&self) -> Arc<Fragile> {
        Arc::clone(&self.store.read().unwrap())
    }
}

/// A store of which one verb can be made to fail: that verb goes through a proxy.
struct Fragile {
    direct: PostgresStore,
    /// On one connection, so that the fault meets the verb and nothing else.
    through_proxy: PostgresStore,
    armed: AtomicBool,
    /// Held while a fault is laid or met, so that no other call meets it.
    one: Mutex<()>,
}

impl Fragile {
    async fn new(builder: &Builder, url: &str, proxy: &Proxy) -> Self {
        let direct = builder.clone().connect(url).await.unwrap();
        let (_, database) = url.rsplit_once('/').unwrap();
        let via = format!("postgres://postgres@{}/{database}", proxy.addr());
        let through_proxy = builder.clone().max_connections(1).connect(&via).await.unwrap();
        Self { direct, through_proxy, armed: AtomicBool::new(false), one: Mutex::new(()) }
    }

    /// The store for the next verb, and what keeps others away while it fails.
    async fn next(&self) -> (&PostgresStore, Option<MutexGuard<'_, ()>>) {
        if self.armed.load(Ordering::SeqCst) {
            let alone = self.one.lock().await;
            if self.armed.swap(false, Ordering::SeqCst) {
                return (&self.through_proxy, Some(alone));
            }
        }
        (&self.direct, None)
    }

    /// Every verb once, so that its statement is prepared and the next message is the call itself.
    async fn warm_up(&self) -> Result<(), StoreError> {
        let store = &self.through_proxy;
        let lease =
            acquire(store, &attempt(&format!("{:?}", idem_core::AttemptId::random()))).await;
        store.renew(&lease, HOUR).await?;
        store.complete(&lease, &Bytes::new(), HOUR).await?;
        assert!(store.release(&lease).await.unwrap_err().is_lease_lost());
        Ok(())
    }
}

#[async_trait]
impl Store for Fragile {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        let (store, _alone) = self.next().await;
        store.reserve(attempt).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        let (store, _alone) = self.next().await;
        store.renew(lease, duration).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        let (store, _alone) = self.next().await;
        store.complete(lease, payload, retention).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let (store, _alone) = self.next().await;
        store.release(lease).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.direct.watch(key).await
    }
}

#[async_trait]
impl Harness for Postgres {
    fn store(&self) -> Arc<dyn Store> {
        self.fragile()
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    async fn advance(&self, by: Duration) -> Result<(), HookError> {
        self.timed.lock().await.clock.advance(by).map_err(failed)
    }

    async fn fork(&self) -> Result<Arc<dyn Store>, HookError> {
        Ok(Arc::new(self.builder.clone().connect(&self.front).await.map_err(failed)?))
    }

    async fn skewed(&self, _skew: Skew) -> Result<Arc<dyn Store>, HookError> {
        // The crate reads no clock but the monotonic one: every client's clock is as wrong.
        self.fork().await
    }

    async fn corrupt(&self, key: &Key, damage: Damage) -> Result<(), HookError> {
        let set = match damage {
            Damage::Garbage => r"phase = E'\x01', holder = '\xa5', fingerprint = '\xa5a5'",
            Damage::Truncated => {
                "fingerprint = CASE WHEN payload IS NULL THEN substr(fingerprint, 1, 31)
                                    ELSE fingerprint END,
                 payload = substr(payload, 1, octet_length(payload) - 1)"
            }
            Damage::NewerFormat => "format = format + 1",
            Damage::ForeignType => {
                r#"phase = 'basket', fingerprint = NULL, payload = '{"basket":[1,2,3]}'"#
            }
            _ => return Err(idem_conformance::Hook::Corrupt.missing()),
        };
        let sql = format!("UPDATE public.idem_record SET {set} WHERE key = $1");
        let done = sqlx::query(AssertSqlSafe(sql))
            .bind(&key.digest()[..])
            .execute(&self.database.pool)
            .await
            .map_err(failed)?;
        assert_eq!(done.rows_affected(), 1, "there is nothing to damage");
        Ok(())
    }

    async fn purge(&self) -> Result<(), HookError> {
        let report = self.fragile().direct.purge(Purge::default()).await.map_err(failed)?;
        assert!(report.complete, "somebody else purges");
        Ok(())
    }

    /// A table with a quota, which reports itself as a full disk does.
    async fn bounded(&self, records: usize) -> Result<Arc<dyn Store>, HookError> {
        let bounded = self.builder.clone().in_schema("bounded");
        let store = bounded.connect(&self.front).await.map_err(failed)?;
        let quota = include_str!("quota.sql").replace("{records}", &records.to_string());
        self.database.run(&quota).await;
        Ok(Arc::new(store))
    }

    async fn restart(&self) -> Result<(), HookError> {
        self.timed.lock().await.server.restart().await.map_err(failed)?;
        // A pooler may be of the opinion that the server is still gone.
        let serves = async {
            while !serves(&self.front).await {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), serves).await.map_err(failed)?;
        let store = Fragile::new(&self.builder, &self.front, &self.proxy).await;
        *self.store.write().unwrap() = Arc::new(store);
        Ok(())
    }

    async fn fail_next(&self, fault: Fault) -> Result<(), HookError> {
        let store = self.fragile();
        let _alone = store.one.lock().await;
        if store.armed.load(Ordering::SeqCst) {
            return Ok(());
        }
        store.warm_up().await.map_err(failed)?;
        self.proxy.only_with(self.needle);
        self.proxy.next(match fault {
            Fault::Before => proxy::Fault::ResetBefore,
            Fault::After => proxy::Fault::ResetAfter,
        });
        store.armed.store(true, Ordering::SeqCst);
        Ok(())
    }
}

async fn serves(url: &str) -> bool {
    let Ok(mut connection) = PgConnection::connect(url).await else { return false };
    sqlx::raw_sql("SELECT 1").execute(&mut connection).await.is_ok()
}

fn failed(error: impl Into<BoxError>) -> HookError {
    HookError::Failed(error.into())
}

idem_conformance::suite!(async { Postgres::new().await }, no skips);

/// Every property on this harness is shown, and none is skipped.
fn holds_everywhere(harness: impl AsyncFn() -> Postgres) {
    let options = Options::from_env().unwrap();
    let report = idem_conformance::run_all(harness, &options).unwrap();
    let counts = report.counts();
    assert_eq!((counts.failed, counts.skipped), (0, 0), "{report}");
}

#[test]
#[ignore = "slow: the whole suite once more"]
fn holds_without_prepared_statements() {
    holds_everywhere(Postgres::unprepared);
}

// C112
#[test]
#[ignore = "slow: the whole suite once more"]
fn holds_behind_pgbouncer_in_transaction_mode() {
    holds_everywhere(async || Postgres::behind_pgbouncer(false).await);
}

// C112
#[test]
#[ignore = "slow: the whole suite once more, and it needs pgbouncer 1.21"]
fn holds_behind_pgbouncer_that_knows_prepared_statements() {
    holds_everywhere(async || Postgres::behind_pgbouncer(true).await);
}

#[test]
#[ignore = "slow: the whole suite once more"]
fn holds_where_every_transaction_is_serializable() {
    holds_everywhere(async || {
        let harness = Postgres::new().await;
        let (_, name) = harness.database.url.rsplit_once('/').unwrap();
        let set = "SET default_transaction_isolation = 'serializable'";
        harness.database.run(&format!("ALTER DATABASE {name} {set}")).await;
        // The connections that are there are of the old default.
        let store = Fragile::new(&harness.builder, &harness.front, &harness.proxy).await;
        *harness.store.write().unwrap() = Arc::new(store);
        harness
    });
}
