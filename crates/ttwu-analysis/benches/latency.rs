//! Events a second through the analyses, on one core, from memory.
//!
//! `cargo bench -p ttwu-analysis --bench latency`. The input is made here: 16 CPUs, 400 tasks in groups of 40, each sleeping, woken, running,
//! now and then preempted, with all five events that `perf sched record` records; no file is read, so the figures are those
//! of the folds alone.

use divan::counter::ItemsCount;
use ttwu_analysis::{Analyser, AnalysisSet, PerfLatencyOptions, PerfSortKey, PerfVersion, TaskFilter};
use ttwu_model::{
    CpuId, Event, EventFlags, EventKind, Pid, Prio, RawEvent, StateLetter, TaskState, Time, Trace,
    TraceBuilder,
};
use ttwu_testing::Rng;

const CPUS: usize = 16;
const TASKS: usize = 400;
const GROUP: usize = 40;

fn main() {
    divan::main();
}

/// A schedule in which every CPU runs one task after the other.
fn trace(rounds: usize) -> Trace {
    let mut rng = Rng::new(1);
    let mut builder = TraceBuilder::new();
    let names: Vec<_> =
        (0..TASKS).map(|task| builder.strings.intern(&format!("task{}", task % 20))).collect();
    let mut sleeping: Vec<usize> = (0..TASKS).collect();
    let mut current = [None; CPUS];
    let prio = Prio::new(120);
    let pid = |task: Option<usize>| Pid::new(task.map_or(0, |task| task as i32 + 100));
    let mut at = 1_000;
    for _ in 0..rounds {
        let cpu = rng.below(CPUS);
        let by = current[cpu];
        // As in real loads, tasks wake those that they work with; without such groups there would be as many pairs of waker
        // and wakee as events, and the analysis of wakers would measure the cache.
        let kin = |index: &usize| by.is_none_or(|by| by / GROUP == sleeping[*index] / GROUP);
        let tries: Vec<usize> = (0..40).map(|_| rng.below(sleeping.len())).collect();
        let index = tries.iter().copied().find(kin).unwrap_or(tries[0]);
        let wakee = sleeping.swap_remove(index);
        let here = CpuId::new(cpu as u16);
        let mut push = |by, kind, tasks: [Option<usize>; 2]| {
            at += 1 + rng.below(2_000) as u64;
            let flags = EventFlags::from_common_flags(0);
            let event = Event { at: Time::from_ns(at), by: pid(by), cpu: here, flags, kind };
            let names = tasks.map(|task| task.map(|task| names[task]));
            builder.push(&RawEvent { event, names });
        };
        let woken = pid(Some(wakee));
        push(by, EventKind::Waking { wakee: woken, prev_cpu: here, prio }, [Some(wakee), None]);
        push(by, EventKind::Wakeup { wakee: woken, cpu: here, prio }, [Some(wakee), None]);
        if let Some(task) = by {
            let kind = EventKind::StatRuntime { task: pid(by), runtime_ns: 1_000 };
            push(by, kind, [Some(task), None]);
        }
        let preempted = by.is_some() && index.is_multiple_of(8);
        let letter = if preempted { StateLetter::Running } else { StateLetter::Sleeping };
        let (prev_state, next) = (TaskState::new(letter, Some(preempted)), Some(wakee));
        let switch = |prev, next, prev_state| EventKind::Switch {
            prev: pid(prev),
            next: pid(next),
            prev_state,
            prev_prio: prio,
            next_prio: prio,
        };
        push(by, switch(by, next, prev_state), [by, next]);
        current[cpu] = next;
        if preempted {
            let asleep = TaskState::new(StateLetter::Sleeping, Some(false));
            push(next, switch(next, by, asleep), [next, by]);
            current[cpu] = by;
            sleeping.push(wakee);
        } else {
            sleeping.extend(by);
        }
    }
    builder.finish()
}

fn run(bencher: divan::Bencher<'_, '_>, set: &AnalysisSet) {
    let trace = trace(300_000);
    let count = ItemsCount::new(trace.events().len());
    bencher.counter(count).bench_local(|| {
        let mut analyser = Analyser::new(divan::black_box(set));
        analyser.feed(trace.events(), trace.strings(), trace.tasks());
        analyser.finish(trace.parts())
    });
}

fn perf(version: PerfVersion) -> Option<PerfLatencyOptions> {
    let sort = PerfSortKey::DEFAULT.to_vec();
    Some(PerfLatencyOptions { version, per_thread: false, sort, waking_recorded: Some(true) })
}

#[divan::bench]
fn timeline_alone(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet::default());
}

#[divan::bench]
fn latency(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { latency: Some(TaskFilter::default()), ..AnalysisSet::default() });
}

#[divan::bench]
fn perf_6_1(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { perf_latency: perf(PerfVersion::V6_1), ..AnalysisSet::default() });
}

#[divan::bench]
fn perf_7(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { perf_latency: perf(PerfVersion::V7), ..AnalysisSet::default() });
}

#[divan::bench]
fn placement(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { placement: true, ..AnalysisSet::default() });
}

#[divan::bench]
fn cpus(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { cpus: true, ..AnalysisSet::default() });
}

#[divan::bench]
fn migrations(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { migrations: true, ..AnalysisSet::default() });
}

#[divan::bench]
fn switches(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { switches: true, ..AnalysisSet::default() });
}

#[divan::bench]
fn irqs(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { irqs: true, ..AnalysisSet::default() });
}

#[divan::bench]
fn wakers(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &AnalysisSet { wakers: true, ..AnalysisSet::default() });
}

/// All analyses of ttwu's own, the list of runs excepted, whose cost is that of its text.
#[divan::bench]
fn all(bencher: divan::Bencher<'_, '_>) {
    let set = AnalysisSet {
        latency: Some(TaskFilter::default()),
        placement: true,
        cpus: true,
        migrations: true,
        switches: true,
        irqs: true,
        wakers: true,
        ..AnalysisSet::default()
    };
    run(bencher, &set);
}
