//! The retry that arrives while the first request is still running, and what becomes of it.
//!
//! `cargo run --example charge` prints the table; `--help` says what else there is.

mod args;
pub(crate) mod backend;
mod payment;
mod provider;
mod scenario;
mod table;
mod trace;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use args::Command;

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1), &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("charge: {error}");
            if error.is::<lexopt::Error>() {
                eprintln!("Try --help.");
            }
            ExitCode::FAILURE
        }
    }
}

/// Does what the arguments say, and writes to `out` alone.
pub(crate) fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    match args::parse(args)? {
        Command::Help => Ok(out.write_all(args::HELP.as_bytes())?),
        Command::Generate { seed } => Ok(trace::generate(seed, out)?),
        Command::Scenarios { backend, json } => scenario::run(&backend, json, out),
        Command::Trace { file, backend, json } => trace::run(&file, &backend, json, out),
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
