//! What each scenario comes to, in real time.

use super::charge;

// C7: the first three lines. C27, C33: the dead worker.
#[test]
fn each_scenario_has_its_responses_and_its_charges() {
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
    let lines = charge(&["--json", "--store", "memory:"]).unwrap();
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
}
