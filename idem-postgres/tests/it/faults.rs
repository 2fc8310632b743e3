//! What goes wrong in a database, and what is said of it (law L9).

use std::time::Duration;

use idem_conformance::servers;
use idem_core::{Applied, Refusal, Store, StoreError, Verdict};
use idem_postgres::{PostgresStore, Schema};
use sqlx::postgres::PgPoolOptions;

use crate::database::{Database, HOUR, acquire, attempt, reserve};

fn applied<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> Applied {
    match answer.unwrap_err() {
        StoreError::Unavailable { applied, .. } => applied,
        other => panic!("expected unavailable, got {other:?}"),
    }
}

/// What another session holds is not had within these settings.
async fn times_out(setting: &str) {
    let database = Database::fresh().await;
    let name = database.url.rsplit_once('/').unwrap().1;
    database.run(&format!("ALTER DATABASE {name} SET {setting} = '100ms'")).await;
    let store = database.store().await;
    let lease = acquire(&store, &attempt("k")).await;
    let mut tx = database.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM idem_record FOR UPDATE").execute(&mut *tx).await.unwrap();
    assert_eq!(applied(store.renew(&lease, HOUR).await), Applied::No);
    assert_eq!(applied(store.complete(&lease, &"x".into(), HOUR).await), Applied::No);
    // Whoever loses is not in its way.
    assert!(matches!(reserve(&store, &attempt("k")).await.unwrap(), Verdict::InProgress { .. }));
    tx.rollback().await.unwrap();
    store.complete(&lease, &"x".into(), HOUR).await.unwrap();
}

// 55P03
#[tokio::test]
async fn a_lock_timeout_was_not_applied() {
    times_out("lock_timeout").await;
}

// 57014
#[tokio::test]
async fn a_statement_timeout_was_not_applied() {
    times_out("statement_timeout").await;
}

// 57P01, C103
#[tokio::test]
async fn a_terminated_connection_is_noticed_and_the_next_call_has_another() {
    let database = Database::fresh().await;
    let store = database.store_with(PostgresStore::builder().max_connections(4)).await;
    // All four are there.
    let held = [(); 4].map(|()| store.pool().acquire());
    let held = futures_util::future::join_all(held).await;
    assert!(held.iter().all(Result::is_ok));
    drop(held);
    tokio::time::sleep(Duration::from_millis(100)).await;
    database
        .run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    let a = attempt("k");
    let _ = applied(store.reserve(&a).await);
    // One failure is enough: the other three are as dead, and are not tried.
    let lease = acquire(&store, &a).await;
    store.complete(&lease, &"done".into(), HOUR).await.unwrap();
}

// 25006
#[tokio::test]
async fn a_server_that_only_reads_is_left_for_the_one_that_writes() {
    let database = Database::fresh().await;
    let store = database.store().await;
    let lease = acquire(&store, &attempt("k")).await;
    let name = database.url.rsplit_once('/').unwrap().1;
    let only_reads =
        |on: &str| format!("ALTER DATABASE {name} SET default_transaction_read_only = {on}");
    database.run(&only_reads("on")).await;
    // The connections that are there do not know it yet.
    database
        .run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    let _ = store.complete(&lease, &"done".into(), HOUR).await;
    assert_eq!(applied(store.complete(&lease, &"done".into(), HOUR).await), Applied::No);
    // A failover: new connections reach the server that writes. The old ones are not used again.
    let (server, _) = database.url.rsplit_once('/').unwrap();
    let admin = PgPoolOptions::new().connect(&format!("{server}/postgres")).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(only_reads("off"))).execute(&admin).await.unwrap();
    store.complete(&lease, &"done".into(), HOUR).await.unwrap();
}

// 53300
#[tokio::test]
async fn a_full_server_was_not_asked() {
    let server = servers::postgres().setting("max_connections", "6").own().await.unwrap();
    let builder = PostgresStore::builder().schema(Schema::None);
    let store = builder.connect(server.url()).await.unwrap();
    let hogs = PgPoolOptions::new().max_connections(6).connect_lazy(server.url()).unwrap();
    let held = futures_util::future::join_all([(); 6].map(|()| hogs.acquire())).await;
    assert!(held.iter().all(Result::is_ok));
    assert_eq!(applied(store.reserve(&attempt("k")).await), Applied::No);
}

