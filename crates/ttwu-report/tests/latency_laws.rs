//! Laws that the latency analysis must obey on real recordings, and its table as a person sees it.

use ttwu_analysis::{
    AnalysisSet, LatencyReport, PerfLatencyOptions, PerfLatencyTable, PerfSortKey, PerfVersion, TaskFilter,
    analyse,
};
use ttwu_model::{EventKind, Phase, Time, Timeline, Trace};
use ttwu_report::{RowsBy, SchbenchGeneration, latency, latency_json, perf_latency_sum, schbench};

fn recording(name: &str) -> Option<Trace> {
    let path = ttwu_testing::shared(&format!("traces/own/{name}.data.xz"))?;
    Some(ttwu_trace::read(&path).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn both(trace: &Trace) -> (LatencyReport, PerfLatencyTable) {
    let sort = PerfSortKey::DEFAULT.to_vec();
    let set = AnalysisSet {
        latency: Some(TaskFilter::default()),
        perf_latency: Some(PerfLatencyOptions {
            version: PerfVersion::V7,
            per_thread: false,
            sort,
            waking_recorded: None,
        }),
        ..AnalysisSet::default()
    };
    let results = analyse(trace, &set);
    let latency = results.latency.expect("asked for").value().expect("measured").clone();
    (latency, results.perf_latency.expect("asked for").value().expect("measured").clone())
}

/// Every CPU's time between its first and last switch is some task's run, the idle task's included.
#[test]
fn runs_and_idle_fill_each_cpu() {
    // `hs` has no switch that contradicts the one before; the other recordings do.
    let Some(trace) = recording("hs") else { return };
    assert_eq!(trace.health().switch_mismatches, 0);
    let mut timeline = Timeline::new();
    let mut filled = [0_u64; 2];
    let mut wall = [(None, Time::ZERO); 2];
    for event in trace.events() {
        timeline.step(event);
        let runs = timeline.ended().iter().filter(|interval| interval.phase == Phase::Running);
        for run in runs {
            filled[run.cpu.index()] += run.length().as_ns();
        }
        if let EventKind::Switch { .. } = event.kind {
            let (first, last) = &mut wall[event.cpu.index()];
            first.get_or_insert(event.at);
            *last = event.at;
        }
    }
    for (cpu, ((first, last), filled)) in wall.into_iter().zip(filled).enumerate() {
        let wall = last.saturating_since(first.expect("both CPUs switch")).as_ns();
        assert_eq!(filled, wall, "cpu {cpu}");
    }
}

/// perf 7 counts a delay at each switch in of a task that waits, and one of 0 for each task that it sees first then. The
/// same waits are ours, but for those first ones, of which we do not know the length. perf too leaves out what we count as
/// cut by a gap or a race.
#[test]
fn waits_are_perf_7s_but_for_those_cut() {
    let Some(trace) = recording("hs") else { return };
    let (report, perf) = both(&trace);
    let cut = report.total.censored;
    assert_eq!(report.total.delay.count + cut.by_start, perf.delays);
    let sums: u64 = perf.rows.iter().map(|row| row.delay_ns_sum).sum();
    assert_eq!(report.total.delay.ns_sum, sums, "what perf adds for those cut is 0");
    let max = perf.rows.iter().max_by_key(|row| row.delay_ns_max).expect("rows");
    assert_eq!(
        (report.total.delay.ns_max, report.total.delay.max_from, report.total.delay.max_to),
        (max.delay_ns_max, max.max_from, max.max_to)
    );
}

/// Rows of tasks, of names, and the total are the same waits.
#[test]
fn rows_add_up_to_the_total() {
    for name in ["hs", "hs-full", "hs-lost", "hack"] {
        let Some(trace) = recording(name) else { return };
        let (report, _) = both(&trace);
        for (what, rows) in [("tasks", &report.by_task), ("names", &report.by_name)] {
            let sum = |of: fn(&ttwu_analysis::LatencyRow) -> u64| rows.iter().map(of).sum::<u64>();
            assert_eq!(sum(|row| row.delay.count), report.total.delay.count, "{name}: {what}");
            assert_eq!(sum(|row| row.delay.ns_sum), report.total.delay.ns_sum, "{name}: {what}");
            assert_eq!(sum(|row| row.runtime_ns), report.total.runtime_ns, "{name}: {what}");
            assert_eq!(sum(|row| row.censored.total()), report.total.censored.total(), "{name}: {what}");
        }
        for row in report.by_task.iter().chain(&report.by_name).chain([&report.total]) {
            let parts = [row.wakeup.as_ref(), row.new.as_ref(), Some(&row.preempted)];
            let parts: u64 = parts.into_iter().flatten().map(|part| part.count).sum();
            assert_eq!(parts, row.delay.count, "{name}: {:?}", row.name);
            if let (Some(whole), Some(first), Some(second)) =
                (row.wakeup, row.waking_to_wakeup, row.wakeup_to_switch)
            {
                assert!(first.ns_sum + second.ns_sum <= whole.ns_sum, "{name}: {:?}", row.name);
            }
        }
    }
}

#[test]
fn the_table_is_80_columns_and_says_what_is_missing() {
    let Some(trace) = recording("hs") else { return };
    let (report, _) = both(&trace);
    let text = latency(&report, RowsBy::Name, 5);
    let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let start: Vec<_> = text.lines().take(10).collect();
    assert_eq!(start, EXPECTED.lines().collect::<Vec<_>>(), "{text}");
    assert!(text.contains("not measured: waking and queueing apart (needs sched_wakeup)"), "{text}");
}

/// Counts, means, medians, p99 and run time of the last two lines were computed apart from this program, from perf script's
/// text of the same recording.
const EXPECTED: &str = "\
waits of all tasks       count     avg     p50     p99     max      max from, s
after a wake-up           1314  1.77ms  16.2us  31.4ms   197ms      1940.523043
  waking to queued        not measured
  queued to running       not measured
of a new task               40   114ms  8.45ms   317ms   317ms      1940.475690
after a preemption         954  2.47ms  46.1us  46.2ms   344ms      1940.476961
all                       2308  4.01ms  21.9us  81.1ms   344ms      1940.476961

name                tasks     run   waits    cut     avg     p50     p99     max
sched-messaging        41   153ms    1003      0  7.79ms  10.6us   262ms   344ms";

#[test]
fn json_has_the_keys_that_scripts_rely_on() {
    let Some(trace) = recording("hs-full") else { return };
    let (report, _) = both(&trace);
    let measured = ttwu_analysis::Measured::Measured(report);
    let json = latency_json(&measured, RowsBy::Name);
    let row = &json["tasks"][0];
    for key in
        ["runtime_ns", "switches", "delays", "delay_ns_sum", "delay_ns_avg", "delay_ns_max", "censored"]
    {
        assert!(row[key].is_u64(), "{key}: {row}");
    }
    assert!(row["name"].is_string() && row["pids"].is_array() && row["delay_ns"]["p99_9"].is_u64(), "{row}");
    assert!(row["waking_to_wakeup"]["count"].is_u64(), "this recording has both events: {row}");
}

#[test]
fn other_styles() {
    let Some(trace) = recording("hs") else { return };
    let (report, perf) = both(&trace);
    let sum = perf_latency_sum(&perf);
    let row = sum.lines().find(|line| line.contains("sched-messaging")).expect("a row");
    assert_eq!(
        row,
        "  sched-messaging:(41)  |    151.263 ms |     1003 | avg:   7.786 ms | max: 344.024 ms | sum:  7808.966 ms |"
    );
    let total = sum.lines().find(|line| line.contains("TOTAL")).expect("a total");
    assert_eq!(
        total,
        "  TOTAL:                |   1143.030 ms |     2311 |                 | max: 344.024 ms | sum:  9247.041 ms |"
    );
    let table = report.schbench.expect("wake-ups were recorded");
    let lines = schbench(&table, SchbenchGeneration::Y2023, 1);
    assert!(lines.contains("\t* 99.0th: 31456      (119 samples)\n"), "{lines}");
}
