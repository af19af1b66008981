//! Traces must be such as a kernel could emit: every rule that a reader of recordings relies on holds.

use super::tests::scenario;
use crate::{Options, run};
use std::collections::BTreeMap;
use ttwu_model::{EventKind, TaskId, Trace};

fn traced(workload: &str, topology: &str, policy: &str) -> Trace {
    let mut scenario = scenario(workload, topology, policy);
    scenario.until_ns = 100_000_000;
    run(&scenario, &mut Options::traced()).trace.expect("it was asked for")
}

/// Follows every task and CPU through the trace.
fn check(trace: &Trace) {
    let mut current: BTreeMap<u16, TaskId> = BTreeMap::new();
    let mut at: BTreeMap<TaskId, u16> = BTreeMap::new();
    let mut woken: BTreeMap<TaskId, u64> = BTreeMap::new();
    for event in trace.events() {
        let cpu = event.cpu.number();
        let by = current.get(&cpu).copied().unwrap_or(TaskId::IDLE);
        assert_eq!(event.by, by, "the current task of CPU {cpu}: {event:?}");
        match event.kind {
            EventKind::Switch { prev, next, prev_state, .. } => {
                assert_eq!(prev, by, "{event:?}");
                assert_ne!(prev, next, "{event:?}");
                if !next.is_idle() {
                    assert_eq!(at.get(&next), Some(&cpu), "{next:?} runs where it was put: {event:?}");
                    assert!(current.values().all(|&other| other != next), "{next:?} runs twice");
                }
                if !prev.is_idle() && !prev_state.is_runnable() {
                    woken.remove(&prev);
                }
                current.insert(cpu, next);
            }
            EventKind::Waking { wakee, prev_cpu, .. } => {
                assert_eq!(at.get(&wakee).copied().unwrap_or(prev_cpu.number()), prev_cpu.number());
                woken.insert(wakee, 1);
            }
            EventKind::Migrate { task, orig_cpu, dest_cpu, .. } => {
                assert_ne!(orig_cpu, dest_cpu);
                if let Some(&here) = at.get(&task) {
                    assert_eq!(here, orig_cpu.number(), "{event:?}");
                }
                assert!(current.values().all(|&other| other != task), "a running task moves: {event:?}");
                at.insert(task, dest_cpu.number());
            }
            EventKind::Wakeup { wakee, cpu, .. } => {
                assert!(woken.remove(&wakee).is_some(), "no waking before: {event:?}");
                let here = at.insert(wakee, cpu.number()).unwrap_or(cpu.number());
                assert_eq!(here, cpu.number(), "{event:?}");
            }
            EventKind::WakeupNew { wakee, cpu, .. } => {
                at.insert(wakee, cpu.number());
            }
            _ => {}
        }
    }
    assert!(trace.health().is_clean());
    assert!(trace.events().len() > 100);
}

#[test]
fn traces_are_consistent() {
    for (workload, topology, policy) in [
        ("hackbench:groups=1,fds=4,loops=20", "oracle-d", "linux-6.12"),
        ("hackbench:pipe,groups=2,fds=4,loops=20", "xeon-3204x2", "linux-5.9"),
        ("dbench", "oracle-d", "linux-5.5"),
        ("dmatest:threads_per_chan=4", "epyc-7313", "linux-5.15"),
        ("rpc", "kunpeng920", "linux-7.2"),
        ("massive_intr:nproc=20", "oracle-b", "eevdf-2023-04"),
        ("netperf", "oracle-c", "linux-6.6"),
    ] {
        check(&traced(workload, topology, policy));
    }
}

#[test]
fn decisions_point_at_their_wake_ups() {
    let mut scenario = scenario("rpc", "oracle-d", "linux-6.6");
    scenario.until_ns = 20_000_000;
    let outcome = run(&scenario, &mut Options::traced());
    let trace = outcome.trace.expect("it was asked for");
    assert!(outcome.decisions.len() > 50);
    for decision in &outcome.decisions {
        let event = &trace.events()[decision.event as usize];
        // A waker that waits for the wakee to leave its CPU decides later.
        assert!(event.at.as_ns() <= decision.at_ns, "{decision:?} {event:?}");
        match event.kind {
            EventKind::Waking { prev_cpu, .. } => assert_eq!(prev_cpu, decision.prev_cpu),
            EventKind::Fork { .. } => {}
            other => panic!("a decision at {other:?}"),
        }
    }
}

#[test]
fn each_wake_up_has_one_decision() {
    // Here wakers wait for wakees to leave their CPU, and events of others come between.
    let mut scenario = scenario("hackbench:groups=1,pipe,threads,loops=50", "oracle-a", "linux-6.1");
    scenario.until_ns = 50_000_000;
    let outcome = run(&scenario, &mut Options::traced());
    assert!(outcome.counters.on_cpu_spins > 0);
    let events: std::collections::BTreeSet<u64> =
        outcome.decisions.iter().map(|decision| decision.event).collect();
    assert_eq!(events.len(), outcome.decisions.len());
    let trace = outcome.trace.expect("it was asked for");
    for event in events {
        let kind = trace.events()[event as usize].kind;
        assert!(matches!(kind, EventKind::Waking { .. } | EventKind::Fork { .. }), "{kind:?}");
    }
}

#[test]
fn a_local_wake_up_that_preempts_shows_it_at_once() {
    // The kernel checks before it emits sched_wakeup, so that the flag is seen there.
    let trace = traced("pipe:loop=50", "1 socket x 1 core", "linux-6.1");
    let wakeups = trace.events().iter().filter(|event| matches!(event.kind, EventKind::Wakeup { .. }));
    let flagged = wakeups.clone().filter(|event| event.flags.need_resched() == Some(true)).count();
    assert!(flagged * 2 > wakeups.count(), "{flagged}");
}
