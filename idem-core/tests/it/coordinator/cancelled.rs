//! The caller leaves: at every point where it can.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use idem_core::{Abandoned, Coordinator, Store, Verdict};
use idem_memory::MemoryStore;
use tokio::time::{sleep, timeout};

use super::support::{
    Faulty, MS, Provider, SEC, Trouble, Verb, call, coordinator, faulty, rival, settle,
};

/// Polls the future so many times, letting time pass in between, and drops it. `true` if it was
/// done before.
async fn drop_after<F: Future>(polls: usize, future: F) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        let done = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready()));
        if done.await {
            return true;
        }
        settle().await;
        sleep(MS).await;
    }
    false
}

/// A store in which every call takes a moment, so that there are many points to leave at.
fn slow() -> Faulty {
    let store = faulty();
    for verb in [Verb::Reserve, Verb::Renew, Verb::Complete, Verb::Release] {
        store.always(verb, Trouble::Late(2 * MS));
    }
    store
}

// C31
#[tokio::test(start_paused = true)]
async fn an_action_outlives_its_caller_wherever_that_leaves() {
    let mut finished = false;
    let mut polls = 0;
    while !finished {
        let store = slow();
        let idem = coordinator(store.clone()).abandoned(Abandoned::Refuse).build().unwrap();
        let provider = Provider::default();
        finished = drop_after(polls, call(&idem).run(provider.action(3 * MS))).await;
        // Whatever had begun is done and recorded; whatever had not left nothing behind.
        sleep(SEC).await;
        let charged = provider.charges();
        let retry = call(&idem).run(provider.action(MS)).await;
        let retry = retry.unwrap_or_else(|error| panic!("after {polls} polls: {error}"));
        assert_eq!(retry.replayed, charged == 1, "after {polls} polls");
        assert_eq!(provider.charges(), 1, "after {polls} polls");
        polls += 1;
        assert!(polls < 1_000, "the call never ends");
    }
    assert!(polls > 5, "there were {polls} points to leave at");
}

#[tokio::test(start_paused = true)]
async fn a_borrowed_action_is_dropped_with_its_caller_and_its_key_abandoned() {
    let mut finished = false;
    let mut polls = 0;
    while !finished {
        let store = slow();
        let idem = coordinator(store.clone()).lease(2 * SEC).build().unwrap();
        let provider = Provider::default();
        let charges = &provider;
        let borrowed = call(&idem).run_borrowed(|_| charges.clone().charge(3 * MS));
        finished = drop_after(polls, borrowed).await;
        // At most a lease later the key is usable; a takeover knows that it is one.
        sleep(3 * SEC).await;
        let before = provider.charges();
        let retry = call(&idem)
            .run({
                let provider = provider.clone();
                move |attempt| async move {
                    assert_eq!(attempt.is_takeover(), before == 1);
                    provider.charge(MS).await
                }
            })
            .await
            .unwrap();
        assert!(retry.replayed || retry.recorded, "after {polls} polls");
        assert_eq!(provider.charges(), if retry.replayed { 1 } else { before + 1 });
        polls += 1;
        assert!(polls < 1_000, "the call never ends");
    }
    assert!(polls > 5, "there were {polls} points to leave at");
}

// C25: every way out of an action is an event, its drop included.
#[tokio::test(start_paused = true)]
async fn a_dropped_action_is_reported_as_abandoned() {
    let events = super::support::Events::default();
    let idem = coordinator(MemoryStore::new()).observe(events.observer()).build().unwrap();
    let provider = Provider::default();
    let borrowed = call(&idem).run_borrowed(|_| provider.clone().charge(SEC));
    assert!(timeout(MS, borrowed).await.is_err());
    assert_eq!(events.names(), ["reserved", "abandoned"]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_around_the_call_does_not_stop_the_charge() {
    // The article's own scenario: the client's time-out drops the handler's future.
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let provider = Provider::default();
    let first = timeout(100 * MS, call(&idem).run(provider.action(300 * MS))).await;
    assert!(first.is_err(), "the client gave up");
    let retry = call(&idem).run(provider.action(300 * MS)).await.unwrap();
    assert_eq!((retry.value.as_str(), retry.replayed), ("ch_1", true));
    assert_eq!(provider.charges(), 1);
}

async fn waiting(idem: &Coordinator, provider: &Provider, polls: usize) -> bool {
    drop_after(polls, call(idem).run(provider.action(MS))).await
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_changes_nothing() {
    for polls in 0..8 {
        let store = Arc::new(MemoryStore::new());
        let holder = rival(30 * SEC);
        let verdict = store.reserve(&holder).await.unwrap().verdict(&holder).unwrap();
        let Verdict::Acquired { lease, .. } = verdict else { panic!("{verdict:?}") };
        let idem = coordinator(store.clone()).build().unwrap();
        let provider = Provider::default();
        assert!(!waiting(&idem, &provider, polls).await);
        // The one who waits behind it is not stranded.
        let second = tokio::spawn(call(&idem).run(provider.action(MS)));
        sleep(100 * MS).await;
        store.release(&lease).await.unwrap();
        assert_eq!(second.await.unwrap().unwrap().value, "ch_1");
        assert_eq!(provider.charges(), 1);
    }
}
