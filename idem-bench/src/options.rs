//! What the command line asks for.

use std::process::exit;

const USAGE: &str = "usage: cargo bench -p idem-bench [--bench NAME] -- [--quick] [--json] \
                     [--repetitions N] [PART OF A TITLE]";

/// How a benchmark is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How often each contender is measured.
    pub repetitions: usize,
    /// Fewer operations, to see that everything works. Its figures mean little.
    pub quick: bool,
    /// One JSON object per line instead of a table.
    pub json: bool,
    /// Only comparisons with this in their title.
    pub filter: Option<String>,
}

impl Options {
    /// The options of this process. An argument that is none of them ends it with status 2.
    ///
    /// Without `--bench`, which `cargo bench` passes, it is `cargo test` that runs the benchmark,
    /// to see that it works: one quick repetition.
    pub fn from_args() -> Self {
        let mut options = Self { repetitions: 7, quick: false, json: false, filter: None };
        let mut benched = false;
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bench" => benched = true,
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--repetitions" => match args.next().and_then(|given| given.parse().ok()) {
                    Some(given) if given > 0 => options.repetitions = given,
                    _ => refuse("--repetitions needs a number above 0"),
                },
                text if !text.starts_with('-') => options.filter = Some(arg),
                unknown => refuse(&format!("unknown option {unknown}")),
            }
        }
        if !benched {
            (options.quick, options.repetitions) = (true, 1);
        }
        options
    }

    /// `full`, or `quick` of them.
    pub fn count(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }
}

fn refuse(why: &str) -> ! {
    eprintln!("{why}\n{USAGE}");
    exit(2)
}
