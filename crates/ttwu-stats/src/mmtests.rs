//! mmtests' definitions by name, to the digit (its `Stat.pm` of January 2020 and of June 2026, as the specification states
//! them). They differ from the usual ones in places; use them to read and write mmtests' tables, nothing else.
//!
//! Sums run in the order given, because the last digits of a sum depend on it; mmtests sorts samples best first. Where
//! mmtests says `NaN`, the answer here is `None`.

use crate::distribution::student_t_two_sided;

/// Half-width of a 95 % interval in standard deviations, as R prints `qnorm(0.975)` before it is multiplied.
const NORMAL_975: f64 = 1.959_963_984_540_054;

/// Amean: the sum divided by the count.
#[must_use]
pub fn amean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().fold(0.0, |sum, sample| sum + sample) / samples.len() as f64)
}

/// Hmean: the count divided by the sum of inverses; none where a sample is not positive.
#[must_use]
pub fn hmean(samples: &[f64]) -> Option<f64> {
    // `all` on the negated comparison would let a NaN pass.
    (!samples.is_empty() && samples.iter().all(|&sample| sample > 0.0))
        .then(|| samples.len() as f64 / samples.iter().fold(0.0, |sum, sample| sum + 1.0 / sample))
}

/// Gmean: the n-th root of the product, as ratio tables use it. The product is not guarded against overflow.
#[must_use]
pub fn gmean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| {
        samples.iter().fold(1.0, |product, sample| product * sample).powf(1.0 / samples.len() as f64)
    })
}

/// Stddev: around Amean, divisor n - 1.
#[must_use]
pub fn stddev(samples: &[f64]) -> Option<f64> {
    let mean = amean(samples)?;
    (samples.len() > 1).then(|| {
        let squares = samples.iter().fold(0.0, |sum, sample| sum + (sample - mean).powf(2.0));
        (squares / (samples.len() - 1) as f64).sqrt()
    })
}

/// HStddev (since 2024): of the inverses around the inverse of Hmean, scaled by Hmean squared, divisor n.
#[must_use]
pub fn hstddev(samples: &[f64]) -> Option<f64> {
    let mean = hmean(samples)?;
    (samples.len() > 1).then(|| {
        let squares = samples.iter().fold(0.0, |sum, sample| sum + (1.0 / sample - 1.0 / mean).powf(2.0));
        (squares * mean.powf(4.0) / samples.len() as f64).sqrt()
    })
}

/// CoeffVar in percent: 100 · `stddev` / `mean`; 0 where either is missing or the mean is 0.
#[must_use]
pub fn coeffvar(stddev: Option<f64>, mean: Option<f64>) -> f64 {
    let mean = mean.unwrap_or(0.0);
    if mean == 0.0 { 0.0 } else { stddev.unwrap_or(0.0) * 100.0 / mean }
}

/// How many of `count` samples BAmean and Pctile of `percent` use: the whole part of the share, at least 1.
#[must_use]
pub fn best_count(count: usize, percent: f64) -> usize {
    ((count as f64 * percent / 100.0) as usize).max(1)
}

/// Pctile: the sample at the place that [`best_count`] says, counted from 1, of samples sorted best first.
#[must_use]
pub fn percentile(best_first: &[f64], percent: f64) -> Option<f64> {
    best_first.get(best_count(best_first.len(), percent) - 1).copied()
}

/// BAmean: Amean of the best `percent` of samples sorted best first.
#[must_use]
pub fn best_amean(best_first: &[f64], percent: f64) -> Option<f64> {
    amean(best_first.get(..best_count(best_first.len(), percent))?)
}

/// BHmean: Hmean of the best `percent` of samples sorted best first.
#[must_use]
pub fn best_hmean(best_first: &[f64], percent: f64) -> Option<f64> {
    hmean(best_first.get(..best_count(best_first.len(), percent))?)
}

/// The middle `percent` of the samples, ascending, as mmtests' trimmed means take it: from each end the whole part of half
/// of what is left over goes, from the upper end one sample fewer.
#[must_use]
pub fn trimmed(samples: &[f64], percent: f64) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let kept = (count as f64 * percent / 100.0) as usize;
    let cut = (count.saturating_sub(kept) as f64 / 2.0) as usize;
    let high = (count as f64 - count.saturating_sub(kept) as f64 / 2.0) as usize;
    let high = high.min(count.saturating_sub(1));
    if count == 0 || cut > high { sorted } else { sorted[cut..=high].to_vec() }
}

