//! A store in a SQLite file, for one machine and no server, and the suite run on it.
//!
//! `cargo run -p idem-postgres --example sqlite_store` prints what was shown.
//!
//! A row is replaced by one statement that says what it must still be. That is compare-and-swap,
//! and [`CasStore`] makes a store of it. Any number of processes may share the file; its clock is
//! that of the machine, so it must not be shared between machines, nor be on a network's disk.
//!
//! To embed it, copy [`SqliteTable`] and what it needs. What follows it is for the suite.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use idem_conformance::{Clock, Damage, Harness, HookError, Options, run_all};
use idem_core::model::{Row, Timestamp};
use idem_core::{Applied, BoxError, Cas, CasStore, Key, Refusal, Snapshot, Store, StoreError};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

/// The bytes of [`Row::encode`] by the key's digest, and when they may be deleted.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS idem_row (
        digest BLOB PRIMARY KEY,
        bytes BLOB NOT NULL,
        retain_until INTEGER NOT NULL -- microseconds since the Unix epoch
    ) STRICT;
    CREATE INDEX IF NOT EXISTS idem_row_retain_until ON idem_row (retain_until);
";

const READ: &str = "SELECT bytes FROM idem_row WHERE digest = ?1";

const INSERT: &str = "
    INSERT INTO idem_row (digest, bytes, retain_until) VALUES (?1, ?2, ?3)
    ON CONFLICT (digest) DO NOTHING
";

const REPLACE: &str =
    "UPDATE idem_row SET bytes = ?2, retain_until = ?3 WHERE digest = ?1 AND bytes = ?4";

/// Rows in a SQLite file.
#[derive(Clone, Debug)]
pub(crate) struct SqliteTable(SqlitePool);

impl SqliteTable {
    /// The rows in this file, which is made if it is not there.
    pub(crate) async fn open(file: &Path) -> sqlx::Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            // Who reads does not wait for who writes.
            .journal_mode(SqliteJournalMode::Wal)
            // What was acknowledged survives a loss of power; `Normal` would forget the last of it.
            .synchronous(SqliteSynchronous::Full)
            // How long to wait for another process that writes.
            .busy_timeout(Duration::from_secs(2));
        // One writes at a time anyway, and in one process they had better queue here.
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        Ok(Self(pool))
    }

    /// Ends the connection.
    pub(crate) async fn close(&self) {
        self.0.close().await;
    }

    /// Removes the rows whose retention has passed. Call it every few minutes.
    pub(crate) async fn purge(&self) -> sqlx::Result<u64> {
        let purge = sqlx::query("DELETE FROM idem_row WHERE retain_until <= ?1");
        Ok(purge.bind(integer(now())).execute(&self.0).await?.rows_affected())
    }
}

#[async_trait]
impl Cas for SqliteTable {
    /// The bytes themselves: every change of a row changes them.
    type Version = Option<Bytes>;

    async fn read(&self, key: &Key) -> Result<Snapshot<Self::Version>, StoreError> {
        let read = sqlx::query_scalar::<_, Vec<u8>>(READ).bind(&key.digest()[..]);
        let found = read.fetch_optional(&self.0).await;
        let version = found.map_err(|why| failed(Applied::No, why))?.map(Bytes::from);
        let row = version.as_ref().map(Row::decode).transpose()?;
        Ok(Snapshot { row, version, now: now() })
    }

    async fn swap(&self, key: &Key, old: Self::Version, row: &Row) -> Result<bool, StoreError> {
        let (digest, bytes) = (key.digest(), row.encode());
        let write = sqlx::query(if old.is_some() { REPLACE } else { INSERT })
            .bind(&digest[..])
            .bind(&bytes[..])
            .bind(integer(row.retain_until));
        let write = match &old {
            Some(old) => write.bind(&old[..]),
            None => write,
        };
        let written = write.execute(&self.0).await.map_err(|why| failed(Applied::Unknown, why))?;
        Ok(written.rows_affected() == 1)
    }
}

fn now() -> Timestamp {
    Timestamp(0).after(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}

/// SQLite's integers have a sign. A time beyond them is beyond all clocks, too.
fn integer(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// What SQLite's primary result code says (<https://sqlite.org/rescode.html>); if it says nothing
/// of whether a write was applied, `applied` does.
fn failed(applied: Applied, why: sqlx::Error) -> StoreError {
    let code = why.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    match code.map(|extended| extended & 0xff) {
        // SQLITE_BUSY, SQLITE_LOCKED: another still writes.
        Some(5 | 6) => StoreError::unavailable(Applied::No, why),
        // SQLITE_PERM, SQLITE_READONLY.
        Some(3 | 8) => StoreError::refused(Refusal::Permission, why),
        // SQLITE_FULL.
        Some(13) => StoreError::refused(Refusal::Full, why),
        // SQLITE_CORRUPT, SQLITE_NOTADB.
        Some(11 | 26) => StoreError::corrupt(why),
        _ => StoreError::unavailable(applied, why),
    }
}

/// The table, and what can be done to it from outside.
#[derive(Debug)]
pub(crate) struct SqliteHarness {
    table: Mutex<SqliteTable>,
    file: PathBuf,
    /// Removed when it is dropped.
    _directory: tempfile::TempDir,
}

impl SqliteHarness {
    /// A file of its own, removed when the harness is dropped.
    pub(crate) async fn new() -> Result<Self, BoxError> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("idem.db");
        let table = Mutex::new(SqliteTable::open(&file).await?);
        Ok(Self { table, file, _directory: directory })
    }

    fn table(&self) -> SqliteTable {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn open(&self) -> Result<SqliteTable, HookError> {
        SqliteTable::open(&self.file).await.map_err(broken)
    }
}

fn broken(why: sqlx::Error) -> HookError {
    HookError::Failed(why.into())
}

#[async_trait]
impl Harness for SqliteHarness {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(CasStore::new(self.table()))
    }
    fn clock(&self) -> Clock {
        Clock::Real { tick: Duration::from_millis(50) }
    }
    async fn fork(&self) -> Result<Arc<dyn Store>, HookError> {
        Ok(Arc::new(CasStore::new(self.open().await?)))
    }
    async fn restart(&self) -> Result<(), HookError> {
        self.table().close().await;
        let opened = self.open().await?;
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = opened;
        Ok(())
    }
    async fn purge(&self) -> Result<(), HookError> {
        self.table().purge().await.map(drop).map_err(broken)
    }
    async fn corrupt(&self, key: &Key, damage: Damage) -> Result<(), HookError> {
        let (table, digest) = (self.table(), &key.digest()[..]);
        let read = sqlx::query_scalar::<_, Vec<u8>>(READ).bind(digest);
        let damaged = damage.of(&read.fetch_one(&table.0).await.map_err(broken)?);
        let write = sqlx::query("UPDATE idem_row SET bytes = ?2 WHERE digest = ?1");
        let written = write.bind(digest).bind(damaged).execute(&table.0).await;
        written.map(drop).map_err(broken)
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    #[expect(clippy::expect_used, reason = "without a file there is nothing to show")]
    let harness = async || SqliteHarness::new().await.expect("a file in a temporary directory");
    let report = run_all(harness, &Options::from_env()?)?;
    println!("{report}");
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
