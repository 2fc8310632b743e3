//! Aligned columns.

use std::io::{self, Write};

/// Which side the cells of a column stick to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of as many cells as there are columns.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    align: [Align; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(align: [Align; N], header: [&str; N]) -> Self {
        Self { align, rows: vec![header.map(str::to_owned)] }
    }

    pub(crate) fn row(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(String::len).max().unwrap_or(0)
        });
        for (number, row) in self.rows.iter().enumerate() {
            if number == 1 {
                self.write_row(&widths.map(|width| "-".repeat(width)), &widths, out)?;
            }
            self.write_row(row, &widths, out)?;
        }
        Ok(())
    }

    fn write_row(
        &self,
        row: &[String; N],
        widths: &[usize; N],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut line = String::new();
        for ((cell, &width), align) in row.iter().zip(widths).zip(self.align) {
            let padding = " ".repeat(width - cell.len());
            match align {
                Align::Left => line.extend(["  ", cell, &padding]),
                Align::Right => line.extend(["  ", &padding, cell]),
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}
