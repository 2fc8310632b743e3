//! The store fails: open or closed.

use idem_core::{CallError, OnStoreFailure, RunError, StoreError};
use tokio::time::{Instant, sleep};

use super::support::{
    Charged, Events, FULL, MS, PERMISSION, Provider, SEC, Trouble, Verb, call, coordinator, faulty,
    fingerprint, hasty,
};

const OPEN: OnStoreFailure = OnStoreFailure::RunUnprotected;
const CLOSED: OnStoreFailure = OnStoreFailure::Refuse;

// C111
#[tokio::test(start_paused = true)]
async fn open_runs_unprotected_and_says_so() {
    for fault in [Trouble::NotApplied, Trouble::ReplyLost, Trouble::Hangs, FULL, PERMISSION] {
        let (store, events) = (faulty(), Events::default());
        let idem = coordinator(store.clone())
            .store_budget(hasty())
            .observe(events.observer())
            .build()
            .unwrap();
        store.down(fault);
        let outcome = call(&idem)
            .run(|attempt| async move {
                assert!(!attempt.is_protected() && attempt.fence().is_none());
                Ok::<_, String>(attempt.downstream_key())
            })
            .await
            .unwrap();
        assert!(!outcome.recorded, "{fault:?}");
        assert_eq!((events.count("store_failed"), events.count("ran_unprotected")), (1, 1));
    }
}

// C98
#[tokio::test(start_paused = true)]
async fn closed_refuses_and_the_action_does_not_run() {
    for fault in [Trouble::NotApplied, Trouble::ReplyLost, Trouble::Hangs, FULL, PERMISSION] {
        let store = faulty();
        let idem = coordinator(store.clone())
            .store_budget(hasty())
            .on_store_failure(CLOSED)
            .build()
            .unwrap();
        store.down(fault);
        let provider = Provider::default();
        let refused = call(&idem).run(provider.action(MS)).await.unwrap_err();
        assert!(matches!(refused, RunError::Call(CallError::Store { .. })), "{fault:?}");
        assert_eq!(provider.charges(), 0);
        store.heal();
        assert!(call(&idem).run(provider.action(MS)).await.unwrap().recorded, "{fault:?}");
    }
}

