//! Shows which property catches which wrong store; fails if one gets away, or if the reference
//! is caught.
//!
//! `cargo run -p idem-conformance --features wrong-stores --example kill-matrix [seed]`

use std::process::ExitCode;

use idem_conformance::Options;
use idem_conformance::wrong::Matrix;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seed = match std::env::args().nth(1) {
        Some(seed) => seed.parse()?,
        None => Options::from_env()?.seed,
    };
    let matrix = Matrix::fill(seed, 4)?;
    println!("{matrix}\nseed {seed}");
    Ok(if matrix.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
