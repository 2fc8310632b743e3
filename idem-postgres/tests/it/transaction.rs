//! One transaction with the application's writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use idem_conformance::servers;
use idem_core::{Store, StoreError, Verdict};
use idem_postgres::{
    Committed, Held, Isolation, PostgresStore, Reservation, Rivals, TransactionError,
    TransactionRequest,
};
use sqlx::{Connection as _, PgConnection, PgPool};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::database::{Database, HOUR, OTHER, REQUEST, acquire, attempt, key, reserve};

/// Longer than anything here takes that does not hang.
const FOREVER: Duration = Duration::from_secs(30);

#[derive(Debug, Error)]
enum Failed {
    #[error("the database")]
    Database(#[from] sqlx::Error),
    #[error("declined")]
    Declined,
}

async fn setup() -> (Database, PostgresStore) {
    setup_on(Database::fresh().await).await
}

async fn setup_on(database: Database) -> (Database, PostgresStore) {
    let store = database.store().await;
    database
        .run(
            "CREATE TABLE orders (id bigserial PRIMARY KEY, note text NOT NULL);
              CREATE TABLE stock (item text PRIMARY KEY, left_over integer NOT NULL)",
        )
        .await;
    (database, store)
}

fn request(text: &str) -> TransactionRequest {
    TransactionRequest::new(key(text), REQUEST)
}

/// An order, which is the effect.
fn order<'c>(on: &'c mut PgConnection, note: &str) -> BoxFuture<'c, Result<i64, Failed>> {
    let sql = "INSERT INTO orders (note) VALUES ($1) RETURNING id";
    let insert = sqlx::query_scalar(sql).bind(note.to_owned());
    Box::pin(async move { Ok(insert.fetch_one(on).await?) })
}

async fn place(
    store: &PostgresStore,
    pool: &PgPool,
    request: &TransactionRequest,
) -> Result<Committed<i64>, TransactionError<Failed>> {
    store.transaction(pool, request, |on, _| order(on, "placed")).await
}

async fn orders(database: &Database) -> i64 {
    database.number("SELECT count(*) FROM orders").await
}

async fn records(database: &Database) -> i64 {
    database.number("SELECT count(*) FROM idem_record").await
}

#[tokio::test]
async fn effect_and_record_are_committed_together_and_replayed() {
    let (database, store) = setup().await;
    let first = place(&store, &database.pool, &request("k")).await.unwrap();
    let again = place(&store, &database.pool, &request("k")).await.unwrap();
    assert!(!first.replayed && again.replayed);
    assert_eq!(first.value, again.value);
    assert_eq!(orders(&database).await, 1);
}

// C137
#[tokio::test]
async fn a_failed_action_leaves_nothing_and_the_next_runs() {
    let (database, store) = setup().await;
    let declined = store
        .transaction(&database.pool, &request("k"), |on, _| {
            Box::pin(async move {
                order(on, "declined").await?;
                Err::<i64, _>(Failed::Declined)
            })
        })
        .await;
    assert!(matches!(declined, Err(TransactionError::Action(Failed::Declined))));
    assert_eq!((orders(&database).await, records(&database).await), (0, 0));
    assert!(!place(&store, &database.pool, &request("k")).await.unwrap().replayed);
}

// C52
#[tokio::test]
async fn another_request_under_the_key_is_told() {
    let (database, store) = setup().await;
    place(&store, &database.pool, &request("k")).await.unwrap();
    let other = TransactionRequest::new(key("k"), OTHER);
    let told = place(&store, &database.pool, &other).await.unwrap_err();
    assert!(matches!(told, TransactionError::Mismatch { recorded: REQUEST, .. }), "{told}");
}

