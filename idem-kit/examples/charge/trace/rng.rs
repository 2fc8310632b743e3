//! Random numbers that are the same for ever.

use std::ops::RangeInclusive;

/// `SplitMix64` (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014).
///
/// Written out rather than taken from a crate, whose next version may give other numbers: a seed
/// must give the same trace for ever.
#[derive(Debug)]
pub(super) struct Rng(pub(super) u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of the range. Not quite evenly: nobody bets on a trace.
    pub(super) fn within(&mut self, range: RangeInclusive<u32>) -> u32 {
        let (least, most) = (*range.start(), *range.end());
        let span = u64::from(most - least) + 1;
        least + u32::try_from(self.next() % span).unwrap_or(0)
    }
}
