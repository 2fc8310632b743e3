//! One test per property.

use std::io::Write;
use std::sync::Arc;

use crate::catalogue::Property;
use crate::harness::Harness;
use crate::report::Outcome;
use crate::runner::{self, Options};

/// Makes one `#[test]` per property, each with a harness of its own.
///
/// The argument is an async expression, evaluated once per test, that gives the
/// [`Harness`](crate::Harness). The tests are grouped in modules by law, have the same names for
/// every store, and need no async runtime of yours. A property that cannot be shown writes
/// `skipped` and the reason to stderr, captured or not. With `no skips` after the harness it fails
/// instead, so that what was shown once is not lost unnoticed.
///
/// ```
/// # mod tests { use idem_conformance::wrong::Reference;
/// idem_conformance::suite!(async { Reference::right() }, no skips);
/// # }
/// ```
#[macro_export]
macro_rules! suite {
    ($harness:expr) => {
        $crate::for_each_property! { [$crate::suite] @tests (true, $harness) }
    };
    ($harness:expr, no skips) => {
        $crate::for_each_property! { [$crate::suite] @tests (false, $harness) }
    };
    (@tests ($may_skip:literal, $harness:expr) $($module:ident ($law:ident) {
        $($level:ident $name:ident [$($hook:ident)*];)+
    })+) => {$(
        mod $module {
            #[allow(unused_imports)]
            use super::*;

            $(#[test]
            fn $name() {
                $crate::__run_as_test(
                    concat!(stringify!($module), "::", stringify!($name)),
                    $may_skip,
                    || $harness,
                );
            })+
        }
    )+};
}

/// Tries one property for [`suite!`].
///
/// # Panics
/// If it is broken, or skipped and may not be: this is a test's body.
#[doc(hidden)]
#[expect(clippy::panic, reason = "how a test says that it failed")]
pub fn __run_as_test<H: Harness + 'static>(
    name: &str,
    may_skip: bool,
    harness: impl AsyncFnOnce() -> H,
) {
    let Some(property) = Property::named(name) else { panic!("no property is called {name}") };
    let options = Options::from_env().unwrap_or_else(|why| panic!("{why}"));
    let runtime = runner::runtime().unwrap_or_else(|why| panic!("no runtime: {why}"));
    let case = runtime.block_on(async {
        let harness = Arc::new(harness().await);
        runner::try_one(property, harness, &options).await
    });
    match case.outcome {
        Outcome::Passed => {}
        Outcome::Skipped(why) if !may_skip => panic!("{name} was skipped, {why}"),
        // Past the capture of the test runner: a skip that nobody sees is taken for a pass.
        Outcome::Skipped(why) => {
            // In one write, so that tests side by side do not cut it in two.
            let line = format!("test {name} ... skipped, {why}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        Outcome::Failed(what) => panic!(
            "{name} is broken\n  law: {} ({})\n  seen: {what}\n  again: {}={} cargo test {name}",
            property.law,
            property.law.sentence(),
            runner::SEED_VARIABLE,
            options.seed,
        ),
    }
}
