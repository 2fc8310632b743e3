//! The reference store keeps every law, again and again.

use idem_conformance::wrong::Reference;
use idem_conformance::{Level, Options, run_all};

idem_conformance::suite!(async { Reference::right() }, no skips);

#[test]
fn reference_passes_twenty_runs_without_a_flake() {
    for seed in 0..20 {
        let mut options = Options::default();
        options.seed = seed;
        let report = run_all(async || Reference::right(), &options).unwrap();
        assert!(report.is_success(), "seed {seed}:\n{report}");
        assert_eq!(report.counts().skipped, 0, "seed {seed}:\n{report}");
        assert!(Level::ALL.iter().all(|level| report.counts_at(*level).passed > 0));
    }
}
