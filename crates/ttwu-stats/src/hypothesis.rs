//! Tests on means that assume roughly normal means: Welch's and the paired t test.

use crate::describe::{mean, variance};
use crate::distribution::student_t_two_sided;

/// The outcome of a t test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TTest {
    /// The statistic; infinite where the means differ and there is no spread.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided probability of a statistic at least as large without a difference.
    pub probability: f64,
}

/// Welch's t test of `new` against `base` (positive where `new` is larger); none of fewer than two samples in either.
#[must_use]
pub fn welch_t(new: &[f64], base: &[f64]) -> Option<TTest> {
    let parts = [new, base].map(|arm| variance(arm).map(|variance| variance / arm.len() as f64));
    let [Some(a), Some(b)] = parts else { return None };
    let difference = mean(new)? - mean(base)?;
    let df = if a + b > 0.0 {
        (a + b) * (a + b) / (a * a / (new.len() - 1) as f64 + b * b / (base.len() - 1) as f64)
    } else {
        (new.len() + base.len() - 2) as f64
    };
    Some(t_test(difference, (a + b).sqrt(), df))
}

/// The t test on the differences `new[i] - base[i]`; none of fewer than two pairs or of unequal counts.
#[must_use]
pub fn paired_t(new: &[f64], base: &[f64]) -> Option<TTest> {
    let differences = differences(new, base)?;
    let variance = variance(&differences)?;
    let error = (variance / differences.len() as f64).sqrt();
    Some(t_test(mean(&differences)?, error, (differences.len() - 1) as f64))
}

/// `new[i] - base[i]`; none of unequal counts.
pub(crate) fn differences(new: &[f64], base: &[f64]) -> Option<Vec<f64>> {
    (new.len() == base.len()).then(|| new.iter().zip(base).map(|(new, base)| new - base).collect())
}

fn t_test(difference: f64, error: f64, df: f64) -> TTest {
    if error == 0.0 {
        let (t, probability) =
            if difference == 0.0 { (0.0, 1.0) } else { (difference.signum() * f64::INFINITY, 0.0) };
        return TTest { t, df, probability };
    }
    let t = difference / error;
    TTest { t, df, probability: student_t_two_sided(t, df).unwrap_or(f64::NAN) }
}
