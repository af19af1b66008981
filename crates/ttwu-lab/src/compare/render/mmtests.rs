//! mmtests' layout and star rules for samples that are in no `work/log` tree. The `#` line names the rule, as the table does not.
//!
//! A name without a dash keeps its last letter here, which mmtests cuts off; what is missing is `missing`, not `0.00%`.

use crate::compare::{Comparison, Row};
use std::fmt::Write;
use ttwu_results::mmtests::Style as Rule;
use ttwu_stats::{Better, mmtests as m};

/// Places after the point of a value.
const DECIMALS: usize = 4;
/// ` (%7.2f%%)`.
const PERCENT: usize = 11;

pub(super) fn render(comparison: &Comparison, style: Rule) -> String {
    let mut out = format!("# style {}; a star: {}\n", style.name(), style.star_rule());
    let value_width = width(style);
    let statistics = Statistic::all(style);
    let names: Vec<String> = comparison.rows.iter().map(|row| row.name.replace(' ', "-")).collect();
    let name_width = names.iter().map(String::len).max().unwrap_or(0);
    let title_width = statistics.iter().map(|statistic| statistic.width()).max().unwrap_or(0);
    let (mut above, mut below) =
        (" ".repeat(title_width + 1 + name_width), " ".repeat(title_width + 1 + name_width));
    for arm in &comparison.arms {
        let (first, rest) = arm.label.split_once('-').unwrap_or((&arm.label, ""));
        let _ = write!(above, "{first:>width$}", width = value_width + PERCENT);
        let _ = write!(below, "{rest:>width$}", width = value_width + PERCENT);
    }
    let _ = write!(out, "{above}\n{below}\n");
    for statistic in statistics {
        for (row, name) in comparison.rows.iter().zip(&names) {
            let title = statistic.title(row.better);
            let _ = write!(out, "{title:title_width$} {name:name_width$}");
            line(&mut out, statistic, row, style);
        }
    }
    out
}

/// Places of a value: those of the classic modules, and those of the generic ones since.
const fn width(style: Rule) -> usize {
    match style {
        Rule::Classic2020 => 12,
        Rule::Interval2024 => 18,
    }
}

fn line(out: &mut String, statistic: Statistic, row: &Row, style: Rule) {
    let width = width(style);
    let arms: Vec<Arm> = row.arms.iter().map(|arm| Arm::of(&arm.samples, row.better, style)).collect();
    let base = arms.first().and_then(|arm| arm.get(statistic));
    for (index, arm) in arms.iter().enumerate() {
        let (Some(value), Some(base)) = (arm.get(statistic), base) else {
            let _ = write!(out, "{:>width$}{:>PERCENT$}", "missing", "(missing)");
            continue;
        };
        let gain = match (statistic.direction(), row.better) {
            (Direction::Row, Better::Higher) => m::gain_higher(value, base),
            (Direction::Row, Better::Lower) | (Direction::Lower, _) => m::gain_lower(value, base),
        };
        let starred = statistic == Statistic::Mean && index > 0 && star(&arms[0], arm, style);
        let (open, close) = if starred { ('*', '*') } else { ('(', ')') };
        let _ = write!(out, "{value:width$.DECIMALS$} {open}{gain:7.2}%{close}");
    }
    out.push('\n');
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Statistic {
    Min,
    Mean,
    Stddev,
    CoeffVar,
    Max,
    Best(u8),
}

/// Which way a statistic is better.
enum Direction {
    /// As its row.
    Row,
    /// Lower, whatever the row is.
    Lower,
}

impl Statistic {
    fn all(style: Rule) -> Vec<Self> {
        let common = [Self::Min, Self::Mean, Self::Stddev, Self::CoeffVar, Self::Max];
        let best: &[u8] = if style == Rule::Classic2020 { &[50, 95, 99] } else { &[95] };
        common.into_iter().chain(best.iter().map(|percent| Self::Best(*percent))).collect()
    }

    fn title(self, better: Better) -> String {
        let mean = match better {
            Better::Lower => "Amean",
            Better::Higher => "Hmean",
        };
        match self {
            Self::Min => "Min".to_owned(),
            Self::Mean => mean.to_owned(),
            Self::Stddev => "Stddev".to_owned(),
            Self::CoeffVar => "CoeffVar".to_owned(),
            Self::Max => "Max".to_owned(),
            Self::Best(percent) => format!("B{mean}-{percent}"),
        }
    }

    fn width(self) -> usize {
        self.title(Better::Lower).len()
    }

    const fn direction(self) -> Direction {
        match self {
            Self::Stddev | Self::CoeffVar => Direction::Lower,
            Self::Min | Self::Mean | Self::Max | Self::Best(_) => Direction::Row,
        }
    }
}

struct Arm {
    best_first: Vec<f64>,
    mean: Option<f64>,
    stddev: Option<f64>,
    better: Better,
}

impl Arm {
    fn of(samples: &[f64], better: Better, style: Rule) -> Self {
        let mut best_first = samples.to_vec();
        best_first.sort_by(f64::total_cmp);
        if better == Better::Higher {
            best_first.reverse();
        }
        let mean = match better {
            Better::Lower => m::amean(&best_first),
            Better::Higher => m::hmean(&best_first),
        };
        let stddev = match (better, style) {
            (Better::Higher, Rule::Interval2024) => m::hstddev(&best_first),
            (Better::Higher, Rule::Classic2020) | (Better::Lower, _) => m::stddev(&best_first),
        };
        Self { best_first, mean, stddev, better }
    }

    fn get(&self, statistic: Statistic) -> Option<f64> {
        let ends = [self.best_first.first(), self.best_first.last()];
        let [Some(&first), Some(&last)] = ends else { return None };
        match statistic {
            Statistic::Min => Some(first.min(last)),
            Statistic::Max => Some(first.max(last)),
            Statistic::Mean => self.mean,
            Statistic::Stddev => self.stddev,
            Statistic::CoeffVar => Some(m::coeffvar(self.stddev, self.mean)),
            Statistic::Best(percent) => match self.better {
                Better::Lower => m::best_amean(&self.best_first, f64::from(percent)),
                Better::Higher => m::best_hmean(&self.best_first, f64::from(percent)),
            },
        }
    }
}

fn star(base: &Arm, new: &Arm, style: Rule) -> bool {
    let (Some(a), Some(b)) = (base.mean, new.mean) else { return false };
    let [sa, sb] = [base.stddev, new.stddev].map(|stddev| stddev.unwrap_or(0.0));
    if style == Rule::Classic2020 {
        let of = |mean, stddev, arm: &Arm| m::Summary { mean, stddev, count: arm.best_first.len() };
        return m::pooled_df_probability(of(a, sa, base), of(b, sb, new)) < 0.10;
    }
    let interval = |mean: f64, stddev| {
        let half = m::interval_half_width(stddev);
        (mean - half, mean + half)
    };
    m::interval_ratio(b, interval(b, sb), a, interval(a, sa)).abs() > 1.0
}
