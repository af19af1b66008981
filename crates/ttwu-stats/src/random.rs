//! The random numbers of resampling: xoshiro256** (Blackman and Vigna, public domain), seeded through splitmix64.
//!
//! Our own, because a result must be the same with every later version of a library. The sequence is part of the results:
//! changing it changes printed intervals.

/// A seeded sequence of random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        let state = std::array::from_fn(|_| {
            mixer = mixer.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = mixer;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self { state }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let c = c ^ a;
        let d = d ^ b;
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number in 0..1 (1 excluded), of 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number below `bound`, without bias (Lemire's method).
    ///
    /// # Panics
    ///
    /// When `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "a number below 0 was asked for");
        let bound = bound as u64;
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as usize;
            }
        }
    }

    /// A value of the standard normal distribution (polar method; the second value of a pair is thrown away).
    pub fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Puts `count` randomly chosen elements of `values` in front, each choice equally likely.
    pub fn choose_front(&mut self, values: &mut [f64], count: usize) {
        for index in 0..count.min(values.len()) {
            let other = index + self.below(values.len() - index);
            values.swap(index, other);
        }
    }

    /// Fills `out` with elements of `values` drawn with replacement.
    ///
    /// # Panics
    ///
    /// When `values` is empty and `out` is not.
    pub fn resample(&mut self, values: &[f64], out: &mut [f64]) {
        for slot in out {
            *slot = values[self.below(values.len())];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_does_not_change() {
        let mut random = Random::new(1);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [12_966_619_160_104_079_557, 9_600_361_134_598_540_522, 10_590_380_919_521_690_900]
        );
    }

    #[test]
    fn normal_values_have_mean_0_and_variance_1() {
        let mut random = Random::new(7);
        let values: Vec<f64> = (0..200_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.01, "{variance}");
    }
}
