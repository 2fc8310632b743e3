//! A completion is never lost in silence.

use std::sync::Arc;

use idem_memory::MemoryStore;
use tokio::time::{Instant, sleep, timeout};

use super::support::{
    Events, FULL, MS, PERMISSION, Provider, SEC, Trouble, Verb, call, coordinator, faulty,
    fingerprint, hasty, key, rival,
};
use idem_core::{Attempt, InFlight, Lease, NotKept, Store, Verdict};

// C103: a lost answer is asked for again, and costs no lease.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_any_verb_costs_one_more_try_and_nothing_else() {
    for verb in [Verb::Reserve, Verb::Complete] {
        for fault in [Trouble::NotApplied, Trouble::ReplyLost, Trouble::Hangs, Trouble::Late(SEC)] {
            let store = faulty();
            let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
            let provider = Provider::default();
            store.next(verb, fault);
            let asked = Instant::now();
            let outcome = call(&idem).run(provider.action(MS)).await.unwrap();
            assert!(outcome.recorded && !outcome.replayed, "{verb:?} {fault:?}");
            assert!(asked.elapsed() < SEC, "{verb:?} {fault:?} took {:?}", asked.elapsed());
            assert!(call(&idem).run(provider.action(MS)).await.unwrap().replayed);
            assert_eq!(provider.charges(), 1, "{verb:?} {fault:?}");
        }
    }
}

