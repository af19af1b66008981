//! Small event sequences and the rows they make, as text.

use super::*;
use crate::{AnalysisSet, analyse};
use std::fmt::Write;
use ttwu_model::{CpuId, EventFlags, Prio, RawEvent, StateLetter, TaskState, TraceBuilder};

/// One event a line, `at cpu kind…`: `sw PREV STATE NEXT`, `waking P`, `wakeup P`, `new P`, `lost`. Times in microseconds.
fn trace(script: &str) -> ttwu_model::Trace {
    let mut builder = TraceBuilder::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let pid = |index: usize| Pid::new(words[index].parse().expect(line));
        let cpu = CpuId::new(words[1].parse().expect(line));
        let prio = Prio::UNKNOWN;
        let kind = match words[2] {
            "sw" => {
                let letter = StateLetter::from_letter(words[4].chars().next().expect(line));
                let prev_state = TaskState::new(letter, Some(words[4].ends_with('+')));
                let (prev, next) = (pid(3), pid(5));
                EventKind::Switch { prev, next, prev_state, prev_prio: prio, next_prio: prio }
            }
            "waking" => EventKind::Waking { wakee: pid(3), prev_cpu: cpu, prio },
            "wakeup" => EventKind::Wakeup { wakee: pid(3), cpu, prio },
            "new" => EventKind::WakeupNew { wakee: pid(3), cpu, prio },
            "lost" => EventKind::Lost { count: None },
            other => panic!("kind {other} in {line}"),
        };
        let at = Time::from_ns(words[0].parse::<u64>().expect(line) * 1000);
        let event = Event { at, by: Pid::IDLE, cpu, flags: EventFlags::UNKNOWN, kind };
        let mut names = [None; 2];
        for (name, pid) in names.iter_mut().zip(kind.tasks()) {
            let text = pid.map(|pid| if pid.number() < 10 { "worker" } else { "other" });
            *name = text.map(|text| builder.strings.intern(text));
        }
        builder.push(&RawEvent { event, names });
    }
    builder.finish()
}

fn text(row: &LatencyRow) -> String {
    let part = |summary: &Summary| {
        let us = |ns: u64| ns / 1000;
        format!(
            "{}×{}≤{}@{}",
            summary.count,
            us(summary.ns_sum),
            us(summary.ns_max),
            us(summary.max_from.as_ns())
        )
    };
    let maybe = |summary: &Option<Summary>| summary.as_ref().map_or("-".to_owned(), part);
    let mut out = format!("run {} sw {}", row.runtime_ns / 1000, row.switches);
    let _ = write!(out, " delay {} wakeup {}", part(&row.delay), maybe(&row.wakeup));
    let _ = write!(out, " [{} {}]", maybe(&row.waking_to_wakeup), maybe(&row.wakeup_to_switch));
    let _ = write!(out, " new {} preempted {}", maybe(&row.new), part(&row.preempted));
    let Censored { by_start, by_gap, by_race, by_end } = row.censored;
    let _ = write!(out, " censored {by_start}/{by_gap}/{by_race}/{by_end}");
    out
}

fn report(script: &str) -> LatencyReport {
    let set = AnalysisSet { latency: Some(TaskFilter::default()), ..AnalysisSet::default() };
    let results = analyse(&trace(script), &set);
    results.latency.expect("asked for").value().expect("measured").clone()
}

fn check(script: &str, pid: i32, expected: &str) {
    let report = report(script);
    let row = report.by_task.iter().find(|row| row.pids == [Pid::new(pid)]).expect("the task has a row");
    assert_eq!(text(row), expected, "{script}");
}

#[test]
fn a_wakeup_is_split_at_the_queueing() {
    check(
        "10 0 sw 1 S 0
         20 1 waking 1
         23 1 wakeup 1
         30 0 sw 0 R 1
         70 0 sw 1 S 0",
        1,
        "run 40 sw 2 delay 1×10≤10@20 wakeup 1×10≤10@20 [1×3≤3@20 1×7≤7@23] new - preempted 0×0≤0@0 \
         censored 0/0/0/0",
    );
}

#[test]
fn a_preemption_is_no_wakeup_latency() {
    check(
        "10 0 sw 0 R 1
         20 0 waking 2
         30 0 sw 1 R+ 2
         35 0 sw 2 S 1
         50 0 sw 1 S 0",
        1,
        "run 35 sw 2 delay 1×5≤5@30 wakeup 0×0≤0@0 [- -] new - preempted 1×5≤5@30 censored 1/0/0/0",
    );
}

#[test]
fn a_new_task_waits_for_its_first_run() {
    check(
        "10 0 new 3
         14 1 sw 0 R 3
         20 1 sw 3 X 0",
        3,
        "run 6 sw 1 delay 1×4≤4@10 wakeup - [- -] new 1×4≤4@10 preempted 0×0≤0@0 censored 0/0/0/0",
    );
}

#[test]
fn waits_cut_by_start_gap_and_end_are_counted_and_not_averaged() {
    check(
        "10 0 sw 0 R 1
         20 0 sw 1 R 2
         25 0 lost
         90 0 sw 2 S 1
         95 0 sw 1 R 2
         99 1 sw 0 R 3",
        1,
        "run 15 sw 2 delay 0×0≤0@0 wakeup - [- -] new - preempted 0×0≤0@0 censored 1/1/0/1",
    );
}

