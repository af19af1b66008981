//! The views of small and of real recordings: kept texts, widths, JSON keys, and figures counted by other means.

use serde_json::Value;
use std::io::Write;
use ttwu_analysis::{Analyser, AnalysisSet, Levels, Measured, TaskFilter};
use ttwu_model::Topology;
use ttwu_report::{
    Report, RowsBy, cpus, irqs, migrations, overview, placement, report_html, report_json, switches, wakers,
};
use ttwu_trace::{Input, TraceStream};

/// A pipe, a forked task, an interrupt and a tick on two CPUs: every kind of line that the views know.
const SMALL: &str = include_str!("small.trace.txt");

fn run(mut stream: TraceStream, name: &str, topology: Option<&str>) -> Report {
    let recorded = stream.meta().topology_text.clone();
    let text = topology.map(str::to_owned).or(recorded);
    let levels = text.as_deref().map_or_else(Levels::unknown, |text| {
        Levels::new(Topology::parse(text).unwrap_or_else(|error| panic!("{name}: {error}")))
    });
    let set = AnalysisSet {
        latency: Some(TaskFilter::default()),
        placement: true,
        cpus: true,
        migrations: true,
        switches: true,
        irqs: true,
        wakers: true,
        levels,
        ..AnalysisSet::default()
    };
    let mut analyser = Analyser::new(&set);
    while let Some(chunk) = stream.next_chunk() {
        analyser.feed(chunk.events, chunk.strings, chunk.tasks);
    }
    let parts = stream.finish().unwrap_or_else(|error| panic!("{name}: {error}"));
    let results = analyser.finish(&parts);
    Report::new(name, &parts, text.map(|_| "given".to_owned()), results)
}

fn small() -> Report {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(SMALL.as_bytes()).expect("written");
    let stream = TraceStream::from_input(Input::open(file.path()).expect("opened")).expect("ftrace text");
    run(stream, "small.trace.txt", Some("1 socket x 2 cores"))
}

fn recorded(name: &str) -> Option<Report> {
    let path = ttwu_testing::shared(&format!("traces/{name}"))?;
    let stream = TraceStream::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    Some(run(stream, name, None))
}

fn measured<T>(found: &Option<Measured<T>>) -> &T {
    found.as_ref().and_then(Measured::value).expect("measured")
}

fn views(report: &Report) -> Vec<(&'static str, String)> {
    let results = &report.results;
    vec![
        ("overview", overview(report)),
        ("placement", placement(measured(&results.placement), 10)),
        ("cpus", cpus(measured(&results.cpus), 10)),
        ("migrations", migrations(measured(&results.migrations), 10)),
        ("switches", switches(measured(&results.switches), 10)),
        ("irqs", irqs(measured(&results.irqs), 10)),
        ("wakers", wakers(measured(&results.wakers), report.span(), 10)),
    ]
}

#[test]
fn views_of_a_small_trace_are_as_kept() {
    for (name, text) in views(&small()) {
        ttwu_testing::golden(env!("CARGO_MANIFEST_DIR"), &format!("tests/golden/{name}.txt"), &text);
    }
}

#[test]
fn views_fit_eighty_columns_and_the_overview_one_screen() {
    let real = ["own/hs-full.data.xz", "own/tracefs/trace.txt.xz", "own/hack.data.xz"];
    let real = real.into_iter().filter_map(recorded);
    for report in real.chain([small()]) {
        let results = &report.results;
        let mut all = vec![("overview", overview(&report))];
        if results.irqs.as_ref().and_then(Measured::value).is_some() {
            all = views(&report);
        } else {
            all.push(("placement", placement(measured(&results.placement), 10)));
            all.push(("cpus", cpus(measured(&results.cpus), 10)));
            all.push(("switches", switches(measured(&results.switches), 10)));
            all.push(("migrations", migrations(measured(&results.migrations), 10)));
        }
        for (name, text) in all {
            for (number, line) in text.lines().enumerate() {
                let width = line.chars().count();
                assert!(width <= 80, "{} {name}:{}: {width} columns: {line}", report.file, number + 1);
            }
        }
        let lines = overview(&report).lines().count();
        assert!(lines <= 38, "{}: overview of {lines} lines", report.file);
    }
}

