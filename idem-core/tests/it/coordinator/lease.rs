//! Keeping a lease, and losing it.

use std::sync::Arc;
use std::time::Duration;

use idem_core::envelope::Envelope;
use idem_core::{CallError, InFlight, Json, RunError, Store, StoreError, Verdict};
use idem_memory::MemoryStore;
use tokio::time::{Instant, sleep};

use super::support::{
    Events, Provider, SEC, Trouble, Verb, call, coordinator, faulty, hasty, key, rival,
};

const HOUR: Duration = Duration::from_hours(1);

// C17, C18: an action far longer than its lease runs once.
#[tokio::test(start_paused = true)]
async fn a_long_action_keeps_its_lease() {
    let store = faulty();
    let idem = coordinator(store.clone()).lease(3 * SEC).build().unwrap();
    let provider = Provider::default();
    let slow = tokio::spawn(call(&idem).run(provider.action(30 * SEC)));
    for _ in 0..29 {
        sleep(SEC).await;
        let rival = rival(3 * SEC);
        let verdict = store.store().reserve(&rival).await.unwrap().verdict(&rival).unwrap();
        let Verdict::InProgress { left } = verdict else { panic!("taken over: {verdict:?}") };
        assert!(left > SEC, "{left:?} left");
    }
    assert_eq!(slow.await.unwrap().unwrap().value, "ch_1");
    assert_eq!(store.asked(Verb::Renew), 29, "once a third of the lease");
}

