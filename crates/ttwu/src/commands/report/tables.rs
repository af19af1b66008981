//! Tables and JSON, once the recording has been read.

use super::{Found, Request};
use crate::args::{AnalysisName, By, Style};
use crate::exit::{Done, Outcome};
use crate::output::print as print_text;
use ttwu_analysis::{Measured, Results};
use ttwu_model::TraceParts;
use ttwu_report::{RowsBy, SchbenchGeneration, latency, perf_latency, perf_latency_sum, schbench};

/// Rows of a table on a terminal.
const ROWS: usize = 40;

/// Prints what was asked for.
pub(super) fn print(request: &Request<'_>, results: &Results, parts: &TraceParts) -> Outcome {
    let found = Found { request, results, parts };
    let mut out = String::new();
    for &analysis in &request.analyses {
        if analysis == AnalysisName::Latency {
            out.push_str(&latency_text(&found));
        }
    }
    if out.is_empty() { Ok(Done::Ok) } else { print_text(&out) }
}

fn latency_text(found: &Found<'_>) -> String {
    let args = found.request.args;
    if let Some(table) = &found.results.perf_latency {
        return match table {
            Measured::Measured(table) if args.style == Style::Sum => perf_latency_sum(table),
            Measured::Measured(table) => perf_latency(table),
            Measured::NotMeasured { missing } => not_measured("latency", missing),
        };
    }
    let by = match args.by {
        By::Name => RowsBy::Name,
        By::Task => RowsBy::Task,
    };
    match &found.results.latency {
        Some(Measured::Measured(report)) if args.style == Style::Schbench => {
            let seconds =
                found.results.span.map_or(0, |(from, to)| to.saturating_since(from).as_ns() / 1_000_000_000);
            match &report.schbench {
                Some(table) => schbench(table, SchbenchGeneration::Y2023, seconds),
                None => not_measured("latency", &report.not_measured),
            }
        }
        Some(Measured::Measured(report)) => latency(report, by, ROWS),
        Some(Measured::NotMeasured { missing }) => not_measured("latency", missing),
        None => String::new(),
    }
}

fn not_measured(analysis: &str, missing: &[String]) -> String {
    format!("{analysis}: not measured; the recording lacks {}\n", missing.join(", "))
}