/// All keys of an object and of the objects in it.
fn keys(value: &Value, out: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                out.insert(key.clone());
                keys(value, out);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_json_key_is_documented() {
    let document = include_str!("../../../docs/json-report.md");
    let mut value = report_json(&small(), RowsBy::Name);
    // Their keys are data: tracepoints, causes, evidence, states.
    let data = ["events", "by_evidence", "by_state", "unknown"];
    fn prune(value: &mut Value, data: &[&str]) {
        match value {
            Value::Object(map) => {
                map.retain(|key, value| {
                    prune(value, data);
                    !(data.contains(&key.as_str()) && value.is_object())
                });
            }
            Value::Array(values) => values.iter_mut().for_each(|value| prune(value, data)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    prune(&mut value, &data);
    let mut found = std::collections::BTreeSet::new();
    keys(&value, &mut found);
    let quantiles = ["p75", "p90", "p95", "p99", "p99_5"];
    let missing: Vec<&String> = found
        .iter()
        .filter(|key| !quantiles.contains(&key.as_str()) && !document.contains(&format!("`{key}")))
        .collect();
    assert!(missing.is_empty(), "docs/json-report.md lacks {missing:?}");
}

#[test]
fn what_scripts_rely_on_is_there() {
    let value = report_json(&small(), RowsBy::Name);
    assert_eq!(value["schema"], "ttwu/report/1");
    let pointers = [
        "/health/clean",
        "/health/lost_events",
        "/health/lost_windows",
        "/health/unknown_events",
        "/health/notes",
        "/events/sched_switch",
        "/cpus",
        "/span_ns",
        "/latency/tasks/0/delay_ns/p50",
        "/latency/tasks/0/censored",
        "/placement/total",
        "/placement/by_prev/same_cpu",
        "/placement/by_waker/llc",
        "/placement/context/softirq",
        "/placement/stacked_while_idle/llc",
        "/placement/stacked_while_idle/machine",
        "/migrations/by_level/llc",
        "/migrations/by_cause/wakeup",
        "/switches/voluntary",
        "/switches/wakeup_preemption",
        "/switches/tick",
        "/switches/yield",
        "/switches/exit",
        "/switches/unknown",
    ];
    for pointer in pointers {
        assert!(value.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}");
    }
    // No clusters in this topology: not measured, not 0.
    assert_eq!(value.pointer("/placement/stacked_while_idle/cluster"), Some(&Value::Null));
    assert_eq!(value.pointer("/placement/sync"), Some(&Value::Null));
}

#[test]
fn analyses_without_their_events_say_what_is_missing() {
    let text = "          <idle>-0     [000] d..2.    10.000001: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=5 next_prio=120\n";
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(b"# tracer: nop\n#\n").and_then(|()| file.write_all(text.as_bytes())).expect("written");
    let report = run(TraceStream::open(file.path()).expect("ftrace text"), "one", None);
    let value = report_json(&report, RowsBy::Name);
    assert_eq!(value["placement"]["not_measured"][0], "sched_waking or sched_wakeup");
    assert_eq!(value["migrations"]["not_measured"][0], "sched_migrate_task");
    assert_eq!(value["cpu_use"]["cpus"][0]["hits"], Value::Null);
    let screen = overview(&report);
    assert!(
        screen.contains("placement  not measured: the recording lacks sched_waking or sched_wakeup"),
        "{screen}"
    );
}

/// Counted by a script of its own over what `perf script` and the tracer's text say: for each sched_waking the previous CPU,
/// the migrate event by the same task on the same CPU before the next switch-in, and the flags column for contexts.
#[test]
fn figures_equal_those_counted_from_text() {
    if let Some(report) = recorded("own/hs-full.data.xz") {
        let found = measured(&report.results.placement);
        // 1097 of them until the switch-in, and 3 still waiting at the end, all of them kept.
        assert_eq!((found.total, found.outcome.kept), (1097 + 3, 1088 + 3));
        assert_eq!((found.outcome.pulled, found.outcome.elsewhere), (6, 3));
        let migrations = measured(&report.results.migrations);
        assert_eq!((migrations.total, migrations.by_cause.iter().sum::<u64>()), (48, 48));
        assert_eq!(measured(&report.results.switches).total, 1764);
    }
    if let Some(report) = recorded("own/hack.data.xz") {
        let found = measured(&report.results.switches);
        assert_eq!((found.total, found.by_state["R"], found.by_state["R+"]), (13_281, 3_933, 198));
    }
    if let Some(report) = recorded("own/tracefs/trace.txt.xz") {
        let found = measured(&report.results.placement);
        assert_eq!(&found.context[..4], &[445, 53, 10, 0], "task, softirq, hardirq, idle");
        let found = measured(&report.results.switches);
        assert_eq!((found.by_cause.iter().sum::<u64>(), found.by_cause[6]), (874, 4), "unknown causes");
    }
}

#[test]
fn the_page_is_self_contained_and_escapes_names() {
    let mut report = small();
    report.file = "<script>alert(1)</script>".to_owned();
    let page = report_html(&report);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for forbidden in ["<script", "http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.len() < 60_000, "{} bytes", page.len());
    assert!(page.contains("<svg"), "drawings are inline");
}
