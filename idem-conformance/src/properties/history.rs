//! Whatever happens could have happened one verb at a time.

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tokio::runtime::Handle;

use crate::failure::{Failure, Verdict};
use crate::history::clients::{Plan, history};
use crate::history::operation::Operation;
use crate::history::runs::{Oracle, Step, runs};
use crate::history::search::explain;
use crate::lab::Lab;

/// Random verbs of three clients, one after the other, are answered as the model says, whatever
/// the store.
// C29
pub(crate) async fn random_runs_agree_with_the_model(lab: Lab) -> Verdict {
    agrees_with_the_model(lab, false).await
}

/// Random verbs of three clients, with time passing between them, are answered as the model
/// says, to the microsecond.
pub(crate) async fn random_runs_in_time_agree_with_the_model(lab: Lab) -> Verdict {
    lab.needs_virtual_clock()?;
    agrees_with_the_model(lab, true).await
}

async fn agrees_with_the_model(lab: Lab, exact: bool) -> Verdict {
    let runtime = Handle::current();
    let trying = tokio::task::spawn_blocking(move || {
        let mut runner = runner(lab.seed());
        let short = exact.then(|| lab.short());
        let found = runner.run(&runs(short), |run| {
            let tried = runtime.block_on(follow(&lab, &run, exact));
            tried.map_err(|why| TestCaseError::fail(why.to_string()))
        });
        match found {
            Ok(()) => Ok(()),
            Err(TestError::Fail(why, run)) => {
                Err(Failure::violated(format!("{why}, at the last of {run:#?}")))
            }
            Err(TestError::Abort(why)) => Err(Failure::violated(format!("no run: {why}"))),
        }
    });
    trying.await?
}

async fn follow(lab: &Lab, run: &[Step], exact: bool) -> Verdict {
    let mut oracle = Oracle::new(lab, exact)?;
    for step in run {
        oracle.take(step).await?;
    }
    Ok(())
}

/// A runner that tries the same runs for the same seed, and leaves nothing on disk.
fn runner(seed: u64) -> TestRunner {
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let mut bytes = [0; 32];
    for (part, chunk) in (0_u64..).zip(bytes.chunks_exact_mut(8)) {
        chunk.copy_from_slice(&(seed.wrapping_add(part)).to_le_bytes());
    }
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Random verbs of clients that run at once are linearizable.
pub(crate) async fn concurrent_histories_are_linearizable(lab: Lab) -> Verdict {
    are_linearizable(lab, false).await
}

/// They are, too, if calls fail and answers are lost.
// C103
pub(crate) async fn histories_with_lost_replies_are_linearizable(lab: Lab) -> Verdict {
    are_linearizable(lab, true).await
}

async fn are_linearizable(lab: Lab, faults: bool) -> Verdict {
    let plan = Plan { clients: 4, operations: 8, faults };
    let (histories, mut rng) = (if lab.has_virtual_clock() { 40 } else { 12 }, lab.rng());
    for number in 0..histories {
        let seen = history(&lab, &plan, &mut rng).await?;
        // Twice: what was asked from is as coarse as what was answered.
        explain(&seen, lab.tick() * 2).map_err(|why| {
            let text = describe(seen);
            Failure::violated(format!("history {number} is not linearizable ({why:?}):\n{text}"))
        })?;
    }
    Ok(())
}

fn describe(mut history: Vec<Operation>) -> String {
    history.sort_by_key(|operation| operation.sent);
    let lines: Vec<_> = history.iter().map(|operation| format!("    {operation:?}")).collect();
    lines.join("\n")
}
