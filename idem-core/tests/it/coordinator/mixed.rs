//! Calls for one key whose policies differ, in one process.

use idem_core::{Abandoned, Call, Coordinator, InFlight, OnStoreFailure, Operation, Store};
use tokio::time::{Instant, sleep};

use super::support::{
    Charged, Events, Faulty, MS, PERMISSION, Provider, SEC, Trouble, Verb, call, coordinator,
    faulty, fingerprint, hasty, rival, settle,
};

fn with(idem: &Coordinator, change: impl Fn(Operation) -> Operation) -> Call {
    change(idem.operation("charge")).key("k").fingerprint(fingerprint(1))
}

fn open(store: &Faulty) -> Coordinator {
    coordinator(store.clone()).store_budget(hasty()).build().unwrap()
}

// The store grants the key to one call while another, which it failed, runs without it already.
#[tokio::test(start_paused = true)]
async fn one_process_runs_once_although_the_store_fails_one_call_and_grants_another() {
    for second_fails in [false, true] {
        let store = faulty();
        let idem = open(&store);
        let (provider, second) = (Provider::default(), Provider::default());
        store.next(Verb::Reserve, Trouble::Late(50 * MS));
        store.next(Verb::Reserve, PERMISSION);
        let granted = tokio::spawn(call(&idem).run(provider.action(SEC)));
        settle().await;
        let unprotected = with(&idem, |op| op.in_flight(InFlight::Reject)).run({
            let second = second.clone();
            move |attempt| async move {
                assert!(!attempt.is_protected());
                let charge = second.charge(SEC).await?;
                if second_fails { Err("502".to_owned()) } else { Ok(charge) }
            }
        });
        let unprotected = unprotected.await;
        let granted = granted.await.unwrap().unwrap();
        assert_eq!(second.charges(), 1);
        if second_fails {
            // Who waited for it looks again, and runs.
            assert_eq!(unprotected.unwrap_err().code(), "action_failed");
            assert_eq!((granted.replayed, provider.charges()), (false, 1));
        } else {
            assert_eq!(unprotected.unwrap().value, granted.value);
            assert_eq!((granted.replayed, provider.charges()), (true, 0));
        }
    }
}

