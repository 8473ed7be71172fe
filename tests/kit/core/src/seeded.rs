//! Random choices that a seed reproduces.

use std::time::Duration;

/// The generator of Steele, Lea and Flood (SplitMix64).
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// The choices of one seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.any() % end).unwrap_or(0)
    }

    /// True in this many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.any() % 100 < percent
    }

    /// A time of at least `from` and less than `to` milliseconds. Short times come more often.
    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        let span = (to - from).max(1);
        Duration::from_millis(from + (self.any() % span).min(self.any() % span))
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// All of several, in random order.
    pub fn shuffled<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let mut left = of.to_vec();
        let mut shuffled = Vec::with_capacity(left.len());
        while !left.is_empty() {
            shuffled.push(left.swap_remove(self.below(left.len())));
        }
        shuffled
    }
}
