//! Order statistics of all pairs of samples, without the pairs: by halving the range of values and counting, with two fingers
//! over the ascending samples, how many pairs lie at or below its middle.
//!
//! A double has at most 2^64 values, so that 64 counts of n steps each find the very value that sorting all pairs would.

/// The difference of rank `rank` (from 0) of all `new[i] - base[j]`; both ascending. None of no such rank or where a sample or a
/// difference is not finite.
pub(crate) fn difference(new: &[f64], base: &[f64], rank: usize) -> Option<f64> {
    let (low, high) = (new.first()? - base.last()?, new.last()? - base.first()?);
    // As i grows, fewer samples of `base` are so small that the difference is above the value.
    let count_up_to = |value: f64| {
        let mut above = 0;
        let mut count = 0;
        for sample in new {
            while above < base.len() && sample - base[above] > value {
                above += 1;
            }
            count += base.len() - above;
        }
        count
    };
    select(low, high, rank, new.len() * base.len(), count_up_to)
}

/// The mean of rank `rank` (from 0) of the means of two of `values`, a value with itself included; ascending. None as for
/// [`difference`].
pub(crate) fn mean_of_two(values: &[f64], rank: usize) -> Option<f64> {
    let (low, high) = (*values.first()?, *values.last()?);
    let count_up_to = |value: f64| {
        let mut end = values.len();
        let mut count = 0;
        for (index, first) in values.iter().enumerate() {
            while end > index && f64::midpoint(*first, values[end - 1]) > value {
                end -= 1;
            }
            if end <= index {
                break;
            }
            count += end - index;
        }
        count
    };
    select(low, high, rank, values.len() * (values.len() + 1) / 2, count_up_to)
}

/// The least value in `low..=high` up to which there are more than `rank` of `total`.
fn select(low: f64, high: f64, rank: usize, total: usize, count_up_to: impl Fn(f64) -> usize) -> Option<f64> {
    if !low.is_finite() || !high.is_finite() || rank >= total {
        return None;
    }
    let (mut low, mut high) = (place(low), place(high));
    while low < high {
        let middle = low + (high - low) / 2;
        if count_up_to(value(middle)) > rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Both zeros are one value; the negative one comes first.
    Some(value(low) + 0.0)
}

const SIGN: u64 = 1 << 63;

/// The place of a number in the order of all doubles.
const fn place(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

const fn value(place: u64) -> f64 {
    f64::from_bits(if place & SIGN == 0 { !place } else { place & !SIGN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::sorted;
    use crate::random::Random;

    /// Samples with ties, both signs, and zeros, as printed times have them.
    fn samples(count: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        sorted(&(0..count).map(|_| (10.0 * random.normal()).round() / 10.0).collect::<Vec<_>>())
    }

    #[test]
    fn every_rank_is_that_of_the_sorted_pairs() {
        for (n, m, seed) in [(1, 1, 1), (1, 9, 2), (13, 7, 3), (40, 61, 4)] {
            let (new, base) = (samples(n, seed), samples(m, seed + 100));
            let pairs = new.iter().flat_map(|new| base.iter().map(move |base| new - base));
            for (rank, expected) in sorted(&pairs.collect::<Vec<_>>()).into_iter().enumerate() {
                assert_eq!(difference(&new, &base, rank), Some(expected), "{n} {m} {rank}");
            }
            assert_eq!(difference(&new, &base, n * m), None);
            let means = (0..n).flat_map(|i| (i..n).map(move |j| (i, j)));
            let means = means.map(|(i, j)| f64::midpoint(new[i], new[j])).collect::<Vec<_>>();
            for (rank, expected) in sorted(&means).into_iter().enumerate() {
                assert_eq!(mean_of_two(&new, rank), Some(expected), "{n} {rank}");
            }
            assert_eq!(mean_of_two(&new, n * (n + 1) / 2), None);
        }
    }

    #[test]
    fn what_is_not_finite_has_no_order() {
        assert_eq!(difference(&[1.0, f64::INFINITY], &[1.0], 0), None);
        assert_eq!(difference(&[f64::MAX], &[-f64::MAX], 0), None);
        assert_eq!(mean_of_two(&[f64::NEG_INFINITY, 1.0], 0), None);
        assert_eq!(difference(&[], &[1.0], 0), None);
    }
}