/// A transaction that has the key, and ends when it is told how.
async fn open(
    database: &Database,
    store: &PostgresStore,
) -> (oneshot::Sender<bool>, tokio::task::JoinHandle<bool>) {
    let (store, pool) = (store.clone(), database.pool.clone());
    let (end, ends) = oneshot::channel();
    let (began, has_begun) = oneshot::channel();
    let mut signals = Some((began, ends));
    let running = tokio::spawn(async move {
        let done = store
            .transaction(&pool, &request("k"), move |on, _| {
                let (began, ends) = signals.take().expect("it is not repeated");
                Box::pin(async move {
                    let id = order(on, "first").await?;
                    began.send(()).unwrap();
                    if ends.await.unwrap() { Ok(id) } else { Err(Failed::Declined) }
                })
            })
            .await;
        done.is_ok()
    });
    has_begun.await.unwrap();
    (end, running)
}

// C3, C115, C116, C137
#[tokio::test]
async fn a_rival_waits_for_the_commit_and_replays() {
    let (database, store) = setup().await;
    let (end, first) = open(&database, &store).await;
    let (rival, pool) = (store.clone(), database.pool.clone());
    let rival = tokio::spawn(async move { place(&rival, &pool, &request("k")).await });
    sleep(Duration::from_millis(100)).await;
    assert!(!rival.is_finished());
    // Whoever waits holds no transaction open: the first's is the only old one.
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
               AND xact_start < clock_timestamp() - interval '80 milliseconds'";
    assert_eq!(database.number(sql).await, 1);
    end.send(true).unwrap();
    assert!(first.await.unwrap());
    assert!(timeout(FOREVER, rival).await.unwrap().unwrap().unwrap().replayed);
    assert_eq!(orders(&database).await, 1);
}

// C137
#[tokio::test]
async fn a_rival_of_a_rollback_becomes_the_owner() {
    let (database, store) = setup().await;
    let (end, first) = open(&database, &store).await;
    let (rival, pool) = (store.clone(), database.pool.clone());
    let rival = tokio::spawn(async move { place(&rival, &pool, &request("k")).await });
    sleep(Duration::from_millis(50)).await;
    end.send(false).unwrap();
    assert!(!first.await.unwrap());
    assert!(!timeout(FOREVER, rival).await.unwrap().unwrap().unwrap().replayed);
    assert_eq!(database.number("SELECT count(*) FROM orders WHERE note = 'placed'").await, 1);
    assert_eq!(orders(&database).await, 1);
}

#[tokio::test]
async fn a_rival_is_rejected_while_the_first_is_uncommitted() {
    let (database, store) = setup().await;
    let (end, first) = open(&database, &store).await;
    for rivals in [Rivals::Reject, Rivals::Wait { at_most: Duration::from_millis(50) }] {
        let told = place(&store, &database.pool, &request("k").rivals(rivals)).await;
        let told = told.unwrap_err();
        assert!(matches!(told, TransactionError::InProgress { retry_after: None, .. }), "{told}");
    }
    end.send(true).unwrap();
    assert!(first.await.unwrap());
    let rejecting = request("k").rivals(Rivals::Reject);
    assert!(place(&store, &database.pool, &rejecting).await.unwrap().replayed);
}

#[tokio::test]
async fn a_server_that_crashes_in_the_middle_leaves_nothing() {
    let mut server = servers::postgres().own().await.unwrap();
    let (database, store) = setup_on(Database::on(server.url()).await).await;
    let (end, first) = open(&database, &store).await;
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    end.send(true).unwrap();
    // What it had begun is gone, and so is its commit. The repeat runs the action again, which this
    // one does not let happen.
    assert!(first.await.is_err() || orders(&database).await == 0);
    while let Err(error) = place(&store, &database.pool, &request("k")).await {
        assert!(matches!(error.code(), "transaction_failed" | "store_unavailable"), "{error}");
    }
    assert!(place(&store, &database.pool, &request("k")).await.unwrap().replayed);
    assert_eq!(orders(&database).await, 1);
}

