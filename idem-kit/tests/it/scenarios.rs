//! What each scenario comes to, in real time.

use super::charge;

// C7: the first three lines. C27, C33: the dead worker.
#[test]
fn each_scenario_has_its_responses_and_its_charges() {
    is_as_expected("memory:");
}

#[cfg(feature = "redis")]
#[test]
fn on_redis_each_scenario_comes_to_the_same() {
    is_as_expected_on(idem_conformance::servers::redis());
}

#[cfg(feature = "postgres")]
#[test]
fn on_postgres_each_scenario_comes_to_the_same() {
    is_as_expected_on(idem_conformance::servers::postgres());
}

#[cfg(feature = "redis")]
#[test]
fn a_redis_that_is_not_there_is_an_error() {
    assert!(charge(&["--store", "redis://127.0.0.1:1/"]).is_err());
}

#[cfg(feature = "postgres")]
#[test]
fn a_postgres_that_is_not_there_is_an_error() {
    assert!(charge(&["--store", "postgres://postgres@127.0.0.1:1/postgres"]).is_err());
}

#[cfg(feature = "redis")]
#[test]
fn a_trace_and_a_store_of_another_clock_do_not_go_together() {
    let error = charge(&["--store", "redis://127.0.0.1:1/", "--trace", "none"]).unwrap_err();
    assert!(error.contains("virtual time"), "{error}");
}

/// Twice: the second run finds the first one's keys in the store.
#[cfg(any(feature = "redis", feature = "postgres"))]
fn is_as_expected_on(server: idem_conformance::servers::Setup) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(async { server.await.unwrap() });
    is_as_expected(server.url());
    is_as_expected(server.url());
}

fn is_as_expected(store: &str) {
    let expected = [
        r#"{"scenario":"in_flight_run","responses":["ch_1","ch_1"],"charges":["ch_1","ch_2"]}"#,
        r#"{"scenario":"in_flight_wait","responses":["ch_1","ch_1"],"charges":["ch_1"]}"#,
        r#"{"scenario":"in_flight_reject","responses":["ch_1","in_progress"],"charges":["ch_1"]}"#,
        r#"{"scenario":"key_reused","responses":["ch_1","mismatch"],"charges":["ch_1"]}"#,
        r#"{"scenario":"action_failed","responses":["action_failed","ch_1"],"charges":["ch_1"]}"#,
        r#"{"scenario":"dead_worker","responses":["ch_1"],"charges":["ch_1"]}"#,
        r#"{"scenario":"store_down_open","responses":["ch_1"],"charges":["ch_1"]}"#,
        r#"{"scenario":"store_down_closed","responses":["store_unavailable"],"charges":[]}"#,
    ];
    let lines = charge(&["--json", "--store", store]).unwrap();
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
}
