//! An arm's statistics by operation, as the style computes them.

use super::benchmarks::{Benchmark, Stat};
use super::extract::Arm;
use super::subselection::subselection;
use super::{R, Style};
use ttwu_stats::mmtests as stat;

/// One operation of one arm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operation {
    /// One value a statistic; none where mmtests has `NaN`.
    pub(super) values: Vec<Option<f64>>,
    /// The 2024 rule's interval around the compared statistic.
    pub(super) interval: Option<(f64, f64)>,
    /// What the 2020 rule looks at.
    pub(super) classic: stat::Summary,
    /// The standard deviation around Amean, or a subselection's half-width: the spread of the 2020 ratio tables.
    pub(super) spread: Option<f64>,
}

/// Computes statistics of one arm's operations.
pub(super) struct Summariser<'a> {
    pub(super) benchmark: &'a Benchmark,
    pub(super) style: Style,
    pub(super) r: R,
}

impl Summariser<'_> {
    /// The operation `label` of `arm`; none where it has no samples.
    pub(super) fn operation(&self, arm: &Arm, label: &str) -> Option<Operation> {
        let mut samples = arm.samples(label);
        if samples.is_empty() {
            return None;
        }
        if self.benchmark.higher {
            samples.sort_by(|a, b| b.total_cmp(a));
        } else {
            samples.sort_by(f64::total_cmp);
        }
        let stats = self.benchmark.rows.stats(self.style);
        let sub = stats
            .contains(&Stat::SubMean)
            .then(|| subselection(arm.iterations(label), self.benchmark.higher, self.style));
        let sub = sub.flatten();
        let values: Vec<Option<f64>> = stats
            .iter()
            .map(|stat| match stat {
                Stat::SubMean => sub.map(|sub| sub.mean),
                Stat::SubMeanInterval => sub.map(|sub| sub.half_width),
                other => self.value(*other, &samples),
            })
            .collect();
        let interval = match self.benchmark.rows.ratio_stat() {
            Stat::Mean => self.interval(&samples),
            Stat::SubMean => sub.map(|sub| (sub.mean - sub.half_width, sub.mean + sub.half_width)),
            _ => None,
        };
        let spread = match self.benchmark.rows.ratio_stat() {
            Stat::SubMean => sub.map(|sub| sub.half_width),
            _ => stat::stddev(&samples),
        };
        let classic = stat::Summary {
            mean: self.value(Stat::Mean, &samples).unwrap_or(f64::NAN),
            stddev: stat::stddev(&samples).unwrap_or(0.0),
            count: samples.len(),
        };
        Some(Operation { values, interval, classic, spread })
    }

    /// Which column the stars and intervals belong to.
    pub(super) fn compared(&self) -> usize {
        let compared = match self.style {
            Style::Interval2024 => self.benchmark.rows.ratio_stat(),
            Style::Classic2020 => Stat::Mean,
        };
        self.column(compared).unwrap_or(0)
    }

    /// The column of a statistic.
    pub(super) fn column(&self, stat: Stat) -> Option<usize> {
        self.benchmark.rows.stats(self.style).iter().position(|found| *found == stat)
    }

    fn mean(&self, samples: &[f64]) -> Option<f64> {
        if !self.benchmark.higher {
            return stat::amean(samples);
        }
        // 2020 has -1 for a mean that does not exist, which then prints as 0; so does a missing value.
        stat::hmean(samples)
    }

    fn stddev(&self, samples: &[f64]) -> Option<f64> {
        if self.benchmark.higher && self.style == Style::Interval2024 {
            stat::hstddev(samples)
        } else {
            stat::stddev(samples)
        }
    }

    fn value(&self, stat: Stat, best_first: &[f64]) -> Option<f64> {
        match stat {
            Stat::Min => best_first.iter().copied().reduce(f64::min),
            Stat::Max => best_first.iter().copied().reduce(f64::max),
            Stat::Mean => self.mean(best_first),
            Stat::BestMean(percent) => {
                self.mean(best_first.get(..stat::best_count(best_first.len(), percent))?)
            }
            Stat::Percentile(percent) => stat::percentile(best_first, percent),
            Stat::Stddev => self.stddev(best_first),
            Stat::CoeffVar => {
                let mean = if self.style == Style::Classic2020 {
                    stat::amean(best_first)
                } else {
                    self.mean(best_first)
                };
                Some(stat::coeffvar(self.stddev(best_first), mean))
            }
            Stat::Value => best_first.first().copied(),
            Stat::SubMean | Stat::SubMeanInterval => None,
        }
    }

    fn interval(&self, samples: &[f64]) -> Option<(f64, f64)> {
        let mean = self.mean(samples)?;
        let half = match self.r {
            R::Works => stat::interval_half_width(self.stddev(samples)?),
            R::Missing => 0.0,
        };
        Some((mean - half, mean + half))
    }
}
