//! Whatever callers and faults come in whatever order: what must hold, holds.
//!
//! Random scripts on virtual time: two processes over one store that fails for a while, and callers
//! that retry, leave, wait, fail, panic and send other requests under the key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_core::model::Phase;
use idem_core::{
    Abandoned, Attempt, Call, Coordinator, Effect, InFlight, OnStoreFailure, Store, Verdict,
    keeping,
};
use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};

use super::support::{
    Charged, Events, FULL, MS, PERMISSION, SEC, Trouble, Verb, faulty, fingerprint, hasty, key,
};

const LEASE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
enum Ending {
    Value,
    NoEffect,
    Kept,
    Unknown,
    Panic,
}

#[derive(Clone, Debug)]
struct Caller {
    process: usize,
    request: u8,
    in_flight: InFlight,
    takes: Duration,
    ending: Ending,
    leaves_after: Option<Duration>,
    borrowed: bool,
}

#[derive(Clone, Debug)]
enum Act {
    Call(Caller),
    Break(Vec<Verb>, Trouble),
    Heal,
    /// The store forgets the key.
    Evict,
}

#[derive(Clone, Debug)]
struct Script {
    on_store_failure: OnStoreFailure,
    abandoned: Abandoned,
    steps: Vec<(Duration, Act)>,
}

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn caller() -> impl Strategy<Value = Act> {
    let ending = prop_oneof![
        4 => Just(Ending::Value),
        2 => Just(Ending::NoEffect),
        1 => Just(Ending::Kept),
        1 => Just(Ending::Unknown),
        1 => Just(Ending::Panic),
    ];
    let in_flight = prop_oneof![
        3 => Just(InFlight::Wait { at_most: PATIENCE }),
        1 => Just(InFlight::Wait { at_most: SEC }),
        1 => Just(InFlight::Reject),
    ];
    let takes = prop_oneof![Just(Duration::ZERO), millis(1..500), millis(500..8_000)];
    let leaves = prop::option::weighted(0.3, millis(0..4_000));
    let request = prop_oneof![5 => Just(1_u8), 1 => Just(2_u8)];
    (0..2_usize, request, in_flight, takes, ending, leaves, prop::bool::weighted(0.25)).prop_map(
        |(process, request, in_flight, takes, ending, leaves_after, borrowed)| {
            Act::Call(Caller { process, request, in_flight, takes, ending, leaves_after, borrowed })
        },
    )
}

fn fault() -> impl Strategy<Value = Act> {
    let verbs = [Verb::Reserve, Verb::Renew, Verb::Complete, Verb::Release, Verb::Watch];
    let fault = prop_oneof![
        Just(Trouble::NotApplied),
        Just(Trouble::ReplyLost),
        Just(Trouble::Hangs),
        Just(Trouble::Late(50 * MS)),
        Just(Trouble::Late(200 * MS)),
        Just(FULL),
        Just(PERMISSION),
    ];
    (prop::sample::subsequence(verbs.to_vec(), 1..=5), fault)
        .prop_map(|(verbs, fault)| Act::Break(verbs, fault))
}

fn script(evicts: bool) -> impl Strategy<Value = Script> {
    let act = prop_oneof![
        6 => caller(),
        2 => fault(),
        2 => Just(Act::Heal),
        u32::from(evicts) => Just(Act::Evict),
    ];
    let steps = prop::collection::vec((millis(0..2_000), act), 1..14);
    let policy = prop_oneof![Just(OnStoreFailure::Refuse), Just(OnStoreFailure::RunUnprotected)];
    let abandoned = prop_oneof![Just(Abandoned::Refuse), Just(Abandoned::Rerun)];
    (policy, abandoned, steps).prop_map(|(on_store_failure, abandoned, steps)| Script {
        on_store_failure,
        abandoned,
        steps,
    })
}

/// What the actions did to the world outside.
#[derive(Clone, Debug, Default)]
struct World {
    effects: Arc<AtomicU32>,
}

impl World {
    async fn act(self, takes: Duration, ending: Ending) -> Result<String, String> {
        // The effect comes first: whatever ends the action later does not take it back.
        let number = match ending {
            Ending::NoEffect => 0,
            _ => self.effects.fetch_add(1, Ordering::SeqCst) + 1,
        };
        sleep(takes).await;
        match ending {
            Ending::Value => Ok(format!("ch_{number}")),
            Ending::NoEffect => Err("no effect".to_owned()),
            Ending::Kept => Err("kept".to_owned()),
            Ending::Unknown => Err("unknown".to_owned()),
            Ending::Panic => panic!("as scripted"),
        }
    }
}

#[expect(clippy::ptr_arg, reason = "a rule is given the error as it is")]
fn meaning(error: &String) -> Effect {
    match error.as_str() {
        "no effect" => Effect::None,
        "kept" => Effect::Keep,
        _ => Effect::Unknown,
    }
}

/// What came of a script.
struct Played {
    answers: Vec<Charged>,
    effects: u32,
    events: Events,
    /// The record, after all is healed and done; `None` if it is free.
    completed: bool,
    /// What the next request, which may not take over, is told.
    next: Verdict,
    /// What is left in the coordinators.
    left: String,
}

