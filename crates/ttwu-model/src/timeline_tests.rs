//! Small event sequences and the intervals they mean, as text.

use super::*;
use crate::{Prio, StateLetter};
use std::fmt::Write;

/// Runs a script of one event a line (`at cpu by kind…`) and prints what each event ended or placed.
///
/// Kinds: `sw PREV STATE NEXT`, `waking P PREVCPU`, `wakeup P CPU`, `new P CPU`, `mig P DEST`, `lost`.
fn run(script: &str) -> String {
    let mut timeline = Timeline::new();
    let mut out = String::new();
    let mut last = Time::ZERO;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u32>().expect(line);
        let task = |index: usize| TaskId::new(number(index));
        let cpu = |index: usize| CpuId::new(u16::try_from(number(index)).expect(line));
        let prio = Prio::UNKNOWN;
        let kind = match words[3] {
            "sw" => {
                let (letter, preempted) = match words[5] {
                    "R" => (StateLetter::Running, false),
                    "R+" => (StateLetter::Running, true),
                    "S" => (StateLetter::Sleeping, false),
                    "X" => (StateLetter::Dead, false),
                    other => panic!("state {other}"),
                };
                let prev_state = TaskState::new(letter, Some(preempted));
                EventKind::Switch {
                    prev: task(4),
                    next: task(6),
                    prev_state,
                    prev_prio: prio,
                    next_prio: prio,
                }
            }
            "waking" => EventKind::Waking { wakee: task(4), prev_cpu: cpu(5), prio },
            "wakeup" => EventKind::Wakeup { wakee: task(4), cpu: cpu(5), prio },
            "new" => EventKind::WakeupNew { wakee: task(4), cpu: cpu(5), prio },
            "mig" => EventKind::Migrate { task: task(4), orig_cpu: cpu(5), dest_cpu: cpu(5), prio },
            "lost" => EventKind::Lost { count: None },
            other => panic!("kind {other}"),
        };
        last = Time::from_ns(u64::from(number(0)));
        let event = Event { at: last, by: task(2), cpu: cpu(1), flags: EventFlags::UNKNOWN, kind };
        timeline.step(&event);
        for interval in timeline.ended() {
            print(&mut out, interval);
        }
        if let Some(placed) = timeline.placed() {
            let wake = placed.wake;
            let moved = if wake.migrated { " migrated" } else { "" };
            writeln!(out, "placed {:?} on {:?} by {:?}{moved}", placed.wakee, wake.cpu, wake.waker_cpu)
                .unwrap();
        }
    }
    for interval in timeline.open(last) {
        print(&mut out, &interval);
    }
    let waiting: u32 = (0..timeline.cpu_bound()).map(|cpu| timeline.waiting(CpuId::new(cpu as u16))).sum();
    let open = timeline.open(last).filter(|interval| matches!(interval.phase, Phase::Runnable(_))).count();
    assert_eq!(waiting as usize, open, "waiting counts follow the phases");
    out
}

fn print(out: &mut String, interval: &Interval) {
    let phase = match interval.phase {
        Phase::Running => "ran".to_owned(),
        Phase::Runnable(wait) => format!("waited({wait:?})"),
        Phase::Sleeping(state) => format!("slept({state})"),
        Phase::Unknown | Phase::Dead => panic!("not an interval"),
    };
    let mark = if interval.censored { " censored" } else { "" };
    let (from, to) = (interval.from.as_ns(), interval.to.as_ns());
    writeln!(out, "{:?} {phase} {from}-{to} on {:?}{mark}", interval.task, interval.cpu).unwrap();
}

