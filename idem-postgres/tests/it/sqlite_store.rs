//! The example of an embedded store keeps every law that can be shown on a real clock.

use std::fs;

use idem_core::model::Timestamp;
use idem_core::{Cas as _, CasStore, Snapshot, Store as _, StoreError};
use sqlx::ConnectOptions as _;

use self::example::SqliteTable;
use crate::database::{attempt, key};

#[path = "../../examples/sqlite_store.rs"]
#[allow(dead_code)]
mod example;

idem_conformance::suite!(async { example::SqliteHarness::new().await.unwrap() });

#[tokio::test]
async fn a_row_past_its_retention_is_purged_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let table = SqliteTable::open(&directory.path().join("idem.db")).await.unwrap();
    let store = CasStore::new(table.clone());
    for text in ["past", "kept"] {
        store.reserve(&attempt(text)).await.unwrap();
    }
    let Snapshot { row, version, now } = table.read(&key("past")).await.unwrap();
    let row = idem_core::model::Row { retain_until: Timestamp(now.0 - 1), ..row.unwrap() };
    assert!(table.swap(&key("past"), version, &row).await.unwrap());
    assert_eq!(table.purge().await.unwrap(), 1);
    assert_eq!(table.read(&key("past")).await.unwrap().row, None);
    assert!(table.read(&key("kept")).await.unwrap().row.is_some());
}

// L8: where SQLite cannot read a page, no key is free.
#[tokio::test]
async fn a_damaged_file_is_corrupt_and_not_empty() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("idem.db");
    let table = SqliteTable::open(&file).await.unwrap();
    CasStore::new(table.clone()).reserve(&attempt("k")).await.unwrap();
    table.close().await;
    let mut bytes = fs::read(&file).unwrap();
    // All but the first page, which says that it is a database, and of what.
    bytes[4096..].fill(0xa5);
    fs::write(&file, bytes).unwrap();
    let store = CasStore::new(SqliteTable::open(&file).await.unwrap());
    let error = store.reserve(&attempt("k")).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

// L9: another process keeps the file for itself, and nothing was written.
#[tokio::test]
async fn a_file_that_stays_busy_is_unavailable_and_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("idem.db");
    let store = CasStore::new(SqliteTable::open(&file).await.unwrap());
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
    let mut other = options.connect().await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let error = store.reserve(&attempt("k")).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Unavailable { applied: idem_core::Applied::No, .. }),
        "{error:?}"
    );
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert_eq!(store.reserve(&attempt("k")).await.unwrap().attempts, 1);
}
