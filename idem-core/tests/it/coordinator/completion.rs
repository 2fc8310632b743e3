//! A completion is never lost in silence.

use std::sync::Arc;

use idem_memory::MemoryStore;
use tokio::time::{Instant, sleep};

use super::support::{
    Events, Fault, Faulty, MS, Provider, SEC, Verb, call, coordinator, hasty, rival,
};
use idem_core::{NotKept, Store, Verdict};

// C103: a lost answer is asked for again, and costs no lease.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_any_verb_costs_one_more_try_and_nothing_else() {
    for verb in [Verb::Reserve, Verb::Complete] {
        for fault in [Fault::NotApplied, Fault::ReplyLost, Fault::Hangs, Fault::Late(SEC)] {
            let store = Faulty::new();
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
    for fault in [Fault::NotApplied, Fault::ReplyLost, Fault::Hangs, Fault::Permission] {
        let (store, events) = (Faulty::new(), Events::default());
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
        if fault != Fault::ReplyLost {
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
    let (store, events) = (Faulty::new(), Events::default());
    let idem = coordinator(store.clone())
        .store_budget(hasty())
        .record_for(60 * SEC)
        .observe(events.observer())
        .build()
        .unwrap();
    store.always(Verb::Complete, Fault::NotApplied);
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
