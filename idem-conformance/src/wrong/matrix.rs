//! Which property catches which wrong store.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::catalogue::Property;
use crate::law::Level;
use crate::report::Report;
use crate::runner::{Options, runtime, try_one};
use crate::wrong::laws::{Laws, Right};
use crate::wrong::reference::Reference;
use crate::wrong::table::hold;

/// Which property catches which wrong store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Matrix {
    /// What the suite says of the reference. A suite that fails it is itself wrong.
    pub reference: Row,
    /// What the suite says of each wrong store.
    pub wrong: Vec<Row>,
}

/// What the suite says of one store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The store's name.
    pub store: String,
    /// The properties that it breaks.
    pub broken: Vec<&'static Property>,
    /// What was seen, first of all.
    pub seen: String,
    /// How many properties could not be shown.
    pub skipped: usize,
}

impl Matrix {
    /// Tries every property on the reference and on every wrong store, `threads` stores at once.
    ///
    /// # Errors
    /// If no runtime can be started.
    pub fn fill(seed: u64, threads: usize) -> io::Result<Self> {
        let stores = super::all();
        let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let work = || {
                while let Some((number, laws)) = take(&stores, &next) {
                    let row = row(laws, seed);
                    hold(&rows).push((number, row));
                }
            };
            for _ in 0..threads.max(1) {
                scope.spawn(work);
            }
        });
        let mut rows = rows.into_inner().unwrap_or_default();
        rows.sort_by_key(|(number, _)| *number);
        let wrong = rows.into_iter().map(|(_, row)| row).collect::<io::Result<_>>()?;
        Ok(Self { reference: row(&Right, seed)?, wrong })
    }

    /// The wrong stores that no property catches.
    pub fn survivors(&self) -> impl Iterator<Item = &Row> {
        self.wrong.iter().filter(|row| row.broken.is_empty())
    }

    /// Whether the reference breaks nothing and no wrong store survives.
    pub fn is_success(&self) -> bool {
        self.reference.broken.is_empty()
            && self.reference.skipped == 0
            && self.survivors().next().is_none()
    }

    /// Whether this property is the only one of its kind to catch some wrong store: the only one
    /// with a sentence, as the random runs say that something is wrong, but not what.
    pub fn is_only_one_to_catch(&self, property: &Property) -> bool {
        self.wrong.iter().any(|row| {
            let mut named = row.broken.iter().filter(|broken| broken.level != Level::History);
            named.next().is_some_and(|first| first.name == property.name) && named.next().is_none()
        })
    }
}

fn take(stores: &[&'static dyn Laws], next: &AtomicUsize) -> Option<(usize, &'static dyn Laws)> {
    let number = next.fetch_add(1, Ordering::SeqCst);
    stores.get(number).map(|laws| (number, *laws))
}

/// Tries every property at once: a store that hangs is then waited for once.
fn row(laws: &'static dyn Laws, seed: u64) -> io::Result<Row> {
    // Nothing here is far away: what has not come by then will not.
    let options = Options {
        seed,
        patience: Duration::ZERO,
        hint_within: Duration::from_secs(3),
        deadline: Duration::from_secs(10),
        ..Options::default()
    };
    let runtime = runtime()?;
    let trying = |property| {
        let (options, harness) = (options.clone(), Arc::new(Reference::with(laws)));
        runtime.spawn(async move { try_one(property, harness, &options).await })
    };
    let trying: Vec<_> = Property::all().iter().map(trying).collect();
    let cases = runtime.block_on(async {
        let mut cases = Vec::new();
        for case in trying {
            cases.extend(case.await);
        }
        cases
    });
    runtime.shutdown_background();
    let report = Report { seed, cases };
    let broken = report.failures().map(|(property, _)| property).collect();
    let seen = report.failures().next().map_or(String::new(), |(_, seen)| seen.to_owned());
    let skipped = Property::all().len() - report.counts().passed - report.counts().failed;
    Ok(Row { store: format!("{laws:?}"), broken, seen, skipped })
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in std::iter::once(&self.reference).chain(&self.wrong) {
            writeln!(f, "{row}")?;
        }
        let survivors: Vec<&str> = self.survivors().map(|row| row.store.as_str()).collect();
        write!(
            f,
            "{} wrong stores, {} properties; {} survive {survivors:?}",
            self.wrong.len(),
            Property::all().len(),
            survivors.len(),
        )
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<34} caught by {:>3}", self.store, self.broken.len())?;
        self.broken.iter().take(4).try_for_each(|broken| write!(f, "  {}", broken.name))?;
        if self.broken.len() > 4 { f.write_str("  …") } else { Ok(()) }
    }
}
