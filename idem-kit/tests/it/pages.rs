//! The front pages say what is so.

use super::{charge, file};

/// The first block of code in this language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("its end").0
}

#[test]
fn the_table_on_the_front_page_is_what_the_example_prints() {
    let printed = charge(&[]).unwrap();
    let table = format!("\n{}\n", block(&file("../README.md"), "text"));
    assert!(printed.starts_with(&table), "the front page has\n{table}and it prints\n{printed}");
}

#[test]
fn the_table_of_the_trace_is_what_the_example_prints() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/charge/trace.jsonl");
    let printed = charge(&["--trace", trace]).unwrap();
    let page = file("examples/charge/README.md");
    let table = block(&page, "text");
    assert!(printed.contains(table), "the page has\n{table}and it prints\n{printed}");
}

#[test]
fn both_quick_starts_are_the_same() {
    assert_eq!(block(&file("../README.md"), "rust"), block(&file("README.md"), "rust"));
}

#[test]
fn the_help_and_the_page_know_every_field_of_a_trace() {
    let help = charge(&["--help"]).unwrap();
    let page = file("examples/charge/README.md");
    let trace = super::trace_of("unknown-field.jsonl", r#"{"x":1}"#);
    // The parser lists them.
    let error = charge(&["--trace", &trace]).unwrap_err();
    let (_, fields) = error.split_once("expected one of ").unwrap();
    let fields: Vec<_> = fields.split(", ").map(|field| field.trim_matches('`')).collect();
    assert_eq!(fields.len(), 9, "{error}");
    for field in fields {
        assert!(help.contains(&format!("\n  {field} ")), "--help is silent on {field}");
        assert!(page.contains(&format!("\n| `{field}` |")), "the page is silent on {field}");
    }
}
