//! The example, run as its user runs it, and what the front pages say of it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bad_input;
#[path = "../../examples/charge/main.rs"]
#[expect(dead_code, reason = "its `main` is called by nobody here")]
mod charge;
mod pages;
mod scenarios;
mod trace;

use std::path::PathBuf;

/// What the example prints, or how it fails.
fn charge(args: &[&str]) -> Result<String, String> {
    let mut out = Vec::new();
    let ended = charge::run(args.iter().map(Into::into), &mut out);
    let out = String::from_utf8(out).unwrap();
    match ended {
        Ok(()) => Ok(out),
        Err(error) => {
            assert_eq!(out, "", "an error is not for stdout");
            Err(error.to_string())
        }
    }
}

/// A file of this crate.
fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// A trace of these lines: where it is.
fn trace_of(name: &str, lines: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}
