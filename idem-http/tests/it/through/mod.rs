//! The suite's promises of one effect (`one_effect::*`), through HTTP: two processes, each a
//! coordinator behind a server of its own, over one store of each kind.

mod world;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use http::StatusCode;
use http::header::RETRY_AFTER;
use idem_conformance::{Faulty, Property, Trouble, Verb};
use idem_core::{Abandoned, InFlight, OnStoreFailure, Store, StoreBudget, Verdict};
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::world::{Backend, MOMENT, PATIENCE, World, answering, charged, serving};
use crate::stores::Tampered;
use crate::support::{Calls, code, is_replay, routes, text};
use crate::wire::server::{Raw, head};

const WAIT: InFlight = InFlight::Wait { at_most: PATIENCE };
/// Of a worker that dies.
const LEASE: Duration = Duration::from_millis(600);

/// Each promise, on each store; and their names.
macro_rules! promises {
    ($($name:ident),+ $(,)?) => {
        const SHOWN: &[&str] = &[$(stringify!($name)),+];

        promises! { @on memory Memory $($name)+ }
        promises! { @on redis Redis $($name)+ }
        promises! { @on postgres Postgres $($name)+ }
    };
    (@on $module:ident $backend:ident $($name:ident)+) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let backend = super::Backend::$backend;
                super::$name(super::World::of(backend, stringify!($name)).await).await;
            })+
        }
    };
}

promises! {
    hundred_callers_have_one_effect,
    waiting_retry_is_given_the_first_answer,
    rejected_retry_is_told_in_progress,
    result_cache_has_the_effect_twice,
    reused_key_is_refused,
    failed_action_runs_again,
    final_error_is_given_again,
    dead_worker_is_taken_over,
    unknown_outcome_is_refused,
    waiter_ends_with_a_completion,
    waiter_ends_with_a_release,
    waiter_ends_when_the_holder_gives_up,
    waiter_ends_with_its_patience,
    action_outlives_its_caller,
    late_owner_gives_the_winners_answer,
    trouble_with_one_call_costs_no_second_effect,
    lost_hints_leave_nobody_waiting,
    failed_completion_is_made_good,
    hanging_store_fails_open,
    unreadable_answer_is_not_run_again,
}

#[test]
fn every_promise_of_the_suite_is_shown() {
    let promised = Property::all().iter().filter_map(|it| it.name.strip_prefix("one_effect::"));
    assert_eq!(promised.collect::<Vec<_>>(), SHOWN);
}

async fn hundred_callers_have_one_effect(world: World) {
    let (one, two) = world.processes(WAIT).await;
    let mut callers = JoinSet::new();
    for number in 0..100 {
        callers.spawn(world.sent(if number % 2 == 0 { one } else { two }));
    }
    let answers = callers.join_all().await;
    for answer in answers {
        assert_eq!(charged(&answer.unwrap()).0, "ch_1");
    }
    world.had(1);
}

async fn waiting_retry_is_given_the_first_answer(world: World) {
    let world = world.gated();
    let (one, two) = world.processes(WAIT).await;
    let first = world.sent(one);
    world.provider.has_begun().await;
    let retry = world.sent(two);
    sleep(MOMENT).await;
    world.provider.let_end();
    let (first, retry) = (first.await.unwrap(), retry.await.unwrap());
    assert_eq!((charged(&first), charged(&retry)), (("ch_1", false), ("ch_1", true)));
    world.had(1);
}

async fn rejected_retry_is_told_in_progress(world: World) {
    let world = world.gated();
    let (one, two) = world.processes(InFlight::Reject).await;
    let first = world.sent(one);
    world.provider.has_begun().await;
    let retry = world.send(two).await;
    assert_eq!((retry.status(), code(&retry).as_str()), (StatusCode::CONFLICT, "in_progress"));
    assert!(retry.headers().contains_key(RETRY_AFTER));
    world.provider.let_end();
    charged(&first.await.unwrap());
    world.had(1);
}

