//! A standby that takes its primary's place: what an asynchronous one forgets, and a synchronous
//! one does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use idem_conformance::proxy::Proxy;
use idem_conformance::servers::{self, Server};
use idem_core::{Applied, Coordinator, Outcome, StoreError, Verdict};
use idem_postgres::{Committed, PostgresStore, Schema, TransactionRequest};
use sqlx::PgPool;

use crate::database::{REQUEST, attempt, key, reserve};

/// A primary, and a standby that hears from it by way of a proxy.
struct Pair {
    primary: Server,
    standby: Server,
    between: Proxy,
}

impl Pair {
    async fn start() -> (Self, PostgresStore) {
        let primary = servers::postgres().own().await.unwrap();
        let store = PostgresStore::connect(primary.url()).await.unwrap();
        let orders = "CREATE TABLE orders (id bigserial PRIMARY KEY, item text)";
        sqlx::raw_sql(orders).execute(store.pool()).await.unwrap();
        let between = Proxy::start(primary.addr()).await.unwrap();
        let standby = servers::postgres().standby_of(between.addr()).await.unwrap();
        (Self { primary, standby, between }, store)
    }

    /// Waits until the standby has all that the primary has; from then on it hears nothing.
    async fn part(&mut self, primary: &PgPool) {
        let same = "SELECT EXISTS (SELECT FROM pg_stat_replication
                                   WHERE replay_lsn = pg_current_wal_lsn())";
        until(primary, same).await;
        self.between.shut().await;
        self.between.cut();
        until(primary, "SELECT NOT EXISTS (SELECT FROM pg_stat_replication)").await;
    }

    /// The primary is gone, and the standby takes its place.
    async fn fail_over(&mut self) -> PostgresStore {
        self.primary.kill().await.unwrap();
        let store = self.on_the_standby().await;
        sqlx::query("SELECT pg_promote()").execute(store.pool()).await.unwrap();
        store
    }

    async fn on_the_standby(&self) -> PostgresStore {
        let builder = PostgresStore::builder().schema(Schema::None);
        builder.connect(self.standby.url()).await.unwrap()
    }
}

/// Asks until the answer is yes.
async fn until(on: &PgPool, question: &'static str) {
    let asking = async {
        while !sqlx::query_scalar::<_, bool>(question).fetch_one(on).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.expect(question);
}

async fn order(store: &PostgresStore, item: &'static str) -> Committed<i64> {
    let request = TransactionRequest::new(key(item), REQUEST);
    let insert = "INSERT INTO orders (item) VALUES ($1) RETURNING id";
    store
        .transaction(store.pool(), &request, |tx, _| {
            Box::pin(sqlx::query_scalar(insert).bind(item).fetch_one(tx))
        })
        .await
        .unwrap()
}

/// How many orders there are of the item, and how many records of its key.
async fn kept(store: &PostgresStore, item: &str) -> (i64, i64) {
    let both = "SELECT (SELECT count(*) FROM orders WHERE item = $1),
                       (SELECT count(*) FROM idem_record WHERE key = $2)";
    let query = sqlx::query_as(both).bind(item).bind(key(item).digest().to_vec());
    query.fetch_one(store.pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_standby_forgets_record_and_effect_together() {
    let (mut pair, store) = Pair::start().await;
    let book = order(&store, "book").await;
    pair.part(store.pool()).await;
    assert!(!order(&store, "lamp").await.replayed);
    let store = pair.fail_over().await;
    assert_eq!(kept(&store, "book").await, (1, 1));
    assert_eq!(kept(&store, "lamp").await, (0, 0));
    let again = order(&store, "book").await;
    assert_eq!((again.value, again.replayed), (book.value, true));
    assert!(!order(&store, "lamp").await.replayed, "its effect is gone, so it runs");
    assert_eq!(kept(&store, "lamp").await, (1, 1));
}

/// A provider that is asked to charge: how often, and under which keys.
#[derive(Clone, Default)]
struct Provider(Arc<std::sync::Mutex<Vec<String>>>);

impl Provider {
    async fn charge(&self, store: PostgresStore) -> Outcome<usize> {
        let asked = Arc::clone(&self.0);
        let call = Coordinator::builder(store).build().unwrap();
        call.operation("payment.charge")
            .key("k")
            .fingerprint(REQUEST)
            .run(move |attempt| async move {
                let mut asked = asked.lock().unwrap();
                asked.push(attempt.downstream_key());
                Ok::<_, std::fmt::Error>(asked.len())
            })
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_standby_forgets_the_record_and_the_provider_hears_its_key_again() {
    let (mut pair, store) = Pair::start().await;
    let provider = Provider::default();
    pair.part(store.pool()).await;
    assert!(!provider.charge(store.clone()).await.replayed);
    assert!(provider.charge(store).await.replayed);
    let store = pair.fail_over().await;
    assert!(!provider.charge(store.clone()).await.replayed, "the record is lost");
    assert!(provider.charge(store).await.replayed);
    let asked = provider.0.lock().unwrap().clone();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0], asked[1], "a provider that deduplicates has charged once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_synchronous_standby_forgets_nothing_that_was_acknowledged() {
    let (mut pair, store) = Pair::start().await;
    for sql in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
        sqlx::raw_sql(sql).execute(store.pool()).await.unwrap();
    }
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";
    until(store.pool(), waits).await;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (count, writer) = (Arc::clone(&acknowledged), store.clone());
    let writing = tokio::spawn(async move {
        while reserve(&writer, &attempt(&count.load(Ordering::SeqCst).to_string())).await.is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    while acknowledged.load(Ordering::SeqCst) < 100 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // In the middle of the next ones.
    let store = pair.fail_over().await;
    writing.await.unwrap();
    for number in 0..acknowledged.load(Ordering::SeqCst) {
        let verdict = reserve(&store, &attempt(&number.to_string())).await.unwrap();
        assert!(matches!(verdict, Verdict::InProgress { .. }), "{number}: {verdict:?}");
    }
}

// 25006
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_grants_nothing_until_it_is_promoted() {
    let (mut pair, store) = Pair::start().await;
    let standing = attempt("standing");
    reserve(&store, &standing).await.unwrap();
    pair.part(store.pool()).await;
    let standby = pair.on_the_standby().await;
    // Also a key that another has: what a standby knows may be old.
    for text in ["standing", "free"] {
        let refused = reserve(&standby, &attempt(text)).await.unwrap_err();
        assert!(
            matches!(refused, StoreError::Unavailable { applied: Applied::No, .. }),
            "{refused:?}"
        );
    }
    pair.fail_over().await;
    let verdict = reserve(&standby, &attempt("standing")).await.unwrap();
    assert!(matches!(verdict, Verdict::InProgress { .. }), "{verdict:?}");
    assert!(matches!(reserve(&standby, &attempt("free")).await, Ok(Verdict::Acquired { .. })));
}
