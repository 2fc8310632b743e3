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
use crate::wrong::reasons::reason_to_exist;
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

    /// Whether the reference breaks nothing, no wrong store survives and no property is idle.
    pub fn is_success(&self) -> bool {
        self.reference.broken.is_empty()
            && self.reference.skipped == 0
            && self.survivors().next().is_none()
            && self.idle().next().is_none()
    }

    /// Whether some wrong store is caught by this property and by no other that asks for as
    /// little: whose level is no higher, and which needs no other hook.
    ///
    /// Random runs and races do not count as others. They catch by chance, and random runs do not
    /// say what is wrong.
    pub fn is_needed(&self, property: &Property) -> bool {
        let asks_as_little = |other: &Property| {
            let by_chance = other.level == Level::History || other.name.starts_with("races::");
            let same = other.name == property.name;
            (same || !by_chance)
                && other.level <= property.level
                && other.needs.iter().all(|hook| property.needs.contains(hook))
        };
        self.wrong.iter().any(|row| {
            let mut caught = row.broken.iter().filter(|other| asks_as_little(other));
            caught.next().is_some_and(|first| first.name == property.name)
                && caught.next().is_none()
        })
    }

    /// The properties that nothing speaks for: no wrong store needs them, and there is no
    /// [reason](reason_to_exist) either.
    pub fn idle(&self) -> impl Iterator<Item = &'static Property> {
        let speaks_for = |property: &&Property| {
            self.is_needed(property)
                || (self.catches_something(property) && reason_to_exist(property.name).is_some())
        };
        Property::all().iter().filter(move |property| !speaks_for(property))
    }

    /// Whether this property catches any wrong store.
    pub fn catches_something(&self, property: &Property) -> bool {
        let same = |broken: &Property| broken.name == property.name;
        self.wrong.iter().any(|row| row.broken.iter().copied().any(same))
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
    let skipped = Property::all().len() - report.counts().passed - report.counts().failed;
    Ok(Row { store: format!("{laws:?}"), broken, skipped })
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in std::iter::once(&self.reference).chain(&self.wrong) {
            writeln!(f, "{row}")?;
        }
        let survivors: Vec<&str> = self.survivors().map(|row| row.store.as_str()).collect();
        let idle: Vec<&str> = self.idle().map(|property| property.name).collect();
        write!(
            f,
            "{} wrong stores, {} properties; {} survive {survivors:?}; {} idle {idle:?}",
            self.wrong.len(),
            Property::all().len(),
            survivors.len(),
            idle.len(),
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
