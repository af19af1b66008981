//! Means of subselections (Kalibera, Bulej and Tůma): per iteration, resamples of four fifths of its samples; the median of
//! their means and of their variances; the mean of those medians over iterations, with a half-width from the variance
//! between and within iterations.
//!
//! DEVIATION: mmtests draws without a seed, so its figures differ from run to run; these are drawn from a fixed seed. The
//! last digits agree with no published table.

use super::Style;
use ttwu_stats::{Random, describe, mmtests as stat};

/// What subselections say of one operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Subselection {
    pub(super) mean: f64,
    /// None where a resample has a single sample and so no variance.
    pub(super) half_width: Option<f64>,
}

/// None where an iteration has too few samples to draw from, or no harmonic mean.
pub(super) fn subselection(iterations: &[Vec<f64>], harmonic: bool, style: Style) -> Option<Subselection> {
    let selections = match style {
        Style::Classic2020 => 100,
        Style::Interval2024 => 1000,
    };
    let mut random = Random::new(0x7375_6273);
    let mut medians = Vec::new();
    let mut variances = Vec::new();
    let mut lengths = Vec::new();
    for samples in iterations.iter().filter(|samples| !samples.is_empty()) {
        let mut drawn = vec![0.0; (0.8 * samples.len() as f64) as usize];
        let mut each = |statistic: &dyn Fn(&[f64]) -> Option<f64>| -> Option<f64> {
            let values: Option<Vec<f64>> = (0..selections)
                .map(|_| {
                    random.resample(samples, &mut drawn);
                    statistic(&drawn)
                })
                .collect();
            describe::median(&values?)
        };
        medians.push(each(&|drawn| if harmonic { stat::hmean(drawn) } else { stat::amean(drawn) })?);
        variances.push(each(&describe::variance));
        lengths.push((0.8 * samples.len() as f64).floor());
    }
    let mean = describe::mean(&medians)?;
    let within = variances.into_iter().collect::<Option<Vec<f64>>>().and_then(|all| describe::mean(&all));
    let between = if medians.len() > 1 {
        let weighted: f64 =
            medians.iter().zip(&lengths).map(|(median, length)| (median - mean).powi(2) * length).sum();
        weighted / (medians.len() - 1) as f64
    } else {
        0.0
    };
    let total: f64 = lengths.iter().sum();
    let half_width =
        within.map(|within| ttwu_stats::normal_quantile(0.975) * ((between + within) / total).sqrt());
    Some(Subselection { mean, half_width })
}
