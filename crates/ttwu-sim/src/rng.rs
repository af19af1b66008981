//! The generator behind all draws: SplitMix64, whose whole state is one counter, so that a run is repeated from its seed.

/// A generator.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// One for this seed; `stream` tells generators of one scenario apart.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        Self(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// The next 64 bits.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, evenly but for 2⁻⁶⁴ (`bound` is not 0).
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn the_reference_sequence() {
        let mut rng = Rng::new(1_234_567, 0);
        assert_eq!([rng.next(), rng.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn below_stays_below() {
        let mut rng = Rng::new(1, 2);
        let mut seen = [0; 3];
        for _ in 0..3000 {
            seen[rng.below(3) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 900), "{seen:?}");
    }
}
