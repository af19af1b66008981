//! Small wake-ups and what is said of them.

use super::*;
use crate::analyse_one;
use crate::script::{lines, trace};
use std::fmt::Write;
use ttwu_model::Topology;

/// Two nodes of one cache each, two clusters of two CPUs in each cache.
fn levels() -> Levels {
    let machine = "2 sockets x 2 clusters x 2 cores; llc socket; node 0: 0-3; node 1: 4-7";
    Levels::new(Topology::parse(machine).expect(machine))
}

fn show(script: &str, levels: Levels) -> String {
    let trace = trace(script);
    let measured = analyse_one(&trace, PlacementAnalysis::new(levels));
    let Measured::Measured(out) = measured else { return format!("{measured:?}") };
    let mut text = String::new();
    let relations = |by: ByRelation| {
        by.iter().map(|(relation, count)| format!(" {}={count}", relation.name())).collect::<String>()
    };
    writeln!(text, "total {} prev{} waker{}", out.total, relations(out.by_prev), relations(out.by_waker))
        .unwrap();
    let Outcome { kept, pulled, elsewhere, unknown } = out.outcome;
    writeln!(text, "kept {kept} pulled {pulled} elsewhere {elsewhere} unknown {unknown}").unwrap();
    for context in WakeContext::ALL {
        if out.context[context as usize] != 0 {
            writeln!(text, "from {} {}", context.name(), out.context[context as usize]).unwrap();
        }
    }
    if out.new_tasks.total != 0 {
        writeln!(text, "new {}{}", out.new_tasks.total, relations(out.new_tasks.by_parent)).unwrap();
    }
    let Stacked { cluster, llc, machine, behind_waker, bound_kthreads, onto_busy, .. } = out.stacked;
    writeln!(
        text,
        "stacked {cluster:?} {llc:?} {machine} waker {behind_waker} bound {bound_kthreads} of {onto_busy}"
    )
    .unwrap();
    for example in &out.stacked_worst {
        let censored = if example.censored { " censored" } else { "" };
        writeln!(
            text,
            "at {} {} onto {} idle {} ({}) waited {}{censored}",
            example.at.as_ns(),
            example.wakee.name,
            example.cpu,
            example.idle_cpu,
            example.idle_relation.name(),
            example.waited.as_ns()
        )
        .unwrap();
    }
    text
}

fn check(script: &str, expected: &str) {
    assert_eq!(lines(&show(script, levels())), lines(expected), "script:\n{script}");
}

#[test]
fn kept_pulled_and_elsewhere_from_all_contexts() {
    check(
        "1 1 idle . sw a S idle
         1 5 idle . sw b S idle
         2 0 w . waking a 1
         3 0 w . wakeup a 1
         4 1 idle . sw idle R a
         5 1 a . sw a S idle
         6 0 w h waking a 1
         7 0 w h mig a 1 0
         8 0 w h wakeup a 0
         9 0 w . sw w S a
         10 2 idle s waking b 5
         11 2 idle s mig b 5 3
         12 2 idle s wakeup b 3
         13 2 idle . waking w 0
         14 2 idle . wakeup w 0",
        "total 4 prev same_cpu=2 cluster=1 remote=1 waker same_cpu=1 cluster=2 llc=1
         kept 2 pulled 1 elsewhere 1 unknown 0
         from task 1
         from softirq 1
         from hardirq 1
         from idle 1
         stacked Some(1) Some(1) 1 waker 0 bound 0 of 1
         at 13 w onto 0 idle 1 (cluster) waited 1 censored",
    );
}