// C25, C134
#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_recorded_is_given_and_recorded_later() {
    for fault in [Trouble::NotApplied, Trouble::ReplyLost, Trouble::Hangs, PERMISSION] {
        let (store, events) = (faulty(), Events::default());
        let idem = coordinator(store.clone())
            .store_budget(hasty())
            .observe(events.observer())
            .lease(3 * SEC)
            .build()
            .unwrap();
        let provider = Provider::default();
        store.always(Verb::Complete, fault);
        let outcome = call(&idem).run(provider.action(MS)).await.unwrap();
        assert_eq!((outcome.value.as_str(), outcome.recorded), ("ch_1", false), "{fault:?}");
        // The lease is kept alive meanwhile: nobody takes over.
        sleep(10 * SEC).await;
        let rival = rival(SEC);
        let seen = store.store().reserve(&rival).await.unwrap().verdict(&rival).unwrap();
        if fault != Trouble::ReplyLost {
            assert!(matches!(seen, Verdict::InProgress { .. }), "{fault:?}: {seen:?}");
        }
        // And this process knows the answer.
        assert!(call(&idem).run(provider.action(MS)).await.unwrap().replayed);
        store.heal();
        sleep(10 * SEC).await;
        let seen = store.store().reserve(&rival).await.unwrap().verdict(&rival).unwrap();
        assert!(matches!(seen, Verdict::Replay(_)), "{fault:?}: {seen:?}");
        assert_eq!(provider.charges(), 1);
        assert_eq!(events.count("completion_retried"), 1);
        assert_eq!(events.count("completed"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn recording_is_given_up_in_the_end_and_said_so() {
    let (store, events) = (faulty(), Events::default());
    let idem = coordinator(store.clone())
        .store_budget(hasty())
        .record_for(60 * SEC)
        .observe(events.observer())
        .build()
        .unwrap();
    store.always(Verb::Complete, Trouble::NotApplied);
    call(&idem).run(Provider::default().action(MS)).await.unwrap();
    sleep(70 * SEC).await;
    assert_eq!(events.count("not_recorded"), 1);
    let asked = store.asked(Verb::Complete);
    sleep(70 * SEC).await;
    assert_eq!(store.asked(Verb::Complete), asked, "and not asked any more");
}

#[tokio::test(start_paused = true)]
async fn a_store_without_room_for_the_response_remembers_that_it_is_done() {
    let store = Arc::new(MemoryStore::builder().max_bytes(2_000).build());
    let events = Events::default();
    let idem = coordinator(store).observe(events.observer()).build().unwrap();
    let large = || async { Ok::<_, String>("x".repeat(4_000)) };
    let outcome = call(&idem).run(move |_| large()).await.unwrap();
    assert_eq!((outcome.value.len(), outcome.recorded), (4_000, true));
    assert_eq!(outcome.not_kept, Some(NotKept::NoRoom));
    let retry = call(&idem).run(Provider::default().action(MS)).await.unwrap_err();
    assert_eq!(retry.code(), "response_not_kept");
    assert_eq!(events.names(), ["reserved", "completed", "response_not_kept", "replayed"]);
}

/// Takes the key over behind the coordinator's back.
async fn taken_over(store: &MemoryStore, rival: &Attempt) -> Lease {
    store.forget(&key()).expect("there is a reservation");
    match store.reserve(rival).await.unwrap().verdict(rival).unwrap() {
        Verdict::Acquired { lease, .. } => lease,
        other => panic!("{other:?}"),
    }
}

// Who had taken over dies, or fails: the late owner's result is the key's after all, whether its
// caller was told to come back or has left.
#[tokio::test(start_paused = true)]
async fn a_late_result_is_recorded_if_the_one_who_took_over_has_none() {
    for (releases, caller_leaves) in [(true, true), (true, false), (false, true), (false, false)] {
        let (store, events) = (Arc::new(MemoryStore::new()), Events::default());
        let idem = coordinator(store.clone())
            .in_flight(InFlight::Wait { at_most: 2 * SEC })
            .observe(events.observer())
            .build()
            .unwrap();
        let provider = Provider::default();
        let late = call(&idem).run(provider.action(5 * SEC));
        let late = tokio::spawn(timeout(if caller_leaves { SEC } else { 60 * SEC }, late));
        sleep(SEC / 2).await;
        let lease = taken_over(&store, &rival(15 * SEC)).await;
        match late.await.unwrap() {
            Err(_) => assert!(caller_leaves),
            Ok(told) => assert_eq!(told.unwrap_err().code(), "in_progress"),
        }
        if releases {
            store.release(&lease).await.unwrap();
        }
        sleep(30 * SEC).await;
        let retry = call(&idem).run(provider.action(MS)).await.unwrap();
        assert_eq!((retry.value.as_str(), retry.replayed), ("ch_1", true));
        assert_eq!(provider.charges(), 1);
        assert_eq!(events.count("completed"), 1, "{:?}", events.names());
        idem.drain(SEC).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_result_gives_way_to_a_winner_that_completes_after_all_patience() {
    let (store, events) = (Arc::new(MemoryStore::new()), Events::default());
    let idem = coordinator(store.clone())
        .in_flight(InFlight::Wait { at_most: 2 * SEC })
        .observe(events.observer())
        .build()
        .unwrap();
    let late = tokio::spawn(call(&idem).run(Provider::default().action(5 * SEC)));
    sleep(SEC / 2).await;
    let lease = taken_over(&store, &rival(30 * SEC)).await;
    assert_eq!(late.await.unwrap().unwrap_err().code(), "in_progress");
    let payload = super::codecs::stored(br#""ch_of_the_winner""#);
    store.complete(&lease, &payload, Attempt::DEFAULT_RETENTION).await.unwrap();
    sleep(10 * SEC).await;
    assert_eq!(events.names(), ["reserved", "lease_lost", "rejected", "superseded"]);
}

// C8: the key was evicted and used for another request: that one's record is left alone.
#[tokio::test(start_paused = true)]
async fn a_late_result_does_not_touch_another_requests_record() {
    let (store, events) = (Arc::new(MemoryStore::new()), Events::default());
    let idem = coordinator(store.clone()).observe(events.observer()).build().unwrap();
    let late = tokio::spawn(call(&idem).run(Provider::default().action(5 * SEC)));
    sleep(SEC / 2).await;
    let other = Attempt::new(key(), fingerprint(2));
    let lease = taken_over(&store, &other).await;
    let outcome = late.await.unwrap().unwrap();
    assert_eq!((outcome.value.as_str(), outcome.recorded), ("ch_1", false));
    assert_eq!(events.names(), ["reserved", "lease_lost", "not_recorded"]);
    store.complete(&lease, &bytes::Bytes::new(), Attempt::DEFAULT_RETENTION).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_not_kept_is_reported_also_if_it_is_recorded_late() {
    let (store, events) = (faulty(), Events::default());
    let idem = coordinator(store.clone()).store_budget(hasty()).observe(events.observer());
    let idem = idem.build().unwrap();
    store.always(Verb::Complete, FULL);
    let outcome = call(&idem).run(Provider::default().action(MS)).await.unwrap();
    assert_eq!((outcome.recorded, outcome.not_kept), (false, Some(NotKept::NoRoom)));
    store.heal();
    sleep(10 * SEC).await;
    let expected = ["reserved", "completion_retried", "completed", "response_not_kept"];
    assert_eq!(events.names(), expected);
}

// C36: recorded first, answered then: a retry on the heels of the answer finds it.
#[tokio::test(start_paused = true)]
async fn a_result_is_in_the_store_before_its_answer_is_given() {
    let store = faulty();
    let process = || coordinator(store.clone()).in_flight(InFlight::Reject).build().unwrap();
    let (first, second) = (process(), process());
    store.always(Verb::Complete, Trouble::Late(100 * MS));
    let provider = Provider::default();
    assert!(call(&first).run(provider.action(MS)).await.unwrap().recorded);
    assert!(call(&second).run(provider.action(MS)).await.unwrap().replayed);
}

// C54, C55, C56: what a request is survives its completion, and a caller with another request
// changes nothing for the next.
#[tokio::test(start_paused = true)]
async fn a_completed_record_still_knows_its_request() {
    let store = faulty();
    let provider = Provider::default();
    let first = coordinator(store.clone()).build().unwrap();
    call(&first).run(provider.action(MS)).await.unwrap();
    let elsewhere = coordinator(store).build().unwrap();
    let other = elsewhere.operation("charge").key("k").fingerprint(fingerprint(2));
    assert_eq!(other.run(provider.action(MS)).await.unwrap_err().code(), "mismatch");
    assert!(call(&elsewhere).run(provider.action(MS)).await.unwrap().replayed);
    assert_eq!(provider.charges(), 1);
}

// C106, C140: the window is the retention, and it counts from the completion.
#[tokio::test(start_paused = true)]
async fn a_result_is_kept_for_its_retention_from_its_completion() {
    let idem = coordinator(faulty()).retention(60 * SEC).build().unwrap();
    let provider = Provider::default();
    call(&idem).run(provider.action(59 * SEC)).await.unwrap();
    sleep(59 * SEC).await;
    assert!(call(&idem).run(provider.action(MS)).await.unwrap().replayed);
    sleep(2 * SEC).await;
    assert_eq!(call(&idem).run(provider.action(MS)).await.unwrap().value, "ch_2");
}

// C79: whatever a key was reserved under, it is released under.
#[tokio::test(start_paused = true)]
async fn a_failed_action_leaves_nothing_of_its_key() {
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone()).build().unwrap();
    let call = || idem.operation("charge").tenant("{acme}").key("../k").without_fingerprint();
    for _ in 0..2 {
        let failed = call().run(|attempt| async move {
            assert_eq!(attempt.number(), 1);
            Err::<String, _>(attempt.key().clone())
        });
        let key = failed.await.unwrap_err().action().unwrap();
        let row = store.inspect(&key).expect("its fence is remembered");
        assert_eq!(row.phase, idem_core::model::Phase::Released);
    }
    assert_eq!(store.len(), 1);
}
