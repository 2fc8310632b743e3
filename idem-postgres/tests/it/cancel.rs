//! A call that is dropped, at whatever await, leaves the pool fit for use.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use idem_core::Store;
use idem_postgres::{PostgresStore, TransactionRequest};
use sqlx::PgPool;
use tokio::time::timeout;

use crate::database::{Database, HOUR, REQUEST, acquire, attempt, key};

/// Polls the future so often at most, and drops it; whether it was done by then.
async fn dropped_after(polls: u32, future: impl Future) -> bool {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|cx| {
        if polled == polls {
            return Poll::Ready(false);
        }
        polled += 1;
        future.as_mut().poll(cx).map(|_| true)
    })
    .await
}

/// An innocent write on the same pool, which must be there for others as soon as it is
/// acknowledged. A connection that is in a transaction without knowing would swallow it.
async fn is_fit(database: &Database, pool: &PgPool) {
    let insert = sqlx::query("INSERT INTO innocent VALUES (1)").execute(pool);
    timeout(Duration::from_secs(20), insert).await.expect("the pool is stuck").unwrap();
    let seen = database.number(
        "WITH gone AS (DELETE FROM innocent RETURNING 1)
                                SELECT count(*) FROM gone",
    );
    assert_eq!(seen.await, 1, "an acknowledged write is not there");
}

async fn setup() -> (Database, PostgresStore, PgPool) {
    let database = Database::fresh().await;
    database.run("CREATE TABLE innocent (x integer)").await;
    let store = database.store_with(PostgresStore::builder().max_connections(1)).await;
    let pool = store.pool().clone();
    (database, store, pool)
}

/// Far more than a call takes.
const POLLS: u32 = 200;

#[tokio::test]
async fn of_a_verb() {
    let (database, store, pool) = setup().await;
    for fresh_connection in [true, false] {
        for verb in ["reserve", "renew", "complete", "release", "watch"] {
            let mut done = false;
            for polls in 0..POLLS {
                let a = attempt(&format!("{verb} {polls} {fresh_connection}"));
                let lease =
                    acquire(&store, &attempt(&format!("other {verb} {polls} {fresh_connection}")))
                        .await;
                if fresh_connection {
                    // Connecting, and preparing the statement, are awaits too.
                    let mut on = pool.acquire().await.unwrap();
                    on.close_on_drop();
                }
                done = match verb {
                    "reserve" => dropped_after(polls, store.reserve(&a)).await,
                    "renew" => dropped_after(polls, store.renew(&lease, HOUR)).await,
                    "complete" => {
                        dropped_after(polls, store.complete(&lease, &"x".into(), HOUR)).await
                    }
                    "release" => dropped_after(polls, store.release(&lease)).await,
                    _ => dropped_after(polls, store.watch(a.key())).await,
                };
                is_fit(&database, &pool).await;
                if done {
                    break;
                }
            }
            assert!(done, "{verb} was never done within {POLLS} polls");
        }
    }
}

#[tokio::test]
async fn of_a_transaction() {
    let (database, store, pool) = setup().await;
    database.run("CREATE TABLE effect (note text)").await;
    for fresh_connection in [true, false] {
        let mut done = false;
        for polls in 0..POLLS {
            if fresh_connection {
                let mut on = pool.acquire().await.unwrap();
                on.close_on_drop();
            }
            let request =
                TransactionRequest::new(key(&format!("{polls} {fresh_connection}")), REQUEST);
            let run = async || {
                store
                    .transaction(&pool, &request, |on, _| {
                        Box::pin(async move {
                            sqlx::query("INSERT INTO effect VALUES ('x')")
                                .execute(on)
                                .await
                                .map(drop)
                        })
                    })
                    .await
            };
            done = dropped_after(polls, run()).await;
            is_fit(&database, &pool).await;
            // It was committed as a whole, or not at all; and the same request again tells which.
            run().await.unwrap();
            let effects = database.number("SELECT count(*) FROM effect").await;
            let records = database.number("SELECT count(*) FROM idem_record").await;
            assert_eq!(effects, records);
            if done {
                break;
            }
        }
        assert!(done, "the transaction was never done within {POLLS} polls");
    }
}
