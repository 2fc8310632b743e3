//! What the command line asks for.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

use super::backend::Backend;

pub(crate) const HELP: &str = "\
The retry that arrives while the first request is still running, and what becomes of it.

Usage: cargo run --example charge -- [OPTIONS]

  --store URL      where keys are kept: `memory:` (default), `redis://…` (with --features redis)
                   or `postgres://…` (with --features postgres)
  --json           print one JSON line per scenario, or per trace, and nothing else
  --trace FILE     run a recorded trace, in virtual time, instead of the scenarios
  --generate SEED  print a made-up trace, the same for the same number, and end
  -h, --help       print this

A trace has one request per line, in the order of their time. Try it with
idem-kit/examples/charge/trace.jsonl; the README beside it says what the report means.

  {\"at_ms\":0,\"operation\":\"payment.charge\",\"key\":\"k-1\",\"payload\":{\"amount\":1999}}

  at_ms              when the request arrives, in ms from the start of the trace
  operation          what the key is unique in
  key                the idempotency key, 1 to 255 characters
  payload            what is asked for: any JSON
  tenant             whose key it is (optional)
  takes_ms           how long the provider takes to answer (default 300)
  client_timeout_ms  when the client gives up (default: never)
  fails              the provider declines, for this reason (optional)
  crash              true: the worker dies once the provider has charged
";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Scenarios { backend: Backend, json: bool },
    Trace { file: PathBuf, backend: Backend, json: bool },
    Generate { seed: u64 },
}

pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, lexopt::Error> {
    let mut backend = None;
    let mut json = false;
    let mut file = None;
    let mut seed = None;
    let mut parser = Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Long("store") => backend = Some(Backend::from_url(&parser.value()?.string()?)?),
            Arg::Long("json") => json = true,
            Arg::Long("trace") => file = Some(PathBuf::from(parser.value()?)),
            Arg::Long("generate") => seed = Some(parser.value()?.parse()?),
            other => return Err(other.unexpected()),
        }
    }
    match (seed, file) {
        (Some(seed), None) if backend.is_none() && !json => Ok(Command::Generate { seed }),
        (Some(_), _) => Err("--generate goes with no other option".into()),
        (None, Some(file)) => {
            Ok(Command::Trace { file, backend: backend.unwrap_or_default(), json })
        }
        (None, None) => Ok(Command::Scenarios { backend: backend.unwrap_or_default(), json }),
    }
}
