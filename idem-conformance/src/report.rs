//! What was shown.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::catalogue::Property;
use crate::failure::Skip;
use crate::law::Level;

/// What became of one property.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a reader must not take a new outcome for a pass")]
pub enum Outcome {
    /// It was shown.
    Passed,
    /// It is broken; this is what was seen.
    Failed(String),
    /// It could not be shown; this is why. Never a pass.
    Skipped(Skip),
}

/// One property, as it was tried.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// Which.
    pub property: &'static Property,
    /// What became of it.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// What a run has shown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The seed to repeat the run with.
    pub seed: u64,
    /// Every property that was tried.
    pub cases: Vec<Case>,
}

/// How many properties had which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Shown.
    pub passed: usize,
    /// Broken.
    pub failed: usize,
    /// Not shown.
    pub skipped: usize,
}

impl Report {
    /// Whether something was shown and nothing was broken. Says nothing of what was skipped.
    pub fn is_success(&self) -> bool {
        let Counts { passed, failed, .. } = self.counts();
        failed == 0 && passed > 0
    }

    /// The outcomes of all properties.
    pub fn counts(&self) -> Counts {
        count(self.cases.iter())
    }

    /// The outcomes of the properties of one level.
    pub fn counts_at(&self, level: Level) -> Counts {
        count(self.cases.iter().filter(|case| case.property.level == level))
    }

    /// The properties that are broken, and what was seen.
    pub fn failures(&self) -> impl Iterator<Item = (&'static Property, &str)> {
        self.cases.iter().filter_map(|case| match &case.outcome {
            Outcome::Failed(what) => Some((case.property, what.as_str())),
            _ => None,
        })
    }

    /// Writes one line of JSON per property, and one at the end with the suite's version and the
    /// counts.
    ///
    /// # Errors
    /// As `out` has them.
    pub fn write_json_lines(&self, mut out: impl Write) -> io::Result<()> {
        for case in &self.cases {
            serde_json::to_writer(&mut out, &Line::of(case, self.seed))?;
            out.write_all(b"\n")?;
        }
        serde_json::to_writer(&mut out, &Footer::of(self))?;
        out.write_all(b"\n")
    }
}

fn count<'a>(cases: impl Iterator<Item = &'a Case>) -> Counts {
    cases.fold(Counts::default(), |mut counts, case| {
        match case.outcome {
            Outcome::Passed => counts.passed += 1,
            Outcome::Failed(_) => counts.failed += 1,
            Outcome::Skipped(_) => counts.skipped += 1,
        }
        counts
    })
}

#[derive(Serialize)]
struct Line<'a> {
    property: &'a str,
    law: &'a str,
    level: Level,
    result: &'a str,
    seed: u64,
    ms: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl<'a> Line<'a> {
    fn of(case: &'a Case, seed: u64) -> Self {
        let (result, reason) = match &case.outcome {
            Outcome::Passed => ("pass", None),
            Outcome::Failed(what) => ("fail", Some(what.clone())),
            Outcome::Skipped(why) => ("skip", Some(why.to_string())),
        };
        let Property { name, law, level, .. } = case.property;
        let (law, ms) = (law.label(), case.took.as_millis());
        Self { property: name, law, level: *level, result, seed, ms, reason }
    }
}

#[derive(Serialize)]
struct Footer {
    suite: &'static str,
    version: &'static str,
    seed: u64,
    #[serde(flatten)]
    counts: Counts,
    levels: serde_json::Map<String, serde_json::Value>,
}

impl Footer {
    fn of(report: &Report) -> Self {
        let level = |level: Level| {
            let counts = serde_json::to_value(report.counts_at(level));
            (level.to_string(), counts.unwrap_or_default())
        };
        Self {
            suite: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            seed: report.seed,
            counts: report.counts(),
            levels: Level::ALL.into_iter().map(level).collect(),
        }
    }
}

/// What was shown at each level, what is broken, and what was skipped and why.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            match &case.outcome {
                Outcome::Passed => {}
                Outcome::Failed(what) => writeln!(f, "FAILED   {}: {what}", case.property.name)?,
                Outcome::Skipped(why) => writeln!(f, "skipped  {}: {why}", case.property.name)?,
            }
        }
        for level in Level::ALL {
            let Counts { passed, failed, skipped } = self.counts_at(level);
            let shown = match (passed, failed, skipped) {
                (0, 0, _) => "nothing shown",
                (_, 0, 0) => "all shown",
                (_, 0, _) => "shown in part",
                _ => "BROKEN",
            };
            writeln!(f, "{level:<8} {shown}: {passed} passed, {failed} failed, {skipped} skipped")?;
        }
        write!(f, "seed {}, {} {}", self.seed, env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }
}