// C118
#[tokio::test]
async fn the_callers_transaction_is_usable_after_every_answer() {
    let (database, store) = setup().await;
    let (end, first) = open(&database, &store).await;
    acquire_and_complete(&store, "done").await;
    let pending = acquire(&store, &attempt("pending")).await;
    let abandoned = acquire(&store, &attempt("abandoned")).await;
    store.renew(&abandoned, Duration::ZERO).await.unwrap();

    let mut tx = database.pool.begin().await.unwrap();
    let wait = Rivals::Wait { at_most: Duration::from_millis(20) };
    let mut told = Vec::new();
    for (text, rivals) in [("k", Rivals::Reject), ("k", wait), ("done", wait), ("pending", wait)] {
        told.push(store.reserve_in(&mut tx, &attempt(text), rivals).await.unwrap());
    }
    let careful = attempt("abandoned").takeover(false);
    told.push(store.reserve_in(&mut tx, &careful, wait).await.unwrap());
    let other = idem_core::Attempt::new(key("done"), OTHER);
    told.push(store.reserve_in(&mut tx, &other, wait).await.unwrap());
    let lost = store.complete_in(&mut tx, &pending_of_nobody(), &Bytes::new(), HOUR).await;
    assert!(lost.unwrap_err().is_lease_lost());
    let busy = Reservation::InProgress { left: None };
    assert_eq!(told[..2], [busy.clone(), busy]);
    assert_eq!(told[2], Reservation::Replay("done".into()));
    assert!(matches!(told[3], Reservation::InProgress { left: Some(_) }));
    assert_eq!(told[4], Reservation::Abandoned { attempts: 1 });
    assert_eq!(told[5], Reservation::Mismatch { recorded: REQUEST });
    order(&mut tx, "after all that").await.unwrap();
    tx.commit().await.unwrap();
    store.complete(&pending, &Bytes::new(), HOUR).await.unwrap();
    end.send(true).unwrap();
    assert!(first.await.unwrap());
    assert_eq!(orders(&database).await, 2);
}

fn pending_of_nobody() -> idem_core::Lease {
    idem_core::Lease::new(key("pending"), idem_core::AttemptId::random(), idem_core::Fence(1))
}

async fn acquire_and_complete(store: &PostgresStore, text: &str) {
    let lease = acquire(store, &attempt(text)).await;
    store.complete(&lease, &text.to_owned().into(), HOUR).await.unwrap();
}

// C114
#[tokio::test]
async fn two_attempts_in_one_transaction_are_rivals() {
    let (database, store) = setup().await;
    let mut tx = database.pool.begin().await.unwrap();
    let first = store.reserve_in(&mut tx, &attempt("k"), Rivals::Reject).await.unwrap();
    assert!(matches!(first, Reservation::Held { .. }));
    let second = store.reserve_in(&mut tx, &attempt("k"), Rivals::Reject).await.unwrap();
    assert!(matches!(second, Reservation::InProgress { left: Some(_) }), "{second:?}");
}

// C119
#[tokio::test]
async fn keys_taken_in_opposite_order_do_not_deadlock() {
    let (database, store) = setup().await;
    let (mut a, mut b) =
        (database.pool.begin().await.unwrap(), database.pool.begin().await.unwrap());
    let wait = Rivals::Wait { at_most: Duration::from_millis(50) };
    store.reserve_in(&mut a, &attempt("1"), wait).await.unwrap();
    store.reserve_in(&mut b, &attempt("2"), wait).await.unwrap();
    let busy = Reservation::InProgress { left: None };
    let (two, one) = (attempt("2"), attempt("1"));
    let (in_a, in_b) =
        tokio::join!(store.reserve_in(&mut a, &two, wait), store.reserve_in(&mut b, &one, wait));
    assert_eq!((in_a.unwrap(), in_b.unwrap()), (busy.clone(), busy));
    order(&mut a, "a").await.unwrap();
    order(&mut b, "b").await.unwrap();
}

#[tokio::test]
async fn a_savepoint_takes_record_and_effect_with_it() {
    let (database, store) = setup().await;
    let mut tx = database.pool.begin().await.unwrap();
    order(&mut tx, "kept").await.unwrap();
    let mut savepoint = tx.begin().await.unwrap();
    let a = attempt("k");
    let Reservation::Held { lease, .. } =
        store.reserve_in(&mut savepoint, &a, Rivals::Reject).await.unwrap()
    else {
        panic!("the key is free")
    };
    order(&mut savepoint, "not kept").await.unwrap();
    store.complete_in(&mut savepoint, &lease, &Bytes::new(), HOUR).await.unwrap();
    savepoint.rollback().await.unwrap();
    // The key is free for others at once, not only after the outer transaction.
    let mut other = database.pool.begin().await.unwrap();
    let rival = store.reserve_in(&mut other, &attempt("k"), Rivals::Reject).await.unwrap();
    assert!(matches!(rival, Reservation::Held { attempts: 1, .. }), "{rival:?}");
    other.rollback().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((orders(&database).await, records(&database).await), (1, 0));
}