fn check(script: &str, expected: &str) {
    let lines = |text: &str| {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(lines(&run(script)), lines(expected), "script:\n{script}");
}

#[test]
fn a_wake_up_with_all_events() {
    check(
        "1 0 1 sw 0 R 1
         5 0 1 waking 2 1
         6 0 1 mig 2 0
         7 0 1 wakeup 2 0
         9 0 1 sw 1 R 2
         12 0 2 sw 2 S 1",
        "placed task2 on cpu0 by cpu0 migrated
         task1 ran 1-9 on cpu0
         task2 waited(Wakeup) 5-9 on cpu0
         task2 ran 9-12 on cpu0
         task1 waited(Preempted) 9-12 on cpu0
         task1 ran 12-12 on cpu0 censored
         task2 slept(S) 12-12 on cpu0 censored",
    );
}

#[test]
fn without_sched_wakeup_the_placement_is_known_at_the_switch_in() {
    check(
        "1 1 9 sw 0 R 2
         2 1 2 sw 2 S 0
         5 0 1 waking 2 1
         9 1 0 sw 0 R 2",
        "task2 ran 1-2 on cpu1
         task2 slept(S) 2-5 on cpu1
         task0 ran 2-9 on cpu1
         task2 waited(Wakeup) 5-9 on cpu1
         placed task2 on cpu1 by cpu0
         task2 ran 9-9 on cpu1 censored",
    );
}

#[test]
fn a_wake_up_racing_with_going_to_sleep_waits_from_the_switch_out() {
    check(
        "1 1 9 sw 9 S 2
         3 0 1 waking 2 1
         4 1 2 sw 2 S 0
         6 1 0 wakeup 2 1
         8 1 0 sw 0 R 2",
        "task2 ran 1-4 on cpu1
         task2 slept(S) 4-4 on cpu1
         placed task2 on cpu1 by cpu0
         task0 ran 4-8 on cpu1
         task2 waited(Wakeup) 4-8 on cpu1
         task2 ran 8-8 on cpu1 censored
         task9 slept(S) 1-8 on cpu1 censored",
    );
}

#[test]
fn a_wake_up_of_a_task_that_goes_on_running_starts_no_wait() {
    check(
        "1 1 9 sw 0 R 2
         3 0 1 waking 2 1
         4 0 1 wakeup 2 1
         8 1 2 sw 2 S 0
         9 1 0 sw 0 R 2",
        "task2 ran 1-8 on cpu1
         task0 ran 8-9 on cpu1
         task2 ran 9-9 on cpu1 censored",
    );
}

#[test]
fn a_balancer_move_is_not_a_placement() {
    check(
        "1 0 1 sw 0 R 1
         5 0 1 waking 2 0
         6 1 0 mig 2 1
         9 1 0 sw 0 R 2",
        "task2 waited(Wakeup) 5-9 on cpu1
         placed task2 on cpu0 by cpu0
         task1 ran 1-9 on cpu0 censored
         task2 ran 9-9 on cpu1 censored",
    );
}

#[test]
fn a_missing_switch_gives_nobody_run_time() {
    check(
        "1 0 0 sw 0 R 1
         5 0 2 sw 2 S 3",
        "task2 slept(S) 5-5 on cpu0 censored
         task3 ran 5-5 on cpu0 censored",
    );
}

#[test]
fn a_gap_ends_the_run_and_censors_waits_across_it() {
    check(
        "1 0 0 sw 0 R 1
         2 0 1 new 2 0
         4 0 0 lost
         6 0 3 sw 3 S 2",
        "placed task2 on cpu0 by cpu0
         task1 ran 1-2 on cpu0 censored
         task2 waited(New) 2-6 on cpu0 censored
         task2 ran 6-6 on cpu0 censored
         task3 slept(S) 6-6 on cpu0 censored",
    );
}

#[test]
fn an_exiting_task_is_not_waiting() {
    check(
        "1 0 0 sw 0 R 1
         5 0 1 sw 1 X 0",
        "task1 ran 1-5 on cpu0",
    );
}

#[test]
fn without_sched_waking_the_previous_cpu_is_that_of_the_last_switch_out() {
    let mut timeline = Timeline::new();
    let (cpu, task) = (CpuId::new, TaskId::new);
    let state = TaskState::new(StateLetter::Sleeping, Some(false));
    let (at, flags, prio) = (Time::ZERO, EventFlags::UNKNOWN, Prio::UNKNOWN);
    let out = EventKind::Switch {
        prev: task(2),
        next: TaskId::IDLE,
        prev_state: state,
        prev_prio: prio,
        next_prio: prio,
    };
    timeline.step(&Event { at, by: task(2), cpu: cpu(3), flags, kind: out });
    assert_eq!(timeline.changed_cpus(), [cpu(3)]);
    let moved = EventKind::Migrate { task: task(2), orig_cpu: cpu(3), dest_cpu: cpu(1), prio };
    timeline.step(&Event { at, by: task(1), cpu: cpu(0), flags, kind: moved });
    assert!(!timeline.moved_by_wakeup(), "no sched_waking: it cannot be told here");
    let woken = EventKind::Wakeup { wakee: task(2), cpu: cpu(1), prio };
    timeline.step(&Event { at, by: task(1), cpu: cpu(0), flags, kind: woken });
    let wake = timeline.placed().expect("complete").wake;
    assert_eq!((wake.prev_cpu, wake.cpu), (Some(cpu(3)), cpu(1)));
    assert_eq!(timeline.changed_cpus(), [cpu(1)]);
}

#[test]
fn idle_and_busy_cpus_are_those_that_are_known() {
    let mut timeline = Timeline::new();
    let switch = |prev, next| EventKind::Switch {
        prev: TaskId::new(prev),
        next: TaskId::new(next),
        prev_state: TaskState::new(StateLetter::Sleeping, Some(false)),
        prev_prio: Prio::UNKNOWN,
        next_prio: Prio::UNKNOWN,
    };
    let mut step = |cpu, kind| {
        let cpu = CpuId::new(cpu);
        timeline.step(&Event { at: Time::ZERO, by: TaskId::IDLE, cpu, flags: EventFlags::UNKNOWN, kind });
        (timeline.idle_cpus().to_string(), timeline.busy_cpus().to_string())
    };
    let sets = |idle: &str, busy: &str| (idle.to_owned(), busy.to_owned());
    assert_eq!(step(1, switch(0, 5)), sets("", "1"));
    assert_eq!(step(2, switch(6, 0)), sets("2", "1"));
    assert_eq!(step(1, switch(5, 0)), sets("1-2", ""));
    assert_eq!(step(2, EventKind::Lost { count: None }), sets("1", ""));
}
