//! Ways of doing the same, measured in turns.

use std::error::Error;
use std::fmt;

use crate::options::Options;
use crate::report::{self, Line};

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Which way round a ratio is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Better {
    /// Cost of the contender ÷ cost of the baseline: below 1 is cheaper.
    Lower,
    /// Speed of the contender ÷ speed of the baseline: above 1 is faster.
    Higher,
}

/// Several ways of doing the same things, and what each costs beside the first.
///
/// They are measured in turns (A B C, A B C, …), so that whatever else the machine does meets
/// them alike, and a ratio is taken within each turn before the median of the ratios is. A first
/// turn warms up and does not count.
pub struct Comparison<'a, const N: usize> {
    title: String,
    unit: &'static str,
    better: Better,
    phases: [&'static str; N],
    ways: Vec<Way<'a, N>>,
}

struct Way<'a, const N: usize> {
    name: &'static str,
    targets: [Option<&'static str>; N],
    measure: Box<dyn FnMut() -> Result<[f64; N], BoxError> + 'a>,
}

impl<'a, const N: usize> Comparison<'a, N> {
    /// A comparison of the costs, in `unit`, of the `phases` of each way.
    pub fn new(
        title: impl Into<String>,
        unit: &'static str,
        better: Better,
        phases: [&'static str; N],
    ) -> Self {
        Self { title: title.into(), unit, better, phases, ways: Vec::new() }
    }

    /// Adds a way. The first one is the baseline. `measure` does it once, and says what each
    /// phase cost.
    pub fn way(
        self,
        name: &'static str,
        measure: impl FnMut() -> Result<[f64; N], BoxError> + 'a,
    ) -> Self {
        self.way_with_targets(name, [None; N], measure)
    }

    /// Adds a way that has targets, which are shown beside its ratios and not judged.
    pub fn way_with_targets(
        mut self,
        name: &'static str,
        targets: [Option<&'static str>; N],
        measure: impl FnMut() -> Result<[f64; N], BoxError> + 'a,
    ) -> Self {
        self.ways.push(Way { name, targets, measure: Box::new(measure) });
        self
    }

    /// Measures, and prints what came of it.
    ///
    /// # Errors
    /// The first error of a way.
    pub fn run(mut self, options: &Options) -> Result<(), BoxError> {
        if options.filter.as_ref().is_some_and(|part| !self.title.contains(part.as_str())) {
            return Ok(());
        }
        self.turn()?;
        let turns = (0..options.repetitions).map(|_| self.turn()).collect::<Result<Vec<_>, _>>()?;
        let lines: Vec<_> = self
            .phases
            .iter()
            .enumerate()
            .flat_map(|(phase, name)| self.lines(&turns, phase, name))
            .collect();
        report::print(&self.title, self.unit, &lines, options);
        Ok(())
    }

    fn turn(&mut self) -> Result<Vec<[f64; N]>, BoxError> {
        self.ways.iter_mut().map(|way| (way.measure)()).collect()
    }

    /// One phase of every way.
    fn lines(&self, turns: &[Vec<[f64; N]>], phase: usize, name: &'static str) -> Vec<Line> {
        let costs = |way: usize| -> Vec<f64> {
            turns.iter().filter_map(|turn| turn.get(way)?.get(phase).copied()).collect()
        };
        let baseline = costs(0);
        let line = |(at, way): (usize, &Way<'_, N>)| {
            let own = costs(at);
            let ratio = |(own, base): (&f64, &f64)| match self.better {
                Better::Lower => own / base,
                Better::Higher => base / own,
            };
            let ratios = own.iter().zip(&baseline).map(ratio).collect();
            let target = way.targets.get(phase).copied().flatten();
            let ratios = (at > 0).then_some(ratios);
            Line::new(name, way.name, own, ratios, target)
        };
        self.ways.iter().enumerate().map(line).collect()
    }
}

impl<const N: usize> fmt::Debug for Comparison<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways: Vec<_> = self.ways.iter().map(|way| way.name).collect();
        f.debug_struct("Comparison").field("title", &self.title).field("ways", &ways).finish()
    }
}
