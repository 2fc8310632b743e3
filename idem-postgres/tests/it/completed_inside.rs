//! T2: the coordinator reserves, and its action completes in a transaction with its own writes.

use idem_core::envelope::Envelope;
use idem_core::{
    BoxError, Call, Coordinator, Json, Lease, Outcome, RunError, RunningAttempt, Store as _,
    StoreError,
};
use idem_postgres::PostgresStore;
use sqlx::PgPool;
use thiserror::Error;

use crate::database::{Database, HOUR, REQUEST, key};

#[derive(Debug, Error)]
#[error(transparent)]
enum Failed {
    Database(#[from] sqlx::Error),
    Store(#[from] StoreError),
    Value(#[from] BoxError),
}

type Ordered = Result<Outcome<i64>, RunError<Failed>>;

async fn setup() -> (Database, PostgresStore, Coordinator) {
    let database = Database::fresh().await;
    let store = database.store().await;
    database.run("CREATE TABLE orders (id bigserial PRIMARY KEY)").await;
    let idem = Coordinator::builder(store.clone()).build().unwrap();
    (database, store, idem)
}

/// The call for the key of [`key("k")`](key).
fn call(idem: &Coordinator) -> Call {
    idem.operation("payment.charge").key("k").fingerprint(REQUEST)
}

async fn order(store: PostgresStore, pool: PgPool, attempt: RunningAttempt) -> Result<i64, Failed> {
    let lease = attempt.lease().expect("the store answers");
    let mut tx = pool.begin().await?;
    let insert = "INSERT INTO orders DEFAULT VALUES RETURNING id";
    let id = sqlx::query_scalar::<_, i64>(insert).fetch_one(&mut *tx).await?;
    let (id, stored) = Envelope::of_value(&Json::default(), &id)?;
    let completion = store.complete_in(&mut tx, lease, &stored.encode(), HOUR).await?;
    tx.commit().await?;
    store.announce(&completion).await;
    Ok(id)
}

async fn run(idem: &Coordinator, store: &PostgresStore, database: &Database) -> Ordered {
    let (store, pool) = (store.clone(), database.pool.clone());
    call(idem).run(move |attempt| order(store, pool, attempt)).await
}

async fn orders(database: &Database) -> i64 {
    database.number("SELECT count(*) FROM orders").await
}

#[tokio::test]
async fn the_rows_and_the_outcome_are_committed_together() {
    let (database, store, idem) = setup().await;
    let first = run(&idem, &store, &database).await.unwrap();
    assert_eq!((first.value, first.replayed, first.recorded), (1, false, true));
    let elsewhere = Coordinator::builder(database.store().await).build().unwrap();
    let retry = run(&elsewhere, &store, &database).await.unwrap();
    assert_eq!((retry.value, retry.replayed, orders(&database).await), (1, true, 1));
}

// C126: the worker dies after its commit, before the coordinator has recorded anything.
#[tokio::test]
async fn what_was_committed_is_replayed_though_its_worker_died() {
    let (database, store, idem) = setup().await;
    let committed = tokio::sync::Notify::new();
    let dies = call(&idem).run_borrowed(async |attempt| {
        order(store.clone(), database.pool.clone(), attempt).await.unwrap();
        committed.notify_one();
        std::future::pending::<Result<i64, Failed>>().await
    });
    tokio::select! {
        biased;
        () = committed.notified() => {}
        ended = dies => panic!("{ended:?}"),
    }
    let elsewhere = Coordinator::builder(database.store().await).build().unwrap();
    let retry = run(&elsewhere, &store, &database).await.unwrap();
    assert_eq!((retry.value, retry.replayed, orders(&database).await), (1, true, 1));
}

// L4: the late owner's rows go with its lease, and the winner's stay.
#[tokio::test]
async fn the_rows_of_a_lost_lease_are_rolled_back() {
    let (database, store, idem) = setup().await;
    let (late, pool) = (store.clone(), database.pool.clone());
    let winner = Coordinator::builder(database.store().await).build().unwrap();
    let (winners, winning) = (store.clone(), database.pool.clone());
    let error = call(&idem)
        .run(move |attempt| async move {
            let lease: Lease = attempt.lease().expect("the store answers").clone();
            assert_eq!(lease.key(), &key("k"));
            store.renew(&lease, std::time::Duration::ZERO).await?;
            let won = call(&winner).run(move |attempt| order(winners, winning, attempt)).await;
            assert_eq!(won.unwrap().value, 1);
            order(late, pool, attempt).await
        })
        .await
        .unwrap_err();
    let lost = error.action().expect("the action's own");
    assert!(matches!(&lost, Failed::Store(error) if error.is_lease_lost()), "{lost:?}");
    assert_eq!(orders(&database).await, 1);
}
