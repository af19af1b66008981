//! Equivalence: two one-sided tests that the ratio of means lies inside a margin. "No difference was found" is not
//! "they are the same"; this is the test of the latter.

use crate::distribution::student_t_two_sided;
use crate::interval::LogRatio;

/// The outcome of two one-sided t tests on the logarithm of the ratio of means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equivalence {
    /// The larger of the two one-sided probabilities: below α, the ratio lies inside the margin.
    pub probability: f64,
    /// One-sided probability of the data if the ratio were at the lower bound.
    pub above_low: f64,
    /// One-sided probability of the data if the ratio were at the upper bound.
    pub below_high: f64,
}

/// Whether the means of independent samples are within `margin` of each other, as a share: 0.01 means between 1/1.01 and
/// 1.01. None where there is no ratio of means or the margin is not positive.
#[must_use]
pub fn equivalence(new: &[f64], base: &[f64], margin: f64) -> Option<Equivalence> {
    of(LogRatio::of(new, base)?, margin)
}

/// The same for paired samples.
#[must_use]
pub fn equivalence_paired(new: &[f64], base: &[f64], margin: f64) -> Option<Equivalence> {
    of(LogRatio::of_pairs(new, base)?, margin)
}

fn of(ratio: LogRatio, margin: f64) -> Option<Equivalence> {
    if margin.is_nan() || margin <= 0.0 {
        return None;
    }
    let bound = margin.ln_1p();
    let one_sided = |distance: f64| -> Option<f64> {
        if ratio.error == 0.0 {
            return Some(if distance > 0.0 { 0.0 } else { 1.0 });
        }
        let t = distance / ratio.error;
        let beyond = student_t_two_sided(t, ratio.df)? / 2.0;
        Some(if t > 0.0 { beyond } else { 1.0 - beyond })
    };
    let above_low = one_sided(ratio.log + bound)?;
    let below_high = one_sided(bound - ratio.log)?;
    Some(Equivalence { probability: above_low.max(below_high), above_low, below_high })
}
