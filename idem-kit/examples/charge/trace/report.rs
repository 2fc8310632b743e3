//! What a trace came to, on paper.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::super::table::{Align, Table};
use super::answer::Answer;
use super::replay::Tally;

const EXPLANATION: &str = "
A duplicate is a charge for what was charged before: the same tenant, operation, key and payload.
Prevented are the duplicates of \"no store\", less those that were made all the same.
";

/// One trace, run three times.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) requests: usize,
    pub(super) no_store: Tally,
    pub(super) result_cache: Tally,
    pub(super) idem: Tally,
}

#[derive(Serialize)]
struct Line {
    requests: usize,
    no_store: Totals,
    result_cache: Totals,
    idem: Totals,
}

#[derive(Serialize)]
struct Totals {
    answers: BTreeMap<&'static str, usize>,
    replays: usize,
    refusals: usize,
    charges: usize,
    duplicates: usize,
    /// Fewer than none, if a mode makes more than no store does.
    duplicates_prevented: i64,
    known_by_key: usize,
}

impl Report {
    pub(super) fn write_json(&self, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
        let line = Line {
            requests: self.requests,
            no_store: self.totals(&self.no_store),
            result_cache: self.totals(&self.result_cache),
            idem: self.totals(&self.idem),
        };
        Ok(writeln!(out, "{}", serde_json::to_string(&line)?)?)
    }

    pub(super) fn write_table(&self, file: &Path, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{}, {} requests, in virtual time:\n", file.display(), self.requests)?;
        let mut table = Table::new(
            [Align::Left, Align::Right, Align::Right, Align::Right],
            ["", "no store", "result cache", "idem"],
        );
        for answer in self.answers() {
            self.row(&mut table, &format!("answer: {answer}"), |tally| {
                tally.answers.get(answer).copied().unwrap_or(0)
            });
        }
        self.row(&mut table, "charges", |tally| tally.charges);
        self.row(&mut table, "repeats the provider knew by the key", |tally| tally.known_by_key);
        self.row(&mut table, "DUPLICATE CHARGES", |tally| tally.duplicates);
        self.row(&mut table, "duplicates prevented", |tally| self.prevented(tally));
        table.write(out)?;
        out.write_all(EXPLANATION.as_bytes())
    }

    fn row<T: ToString>(&self, table: &mut Table<4>, name: &str, of: impl Fn(&Tally) -> T) {
        let [a, b, c] = self.modes().map(|tally| of(tally).to_string());
        table.row([name.to_owned(), a, b, c]);
    }

    fn totals(&self, tally: &Tally) -> Totals {
        let Tally { answers, charges, duplicates, known_by_key } = tally;
        let refusals = answers.iter().filter(|(answer, _)| matches!(answer, Answer::Refused(_)));
        Totals {
            answers: answers.iter().map(|(answer, count)| (answer.code(), *count)).collect(),
            replays: answers.get(&Answer::Replayed).copied().unwrap_or(0),
            refusals: refusals.map(|(_, count)| count).sum(),
            charges: *charges,
            duplicates: *duplicates,
            duplicates_prevented: self.prevented(tally),
            known_by_key: *known_by_key,
        }
    }

    fn prevented(&self, tally: &Tally) -> i64 {
        let count = |duplicates| i64::try_from(duplicates).unwrap_or(i64::MAX);
        count(self.no_store.duplicates) - count(tally.duplicates)
    }

    fn modes(&self) -> [&Tally; 3] {
        [&self.no_store, &self.result_cache, &self.idem]
    }

    /// Every answer that was given in some mode.
    fn answers(&self) -> BTreeSet<&Answer> {
        self.modes().into_iter().flat_map(|tally| tally.answers.keys()).collect()
    }
}