async fn result_cache_has_the_effect_twice(world: World) {
    let world = world.gated();
    let (one, two) = world.processes(InFlight::Run).await;
    let first = world.sent(one);
    world.provider.has_begun().await;
    let retry = world.sent(two);
    world.provider.has_begun().await;
    world.provider.let_end();
    world.provider.let_end();
    let (first, retry) = (first.await.unwrap(), retry.await.unwrap());
    charged(&first);
    charged(&retry);
    world.had(2);
}

async fn reused_key_is_refused(world: World) {
    let world = world.gated();
    let (one, two) = world.processes(WAIT).await;
    let first = world.sent(one);
    world.provider.has_begun().await;
    let reused = world.send_for(two, 999).await;
    world.provider.let_end();
    charged(&first.await.unwrap());
    for reused in [reused, world.send_for(two, 999).await] {
        let told = (reused.status(), code(&reused));
        assert_eq!(told, (StatusCode::UNPROCESSABLE_ENTITY, "mismatch".to_owned()));
    }
    world.had(1);
}

async fn failed_action_runs_again(world: World) {
    let calls = Calls::default();
    let failing =
        serving(world.one.clone(), |b| b, answering(StatusCode::SERVICE_UNAVAILABLE, &calls));
    let failed = world.send(failing.await).await;
    assert_eq!(failed.status(), StatusCode::SERVICE_UNAVAILABLE);
    let works = world.process(&world.two, |b| b).await;
    assert_eq!(charged(&world.send(works).await), ("ch_1", false));
    world.had(1);
}

async fn final_error_is_given_again(world: World) {
    let calls = Calls::default();
    let declined = || answering(StatusCode::PAYMENT_REQUIRED, &calls);
    let one = serving(world.one.clone(), |b| b, declined()).await;
    let two = serving(world.two.clone(), |b| b, declined()).await;
    let (first, again) = (world.send(one).await, world.send(two).await);
    assert_eq!((first.status(), is_replay(&first)), (StatusCode::PAYMENT_REQUIRED, false));
    assert_eq!((again.status(), is_replay(&again)), (StatusCode::PAYMENT_REQUIRED, true));
    assert_eq!((text(&again), calls.count()), ("answer 1", 1));
}

/// A process that dies in the middle of its charge.
async fn dies(world: &World) {
    let (store, provider, key) =
        (world.one.clone(), world.provider.routes(), world.key().to_owned());
    let begun = world.provider.begun.clone();
    // Its runtime is its life: nothing of it goes on when that ends.
    let life = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    life.spawn(async move {
        let budget = StoreBudget::default().per_try(LEASE / 3);
        let at = serving(store, |b| b.lease(LEASE).store_budget(budget), provider).await;
        let mut raw = Raw::connect(at).await;
        let body = r#"{"amount":100}"#;
        let more = format!("idempotency-key: {key}\r\ncontent-length: {}\r\n", body.len());
        raw.write(&format!("{}{body}", head(&more))).await;
        raw.read_to_end().await
    });
    begun.acquire().await.unwrap().forget();
    // Back when nothing of it can run any more.
    tokio::task::spawn_blocking(move || life.shutdown_timeout(PATIENCE)).await.unwrap();
}

async fn dead_worker_is_taken_over(world: World) {
    let world = world.gated();
    dies(&world).await;
    world.provider.may_end.add_permits(1);
    let works = world.process(&world.two, |b| b).await;
    assert_eq!(charged(&world.send(works).await), ("ch_1", false));
    world.had(1);
}

async fn unknown_outcome_is_refused(world: World) {
    let world = world.gated();
    dies(&world).await;
    let refuses = world.process(&world.two, |b| b.abandoned(Abandoned::Refuse)).await;
    let told = world.send(refuses).await;
    assert_eq!((told.status(), code(&told).as_str()), (StatusCode::CONFLICT, "outcome_unknown"));
    world.had(0);
}

