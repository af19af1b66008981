//! What a set of samples looks like: location, spread, outliers, more than one mode, dependence.

use crate::random::Random;

/// The arithmetic mean; none of no samples.
#[must_use]
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// The variance with divisor n - 1; none of fewer than two samples.
#[must_use]
pub fn variance(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples)?;
    (samples.len() > 1).then(|| {
        samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>()
            / (samples.len() - 1) as f64
    })
}

/// The coefficient of variation, as a share (0.01 is one percent); none without spread or with a mean that is not positive.
#[must_use]
pub fn variation(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples).filter(|&mean| mean > 0.0)?;
    variance(samples).map(|variance| variance.sqrt() / mean)
}

/// The samples in ascending order.
#[must_use]
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value below which the share `probability` of the samples lies, interpolated linearly between neighbours (R's type 7,
/// NumPy's default).
#[must_use]
pub fn quantile(samples: &[f64], probability: f64) -> Option<f64> {
    if samples.is_empty() || !(0.0..=1.0).contains(&probability) {
        return None;
    }
    let sorted = sorted(samples);
    let place = (sorted.len() - 1) as f64 * probability;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + (place - below as f64) * (sorted[above] - sorted[below]))
}

/// The middle sample, or the mean of the two in the middle.
#[must_use]
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The mean of what is left after the share `cut` (0..0.5) of the samples, rounded down to whole samples, is taken off
/// either end.
#[must_use]
pub fn trimmed_mean(samples: &[f64], cut: f64) -> Option<f64> {
    if !(0.0..0.5).contains(&cut) {
        return None;
    }
    let sorted = sorted(samples);
    let off = (sorted.len() as f64 * cut) as usize;
    mean(sorted.get(off..sorted.len() - off)?)
}

/// The median distance from the median, not scaled.
#[must_use]
pub fn median_deviation(samples: &[f64]) -> Option<f64> {
    let middle = median(samples)?;
    median(&samples.iter().map(|sample| (sample - middle).abs()).collect::<Vec<_>>())
}

/// Samples further from the median than 14.826 median deviations (ten standard deviations of a normal distribution): their
/// indices. They are to be shown, not removed.
///
/// Where more than half of the samples are equal, every other one is an outlier by this rule; then none is reported.
#[must_use]
pub fn outliers_by_deviation(samples: &[f64]) -> Vec<usize> {
    let (Some(middle), Some(deviation)) = (median(samples), median_deviation(samples)) else {
        return Vec::new();
    };
    if deviation == 0.0 {
        return Vec::new();
    }
    indices(samples, |sample| (sample - middle).abs() > 14.826 * deviation)
}

/// Samples further outside the quartiles than three times their distance (Tukey's outer fences): their indices.
#[must_use]
pub fn outliers_by_quartiles(samples: &[f64]) -> Vec<usize> {
    let (Some(low), Some(high)) = (quantile(samples, 0.25), quantile(samples, 0.75)) else {
        return Vec::new();
    };
    let reach = 3.0 * (high - low);
    if reach == 0.0 {
        return Vec::new();
    }
    indices(samples, |sample| sample < low - reach || sample > high + reach)
}

fn indices(samples: &[f64], is_outlier: impl Fn(f64) -> bool) -> Vec<usize> {
    samples.iter().enumerate().filter(|&(_, &sample)| is_outlier(sample)).map(|(index, _)| index).collect()
}

/// The correlation of each sample with the next one in time; none of fewer than three samples or without spread.
///
/// Samples that depend on their predecessors (a running average, percentiles of a growing histogram) hold less than their
/// count says; beyond about 2/√n the tests here are too sure.
#[must_use]
pub fn lag1_autocorrelation(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples).filter(|_| samples.len() > 2)?;
    let spread: f64 = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
    let along: f64 = samples.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (spread > 0.0).then(|| along / spread)
}

/// Two groups that samples fall into.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoModes {
    /// Mean of the lower group.
    pub low: f64,
    /// Mean of the upper group.
    pub high: f64,
    /// How many samples the lower group has.
    pub low_count: usize,
    /// How often samples of one normal distribution split as well as these (0..1).
    pub probability: f64,
}

/// How many normal samples the split is compared with.
const SPLIT_TRIALS: usize = 2000;

