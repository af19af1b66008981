//! perf's rules on small sequences, one a test. That they add up to perf's tables is tested on recordings, in ttwu-report.

use super::*;
use crate::script::trace;
use crate::{AnalysisSet, Measured, analyse};
use ttwu_model::{NoteKind, Pid, TaskNote, Time, Trace};

fn latency(trace: &Trace, version: PerfVersion) -> PerfLatencyTable {
    let options = PerfLatencyOptions {
        version,
        per_thread: false,
        sort: PerfSortKey::DEFAULT.to_vec(),
        waking_recorded: None,
    };
    let set = AnalysisSet { perf_latency: Some(options), ..AnalysisSet::default() };
    analyse(trace, &set).perf_latency.expect("asked for").value().expect("measured").clone()
}

/// `name delays×sum` a row.
fn rows(table: &PerfLatencyTable) -> String {
    let row = |row: &PerfLatencyRow| format!("{} {}×{}", row.name, row.delays, row.delay_ns_sum);
    table.rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

fn check(script: &str, v6_1: &str, v7: &str) {
    let trace = trace(script);
    assert_eq!(rows(&latency(&trace, PerfVersion::V6_1)), v6_1, "6.1: {script}");
    assert_eq!(rows(&latency(&trace, PerfVersion::V7)), v7, "7.3: {script}");
}

#[test]
fn only_7_3_knows_sched_waking() {
    let waking = "10 0 a . sw a S idle\n 20 1 b . waking a 0\n 50 0 idle . sw idle R a";
    check(waking, "", "a 1×30");
    let both = "10 0 a . sw a S idle\n 20 1 b . waking a 0\n 30 1 b . wakeup a 0\n 50 0 idle . sw idle R a";
    check(both, "a 1×20", "a 1×30");
}

#[test]
fn a_preemption_in_the_kernel_is_sleep_to_6_1() {
    check("10 0 a . sw a R b\n 50 0 b . sw b S a", "a 1×40, b 1×0", "a 1×40, b 1×0");
    check("10 0 a . sw a R+ b\n 50 0 b . sw b S a", "b 1×0", "a 1×40, b 1×0");
}

#[test]
fn a_task_first_seen_switching_in_counts_a_delay_of_zero() {
    check("10 0 idle . sw idle R a", "a 1×0", "a 1×0");
}

#[test]
fn a_wakeup_of_a_task_not_asleep_is_ignored() {
    check("10 0 idle . new a 0\n 15 0 idle . wakeup a 0\n 20 0 idle . sw idle R a", "a 1×10", "a 1×10");
}

#[test]
fn switches_that_do_not_join_are_bugs() {
    let table = latency(
        &trace("10 0 idle . new a 0\n 20 0 idle . sw idle R a\n 30 0 b . sw b S idle"),
        PerfVersion::V7,
    );
    assert_eq!((table.switch_bugs, table.wakeups), (1, 1));
}

#[test]
fn equal_rows_keep_the_order_of_names_from_behind() {
    let table =
        latency(&trace("10 0 idle . sw idle R a\n 20 0 a . sw a S b\n 30 0 b . sw b S c"), PerfVersion::V7);
    assert_eq!(rows(&table), "c 1×0, b 1×0, a 1×0");
}

fn noted(script: &str, notes: &[(u64, NoteKind)]) -> Trace {
    let trace = trace(script);
    let mut parts = trace.parts().clone();
    for &(before, kind) in notes {
        parts.notes.push(TaskNote { before, at: Time::ZERO, kind });
    }
    Trace::from_parts(parts, trace.events().to_vec())
}

fn summary(trace: &Trace, version: PerfVersion) -> String {
    let options = PerfTimehistOptions {
        version,
        wakeups: false,
        migrations: false,
        summary_only: true,
        cpus_online: Some(1),
        waking_recorded: None,
    };
    let set = AnalysisSet { perf_timehist: Some(options), ..AnalysisSet::default() };
    let Some(Measured::Measured(summary)) = analyse(trace, &set).perf_timehist else { panic!("asked for") };
    let task = |task: &PerfTimehistTask| {
        let dead = if task.terminated { " dead" } else { "" };
        format!("{} {}×{}{dead}", task.name, task.count, task.run_ns)
    };
    summary.tasks.iter().map(task).collect::<Vec<_>>().join(", ")
}

/// Pids count from 101.
fn a() -> (Pid, Pid) {
    (Pid::new(101), Pid::new(101))
}

#[test]
fn names_are_the_notes_where_there_are_notes() {
    let script = "10 0 idle . sw idle R a\n 20 0 a . sw a S b";
    let mut with_name = noted(script, &[]);
    assert_eq!(rows(&latency(&with_name, PerfVersion::V7)), "b 1×0, a 1×0", "no notes: by the events");
    let b = with_name.strings().find("b").expect("a name");
    let (pid, tgid) = a();
    with_name = noted(script, &[(0, NoteKind::Name { pid, tgid, name: b })]);
    assert_eq!(rows(&latency(&with_name, PerfVersion::V7)), "b 1×0, :102 1×0", "one note: by notes alone");
}

#[test]
fn an_exited_thread_is_listed_apart_by_6_1_and_forgotten_by_7_3() {
    let (pid, tgid) = a();
    let name = trace("1 0 idle . sw idle R a").strings().find("a").expect("a name");
    let script =
        "10 0 idle . sw idle R a\n 40 0 a . sw a S idle\n 50 0 idle . sw idle R a\n 70 0 a . sw a Z idle";
    let trace = noted(script, &[(0, NoteKind::Name { pid, tgid, name }), (3, NoteKind::Exit { pid, tgid })]);
    assert_eq!(summary(&trace, PerfVersion::V6_1), "a[101] 2×50 dead");
    assert_eq!(summary(&trace, PerfVersion::V7), "a[101] 1×20");
}

#[test]
fn tasks_out_of_the_pid_table_are_one_thread() {
    let (pid, tgid) = a();
    let gone = Pid::UNKNOWN;
    let script = "10 0 idle . sw idle R a\n 40 0 a . sw a X idle";
    let trace =
        noted(script, &[(0, NoteKind::Exit { pid, tgid }), (1, NoteKind::Released { pid, tgid: gone })]);
    assert_eq!(summary(&trace, PerfVersion::V6_1), ":-1[-1] 1×30");
}