// L8, C109: what cannot be read is neither absent nor a failure to run in spite of.
#[tokio::test(start_paused = true)]
async fn a_corrupt_record_is_an_error_under_either_policy() {
    for policy in [OPEN, CLOSED] {
        let store = faulty();
        let idem = coordinator(store.clone()).on_store_failure(policy).build().unwrap();
        store.down(Trouble::Corrupt);
        let provider = Provider::default();
        let refused = call(&idem).run(provider.action(MS)).await.unwrap_err();
        let Some(CallError::Store { source: StoreError::Corrupt { .. }, .. }) = refused.call()
        else {
            panic!("{refused:?}");
        };
        assert_eq!((refused.code(), provider.charges()), ("record_corrupt", 0));
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_is_per_operation() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
    store.down(Trouble::NotApplied);
    let closed = idem.operation("refund").on_store_failure(CLOSED).key("k").without_fingerprint();
    assert!(closed.run(Provider::default().action(MS)).await.is_err());
    assert!(call(&idem).run(Provider::default().action(MS)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_process_runs_once_also_without_the_store() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
    store.down(Trouble::Hangs);
    let provider = Provider::default();
    let callers: Vec<_> =
        (0..100).map(|_| tokio::spawn(call(&idem).run(provider.action(SEC)))).collect();
    sleep(SEC / 2).await;
    let other = idem.operation("charge").key("k").fingerprint(fingerprint(2));
    let other = tokio::spawn(other.run(provider.action(SEC)));
    for caller in callers {
        assert_eq!(caller.await.unwrap().unwrap().value, "ch_1");
    }
    assert_eq!(provider.charges(), 1);
    assert_eq!(other.await.unwrap().unwrap_err().code(), "mismatch");
}

#[tokio::test(start_paused = true)]
async fn rejecting_callers_of_one_process_run_once_also_without_the_store() {
    use idem_core::InFlight;
    let store = faulty();
    let idem = coordinator(store.clone())
        .store_budget(hasty())
        .in_flight(InFlight::Reject)
        .build()
        .unwrap();
    store.down(Trouble::NotApplied);
    let provider = Provider::default();
    let callers: Vec<_> =
        (0..10).map(|_| tokio::spawn(call(&idem).run(provider.action(SEC)))).collect();
    let mut answers: Vec<Charged> = Vec::new();
    for caller in callers {
        answers.push(caller.await.unwrap());
    }
    let ran = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!((ran, provider.charges()), (1, 1));
    let told = answers.iter().filter_map(|answer| answer.as_ref().err());
    assert!(told.clone().all(|error| error.code() == "in_progress"), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_result_of_an_unprotected_run_is_recorded_when_the_store_is_back() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
    let provider = Provider::default();
    store.down(Trouble::NotApplied);
    assert!(!call(&idem).run(provider.action(MS)).await.unwrap().recorded);
    // Until then, this process remembers it.
    assert!(call(&idem).run(provider.action(MS)).await.unwrap().replayed);
    store.heal();
    sleep(10 * SEC).await;
    let elsewhere = coordinator(store).build().unwrap();
    assert!(call(&elsewhere).run(provider.action(MS)).await.unwrap().replayed);
    assert_eq!(provider.charges(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_unprotected_run_leaves_no_reservation_behind() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
    // The key is taken, and nobody is told.
    store.always(Verb::Reserve, Trouble::ReplyLost);
    let failed = call(&idem).run(|_| async { Err::<String, _>("502".to_owned()) }).await;
    assert_eq!(failed.unwrap_err().code(), "action_failed");
    store.heal();
    let asked = Instant::now();
    assert!(call(&idem).run(Provider::default().action(MS)).await.is_ok());
    assert!(asked.elapsed() < SEC, "the lease of the lost reservation was waited for");
}

// C102: a hung store costs the budget, and then nothing for a while.
#[tokio::test(start_paused = true)]
async fn a_hung_store_is_left_alone_after_some_failures() {
    let store = faulty();
    let idem = coordinator(store.clone()).on_store_failure(CLOSED).build().unwrap();
    store.down(Trouble::Hangs);
    let mut took = Vec::new();
    for _ in 0..4 {
        let asked = Instant::now();
        assert!(call(&idem).run(Provider::default().action(MS)).await.is_err());
        took.push(asked.elapsed());
    }
    assert!(took.iter().all(|took| *took <= 2 * SEC), "{took:?}");
    assert!(took[2..].iter().all(std::time::Duration::is_zero), "{took:?}");
    store.heal();
    sleep(SEC).await;
    assert!(call(&idem).run(Provider::default().action(MS)).await.is_ok());
}

// C28: a reservation that was seen is not forgotten because the store cannot be reached.
#[tokio::test(start_paused = true)]
async fn a_waiter_does_not_run_unprotected_when_the_store_fails_while_it_waits() {
    use idem_core::{InFlight, Store};
    let store = faulty();
    let rival = super::support::rival(30 * SEC);
    let _ = store.store().reserve(&rival).await.unwrap();
    let wait = InFlight::Wait { at_most: 10 * SEC };
    let idem = coordinator(store.clone()).store_budget(hasty()).in_flight(wait).build().unwrap();
    let provider = Provider::default();
    let waiter = tokio::spawn(call(&idem).run(provider.action(MS)));
    sleep(SEC).await;
    store.down(Trouble::NotApplied);
    assert_eq!(waiter.await.unwrap().unwrap_err().code(), "in_progress");
    assert_eq!(provider.charges(), 0);
}

// Two processes without their store both run: this is what failing open means. When it is back, one
// answer stands in the store, and the other gives way to it.
#[tokio::test(start_paused = true)]
async fn two_processes_without_the_store_both_run_and_one_answer_stands() {
    let (store, events) = (faulty(), Events::default());
    let process = || {
        let idem = coordinator(store.clone()).store_budget(hasty()).observe(events.observer());
        idem.build().unwrap()
    };
    let (first, second) = (process(), process());
    store.down(Trouble::NotApplied);
    let provider = Provider::default();
    for (idem, charge) in [(&first, "ch_1"), (&second, "ch_2")] {
        let outcome = call(idem).run(provider.action(MS)).await.unwrap();
        assert_eq!((outcome.value.as_str(), outcome.recorded), (charge, false));
    }
    store.heal();
    sleep(10 * SEC).await;
    assert_eq!((events.count("completed"), events.count("superseded")), (1, 1));
    let answers = [call(&first).run(provider.action(MS)), call(&second).run(provider.action(MS))];
    let [one, other] = answers;
    assert_eq!(one.await.unwrap().value, other.await.unwrap().value);
    assert_eq!(provider.charges(), 2);
}

// The store took the key without an answer, the action ran unprotected, the store is back: the
// reservation was this attempt's own, and is completed, not waited for.
#[tokio::test(start_paused = true)]
async fn an_unprotected_run_completes_the_reservation_that_it_was_not_told_of() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
    let provider = Provider::default();
    store.next(Verb::Reserve, Trouble::ReplyLost);
    store.next(Verb::Reserve, Trouble::ReplyLost);
    let asked = Instant::now();
    let outcome = call(&idem).run(provider.action(MS)).await.unwrap();
    assert!(outcome.recorded && asked.elapsed() < SEC);
    let elsewhere = coordinator(store).build().unwrap();
    assert!(call(&elsewhere).run(provider.action(MS)).await.unwrap().replayed);
    assert_eq!(provider.charges(), 1);
}