/// The change from `base` to `new` in percent where lower is better; positive is better.
#[must_use]
pub fn gain_lower(new: f64, base: f64) -> f64 {
    if new == base {
        0.0
    } else if new == 0.0 {
        100.0
    } else if base == 0.0 {
        -99.0
    } else {
        100.0 - new * 100.0 / base
    }
}

/// The change from `base` to `new` in percent where higher is better; positive is better.
#[must_use]
pub fn gain_higher(new: f64, base: f64) -> f64 {
    if new == base || new == 0.0 {
        0.0
    } else if base == 0.0 {
        100.0
    } else {
        new * 100.0 / base - 100.0
    }
}

/// `new` / `base` as ratio tables take it: 0 where the base is 0, 1 where the new value is 0.
#[must_use]
pub fn ratio(new: f64, base: f64) -> f64 {
    if base == 0.0 {
        0.0
    } else if new == 0.0 {
        1.0
    } else {
        new / base
    }
}

/// Half of the interval that the rule of November 2024 puts around a mean: 1.96 standard deviations **of the samples**,
/// as R prints it (seven digits).
#[must_use]
pub fn interval_half_width(stddev: f64) -> f64 {
    as_r_prints(NORMAL_975 * stddev)
}

/// The figure of the rule of November 2024: `(new - base)` over the sum of the two half-widths that face each other; the
/// bare difference where both are 0. A star where its size exceeds 1. The count of samples plays no part.
///
/// Intervals are `(low, high)`.
#[must_use]
pub fn interval_ratio(new: f64, new_interval: (f64, f64), base: f64, base_interval: (f64, f64)) -> f64 {
    let difference = new - base;
    let facing = if new < base {
        new_interval.1 - new + base - base_interval.0
    } else {
        new - new_interval.0 + base_interval.1 - base
    };
    if facing == 0.0 { difference } else { difference / facing }
}

/// The figure of ratio tables before 2024: `(new - base)` over the root of the mean variance; the bare difference where
/// that is 0.
#[must_use]
pub fn pooled_ratio(new: f64, new_stddev: f64, base: f64, base_stddev: f64) -> f64 {
    let difference = new - base;
    let pooled = ((new_stddev.powf(2.0) + base_stddev.powf(2.0)) / 2.0).sqrt();
    if pooled == 0.0 { difference } else { difference / pooled }
}

/// What the rule of October 2018 to November 2024 sees of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Amean or Hmean, whichever the row prints.
    pub mean: f64,
    /// Stddev around Amean; 0 where there is none.
    pub stddev: f64,
    /// How many samples.
    pub count: usize,
}

/// The probability that the rule of October 2018 to November 2024 computes, two-sided; a star where it is below 0.10.
///
/// Student's t with n1 + n2 - 2 degrees of freedom on Welch's standard error. Without spread (or without samples), 0 where
/// the means differ and 1 where not.
#[must_use]
pub fn pooled_df_probability(base: Summary, new: Summary) -> f64 {
    let error = if base.count == 0 || new.count == 0 {
        0.0
    } else {
        (base.stddev.powf(2.0) / base.count as f64 + new.stddev.powf(2.0) / new.count as f64).sqrt()
    };
    if error == 0.0 {
        return if base.mean == new.mean { 1.0 } else { 0.0 };
    }
    let t = ((base.mean - new.mean) / error).abs();
    let df = (base.count + new.count) as f64 - 2.0;
    student_t_two_sided(t, df).map_or(f64::NAN, |two_sided| as_r_prints(two_sided / 2.0) * 2.0)
}

/// The number that is read back from what R prints by default: seven significant digits, or all digits of the whole part
/// where R's fixed notation is not longer than its scientific one.
#[must_use]
pub fn as_r_prints(value: f64) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    let scientific = format!("{value:.6e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("Rust's exponent notation has an e");
    let exponent: i32 = exponent.parse().expect("Rust's exponent is a whole number");
    let significant = mantissa.trim_start_matches('-').trim_end_matches('0').trim_end_matches('.').len();
    let significant = if significant > 1 { significant - 1 } else { 1 };
    let decimals = (significant as i32 - 1 - exponent).max(0);
    let whole_digits = if exponent >= 0 { exponent + 1 } else { 1 };
    let fixed_width = whole_digits + if decimals > 0 { decimals + 1 } else { 0 };
    let exponent_width = if exponent.abs() >= 100 { 5 } else { 4 };
    let scientific_width = if significant > 1 { significant as i32 + 1 } else { 1 } + exponent_width;
    let printed = if fixed_width <= scientific_width {
        format!("{value:.*}", usize::try_from(decimals).expect("not negative"))
    } else {
        scientific
    };
    printed.parse().expect("what was printed as a number is one")
}