async fn play(script: &Script) -> Played {
    let (store, events, world) = (faulty(), Events::default(), World::default());
    let process = || {
        Coordinator::builder(store.clone())
            .store_budget(hasty())
            .lease(LEASE)
            .on_store_failure(script.on_store_failure)
            .abandoned(script.abandoned)
            .observe(events.observer())
            .without_logs()
            .build()
            .unwrap()
    };
    let processes = [process(), process()];
    let mut callers = Vec::new();
    for (after, act) in &script.steps {
        sleep(*after).await;
        match act {
            Act::Call(caller) => {
                let idem = processes[caller.process].clone();
                callers.push(tokio::spawn(make(idem, world.clone(), caller.clone())));
            }
            Act::Break(verbs, fault) => verbs.iter().for_each(|verb| store.always(*verb, *fault)),
            Act::Heal => store.heal(),
            Act::Evict => drop(store.store().forget(&key())),
        }
    }
    sleep(5 * SEC).await;
    store.heal();
    let mut answers = Vec::new();
    for caller in callers {
        answers.extend(caller.await.expect("no caller's task panics"));
    }
    for idem in &processes {
        idem.drain(Duration::from_mins(11)).await.expect("all is done in the end");
    }
    sleep(LEASE).await;
    let row = store.store().inspect(&key());
    let next = Attempt::new(key(), fingerprint(1)).takeover(false);
    Played {
        answers,
        effects: world.effects.load(Ordering::SeqCst),
        completed: row.is_some_and(|row| matches!(row.phase, Phase::Completed { .. })),
        next: store.store().reserve(&next).await.unwrap().verdict(&next).unwrap(),
        events,
        left: format!("{processes:?}"),
    }
}

/// Makes the call; `None` if the caller leaves before it has an answer.
async fn make(idem: Coordinator, world: World, caller: Caller) -> Option<Charged> {
    let Caller { request, in_flight, takes, ending, leaves_after, borrowed, .. } = caller;
    let operation = idem.operation("charge").in_flight(in_flight);
    let call: Call<_, _, _> =
        operation.key("k").fingerprint(fingerprint(request)).errors(keeping(meaning));
    let begun = Instant::now();
    let answer = async {
        if borrowed {
            call.run_borrowed(|_| world.act(takes, ending)).await
        } else {
            call.run(move |_| world.act(takes, ending)).await
        }
    };
    let answer = timeout(leaves_after.unwrap_or(Duration::from_mins(10)), answer).await.ok();
    // Its patience, twice: once to be let in, and once more for a winner to end. Its action, and
    // those that it waited for and that failed. A budget for each verb.
    let bound = 2 * PATIENCE + 14 * (8 * SEC + 3 * SEC);
    assert!(begun.elapsed() <= bound, "took {:?}", begun.elapsed());
    assert!(answer.is_some() || leaves_after.is_some(), "stranded");
    answer
}

fn play_now(script: &Script) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(play(script))
}

/// What holds even if the store forgets.
fn always(played: &Played) -> Result<(), TestCaseError> {
    let sum = |names: &[&str]| names.iter().map(|name| played.events.count(name)).sum::<usize>();
    // Every run is told to begin once, and to end once.
    let begun = sum(&["reserved", "taken_over", "ran_unprotected"]);
    let ended = sum(&["completed", "not_recorded", "superseded", "released", "abandoned"]);
    prop_assert_eq!(begun, ended, "{:?}", played.events.names());
    // Nobody holds the key for ever, and no flight is left behind.
    prop_assert!(!matches!(played.next, Verdict::InProgress { .. }), "{:?}", played.next);
    prop_assert_eq!(played.left.matches("flights: Flights(Mutex { data: {}").count(), 2);
    Ok(())
}

/// What holds as long as the store keeps the laws.
fn lawful(script: &Script, played: &Played) -> Result<(), TestCaseError> {
    let count = |name| played.events.count(name);
    let names = played.events.names();
    // At most one effect, and one more for each time that it was knowingly risked.
    let risked = count("taken_over") + count("ran_unprotected");
    prop_assert!(played.effects as usize <= 1 + risked, "{} effects: {names:?}", played.effects);
    if script.abandoned == Abandoned::Refuse {
        prop_assert_eq!(count("taken_over"), 0);
    }
    if script.on_store_failure == OnStoreFailure::Refuse {
        prop_assert_eq!(count("ran_unprotected"), 0);
    }
    // The store has a result exactly if one run was told that it has.
    prop_assert_eq!(count("completed"), usize::from(played.completed), "{:?}", names);
    // All recorded answers are one answer.
    let mut recorded: Vec<_> = played.answers.iter().flatten().collect();
    recorded.retain(|outcome| outcome.recorded);
    prop_assert!(recorded.is_empty() || played.completed, "{:?}", names);
    recorded.dedup_by(|a, b| a.value == b.value);
    prop_assert!(recorded.len() <= 1, "{recorded:?}");
    // Where abandoned keys are refused, only a run that was told to have left one so leaves one. (A
    // takeover that never began cannot know that nothing ever did.)
    if script.abandoned == Abandoned::Refuse && matches!(played.next, Verdict::Abandoned { .. }) {
        prop_assert!(count("abandoned") + count("not_recorded") > 0, "{:?}", names);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    // C1, C6, C7, C8, C25, C31, C33, C103, C111, C134
    #[test]
    fn one_effect_and_one_answer_whatever_fails(script in script(false)) {
        let played = play_now(&script);
        always(&played)?;
        lawful(&script, &played)?;
    }

    // C104
    #[test]
    fn nobody_is_stranded_whatever_the_store_forgets(script in script(true)) {
        always(&play_now(&script))?;
    }
}
