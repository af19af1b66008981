//! The main table: statistics, changes, stars.

use super::benchmarks::{Benchmark, Stat};
use super::extract::Arm;
use super::printed::{fixed, through_text};
use super::summary::{Operation, Summariser};
use super::{Options, R, Style};
use ttwu_stats::mmtests as stat;

/// Width of the percentage in brackets; with brackets, sign and space it takes four more.
const PERCENT_WIDTH: usize = 7;

/// Width of a value.
pub(super) const fn value_width(style: Style) -> usize {
    match style {
        Style::Classic2020 => 12,
        Style::Interval2024 => 18,
    }
}

/// A row's cell: value and change, and whether it is starred.
struct Cell {
    value: f64,
    change: f64,
    starred: bool,
}

/// What the rule of the stars says of one operation of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Significance {
    starred: bool,
    figure: f64,
}

const INSIGNIFICANT: Significance = Significance { starred: false, figure: 0.0 };

/// The table's text.
pub(super) fn render(options: &Options, benchmark: &Benchmark, arms: &[Arm]) -> String {
    let summariser = Summariser { benchmark, style: options.style, r: options.r };
    let labels = &arms[0].shown;
    // One row an operation, one column an arm.
    let summaries: Vec<Vec<Option<Operation>>> = labels
        .iter()
        .map(|label| arms.iter().map(|arm| summariser.operation(arm, label)).collect())
        .collect();
    let significances: Vec<Vec<Significance>> = match options.style {
        Style::Interval2024 => by_intervals(&summaries, arms.len(), summariser.compared()),
        Style::Classic2020 => summaries.iter().map(|row| by_probability(row, options.r)).collect(),
    };
    let stats = benchmark.rows.stats(options.style);
    let names: Vec<String> = stats.iter().map(|stat| stat.name(benchmark, options.style)).collect();
    let name_width = names.iter().map(String::len).max().unwrap_or(0);
    let label_width = labels.iter().map(String::len).max().unwrap_or(0);
    let width = value_width(options.style);
    let mut text = header(arms, name_width + 1 + label_width, width);
    for (column, (stat, name)) in stats.iter().zip(&names).enumerate() {
        let starred = match options.style {
            Style::Interval2024 => column == summariser.compared(),
            Style::Classic2020 => *stat == Stat::Mean,
        };
        for (index, label) in labels.iter().enumerate() {
            text.push_str(&format!("{name:<name_width$} {label:<label_width$}"));
            for (arm, cell) in
                cells(&summaries[index], *stat, column, benchmark.higher).into_iter().enumerate()
            {
                let cell = Cell { starred: starred && significances[index][arm].starred, ..cell };
                text.push_str(&print(&cell, width, benchmark.decimals));
            }
            text.push('\n');
        }
    }
    if options.print_significance {
        for (label, row) in labels.iter().zip(&significances) {
            text.push_str(&format!("{:<name_width$} {label:<label_width$}", "Significant"));
            for significance in row {
                let flag = if significance.starred { 1.0 } else { 0.0 };
                let cell = Cell { value: flag, change: significance.figure, starred: false };
                text.push_str(&print(&cell, width, benchmark.decimals));
            }
            // A column of its own that is never filled.
            text.push_str(&" ".repeat(width));
            text.push('\n');
        }
    }
    text
}

/// The two header lines: each arm's name cut at its first `-`, or after an `-rcN` that follows.
///
/// A name without `-` loses its last byte in the first line, and `-rc10` its last digit to the second: as mmtests does.
pub(super) fn header(arms: &[Arm], first_width: usize, value_width: usize) -> String {
    let width = value_width + PERCENT_WIDTH + 4;
    let (mut above, mut below) = (" ".repeat(first_width), " ".repeat(first_width));
    for arm in arms {
        let name = arm.name.as_bytes();
        let dash = name.iter().position(|&byte| byte == b'-');
        let (cut, from) = match dash {
            None => (name.len().saturating_sub(1), 0),
            Some(dash) => {
                let looked_at = &name[dash..name.len().min(dash + dash + 3)];
                let is_candidate =
                    looked_at.windows(4).any(|part| part.starts_with(b"-rc") && part[3].is_ascii_digit());
                let cut = if is_candidate { dash + 4 } else { dash };
                (cut.min(name.len()), (cut + 1).min(name.len()))
            }
        };
        for (line, part) in [(&mut above, &name[..cut]), (&mut below, &name[from..])] {
            line.push_str(&" ".repeat(width.saturating_sub(part.len())));
            line.push_str(&String::from_utf8_lossy(part));
        }
    }
    format!("{above}\n{below}\n")
}

