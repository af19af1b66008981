//! The smallest change that a comparison would find: without it "no difference" says nothing.

use crate::distribution::{normal_quantile, student_t_quantile};

/// The change, as a share of the mean, that two arms of `count` samples each find four times in five at 5 %: `variation` is
/// the coefficient of variation as a share. None of fewer than two samples.
///
/// (t₀.₉₇₅ + z₀.₈₀) · CV · √(2/n): n = 10 and 1 % give 1.3 %.
#[must_use]
pub fn detectable_share(variation: f64, count: usize) -> Option<f64> {
    let df = (count > 1).then(|| 2.0 * (count - 1) as f64)?;
    Some((student_t_quantile(0.975, df)? + normal_quantile(0.8)) * variation * (2.0 / count as f64).sqrt())
}

/// The change that a comparison with this standard error and these degrees of freedom finds four times in five at 5 %.
#[must_use]
pub fn detectable_share_of_intervals(standard_error: f64, df: f64) -> Option<f64> {
    Some((student_t_quantile(0.975, df)? + normal_quantile(0.8)) * standard_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_three_examples() {
        let shown = |variation, count| {
            format!("{:.1}", 100.0 * detectable_share(variation, count).expect("two samples"))
        };
        assert_eq!(shown(0.01, 10), "1.3");
        // 3.948; the specification rounds it to 4.0.
        assert_eq!(shown(0.03, 10), "3.9");
        assert_eq!(shown(0.03, 30), "2.2");
        assert_eq!(detectable_share(0.01, 1), None);
    }
}
