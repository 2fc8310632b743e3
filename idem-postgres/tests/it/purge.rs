//! Deleting what is past its retention.

use std::time::Duration;

use idem_core::Store;
use idem_postgres::{PostgresStore, Purge};

use crate::database::{Database, HOUR, acquire, attempt};

/// Rows that may go.
async fn expired(database: &Database, rows: u32) {
    database
        .run(&format!(
            "INSERT INTO idem_record (fence, lease_until, retain_until, attempts, format, phase,
                                      key, holder, operation)
             SELECT 1, now(), now() - interval '1 second', 1, 1, 'released', sha256(n::text::bytea),
                    decode(repeat('00', 16), 'hex'), 'old'
             FROM generate_series(1, {rows}) AS n"
        ))
        .await;
}

async fn of_operation(database: &Database, operation: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM idem_record WHERE operation = '{operation}'");
    database.number(&sql).await
}

fn brisk() -> Purge {
    Purge::default().pause(Duration::ZERO)
}

// C23, C120
#[tokio::test]
async fn all_that_is_expired_goes_and_nothing_else() {
    let database = Database::fresh().await;
    let store = database.store().await;
    let live = acquire(&store, &attempt("live")).await;
    let done = acquire(&store, &attempt("done")).await;
    store.complete(&done, &"done".into(), HOUR).await.unwrap();
    expired(&database, 5_000).await;
    // L8: nobody knows what this was.
    database.run("UPDATE idem_record SET format = 9 WHERE key = sha256('1')").await;
    let report = store.purge(brisk().batch(700)).await.unwrap();
    assert_eq!((report.deleted, report.complete), (4_999, true));
    assert_eq!(of_operation(&database, "old").await, 1);
    store.complete(&live, &"done".into(), HOUR).await.unwrap();
}

// C119
#[tokio::test]
async fn a_row_that_somebody_holds_is_left_alone_and_not_waited_for() {
    let database = Database::fresh().await;
    let store = database.store().await;
    expired(&database, 10).await;
    let mut tx = database.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM idem_record WHERE key = sha256('1') FOR UPDATE")
        .execute(&mut *tx)
        .await
        .unwrap();
    let purge = tokio::time::timeout(Duration::from_secs(20), store.purge(brisk()));
    assert_eq!(purge.await.expect("it waits for a row").unwrap().deleted, 9);
    assert_eq!(of_operation(&database, "old").await, 1);
}

// C120
#[tokio::test]
async fn of_many_instances_one_purges() {
    let database = Database::fresh().await;
    let stores = [database.store().await, database.store().await];
    expired(&database, 3_000).await;
    let slow = Purge::default().batch(1_000).pause(Duration::from_millis(100));
    let (a, b) = tokio::join!(stores[0].purge(slow), stores[1].purge(slow));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.deleted + b.deleted, 3_000);
    assert!(a.complete ^ b.complete, "{a:?}, {b:?}");
    // The turn is over, and the next may have it.
    assert!(stores[1].purge(brisk()).await.unwrap().complete);
}

#[tokio::test]
async fn an_instance_purges_by_itself_until_it_is_told_to_stop() {
    let database = Database::fresh().await;
    let store = database.store().await;
    expired(&database, 10).await;
    let purging = store.purge_every(Duration::from_millis(50), brisk());
    for _ in 0..400 {
        if of_operation(&database, "old").await == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(of_operation(&database, "old").await, 0);
    drop(purging);
}

#[tokio::test]
#[ignore = "slow: a million rows"]
async fn a_million_rows_go_under_live_traffic() {
    let database = Database::fresh().await;
    let store = database.store().await;
    expired(&database, 1_000_000).await;
    let purging = {
        let store: PostgresStore = store.clone();
        tokio::spawn(async move { store.purge(Purge::default()).await })
    };
    let mut served = 0;
    while !purging.is_finished() {
        let a = attempt(&format!("live {served}"));
        let lease = acquire(&store, &a).await;
        store.complete(&lease, &"done".into(), HOUR).await.unwrap();
        served += 1;
    }
    let report = purging.await.unwrap().unwrap();
    assert_eq!((report.deleted, report.complete), (1_000_000, true));
    assert_eq!(of_operation(&database, "payment.charge").await, served);
}
