//! Trying the properties.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::catalogue::Property;
use crate::failure::Failure;
use crate::harness::Harness;
use crate::lab::Lab;
use crate::law::Level;
use crate::report::{Case, Outcome, Report};

pub(crate) const SEED_VARIABLE: &str = "IDEM_CONFORMANCE_SEED";
const PATIENCE_VARIABLE: &str = "IDEM_CONFORMANCE_PATIENCE_SECS";

/// How the suite is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Decides everything random but the keys and ids. Random by default.
    pub seed: u64,
    /// Only properties with this in their name. Empty, so all, by default.
    pub filter: String,
    /// Only properties of these levels. All by default.
    pub levels: Vec<Level>,
    /// For how long a property may sleep at a time on a real clock. 2 seconds by default; what
    /// would sleep for longer is skipped.
    pub patience: Duration,
    /// How long a hint, or a subscription, may take before it counts as missing. 5 seconds by
    /// default.
    pub hint_within: Duration,
    /// How long one property may take before it counts as broken, beside four times the patience.
    /// 2 minutes by default.
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // 53 bits, so that any reader of the report's JSON gives the same number back.
            seed: fastrand::u64(..1 << 53),
            filter: String::new(),
            levels: Level::ALL.to_vec(),
            patience: Duration::from_secs(2),
            hint_within: Duration::from_secs(5),
            deadline: Duration::from_mins(2),
        }
    }
}

/// Why the environment gives no options.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{variable} is not a number: {given:?}")]
pub struct OptionsError {
    variable: &'static str,
    given: String,
}

impl Options {
    /// The defaults, with what the environment says: `IDEM_CONFORMANCE_SEED`, a number to repeat
    /// a run with, and `IDEM_CONFORMANCE_PATIENCE_SECS`, how long to really sleep.
    ///
    /// # Errors
    /// If a variable is there and is not a whole number.
    pub fn from_env() -> Result<Self, OptionsError> {
        let mut options = Self::default();
        if let Some(seed) = number(SEED_VARIABLE)? {
            options.seed = seed;
        }
        if let Some(seconds) = number(PATIENCE_VARIABLE)? {
            options.patience = Duration::from_secs(seconds);
        }
        Ok(options)
    }

    fn includes(&self, property: &Property) -> bool {
        self.levels.contains(&property.level) && property.name.contains(&self.filter)
    }

    /// A seed of its own for each property, so that a property tried alone is tried alike.
    fn seed_for(&self, property: &Property) -> u64 {
        property.name.bytes().fold(self.seed, |seed, byte| {
            (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
        })
    }
}

fn number<T: FromStr>(variable: &'static str) -> Result<Option<T>, OptionsError> {
    let Some(given) = std::env::var_os(variable) else { return Ok(None) };
    let given = given.to_string_lossy().into_owned();
    given.parse().map(Some).map_err(|_| OptionsError { variable, given })
}

/// Tries every property that the options include, one after the other, each with a harness of
/// its own, and reports what was shown.
///
/// For callers without a test runner; [`suite!`](crate::suite) is for those with one. Blocks, on
/// a runtime of its own: do not call it from async code.
///
/// # Errors
/// If no runtime can be started.
pub fn run_all<H: Harness + 'static>(
    harness: impl AsyncFn() -> H,
    options: &Options,
) -> io::Result<Report> {
    let runtime = runtime()?;
    let cases = runtime.block_on(async {
        let mut cases = Vec::new();
        for property in Property::all().iter().filter(|property| options.includes(property)) {
            let harness = Arc::new(harness().await);
            cases.push(try_one(property, harness, options).await);
        }
        cases
    });
    // What a hanging store left behind is not waited for.
    runtime.shutdown_background();
    Ok(Report { seed: options.seed, cases })
}

pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()
}

/// Tries one property in a task of its own, so that a panic of the store is a failure like any
/// other.
pub(crate) async fn try_one(
    property: &'static Property,
    harness: Arc<dyn Harness>,
    options: &Options,
) -> Case {
    let lab = Lab::new(harness, options, options.seed_for(property));
    let began = Instant::now();
    let deadline = options.deadline + options.patience * 4;
    let mut running = tokio::spawn((property.run)(lab));
    let verdict = if let Ok(finished) = timeout(deadline, &mut running).await {
        finished.unwrap_or_else(|panicked| Err(panicked.into()))
    } else {
        running.abort();
        Err(Failure::Violated(format!("it did not finish within {deadline:?}")))
    };
    let outcome = match verdict {
        Ok(()) => Outcome::Passed,
        Err(Failure::Violated(what)) => Outcome::Failed(what),
        Err(Failure::Skipped(why)) => Outcome::Skipped(why),
    };
    Case { property, outcome, took: began.elapsed() }
}
