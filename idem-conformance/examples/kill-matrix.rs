//! Shows which property catches which wrong store; fails if one gets away, or if the reference
//! is caught.
//!
//! `cargo run -p idem-conformance --features wrong-stores --example kill-matrix [seed]`
//!
//! Without a seed it is always the same run, so that the verdict on a change is no matter of luck.

use std::process::ExitCode;

use idem_conformance::wrong::Matrix;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seed = match std::env::args().nth(1) {
        Some(seed) => seed.parse()?,
        None => 1,
    };
    let matrix = Matrix::fill(seed, 4)?;
    println!("{matrix}\nseed {seed}");
    Ok(if matrix.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
