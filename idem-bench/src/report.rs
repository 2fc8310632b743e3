//! What was measured, as a table or as JSON lines.

use serde::Serialize;

use crate::options::Options;

/// A median and what it is the median of.
#[derive(Clone, Copy, Debug, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// `None` of nothing.
    fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let median = *samples.get(samples.len() / 2)?;
        Some(Self { median, min: *samples.first()?, max: *samples.last()? })
    }
}

/// One phase of one way.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    phase: &'static str,
    way: &'static str,
    cost: Option<Spread>,
    ratio: Option<Spread>,
    target: Option<&'static str>,
}

impl Line {
    pub(crate) fn new(
        phase: &'static str,
        way: &'static str,
        costs: Vec<f64>,
        ratios: Option<Vec<f64>>,
        target: Option<&'static str>,
    ) -> Self {
        Self { phase, way, cost: Spread::of(costs), ratio: ratios.and_then(Spread::of), target }
    }
}

#[derive(Serialize)]
struct JsonLine<'a> {
    title: &'a str,
    unit: &'a str,
    repetitions: usize,
    #[serde(flatten)]
    line: &'a Line,
}

pub(crate) fn print(title: &str, unit: &str, lines: &[Line], options: &Options) {
    let repetitions = options.repetitions;
    if options.json {
        for line in lines {
            match serde_json::to_string(&JsonLine { title, unit, repetitions, line }) {
                Ok(json) => println!("{json}"),
                Err(error) => eprintln!("{title}: {error}"),
            }
        }
        return;
    }
    println!("\n{title} ({unit}, median of {repetitions})");
    println!("  {:<10} {:<28} {:>9}  {:>6}  {:<15} target", "", "", unit, "ratio", "min to max");
    for line in lines {
        println!("{}", row(line));
    }
}

fn row(line: &Line) -> String {
    let Line { phase, way, cost, ratio, target } = line;
    let cost = cost.map_or_else(String::new, |cost| digits(cost.median));
    let (median, spread) = ratio.map_or_else(Default::default, |ratio| {
        (format!("{:.3}", ratio.median), format!("{:.3} to {:.3}", ratio.min, ratio.max))
    });
    let target = target.unwrap_or_default();
    let row = format!("  {phase:<10} {way:<28} {cost:>9}  {median:>6}  {spread:<15} {target}");
    row.trim_end().to_owned()
}

/// Three digits that mean something.
fn digits(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_median_between_its_ends() {
        let spread = Spread::of(vec![3.0, 9.0, 1.0, 2.0, 4.0]).unwrap();
        assert_eq!([spread.min, spread.median, spread.max].map(digits), ["1.00", "3.00", "9.00"]);
        assert!(Spread::of(Vec::new()).is_none());
    }
}