async fn waiter_ends_with_a_completion(world: World) {
    let world = world.gated();
    let (one, two) = world.processes(WAIT).await;
    let first = world.sent(one);
    world.provider.has_begun().await;
    let waiters: Vec<_> = (0..10).map(|_| world.sent(two)).collect();
    sleep(MOMENT).await;
    world.provider.let_end();
    charged(&first.await.unwrap());
    for waiter in waiters {
        assert_eq!(charged(&waiter.await.unwrap()), ("ch_1", true));
    }
    world.had(1);
}

/// The holder's handler ends in its way while another process waits, which then runs.
async fn waiter_runs(world: World, ends: impl Fn() -> StatusCode + Copy + Send + Sync + 'static) {
    let gates = world.provider.clone();
    let world = world.gated();
    let (begun, may_end) = (world.provider.begun.clone(), world.provider.may_end.clone());
    let holder: Router = routes(move |_| {
        let (begun, may_end) = (begun.clone(), may_end.clone());
        async move {
            begun.add_permits(1);
            may_end.acquire().await.unwrap().forget();
            ends()
        }
    });
    let holder = serving(world.one.clone(), |b| b, holder).await;
    let waits = serving(world.two.clone(), |b| b, gates.routes()).await;
    let held = world.sent(holder);
    world.provider.has_begun().await;
    let waiter = world.sent(waits);
    sleep(MOMENT).await;
    world.provider.let_end();
    assert!(held.await.unwrap().status().is_server_error());
    assert_eq!(charged(&waiter.await.unwrap()), ("ch_1", false));
    assert_eq!(gates.done.count(), 1);
}

async fn waiter_ends_with_a_release(world: World) {
    waiter_runs(world, || StatusCode::SERVICE_UNAVAILABLE).await;
}

async fn waiter_ends_when_the_holder_gives_up(world: World) {
    waiter_runs(world, || panic!("nobody knows what it has done")).await;
}

async fn waiter_ends_with_its_patience(world: World) {
    let world = world.gated();
    let one = world.process(&world.one, |b| b).await;
    let hasty =
        world.process(&world.two, |b| b.in_flight(InFlight::Wait { at_most: MOMENT })).await;
    let first = world.sent(one);
    world.provider.has_begun().await;
    let asked = Instant::now();
    let told = world.send(hasty).await;
    assert!(asked.elapsed() >= MOMENT, "it had more patience");
    assert_eq!((told.status(), code(&told).as_str()), (StatusCode::CONFLICT, "in_progress"));
    world.provider.let_end();
    charged(&first.await.unwrap());
    world.had(1);
}

async fn action_outlives_its_caller(world: World) {
    let world = world.gated();
    let (one, two) = world.processes(WAIT).await;
    let mut raw = Raw::connect(one).await;
    let body = r#"{"amount":100}"#;
    let more = format!("idempotency-key: {}\r\ncontent-length: {}\r\n", world.key(), body.len());
    raw.write(&format!("{}{body}", head(&more))).await;
    world.provider.has_begun().await;
    drop(raw);
    world.provider.let_end();
    assert_eq!(charged(&world.send(two).await), ("ch_1", true));
    world.had(1);
}

async fn late_owner_gives_the_winners_answer(world: World) {
    let world = world.gated();
    let faulty = Arc::new(Faulty::new(world.one.clone()));
    // The owner cannot reach the store, so its lease ends.
    faulty.always(Verb::Renew, Trouble::NotApplied);
    let faulty: Arc<dyn Store> = faulty;
    let budget = StoreBudget::default().per_try(LEASE / 3);
    let late = world.process(&faulty, |b| b.lease(LEASE).store_budget(budget)).await;
    let late = world.sent(late);
    world.provider.has_begun().await;
    let winner = world.process(&world.two, |b| b).await;
    let won = world.sent(winner);
    world.provider.has_begun().await;
    // One ends, and the other then.
    world.provider.let_end();
    world.provider.has_done(1).await;
    world.provider.let_end();
    let (won, late) = (won.await.unwrap(), late.await.unwrap());
    assert_eq!(charged(&won).0, charged(&late).0);
    world.had(2);
}

