//! What tasks wait for behaves as its original: locks exclude, barriers hold, workers step in, devices queue.

use super::tests::{quiet, scenario};
use crate::{MeterValue, Outcome, Scenario};
use ttwu_model::{CpuId, CpuSet};
use ttwu_workload::{
    Bound, Builder, Device, Dist, InterruptCpu, MeterKind, ObjectId, ObjectKind, Op, Reg, Request, Slot,
    Start, Work, WorkQueue,
};

const MS: u64 = 1_000_000;

fn run(builder: Builder, topology: &str) -> Outcome {
    let base = scenario("pipe:loop=1", topology, "linux-6.6");
    quiet(&Scenario { workload: builder.finish(), ..base })
}

fn fixed(object: ObjectId) -> Slot {
    Slot::Fixed(object)
}

fn ms(n: u64) -> Op {
    Op::Run(Dist::constant(n * MS))
}

/// So many tasks that each hold a lock for 10 ms.
fn holders(kind: ObjectKind, count: u32) -> Outcome {
    let mut builder = Builder::new("lock");
    let lock = builder.object("lock", kind);
    let program = builder.program(vec![Op::Lock(fixed(lock)), ms(10), Op::Unlock(fixed(lock))]);
    for _ in 0..count {
        builder.task("holder", program, Start::At(0));
    }
    run(builder, "1 socket x 4 cores")
}

#[test]
fn locks_exclude_sleeping_or_spinning() {
    let (mutex, spin) = (holders(ObjectKind::Mutex, 3), holders(ObjectKind::SpinLock, 3));
    for outcome in [&mutex, &spin] {
        assert!((30 * MS..31 * MS).contains(&outcome.sim_ns), "{}", outcome.sim_ns);
    }
    // Sleepers use no time, spinners all: 10 + 20 + 30 ms.
    assert!((30 * MS..31 * MS).contains(&mutex.counters.task_ns), "{}", mutex.counters.task_ns);
    assert!((59 * MS..61 * MS).contains(&spin.counters.task_ns), "{}", spin.counters.task_ns);
}

#[test]
fn a_barrier_holds_all_until_the_last() {
    let mut builder = Builder::new("barrier");
    let barrier = builder.object("barrier", ObjectKind::Barrier { parties: 3 });
    let meter = builder.meter("waited", MeterKind::Samples);
    for n in [1, 5, 20] {
        let wait = Op::Wait(fixed(barrier));
        let sample = Op::Sample { meter, since: Reg(0) };
        let program = builder.program(vec![ms(n), Op::Stamp(Reg(0)), wait, sample]);
        builder.task("party", program, Start::At(0));
    }
    let outcome = run(builder, "1 socket x 4 cores");
    let MeterValue::Samples(mut waits) = outcome.meters[0].clone() else { panic!("samples") };
    waits.sort_unstable();
    assert_eq!(waits.iter().map(|wait| wait / MS).collect::<Vec<_>>(), [0, 15, 19]);
}

#[test]
fn a_condition_gives_up_its_mutex_and_takes_it_again() {
    let mut builder = Builder::new("condition");
    let (mutex, condition) =
        (builder.object("mutex", ObjectKind::Mutex), builder.object("condition", ObjectKind::Condition));
    let (lock, unlock) = (Op::Lock(fixed(mutex)), Op::Unlock(fixed(mutex)));
    let wait = Op::WaitUnlock { on: fixed(condition), mutex: fixed(mutex) };
    let waiter = builder.program(vec![lock.clone(), wait, ms(5), unlock.clone()]);
    let signaller = builder.program(vec![ms(10), lock, Op::Post(fixed(condition)), ms(5), unlock]);
    builder.task("waiter", waiter, Start::At(0));
    builder.task("signaller", signaller, Start::At(0));
    let outcome = run(builder, "1 socket x 2 cores");
    // 10 ms, then the signaller's 5 under the mutex, then the waiter's 5.
    assert!((20 * MS..21 * MS).contains(&outcome.sim_ns), "{}", outcome.sim_ns);
}

