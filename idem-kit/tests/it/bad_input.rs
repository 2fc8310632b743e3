//! What is wrong is said, and where.

use super::charge::backend::STORES;
use super::{charge, trace_of};

const GOOD: &str = r#"{"at_ms":50,"operation":"pay","key":"k","payload":1}"#;

#[test]
fn bad_arguments_are_refused() {
    for (args, why) in [
        (&["--jsn"][..], "invalid option '--jsn'"),
        (&["x"], "unexpected argument \"x\""),
        (&["--json=yes"], "unexpected argument for option '--json': \"yes\""),
        (&["--trace"], "missing argument for option '--trace'"),
        (&["--generate", "x"], "cannot parse argument \"x\": invalid digit found in string"),
        (&["--generate", "1", "--json"], "--generate goes with no other option"),
        (&["--generate", "1", "--trace", "f"], "--generate goes with no other option"),
    ] {
        assert_eq!(charge(args), Err(why.to_owned()), "{args:?}");
    }
}

#[test]
fn a_store_that_is_not_there_is_refused_by_name() {
    for url in ["reddis://localhost", "mysql://localhost/db", "memory", ""] {
        let why = format!("no store for {url:?}: this build has {}", STORES.join(", "));
        assert_eq!(charge(&["--store", url]), Err(why));
    }
}

#[test]
fn a_trace_that_cannot_be_read_is_refused_by_name() {
    let error = charge(&["--trace", "no/such.jsonl"]).unwrap_err();
    assert!(error.starts_with("no/such.jsonl: "), "{error}");
    let empty = trace_of("empty.jsonl", "");
    assert_eq!(charge(&["--trace", &empty]), Err(format!("{empty}: there is no request in it")));
}

#[test]
fn a_bad_line_is_refused_with_its_number() {
    let long = "k".repeat(256);
    for (name, line, why) in [
        ("text", "pay!", "column 1: expected value"),
        ("blank", "", "column 0: EOF while parsing a value"),
        ("cut", r#"{"at_ms":60,"#, "column 12: EOF while parsing a value"),
        (
            "no-key",
            r#"{"at_ms":60,"operation":"pay","payload":1}"#,
            "column 42: missing field `key`",
        ),
        ("negative", r#"{"at_ms":-1}"#, "column 11: invalid value: integer `-1`, expected u32"),
        ("early", &GOOD.replace("50", "49"), "`at_ms` 49 is before that of the line above, 50"),
        (
            "empty-key",
            &GOOD.replace("\"k\"", "\"\""),
            "the idempotency key is empty; it must have 1 to 255 characters",
        ),
        (
            "long-key",
            &GOOD.replace("\"k\"", &format!("{long:?}")),
            "the idempotency key is too long; it must have 1 to 255 characters",
        ),
        (
            "crash-and-fail",
            &GOOD.replace('}', r#","crash":true,"fails":"x"}"#),
            "`crash` goes neither with `fails` nor with `client_timeout_ms`",
        ),
    ] {
        let trace = trace_of(&format!("bad-{name}.jsonl"), &format!("{GOOD}\n{line}\n{GOOD}\n"));
        assert_eq!(charge(&["--trace", &trace]), Err(format!("{trace}, line 2: {why}")));
    }
}