async fn trouble_with_one_call_costs_no_second_effect(world: World) {
    let late = Duration::from_millis(700);
    let mut charges = 0;
    for verb in [Verb::Reserve, Verb::Complete] {
        for trouble in [Trouble::NotApplied, Trouble::ReplyLost, Trouble::LateReply(late)] {
            charges += 1;
            let amount = charges;
            let faulty = Arc::new(Faulty::new(world.one.clone()));
            faulty.next(verb, trouble);
            let faulty: Arc<dyn Store> = faulty;
            let budget = StoreBudget::default().total(PATIENCE);
            let one = world.process(&faulty, |b| b.store_budget(budget)).await;
            let two = world.process(&world.two, |b| b).await;
            let world = world.under(&format!("{verb:?} {trouble:?}"));
            let (first, retry) =
                (world.send_for(one, amount).await, world.send_for(two, amount).await);
            let context = format!("{verb:?} {trouble:?}");
            assert_eq!(charged(&first).0, charged(&retry).0, "{context}");
            assert!(is_replay(&retry), "{context}");
            world.had(charges);
        }
    }
}

async fn lost_hints_leave_nobody_waiting(world: World) {
    let world = world.gated();
    let one = world.process(&world.one, |b| b).await;
    let faulty = Arc::new(Faulty::new(world.two.clone()));
    faulty.always(Verb::Watch, Trouble::NeverHints);
    let faulty: Arc<dyn Store> = faulty;
    let two = world.process(&faulty, |b| b).await;
    let first = world.sent(one);
    world.provider.has_begun().await;
    let waiter = world.sent(two);
    sleep(MOMENT).await;
    world.provider.let_end();
    charged(&first.await.unwrap());
    assert_eq!(charged(&waiter.await.unwrap()), ("ch_1", true));
    world.had(1);
}

async fn failed_completion_is_made_good(world: World) {
    let faulty = Arc::new(Faulty::new(world.one.clone()));
    faulty.always(Verb::Complete, Trouble::NotApplied);
    let store: Arc<dyn Store> = faulty.clone();
    let budget = StoreBudget::default().breaker(1_000, MOMENT);
    let one = world.process(&store, |b| b.store_budget(budget)).await;
    charged(&world.send(one).await);
    faulty.heal();
    let elsewhere = world.process(&world.two, |b| b).await;
    assert_eq!(charged(&world.send(elsewhere).await), ("ch_1", true));
    world.had(1);
}

async fn hanging_store_fails_open(world: World) {
    let world = world.gated();
    let faulty = Arc::new(Faulty::new(world.one.clone()));
    faulty.down(Trouble::Hangs);
    let store: Arc<dyn Store> = faulty.clone();
    let budget = StoreBudget::default().per_try(MOMENT).tries(2).breaker(1_000, MOMENT);
    let open = |b: idem_core::Builder| {
        b.on_store_failure(OnStoreFailure::RunUnprotected).store_budget(budget)
    };
    let one = world.process(&store, open).await;
    let callers: Vec<_> = (0..10).map(|_| world.sent(one)).collect();
    world.provider.has_begun().await;
    world.provider.let_end();
    for caller in callers {
        assert_eq!(charged(&caller.await.unwrap()).0, "ch_1");
    }
    faulty.heal();
    // It is recorded when the store answers again, and known here until then.
    assert_eq!(charged(&world.send(one).await), ("ch_1", true));
    world.had(1);
}

async fn unreadable_answer_is_not_run_again(world: World) {
    let spy = Tampered::on(world.one.clone());
    let calls = Calls::default();
    let failing = serving(spy.clone(), |b| b, answering(StatusCode::SERVICE_UNAVAILABLE, &calls));
    world.send(failing.await).await;
    let rival = spy.rival();
    let verdict = world.one.reserve(&rival).await.unwrap().verdict(&rival).unwrap();
    let Verdict::Acquired { lease, .. } = verdict else { panic!("{verdict:?}") };
    let garbage = "no envelope".into();
    world.one.complete(&lease, &garbage, rival.retention_for()).await.unwrap();
    let works = world.process(&world.two, |b| b).await;
    let told = world.send(works).await;
    assert!(told.status().is_server_error(), "{told:?}");
    world.had(0);
}
