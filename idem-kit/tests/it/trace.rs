//! What traces come to.

use serde_json::{Value, json};

use super::{charge, file, trace_of};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/charge/trace.jsonl");

/// What the trace comes to in every mode.
fn report(trace: &str) -> Value {
    let line = charge(&["--trace", trace, "--json"]).unwrap();
    assert_eq!(line.lines().count(), 1);
    serde_json::from_str(&line).unwrap()
}

/// Charges, duplicates and repeats known to the provider: without a store, with a cache, with idem.
fn charged(report: &Value) -> [[u64; 3]; 3] {
    ["no_store", "result_cache", "idem"].map(|mode| {
        ["charges", "duplicates", "known_by_key"].map(|total| report[mode][total].as_u64().unwrap())
    })
}

#[test]
fn the_shipped_trace_is_the_one_of_seed_1() {
    assert!(charge(&["--generate", "1"]).unwrap() == file("examples/charge/trace.jsonl"));
    assert_ne!(charge(&["--generate", "1"]), charge(&["--generate", "2"]));
}

#[test]
fn the_shipped_trace_comes_to_these_totals() {
    let expected = json!({
        "requests": 381,
        "no_store": {
            "answers": { "charged": 311, "declined": 29, "gave_up": 37, "worker_died": 4 },
            "replays": 0,
            "refusals": 0,
            "charges": 352,
            "duplicates": 121,
            "duplicates_prevented": 0,
            "known_by_key": 0,
        },
        "result_cache": {
            "answers": {
                "charged": 230, "replayed": 69, "declined": 29, "mismatch": 12, "gave_up": 37,
                "worker_died": 4,
            },
            "replays": 69,
            "refusals": 12,
            "charges": 287,
            "duplicates": 68,
            "duplicates_prevented": 53,
            "known_by_key": 0,
        },
        "idem": {
            "answers": {
                "charged": 182, "replayed": 94, "declined": 29, "in_progress": 23, "mismatch": 12,
                "gave_up": 37, "worker_died": 4,
            },
            "replays": 94,
            "refusals": 35,
            "charges": 219,
            "duplicates": 0,
            "duplicates_prevented": 121,
            "known_by_key": 4,
        },
    });
    assert_eq!(report(TRACE), expected);
}

// Whatever the trace: every client is counted once, and every request is charged once.
#[test]
fn other_traces_have_no_duplicates_either() {
    for seed in ["2", "18446744073709551615"] {
        let lines = charge(&["--generate", seed]).unwrap();
        let report = report(&trace_of(&format!("seed-{seed}.jsonl"), &lines));
        let [no_store, cache, idem] = charged(&report);
        assert!(no_store[1] > cache[1] && cache[1] > 0, "{report}");
        assert_eq!(idem[1], 0, "{report}");
        for mode in ["no_store", "result_cache", "idem"] {
            let answers = report[mode]["answers"].as_object().unwrap();
            let told: u64 = answers.values().map(|count| count.as_u64().unwrap()).sum();
            assert_eq!(told, report["requests"].as_u64().unwrap(), "{report}");
        }
        // Nothing is lost either: what is not charged is a duplicate, or was refused.
        let refused = report["idem"]["answers"]["mismatch"].as_u64().unwrap();
        assert_eq!(idem[0] + refused, no_store[0] - no_store[1], "{report}");
    }
}

// C7
#[test]
fn a_retry_in_flight_is_a_duplicate_without_a_reservation() {
    let trace = trace_of(
        "in-flight.jsonl",
        r#"{"at_ms":0,"operation":"pay","key":"k","payload":{"a":1,"b":2},"client_timeout_ms":40}
           {"at_ms":50,"operation":"pay","key":"k","payload":{"b":2,"a":1}}"#,
    );
    let report = report(&trace);
    assert_eq!(charged(&report), [[2, 1, 0], [2, 1, 0], [1, 0, 0]]);
    assert_eq!(report["idem"]["answers"], json!({ "gave_up": 1, "replayed": 1 }));
}

// C61, C63, C68
#[test]
fn a_key_is_unique_in_its_operation_and_tenant() {
    let trace = trace_of(
        "scopes.jsonl",
        r#"{"at_ms":0,"operation":"pay","key":"k","payload":1}
           {"at_ms":0,"operation":"renew","key":"k","payload":1}
           {"at_ms":0,"operation":"pay","tenant":"a","key":"k","payload":1}
           {"at_ms":0,"operation":"pay","tenant":"b","key":"k","payload":1}"#,
    );
    assert_eq!(charged(&report(&trace)), [[4, 0, 0]; 3]);
}

// C24, C33: until its lease has ended, the dead worker's key is in progress; then it is taken over.
#[test]
fn a_dead_worker_is_taken_over_and_the_provider_knows_the_key() {
    let trace = trace_of(
        "crash.jsonl",
        r#"{"at_ms":0,"operation":"pay","key":"k","payload":1,"crash":true}
           {"at_ms":1000,"operation":"pay","key":"k","payload":1}
           {"at_ms":29000,"operation":"pay","key":"k","payload":1}
           {"at_ms":40000,"operation":"pay","key":"k","payload":1}"#,
    );
    let report = report(&trace);
    assert_eq!(charged(&report), [[4, 3, 0], [2, 1, 0], [1, 0, 1]]);
    let answers = json!({ "worker_died": 1, "in_progress": 1, "charged": 1, "replayed": 1 });
    assert_eq!(report["idem"]["answers"], answers);
}