fn print(cell: &Cell, width: usize, decimals: usize) -> String {
    let (open, close) = if cell.starred { ('*', '*') } else { ('(', ')') };
    format!("{} {open}{}%{close}", fixed(cell.value, width, decimals), fixed(cell.change, PERCENT_WIDTH, 2))
}

/// One statistic of one operation in all arms. What is missing, or is -1 as mmtests marks it, prints as 0 without a change.
fn cells(row: &[Option<Operation>], stat: Stat, column: usize, higher: bool) -> Vec<Cell> {
    let value =
        |operation: &Option<Operation>| operation.as_ref().and_then(|operation| operation.values[column]);
    let base = value(&row[0]);
    let cell = |operation: &Option<Operation>| match value(operation) {
        Some(value) if value != -1.0 && base != Some(-1.0) => {
            let change = change(value, base, higher && !stat.is_spread());
            Cell { value, change: through_text(change), starred: false }
        }
        _ => Cell { value: 0.0, change: 0.0, starred: false },
    };
    row.iter().map(cell).collect()
}

fn change(value: f64, base: Option<f64>, higher: bool) -> f64 {
    match (base, higher) {
        (Some(base), true) => stat::gain_higher(value, base),
        (Some(base), false) => stat::gain_lower(value, base),
        // Against a mean that does not exist.
        (None, true) => {
            if value == 0.0 {
                0.0
            } else {
                100.0
            }
        }
        (None, false) => {
            if value == 0.0 {
                100.0
            } else {
                f64::NAN
            }
        }
    }
}

/// The rule of 2024. An arm without a single interval has no figures; a baseline's missing interval counts as `(0, 0)`.
fn by_intervals(summaries: &[Vec<Option<Operation>>], arms: usize, column: usize) -> Vec<Vec<Significance>> {
    let interval =
        |row: &[Option<Operation>], arm: usize| row[arm].as_ref().and_then(|operation| operation.interval);
    let has_intervals: Vec<bool> =
        (0..arms).map(|arm| summaries.iter().any(|row| interval(row, arm).is_some())).collect();
    let mean = |row: &[Option<Operation>], arm: usize| {
        row[arm].as_ref().map_or(0.0, |operation| operation.values[column].unwrap_or(f64::NAN))
    };
    let judge = |row: &[Option<Operation>], arm: usize| {
        let Some(own) = interval(row, arm).filter(|_| arm > 0) else { return INSIGNIFICANT };
        let base = if has_intervals[0] { mean(row, 0) } else { 0.0 };
        let base_interval = interval(row, 0).unwrap_or((0.0, 0.0));
        // mmtests passes the baseline as the new value here, so the sign is that of a fall.
        let figure = stat::interval_ratio(base, base_interval, mean(row, arm), own);
        Significance { starred: figure.abs() > 1.0, figure }
    };
    summaries.iter().map(|row| (0..arms).map(|arm| judge(row, arm)).collect()).collect()
}

/// The rule of 2018 to 2024; the figure is the probability in percent. An arm without samples has mean 0 and no spread.
fn by_probability(row: &[Option<Operation>], r: R) -> Vec<Significance> {
    const NOTHING: stat::Summary = stat::Summary { mean: 0.0, stddev: 0.0, count: 0 };
    let summary = |arm: usize| row[arm].as_ref().map_or(NOTHING, |operation| operation.classic);
    let judge = |arm: usize| {
        if arm == 0 {
            return INSIGNIFICANT;
        }
        let probability = match (stat::pooled_df_probability(summary(0), summary(arm)), r) {
            (probability, R::Works) => probability,
            // Without spread R is not asked.
            (probability, R::Missing)
                if probability == 1.0 && summary(0).stddev == 0.0 && summary(arm).stddev == 0.0 =>
            {
                probability
            }
            (_, R::Missing) => 0.0,
        };
        Significance { starred: probability < 0.10, figure: probability * 100.0 }
    };
    (0..row.len()).map(judge).collect()
}
