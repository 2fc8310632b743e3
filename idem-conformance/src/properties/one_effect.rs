//! The promise itself, over this store: the same request twice has its effect once, and both are
//! given the same answer.
//!
//! These run the [`Coordinator`] on the store under test. What they show follows from the laws,
//! if the laws hold and are enough; here both are seen to work together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_core::{
    Abandoned, Attempt, Builder, Call, CallError, Coordinator, Effect, InFlight, OnStoreFailure,
    Outcome, RunError, Store, StoreBudget, keeping,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::failure::{Failure, Verdict, ensure};
use crate::faulty::{Faulty, Trouble, Verb};
use crate::lab::{Lab, OTHER, REQUEST, rival};
use crate::subject::Subject;

/// Time for others to come, where nothing depends on whether they have.
const MOMENT: Duration = Duration::from_millis(20);
/// Longer than anything here takes on a store that works.
const PATIENCE: Duration = Duration::from_secs(5);

/// A provider that counts what it is asked to do.
#[derive(Clone, Default)]
struct Provider(Arc<AtomicU32>);

type Answer = Result<Outcome<String>, RunError<String>>;

impl Provider {
    fn effects(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Has its effect at once, and answers later.
    async fn effect(self, takes: Duration) -> Result<String, String> {
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        sleep(takes).await;
        Ok(format!("effect {number}"))
    }

    async fn run(&self, call: Call, takes: Duration) -> Answer {
        let provider = self.clone();
        call.run(move |_| provider.effect(takes)).await
    }

    fn had(&self, effects: u32) -> Verdict {
        let had = self.effects();
        ensure!(had == effects, "the action ran {had} times, and should have {effects} times");
        Ok(())
    }
}

/// One key, and the processes that call with it.
struct Bench {
    lab: Lab,
    text: String,
    provider: Provider,
}

impl Bench {
    fn new(lab: &Lab) -> Verdict<Self> {
        let text = lab.attempt()?.key().text().to_owned();
        Ok(Self { lab: lab.clone(), text, provider: Provider::default() })
    }

    /// What another process's attempt at the same request is.
    fn attempt(&self) -> Verdict<Attempt> {
        Ok(rival(&crate::lab::attempt_at(self.lab.key_named(&self.text)?)))
    }

    /// A process over this store.
    fn process(
        store: Arc<dyn Store>,
        set: impl FnOnce(Builder) -> Builder,
    ) -> Verdict<Coordinator> {
        let quick = Coordinator::builder(store)
            .without_logs()
            .poll(Duration::from_millis(20))
            .in_flight(InFlight::Wait { at_most: PATIENCE });
        set(quick).build().map_err(|why| Failure::violated(why.to_string()))
    }

    /// Two processes over the store, the second on a handle of its own if there is one.
    async fn two(&self, in_flight: InFlight) -> Verdict<(Coordinator, Coordinator)> {
        let other = self.lab.fork_or_store().await?.into_inner();
        let one = Self::process(self.lab.store().into_inner(), |b| b.in_flight(in_flight))?;
        Ok((one, Self::process(other, |b| b.in_flight(in_flight))?))
    }

    fn call(&self, process: &Coordinator) -> Call {
        process.operation(self.lab.operation()).key(&self.text).fingerprint(REQUEST)
    }

    async fn run(&self, process: &Coordinator, takes: Duration) -> Answer {
        self.provider.run(self.call(process), takes).await
    }

