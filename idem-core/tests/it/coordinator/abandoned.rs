//! A worker died: what the next caller does.

use std::sync::Arc;

use idem_core::{Abandoned, CallError, Probed, RunError, Store, Verdict};
use idem_memory::MemoryStore;
use tokio::time::sleep;

use super::support::{Events, MS, Provider, SEC, call, coordinator, rival};

/// A store in which another process reserved the key, and died.
async fn with_dead_worker() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let dead = rival(SEC);
    let verdict = store.reserve(&dead).await.unwrap().verdict(&dead).unwrap();
    assert!(matches!(verdict, Verdict::Acquired { .. }));
    sleep(2 * SEC).await;
    store
}

// C24, C27, C33
#[tokio::test(start_paused = true)]
async fn rerun_takes_over_and_the_action_knows() {
    let events = Events::default();
    let store = with_dead_worker().await;
    let idem = coordinator(store).observe(events.observer()).build().unwrap();
    let outcome = call(&idem)
        .run(|attempt| async move {
            assert!(attempt.is_takeover());
            assert_eq!(attempt.number(), 2);
            Ok::<_, String>(attempt.downstream_key())
        })
        .await
        .unwrap();
    assert_eq!(events.names(), ["taken_over", "completed"]);
    // The provider is given the key that the dead worker gave it.
    let fresh = coordinator(MemoryStore::new()).build().unwrap();
    let before = call(&fresh)
        .run(|attempt| async move {
            assert!(!attempt.is_takeover());
            // What a provider remembers outlives every build of this crate: written once.
            assert_eq!(attempt.downstream_key_for("refund"), "23fc1008e2a1dd29ba4265b2c850aa62");
            Ok::<_, String>(attempt.downstream_key())
        })
        .await
        .unwrap();
    assert_eq!(before.value, "314312022e128ac95df845c409512591");
    assert_eq!(outcome.value, before.value);
}

#[tokio::test(start_paused = true)]
async fn refuse_runs_nothing_until_an_operator_has_resolved_the_key() {
    let store = with_dead_worker().await;
    let idem = coordinator(store.clone()).abandoned(Abandoned::Refuse).build().unwrap();
    let provider = Provider::default();
    for _ in 0..2 {
        let refused = call(&idem).run(provider.action(MS)).await.unwrap_err();
        assert!(matches!(refused, RunError::Call(CallError::OutcomeUnknown { attempts: 1, .. })));
    }
    assert!(store.forget(&super::support::key()).is_some());
    assert!(call(&idem).run(provider.action(MS)).await.is_ok());
    assert_eq!(provider.charges(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_told_when_the_worker_dies_under_refuse() {
    let store = Arc::new(MemoryStore::new());
    let dead = rival(SEC);
    let _ = store.reserve(&dead).await.unwrap();
    let idem = coordinator(store).abandoned(Abandoned::Refuse).build().unwrap();
    let refused = call(&idem).run(Provider::default().action(MS)).await.unwrap_err();
    assert_eq!(refused.code(), "outcome_unknown");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_finds_the_effect_records_it_and_nothing_runs() {
    let idem = coordinator(with_dead_worker().await).build().unwrap();
    let provider = Provider::default();
    let found = call(&idem)
        .probe(|attempt| async move {
            assert_eq!(attempt.number(), 2);
            Probed::Happened("ch_of_the_dead".to_owned())
        })
        .run(provider.action(MS))
        .await
        .unwrap();
    assert_eq!((found.value.as_str(), found.recorded), ("ch_of_the_dead", true));
    let retry = call(&idem).run(provider.action(MS)).await.unwrap();
    assert_eq!((retry.value.as_str(), retry.replayed), ("ch_of_the_dead", true));
    assert_eq!(provider.charges(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_finds_no_effect_lets_the_action_run() {
    let idem = coordinator(with_dead_worker().await).build().unwrap();
    let provider = Provider::default();
    let ran = call(&idem)
        .probe(|_| async { Probed::DidNotHappen })
        .run(provider.action(MS))
        .await
        .unwrap();
    assert_eq!((ran.value.as_str(), provider.charges()), ("ch_1", 1));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_cannot_tell_leaves_the_key_abandoned() {
    // The probe goes before the policy, whatever that is.
    for policy in [Abandoned::Rerun, Abandoned::Refuse] {
        let store = with_dead_worker().await;
        let idem = coordinator(store).abandoned(policy).build().unwrap();
        let provider = Provider::default();
        for attempts in [2, 3] {
            let unknown = call(&idem)
                .probe(|_| async { Probed::Unknown })
                .run(provider.action(MS))
                .await
                .unwrap_err();
            let Some(CallError::OutcomeUnknown { attempts: counted, .. }) = unknown.call() else {
                panic!("{unknown:?}");
            };
            assert_eq!(*counted, attempts);
        }
        assert_eq!(provider.charges(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_nobody_abandoned_is_not_probed() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let ran = call(&idem)
        .probe(|_| async { unreachable!("there is nothing to ask") })
        .run(Provider::default().action(MS))
        .await;
    assert!(ran.is_ok());
}

/// A takeover that fails without an effect, with or without a probe that vouches for the dead.
async fn failed_takeover(probed: bool) -> idem_core::Coordinator {
    let idem = coordinator(with_dead_worker().await).build().unwrap();
    let failing = |_| async { Err::<String, _>("connection refused".to_owned()) };
    let call = call(&idem);
    let failed = if probed {
        call.probe(|_| async { Probed::DidNotHappen }).run(failing).await
    } else {
        call.run(failing).await
    };
    assert_eq!(failed.unwrap_err().code(), "action_failed");
    idem
}

#[tokio::test(start_paused = true)]
async fn a_takeover_without_effect_does_not_speak_for_the_dead_worker() {
    let idem = failed_takeover(false).await;
    // The dead worker may have charged: no other request is given its key …
    let other = idem.operation("charge").key("k").fingerprint(super::support::fingerprint(2));
    let refused = other.run(Provider::default().action(MS)).await.unwrap_err();
    assert_eq!(refused.code(), "mismatch");
    // … and the retry knows, at once, that it takes over.
    let retry = call(&idem).run(|attempt| async move { Ok::<_, String>(attempt.number()) });
    assert_eq!(retry.await.unwrap().value, 3);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_without_effect_is_released_if_a_probe_speaks_for_the_dead_worker() {
    let idem = failed_takeover(true).await;
    let retry = call(&idem).run(|attempt| async move { Ok::<_, String>(attempt.number()) });
    assert_eq!(retry.await.unwrap().value, 1);
}
