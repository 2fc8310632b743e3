//! What a report says, and that a skip is never a pass.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use idem_conformance::wrong::{Laws, Reference, all};
use idem_conformance::{Harness, Hook, Level, Options, Outcome, Property, Report, Skip, run_all};
use idem_core::Store;
use serde_json::Value;

/// A harness with nothing but a store, on a real clock.
struct Bare(Reference);

#[async_trait]
impl Harness for Bare {
    fn store(&self) -> Arc<dyn Store> {
        self.0.store()
    }
}

fn wrong(name: &str) -> &'static dyn Laws {
    all().into_iter().find(|laws| format!("{laws:?}") == name).unwrap()
}

fn lines(report: &Report) -> Vec<Value> {
    let mut out = Vec::new();
    report.write_json_lines(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_needs_a_missing_hook_is_skipped_and_nothing_else() {
    let mut options = Options::default();
    options.levels = vec![Level::Core, Level::Faults];
    let report = run_all(async || Bare(Reference::right()), &options).unwrap();
    for case in &report.cases {
        // The reference gives hints, harness or not.
        let missing: Vec<_> =
            case.property.needs.iter().filter(|hook| **hook != Hook::Watch).collect();
        let name = case.property.name;
        match &case.outcome {
            Outcome::Passed => assert!(missing.is_empty(), "{name} needs {missing:?}"),
            Outcome::Skipped(Skip::Missing(hook)) => {
                assert!(missing.contains(&hook), "{name} was skipped for {hook:?}");
            }
            // It would have come to its hook after a minute.
            Outcome::Skipped(_) => assert!(!missing.is_empty(), "{case:?}"),
            Outcome::Failed(what) => panic!("{name}: {what}"),
        }
    }
    assert!(report.counts().skipped > 0 && report.counts().passed > 0);
}

#[test]
fn what_would_sleep_too_long_is_skipped_with_the_reason() {
    let mut options = Options::default();
    options.filter = "retention_counts_from_completion".to_owned();
    let report = run_all(async || Bare(Reference::right()), &options).unwrap();
    let [case] = &*report.cases else { panic!("{report}") };
    assert!(matches!(case.outcome, Outcome::Skipped(Skip::Patience(_))), "{case:?}");
    assert!(!report.is_success(), "nothing was shown");
    let [line, footer] = &*lines(&report) else { panic!() };
    assert_eq!(line["result"], "skip");
    let Outcome::Skipped(why) = &case.outcome else { panic!("{case:?}") };
    assert_eq!(line["reason"], why.to_string());
    assert_eq!((&footer["passed"], &footer["skipped"]), (&Value::from(0), &Value::from(1)));
}

#[test]
fn report_names_what_is_broken_and_how_to_repeat_it() {
    let mut options = Options::default();
    options.seed = 42;
    options.filter = "payloads::".to_owned();
    let laws = wrong("ShowsPayloadToAnyone");
    let report = run_all(async || Reference::with(laws), &options).unwrap();
    let broken: Vec<_> = report.failures().map(|(property, _)| property.name).collect();
    assert_eq!(broken, ["payloads::mismatch_carries_no_payload"]);
    assert!(!report.is_success());
    let lines = lines(&report);
    let line = lines.iter().find(|line| line["result"] == "fail").unwrap();
    assert_eq!(line["property"], "payloads::mismatch_carries_no_payload");
    assert_eq!((&line["law"], &line["level"]), (&Value::from("payloads"), &Value::from("core")));
    assert_eq!(line["seed"], 42);
    assert_eq!(line["reason"], "another request was shown the payload");
    let footer = lines.last().unwrap();
    assert_eq!(footer["suite"], "idem-conformance");
    assert_eq!(footer["failed"], 1);
    assert_eq!(footer["levels"]["core"]["failed"], 1);
    assert!(report.to_string().contains("core     BROKEN"));
}

#[test]
fn levels_and_filter_choose_the_properties() {
    let mut options = Options::default();
    options.levels = vec![Level::Time];
    options.filter = "l5_".to_owned();
    let report = run_all(async || Reference::right(), &options).unwrap();
    assert!(!report.cases.is_empty());
    for case in &report.cases {
        assert!(case.property.name.starts_with("l5_") && case.property.level == Level::Time);
    }
}

#[test]
fn names_are_unique_and_found() {
    let names: HashSet<_> = Property::all().iter().map(|property| property.name).collect();
    assert_eq!(names.len(), Property::all().len());
    for name in names {
        assert_eq!(Property::named(name).unwrap().name, name);
    }
    assert!(Property::named("no::such_property").is_none());
}

#[test]
fn wrong_stores_have_names_of_their_own() {
    let names: HashSet<_> = all().into_iter().map(|laws| format!("{laws:?}")).collect();
    assert_eq!(names.len(), all().len());
}

#[test]
fn a_panic_of_the_store_is_a_failure() {
    /// A store that cannot be reached in the worst way.
    struct Panics;
    impl Harness for Panics {
        fn store(&self) -> Arc<dyn Store> {
            panic!("no store")
        }
    }
    let mut options = Options::default();
    options.filter = "l2_free::first_attempt".to_owned();
    let report = run_all(async || Panics, &options).unwrap();
    assert!(matches!(&report.cases[0].outcome, Outcome::Failed(why) if why.contains("panicked")));
}