    /// The first request on one process, and its retry on the other while the first is running.
    async fn retried(&self, in_flight: InFlight) -> Verdict<(Answer, Answer)> {
        let (one, two) = self.two(in_flight).await?;
        let (first, second) = (Gate::default(), Gate::default());
        let retry = async {
            first.begun().await;
            let running = second.clone().around(self.provider.clone());
            let retry = self.call(&two).run(|_| running);
            let retry = tokio::spawn(retry);
            match in_flight {
                // Answered while the first is running.
                InFlight::Reject => {
                    let retry = retry.await;
                    first.open();
                    retry
                }
                // Runs, and is not done before the first is.
                InFlight::Run => {
                    second.begun().await;
                    first.open();
                    first.left().await;
                    second.open();
                    retry.await
                }
                // Waits. If it is slow to begin, it replays.
                _ => {
                    sleep(MOMENT).await;
                    first.open();
                    second.open();
                    retry.await
                }
            }
        };
        let run = async {
            let answer = self.call(&one).run({
                let running = first.clone().around(self.provider.clone());
                |_| running
            });
            let answer = answer.await;
            first.leave();
            answer
        };
        let (first, retry) = tokio::join!(run, retry);
        Ok((first, retry?))
    }
}

/// Holds an action up until it is opened, so that nothing depends on how long anything takes.
#[derive(Clone)]
struct Gate(Arc<watch::Sender<Stage>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Ahead,
    Begun,
    Open,
    Left,
}

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::default()))
    }
}

impl Gate {
    async fn around(self, provider: Provider) -> Result<String, String> {
        self.reach(Stage::Begun);
        self.until(Stage::Open).await;
        provider.effect(Duration::ZERO).await
    }

    async fn begun(&self) {
        self.until(Stage::Begun).await;
    }

    fn open(&self) {
        self.reach(Stage::Open);
    }

    /// The caller has its answer.
    fn leave(&self) {
        self.reach(Stage::Left);
    }

    async fn left(&self) {
        self.until(Stage::Left).await;
    }

    fn reach(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let later = *now < stage;
            *now = stage.max(*now);
            later
        });
    }

    async fn until(&self, stage: Stage) {
        // The sender is here, so it does not fail.
        let _ = self.0.subscribe().wait_for(|now| *now >= stage).await;
    }
}

fn value(answer: &Answer) -> Verdict<&str> {
    match answer {
        Ok(outcome) => Ok(&outcome.value),
        Err(error) => Err(Failure::violated(format!("a call had no answer: {error:?}"))),
    }
}

fn told(answer: &Answer, code: &str) -> Verdict {
    match answer {
        Err(error) if error.code() == code => Ok(()),
        other => Err(Failure::violated(format!("expected {code}, got {other:?}"))),
    }
}

/// A hundred callers with one key, in two processes, have one effect and one answer.
// C1, C7
pub(crate) async fn hundred_callers_have_one_effect(lab: Lab) -> Verdict {
    let bench = Arc::new(Bench::new(&lab)?);
    let (one, two) = bench.two(InFlight::Wait { at_most: PATIENCE }).await?;
    let mut callers = JoinSet::new();
    for number in 0..100 {
        let (bench, process) = (bench.clone(), if number % 2 == 0 { &one } else { &two }.clone());
        callers.spawn(async move { bench.run(&process, MOMENT).await });
    }
    while let Some(answer) = callers.join_next().await {
        let answer = answer?;
        ensure!(value(&answer)? == "effect 1", "a caller was answered {:?}", value(&answer)?);
    }
    bench.provider.had(1)
}

/// A retry in flight waits, and is given the first one's answer.
pub(crate) async fn waiting_retry_is_given_the_first_answer(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let (first, retry) = bench.retried(InFlight::Wait { at_most: PATIENCE }).await?;
    ensure!(value(&first)? == value(&retry)?, "two answers: {first:?} and {retry:?}");
    bench.provider.had(1)
}

/// A retry in flight is refused at once, where the operation says so.
pub(crate) async fn rejected_retry_is_told_in_progress(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let (first, retry) = bench.retried(InFlight::Reject).await?;
    value(&first)?;
    told(&retry, "in_progress")?;
    bench.provider.had(1)
}

/// A result cache has the effect twice on this store, too: what the others show is not luck.
pub(crate) async fn result_cache_has_the_effect_twice(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let (first, retry) = bench.retried(InFlight::Run).await?;
    ensure!(value(&first)? == value(&retry)?, "two answers: {first:?} and {retry:?}");
    bench.provider.had(2)
}

