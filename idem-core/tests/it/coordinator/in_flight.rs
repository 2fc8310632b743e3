//! The retry that arrives while the first request is still running.

use idem_core::{CallError, Coordinator, InFlight, RunError};
use idem_memory::MemoryStore;
use tokio::time::{Instant, sleep};

use super::support::{Charged, Events, MS, Provider, SEC, call, coordinator, fingerprint, rival};
use idem_core::{Store, Verdict};

/// The article's scenario: the provider needs 300 ms, the retry arrives after 50 ms. Two
/// coordinators over one store, as two processes would have; or one.
async fn article(in_flight: InFlight, processes: usize) -> (Vec<Charged>, u32) {
    let store = std::sync::Arc::new(MemoryStore::new());
    let provider = Provider::default();
    let all: Vec<Coordinator> = (0..processes)
        .map(|_| coordinator(store.clone()).in_flight(in_flight).build().unwrap())
        .collect();
    let first = tokio::spawn(call(&all[0]).run(provider.action(300 * MS)));
    sleep(50 * MS).await;
    let retry = tokio::spawn(call(&all[processes - 1]).run(provider.action(300 * MS)));
    let responses = vec![first.await.unwrap(), retry.await.unwrap()];
    (responses, provider.charges())
}

fn value(charged: &Charged) -> &str {
    &charged.as_ref().expect("a charge").value
}

// C7
#[tokio::test(start_paused = true)]
async fn waiting_charges_once_and_answers_alike() {
    for processes in [1, 2] {
        let wait = InFlight::Wait { at_most: 10 * SEC };
        let (responses, charges) = article(wait, processes).await;
        assert_eq!(charges, 1);
        assert_eq!((value(&responses[0]), value(&responses[1])), ("ch_1", "ch_1"));
        assert!(!responses[0].as_ref().unwrap().replayed);
        assert!(responses[1].as_ref().unwrap().replayed);
    }
}

#[tokio::test(start_paused = true)]
async fn rejecting_charges_once_and_says_how_long_the_lease_lasts() {
    for processes in [1, 2] {
        let (responses, charges) = article(InFlight::Reject, processes).await;
        assert_eq!((charges, value(&responses[0])), (1, "ch_1"));
        let Err(RunError::Call(error @ CallError::InProgress { .. })) = &responses[1] else {
            panic!("expected in progress, got {:?}", responses[1]);
        };
        assert_eq!(error.code(), "in_progress");
        let left = error.retry_after().unwrap();
        assert!(left > 29 * SEC && left < 30 * SEC, "{left:?}");
        // C130: operation and hashed key are in the message, the key's text is not.
        assert!(error.to_string().starts_with("charge#"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn running_anyway_charges_twice_and_answers_alike() {
    for processes in [1, 2] {
        let (responses, charges) = article(InFlight::Run, processes).await;
        assert_eq!(charges, 2, "this is the result cache");
        assert_eq!((value(&responses[0]), value(&responses[1])), ("ch_1", "ch_1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_with_little_patience_is_told_in_progress() {
    let wait = InFlight::Wait { at_most: 100 * MS };
    let (responses, charges) = article(wait, 2).await;
    assert_eq!(charges, 1);
    assert_eq!(responses[1].as_ref().unwrap_err().code(), "in_progress");
}

// C52: the mismatch goes before everything else.
#[tokio::test(start_paused = true)]
async fn another_request_is_a_mismatch_while_the_first_runs_and_after() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let provider = Provider::default();
    let first = tokio::spawn(call(&idem).run(provider.action(SEC)));
    sleep(50 * MS).await;
    let other = || idem.operation("charge").key("k").fingerprint(fingerprint(2));
    for running in [true, false] {
        let refused = other().run(provider.action(SEC)).await.unwrap_err();
        let Some(CallError::Mismatch { recorded, given, .. }) = refused.call() else {
            panic!("running {running}: expected a mismatch, got {refused:?}");
        };
        assert_eq!((*recorded, *given), (fingerprint(1), fingerprint(2)));
        sleep(2 * SEC).await;
    }
    assert_eq!(first.await.unwrap().unwrap().value, "ch_1");
    assert_eq!(provider.charges(), 1);
}

// C61, C63, C68: the same key in another scope is another record.
#[tokio::test(start_paused = true)]
async fn operations_and_tenants_are_apart() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let provider = Provider::default();
    for operation in [
        idem.operation("charge"),
        idem.operation("refund"),
        idem.operation("charge").tenant("alice"),
        idem.operation("charge").tenant("bob"),
    ] {
        let outcome = operation.key("k").fingerprint(fingerprint(1)).run(provider.action(MS)).await;
        assert!(!outcome.unwrap().replayed);
    }
    assert_eq!(provider.charges(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_becomes_the_runner_when_the_other_process_dies() {
    let store = std::sync::Arc::new(MemoryStore::new());
    let dead = rival(5 * SEC);
    assert!(matches!(
        store.reserve(&dead).await.unwrap().verdict(&dead).unwrap(),
        Verdict::Acquired { .. }
    ));
    let idem = coordinator(store).build().unwrap();
    let provider = Provider::default();
    let asked = Instant::now();
    let outcome = call(&idem).run(provider.action(MS)).await.unwrap();
    assert_eq!((outcome.value.as_str(), outcome.replayed), ("ch_1", false));
    let waited = asked.elapsed();
    assert!(waited >= 5 * SEC && waited < 5 * SEC + 100 * MS, "took over after {waited:?}");
}

// C137: who waits does not rely on the first to succeed.
#[tokio::test(start_paused = true)]
async fn a_waiter_becomes_the_runner_when_the_first_fails() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let provider = Provider::default();
    let failing = call(&idem).run(|_| async {
        sleep(300 * MS).await;
        Err::<String, _>("declined".to_owned())
    });
    let failing = tokio::spawn(failing);
    sleep(50 * MS).await;
    let outcome = call(&idem).run(provider.action(MS)).await.unwrap();
    assert_eq!((outcome.value.as_str(), outcome.replayed), ("ch_1", false));
    assert_eq!(failing.await.unwrap().unwrap_err().action().as_deref(), Some("declined"));
}

#[tokio::test(start_paused = true)]
async fn waiting_is_reported_as_waiting() {
    let events = Events::default();
    let idem = coordinator(MemoryStore::new()).observe(events.observer()).build().unwrap();
    let provider = Provider::default();
    let first = tokio::spawn(call(&idem).run(provider.action(SEC)));
    sleep(50 * MS).await;
    call(&idem).run(provider.action(SEC)).await.unwrap();
    call(&idem).run(provider.action(SEC)).await.unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(events.names(), ["reserved", "completed", "waited", "replayed"]);
}
