//! perf's tables from the kept recordings, against what perf itself printed for them, to the digit.

use std::fmt::Write;
use std::io::Read;
use ttwu_analysis::{
    Analyser, AnalysisSet, PerfLatencyOptions, PerfLatencyTable, PerfSortKey, PerfTimehistOptions,
    PerfVersion,
};
use ttwu_report::{PerfTimehistColumns, PerfTimehistPrinter, perf_latency, perf_latency_histogram};
use ttwu_trace::TraceStream;

const RECORDINGS: [&str; 4] = ["hs", "hs-full", "hs-lost", "hack"];
const VERSIONS: [(PerfVersion, &str); 2] = [(PerfVersion::V6_1, "perf61"), (PerfVersion::V7, "perf73")];

fn open(recording: &str) -> Option<TraceStream> {
    let path = ttwu_testing::shared(&format!("traces/own/{recording}.data.xz"))?;
    Some(TraceStream::open(&path).unwrap_or_else(|error| panic!("{recording}: {error}")))
}

/// What perf printed; `.xz` or not.
fn printed(name: &str) -> Option<String> {
    let folder = ttwu_testing::shared("traces/own/oracle")?;
    if let Ok(text) = std::fs::read_to_string(folder.join(name)) {
        return Some(text);
    }
    let packed = std::fs::read(folder.join(format!("{name}.xz"))).expect(name);
    let mut text = String::new();
    xz4rust::XzReader::new(std::io::Cursor::new(packed)).read_to_string(&mut text).expect(name);
    Some(text)
}

/// The first line that differs, with its number, so that a failure can be read.
fn assert_same(what: &str, got: &str, expected: &str) {
    let (got_lines, expected_lines): (Vec<_>, Vec<_>) = (got.lines().collect(), expected.lines().collect());
    let mut report = String::new();
    let mut differing = 0;
    for index in 0..got_lines.len().max(expected_lines.len()) {
        let (mine, perfs) = (got_lines.get(index), expected_lines.get(index));
        if mine != perfs {
            differing += 1;
            if differing <= 5 {
                let _ = write!(report, "\nline {}\n  perf {perfs:?}\n  ttwu {mine:?}", index + 1);
            }
        }
    }
    assert!(differing == 0, "{what}: {differing} of {} lines differ{report}", expected_lines.len());
    assert_eq!(got, expected, "{what}: line ends");
}

fn waking_recorded(stream: &TraceStream) -> Option<bool> {
    Some(stream.meta().events_recorded.as_ref()?.contains("sched:sched_waking"))
}

fn latency(
    recording: &str,
    version: PerfVersion,
    per_thread: bool,
    sort: &[PerfSortKey],
) -> Option<PerfLatencyTable> {
    let mut stream = open(recording)?;
    let waking_recorded = waking_recorded(&stream);
    let options = PerfLatencyOptions { version, per_thread, sort: sort.to_vec(), waking_recorded };
    let mut analyser = Analyser::new(&AnalysisSet { perf_latency: Some(options), ..AnalysisSet::default() });
    while let Some(chunk) = stream.next_chunk() {
        analyser.note(chunk.notes);
        analyser.feed(chunk.events, chunk.strings, chunk.tasks);
    }
    let parts = stream.finish().expect(recording);
    let results = analyser.finish(&parts);
    Some(results.perf_latency.expect("asked for").value().expect("sched_switch is there").clone())
}

fn check_latency(recording: &str, suffix: &str, per_thread: bool, sort: &[PerfSortKey]) {
    for (version, perf) in VERSIONS {
        let name = format!("{recording}.{perf}.latency{suffix}.txt");
        let Some(table) = latency(recording, version, per_thread, sort) else { return };
        let Some(expected) = printed(&name) else { return };
        assert_same(&name, &perf_latency(&table), &expected);
    }
}

#[test]
fn latency_by_name() {
    for recording in RECORDINGS {
        check_latency(recording, "", false, &PerfSortKey::DEFAULT);
    }
}

#[test]
fn latency_by_thread_sorted_by_maximum() {
    for recording in RECORDINGS {
        check_latency(recording, "-p-smax", true, &[PerfSortKey::Max]);
    }
}

#[test]
fn latency_histogram() {
    for recording in RECORDINGS {
        let name = format!("{recording}.perf73.latency-H.txt");
        let Some(table) = latency(recording, PerfVersion::V7, false, &PerfSortKey::DEFAULT) else { return };
        let Some(expected) = printed(&name) else { return };
        assert_same(&name, &perf_latency_histogram(&table), &expected);
    }
}

fn timehist(recording: &str, version: PerfVersion, summary_only: bool) -> Option<String> {
    let mut stream = open(recording)?;
    let cpus_online = stream.meta().facts.get("cpus_online_count").and_then(|text| text.parse().ok());
    let options = PerfTimehistOptions {
        version,
        wakeups: !summary_only,
        migrations: !summary_only,
        summary_only,
        cpus_online,
        waking_recorded: waking_recorded(&stream),
    };
    let mut analyser = Analyser::new(&AnalysisSet { perf_timehist: Some(options), ..AnalysisSet::default() });
    let columns = PerfTimehistColumns { cpu_visual: true, state: true, next: true, wakeups: true };
    let mut printer = PerfTimehistPrinter::new(version, columns, cpus_online);
    let mut out = Vec::new();
    if !summary_only {
        printer.header(&mut out).expect("memory");
    }
    while let Some(chunk) = stream.next_chunk() {
        analyser.note(chunk.notes);
        analyser.feed(chunk.events, chunk.strings, chunk.tasks);
        for row in analyser.perf_timehist_rows() {
            printer.row(&mut out, &row).expect("memory");
        }
    }
    let results = analyser.finish(&stream.finish().expect(recording));
    if summary_only {
        let summary = results.perf_timehist.expect("asked for");
        printer.summary(&mut out, summary.value().expect("sched_switch is there")).expect("memory");
    }
    Some(String::from_utf8(out).expect("text"))
}

#[test]
fn timehist_summary() {
    for recording in RECORDINGS {
        for (version, perf) in VERSIONS {
            let name = format!("{recording}.{perf}.timehist-s.txt");
            let Some(got) = timehist(recording, version, true) else { return };
            let Some(expected) = printed(&name) else { return };
            assert_same(&name, &got, &expected);
        }
    }
}

#[test]
fn timehist_list() {
    // No list was kept of `hack`: it has 42 000 rows.
    for recording in ["hs", "hs-full", "hs-lost"] {
        for (version, perf) in VERSIONS {
            let name = format!("{recording}.{perf}.timehist-wMnV.txt");
            let Some(got) = timehist(recording, version, false) else { return };
            let Some(expected) = printed(&name) else { return };
            assert_same(&name, &got, &expected);
        }
    }
}