/// A key that is used again for another request is refused, while the first runs and after.
pub(crate) async fn reused_key_is_refused(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let (one, two) = bench.two(InFlight::Wait { at_most: PATIENCE }).await?;
    let other = || two.operation(lab.operation()).key(&bench.text).fingerprint(OTHER);
    let reused = async {
        sleep(MOMENT).await;
        bench.provider.run(other(), MOMENT).await
    };
    let (first, reused) = tokio::join!(bench.run(&one, MOMENT), reused);
    value(&first)?;
    told(&reused, "mismatch")?;
    told(&bench.provider.run(other(), MOMENT).await, "mismatch")?;
    bench.provider.had(1)
}

/// An action that fails leaves no answer, and the next request runs.
pub(crate) async fn failed_action_runs_again(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let (one, two) = bench.two(InFlight::Wait { at_most: PATIENCE }).await?;
    let failing = bench.call(&one).run(|_| async { Err::<String, _>("declined".to_owned()) });
    told(&failing.await, "action_failed")?;
    value(&bench.run(&two, Duration::ZERO).await)?;
    bench.provider.had(1)
}

/// An error that is final is kept, and given to the next caller instead of a run.
pub(crate) async fn final_error_is_given_again(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let (one, two) = bench.two(InFlight::Wait { at_most: PATIENCE }).await?;
    for process in [&one, &two] {
        let provider = bench.provider.clone();
        let call = bench.call(process).errors(keeping(|_: &String| Effect::Keep));
        let answer = call.run(move |_| async move {
            provider.effect(Duration::ZERO).await.and_then(Err::<(), _>)
        });
        let Err(RunError::Action { error, .. }) = answer.await else {
            return Err(Failure::violated("a final error was not given again"));
        };
        ensure!(error == "effect 1", "another error was given: {error}");
    }
    bench.provider.had(1)
}

/// A worker that dies is taken over when its lease has ended, and the action knows.
// C24
pub(crate) async fn dead_worker_is_taken_over(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let dead = bench.attempt()?.lease(lab.short());
    lab.store().acquires(&dead).await?;
    let process = Bench::process(lab.fork_or_store().await?.into_inner(), |b| b)?;
    let call = bench.call(&process);
    let waiter = tokio::spawn(call.run(|attempt| async move { Ok::<_, String>(attempt.number()) }));
    sleep(MOMENT).await;
    lab.pass(lab.short()).await?;
    let outcome = waiter.await?.map_err(|error| Failure::violated(format!("{error:?}")))?;
    ensure!(outcome.value == 2, "the takeover ran as attempt {}", outcome.value);
    Ok(())
}

/// A key whose outcome is unknown is not run again, where the operation says so.
// C27
pub(crate) async fn unknown_outcome_is_refused(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    lab.store().abandoned(&bench.attempt()?).await?;
    let refuse = |b: Builder| b.abandoned(Abandoned::Refuse);
    let process = Bench::process(lab.fork_or_store().await?.into_inner(), refuse)?;
    told(&bench.run(&process, Duration::ZERO).await, "outcome_unknown")?;
    bench.provider.had(0)
}

/// Waits for another process's attempt, which then ends in this way.
async fn waits_for<F>(
    lab: &Lab,
    end: impl FnOnce(Subject, idem_core::Lease) -> F,
) -> Verdict<(Bench, Answer)>
where
    F: Future<Output = Verdict>,
{
    let bench = Bench::new(lab)?;
    let held = lab.store().acquires(&bench.attempt()?).await?;
    let process = Bench::process(lab.fork_or_store().await?.into_inner(), |b| b)?;
    let waiting = async {
        timeout(2 * PATIENCE, bench.run(&process, Duration::ZERO))
            .await
            .map_err(|_| Failure::violated("the waiter was left waiting"))
    };
    let ending = async {
        sleep(MOMENT).await;
        end(lab.store(), held.lease).await
    };
    let (answer, ended) = tokio::join!(waiting, ending);
    ended?;
    let answer = answer?;
    Ok((bench, answer))
}

