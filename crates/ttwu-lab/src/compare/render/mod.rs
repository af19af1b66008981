//! A comparison as text. Nothing is computed here that the comparison does not hold, but in the styles of mmtests, whose rules
//! are their own.

mod json;
mod mmtests;
mod strict;
mod text;

pub(crate) use text::wrap;

use super::Comparison;
use std::fmt::Write;

/// A style of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Verdicts and why, in 80 columns.
    Text,
    /// mmtests' table and star rule of October 2018 to November 2024.
    Mmtests2020,
    /// mmtests' since then.
    Mmtests2024,
    /// All that the statistics say of each row.
    Strict,
    /// Lists of runs with mean and percentage, as mails have them.
    Lkml,
    /// For scripts: `ttwu/compare/1`.
    Json,
    /// One line a sample.
    Csv,
}

/// Renders a comparison.
#[must_use]
pub fn render(comparison: &Comparison, style: Style) -> String {
    match style {
        Style::Text => text::render(comparison),
        Style::Mmtests2020 => mmtests::render(comparison, ttwu_results::mmtests::Style::Classic2020),
        Style::Mmtests2024 => mmtests::render(comparison, ttwu_results::mmtests::Style::Interval2024),
        Style::Strict => strict::render(comparison),
        Style::Lkml => lkml(comparison),
        Style::Json => json::render(comparison),
        Style::Csv => csv(comparison),
    }
}

const fn direction(better: ttwu_stats::Better) -> &'static str {
    match better {
        ttwu_stats::Better::Lower => "lower",
        ttwu_stats::Better::Higher => "higher",
    }
}

/// A value with five significant digits, as far as that needs decimals.
fn value(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (4 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

/// The ten-run lists of the cluster thread, of as many runs as there are.
fn lkml(comparison: &Comparison) -> String {
    let mut out = format!(
        "# style lkml; no stars; percentages of means, + is better\n# {}\n",
        text::sampling(comparison)
    );
    for row in &comparison.rows {
        let _ = writeln!(out, "\n{} ({}, {} is better)", row.name, row.unit, direction(row.better));
        for (info, arm) in comparison.arms.iter().zip(&row.arms) {
            let _ = write!(out, "{}: ", info.label);
            let Some(mean) = ttwu_stats::describe::mean(&arm.samples) else {
                out.push_str("missing\n");
                continue;
            };
            let base = ttwu_stats::describe::mean(&row.arms[0].samples).filter(|_| arm.judgement.is_some());
            let gain = base.map(|base| match row.better {
                ttwu_stats::Better::Lower => ttwu_stats::mmtests::gain_lower(mean, base),
                ttwu_stats::Better::Higher => ttwu_stats::mmtests::gain_higher(mean, base),
            });
            let change = gain.map_or(String::new(), |gain| format!(" ({gain:+.2}%)"));
            let mut line = format!("{}{change}\n ", value(mean));
            let mut column = 1;
            for sample in &arm.samples {
                let sample = value(*sample);
                if column + sample.len() + 1 > 78 {
                    line.push_str("\n ");
                    column = 1;
                }
                column += sample.len() + 1;
                let _ = write!(line, " {sample}");
            }
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

fn csv(comparison: &Comparison) -> String {
    let mut out = "row,unit,better,arm,run,value\n".to_owned();
    for row in &comparison.rows {
        for (info, arm) in comparison.arms.iter().zip(&row.arms) {
            for (run, sample) in arm.samples.iter().enumerate() {
                let seed = comparison.seeds.map_or(run as u64 + 1, |(first, _)| first + run as u64);
                let [name, label] = [&row.name, &info.label].map(|text| csv_field(text));
                let _ =
                    writeln!(out, "{name},{},{},{label},{seed},{sample}", row.unit, direction(row.better));
            }
        }
    }
    out
}

/// A field of a CSV file, quoted where it must be.
pub(crate) fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
