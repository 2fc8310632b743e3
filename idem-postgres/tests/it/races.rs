//! A row that another transaction has open: a statement waits for its end, and judges what is there
//! then.

use std::time::Duration;

use idem_core::{Lease, Store, StoreError, Verdict};
use idem_postgres::{PostgresStore, Rivals};
use sqlx::{Postgres, Transaction};
use tokio::time::sleep;

use crate::database::{Database, HOUR, acquire, attempt, reserve};

/// For how long a call waits at least.
const MOMENT: Duration = Duration::from_millis(50);

type Open = Transaction<'static, Postgres>;

/// How the other transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
}

/// What the call answers that finds the transaction open, which ends as soon as it does.
async fn met<T: Send + 'static>(
    database: &Database,
    open: Open,
    end: End,
    call: impl Future<Output = T> + Send + 'static,
) -> T {
    let call = tokio::spawn(call);
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while database.number(waiting).await == 0 {
        assert!(!call.is_finished(), "it did not wait");
        sleep(Duration::from_millis(5)).await;
    }
    sleep(MOMENT).await;
    match end {
        End::Commit => open.commit().await.unwrap(),
        End::Rollback => open.rollback().await.unwrap(),
    }
    call.await.unwrap()
}

async fn setup() -> (Database, PostgresStore) {
    let database = Database::fresh().await;
    let store = database.store().await;
    (database, store)
}

/// The key, reserved in a transaction that is still open.
async fn reserved(database: &Database, store: &PostgresStore) -> Open {
    let mut open = database.pool.begin().await.unwrap();
    store.reserve_in(&mut open, &attempt("k"), Rivals::Reject).await.unwrap();
    open
}

/// The completion of the key, in a transaction that is still open.
async fn completed(database: &Database, store: &PostgresStore, lease: &Lease) -> Open {
    let mut open = database.pool.begin().await.unwrap();
    store.complete_in(&mut open, lease, &"done".into(), HOUR).await.unwrap();
    open
}

#[tokio::test]
async fn a_new_key_is_whose_transaction_commits() {
    for end in [End::Commit, End::Rollback] {
        let (database, store) = setup().await;
        let open = reserved(&database, &store).await;
        let verdict =
            met(&database, open, end, async move { reserve(&store, &attempt("k")).await });
        match (end, verdict.await.unwrap()) {
            (End::Commit, Verdict::InProgress { .. })
            | (End::Rollback, Verdict::Acquired { attempts: 1, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_abandoned_key_is_whose_transaction_commits() {
    for end in [End::Commit, End::Rollback] {
        let (database, store) = setup().await;
        let first = acquire(&store, &attempt("k")).await;
        store.renew(&first, Duration::ZERO).await.unwrap();
        let open = reserved(&database, &store).await;
        let verdict =
            met(&database, open, end, async move { reserve(&store, &attempt("k")).await });
        match (end, verdict.await.unwrap()) {
            (End::Commit, Verdict::InProgress { .. }) => {}
            (End::Rollback, Verdict::Acquired { lease, attempts: 2, .. }) => {
                assert!(lease.fence() > first.fence());
            }
            other => panic!("{other:?}"),
        }
    }
}

// The lease begins before the wait; whoever reckons from the answer would hold it too long.
#[tokio::test]
async fn a_lease_that_was_waited_for_is_told_as_short_as_it_is() {
    let (database, store) = setup().await;
    for abandoned in [false, true] {
        if abandoned {
            let verdict = reserve(&store, &attempt("k")).await.unwrap();
            assert!(matches!(verdict, Verdict::InProgress { .. }), "{verdict:?}");
            database.run("UPDATE idem_record SET lease_until = clock_timestamp()").await;
        }
        let open = reserved(&database, &store).await;
        let waits = store.clone();
        let call = async move { reserve(&waits, &attempt("k")).await.unwrap() };
        match met(&database, open, End::Rollback, call).await {
            Verdict::Acquired { left, .. } => assert!(left + MOMENT <= HOUR, "{left:?}"),
            other => panic!("{other:?}"),
        }
    }
}

// L1
#[tokio::test]
async fn a_repeat_waits_for_its_first_and_is_done() {
    for end in [End::Commit, End::Rollback] {
        let (database, store) = setup().await;
        let lease = acquire(&store, &attempt("k")).await;
        let open = completed(&database, &store, &lease).await;
        let repeat = async move { store.complete(&lease, &"done".into(), HOUR).await };
        met(&database, open, end, repeat).await.unwrap();
        let rows = "SELECT count(*) FROM idem_record WHERE phase = 'completed'";
        assert_eq!(database.number(rows).await, 1, "{end:?}");
    }
}

// L4
#[tokio::test]
async fn what_was_completed_meanwhile_is_neither_renewed_nor_released() {
    for release in [false, true] {
        for end in [End::Commit, End::Rollback] {
            let (database, store) = setup().await;
            let lease = acquire(&store, &attempt("k")).await;
            let open = completed(&database, &store, &lease).await;
            let call = async move {
                if release {
                    store.release(&lease).await
                } else {
                    store.renew(&lease, HOUR).await.map(drop)
                }
            };
            let answer = met(&database, open, end, call).await;
            match (end, &answer) {
                (End::Commit, Err(StoreError::LeaseLost)) | (End::Rollback, Ok(())) => {}
                _ => panic!("{release} {end:?}: {answer:?}"),
            }
        }
    }
}

// L4
#[tokio::test]
async fn whoever_was_taken_over_meanwhile_has_lost_the_lease() {
    let (database, store) = setup().await;
    let first = acquire(&store, &attempt("k")).await;
    store.renew(&first, Duration::ZERO).await.unwrap();
    let open = reserved(&database, &store).await;
    let late = async move { store.complete(&first, &"late".into(), HOUR).await };
    let answer = met(&database, open, End::Commit, late).await;
    assert!(answer.unwrap_err().is_lease_lost());
}
