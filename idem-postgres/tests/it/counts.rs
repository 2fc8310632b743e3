//! What the verbs cost the server, counted.

use idem_conformance::proxy::Proxy;
use idem_conformance::servers;
use idem_core::{Fingerprint, Store};
use idem_postgres::{PostgresStore, TransactionRequest};
use sqlx::postgres::PgPoolOptions;
use tokio::time::{Duration, timeout};

use crate::database::{Database, HOUR, OTHER, acquire, address, attempt, key};

/// A server that writes nothing by itself, so that what is written can be counted.
async fn quiet() -> (servers::Server, Database) {
    let server = servers::postgres()
        .setting("autovacuum", "off")
        .setting("wal_level", "minimal")
        .setting("max_wal_senders", "0")
        .setting("bgwriter_delay", "10s")
        .own()
        .await
        .unwrap();
    let database = Database::on(server.url()).await;
    (server, database)
}

/// How many bytes of WAL there are, and what the next transaction id is. Asking takes neither.
async fn written(database: &Database) -> (i64, i64) {
    let wal = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let xid = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    (database.number(wal).await, database.number(xid).await)
}

/// How many transactions have written something.
async fn xids(database: &Database) -> i64 {
    written(database).await.1
}

#[tokio::test]
async fn whoever_loses_costs_no_wal_and_no_transaction_id() {
    let (_server, database) = quiet().await;
    let store = database.store().await;
    let pending = acquire(&store, &attempt("pending")).await;
    let done = acquire(&store, &attempt("done")).await;
    store.complete(&done, &"done".into(), HOUR).await.unwrap();
    let open = acquire(&store, &attempt("open")).await;
    let released = attempt("released");
    store.release(&acquire(&store, &released).await).await.unwrap();
    // Another session has a completion of this one in a transaction that is still open.
    let mut tx = database.pool.begin().await.unwrap();
    store.complete_in(&mut tx, &open, &"done".into(), HOUR).await.unwrap();
    // Every statement once: the catalogue is read, and row hints are set.
    for _ in 0..2 {
        lose_every_way(&store, &pending, &done).await;
        assert!(store.reserve(&released).await.unwrap_err().is_lease_lost());
    }
    let before = written(&database).await;
    for _ in 0..20 {
        lose_every_way(&store, &pending, &done).await;
        assert!(store.reserve(&released).await.unwrap_err().is_lease_lost());
    }
    assert_eq!(written(&database).await, before, "(WAL bytes, transaction ids)");
}

async fn lose_every_way(
    store: &PostgresStore,
    pending: &idem_core::Lease,
    done: &idem_core::Lease,
) {
    for text in ["pending", "done", "open"] {
        store.reserve(&attempt(text)).await.unwrap();
        store.reserve(&idem_core::Attempt::new(key(text), OTHER)).await.unwrap();
    }
    store.complete(done, &"again".into(), HOUR).await.unwrap();
    let nobody = idem_core::Lease::new(
        pending.key().clone(),
        idem_core::AttemptId::random(),
        pending.fence(),
    );
    assert!(store.complete(&nobody, &"late".into(), HOUR).await.unwrap_err().is_lease_lost());
    assert!(store.renew(&nobody, HOUR).await.unwrap_err().is_lease_lost());
    assert!(store.release(&nobody).await.unwrap_err().is_lease_lost());
}

#[tokio::test]
async fn a_fresh_key_costs_two_commits_and_one_in_the_callers_transaction_none() {
    let (_server, database) = quiet().await;
    let store = database.store().await;
    let before = xids(&database).await;
    let lease = acquire(&store, &attempt("apart")).await;
    store.complete(&lease, &"done".into(), HOUR).await.unwrap();
    assert_eq!(xids(&database).await - before, 2);

    let before = xids(&database).await;
    let request = TransactionRequest::new(key("together"), Fingerprint::from_bytes([7; 32]));
    store
        .transaction(&database.pool, &request, |on, _| {
            let sql = "SELECT pg_current_xact_id()::text";
            Box::pin(sqlx::query_scalar::<_, String>(sql).fetch_one(on))
        })
        .await
        .unwrap();
    assert_eq!(xids(&database).await - before, 1);
}

/// A pool of one connection, by way of a proxy that counts the statements.
async fn counted(database: &Database) -> (Proxy, sqlx::PgPool) {
    let (_, name) = database.url.rsplit_once('/').unwrap();
    let proxy = Proxy::start(address(&database.url)).await.unwrap();
    let via = format!("postgres://postgres@{}/{name}", proxy.addr());
    let pool = PgPoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = pool.connect(&via).await.unwrap();
    proxy.only_with("sqlx_s_");
    (proxy, pool)
}