#[tokio::test]
async fn an_exhausted_pool_was_not_asked() {
    let database = Database::fresh().await;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(100))
        .connect(&database.url)
        .await
        .unwrap();
    let store = PostgresStore::builder().on_pool(pool.clone()).await.unwrap();
    let held = pool.acquire().await.unwrap();
    assert_eq!(applied(store.reserve(&attempt("k")).await), Applied::No);
    drop(held);
    let _lease = acquire(&store, &attempt("k")).await;
    pool.close().await;
    assert_eq!(applied(store.reserve(&attempt("k")).await), Applied::No);
}

#[tokio::test]
async fn a_restart_and_a_crash_keep_what_was_acknowledged() {
    let mut server = servers::postgres().own().await.unwrap();
    let database = Database::on(server.url()).await;
    let store = database.store().await;
    for crash in [false, true] {
        let (a, b) = (attempt(&format!("a {crash}")), attempt(&format!("b {crash}")));
        let (held, done) = (acquire(&store, &a).await, acquire(&store, &b).await);
        store.complete(&done, &"done".into(), HOUR).await.unwrap();
        if crash {
            server.kill().await.unwrap();
        } else {
            server.stop().await.unwrap();
        }
        let _ = applied(store.complete(&held, &"done".into(), HOUR).await);
        server.restart().await.unwrap();
        // The first call may meet a dead connection, and is repeated as it was.
        if let Err(error) = store.complete(&held, &"done".into(), HOUR).await {
            assert!(error.is_unavailable());
            store.complete(&held, &"done".into(), HOUR).await.unwrap();
        }
        for text in ["a", "b"] {
            let again = reserve(&store, &attempt(&format!("{text} {crash}"))).await.unwrap();
            assert_eq!(again, Verdict::Replay("done".into()));
        }
    }
}

#[tokio::test]
async fn a_missing_right_and_a_missing_table_are_refused() {
    let database = Database::fresh().await;
    let store = database.store_with(PostgresStore::builder().schema(Schema::None)).await;
    let missing = store.reserve(&attempt("k")).await.unwrap_err();
    assert_eq!(missing.refusal(), Some(Refusal::Configuration));
    let _store = database.store().await;
    let user = format!("reader_{}", std::process::id());
    database.run(&format!("CREATE ROLE {user} LOGIN; GRANT SELECT ON idem_record TO {user}")).await;
    let url = database.url.replace("postgres@", &format!("{user}@"));
    let reader = PostgresStore::builder().schema(Schema::None).connect(&url).await.unwrap();
    let denied = reader.reserve(&attempt("k")).await.unwrap_err();
    assert_eq!(denied.refusal(), Some(Refusal::Permission));
    let nobody = url.replace(&user, "nobody_at_all");
    let store = PostgresStore::builder().schema(Schema::None).connect(&nobody).await.unwrap();
    let denied = store.reserve(&attempt("k")).await.unwrap_err();
    assert_eq!(denied.refusal(), Some(Refusal::Permission));
}

#[tokio::test]
async fn a_default_isolation_that_is_stricter_changes_nothing() {
    for level in ["repeatable read", "serializable"] {
        let database = Database::fresh().await;
        let name = database.url.rsplit_once('/').unwrap().1;
        let set = format!("ALTER DATABASE {name} SET default_transaction_isolation = '{level}'");
        database.run(&set).await;
        let store = database.store().await;
        for round in 0..20 {
            let racers = (0..16).map(|_| {
                let store = store.clone();
                tokio::spawn(async move {
                    let a = attempt(&round.to_string());
                    reserve(&store, &a).await
                })
            });
            let mut winners = 0;
            for told in futures_util::future::join_all(racers).await {
                match told.unwrap().unwrap() {
                    Verdict::Acquired { .. } => winners += 1,
                    Verdict::InProgress { .. } => {}
                    other => panic!("{level}: {other:?}"),
                }
            }
            assert_eq!(winners, 1, "{level}");
        }
    }
}
