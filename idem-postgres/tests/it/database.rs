//! A database of each test's own, on one server for all.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_conformance::servers;
use idem_core::{Attempt, Fingerprint, Key, Lease, Scope, Store, StoreError, Verdict};
use idem_postgres::{Builder, PostgresStore};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};

pub(crate) const REQUEST: Fingerprint = Fingerprint::from_bytes([7; 32]);
pub(crate) const OTHER: Fingerprint = Fingerprint::from_bytes([8; 32]);
pub(crate) const HOUR: Duration = Duration::from_hours(1);

/// An empty database.
pub(crate) struct Database {
    pub(crate) url: String,
    /// For the test itself.
    pub(crate) pool: PgPool,
}

impl Database {
    /// On the server that all tests share.
    pub(crate) async fn fresh() -> Self {
        Self::on(servers::shared_postgres().await.unwrap().url()).await
    }

    /// On the server at this URL, which ends with the name of a database.
    pub(crate) async fn on(server: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let admin = PgPoolOptions::new().max_connections(1).connect(server).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(create).execute(&admin).await.unwrap();
        admin.close().await;
        let (server, _) = server.rsplit_once('/').unwrap();
        let url = format!("{server}/{name}");
        let pool = PgPoolOptions::new().max_connections(20).connect_lazy(&url).unwrap();
        Self { url, pool }
    }

    pub(crate) async fn store(&self) -> PostgresStore {
        self.store_with(PostgresStore::builder()).await
    }

    pub(crate) async fn store_with(&self, builder: Builder) -> PostgresStore {
        builder.connect(&self.url).await.unwrap()
    }

    pub(crate) async fn run(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await.unwrap();
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&self.pool).await.unwrap()
    }
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(Scope::new("payment.charge").unwrap(), text).unwrap()
}

pub(crate) fn attempt(text: &str) -> Attempt {
    Attempt::new(key(text), REQUEST).lease(HOUR).retention(HOUR)
}

/// The lease of an attempt that is granted its key.
pub(crate) async fn acquire(store: &PostgresStore, attempt: &Attempt) -> Lease {
    match reserve(store, attempt).await.unwrap() {
        Verdict::Acquired { lease, .. } => lease,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn reserve(
    store: &PostgresStore,
    attempt: &Attempt,
) -> Result<Verdict, StoreError> {
    store.reserve(attempt).await?.verdict(attempt)
}

/// The address in `postgres://user@address/name`.
pub(crate) fn address(url: &str) -> SocketAddr {
    let (server, _) = url.rsplit_once('/').unwrap();
    server.rsplit_once('@').unwrap().1.parse().unwrap()
}