/// A task queues two items on its CPU and waits for both; each sleeps and then works for 5 ms.
fn two_items(bound: Bound, sleep_ms: u64) -> Outcome {
    let mut builder = Builder::new("work");
    let queue = WorkQueue { bound, high_priority: false };
    let queue = builder.object("queue", ObjectKind::WorkQueue(queue));
    let mut body = vec![Op::RunKernel(Dist::constant(5 * MS))];
    if sleep_ms > 0 {
        body.insert(0, Op::Sleep(Dist::constant(sleep_ms * MS)));
    }
    let item = |builder: &mut Builder, name| {
        builder.object(name, ObjectKind::Work(Work { queue, body: body.clone() }))
    };
    let (first, second) = (item(&mut builder, "first"), item(&mut builder, "second"));
    let ops = [
        Op::Queue(fixed(first)),
        Op::Queue(fixed(second)),
        Op::Flush(fixed(first)),
        Op::Flush(fixed(second)),
    ];
    let program = builder.program(ops.to_vec());
    builder.task("client", program, Start::At(0));
    run(builder, "1 socket x 4 cores")
}

#[test]
fn workers_of_a_cpu_run_one_at_a_time_and_step_in_for_blocked_ones() {
    let busy = two_items(Bound::PerCpu, 0);
    assert!((10 * MS..11 * MS).contains(&busy.sim_ns), "one after another: {}", busy.sim_ns);
    let blocking = two_items(Bound::PerCpu, 20);
    // Both sleep at the same time, then share the CPU.
    assert!((30 * MS..31 * MS).contains(&blocking.sim_ns), "{}", blocking.sim_ns);
    let unbound = two_items(Bound::Unbound, 0);
    assert!((5 * MS..6 * MS).contains(&unbound.sim_ns), "side by side: {}", unbound.sim_ns);
}

#[test]
fn a_device_serves_as_many_as_it_has_channels() {
    let time = |channels: u32| {
        let mut builder = Builder::new("device");
        let done = builder.object("done", ObjectKind::Semaphore { initial: 0 });
        let request = Request {
            service: Dist::constant(3 * MS),
            service_queued_permille: 1000,
            latency: Dist::constant(MS),
            hard: vec![],
            soft: vec![Op::Post(fixed(done))],
        };
        let interrupt = InterruptCpu::Fixed(CpuId::new(1));
        let device = Device { channels, interrupt, requests: vec![request] };
        let device = builder.object("device", ObjectKind::Device(device));
        let submit = || Op::Submit { to: fixed(device), request: 0 };
        let wait = || Op::Wait(fixed(done));
        let program = builder.program(vec![submit(), submit(), wait(), wait()]);
        builder.task("client", program, Start::At(0));
        run(builder, "1 socket x 2 cores").sim_ns
    };
    assert!((7 * MS..8 * MS).contains(&time(1)), "{}", time(1));
    assert!((4 * MS..5 * MS).contains(&time(2)), "{}", time(2));
}

#[test]
fn affinity_moves_a_running_task_at_once() {
    let mut builder = Builder::new("affinity");
    let only = builder.object("cpu 3", ObjectKind::Cpus(CpuSet::parse_list("3").unwrap()));
    let meter = builder.meter("where", MeterKind::Cpus);
    let program = builder.program(vec![Op::SetAffinity(fixed(only)), ms(1), Op::CountCpu(meter)]);
    for _ in 0..4 {
        builder.task("mover", program, Start::At(0));
    }
    let outcome = run(builder, "1 socket x 4 cores");
    assert_eq!(outcome.meters[0], MeterValue::Cpus(vec![0, 0, 0, 4]));
    assert_eq!(outcome.counters.migrations_forced, 3, "one of them was there already");
}
