//! A key whose action never began is given back, whatever the store did not say.

use std::sync::Arc;

use idem_core::{Abandoned, Coordinator, InFlight, OnStoreFailure, Store, Verdict};
use idem_memory::MemoryStore;
use tokio::time::{Instant, sleep, timeout};

use super::support::{
    Faulty, MS, PERMISSION, Provider, SEC, Trouble, Verb, call, coordinator, faulty, fingerprint,
    hasty, rival,
};

/// At most once, and closed: whatever is left behind, an operator has to resolve.
fn refusing(store: &Faulty) -> Coordinator {
    coordinator(store.clone())
        .store_budget(hasty())
        .on_store_failure(OnStoreFailure::Refuse)
        .abandoned(Abandoned::Refuse)
        .build()
        .unwrap()
}

// C103: at most once, closed, and the answer to every reserve lost: nothing ran, so nothing may be
// left that an operator has to resolve.
#[tokio::test(start_paused = true)]
async fn a_refused_call_whose_reservation_was_made_unheard_leaves_none() {
    let store = faulty();
    let idem = refusing(&store);
    store.always(Verb::Reserve, Trouble::ReplyLost);
    // The release that follows fails at first, too.
    store.next(Verb::Release, Trouble::NotApplied);
    store.next(Verb::Release, Trouble::NotApplied);
    let provider = Provider::default();
    assert_eq!(call(&idem).run(provider.action(MS)).await.unwrap_err().code(), "store_unavailable");
    store.heal();
    sleep(2 * SEC).await;
    // Free for any request.
    let other = idem.operation("charge").key("k").fingerprint(fingerprint(2));
    assert!(other.run(provider.action(MS)).await.unwrap().recorded);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_leaves_no_reservation_made_unheard() {
    let store = faulty();
    let holder = rival(30 * SEC);
    let verdict = store.store().reserve(&holder).await.unwrap().verdict(&holder).unwrap();
    let Verdict::Acquired { lease, .. } = verdict else { panic!("{verdict:?}") };
    let idem = coordinator(store.clone())
        .store_budget(hasty())
        .abandoned(Abandoned::Refuse)
        .in_flight(InFlight::Wait { at_most: 3 * SEC })
        .build()
        .unwrap();
    let provider = Provider::default();
    let waiter = tokio::spawn(call(&idem).run(provider.action(MS)));
    sleep(SEC).await;
    store.always(Verb::Reserve, Trouble::ReplyLost);
    store.store().release(&lease).await.unwrap();
    sleep(SEC).await;
    // A later failure that is certain does not make the earlier one certain.
    store.heal();
    store.always(Verb::Reserve, Trouble::NotApplied);
    assert_eq!(waiter.await.unwrap().unwrap_err().code(), "in_progress");
    store.heal();
    sleep(2 * SEC).await;
    assert!(call(&idem).run(provider.action(MS)).await.unwrap().recorded);
}

// A takeover that never began knows nothing of the attempt before: its key stays abandoned.
#[tokio::test(start_paused = true)]
async fn a_takeover_that_never_began_does_not_forget_the_attempt_before() {
    let store = faulty();
    let dead = rival(SEC);
    let _ = store.store().reserve(&dead).await.unwrap();
    sleep(2 * SEC).await;
    store.next(Verb::Reserve, Trouble::Late(50 * MS));
    let idem = coordinator(store.clone()).build().unwrap();
    assert!(timeout(10 * MS, call(&idem).run(Provider::default().action(MS))).await.is_err());
    sleep(SEC).await;
    assert_eq!((store.asked(Verb::Release), store.asked(Verb::Renew)), (0, 1));
    let number = call(&idem)
        .run(|attempt| async move { Ok::<_, String>((attempt.is_takeover(), attempt.number())) });
    assert_eq!(number.await.unwrap().value, (true, 3));
}

// An answer that is lost before the store refuses is as much a doubt as one lost at the end.
#[tokio::test(start_paused = true)]
async fn a_reservation_made_unheard_before_the_store_refused_is_given_back() {
    let store = faulty();
    let idem = refusing(&store);
    store.next(Verb::Reserve, Trouble::ReplyLost);
    store.next(Verb::Reserve, PERMISSION);
    let provider = Provider::default();
    let refused = call(&idem).run(provider.action(MS)).await.unwrap_err();
    assert_eq!(refused.code(), "store_refused_permission");
    sleep(SEC).await;
    assert!(call(&idem).run(provider.action(MS)).await.unwrap().recorded);
}

// To find out whether a reservation was made is not to take over what another left.
#[tokio::test(start_paused = true)]
async fn a_doubt_is_resolved_without_a_takeover() {
    let store = faulty();
    let dead = rival(SEC);
    let _ = store.store().reserve(&dead).await.unwrap();
    sleep(2 * SEC).await;
    let idem = coordinator(store.clone()).store_budget(hasty());
    let idem = idem.on_store_failure(OnStoreFailure::Refuse).build().unwrap();
    store.always(Verb::Reserve, Trouble::Hangs);
    assert!(call(&idem).run(Provider::default().action(MS)).await.is_err());
    store.heal();
    sleep(2 * SEC).await;
    let number = call(&idem).run(|attempt| async move { Ok::<_, String>(attempt.number()) });
    assert_eq!(number.await.unwrap().value, 2);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_certainly_took_nothing_is_not_asked_to_release_it() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
    store.down(Trouble::NotApplied);
    let failed = call(&idem).run(|_| async { Err::<String, _>("502".to_owned()) }).await;
    assert_eq!(failed.unwrap_err().code(), "action_failed");
    sleep(SEC).await;
    assert_eq!(store.asked(Verb::Release), 0);
}

// The runtime is shut down in the middle of a call: no panic, and at most a lease is left.
#[test]
fn a_runtime_that_is_shut_down_leaves_a_lease_at_most() {
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone()).build().unwrap();
    let provider = Provider::default();
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let first = runtime();
    let caller = first.spawn(call(&idem).run(provider.action(3_600 * SEC)));
    while provider.charges() == 0 {
        std::thread::yield_now();
    }
    first.shutdown_background();
    drop(caller);
    let row = store.inspect(&super::support::key()).expect("a reservation");
    assert!(matches!(row.phase, idem_core::model::Phase::Pending { .. }), "{row:?}");
    // The coordinator is as good as before, in another runtime.
    let other = idem.operation("other").key("k").without_fingerprint();
    assert!(runtime().block_on(other.run(provider.action(MS))).unwrap().recorded);
}

#[tokio::test(start_paused = true)]
async fn a_key_given_back_is_free_at_once() {
    let store = faulty();
    store.next(Verb::Reserve, Trouble::Late(50 * MS));
    let idem = coordinator(store.clone()).build().unwrap();
    let provider = Provider::default();
    assert!(timeout(10 * MS, call(&idem).run(provider.action(MS))).await.is_err());
    // Others who follow the one that left are not stranded, and do not wait for a lease.
    let asked = Instant::now();
    let follower = call(&idem).run(provider.action(MS)).await.unwrap();
    assert!(!follower.replayed && asked.elapsed() < SEC);
    assert_eq!(provider.charges(), 1);
}
