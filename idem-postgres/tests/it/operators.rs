//! The statements of `docs/operating.md`, as they are printed there.

use std::time::Duration;

use idem_core::{Coordinator, Store, Verdict};
use sqlx::{AssertSqlSafe, Row as _};

use crate::database::{Database, REQUEST, acquire, attempt, key, reserve};

/// The statements of the page, in their order, about this key.
fn statements(text: &str) -> Vec<String> {
    let key = key(text);
    let (left, right) = key.digest().split_at(16);
    let half = |half: &[u8]| u128::from_be_bytes(half.try_into().unwrap());
    let digest = format!("{:032x}{:032x}", half(left), half(right));
    include_str!("../../docs/operating.md")
        .split("```sql\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap().replace('\u{2026}', &digest))
        .collect()
}

// C27
#[tokio::test]
async fn an_abandoned_key_is_found_and_resolved_by_hand() {
    let database = Database::fresh().await;
    let store = database.store().await;
    let [find, free, complete] = &statements("k")[..] else { panic!("the page has changed") };
    let found =
        async || sqlx::query(AssertSqlSafe(find.clone())).fetch_all(&database.pool).await.unwrap();

    // Nobody takes the key from a worker that is alive.
    let lease = acquire(&store, &attempt("k")).await;
    database.run(free).await;
    database.run(complete).await;
    assert!(found().await.is_empty());
    assert!(matches!(reserve(&store, &attempt("k")).await.unwrap(), Verdict::InProgress { .. }));

    store.renew(&lease, Duration::ZERO).await.unwrap();
    let rows = found().await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<String, _>("operation"), "payment.charge");
    database.run(free).await;
    let next = acquire(&store, &attempt("k").takeover(false)).await;
    assert!(next.fence() > lease.fence(), "L3");

    store.renew(&next, Duration::ZERO).await.unwrap();
    database.run(complete).await;
    let idem = Coordinator::builder(store).build().unwrap();
    let replayed = idem
        .operation("payment.charge")
        .key("k")
        .fingerprint(REQUEST)
        .run(async |_| Err::<String, _>(std::io::Error::other("it ran")))
        .await
        .unwrap();
    assert_eq!((replayed.value.as_str(), replayed.replayed), ("ch_1", true));
}
