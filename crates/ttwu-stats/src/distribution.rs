//! The distribution functions that the rest needs, in one place, so that the library behind them can be changed.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::beta::beta_reg;

/// The standard normal distribution's value below which the share `probability` (0..1, exclusive) lies.
#[must_use]
pub fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// The share of a standard normal distribution above `z`.
pub(crate) fn normal_upper(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// The share of a standard normal distribution below `z`.
pub(crate) fn normal_lower(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The share of Student's t distribution with `df` degrees of freedom that lies beyond `|t|` on either side.
///
/// Infinite `t` has share 0; `None` where `t` is not a number or `df` is not positive.
#[must_use]
pub fn student_t_two_sided(t: f64, df: f64) -> Option<f64> {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return None;
    }
    if t.is_infinite() {
        return Some(0.0);
    }
    if t == 0.0 {
        return Some(1.0);
    }
    let square = t * t;
    // Either form is exact in its own half; the other loses digits by cancellation in `1 - x`.
    Some(if square > df {
        beta_reg(df / 2.0, 0.5, df / (df + square))
    } else {
        1.0 - beta_reg(0.5, df / 2.0, square / (df + square))
    })
}

/// The value of Student's t distribution with `df` degrees of freedom below which the share `probability` lies.
///
/// `None` where `df` is not positive or `probability` is not strictly between 0 and 1.
#[must_use]
pub fn student_t_quantile(probability: f64, df: f64) -> Option<f64> {
    if !(df > 0.0 && probability > 0.0 && probability < 1.0) {
        return None;
    }
    if probability == 0.5 {
        return Some(0.0);
    }
    let tail = 2.0 * probability.min(1.0 - probability);
    // Newton from the normal's or Cauchy's value would need care at few degrees of freedom; bisection on a monotone
    // function needs none, and 200 halvings of a bracket reach the last digit.
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while student_t_two_sided(high, df)? > tail {
        high *= 2.0;
        if high.is_infinite() {
            return None;
        }
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if student_t_two_sided(middle, df)? > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    let value = f64::midpoint(low, high);
    Some(if probability > 0.5 { value } else { -value })
}
