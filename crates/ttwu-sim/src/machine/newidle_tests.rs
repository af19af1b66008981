//! A newidle pass takes its time, and what happens meanwhile counts.

use super::tests::{quiet, scenario};
use crate::Outcome;
use ttwu_model::{CpuId, CpuSet};
use ttwu_workload::{Builder, Dist, ObjectKind, Op, Slot, Start};

const US: u64 = 1_000;
/// Four CPUs a node: a look at the node takes 400 us, one at the whole machine 800 us more.
const LOOK_US: u64 = 100;

fn cpus(list: &[u16]) -> Option<CpuSet> {
    Some(list.iter().map(|&cpu| CpuId::new(cpu)).collect())
}

/// A task sleeps on CPU 0, another one ends there after 1.1 ms, and CPU 0 looks for work, since hogs share CPU 2. So long after
/// that, CPU 1 wakes the first.
fn woken_in_a_pass(after_us: u64, allowed: &[u16], policy: &str, look_us: u64) -> Outcome {
    let mut builder = Builder::new("newidle");
    let semaphore = builder.object("semaphore", ObjectKind::Semaphore { initial: 0 });
    let run_us = |us: u64| Op::Run(Dist::constant(us * US));
    let hog = builder.program(vec![run_us(20_000)]);
    for _ in 0..2 {
        let task = builder.task("hog", hog, Start::At(0));
        builder.task_mut(task).allowed = cpus(&[2]);
    }
    let mask = builder.object("mask", ObjectKind::Cpus(cpus(allowed).unwrap()));
    let waits = builder.program(vec![
        Op::SetAffinity(Slot::Fixed(mask)),
        run_us(100),
        Op::Wait(Slot::Fixed(semaphore)),
        run_us(10),
    ]);
    let wakee = builder.task("wakee", waits, Start::At(0));
    builder.task_mut(wakee).allowed = cpus(&[0]);
    let ends = builder.program(vec![run_us(1_000)]);
    let ender = builder.task("ender", ends, Start::At(0));
    builder.task_mut(ender).allowed = cpus(&[0]);
    let posts = builder.program(vec![run_us(1_120 + after_us), Op::Post(Slot::Fixed(semaphore))]);
    let waker = builder.task("waker", posts, Start::At(0));
    builder.task_mut(waker).allowed = cpus(&[1]);
    let mut scenario = scenario("pipe:loop=1", "2 sockets x 4 cores; distances 21", policy);
    scenario.workload = builder.finish();
    scenario.settings.idle.deepest = Some(1);
    scenario.costs.set("balance_cpu_ns", look_us * US).unwrap();
    quiet(&scenario)
}

/// How long the wakee waited after it was woken, us.
fn waited_us(outcome: &Outcome) -> u64 {
    let wakee = &outcome.counters.tasks["wakee"];
    wakee.wake_latency_ns.max() / US
}

#[test]
fn a_wake_up_ends_a_pass_before_its_next_level() {
    // By the wake list (from v5.9 on the pass looks at it) or queued at once.
    for policy in [
        "linux-5.9 wake_list=always",
        "linux-5.19 wake_list=never",
        "linux-6.12 -NI_RANDOM",
        "linux-7.2 -NI_RANDOM",
    ] {
        let outcome = woken_in_a_pass(100, &[0], policy, LOOK_US);
        let waited = waited_us(&outcome);
        assert!((200..330).contains(&waited), "{policy}: {waited} us, about the 300 left of the first look");
    }
    // Woken when the node has been looked at, it waits for the look at the machine, which cannot be cut short.
    let waited = waited_us(&woken_in_a_pass(500, &[0], "linux-6.12 -NI_RANDOM", LOOK_US));
    assert!((600..730).contains(&waited), "{waited}");
    // The twin: looks that take no time keep nobody waiting.
    let waited = waited_us(&woken_in_a_pass(100, &[0], "linux-6.12 -NI_RANDOM", 0));
    assert!(waited < 20, "{waited}");
}

#[test]
fn a_cpu_that_looks_for_work_is_not_idle_to_others() {
    let outcome = woken_in_a_pass(100, &[0, 3], "linux-6.12 -NI_RANDOM", LOOK_US);
    assert_eq!(outcome.counters.migrations_wake, 1, "to CPU 3");
    assert!(waited_us(&outcome) < 20, "{}", waited_us(&outcome));
    // The twin: once it is idle, the task returns there.
    let outcome = woken_in_a_pass(5_000, &[0, 3], "linux-6.12 -NI_RANDOM", LOOK_US);
    assert_eq!(outcome.counters.migrations_wake, 0);
}