#[tokio::test(start_paused = true)]
async fn a_short_action_needs_no_heartbeat() {
    let store = faulty();
    let idem = coordinator(store.clone()).build().unwrap();
    call(&idem).run(Provider::default().action(SEC)).await.unwrap();
    assert_eq!((store.asked(Verb::Reserve), store.asked(Verb::Complete)), (1, 1));
    assert_eq!((store.asked(Verb::Renew), store.asked(Verb::Watch)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_action_beyond_the_ceiling_is_told_and_taken_over() {
    let (store, events) = (Arc::new(MemoryStore::new()), Events::default());
    let idem = coordinator(store.clone())
        .lease(3 * SEC)
        .renew_for(10 * SEC)
        .observe(events.observer())
        .build()
        .unwrap();
    let begun = Instant::now();
    let stuck = tokio::spawn(call(&idem).run(move |attempt| async move {
        attempt.lost().await;
        assert!(attempt.is_lost() && attempt.lease_left().is_zero());
        Err::<String, _>(format!("{}", begun.elapsed().as_secs()))
    }));
    let error = stuck.await.unwrap().unwrap_err().action().unwrap();
    let after: u64 = error.parse().unwrap();
    assert!((10..=13).contains(&after), "lost after {after} s");
    assert!(events.names().starts_with(&["reserved", "renewal_ended", "lease_lost"]));
}

// C20, C21
#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_reached_loses_the_lease_by_the_local_clock() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).lease(3 * SEC).build().unwrap();
    let begun = Instant::now();
    let told = tokio::spawn(call(&idem).run(move |attempt| async move {
        attempt.lost().await;
        Ok::<_, String>(begun.elapsed().as_millis())
    }));
    sleep(SEC / 2).await;
    store.always(Verb::Renew, Trouble::Hangs);
    let outcome = told.await.unwrap().unwrap();
    assert!((3_000..3_010).contains(&outcome.value), "told after {} ms", outcome.value);
    // L5: nobody took over, so the late result is recorded.
    assert!(outcome.recorded);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_once_is_made_up_for() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).lease(3 * SEC).build().unwrap();
    for fault in [Trouble::NotApplied, Trouble::ReplyLost, Trouble::Hangs] {
        store.next(Verb::Renew, fault);
    }
    let kept = call(&idem).run(|attempt| async move {
        sleep(10 * SEC).await;
        Ok::<_, String>(attempt.is_lost())
    });
    assert!(!kept.await.unwrap().value);
}

/// Takes the key over behind the coordinator's back, and completes it if it has an answer.
async fn take_over(store: &MemoryStore, answer: Option<&'static str>) {
    store.forget(&key()).expect("there is a reservation");
    let winner = rival(30 * SEC);
    let verdict = store.reserve(&winner).await.unwrap().verdict(&winner).unwrap();
    let Verdict::Acquired { lease, .. } = verdict else { panic!("{verdict:?}") };
    if let Some(answer) = answer {
        let payload = super::codecs::stored(&serde_json::to_vec(answer).unwrap());
        store.complete(&lease, &payload, winner.retention_for()).await.unwrap();
    }
}

// C12, C21: the late owner does not send its own answer as if it were the truth.
#[tokio::test(start_paused = true)]
async fn a_late_owner_answers_with_the_winners_result() {
    let (store, events) = (Arc::new(MemoryStore::new()), Events::default());
    let idem = coordinator(store.clone()).observe(events.observer()).build().unwrap();
    let provider = Provider::default();
    let late = tokio::spawn(call(&idem).run(provider.action(5 * SEC)));
    sleep(SEC).await;
    take_over(&store, Some("ch_of_the_winner")).await;
    let outcome = late.await.unwrap().unwrap();
    assert_eq!((outcome.value.as_str(), outcome.replayed), ("ch_of_the_winner", true));
    assert_eq!(events.names(), ["reserved", "lease_lost", "superseded"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_owner_waits_for_a_winner_that_is_still_running() {
    let store = Arc::new(MemoryStore::new());
    let wait = InFlight::Wait { at_most: 10 * SEC };
    let idem = coordinator(store.clone()).in_flight(wait).build().unwrap();
    let provider = Provider::default();
    let late = tokio::spawn(call(&idem).run(provider.action(5 * SEC)));
    sleep(SEC).await;
    take_over(&store, None).await;
    let error = late.await.unwrap().unwrap_err();
    assert!(matches!(error, RunError::Call(CallError::InProgress { .. })), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_result_whose_record_has_vanished_is_stored_again() {
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone()).build().unwrap();
    let provider = Provider::default();
    let running = tokio::spawn(call(&idem).run(provider.action(5 * SEC)));
    sleep(SEC).await;
    store.forget(&key()).expect("there is a reservation");
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.value.as_str(), outcome.recorded), ("ch_1", true));
    let retry = call(&idem).run(provider.action(SEC)).await.unwrap();
    assert_eq!((retry.value.as_str(), retry.replayed), ("ch_1", true));
}

#[tokio::test(start_paused = true)]
async fn callers_who_followed_a_lost_lease_follow_the_winner() {
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone()).lease(3 * SEC).build().unwrap();
    let provider = Provider::default();
    let late = tokio::spawn(call(&idem).run(provider.action(20 * SEC)));
    sleep(SEC / 2).await;
    let follower = tokio::spawn(call(&idem).run(provider.action(SEC)));
    sleep(SEC / 4).await;
    take_over(&store, Some("ch_of_the_winner")).await;
    let told = Instant::now();
    let outcome = follower.await.unwrap().unwrap();
    assert_eq!(outcome.value, "ch_of_the_winner");
    assert!(told.elapsed() < 2 * SEC, "not when the late owner is done");
    assert_eq!(late.await.unwrap().unwrap().value, "ch_of_the_winner");
    assert_eq!(provider.charges(), 1);
}

// The loss of a lease is told once, whoever finds out: the heartbeat, the clock, the completion.
#[tokio::test(start_paused = true)]
async fn a_lease_is_lost_once() {
    for fails in [false, true] {
        let (store, events) = (Arc::new(MemoryStore::new()), Events::default());
        let idem = coordinator(store.clone()).lease(3 * SEC).observe(events.observer());
        let idem = idem.build().unwrap();
        let late = tokio::spawn(call(&idem).run(move |_| async move {
            sleep(5 * SEC).await;
            if fails { Err("502".to_owned()) } else { Ok("ch_late".to_owned()) }
        }));
        sleep(SEC / 2).await;
        take_over(&store, Some("ch_of_the_winner")).await;
        let outcome = late.await.unwrap();
        if fails {
            assert_eq!(outcome.unwrap_err().code(), "action_failed");
        } else {
            assert_eq!(outcome.unwrap().value, "ch_of_the_winner");
        }
        assert_eq!(events.names(), ["reserved", "lease_lost", "superseded"], "fails: {fails}");
    }
}

// C104: the record is evicted in the middle of a long action: the key does not look free for the
// rest of it, neither here nor elsewhere.
#[tokio::test(start_paused = true)]
async fn a_key_whose_record_has_vanished_is_taken_back_while_its_action_runs() {
    let (store, events) = (Arc::new(MemoryStore::new()), Events::default());
    let idem = coordinator(store.clone()).lease(3 * SEC).observe(events.observer());
    let idem = idem.build().unwrap();
    let provider = Provider::default();
    let running = tokio::spawn(call(&idem).run(provider.action(20 * SEC)));
    sleep(SEC / 2).await;
    let follower = tokio::spawn(call(&idem).run(provider.action(SEC)));
    store.forget(&key()).expect("there is a reservation");
    sleep(2 * SEC).await;
    let rival = rival(3 * SEC);
    let seen = store.reserve(&rival).await.unwrap().verdict(&rival).unwrap();
    assert!(matches!(seen, Verdict::InProgress { .. }), "{seen:?}");
    assert_eq!(running.await.unwrap().unwrap().value, "ch_1");
    assert_eq!(follower.await.unwrap().unwrap().value, "ch_1");
    assert_eq!(provider.charges(), 1);
    assert_eq!(events.names(), ["reserved", "lease_lost", "completed", "waited"]);
}

// A store completes the record and its answer is lost: that it is not renewed any more is no loss,
// and this process remembers the answer until it is sure.
#[tokio::test(start_paused = true)]
async fn a_completed_record_that_is_not_renewed_is_no_lost_lease() {
    let (store, events) = (faulty(), Events::default());
    let idem = coordinator(store.clone())
        .store_budget(hasty())
        .lease(3 * SEC)
        .observe(events.observer())
        .build()
        .unwrap();
    let provider = Provider::default();
    store.always(Verb::Complete, Trouble::ReplyLost);
    assert!(!call(&idem).run(provider.action(SEC)).await.unwrap().recorded);
    sleep(10 * SEC).await;
    assert!(store.asked(Verb::Renew) > 0);
    assert_eq!(events.count("lease_lost"), 0);
    store.always(Verb::Reserve, Trouble::NotApplied);
    assert!(call(&idem).run(provider.action(SEC)).await.unwrap().replayed);
    assert_eq!(provider.charges(), 1);
}

// An action that never waits has no heartbeat; its result, if it cannot be recorded, has one.
#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_alive_while_the_result_of_a_quick_action_is_recorded() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).lease(3 * SEC).build().unwrap();
    store.always(Verb::Complete, Trouble::NotApplied);
    let quick = call(&idem).run(|_| async { Ok::<_, String>("ch_1".to_owned()) });
    assert!(!quick.await.unwrap().recorded);
    for _ in 0..10 {
        sleep(SEC).await;
        let rival = rival(3 * SEC);
        let seen = store.store().reserve(&rival).await.unwrap().verdict(&rival).unwrap();
        assert!(matches!(seen, Verdict::InProgress { .. }), "{seen:?}");
    }
}

// A renewal on its way to the store must not hold the key after it was given up.
#[tokio::test(start_paused = true)]
async fn a_late_renewal_does_not_revive_a_lease_that_was_given_up() {
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).lease(3 * SEC).build().unwrap();
    store.next(Verb::Renew, Trouble::OnTheWire(90 * super::support::MS));
    let unknown = call(&idem).errors(idem_core::effect(|_: &String| false)).run(|_| async {
        sleep(SEC + 10 * super::support::MS).await;
        Err::<(), _>("timeout".to_owned())
    });
    assert!(unknown.await.is_err());
    sleep(SEC / 2).await;
    let rival = rival(SEC).takeover(false);
    let seen = store.store().reserve(&rival).await.unwrap().verdict(&rival).unwrap();
    assert!(matches!(seen, Verdict::Abandoned { attempts: 1 }), "{seen:?}");
}

