//! The example of a third party's store keeps every law that can be shown on a real clock.

#[path = "../../examples/file_store.rs"]
#[allow(dead_code)]
mod example;

idem_conformance::suite!(async { example::FileHarness::new().unwrap() });
