//! A recorded trace of requests, run without a store, with a result cache, and with `idem`.

mod answer;
mod generate;
mod replay;
mod report;
mod request;
mod rng;
mod service;

use std::error::Error;
use std::io::Write;
use std::path::Path;

pub(crate) use self::generate::generate;

use self::replay::{Tally, replay};
use self::report::Report;
use self::service::Mode;
use super::backend::Backend;

/// Runs a trace in every mode, and reports what each came to.
pub(crate) fn run(
    file: &Path,
    backend: &Backend,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    if !backend.follows_virtual_time() {
        return Err("a trace runs in virtual time, which only `--store memory:` follows".into());
    }
    let requests = request::read(file)?;
    let in_mode = |mode| -> Result<Tally, Box<dyn Error>> {
        // Virtual time: it jumps to the next timer whenever there is nothing else to do.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        runtime.block_on(replay(&requests, mode, backend))
    };
    let report = Report {
        requests: requests.len(),
        no_store: in_mode(Mode::NoStore)?,
        result_cache: in_mode(Mode::ResultCache)?,
        idem: in_mode(Mode::Idem)?,
    };
    if json { report.write_json(out) } else { Ok(report.write_table(file, out)?) }
}