// C11: without a heartbeat a late owner that fails does not free its successor's key.
#[tokio::test(start_paused = true)]
async fn a_late_owner_does_not_release_its_successors_key() {
    let store = faulty();
    let process = |lease| {
        let idem = coordinator(store.clone()).store_budget(hasty()).lease(lease);
        idem.renew_for(Duration::ZERO).in_flight(InFlight::Reject).build().unwrap()
    };
    let (first, second, third) = (process(SEC), process(5 * SEC), process(SEC));
    let late = tokio::spawn(call(&first).run(|_| async {
        sleep(3 * SEC).await;
        Err::<String, _>("502".to_owned())
    }));
    sleep(2 * SEC).await;
    let provider = Provider::default();
    let successor = tokio::spawn(call(&second).run(provider.action(3 * SEC)));
    assert_eq!(late.await.unwrap().unwrap_err().code(), "action_failed");
    let refused = call(&third).run(provider.action(SEC)).await.unwrap_err();
    assert_eq!(refused.code(), "in_progress");
    assert!(successor.await.unwrap().unwrap().recorded);
    assert_eq!(provider.charges(), 1);
}

// C126: an action completes its own lease, as in a transaction with its writes. L6: what it wrote
// there is replayed, and neither the coordinator's completion nor its heartbeat undoes it.
#[tokio::test(start_paused = true)]
async fn a_lease_that_the_action_completes_is_recorded_as_it_says() {
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone()).lease(3 * SEC).build().unwrap();
    let completing = store.clone();
    let first = call(&idem).run(move |attempt| async move {
        let lease = attempt.lease().expect("a lease");
        assert_eq!((Some(lease.fence()), lease.key()), (attempt.fence(), attempt.key()));
        let (_, stored) = Envelope::of_value(&Json::default(), &"ch_committed".to_owned()).unwrap();
        completing.complete(lease, &stored.encode(), HOUR).await.unwrap();
        sleep(10 * SEC).await;
        assert!(!attempt.is_lost(), "nobody else has it");
        Ok::<_, String>("ch_returned".to_owned())
    });
    let first = first.await.unwrap();
    assert_eq!(
        (first.value.as_str(), first.replayed, first.recorded),
        ("ch_returned", false, true)
    );
    let provider = Provider::default();
    let retry = call(&idem).run(provider.action(SEC)).await.unwrap();
    assert_eq!((retry.value.as_str(), retry.replayed), ("ch_committed", true));
    assert_eq!(provider.charges(), 0);
}