#[test]
fn stacking_names_the_nearest_idle_cpu_at_the_decision_and_the_wait() {
    check(
        "1 0 w . sw idle R w
         1 7 idle . sw x S idle
         2 0 w . waking a 0
         3 3 idle . sw x S idle
         4 0 w . wakeup a 0
         9 0 w . sw w S a
         20 0 a . sw a S ksoftirqd/0
         21 7 idle . waking a 0
         22 7 idle . wakeup a 0
         30 0 ksoftirqd/0 . waking ksoftirqd/0 0
         31 0 ksoftirqd/0 . sw ksoftirqd/0 S a",
        "total 2 prev same_cpu=2 waker same_cpu=1 remote=1
         kept 2 pulled 0 elsewhere 0 unknown 0
         from task 1
         from idle 1
         stacked Some(0) Some(1) 2 waker 1 bound 0 of 2
         at 21 a onto 0 idle 3 (llc) waited 10
         at 2 a onto 0 idle 7 (remote) waited 7",
    );
}

#[test]
fn per_cpu_kernel_threads_are_counted_apart() {
    check(
        "1 0 w . sw idle R w
         1 1 idle . sw x S idle
         2 0 w s waking ksoftirqd/0 0
         3 0 w s wakeup ksoftirqd/0 0
         4 0 w . sw w R ksoftirqd/0",
        "total 1 prev same_cpu=1 waker same_cpu=1
         kept 1 pulled 0 elsewhere 0 unknown 0
         from softirq 1
         stacked Some(1) Some(1) 1 waker 0 bound 1 of 1
         at 2 ksoftirqd/0 onto 0 idle 1 (cluster) waited 2",
    );
}

#[test]
fn a_task_waking_on_its_way_to_sleep_is_not_stacked_behind_itself() {
    check(
        "1 0 a . sw idle R a
         1 1 idle . sw x S idle
         2 2 w . waking a 0
         3 0 a . sw a S idle
         4 0 idle h wakeup a 0
         5 0 idle . sw idle R a",
        "total 1 prev same_cpu=1 waker llc=1
         kept 1 pulled 0 elsewhere 0 unknown 0
         from task 1
         stacked Some(0) Some(0) 0 waker 0 bound 0 of 0",
    );
}

#[test]
fn new_tasks_are_apart() {
    check(
        "1 0 p . sw idle R p
         2 0 p . fork p c
         3 0 p . new c 5
         4 5 idle . sw idle R c
         5 0 p . waking d 0
         6 0 p . wakeup d 0",
        "total 1 prev same_cpu=1 waker same_cpu=1
         kept 1 pulled 0 elsewhere 0 unknown 0
         from task 1
         new 1 remote=1
         stacked Some(0) Some(0) 0 waker 0 bound 0 of 1",
    );
}

#[test]
fn without_topology_levels_are_not_known() {
    let shown = show(
        "1 0 w . sw idle R w
         1 1 idle . sw a S idle
         2 0 w . waking a 1
         3 0 w . mig a 1 0
         4 0 w . wakeup a 0",
        Levels::unknown(),
    );
    assert_eq!(
        lines(&shown),
        lines(
            "total 1 prev other_cpu=1 waker same_cpu=1
             kept 0 pulled 1 elsewhere 0 unknown 0
             from task 1
             stacked None None 1 waker 1 bound 0 of 1
             at 2 a onto 0 idle 1 (other_cpu) waited 2 censored"
        )
    );
}

#[test]
fn without_wake_ups_nothing_is_measured() {
    let trace = trace("1 0 w . sw idle R w");
    let measured = analyse_one(&trace, PlacementAnalysis::new(Levels::unknown()));
    assert_eq!(measured, Measured::NotMeasured { missing: vec!["sched_waking or sched_wakeup".to_owned()] });
}

#[test]
fn snapshots_survive_cpus_with_higher_numbers() {
    let shown = show(
        "1 0 w . sw idle R w
         1 3 idle . sw x S idle
         2 0 w . waking a 0
         3 200 idle . sw y S idle
         3 200 y . waking b 200
         4 0 w . wakeup a 0
         9 0 w . sw w S a",
        levels(),
    );
    assert!(shown.contains("at 2 a onto 0 idle 3 (llc) waited 7"), "{shown}");
}
