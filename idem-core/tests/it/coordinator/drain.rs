//! Shutting down.

use std::sync::Arc;

use idem_memory::MemoryStore;
use tokio::time::{sleep, timeout};

use super::support::{MS, Provider, SEC, Trouble, Verb, call, coordinator, faulty, hasty, settle};

#[tokio::test(start_paused = true)]
async fn draining_waits_for_actions_whose_callers_have_left() {
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone()).build().unwrap();
    let provider = Provider::default();
    let left = timeout(MS, call(&idem).run(provider.action(5 * SEC))).await;
    assert!(left.is_err());
    let early = idem.drain(SEC).await.unwrap_err();
    assert_eq!(early.calls, 1);
    idem.drain(10 * SEC).await.unwrap();
    let next = coordinator(store).build().unwrap();
    assert!(call(&next).run(provider.action(MS)).await.unwrap().replayed);
}

#[tokio::test(start_paused = true)]
async fn a_draining_coordinator_takes_no_new_calls() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    idem.drain(SEC).await.unwrap();
    let provider = Provider::default();
    let refused = call(&idem).run(provider.action(MS)).await.unwrap_err();
    assert_eq!((refused.code(), provider.charges()), ("draining", 0));
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_borrowed_actions() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let draining = idem.clone();
    let provider = Provider::default();
    let borrowed = call(&idem).run_borrowed(|_| async {
        let early = draining.drain(SEC).await;
        assert!(early.is_err());
        provider.clone().charge(SEC).await
    });
    assert!(borrowed.await.is_ok());
    idem.drain(SEC).await.unwrap();
}

// A call that has not had to wait yet, and so has no task of its own, is under way all the same.
#[tokio::test(start_paused = true)]
async fn draining_waits_for_a_call_that_has_just_begun() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let draining = idem.clone();
    let early = call(&idem).run(|_| async move {
        let early = draining.drain(SEC).await;
        Ok::<_, String>(early.map_err(|still| still.calls))
    });
    assert_eq!(early.await.unwrap().value, Err(1));
    idem.drain(SEC).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_results_on_their_way_into_the_store() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
    store.always(Verb::Complete, Trouble::NotApplied);
    assert!(!call(&idem).run(Provider::default().action(MS)).await.unwrap().recorded);
    let draining = tokio::spawn({
        let idem = idem.clone();
        async move { idem.drain(60 * SEC).await }
    });
    settle().await;
    sleep(SEC).await;
    assert!(!draining.is_finished());
    store.heal();
    draining.await.unwrap().unwrap();
    assert!(store.asked(Verb::Complete) > 2);
}
