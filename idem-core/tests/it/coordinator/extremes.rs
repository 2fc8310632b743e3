//! No setting, however large or small, panics or hangs a call.

use std::time::Duration;

use idem_core::{InFlight, Store, StoreBudget};
use tokio::time::{Instant, sleep, timeout};

use super::support::{
    Faulty, MS, Provider, SEC, Trouble, Verb, call, coordinator, faulty, hasty, rival, settle,
};

const FOREVER: Duration = Duration::MAX;

/// Every duration that has no upper bound, as long as it can be.
fn endless(store: Faulty) -> idem_core::Coordinator {
    let budget = StoreBudget::default().total(FOREVER).tries(u32::MAX).breaker(1, FOREVER);
    coordinator(store)
        .store_budget(budget)
        .in_flight(InFlight::Wait { at_most: FOREVER })
        .poll(FOREVER)
        .renew_for(FOREVER)
        .record_for(FOREVER)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_longest_durations_wait_and_do_not_overflow() {
    let store = faulty();
    let idem = endless(store.clone());
    let holder = rival(30 * SEC);
    let _ = store.store().reserve(&holder).await.unwrap();
    store.always(Verb::Watch, Trouble::NotApplied);
    let provider = Provider::default();
    // Waits out the other's lease, and then runs for longer than its own.
    let outcome = call(&idem).run(provider.action(100 * SEC)).await.unwrap();
    assert_eq!((outcome.value.as_str(), provider.charges()), ("ch_1", 1));
    idem.drain(FOREVER).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn as_many_tries_as_there_are_numbers_end_with_the_total() {
    let store = faulty();
    let budget = StoreBudget::default().total(2 * SEC).tries(u32::MAX).breaker(u32::MAX, FOREVER);
    let idem = coordinator(store.clone())
        .store_budget(budget)
        .on_store_failure(idem_core::OnStoreFailure::Refuse)
        .build()
        .unwrap();
    for fault in [Trouble::NotApplied, Trouble::Hangs] {
        store.heal();
        store.down(fault);
        let asked = Instant::now();
        assert!(call(&idem).run(Provider::default().action(MS)).await.is_err());
        assert!(asked.elapsed() <= 2 * SEC, "{fault:?} took {:?}", asked.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn the_shortest_durations_give_up_at_once_and_lose_nothing_that_was_given() {
    let store = faulty();
    let idem = coordinator(store.clone())
        .store_budget(hasty().per_try(3 * MS))
        .in_flight(InFlight::Wait { at_most: Duration::ZERO })
        .lease(10 * MS)
        .poll(Duration::from_nanos(1))
        .renew_for(Duration::ZERO)
        .record_for(Duration::ZERO)
        .max_result(0)
        .build()
        .unwrap();
    let outcome = call(&idem).run(|_| async { Ok::<_, String>(()) }).await.unwrap();
    assert!(outcome.recorded && outcome.not_kept.is_some(), "{outcome:?}");
    // Nobody is waited for.
    let running = idem.operation("slow").key("k").without_fingerprint();
    let running = tokio::spawn(running.run(Provider::default().action(SEC)));
    settle().await;
    let second = idem.operation("slow").key("k").without_fingerprint();
    let second = timeout(MS, second.run(Provider::default().action(SEC))).await.unwrap();
    assert_eq!(second.unwrap_err().code(), "in_progress");
    assert_eq!(running.await.unwrap().unwrap().value, "ch_1");
    // No time to record a result later: it is given, and that is all.
    store.always(Verb::Complete, Trouble::NotApplied);
    let unrecorded = idem.operation("lost").key("k").without_fingerprint();
    let unrecorded = unrecorded.run(Provider::default().action(MS)).await.unwrap();
    assert!(!unrecorded.recorded);
    idem.drain(SEC).await.unwrap();
}

// The shortest lease, under a budget that fits in it, is kept by its heartbeat.
#[tokio::test(start_paused = true)]
async fn the_shortest_lease_is_kept_alive() {
    let store = faulty();
    let idem =
        coordinator(store.clone()).store_budget(hasty().per_try(3 * MS)).lease(10 * MS).build();
    let idem = idem.unwrap();
    let slow = tokio::spawn(call(&idem).run(Provider::default().action(SEC)));
    for _ in 0..90 {
        sleep(10 * MS).await;
        let rival = rival(10 * MS);
        let verdict = store.store().reserve(&rival).await.unwrap().verdict(&rival).unwrap();
        assert!(matches!(verdict, idem_core::Verdict::InProgress { .. }), "{verdict:?}");
    }
    assert!(slow.await.unwrap().unwrap().recorded);
}