#[test]
fn a_wakeup_that_races_with_going_to_sleep_is_cut_unless_the_queueing_is_seen() {
    let race = "10 0 sw 1 S 0
         20 1 waking 1
         30 0 sw 0 R 1
         35 1 waking 1
         40 0 sw 1 S 0";
    check(
        &format!("{race}\n 50 0 sw 0 R 1"),
        1,
        "run 10 sw 2 delay 1×10≤10@20 wakeup 1×10≤10@20 [- -] new - preempted 0×0≤0@0 censored 0/0/1/0",
    );
    check(
        &format!("{race}\n 42 1 wakeup 1\n 50 0 sw 0 R 1"),
        1,
        "run 10 sw 2 delay 2×20≤10@20 wakeup 2×20≤10@20 [1×2≤2@40 1×8≤8@42] new - preempted 0×0≤0@0 \
         censored 0/0/0/0",
    );
}

#[test]
fn a_task_that_never_waits_has_no_delay() {
    check(
        "10 0 sw 0 R 1
         20 0 sw 1 S 0
         30 1 waking 1
         30 0 sw 0 R 1",
        1,
        "run 10 sw 1 delay 1×0≤0@30 wakeup 1×0≤0@30 [- -] new - preempted 0×0≤0@0 censored 1/0/0/0",
    );
}

#[test]
fn a_missing_switch_out_invents_no_run_time() {
    // Task 1's switch out is missing; it was seen to run for nothing.
    check(
        "10 0 sw 0 R 1
         90 0 sw 2 S 0
         95 0 waking 1
         99 0 sw 0 R 1",
        1,
        "run 0 sw 0 delay 1×4≤4@95 wakeup 1×4≤4@95 [- -] new - preempted 0×0≤0@0 censored 1/0/0/0",
    );
}

#[test]
fn names_merge_tasks_and_totals_merge_names() {
    let report = report(
        "10 0 sw 1 S 0
         10 1 sw 2 S 0
         20 0 waking 1
         21 0 waking 2
         30 0 sw 0 R 1
         35 1 sw 0 R 2
         40 0 sw 1 S 11
         41 1 sw 2 S 0",
    );
    let rows: Vec<_> = report.by_name.iter().map(|row| (row.name.as_deref(), row.tasks.len())).collect();
    assert_eq!(rows, [(Some("worker"), 2), (Some("other"), 1)]);
    assert_eq!(report.by_name[0].delay.ns_sum, 24_000);
    assert_eq!(report.total.delay.count, 2);
    assert_eq!(report.schbench.expect("wake-ups were recorded").samples, 2);
}

#[test]
fn a_filter_leaves_out_other_tasks_everywhere() {
    let events = trace(
        "10 0 sw 1 S 0
         20 0 waking 1
         30 0 sw 0 R 1
         40 0 sw 1 R 11
         50 0 sw 11 S 1",
    );
    for (filter, rows) in [
        (TaskFilter { pids: vec![Pid::new(11)], names: Vec::new() }, vec!["other"]),
        (TaskFilter { pids: Vec::new(), names: vec!["worker".into()] }, vec!["worker"]),
    ] {
        let set = AnalysisSet { latency: Some(filter.clone()), ..AnalysisSet::default() };
        let report = analyse(&events, &set).latency.expect("asked for").value().expect("measured").clone();
        let names: Vec<_> = report.by_name.iter().filter_map(|row| row.name.as_deref()).collect();
        assert_eq!(names, rows, "{filter:?}");
        assert_eq!(report.total.tasks.len(), 1, "{filter:?}");
    }
}

#[test]
fn what_was_not_recorded_is_not_measured() {
    let report = report("10 0 sw 1 S 0");
    assert_eq!((report.by_task[0].wakeup, report.by_task[0].new), (None, None));
    let missing: Vec<_> = report.not_measured.iter().filter_map(|text| text.split(" (").next()).collect();
    assert_eq!(missing, ["waits after wake-ups", "first waits of new tasks"]);
    let set = AnalysisSet { latency: Some(TaskFilter::default()), ..AnalysisSet::default() };
    let nothing = analyse(&trace("10 0 waking 1"), &set).latency.expect("asked for");
    assert_eq!(nothing, Measured::NotMeasured { missing: vec!["sched_switch".into()] });
}

#[test]
fn waits_are_classed_by_powers_of_two() {
    let trace = trace(
        "0 0 sw 1 R 2
         5 0 waking 1
         7 0 sw 2 S 1
         10 0 sw 1 R 2
         11 0 sw 2 S 1
         15 0 waking 2
         15 0 sw 1 S 2",
    );
    let set = AnalysisSet { latency: Some(TaskFilter::default()), ..AnalysisSet::default() };
    let latency = analyse(&trace, &set).latency.expect("asked for");
    let classes = &latency.value().expect("measured").histogram;
    // Task 1 waits 7 us and 1 us after preemptions (1 is still waiting when it is "woken"); task 2 waits 0 ns.
    let classes: Vec<_> = classes
        .iter()
        .filter(|class| class.wakeup + class.preempted > 0)
        .map(|class| (class.below_ns, class.wakeup, class.preempted))
        .collect();
    assert_eq!(classes, [(1, 1, 0), (1024, 0, 1), (8192, 0, 1)]);
}