/// A waiter is given the answer when the other process completes.
pub(crate) async fn waiter_ends_with_a_completion(lab: Lab) -> Verdict {
    let answer = idem_core::envelope::Envelope {
        codec: idem_core::envelope::CodecId::JSON,
        body: idem_core::envelope::Body::Value(bytes::Bytes::from_static(br#""elsewhere""#)),
    };
    let complete =
        |store: Subject, lease| async move { Ok(store.complete(&lease, &answer.encode()).await?) };
    let (bench, answer) = waits_for(&lab, complete).await?;
    ensure!(value(&answer)? == "elsewhere", "the waiter was answered {answer:?}");
    bench.provider.had(0)
}

/// A waiter runs the action when the other process releases.
pub(crate) async fn waiter_ends_with_a_release(lab: Lab) -> Verdict {
    let release = |store: Subject, lease| async move { Ok(store.release(&lease).await?) };
    let (bench, answer) = waits_for(&lab, release).await?;
    value(&answer)?;
    bench.provider.had(1)
}

/// A waiter takes over when the other process gives up.
pub(crate) async fn waiter_ends_when_the_holder_gives_up(lab: Lab) -> Verdict {
    let give_up = |store: Subject, lease| async move { store.abandon(&lease).await };
    let (bench, answer) = waits_for(&lab, give_up).await?;
    value(&answer)?;
    bench.provider.had(1)
}

/// A waiter whose patience is over is told that it is in progress.
pub(crate) async fn waiter_ends_with_its_patience(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    lab.store().acquires(&bench.attempt()?).await?;
    let hasty = |b: Builder| b.in_flight(InFlight::Wait { at_most: MOMENT });
    let process = Bench::process(lab.fork_or_store().await?.into_inner(), hasty)?;
    let answer = timeout(PATIENCE, bench.run(&process, Duration::ZERO)).await;
    let answer = answer.map_err(|_| Failure::violated("the waiter was left waiting"))?;
    told(&answer, "in_progress")?;
    bench.provider.had(0)
}

/// A caller that leaves does not take its action with it: the retry is given the answer.
// C31
pub(crate) async fn action_outlives_its_caller(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let (one, two) = bench.two(InFlight::Wait { at_most: PATIENCE }).await?;
    let gate = Gate::default();
    let running = gate.clone().around(bench.provider.clone());
    tokio::select! {
        answer = bench.call(&one).run(|_| running) => {
            return Err(Failure::violated(format!("answered before the action was done: {answer:?}")));
        }
        () = gate.begun() => {}
    }
    gate.open();
    value(&bench.run(&two, Duration::ZERO).await)?;
    bench.provider.had(1)
}

/// An owner that was taken over gives the winner's answer, not its own.
// C12
pub(crate) async fn late_owner_gives_the_winners_answer(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let faulty = Arc::new(Faulty::new(lab.store().into_inner()));
    // The owner cannot reach the store, so its lease ends.
    faulty.always(Verb::Renew, Trouble::NotApplied);
    let lease = lab.short().max(Duration::from_millis(300));
    let late = Bench::process(faulty, |b| {
        b.lease(lease).store_budget(StoreBudget::default().per_try(lease / 3))
    })?;
    let gate = Gate::default();
    let held_up = gate.clone().around(Provider::default());
    let late = tokio::spawn(bench.call(&late).run(|_| held_up));
    gate.begun().await;
    lab.pass(lease).await?;
    let winner = Bench::process(lab.fork_or_store().await?.into_inner(), |b| b)?;
    let won = bench.run(&winner, Duration::ZERO).await;
    gate.open();
    let late = late.await?;
    ensure!(value(&late)? == value(&won)?, "two answers: {won:?}, and late {late:?}");
    bench.provider.had(1)
}

/// A budget in which an answer after 700 ms is too late.
fn hasty(b: Builder) -> Builder {
    let budget = StoreBudget::default().total(PATIENCE).breaker(1_000, Duration::from_secs(1));
    b.store_budget(budget)
}

/// Whatever becomes of one call to the store, one request has one effect and one answer.
// C103
pub(crate) async fn trouble_with_one_call_costs_no_second_effect(lab: Lab) -> Verdict {
    let late = Duration::from_millis(700);
    for verb in [Verb::Reserve, Verb::Complete] {
        for trouble in [Trouble::NotApplied, Trouble::ReplyLost, Trouble::LateReply(late)] {
            let bench = Bench::new(&lab)?;
            let faulty = Arc::new(Faulty::new(lab.store().into_inner()));
            let process = Bench::process(faulty.clone(), hasty)?;
            faulty.next(verb, trouble);
            let first = bench.run(&process, Duration::ZERO).await;
            let elsewhere = Bench::process(lab.fork_or_store().await?.into_inner(), |b| b)?;
            let retry = bench.run(&elsewhere, Duration::ZERO).await;
            let (first, retry) = (value(&first)?, value(&retry)?);
            ensure!(first == retry, "{verb:?} {trouble:?}: two answers, {first} and {retry}");
            bench.provider.had(1)?;
        }
    }
    Ok(())
}

/// A waiter ends although every hint is lost.
// C122
pub(crate) async fn lost_hints_leave_nobody_waiting(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let held = lab.store().acquires(&bench.attempt()?).await?;
    let faulty = Faulty::new(lab.fork_or_store().await?.into_inner());
    faulty.always(Verb::Watch, Trouble::NeverHints);
    let process = Bench::process(Arc::new(faulty), |b| b)?;
    let (answer, released) = tokio::join!(bench.run(&process, Duration::ZERO), async {
        sleep(MOMENT).await;
        lab.store().release(&held.lease).await
    });
    released?;
    value(&answer)?;
    bench.provider.had(1)
}

/// A result that the store does not take is given to its caller, and recorded when it does.
// C134
pub(crate) async fn failed_completion_is_made_good(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    let faulty = Arc::new(Faulty::new(lab.store().into_inner()));
    let process = Bench::process(faulty.clone(), hasty)?;
    faulty.always(Verb::Complete, Trouble::NotApplied);
    let first = bench.run(&process, Duration::ZERO).await;
    value(&first)?;
    ensure!(first.is_ok_and(|outcome| !outcome.recorded), "what was not recorded was said to be");
    faulty.heal();
    let elsewhere = Bench::process(lab.fork_or_store().await?.into_inner(), |b| b)?;
    value(&bench.run(&elsewhere, Duration::ZERO).await)?;
    bench.provider.had(1)
}

/// A store that hangs costs a call its budget. Failing open, one process runs once, and has the
/// result recorded when the store answers.
// C102, C111
pub(crate) async fn hanging_store_fails_open(lab: Lab) -> Verdict {
    let bench = Arc::new(Bench::new(&lab)?);
    let faulty = Arc::new(Faulty::new(lab.store().into_inner()));
    faulty.down(Trouble::Hangs);
    let budget = StoreBudget::default().per_try(MOMENT).tries(2).breaker(1_000, MOMENT);
    let process = Bench::process(faulty.clone(), |b| {
        b.on_store_failure(OnStoreFailure::RunUnprotected).store_budget(budget)
    })?;
    let mut callers = JoinSet::new();
    for _ in 0..10 {
        let (bench, process) = (bench.clone(), process.clone());
        callers.spawn(async move { bench.run(&process, MOMENT).await });
    }
    while let Some(answer) = callers.join_next().await {
        let answer = answer?;
        ensure!(value(&answer)? == "effect 1", "two answers in one process: {answer:?}");
    }
    faulty.heal();
    let drained = process.drain(PATIENCE).await;
    drained.map_err(|why| Failure::violated(format!("the result was not recorded: {why}")))?;
    let elsewhere = Bench::process(lab.fork_or_store().await?.into_inner(), |b| b)?;
    value(&bench.run(&elsewhere, Duration::ZERO).await)?;
    bench.provider.had(1)
}

/// A record that cannot be read is an error, and nothing runs.
// C109
pub(crate) async fn unreadable_answer_is_not_run_again(lab: Lab) -> Verdict {
    let bench = Bench::new(&lab)?;
    lab.store().completed(&bench.attempt()?, b"no envelope").await?;
    let process = Bench::process(lab.fork_or_store().await?.into_inner(), |b| b)?;
    let answer = bench.run(&process, Duration::ZERO).await;
    let unreadable =
        matches!(&answer, Err(error) if matches!(error.call(), Some(CallError::Unreadable { .. })));
    ensure!(unreadable, "expected an unreadable answer, got {answer:?}");
    bench.provider.had(0)
}
