//! The random runs find what the named properties find.

use idem_conformance::wrong::{Reference, all};
use idem_conformance::{Level, Options, run_all};

fn caught(store: &str) -> bool {
    let laws = all().into_iter().find(|laws| format!("{laws:?}") == store).unwrap();
    let mut options = Options::default();
    options.seed = 3;
    options.levels = vec![Level::History];
    let report = run_all(async || Reference::with(laws), &options).unwrap();
    report.failures().next().is_some()
}

#[test]
fn random_runs_alone_catch_one_defect_of_each_law() {
    for store in [
        "RepeatedReserveCounts",
        "HeldKeyIsTaken",
        "ReleaseForgetsTheFence",
        "CompletedByAnyone",
        "EndedLeaseCannotComplete",
        "SecondCompletionReplaces",
        "LeaseEndsEarly",
        "LostReplyIsNotApplied",
    ] {
        assert!(caught(store), "{store} got away");
    }
}

#[test]
fn histories_find_verbs_that_are_not_one_step() {
    for store in ["Torn(Reserve)", "ReadsFromAReplica"] {
        assert!(caught(store), "{store} got away");
    }
}