#[tokio::test]
async fn each_verb_is_one_statement_whatever_it_meets() {
    let database = Database::fresh().await;
    let (proxy, pool) = counted(&database).await;
    let store = PostgresStore::builder().hints(false).on_pool(pool).await.unwrap();
    let mut counts = Vec::new();
    // At the first, the statements are prepared as well.
    for text in ["first", "second"] {
        counts.clear();
        let mut sent = proxy.hits();
        let mut note = |what| {
            let before = std::mem::replace(&mut sent, proxy.hits());
            counts.push((what, sent - before));
        };
        let lease = acquire(&store, &attempt(text)).await;
        note("a fresh key");
        store.reserve(&attempt(text)).await.unwrap();
        note("in progress");
        store.reserve(&idem_core::Attempt::new(key(text), OTHER)).await.unwrap();
        note("a mismatch");
        store.renew(&lease, HOUR).await.unwrap();
        note("a renewal");
        store.release(&lease).await.unwrap();
        note("a release");
        store.release(&lease).await.unwrap();
        note("its repeat");
        let lease = acquire(&store, &attempt(text)).await;
        note("a released key");
        store.renew(&lease, Duration::ZERO).await.unwrap();
        note("the end of a lease");
        let second = acquire(&store, &attempt(text)).await;
        note("a takeover");
        assert!(store.renew(&lease, HOUR).await.unwrap_err().is_lease_lost());
        note("a renewal of a lost lease");
        assert!(store.complete(&lease, &"late".into(), HOUR).await.unwrap_err().is_lease_lost());
        note("a completion of a lost lease");
        store.complete(&second, &"done".into(), HOUR).await.unwrap();
        note("a completion");
        store.complete(&second, &"done".into(), HOUR).await.unwrap();
        note("its repeat");
        store.reserve(&attempt(text)).await.unwrap();
        note("a replay");
    }
    for (what, count) in counts {
        assert_eq!(count, 1, "{what}");
    }
}

#[tokio::test]
async fn a_transaction_of_the_callers_has_two_statements_more() {
    let database = Database::fresh().await;
    let store = database.store().await;
    let (proxy, pool) = counted(&database).await;
    let mut sent = 0;
    // At the first, the statements are prepared as well.
    for text in ["first", "second"] {
        let before = proxy.hits();
        let request = TransactionRequest::new(key(text), Fingerprint::from_bytes([7; 32]));
        store
            .transaction(&pool, &request, |on, _| {
                Box::pin(sqlx::query_scalar::<_, i32>("SELECT 1").fetch_one(on))
            })
            .await
            .unwrap();
        sent = proxy.hits() - before;
    }
    assert_eq!(sent, 3, "reserve, the caller's own, and complete");
}

#[tokio::test]
async fn a_completion_nobody_waits_for_sends_nothing() {
    let (_server, database) = quiet().await;
    let store = database.store().await;
    let mut leases = Vec::new();
    for number in 0..10 {
        leases.push(acquire(&store, &attempt(&number.to_string())).await);
    }
    let other = database.store().await;
    let mut watched = other.watch(&key("0")).await.unwrap();
    let before = xids(&database).await;
    for lease in leases.iter().skip(1) {
        store.complete(lease, &"done".into(), HOUR).await.unwrap();
    }
    assert_eq!(xids(&database).await - before, 9, "a NOTIFY takes a transaction id");
    store.complete(&leases[0], &"done".into(), HOUR).await.unwrap();
    timeout(Duration::from_secs(20), watched.changed()).await.unwrap();
    assert_eq!(xids(&database).await - before, 11, "the completion, and the notice of it");
}

#[tokio::test]
async fn nineteen_of_twenty_completions_are_heap_only() {
    let (_server, database) = quiet().await;
    let store = database.store().await;
    for size in [20, 300] {
        database.run("SELECT pg_stat_reset()").await;
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let store = store.clone();
                tokio::spawn(async move {
                    for number in 0..250 {
                        let a = attempt(&format!("{size} {client} {number}"));
                        let lease = acquire(&store, &a).await;
                        store.complete(&lease, &vec![7; size].into(), HOUR).await.unwrap();
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
    }
    // A session that ends has reported what it did.
    store.pool().close().await;
    let counted = |column: &str| {
        let sql = format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = 'idem_record'");
        let database = &database;
        async move { database.number(&sql).await }
    };
    let mut updates = 0;
    for _ in 0..200 {
        updates = counted("n_tup_upd").await;
        if updates >= 2_000 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let heap_only = counted("n_tup_hot_upd").await;
    assert!(updates >= 2_000, "only {updates} updates were counted");
    assert!(heap_only * 100 >= updates * 95, "{heap_only} of {updates} updates are heap-only");
}
