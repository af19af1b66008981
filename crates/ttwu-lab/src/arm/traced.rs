//! A recording as one run of an arm: the waits of its tasks, its switches and migrations.
//!
//! Names and units are those of the parser of `perf sched latency`'s output, so that such a table stands beside a recording.

use super::Series;
use std::path::Path;
use ttwu_analysis::{Analyser, AnalysisSet, LatencyRow, Measured, TaskFilter};
use ttwu_stats::Better;
use ttwu_trace::TraceStream;

/// Names that have rows of their own: those that waited longest in sum, which are the workload's and not a daemon's.
const NAMES: usize = 5;

/// What a recording gives.
pub(super) struct Traced {
    /// Its host, where known.
    pub(super) hostname: Option<String>,
    /// One value each.
    pub(super) series: Vec<Series>,
    /// What could falsify them.
    pub(super) notes: Vec<String>,
}

/// Reads a recording of any format.
///
/// # Errors
/// Why it is none, as a fragment.
pub(super) fn open(path: &Path) -> Result<Traced, String> {
    let mut stream = TraceStream::open(path).map_err(|error| error.to_string())?;
    let latency = Some(TaskFilter::default());
    let mut analyser =
        Analyser::new(&AnalysisSet { latency, migrations: true, switches: true, ..AnalysisSet::default() });
    while let Some(chunk) = stream.next_chunk() {
        analyser.note(chunk.notes);
        analyser.feed(chunk.events, chunk.strings, chunk.tasks);
    }
    let parts = stream.finish().map_err(|error| error.to_string())?;
    let results = analyser.finish(&parts);
    let mut series = Vec::new();
    let mut put = |name: String, unit: &str, value: Option<f64>| {
        // What was not measured is not there.
        series.extend(value.map(|value| Series::plain(name, unit.to_owned(), Better::Lower, vec![value])));
    };
    let ms = |ns: u64| ns as f64 / 1e6;
    if let Some(report) = results.latency.as_ref().and_then(Measured::value) {
        put("delay_avg".to_owned(), "ms", report.total.delay.ns_avg().map(ms));
        let wakeup = report.total.wakeup.and_then(|wakeup| wakeup.ns);
        put("wakeup_latency_p50".to_owned(), "us", wakeup.map(|ns| ns.p50 as f64 / 1e3));
        put("wakeup_latency_p99".to_owned(), "us", wakeup.map(|ns| ns.p99 as f64 / 1e3));
        let waited = |row: &&LatencyRow| row.delay.count > 0;
        for row in report.by_name.iter().filter(waited).take(NAMES) {
            let Some(name) = &row.name else { continue };
            put(format!("{name} delay_avg"), "ms", row.delay.ns_avg().map(ms));
            put(format!("{name} delay_max"), "ms", Some(ms(row.delay.ns_max)));
        }
    }
    let seconds = results
        .span
        .map(|(from, to)| to.saturating_since(from).as_ns() as f64 / 1e9)
        .filter(|span| *span > 0.0);
    let rate = |total: Option<u64>| Some(total? as f64 / seconds?);
    put(
        "switch_rate".to_owned(),
        "1/s",
        rate(results.switches.as_ref().and_then(Measured::value).map(|found| found.total)),
    );
    put(
        "migration_rate".to_owned(),
        "1/s",
        rate(results.migrations.as_ref().and_then(Measured::value).map(|found| found.total)),
    );
    if series.is_empty() {
        return Err("a recording without switches and wake-ups".to_owned());
    }
    let mut notes = Vec::new();
    if !parts.health.is_clean() {
        notes.push(format!("{} is not clean; `ttwu report` says what is wrong with it", path.display()));
    }
    Ok(Traced { hostname: parts.meta.hostname, series, notes })
}
