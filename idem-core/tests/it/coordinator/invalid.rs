//! Everything that can be refused is refused before anything is done.

use std::time::Duration;

use idem_core::{CallError, Invalid, Operation, RunError, StoreBudget};

use super::support::{MS, Provider, SEC, Verb, call, coordinator, faulty, fingerprint};

async fn refused(change: impl Fn(Operation) -> Operation, key: &str) -> Invalid {
    let store = faulty();
    let idem = coordinator(store.clone()).build().unwrap();
    let provider = Provider::default();
    let operation = change(idem.operation("charge"));
    let call = operation.key(key).fingerprint(fingerprint(1));
    let error = call.run(provider.action(MS)).await.unwrap_err();
    assert_eq!((store.asked(Verb::Reserve), provider.charges()), (0, 0), "work was done");
    match error {
        RunError::Call(CallError::Invalid(invalid)) => invalid,
        other => panic!("expected invalid, got {other:?}"),
    }
}

// C58, C74, C75, C76
#[tokio::test]
async fn keys_operations_and_tenants_have_1_to_255_characters() {
    let same = |operation: Operation| operation;
    for key in ["", &"k".repeat(256), &"ü".repeat(256), &"k".repeat(1 << 20)] {
        assert!(matches!(refused(same, key).await, Invalid::Key(_)));
    }
    assert!(matches!(refused(|op| op.tenant(""), "k").await, Invalid::Key(_)));
    assert!(matches!(refused(|op| op.tenant(&"t".repeat(256)), "k").await, Invalid::Key(_)));
    let idem = coordinator(faulty()).build().unwrap();
    let nameless = idem.operation("").key("k").without_fingerprint();
    assert_eq!(nameless.run(Provider::default().action(MS)).await.unwrap_err().code(), "invalid");
}

#[tokio::test]
async fn durations_are_in_their_ranges() {
    for lease in [Duration::ZERO, 9 * MS, Duration::from_hours(25), Duration::MAX] {
        assert_eq!(refused(|op| op.lease(lease), "k").await, Invalid::Lease(lease));
    }
    for retention in [Duration::ZERO, 59 * SEC, Duration::from_hours(24 * 3_651), Duration::MAX] {
        let invalid = refused(|op| op.retention(retention), "k").await;
        assert_eq!(invalid, Invalid::Retention(retention));
    }
    assert_eq!(refused(|op| op.poll(Duration::ZERO), "k").await, Invalid::Poll);
}

#[tokio::test]
async fn a_lease_leaves_time_for_the_store() {
    let invalid = refused(|op| op.lease(SEC), "k").await;
    assert!(matches!(invalid, Invalid::LeaseTooShortForStore { .. }), "{invalid:?}");
    let slow = StoreBudget::default().per_try(11 * SEC);
    assert!(coordinator(faulty()).store_budget(slow).build().is_err());
    let none = StoreBudget::default().tries(0);
    assert_eq!(coordinator(faulty()).store_budget(none).build().unwrap_err(), Invalid::Budget);
}

#[test]
fn an_operation_can_be_checked_before_any_call() {
    let idem = coordinator(faulty()).build().unwrap();
    assert_eq!(idem.operation("charge").check(), Ok(()));
    assert!(matches!(idem.operation("").check(), Err(Invalid::Key(_))));
    assert!(matches!(idem.operation("charge").tenant("").check(), Err(Invalid::Key(_))));
    let short = Duration::from_secs(59);
    assert_eq!(idem.operation("charge").retention(short).check(), Err(Invalid::Retention(short)));
    assert_eq!(idem.operation("charge").max_result(7).largest_result(), 7);
}

#[test]
fn outside_a_runtime_there_is_an_error_and_no_panic() {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    let idem = coordinator(faulty()).build().unwrap();
    let mut outside = pin!(call(&idem).run(Provider::default().action(MS)));
    match outside.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => assert_eq!(error.code(), "no_runtime"),
        other => panic!("expected an error at once, got {other:?}"),
    }
}

// However the action asks for its own key again: beside itself, in a race, borrowed.
#[tokio::test(start_paused = true)]
async fn a_key_is_known_inside_its_action_wherever_that_polls() {
    let idem = coordinator(faulty()).build().unwrap();
    let again = idem.clone();
    let provider = Provider::default();
    let inner = provider.clone();
    let outer = call(&idem).run(|_| async move {
        tokio::time::sleep(MS).await;
        let other = || again.operation("refund").key("k").without_fingerprint();
        let (refund, charge) =
            tokio::join!(other().run(inner.action(MS)), call(&again).run(inner.action(MS)));
        let raced = tokio::select! {
            biased;
            charge = call(&again).run_borrowed(|_| inner.clone().charge(MS)) => charge,
            () = tokio::time::sleep(SEC) => panic!("it waited for itself"),
        };
        let codes = [charge.unwrap_err().code(), raced.unwrap_err().code()];
        Ok::<_, String>((refund.unwrap().value, codes.map(str::to_owned)))
    });
    let (refund, codes) = outer.await.unwrap().value;
    assert_eq!((refund.as_str(), codes), ("ch_1", ["reentrant", "reentrant"].map(str::to_owned)));
    // Outside again, the key is as good as any.
    assert!(call(&idem).run(provider.action(MS)).await.is_err(), "another type was stored");
}

// C114: two coordinators over one store do not know of each other's actions: a key inside its own
// action waits for itself there, and no longer than its patience.
#[tokio::test(start_paused = true)]
async fn a_key_inside_its_action_through_another_coordinator_is_in_progress() {
    let store = faulty();
    let (idem, other) = (coordinator(store.clone()).build().unwrap(), coordinator(store).build());
    let other = other.unwrap();
    let outer = call(&idem).run(|_| async move {
        let inner = call(&other).run(Provider::default().action(MS)).await;
        Ok::<_, String>(inner.unwrap_err().code().to_owned())
    });
    assert_eq!(outer.await.unwrap().value, "in_progress");
}

// C70: configuring twice is configuring once.
#[tokio::test(start_paused = true)]
async fn an_operation_configured_again_has_the_same_keys() {
    let idem = coordinator(faulty()).build().unwrap();
    let provider = Provider::default();
    for replayed in [false, true] {
        let operation = idem.operation("charge").tenant("acme").tenant("acme");
        let operation = operation.lease(30 * SEC).lease(30 * SEC);
        let call = operation.key("k").fingerprint(fingerprint(1));
        assert_eq!(call.run(provider.action(MS)).await.unwrap().replayed, replayed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_inside_its_own_action_is_an_error_and_no_deadlock() {
    let idem = coordinator(faulty()).build().unwrap();
    let again = idem.clone();
    let asked = tokio::time::Instant::now();
    let outer = call(&idem).run(|_| async move {
        tokio::time::sleep(MS).await;
        let other = again.operation("refund").key("k").without_fingerprint();
        // Through another operation, as deep as it may be.
        let inner = other.run(move |_| async move {
            let inner = call(&again).run(Provider::default().action(MS)).await;
            Err::<(), _>(inner.unwrap_err().code().to_owned())
        });
        Err::<String, _>(inner.await.unwrap_err().action().unwrap())
    });
    assert_eq!(outer.await.unwrap_err().action().as_deref(), Some("reentrant"));
    assert!(asked.elapsed() < SEC);
}