// Its transaction is committed, and the action fails all the same: what is committed stands.
#[tokio::test(start_paused = true)]
async fn an_action_that_fails_after_it_completed_its_lease_is_done() {
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone()).build().unwrap();
    let failed = call(&idem).run(move |attempt| async move {
        let payload = super::codecs::stored(br#""ch_committed""#);
        let lease = attempt.lease().expect("a lease");
        store.complete(lease, &payload, HOUR).await.unwrap();
        Err::<String, _>("the connection was lost during the commit".to_owned())
    });
    assert_eq!(failed.await.unwrap_err().code(), "action_failed");
    let provider = Provider::default();
    let retry = call(&idem).run(provider.action(SEC)).await.unwrap();
    assert_eq!((retry.value.as_str(), provider.charges()), ("ch_committed", 0));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_taken_over_is_not_the_actions_to_complete() {
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone()).build().unwrap();
    let completing = store.clone();
    let late = tokio::spawn(call(&idem).run(move |attempt| async move {
        sleep(2 * SEC).await;
        let payload = super::codecs::stored(br#""ch_late""#);
        match completing.complete(attempt.lease().expect("a lease"), &payload, HOUR).await {
            Err(StoreError::LeaseLost) => Err("rolled back"),
            other => panic!("{other:?}"),
        }
    }));
    sleep(SEC).await;
    take_over(&store, Some("ch_of_the_winner")).await;
    let error: RunError<&str> =
        late.await.unwrap().map(|_: idem_core::Outcome<String>| ()).unwrap_err();
    assert_eq!(error.action(), Some("rolled back"));
    let retry = call(&idem).run(Provider::default().action(SEC)).await.unwrap();
    assert_eq!((retry.value.as_str(), retry.replayed), ("ch_of_the_winner", true));
}

#[tokio::test(start_paused = true)]
async fn an_action_that_runs_unprotected_has_no_lease() {
    let store = faulty();
    store.always(Verb::Reserve, Trouble::NotApplied);
    let idem = coordinator(store).store_budget(hasty()).build().unwrap();
    let has = call(&idem).run(|attempt| async move {
        Ok::<_, String>((attempt.lease().is_some(), attempt.fence().is_some()))
    });
    assert_eq!(has.await.unwrap().value, (false, false));
}
