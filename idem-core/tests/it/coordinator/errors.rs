//! What a failed action leaves behind.

use idem_core::{Abandoned, ActionError, CallError, Effect, RunError, by_trait, effect, keeping};
use idem_memory::MemoryStore;
use serde::{Deserialize, Serialize};

use super::support::{Events, MS, Provider, Verb, call, coordinator, faulty};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Refusal {
    Declined { code: u32 },
    Timeout,
    NoConnection,
}

impl ActionError for Refusal {
    fn effect(&self) -> Effect {
        match self {
            Self::Declined { .. } => Effect::Keep,
            Self::Timeout => Effect::Unknown,
            Self::NoConnection => Effect::None,
        }
    }
}

fn failed<T: std::fmt::Debug, E: std::fmt::Debug>(
    result: Result<T, RunError<E>>,
) -> (E, Effect, bool) {
    match result {
        Err(RunError::Action { error, effect, replayed }) => (error, effect, replayed),
        other => panic!("expected the action's error, got {other:?}"),
    }
}

// C34, C37, C38, C44: a failure is not an answer, and the action's own error is what is given.
#[tokio::test(start_paused = true)]
async fn a_failed_action_is_released_and_runs_again() {
    let events = Events::default();
    let idem = coordinator(MemoryStore::new()).observe(events.observer()).build().unwrap();
    let provider = Provider::default();
    let down = call(&idem).run(|_| async { Err::<String, _>("502".to_owned()) }).await;
    assert_eq!(failed(down), ("502".to_owned(), Effect::None, false));
    let outcome = call(&idem).run(provider.action(MS)).await.unwrap();
    assert_eq!((outcome.value.as_str(), outcome.replayed), ("ch_1", false));
    assert_eq!(events.names(), ["reserved", "released", "reserved", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_action_frees_the_key_for_another_request() {
    use super::support::fingerprint;
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let _ = call(&idem).run(|_| async { Err::<String, _>("502".to_owned()) }).await;
    let other = idem.operation("charge").key("k").fingerprint(fingerprint(2));
    assert!(other.run(Provider::default().action(MS)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_kept_error_is_replayed_and_the_action_does_not_run() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let declined = Refusal::Declined { code: 51 };
    let first = call(&idem).errors(by_trait()).run({
        let declined = declined.clone();
        |_| async { Err::<(), _>(declined) }
    });
    assert_eq!(failed(first.await), (declined.clone(), Effect::Keep, false));
    let retry = call(&idem).errors(by_trait()).run(|_| async {
        unreachable!("a final refusal is final");
        #[expect(unreachable_code, reason = "gives the closure its type")]
        Ok::<(), Refusal>(())
    });
    assert_eq!(failed(retry.await), (declined, Effect::Keep, true));
}

#[tokio::test(start_paused = true)]
async fn a_closure_may_decide_what_is_kept() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let rule = |error: &String| if error == "final" { Effect::Keep } else { Effect::None };
    for (error, replayed) in [("try again", false), ("final", false), ("other", true)] {
        let result = call(&idem)
            .errors(keeping(rule))
            .run(move |_| async move { Err::<(), _>(error.to_owned()) })
            .await;
        let (given, effect, was_replayed) = failed(result);
        let expected = if replayed { "final" } else { error };
        assert_eq!((given.as_str(), was_replayed), (expected, replayed));
        assert_eq!(effect == Effect::Keep, expected == "final");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_says_nothing_ends_the_lease_and_leaves_the_key_abandoned() {
    let events = Events::default();
    let idem = coordinator(MemoryStore::new())
        .abandoned(Abandoned::Refuse)
        .observe(events.observer())
        .build()
        .unwrap();
    let timeout = call(&idem).errors(by_trait()).run(|_| async { Err::<(), _>(Refusal::Timeout) });
    assert_eq!(failed(timeout.await), (Refusal::Timeout, Effect::Unknown, false));
    // At once, not when the lease would have ended.
    let retry = call(&idem).run(Provider::default().action(MS)).await.unwrap_err();
    assert!(matches!(retry, RunError::Call(CallError::OutcomeUnknown { attempts: 1, .. })));
    assert_eq!(events.names(), ["reserved", "abandoned", "outcome_unknown"]);
}

#[tokio::test(start_paused = true)]
async fn an_effect_rule_for_errors_that_cannot_be_stored() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    for (kind, number) in [
        (std::io::ErrorKind::ConnectionRefused, 1),
        (std::io::ErrorKind::ConnectionReset, 1),
        (std::io::ErrorKind::ConnectionReset, 2),
    ] {
        let result = call(&idem)
            .errors(effect(refused))
            .run(move |attempt| async move {
                assert_eq!(attempt.number(), number, "{kind}");
                Err::<(), _>(std::io::Error::from(kind))
            })
            .await;
        assert_eq!(failed(result).0.kind(), kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_unknown_outcome_and_the_process_lives() {
    // C25: no exit path of an action leaves more than its lease.
    let idem = coordinator(MemoryStore::new()).abandoned(Abandoned::Refuse).build().unwrap();
    for late in [false, true] {
        let call = || idem.operation("charge").key(&late.to_string()).without_fingerprint();
        let panicked = call().run(move |_| async move {
            if late {
                tokio::time::sleep(MS).await;
            }
            panic!("out of cheese");
            #[expect(unreachable_code, reason = "gives the closure its type")]
            Ok::<(), String>(())
        });
        let error = panicked.await.unwrap_err();
        let Some(CallError::Panicked { message, .. }) = error.call() else { panic!("{error:?}") };
        assert_eq!(message, "out of cheese");
        let retry = call().run(Provider::default().action(MS)).await.unwrap_err();
        assert_eq!(retry.code(), "outcome_unknown");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_made_good_later() {
    let store = faulty();
    let idem = coordinator(store.clone())
        .abandoned(Abandoned::Refuse)
        .store_budget(super::support::hasty())
        .build()
        .unwrap();
    store.always(Verb::Release, super::support::Trouble::NotApplied);
    let failed = call(&idem).run(|_| async { Err::<String, _>("502".to_owned()) }).await;
    assert_eq!(failed.unwrap_err().code(), "action_failed");
    store.heal();
    tokio::time::sleep(super::support::SEC).await;
    // Not abandoned: the action certainly had no effect.
    let outcome = call(&idem).run(Provider::default().action(MS)).await.unwrap();
    assert!(!outcome.replayed);
}
