//! Tables and JSON, once the recording has been read.

use super::{Found, Request};
use crate::args::{AnalysisName, By, Style};
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print as print_text};
use ttwu_analysis::{Measured, Results};
use ttwu_model::TraceParts;
use ttwu_report::{
    Report, RowsBy, SchbenchGeneration, cpus, irqs, latency, migrations, overview, perf_latency,
    perf_latency_sum, placement, report_html, report_json, schbench, switches, wakers,
};

/// Rows of a table on a terminal.
const ROWS: usize = 40;

/// Prints what was asked for, and writes the page. The result is printed even if the page has no room.
pub(super) fn print(request: &Request<'_>, results: Results, parts: &TraceParts) -> Outcome {
    let report = Report::new(request.name, parts, request.topology.clone(), results);
    let printed = print_report(request, &report);
    if let Some(path) = &request.args.html {
        crate::place::write(path, &report_html(&report)).map_err(Failure::input)?;
    }
    printed
}

fn print_report(request: &Request<'_>, report: &Report) -> Outcome {
    let args = request.args;
    if args.format == OutputFormat::Json {
        return print_text(&format!("{:#}\n", report_json(report, rows_by(request))));
    }
    let found = Found { request, results: &report.results };
    if request.overview() {
        let hint = format!("\nmore       {NAMES}\n");
        return print_text(&(overview(report) + &hint));
    }
    let views: Vec<String> = request.analyses.iter().map(|&name| view(&found, name, report)).collect();
    let text = views.into_iter().filter(|view| !view.is_empty()).collect::<Vec<_>>().join("\n");
    if text.is_empty() { Ok(Done::Ok) } else { print_text(&text) }
}

/// What the overview points to.
const NAMES: &str = "latency placement cpus switches migrations irqs wakers timehist";

fn view(found: &Found<'_>, name: AnalysisName, report: &Report) -> String {
    let results = found.results;
    let span = report.span();
    match name {
        AnalysisName::Latency => latency_text(found),
        AnalysisName::Placement => show("placement", results.placement.as_ref(), |one| placement(one, ROWS)),
        AnalysisName::Cpus => show("cpus", results.cpus.as_ref(), |one| cpus(one, ROWS)),
        AnalysisName::Migrations => {
            show("migrations", results.migrations.as_ref(), |one| migrations(one, ROWS))
        }
        AnalysisName::Switches => show("switches", results.switches.as_ref(), |one| switches(one, ROWS)),
        AnalysisName::Irqs => show("irqs", results.irqs.as_ref(), |one| irqs(one, ROWS)),
        AnalysisName::Wakers => show("wakers", results.wakers.as_ref(), |one| wakers(one, span, ROWS)),
        // Printed while the recording was read.
        AnalysisName::Timehist => String::new(),
    }
}

fn show<T>(name: &str, found: Option<&Measured<T>>, view: impl FnOnce(&T) -> String) -> String {
    match found {
        None => String::new(),
        Some(Measured::Measured(found)) => view(found),
        Some(Measured::NotMeasured { missing }) => not_measured(name, missing),
    }
}

fn rows_by(request: &Request<'_>) -> RowsBy {
    match request.args.by {
        By::Name => RowsBy::Name,
        By::Task => RowsBy::Task,
    }
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
    let by = rows_by(found.request);
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