#[tokio::test]
async fn a_serialization_failure_repeats_the_whole_action() {
    let (database, store) = setup().await;
    database.run("INSERT INTO stock VALUES ('book', 10)").await;
    let calls = Arc::new(AtomicU32::new(0));
    let (count, elsewhere) = (Arc::clone(&calls), database.pool.clone());
    let serializable = request("k").isolation(Isolation::Serializable);
    let sold = store
        .transaction(&database.pool, &serializable, move |on, _| {
            let (call, elsewhere) = (count.fetch_add(1, Ordering::SeqCst), elsewhere.clone());
            Box::pin(async move {
                let left: i32 =
                    sqlx::query_scalar("SELECT left_over FROM stock").fetch_one(&mut *on).await?;
                if call == 0 {
                    sqlx::query("UPDATE stock SET left_over = 5").execute(&elsewhere).await?;
                }
                sqlx::query("UPDATE stock SET left_over = $1").bind(left - 1).execute(on).await?;
                Ok::<i32, Failed>(left - 1)
            })
        })
        .await
        .unwrap();
    assert_eq!((sold.value, calls.load(Ordering::SeqCst)), (4, 2));
    assert_eq!(database.number("SELECT left_over::bigint FROM stock").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_every_isolation_one_of_many_rivals_runs() {
    let (database, store) = setup().await;
    let levels = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];
    for (number, level) in levels.into_iter().enumerate() {
        let rivals = (0..16).map(|_| {
            let (store, pool) = (store.clone(), database.pool.clone());
            let request = request(&number.to_string()).isolation(level).repeats(50);
            tokio::spawn(async move { place(&store, &pool, &request).await })
        });
        let mut fresh = 0;
        for rival in futures_util::future::join_all(rivals).await {
            fresh += u32::from(!rival.unwrap().unwrap().replayed);
        }
        assert_eq!(fresh, 1, "{level:?}");
    }
    assert_eq!(orders(&database).await, 3);
}

#[tokio::test]
async fn repeats_are_bounded() {
    let (database, store) = setup().await;
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let told = store
        .transaction(&database.pool, &request("k").repeats(2), move |on, _| {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                let sql = "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$";
                sqlx::query(sql).execute(on).await?;
                Ok::<(), Failed>(())
            })
        })
        .await;
    assert!(matches!(told, Err(TransactionError::Action(Failed::Database(_)))));
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_eq!(records(&database).await, 0);
}

#[tokio::test]
async fn a_value_that_would_not_replay_is_not_committed() {
    let (database, store) = setup().await;
    let told = store
        .transaction(&database.pool, &request("k"), |on, _| {
            Box::pin(async move { order(on, "x").await.map(|_| f64::NAN) })
        })
        .await;
    assert!(matches!(told, Err(TransactionError::Unstorable { .. })), "{told:?}");
    assert_eq!((orders(&database).await, records(&database).await), (0, 0));
}

