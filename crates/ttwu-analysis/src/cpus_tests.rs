//! Small schedules and what the CPUs did in them.

use super::*;
use crate::analyse_one;
use crate::script::{lines, trace};
use std::fmt::Write;
use ttwu_model::Topology;

fn show(script: &str, levels: Levels) -> String {
    let trace = trace(script);
    let out = match analyse_one(&trace, CpusAnalysis::new(levels)) {
        Measured::Measured(out) => out,
        Measured::NotMeasured { missing } => return format!("not measured: {missing:?}"),
    };
    let mut text = String::new();
    for cpu in &out.cpus {
        let queue: String = cpu
            .queue
            .iter()
            .enumerate()
            .filter(|(_, time)| time.as_ns() != 0)
            .map(|(length, time)| format!(" {length}:{}", time.as_ns()))
            .collect();
        writeln!(
            text,
            "cpu{} busy {} idle {} unknown {} in {} hits {} queue{queue} mean {:?}",
            cpu.cpu,
            cpu.busy.as_ns(),
            cpu.idle.as_ns(),
            cpu.unknown.as_ns(),
            cpu.switches_in,
            cpu.hits,
            cpu.queue_mean_milli()
        )
        .unwrap();
    }
    for task in &out.tasks {
        let cells: String = task
            .cpus
            .iter()
            .map(|cell| format!(" #{}:{} ({} runs, {} ns)", cell.cpu, cell.hits, cell.runs, cell.run.as_ns()))
            .collect();
        writeln!(text, "{}{cells}", task.who.name).unwrap();
    }
    let violations = |name: &str, found: &Violations| {
        let longest: String = found
            .longest
            .iter()
            .map(|one| {
                format!(" {}+{}{}", one.at.as_ns(), one.length.as_ns(), if one.censored { "c" } else { "" })
            })
            .collect();
        format!("{name} {} for {}:{longest}\n", found.count, found.total.as_ns())
    };
    text.push_str(&violations("violations", &out.violations));
    if let Some(found) = &out.violations_in_llc {
        text.push_str(&violations("in llc", found));
    }
    text
}

fn check(script: &str, expected: &str) {
    assert_eq!(lines(&show(script, Levels::unknown())), lines(expected), "script:\n{script}");
}

#[test]
fn hits_runs_and_time_by_cpu() {
    check(
        "0 0 idle . sw idle R w
         0 1 idle . sw x S idle
         10 0 w . waking a 1
         11 0 w . wakeup a 1
         20 1 idle . sw idle R a
         50 1 a . sw a S idle
         60 0 w . waking a 1
         61 0 w . mig a 1 0
         62 0 w . wakeup a 0
         70 0 w . sw w S a
         100 0 a . sw a S idle",
        "cpu0 busy 100 idle 0 unknown 0 in 2 hits 1 queue 1:91 2:9 mean Some(1090)
         cpu1 busy 30 idle 70 unknown 0 in 1 hits 1 queue 0:59 1:41 mean Some(410)
         w #0:0 (1 runs, 70 ns)
         a #0:1 (1 runs, 30 ns) #1:1 (1 runs, 30 ns)
         violations 1 for 9: 61+9",
    );
}

#[test]
fn queue_length_counts_all_waiting_tasks() {
    check(
        "0 0 idle . sw idle R w
         10 0 w . waking a 0
         10 0 w . waking b 0
         30 0 w . sw w R a
         40 0 a . sw a S b
         50 0 b . sw b S w",
        "cpu0 busy 50 idle 0 unknown 0 in 4 hits 2 queue 1:10 2:10 3:30 mean Some(2400)
         w #0:0 (2 runs, 30 ns)
         a #0:1 (1 runs, 10 ns)
         b #0:1 (1 runs, 10 ns)
         violations 0 for 0:",
    );
}

#[test]
fn a_violation_ends_when_the_idle_cpu_takes_work_and_is_open_at_the_end() {
    check(
        "0 0 idle . sw idle R w
         0 1 idle . sw x S idle
         10 0 w . waking a 0
         11 0 w . wakeup a 0
         40 1 idle s mig a 0 1
         42 1 idle . sw idle R a
         50 1 a . sw a S idle
         60 0 w . waking b 0
         90 0 w . wakeup b 0",
        "cpu0 busy 90 idle 0 unknown 0 in 1 hits 2 queue 1:30 2:60 mean Some(1666)
         cpu1 busy 8 idle 82 unknown 0 in 1 hits 0 queue 0:80 1:10 mean Some(111)
         w #0:0 (1 runs, 90 ns)
         a #0:1 (0 runs, 0 ns) #1:0 (1 runs, 8 ns)
         b #0:1 (0 runs, 0 ns)
         violations 2 for 60: 10+30 60+30c",
    );
}

#[test]
fn within_a_cache_both_cpus_must_share_it() {
    let machine = Topology::parse("2 llcs x 2 cores").expect("a shape");
    let shown = show(
        "0 0 idle . sw idle R w
         0 2 idle . sw x S idle
         10 0 w . waking a 0
         20 1 idle . sw y S idle
         30 0 w . sw w S a
         40 0 a . sw a S idle",
        Levels::new(machine),
    );
    assert!(shown.ends_with("violations 1 for 20: 10+20\nin llc 1 for 10: 20+10\n"), "{shown}");
}

#[test]
fn nothing_is_known_before_a_cpus_first_switch_or_in_a_gap() {
    check(
        "0 0 idle . sw idle R w
         10 1 x . sw x S idle
         20 0 w . waking a 0
         40 0 w . lost
         60 0 a . sw a S w
         80 0 w . sw w S idle",
        "cpu0 busy 40 idle 0 unknown 40 in 2 hits 0 queue 1:40 mean Some(1000)
         cpu1 busy 0 idle 70 unknown 10 in 0 hits 0 queue 0:70 mean Some(0)
         w #0:0 (2 runs, 40 ns)
         violations 0 for 0:",
    );
}
