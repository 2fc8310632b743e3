//! Scenarios on paper: two tables, or a line of JSON each.

use std::error::Error;
use std::io::{self, Write};

use super::super::table::{Align, Table};
use super::Scenario;

const IN_FLIGHT: &str = "
One key, two requests, two processes (two coordinators over one store).
The provider needs 300 ms, and the retry arrives after 50 ms.

";

const OTHERS: &str = "
What else becomes of a key:

";

pub(super) struct Report<'a> {
    pub(super) json: bool,
    pub(super) out: &'a mut dyn Write,
}

impl Report<'_> {
    pub(super) fn in_flight(&mut self, scenarios: &[Scenario]) -> Result<(), Box<dyn Error>> {
        self.write(
            IN_FLIGHT,
            ["in flight", "responses", "charges", "the card is charged"],
            scenarios,
        )
    }

    pub(super) fn others(&mut self, scenarios: &[Scenario]) -> Result<(), Box<dyn Error>> {
        self.write(OTHERS, ["scenario", "responses", "charges", "what was seen"], scenarios)
    }

    fn write(
        &mut self,
        heading: &str,
        header: [&str; 4],
        scenarios: &[Scenario],
    ) -> Result<(), Box<dyn Error>> {
        if self.json {
            for scenario in scenarios {
                writeln!(self.out, "{}", serde_json::to_string(scenario)?)?;
            }
            return Ok(());
        }
        self.out.write_all(heading.as_bytes())?;
        Ok(self.table(header, scenarios)?)
    }

    fn table(&mut self, header: [&str; 4], scenarios: &[Scenario]) -> io::Result<()> {
        let mut table = Table::new([Align::Left; 4], header);
        for Scenario { title, responses, charges, note, .. } in scenarios {
            let charges = if charges.is_empty() { "none".into() } else { charges.join(", ") };
            table.row([(*title).to_owned(), responses.join(", "), charges, note.clone()]);
        }
        table.write(self.out)
    }
}