// C8: another request under a key that runs unprotected here is a mismatch, whatever the store says.
#[tokio::test(start_paused = true)]
async fn a_key_that_runs_unprotected_is_not_granted_to_another_request() {
    let store = faulty();
    let idem = open(&store);
    let provider = Provider::default();
    store.next(Verb::Reserve, PERMISSION);
    let first = tokio::spawn(call(&idem).run(provider.action(SEC)));
    settle().await;
    let other = idem.operation("charge").key("k").fingerprint(fingerprint(2));
    assert_eq!(other.run(provider.action(SEC)).await.unwrap_err().code(), "mismatch");
    assert!(first.await.unwrap().unwrap().recorded, "the other left no reservation in the way");
    assert_eq!(provider.charges(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_unprotected_run_that_fails_runs_next() {
    let store = faulty();
    let idem = open(&store);
    store.down(Trouble::NotApplied);
    store.next(Verb::Reserve, Trouble::Hangs);
    let provider = Provider::default();
    // Still asking the store when the second has begun.
    let patient = tokio::spawn(call(&idem).run(provider.action(MS)));
    settle().await;
    let hasty = with(&idem, |op| op.in_flight(InFlight::Reject)).run(|_| async {
        sleep(SEC).await;
        Err::<String, _>("502".to_owned())
    });
    assert_eq!(hasty.await.unwrap_err().code(), "action_failed");
    assert_eq!(patient.await.unwrap().unwrap().value, "ch_1");
}

// C96: the answer, and not "in progress", out of this process's memory.
#[tokio::test(start_paused = true)]
async fn an_answer_that_the_store_does_not_have_yet_says_so_to_everybody() {
    let store = faulty();
    let idem = open(&store);
    store.down(Trouble::NotApplied);
    let provider = Provider::default();
    assert!(!call(&idem).run(provider.action(MS)).await.unwrap().recorded);
    for in_flight in [InFlight::Wait { at_most: SEC }, InFlight::Reject, InFlight::Run] {
        let replay = with(&idem, |op| op.in_flight(in_flight)).run(provider.action(MS));
        let replay = replay.await.unwrap();
        assert_eq!((replay.replayed, replay.recorded), (true, false), "{in_flight:?}");
    }
    store.heal();
    sleep(10 * SEC).await;
    assert!(call(&idem).run(provider.action(MS)).await.unwrap().recorded);
    assert_eq!(provider.charges(), 1);
}

// What one call refuses, another may do: a policy is the call's own.
#[tokio::test(start_paused = true)]
async fn a_follower_that_may_take_over_does_although_its_leader_may_not() {
    let store = faulty();
    let dead = rival(SEC);
    let _ = store.store().reserve(&dead).await.unwrap();
    let idem = open(&store);
    let provider = Provider::default();
    let refusing = with(&idem, |op| op.abandoned(Abandoned::Refuse)).run(provider.action(MS));
    let refusing = tokio::spawn(refusing);
    settle().await;
    let also_refusing = with(&idem, |op| op.abandoned(Abandoned::Refuse)).run(provider.action(MS));
    let also_refusing = tokio::spawn(also_refusing);
    let rerunning = tokio::spawn(call(&idem).run(provider.action(MS)));
    assert_eq!(refusing.await.unwrap().unwrap_err().code(), "outcome_unknown");
    assert_eq!(also_refusing.await.unwrap().unwrap_err().code(), "outcome_unknown");
    assert_eq!(rerunning.await.unwrap().unwrap().value, "ch_1");
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_would_rather_run_than_be_refused_runs() {
    let store = faulty();
    let idem = open(&store);
    store.down(Trouble::Hangs);
    let provider = Provider::default();
    let closed = with(&idem, |op| op.on_store_failure(OnStoreFailure::Refuse));
    let closed = tokio::spawn(closed.run(provider.action(MS)));
    settle().await;
    let also_closed = with(&idem, |op| op.on_store_failure(OnStoreFailure::Refuse));
    let also_closed = tokio::spawn(also_closed.run(provider.action(MS)));
    let open = tokio::spawn(call(&idem).run(provider.action(MS)));
    assert_eq!(closed.await.unwrap().unwrap_err().code(), "store_unavailable");
    assert_eq!(also_closed.await.unwrap().unwrap_err().code(), "store_unavailable");
    assert_eq!(open.await.unwrap().unwrap().value, "ch_1");
}

// A call that runs whoever else does is nobody's leader: those who wait follow the holder.
#[tokio::test(start_paused = true)]
async fn who_waits_is_not_held_up_by_a_call_that_runs_beside_the_holder() {
    let store = faulty();
    let (here, elsewhere) = (open(&store), open(&store));
    let provider = Provider::default();
    let holder = tokio::spawn(call(&elsewhere).run(provider.action(SEC)));
    settle().await;
    let beside = with(&here, |op| op.in_flight(InFlight::Run)).run(provider.action(60 * SEC));
    let beside = tokio::spawn(beside);
    settle().await;
    let asked = Instant::now();
    let waiting: Charged = call(&here).run(provider.action(SEC)).await;
    assert_eq!(waiting.unwrap().value, "ch_1");
    assert!(asked.elapsed() < 2 * SEC, "{:?}", asked.elapsed());
    assert!(holder.await.unwrap().is_ok());
    assert_eq!(beside.await.unwrap().unwrap().value, "ch_1", "the recorded answer stands");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_whoever_else_does_also_runs_without_the_store() {
    let store = faulty();
    let idem = open(&store);
    store.down(Trouble::NotApplied);
    let provider = Provider::default();
    let first = tokio::spawn(call(&idem).run(provider.action(SEC)));
    sleep(SEC / 2).await;
    let beside = with(&idem, |op| op.in_flight(InFlight::Run)).run(provider.action(SEC));
    let beside = tokio::spawn(beside);
    assert!(first.await.unwrap().is_ok() && beside.await.unwrap().is_ok());
    assert_eq!(provider.charges(), 2);
}

// Whoever is refused is counted, whether it asked the store itself or followed one who did.
#[tokio::test(start_paused = true)]
async fn every_refused_call_is_one_event() {
    let (store, events) = (faulty(), Events::default());
    let idem = coordinator(store.clone()).observe(events.observer()).build().unwrap();
    let provider = Provider::default();
    call(&idem).run(provider.action(MS)).await.unwrap();
    store.always(Verb::Reserve, Trouble::Late(MS));
    let others: Vec<_> = (0..10)
        .map(|_| {
            let other = idem.operation("charge").key("k").fingerprint(fingerprint(2));
            tokio::spawn(other.run(provider.action(MS)))
        })
        .collect();
    for other in others {
        assert_eq!(other.await.unwrap().unwrap_err().code(), "mismatch");
    }
    assert_eq!(events.count("mismatch"), 10);
}

#[tokio::test(start_paused = true)]
async fn a_follower_is_told_what_is_left_of_the_renewed_lease() {
    let store = faulty();
    let idem = coordinator(store).lease(3 * SEC).build().unwrap();
    let slow = tokio::spawn(call(&idem).run(Provider::default().action(60 * SEC)));
    settle().await;
    let wait = InFlight::Wait { at_most: 10 * SEC };
    let follower = with(&idem, |op| op.lease(3 * SEC).in_flight(wait));
    let refused = follower.run(Provider::default().action(MS)).await.unwrap_err();
    let left = refused.call().unwrap().retry_after().unwrap();
    assert!(left >= 2 * SEC && left <= 3 * SEC, "{left:?}");
    slow.abort();
}
