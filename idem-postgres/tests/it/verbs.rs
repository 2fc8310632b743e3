//! What the statements do, and what they cost the server.

use idem_core::{Store, Verdict};

use crate::database::{Database, HOUR, acquire, attempt, reserve};

#[tokio::test]
async fn a_key_is_reserved_completed_and_replayed() {
    let database = Database::fresh().await;
    let store = database.store().await;
    let (a, b) = (attempt("k"), attempt("k"));
    let lease = acquire(&store, &a).await;
    assert!(matches!(reserve(&store, &b).await.unwrap(), Verdict::InProgress { .. }));
    store.renew(&lease, HOUR).await.unwrap();
    store.complete(&lease, &"done".into(), HOUR).await.unwrap();
    store.complete(&lease, &"other".into(), HOUR).await.unwrap();
    assert_eq!(reserve(&store, &b).await.unwrap(), Verdict::Replay("done".into()));
    assert!(store.release(&lease).await.unwrap_err().is_lease_lost());
    let c = attempt("released");
    let lease = acquire(&store, &c).await;
    store.release(&lease).await.unwrap();
    store.release(&lease).await.unwrap();
    assert!(store.reserve(&c).await.unwrap_err().is_lease_lost());
    let _next = acquire(&store, &attempt("released")).await;
}
