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
    /// The operation `label` of `arm`; none where the arm has none of this name.
    pub(super) fn operation(&self, arm: &Arm, label: &str) -> Option<Operation> {
        if !arm.shows(label) {
            return None;
        }
        let mut samples = arm.samples(label);
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
                Stat::SubMeanInterval => sub.and_then(|sub| sub.half_width),
                other => self.value(*other, &samples).filter(|value| !value.is_nan()),
            })
            .collect();
        let interval = match self.benchmark.rows.ratio_stat() {
            Stat::Mean => self.interval(&samples),
            Stat::SubMean => {
                sub.and_then(|sub| sub.half_width.map(|half| (sub.mean - half, sub.mean + half)))
            }
            _ => None,
        };
        let spread = match self.benchmark.rows.ratio_stat() {
            Stat::SubMean => sub.and_then(|sub| sub.half_width),
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
        match self.style {
            Style::Interval2024 => stat::hmean(samples),
            // 2020 marks a mean that does not exist, and takes the mark for a value where it looks for stars.
            Style::Classic2020 => stat::hmean(samples).or((!samples.is_empty()).then_some(-1.0)),
        }
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
                let stddev = self.stddev(best_first).filter(|stddev| !stddev.is_nan());
                Some(stat::coeffvar(stddev, mean.filter(|mean| !mean.is_nan())))
            }
            Stat::Value => best_first.first().copied(),
            Stat::SubMean | Stat::SubMeanInterval => None,
        }
    }

    fn interval(&self, samples: &[f64]) -> Option<(f64, f64)> {
        let mean = self.mean(samples).filter(|mean| !mean.is_nan())?;
        let half = match self.r {
            R::Works => stat::interval_half_width(self.stddev(samples)?),
            R::Missing => 0.0,
        };
        Some((mean - half, mean + half))
    }
}
