//! Effects with 95 % intervals: the ratio of means, the Hodges–Lehmann shift, and the bootstrap for anything else.

use crate::describe::{mean, sorted, variance};
use crate::distribution::{normal_lower, normal_quantile, student_t_quantile};
use crate::hypothesis::differences;
use crate::random::Random;
use crate::ranks::{EXACT_MAX, rank_sum_counts, signed_rank_counts};
use crate::selection;

/// An estimate and the bounds of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies between the bounds or on one.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Estimate and bounds as `function` maps them; it must not fall.
    #[must_use]
    pub fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Self { estimate: function(self.estimate), low: function(self.low), high: function(self.high) }
    }
}

/// The logarithm of a ratio of means, its standard error and degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogRatio {
    pub(crate) log: f64,
    pub(crate) error: f64,
    pub(crate) df: f64,
}

impl LogRatio {
    /// Unpaired: Welch's error and degrees of freedom on relative means (delta method).
    pub(crate) fn of(new: &[f64], base: &[f64]) -> Option<Self> {
        let log = log_ratio(new, base)?;
        let [a, b] = [new, base].map(|arm| Some((variance(arm)? / arm.len() as f64) / mean(arm)?.powi(2)));
        let (a, b) = (a?, b?);
        let df = if a + b > 0.0 {
            (a + b) * (a + b) / (a * a / (new.len() - 1) as f64 + b * b / (base.len() - 1) as f64)
        } else {
            (new.len() + base.len() - 2) as f64
        };
        Some(Self { log, error: (a + b).sqrt(), df })
    }

    /// Paired: the spread of `new / mean - base / mean` over the pairs.
    pub(crate) fn of_pairs(new: &[f64], base: &[f64]) -> Option<Self> {
        let log = log_ratio(new, base)?;
        let (new_mean, base_mean) = (mean(new)?, mean(base)?);
        let scaled = |arm: &[f64], mean: f64| arm.iter().map(|sample| sample / mean).collect::<Vec<_>>();
        let differences = differences(&scaled(new, new_mean), &scaled(base, base_mean))?;
        let count = differences.len();
        Some(Self { log, error: (variance(&differences)? / count as f64).sqrt(), df: (count - 1) as f64 })
    }

    /// The ratio with the interval that leaves `tail` out on either side.
    pub(crate) fn interval(&self, tail: f64) -> Option<Interval> {
        let reach = student_t_quantile(1.0 - tail, self.df)? * self.error;
        Some(Interval { estimate: self.log, low: self.log - reach, high: self.log + reach }.map(f64::exp))
    }
}

fn log_ratio(new: &[f64], base: &[f64]) -> Option<f64> {
    let (new, base) = (mean(new)?, mean(base)?);
    (new > 0.0 && base > 0.0).then(|| (new / base).ln())
}

/// The ratio of the means, `new` over `base`, of independent samples: an interval on the logarithm with Welch's degrees of
/// freedom. None of fewer than two samples in an arm or where a mean is not positive.
#[must_use]
pub fn ratio_of_means(new: &[f64], base: &[f64]) -> Option<Interval> {
    LogRatio::of(new, base)?.interval(0.025)
}

/// The ratio of the means of paired samples. None of fewer than two pairs, of unequal counts, or where a mean is not
/// positive.
#[must_use]
pub fn ratio_of_means_paired(new: &[f64], base: &[f64]) -> Option<Interval> {
    LogRatio::of_pairs(new, base)?.interval(0.025)
}

/// The Hodges–Lehmann shift from `base` to `new`: the median of all differences between a sample of either arm, with the
/// interval that goes with Mann–Whitney's test (exact up to 50 samples an arm).
///
/// None where even the widest interval covers less than 95 %: three samples an arm, for example; none of samples that are
/// not finite. Time grows as n log n, memory as n: no differences are stored.
#[must_use]
pub fn hodges_lehmann(new: &[f64], base: &[f64]) -> Option<Interval> {
    let outside = if new.len().max(base.len()) <= EXACT_MAX {
        outside_exact(&rank_sum_counts(new.len(), base.len()))?
    } else {
        let (n, m) = (new.len() as f64, base.len() as f64);
        outside_normal(n * m / 2.0, n * m * (n + m + 1.0) / 12.0)?
    };
    let (new, base) = (sorted(new), sorted(base));
    around_median_of(new.len() * base.len(), outside, |rank| selection::difference(&new, &base, rank))
}

/// The Hodges–Lehmann shift of paired samples: the median of all means of two differences (a difference with itself
/// included), with the interval that goes with the signed-rank test.
#[must_use]
pub fn hodges_lehmann_paired(new: &[f64], base: &[f64]) -> Option<Interval> {
    let differences = differences(new, base)?;
    let count = differences.len();
    let outside = if count <= EXACT_MAX {
        outside_exact(&signed_rank_counts(count))?
    } else {
        let n = count as f64;
        outside_normal(n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0)?
    };
    let differences = sorted(&differences);
    around_median_of(count * (count + 1) / 2, outside, |rank| selection::mean_of_two(&differences, rank))
}