/// The largest normal set that is split. How well a set splits varies less the more samples it has: a larger one that is held
/// against sets of this size is called two groups more rarely, not more often.
const SPLIT_SAMPLES_MAX: usize = 5000;

/// Beyond this probability no split is reported.
const SPLIT_PROBABILITY: f64 = 0.01;

/// Whether the samples look like two groups rather than one, as hackbench and context1 do when placement at the start
/// decides: the best split into two contiguous groups of at least two samples and a fifth of them each explains more of the
/// variance than in 99 % of normal sets of the same size.
///
/// It is a flag, not a proof: a strongly skewed distribution also splits well. None of fewer than six samples.
#[must_use]
pub fn two_modes(samples: &[f64]) -> Option<TwoModes> {
    if samples.len() < 6 {
        return None;
    }
    let sorted = sorted(samples);
    let (share, low_count) = best_split(&sorted)?;
    let mut random = Random::new(0x6d6f_6465);
    let mut normal = vec![0.0; samples.len().min(SPLIT_SAMPLES_MAX)];
    let mut at_least = 0_usize;
    let probability = |at_least: usize| (at_least + 1) as f64 / (SPLIT_TRIALS + 1) as f64;
    for _ in 0..SPLIT_TRIALS {
        normal.fill_with(|| random.normal());
        normal.sort_by(f64::total_cmp);
        if best_split(&normal).is_some_and(|(found, _)| found >= share) {
            at_least += 1;
            // No later trial can bring it below again.
            if probability(at_least) >= SPLIT_PROBABILITY {
                return None;
            }
        }
    }
    Some(TwoModes {
        low: mean(&sorted[..low_count]).expect("a group has at least two samples"),
        high: mean(&sorted[low_count..]).expect("a group has at least two samples"),
        low_count,
        probability: probability(at_least),
    })
}

/// The share of the variance that the best split of ascending samples explains, and how many samples are below it.
fn best_split(sorted: &[f64]) -> Option<(f64, usize)> {
    let count = sorted.len();
    let least = (count / 5).max(2);
    let mean = mean(sorted)?;
    let total: f64 = sorted.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
    if total <= 0.0 {
        return None;
    }
    let mut below = 0.0;
    let mut best: Option<(f64, usize)> = None;
    for (index, sample) in sorted.iter().enumerate() {
        below += sample - mean;
        let low = index + 1;
        if low < least || count - low < least {
            continue;
        }
        // The deviations of both groups sum to 0, so one sum gives the variance between them.
        let between = below * below * count as f64 / (low as f64 * (count - low) as f64);
        let share = between / total;
        if best.is_none_or(|(found, _)| share > found) {
            best = Some((share, low));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_are_seen_and_one_is_not() {
        let one = [7.1, 7.3, 7.25, 7.4, 7.35, 7.2, 7.28, 7.31, 7.19, 7.33];
        assert_eq!(two_modes(&one), None);
        let two = [5.0, 5.1, 4.9, 5.05, 7.0, 7.1, 6.95, 7.05, 5.02, 7.02];
        let found = two_modes(&two).expect("two groups");
        assert_eq!(found.low_count, 5);
        assert!((found.low - 5.014).abs() < 1e-12 && (found.high - 7.024).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn normal_samples_are_called_two_groups_once_in_a_hundred() {
        let mut random = Random::new(3);
        let mut flagged = 0;
        for _ in 0..300 {
            let samples: Vec<f64> = (0..10).map(|_| random.normal()).collect();
            flagged += usize::from(two_modes(&samples).is_some());
        }
        assert!(flagged <= 9, "{flagged} of 300");
    }

    #[test]
    fn outliers_are_named_by_index_and_equal_samples_have_none() {
        let samples = [10.0, 10.1, 9.9, 10.05, 9.95, 30.0];
        assert_eq!(outliers_by_deviation(&samples), [5]);
        assert_eq!(outliers_by_quartiles(&samples), [5]);
        assert_eq!(outliers_by_deviation(&[1.0, 1.0, 1.0, 2.0]), Vec::<usize>::new());
    }

    #[test]
    fn dependence_on_the_predecessor_shows() {
        let running: Vec<f64> = (0..20).map(f64::from).collect();
        assert!((lag1_autocorrelation(&running).expect("spread") - 0.85).abs() < 1e-12);
        assert_eq!(lag1_autocorrelation(&[1.0, 1.0, 1.0]), None);
    }
}