// C115
#[tokio::test]
async fn duplicates_with_one_connection_finish() {
    let (database, _) = setup().await;
    let store = database.store_with(PostgresStore::builder().max_connections(1)).await;
    let pool = store.pool().clone();
    let racers: Vec<_> = (0..24)
        .map(|number| {
            let (store, pool) = (store.clone(), pool.clone());
            let text = (number % 3).to_string();
            tokio::spawn(
                async move { place(&store, &pool, &request(&text)).await.unwrap().replayed },
            )
        })
        .collect();
    let mut fresh = 0;
    for racer in racers {
        fresh += i64::from(!timeout(FOREVER, racer).await.unwrap().unwrap());
    }
    assert_eq!((fresh, orders(&database).await), (3, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_32_clients_with_duplicates_each_key_has_its_effect_once() {
    let (database, store) = setup().await;
    let clients: Vec<_> = (0..32)
        .map(|client| {
            let (store, pool) = (store.clone(), database.pool.clone());
            tokio::spawn(async move {
                for round in 0..20 {
                    let text = ((client * 7 + round * 3) % 50).to_string();
                    let fails = (client + round) % 4 == 0;
                    let done = store
                        .transaction(&pool, &request(&text), move |on, held: Held| {
                            Box::pin(async move {
                                let id = order(on, &format!("{:?}", held.lease.key())).await?;
                                if fails { Err(Failed::Declined) } else { Ok(id) }
                            })
                        })
                        .await;
                    assert!(matches!(done, Ok(_) | Err(TransactionError::Action(_))), "{done:?}");
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let done = "SELECT count(*) FROM idem_record WHERE phase = 'completed'";
    assert_eq!(orders(&database).await, database.number(done).await);
    assert_eq!(
        database.number("SELECT count(DISTINCT note) FROM orders").await,
        orders(&database).await
    );
    assert_eq!(records(&database).await, database.number(done).await);
}

// C126: T2, reserve outside and complete inside.
#[tokio::test]
async fn a_lost_lease_rolls_the_rows_back() {
    let (database, store) = setup().await;
    let lease = acquire(&store, &attempt("k")).await;
    let write = async |pool: &PgPool| -> Result<(), Box<dyn std::error::Error>> {
        let mut tx = pool.begin().await?;
        order(&mut tx, "late").await?;
        let completion = store.complete_in(&mut tx, &lease, &"late".into(), HOUR).await?;
        tx.commit().await?;
        store.announce(&completion).await;
        Ok(())
    };
    store.renew(&lease, Duration::ZERO).await.unwrap();
    let taken = acquire(&store, &attempt("k")).await;
    let lost = write(&database.pool).await.unwrap_err();
    assert!(lost.downcast_ref::<StoreError>().unwrap().is_lease_lost());
    assert_eq!(orders(&database).await, 0);
    store.complete(&taken, &"in time".into(), HOUR).await.unwrap();
    let seen = reserve(&store, &attempt("k")).await.unwrap();
    assert_eq!(seen, Verdict::Replay("in time".into()));
}

#[tokio::test]
async fn a_completion_inside_is_committed_with_the_rows() {
    let (database, store) = setup().await;
    let lease = acquire(&store, &attempt("k")).await;
    let mut tx = database.pool.begin().await.unwrap();
    order(&mut tx, "in time").await.unwrap();
    let completion = store.complete_in(&mut tx, &lease, &"done".into(), HOUR).await.unwrap();
    // The record is open in another transaction, and whoever loses is answered all the same.
    let seen = reserve(&store, &attempt("k")).await.unwrap();
    assert!(matches!(seen, Verdict::InProgress { .. }), "{seen:?}");
    let mut hints = store.watch(&key("k")).await.unwrap();
    timeout(FOREVER, hints.changed()).await.expect("a commit is under way: look again");
    tx.commit().await.unwrap();
    timeout(FOREVER, hints.changed()).await.expect("the commit is seen without an announcement");
    store.announce(&completion).await;
    assert_eq!(reserve(&store, &attempt("k")).await.unwrap(), Verdict::Replay("done".into()));
    assert_eq!(orders(&database).await, 1);
}

#[tokio::test]
async fn a_snapshot_that_is_too_old_is_an_error_and_not_a_grant() {
    let (database, store) = setup().await;
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let mut tx = database.pool.begin().await.unwrap();
        let begin = sqlx::AssertSqlSafe(format!("SET TRANSACTION ISOLATION LEVEL {level}"));
        sqlx::query(begin).execute(&mut *tx).await.unwrap();
        sqlx::query("SELECT 1 FROM orders").execute(&mut *tx).await.unwrap();
        acquire_and_complete(&store, level).await;
        let told = store.reserve_in(&mut tx, &attempt(level), Rivals::Reject).await.unwrap_err();
        assert!(told.is_unavailable(), "{level}: {told}");
        tx.rollback().await.unwrap();
    }
}