/// The median with the interval of order statistics that covers it with at least 95 %, whatever the distribution.
///
/// None of fewer than six samples: no two of them cover it.
#[must_use]
pub fn median_interval(samples: &[f64]) -> Option<Interval> {
    let n = samples.len();
    let outside = if n <= EXACT_MAX {
        // How many lie below the median is binomial.
        let mut share = 0.5_f64.powi(i32::try_from(n).ok()?);
        let shares: Vec<f64> = (0..=n)
            .map(|below| {
                let this = share;
                share *= (n - below) as f64 / (below + 1) as f64;
                this
            })
            .collect();
        outside_exact(&shares)?
    } else {
        outside_normal(n as f64 / 2.0 - 0.5, n as f64 / 4.0)?
    };
    let samples = sorted(samples);
    around_median_of(n, outside, |rank| samples.get(rank).copied())
}

/// How many values an exact 95 % interval leaves out on either side; none where not even the outermost values cover 95 %.
fn outside_exact(shares: &[f64]) -> Option<usize> {
    let mut below = 0.0;
    let mut outside = None;
    for (index, share) in shares.iter().enumerate() {
        below += share;
        if below > 0.025 {
            break;
        }
        outside = Some(index);
    }
    outside
}

fn outside_normal(middle: f64, variance: f64) -> Option<usize> {
    let outside = (middle - normal_quantile(0.975) * variance.sqrt()).floor();
    (outside >= 0.0).then_some(outside as usize)
}

/// The median and the bounds that leave `outside` of `count` values out on either side; `at` gives the value of a rank from 0.
fn around_median_of(count: usize, outside: usize, at: impl Fn(usize) -> Option<f64>) -> Option<Interval> {
    let last = count.checked_sub(1)?;
    let (low, high) = (at(outside)?, at(last.checked_sub(outside)?)?);
    let (below, above) = (at(last / 2)?, at(count / 2)?);
    Some(Interval { estimate: below + 0.5 * (above - below), low, high })
}

/// The bias-corrected and accelerated (BCa) bootstrap of any `statistic` of two independent arms: each arm is resampled
/// `resamples` times from the seeded sequence.
///
/// None of fewer than two samples in an arm, or where the statistic is not a number for a resample.
#[must_use]
pub fn bca_bootstrap(
    statistic: &dyn Fn(&[f64], &[f64]) -> f64,
    new: &[f64],
    base: &[f64],
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    if new.len() < 2 || base.len() < 2 || resamples == 0 {
        return None;
    }
    let estimate = statistic(new, base);
    let mut random = Random::new(seed);
    let (mut new_drawn, mut base_drawn) = (new.to_vec(), base.to_vec());
    let mut drawn: Vec<f64> = (0..resamples)
        .map(|_| {
            random.resample(new, &mut new_drawn);
            random.resample(base, &mut base_drawn);
            statistic(&new_drawn, &base_drawn)
        })
        .collect();
    if estimate.is_nan() || drawn.iter().any(|value| value.is_nan()) {
        return None;
    }
    drawn.sort_by(f64::total_cmp);
    let below = drawn.partition_point(|&value| value < estimate);
    let not_above = drawn.partition_point(|&value| value <= estimate);
    let share = (below + not_above) as f64 / (2 * resamples) as f64;
    if share <= 0.0 || share >= 1.0 {
        // Every resample on one side: the correction is infinite, and the percentiles say all there is to say.
        return percentiles(&drawn, estimate, 0.025, 0.975);
    }
    let bias = normal_quantile(share);
    let acceleration = acceleration(statistic, new, base);
    let corrected = |tail: f64| {
        let z = bias + normal_quantile(tail);
        normal_lower(bias + z / (1.0 - acceleration * z))
    };
    percentiles(&drawn, estimate, corrected(0.025), corrected(0.975))
}

fn percentiles(drawn: &[f64], estimate: f64, low: f64, high: f64) -> Option<Interval> {
    use crate::describe::quantile;
    Some(Interval { estimate, low: quantile(drawn, low)?, high: quantile(drawn, high)? })
}

/// The skewness of the statistic's influence, from leaving out one sample of either arm at a time; 0 without any influence.
fn acceleration(statistic: &dyn Fn(&[f64], &[f64]) -> f64, new: &[f64], base: &[f64]) -> f64 {
    let left_out = |arm: &[f64], of_rest: &dyn Fn(&[f64]) -> f64| -> (f64, f64) {
        let count = arm.len() as f64;
        let values: Vec<f64> =
            (0..arm.len()).map(|index| of_rest(&[&arm[..index], &arm[index + 1..]].concat())).collect();
        let centre = values.iter().sum::<f64>() / count;
        let influence = |value: &f64| (count - 1.0) * (centre - value) / count;
        (
            values.iter().map(|value| influence(value).powi(3)).sum(),
            values.iter().map(|value| influence(value).powi(2)).sum(),
        )
    };
    let (new_cubes, new_squares) = left_out(new, &|rest| statistic(rest, base));
    let (base_cubes, base_squares) = left_out(base, &|rest| statistic(new, rest));
    let squares = new_squares + base_squares;
    if squares > 0.0 { (new_cubes + base_cubes) / (6.0 * squares.powf(1.5)) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::median_interval;

    /// Against printed tables of the sign test: the second and ninth of ten, the 40th and 61st of a hundred.
    #[test]
    fn the_medians_interval_is_that_of_tables() {
        let of = |n: u32| {
            let samples: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            median_interval(&samples).map(|interval| (interval.low, interval.estimate, interval.high))
        };
        assert_eq!(of(5), None);
        assert_eq!(of(6), Some((1.0, 3.5, 6.0)));
        assert_eq!(of(10), Some((2.0, 5.5, 9.0)));
        assert_eq!(of(50), Some((18.0, 25.5, 33.0)));
        assert_eq!(of(100), Some((40.0, 50.5, 61.0)));
    }
}
