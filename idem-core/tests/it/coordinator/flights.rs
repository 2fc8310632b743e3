//! Many callers in one process cost one remote wait.

use std::sync::Arc;

use idem_core::{Coordinator, InFlight, RunError, Store, Verdict};
use idem_memory::MemoryStore;
use tokio::time::sleep;

use super::support::{
    MS, Provider, SEC, Verb, call, coordinator, faulty, fingerprint, rival, settle,
};

// C1: everybody at once, one effect.
#[tokio::test(start_paused = true)]
async fn a_hundred_callers_of_one_process_reserve_once() {
    let store = faulty();
    let idem = coordinator(store.clone()).build().unwrap();
    let provider = Provider::default();
    let callers: Vec<_> =
        (0..100).map(|_| tokio::spawn(call(&idem).run(provider.action(SEC)))).collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap().unwrap().value, "ch_1");
    }
    assert_eq!(provider.charges(), 1);
    assert_eq!((store.asked(Verb::Reserve), store.asked(Verb::Complete)), (1, 1));
    assert_eq!(store.asked(Verb::Watch), 0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_waiters_for_another_process_cost_one_remote_wait() {
    let store = faulty();
    let holder = rival(30 * SEC);
    let verdict = store.store().reserve(&holder).await.unwrap().verdict(&holder).unwrap();
    let Verdict::Acquired { lease, .. } = verdict else { panic!("{verdict:?}") };
    let idem = coordinator(store.clone()).poll(SEC).build().unwrap();
    let provider = Provider::default();
    let callers: Vec<_> =
        (0..1_000).map(|_| tokio::spawn(call(&idem).run(provider.action(SEC)))).collect();
    sleep(10 * SEC).await;
    assert_eq!(store.asked(Verb::Watch), 1);
    let polls = store.asked(Verb::Reserve);
    assert!((2 + 8..=2 + 14).contains(&polls), "{polls} polls in 10 s");
    let payload = super::codecs::stored(br#""ch_elsewhere""#);
    store.store().complete(&lease, &payload, holder.retention_for()).await.unwrap();
    for caller in callers {
        assert_eq!(caller.await.unwrap().unwrap().value, "ch_elsewhere");
    }
    assert_eq!((store.asked(Verb::Reserve), store.asked(Verb::Watch)), (polls + 1, 1));
    assert_eq!(provider.charges(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failing_action_wakes_its_followers_one_after_another() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let runs = Provider::default();
    let callers: Vec<_> = (0..10)
        .map(|_| {
            let runs = runs.clone();
            tokio::spawn(call(&idem).run(|_| async move {
                let _ = runs.charge(MS).await;
                Err::<String, _>("502".to_owned())
            }))
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap().unwrap_err().code(), "action_failed");
    }
    assert_eq!(runs.charges(), 10, "each request ran, none at the same time as another");
}

#[tokio::test(start_paused = true)]
async fn each_follower_has_a_patience_of_its_own() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let provider = Provider::default();
    let first = tokio::spawn(call(&idem).run(provider.action(10 * SEC)));
    settle().await;
    let hasty = idem.operation("charge").in_flight(InFlight::Wait { at_most: SEC });
    let hasty = hasty.key("k").fingerprint(fingerprint(1)).run(provider.action(SEC));
    let patient = tokio::spawn(call(&idem).run(provider.action(SEC)));
    let error: RunError<String> = hasty.await.unwrap_err();
    assert_eq!(error.code(), "in_progress");
    assert_eq!(patient.await.unwrap().unwrap().value, "ch_1");
    assert_eq!(first.await.unwrap().unwrap().value, "ch_1");
}

// C5: who loses the race to a finished request is given its answer, not told to come back.
#[tokio::test(start_paused = true)]
async fn rejecting_callers_of_a_completed_key_all_replay() {
    let idem = coordinator(MemoryStore::new()).in_flight(InFlight::Reject).build().unwrap();
    let provider = Provider::default();
    call(&idem).run(provider.action(MS)).await.unwrap();
    let callers: Vec<_> =
        (0..10).map(|_| tokio::spawn(call(&idem).run(provider.action(MS)))).collect();
    for caller in callers {
        assert!(caller.await.unwrap().unwrap().replayed);
    }
}

// C131: one handle, many threads.
#[test]
fn one_coordinator_serves_many_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Coordinator>();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let idem = coordinator(Arc::new(MemoryStore::new())).build().unwrap();
    let provider = Provider::default();
    runtime.block_on(async {
        let callers: Vec<_> = (0..64)
            .flat_map(|_| 0..20)
            .map(|key| {
                let call = idem.operation("charge").key(&format!("k-{key}"));
                let action = provider.action(MS);
                tokio::spawn(call.fingerprint(fingerprint(1)).run(action))
            })
            .collect();
        for caller in callers {
            caller.await.unwrap().unwrap();
        }
    });
    assert_eq!(provider.charges(), 20);
}

// C69, C71: an operation inside another, on one store, completes its own record.
#[tokio::test(start_paused = true)]
async fn an_operation_inside_another_has_a_record_of_its_own() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let inner = idem.clone();
    let outer = call(&idem).run(|_| async move {
        let inner = inner.operation("refund").key("k").fingerprint(fingerprint(1));
        let inner = inner.run(|_| async { Ok::<_, String>("re_1".to_owned()) }).await;
        Ok::<_, String>(format!("ch_1 after {}", inner.unwrap().value))
    });
    assert_eq!(outer.await.unwrap().value, "ch_1 after re_1");
    let refund = idem.operation("refund").key("k").fingerprint(fingerprint(1));
    assert_eq!(refund.run(Provider::default().action(MS)).await.unwrap().value, "re_1");
}
