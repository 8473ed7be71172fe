//! Numbers that look random and are the same in every run of a seed.

use std::ops::RangeInclusive;
use std::time::Duration;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Another stream, so that the draws of one part of a run do not change another part.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub(crate) fn ms(&mut self, range: RangeInclusive<u64>) -> Duration {
        let (from, to) = (*range.start(), *range.end());
        Duration::from_millis(from + self.below(to - from + 1))
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.below(u64::try_from(from.len()).unwrap_or(1));
        from[usize::try_from(at).unwrap_or(0)]
    }
}
