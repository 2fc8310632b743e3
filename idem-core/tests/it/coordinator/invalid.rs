//! Everything that can be refused is refused before anything is done.

use std::time::Duration;

use idem_core::{CallError, Invalid, Operation, RunError, StoreBudget};

use super::support::{Faulty, MS, Provider, SEC, Verb, call, coordinator, fingerprint};

async fn refused(change: impl Fn(Operation) -> Operation, key: &str) -> Invalid {
    let store = Faulty::new();
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

// C58, C74, C76
#[tokio::test]
async fn keys_operations_and_tenants_have_1_to_255_characters() {
    let same = |operation: Operation| operation;
    for key in ["", &"k".repeat(256), &"ü".repeat(256), &"k".repeat(1 << 20)] {
        assert!(matches!(refused(same, key).await, Invalid::Key(_)));
    }
    assert!(matches!(refused(|op| op.tenant(""), "k").await, Invalid::Key(_)));
    assert!(matches!(refused(|op| op.tenant(&"t".repeat(256)), "k").await, Invalid::Key(_)));
    let idem = coordinator(Faulty::new()).build().unwrap();
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
    assert!(coordinator(Faulty::new()).store_budget(slow).build().is_err());
    let none = StoreBudget::default().tries(0);
    assert_eq!(coordinator(Faulty::new()).store_budget(none).build().unwrap_err(), Invalid::Budget);
}

#[test]
fn an_operation_can_be_checked_before_any_call() {
    let idem = coordinator(Faulty::new()).build().unwrap();
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
    let idem = coordinator(Faulty::new()).build().unwrap();
    let mut outside = pin!(call(&idem).run(Provider::default().action(MS)));
    match outside.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => assert_eq!(error.code(), "no_runtime"),
        other => panic!("expected an error at once, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_inside_its_own_action_is_an_error_and_no_deadlock() {
    let idem = coordinator(Faulty::new()).build().unwrap();
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
