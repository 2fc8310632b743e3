//! Waiting by `LISTEN`.

use std::time::Duration;

use idem_core::{Store, Watch};
use idem_postgres::PostgresStore;
use tokio::time::timeout;

use crate::database::{Database, HOUR, acquire, attempt, key};

async fn is_hinted(watch: &mut Watch) {
    timeout(Duration::from_secs(20), watch.changed()).await.expect("no hint came");
}

const LISTENERS: &str = "FROM pg_stat_activity WHERE datname = current_database()
                         AND (query LIKE 'LISTEN%' OR query LIKE '%advisory_lock_shared%')
                         AND pid <> pg_backend_pid()";

const BELLS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
                     (SELECT oid FROM pg_database WHERE datname = current_database())";

// C122
#[tokio::test]
async fn a_lost_listener_comes_back_and_whoever_waits_looks_again() {
    let database = Database::fresh().await;
    let store = database.store().await;
    let lease = acquire(&store, &attempt("k")).await;
    let mut watch = store.watch(&key("k")).await.unwrap();
    let terminate = format!("SELECT count(pg_terminate_backend(pid)) {LISTENERS}");
    assert_eq!(database.number(&terminate).await, 1);
    // What happened meanwhile is not known.
    is_hinted(&mut watch).await;
    store.complete(&lease, &"done".into(), HOUR).await.unwrap();
    is_hinted(&mut watch).await;
}

// C74, C123
#[tokio::test]
async fn the_longest_key_is_hinted_at() {
    let database = Database::fresh().await;
    let store = database.store().await;
    let longest = "\u{10348}".repeat(255);
    let lease = acquire(&store, &attempt(&longest)).await;
    let mut watch = store.watch(&key(&longest)).await.unwrap();
    store.complete(&lease, &vec![7; 100_000].into(), HOUR).await.unwrap();
    is_hinted(&mut watch).await;
}

#[tokio::test]
async fn a_process_listens_on_one_connection_and_lets_go_of_what_nobody_waits_for() {
    let database = Database::fresh().await;
    let store = database.store().await;
    let mut watches = Vec::new();
    for number in 0..50 {
        watches.push(store.clone().watch(&key(&(number % 10).to_string())).await.unwrap());
    }
    assert_eq!(database.number(&format!("SELECT count(*) {LISTENERS}")).await, 1);
    assert_eq!(database.number(BELLS).await, 10);
    watches.truncate(5);
    for _ in 0..200 {
        if database.number(BELLS).await == 5 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(database.number(BELLS).await, 5);
    drop((watches, store));
    for _ in 0..200 {
        if database.number(&format!("SELECT count(*) {LISTENERS}")).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a listener outlives its store");
}

#[tokio::test]
async fn a_wait_that_is_dropped_on_the_way_leaves_nothing() {
    let database = Database::fresh().await;
    let store = database.store().await;
    for number in 0..200 {
        let key = key(&number.to_string());
        let _ = futures_util::FutureExt::now_or_never(store.watch(&key));
        let _ = timeout(Duration::from_micros(number * 10), store.watch(&key)).await;
    }
    let _last = store.watch(&key("last")).await.unwrap();
    for _ in 0..200 {
        if database.number(BELLS).await == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} bells are held for one who waits", database.number(BELLS).await);
}

#[tokio::test]
async fn without_hints_nothing_listens() {
    let database = Database::fresh().await;
    let store = database.store_with(PostgresStore::builder().hints(false)).await;
    assert!(store.watch(&key("k")).await.unwrap().is_never());
    assert_eq!(database.number(&format!("SELECT count(*) {LISTENERS}")).await, 0);
}
