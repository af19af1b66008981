//! Physics: each law as a test that moves and a twin that must not.

use super::tests::{quiet, scenario};
use crate::{Governor, MeterValue, Outcome, PreemptionModel, Scenario, Switch};
use ttwu_workload::{Builder, Dist, ObjectKind, Op, Slot, Start, StreamKind, Times, Until, Workload};

const MS: u64 = 1_000_000;

/// Two tasks that pass a byte to and fro, so many times.
fn ping_pong(rounds: u64) -> Workload {
    let mut builder = Builder::new("ping-pong");
    let pipe = |builder: &mut Builder, name| {
        builder.object(name, ObjectKind::Stream(StreamKind::Pipe { pages: 16 }))
    };
    let (a, b) = (pipe(&mut builder, "a"), pipe(&mut builder, "b"));
    for (name, read_first) in [("ping", false), ("pong", true)] {
        let write = |to| Op::Write { to: Slot::Fixed(to), bytes: 1 };
        let read = |from| Op::Read { from: Slot::Fixed(from), bytes: 1 };
        let body = if read_first { vec![read(a), write(b)] } else { vec![write(a), read(b)] };
        let program = builder.program(vec![Op::Repeat { times: Times::Count(rounds), counter: None, body }]);
        builder.task(name, program, Start::At(0));
    }
    builder.finish()
}

/// The lines of a pipe that the other CPU used cost each of a round trip's four calls; whoever uses it alone pays nothing.
#[test]
fn a_streams_lines_cost_where_another_cpu_used_it_last() {
    let time = |topology: &str, name: &str, ns: u64| {
        let mut scenario = with(ping_pong(1000), topology, "linux-6.12");
        scenario.settings.idle.deepest = Some(1);
        scenario.costs.set(name, ns).unwrap();
        quiet(&scenario).sim_ns
    };
    for name in ["pipe_lines_ns", "pipe_far_ns"] {
        let dearer = time(TWO_CPUS, name, 1000) - time(TWO_CPUS, name, 0);
        assert!((3_950_000..4_050_000).contains(&dearer), "{name}: {dearer} ns in 1000 round trips");
        assert_eq!(time(ONE_CPU, name, 1000), time(ONE_CPU, name, 0), "{name}");
    }
    for name in ["socket_lines_ns", "socket_far_ns"] {
        assert_eq!(time(TWO_CPUS, name, 1000), time(TWO_CPUS, name, 0), "a pipe is no socket");
    }
}

/// Messages beyond what private caches hold cost their writer and reader; as many as fit cost nothing.
#[test]
fn socket_messages_cost_where_more_are_queued_than_caches_hold() {
    let time = |messages: u64, cold: u64| {
        let mut builder = Builder::new("queued");
        let kind = StreamKind::Socket { kind: ttwu_workload::SocketKind::Unix, send_buffer_bytes: 100 << 20 };
        let socket = builder.object("socket", ObjectKind::Stream(kind));
        let repeat = |op| Op::Repeat { times: Times::Count(messages), counter: None, body: vec![op] };
        let write = repeat(Op::Write { to: Slot::Fixed(socket), bytes: 100 });
        let read = repeat(Op::Read { from: Slot::Fixed(socket), bytes: 100 });
        let program = builder.program(vec![write, read]);
        builder.task("both", program, Start::At(0));
        let mut scenario = with(builder.finish(), TWO_CPUS, "linux-6.12");
        scenario.costs.set("socket_cold_ns", cold).unwrap();
        quiet(&scenario).sim_ns
    };
    // 832 bytes each, and 1 MiB of private caches: 1260 fit.
    assert_eq!(time(1200, 1000), time(1200, 0));
    // Of 12600, those under way when the n-th is written or read are cold in the share 1 - 1260/n: 2 (11340 - 1260 ln 10) us.
    let dearer = time(12_600, 1000) - time(12_600, 0);
    assert!((16_500_000..17_200_000).contains(&dearer), "{dearer} ns");
}

/// A task that another CPU wakes onto a busy one brings that one's queue and its own lines back with it.
#[test]
fn a_task_woken_by_another_cpu_costs_its_own_cpu_lines() {
    // CPU 1 computes beside a sleeper that CPU `waker` wakes a thousand times; what the two of CPU 1 take in all.
    let time = |waker: u16, lines_back: u64| {
        let mut builder = Builder::new("woken");
        let semaphore = builder.object("semaphore", ObjectKind::Semaphore { initial: 0 });
        let repeat = |body| vec![Op::Repeat { times: Times::Count(1000), counter: None, body }];
        let post = builder
            .program(repeat(vec![Op::Sleep(Dist::constant(200_000)), Op::Post(Slot::Fixed(semaphore))]));
        let wait = builder.program(repeat(vec![Op::Wait(Slot::Fixed(semaphore))]));
        let hog = builder.program(vec![Op::Run(Dist::constant(400 * MS))]);
        for (name, program, cpu) in [("waker", post, waker), ("sleeper", wait, 1), ("hog", hog, 1)] {
            let task = builder.task(name, program, Start::At(0));
            let cpu = ttwu_model::CpuId::new(cpu);
            builder.task_mut(task).allowed = Some(std::iter::once(cpu).collect());
        }
        let mut scenario = with(builder.finish(), TWO_CPUS, "linux-6.12");
        scenario.costs.set("lines_back_ns", lines_back).unwrap();
        quiet(&scenario).sim_ns
    };
    let dearer = time(0, 1000) - time(0, 0);
    assert!((950_000..1_050_000).contains(&dearer), "{dearer} ns in 1000 wake-ups");
    assert_eq!(time(1, 1000), time(1, 0));
}

/// So many tasks that compute for so long, with a working set.
fn hogs(count: u32, ns: u64, working_set_bytes: u64) -> Workload {
    let mut builder = Builder::new("hogs");
    let program = builder.program(vec![Op::Run(Dist::constant(ns))]);
    for _ in 0..count {
        let task = builder.task("hog", program, Start::At(0));
        builder.task_mut(task).working_set_bytes = working_set_bytes;
    }
    builder.finish()
}

fn with(workload: Workload, topology: &str, policy: &str) -> Scenario {
    Scenario { workload, ..scenario("pipe:loop=1", topology, policy) }
}

fn runtime(outcome: &Outcome, name: &str) -> u64 {
    outcome.counters.tasks[name].runtime_ns
}

const TWO_CPUS: &str = "1 socket x 2 cores";
const ONE_CPU: &str = "1 socket x 1 core";

#[test]
fn the_wake_list_gains_by_the_remote_enqueue_and_nothing_else() {
    let time = |list: &str, remote: u64| {
        let mut scenario = with(ping_pong(2000), TWO_CPUS, &format!("linux-6.6 wake_list={list}"));
        // Deep idle states would hide a microsecond.
        scenario.settings.idle.deepest = Some(1);
        scenario.costs.set("enqueue_remote_ns", remote).unwrap();
        quiet(&scenario).sim_ns
    };
    let gain = |remote| time("never", remote).saturating_sub(time("always", remote));
    assert!(gain(1000) > gain(700) && gain(700) > 0, "{} {}", gain(1000), gain(700));
    // The twin: where queueing remotely costs what pushing and queueing locally do, nothing is gained but a
    // little at the start.
    assert!(gain(400) < gain(700) / 50, "{} {}", gain(400), gain(700));
}

#[test]
fn without_ipi_cost_polling_gains_little() {
    let time = |monitors: u64, ipi: u64| {
        let mut scenario = with(ping_pong(2000), TWO_CPUS, "linux-6.6");
        scenario.settings.idle.governor = Governor::Fixed(1);
        scenario.costs.set("idle_monitors", monitors).unwrap();
        for cost in ["ipi_send_ns", "ipi_delivery_ns", "irq_entry_ns", "irq_exit_ns"] {
            scenario.costs.scale(cost, ipi, 1).unwrap();
        }
        // What the flag costs instead.
        scenario.costs.set("monitor_wake_ns", 0).unwrap();
        quiet(&scenario).sim_ns
    };
    assert!(time(0, 1) > time(99, 1) + 2000 * 1000, "{} {}", time(0, 1), time(99, 1));
    assert_eq!(time(0, 0), time(99, 0));
}

#[test]
fn on_one_cpu_all_placements_are_equal() {
    let run = |policy: &str| {
        let mut scenario = scenario("hackbench:groups=1,fds=4,loops=20", ONE_CPU, policy);
        scenario.until_ns = 1000 * MS;
        quiet(&scenario)
    };
    let base = run("linux-5.15");
    for change in ["wake_affine_idle=dirty", "wake_list=never", "-WA_WEIGHT", "kthread_stacking=off"] {
        assert_eq!(run(&format!("linux-5.15 {change}")).digest, base.digest, "{change}");
    }
    // The twin: what decides on one CPU does change the run.
    assert_ne!(run("linux-5.15 -WAKEUP_PREEMPTION").digest, base.digest);
}

#[test]
fn moves_cost_what_the_caches_cost() {
    let time = |topology: &str, working_set: u64| {
        let scenario = with(hogs(5, 200 * MS, working_set), topology, "linux-6.6");
        let outcome = quiet(&scenario);
        (outcome.counters.migrations(), outcome.counters.refill_ns)
    };
    let (moves, refill) = time("1 socket x 4 cores", 64 << 10);
    assert!(moves > 0 && refill > 0, "{moves} moves, {refill} ns");
    let (moves, refill) = time("1 socket x 4 cores", 0);
    assert!(moves > 0);
    assert_eq!(refill, 0);
    assert_eq!(time(ONE_CPU, 64 << 10), (0, 0));
}

#[test]
fn a_faster_tick_preempts_more_finely() {
    let longest = |policy: &str| {
        let outcome = quiet(&with(hogs(3, 200 * MS, 0), ONE_CPU, policy));
        outcome.counters.preempt_tick
    };
    let (slow, fast) = (longest("linux-6.1 hz=250"), longest("linux-6.1 hz=1000"));
    assert!(fast > slow, "{slow} {fast}");
    // The twin: alone on its CPU a task is never preempted, whatever the tick.
    for hz in [250, 1000] {
        let alone = quiet(&with(hogs(1, 200 * MS, 0), ONE_CPU, &format!("linux-6.1 hz={hz}")));
        assert_eq!(alone.counters.preempt_tick, 0);
    }
}

#[test]
fn a_cpu_that_expects_a_short_sleep_keeps_its_tick() {
    // One task that sleeps so long a hundred times, at a tick of 4 ms; then the CPU has nothing to do any more.
    let ticks = |sleep_ns: u64, governor: Governor| {
        let mut builder = Builder::new("naps");
        let body = vec![Op::Run(Dist::constant(10_000)), Op::Sleep(Dist::constant(sleep_ns))];
        let naps = Op::Repeat { times: Times::Count(100), counter: None, body };
        let program = builder.program(vec![naps]);
        builder.task("naps", program, Start::At(0));
        builder.until(Until::Time(5_000 * MS));
        let mut scenario = with(builder.finish(), ONE_CPU, "linux-6.6 hz=250");
        scenario.until_ns = 5_000 * MS;
        scenario.settings.idle.governor = governor;
        quiet(&scenario).counters.ticks
    };
    // Some 105 ms of naps have 26 ticks; the first long sleep is taken for another nap until three ticks have ended it.
    let naps = ticks(MS, Governor::Menu);
    assert!((24..=32).contains(&naps), "{naps}");
    // The twins: a sleep longer than a tick stops it, and so does an idle loop without a governor.
    assert!(ticks(20 * MS, Governor::Menu) < 5);
    assert!(ticks(MS, Governor::Fixed(1)) < 5);
}

#[test]
fn lag_placement_gives_the_always_running_two_thirds() {
    let share = |policy: &str| {
        let mut builder = Builder::new("67/33");
        let hog = builder.program(vec![Op::Repeat {
            times: Times::Forever,
            counter: None,
            body: vec![Op::Run(Dist::constant(10 * MS))],
        }]);
        let half = builder.program(vec![Op::Repeat {
            times: Times::Forever,
            counter: None,
            body: vec![Op::Run(Dist::constant(2 * MS)), Op::Sleep(Dist::constant(2 * MS))],
        }]);
        builder.task("hog", hog, Start::At(0));
        builder.task("half", half, Start::At(0));
        builder.until(Until::Time(10_000 * MS));
        let mut scenario = with(builder.finish(), ONE_CPU, policy);
        scenario.until_ns = 10_000 * MS;
        let outcome = quiet(&scenario);
        runtime(&outcome, "hog") * 100 / (runtime(&outcome, "hog") + runtime(&outcome, "half"))
    };
    let eevdf = share("linux-6.6");
    assert!((63..=70).contains(&eevdf), "EEVDF gives the hog {eevdf} %");
    let cfs = share("linux-6.1");
    assert!((48..=60).contains(&cfs), "CFS gives the hog {cfs} %");
}

#[test]
fn busy_siblings_slow_each_other() {
    let time = |topology: &str, hogs_count: u32| {
        let mut scenario = with(hogs(hogs_count, 100 * MS, 0), topology, "linux-6.6");
        scenario.settings.preemption = PreemptionModel::None;
        quiet(&scenario).sim_ns
    };
    let (one, two) = (time("1 socket x 1 core x 2 threads", 1), time("1 socket x 1 core x 2 threads", 2));
    // A core with both threads busy does 1.5 times the work of one: each takes 4/3 of the time.
    assert!(two * 100 / one >= 131 && two * 100 / one <= 135, "{one} {two}");
    // The twin: on two cores neither feels the other.
    assert!(time(TWO_CPUS, 2).abs_diff(time(TWO_CPUS, 1)) < MS);
}

#[test]
fn the_lock_of_a_sockets_sleepers_makes_a_convoy() {
    let waits = |lock: Switch| {
        let mut scenario = scenario("hackbench:groups=1,loops=50", "1 socket x 64 cores", "linux-5.19");
        scenario.settings.wait_queue_lock = lock;
        quiet(&scenario).counters.wait_queue_lock_waits
    };
    assert!(waits(Switch::On) > 100);
    assert_eq!(waits(Switch::Off), 0);
}

#[test]
fn a_slow_memory_costs_only_where_it_is_far() {
    let time = |node: u16, cpus: &str| {
        let mut scenario = with(hogs(1, 100 * MS, 0), "oracle-b", "linux-6.6");
        scenario.settings.memory = crate::MemoryPlacement::Node(ttwu_model::NodeId::new(node));
        scenario.settings.allowed = Some(ttwu_model::CpuSet::parse_list(cpus).unwrap());
        quiet(&scenario).sim_ns
    };
    let (near, far) = (time(0, "0-3"), time(0, "4-7"));
    assert!(far * 100 / near >= 120 && far * 100 / near <= 130, "{near} {far}");
    assert_eq!(time(1, "4-7") / MS, near / MS);
}

#[test]
fn time_is_conserved() {
    for workload in ["hackbench:groups=1,fds=4,loops=20", "schbench-a:message-threads=1,threads=4", "dbench"]
    {
        let scenario = scenario(workload, "oracle-d", "linux-6.12");
        let outcome = quiet(&scenario);
        let cpus = scenario.topology.online().len() as u64;
        assert!(outcome.counters.busy_ns <= outcome.sim_ns * cpus);
        assert!(outcome.counters.task_ns <= outcome.counters.busy_ns + MS);
        let sum: u64 = outcome.counters.tasks.values().map(|task| task.runtime_ns).sum();
        assert_eq!(sum, outcome.counters.task_ns, "{workload}");
    }
}

#[test]
fn a_device_interrupts_where_it_is_told_to() {
    let scenario = scenario("dmatest", "xeon-3204x2", "linux-5.15");
    let outcome = quiet(&scenario);
    assert!(outcome.counters.interrupts >= 1000, "{}", outcome.counters.interrupts);
    let counted = outcome
        .meters
        .iter()
        .map(|meter| match meter {
            MeterValue::Cpus(counts) => counts.iter().sum(),
            MeterValue::Samples(_) | MeterValue::Count(_) | MeterValue::Seconds(_) => 0u64,
        })
        .max();
    assert_eq!(counted, Some(1000));
}

#[test]
fn numactl_confines_tasks_and_not_the_kernels_threads() {
    let mut scenario = scenario("massive_intr:nproc=4", "oracle-b", "linux-6.6");
    scenario.settings.allowed = Some(ttwu_model::CpuSet::parse_list("0-1").unwrap());
    scenario.until_ns = 200 * MS;
    let trace = crate::run(&scenario, &mut crate::Options::traced()).trace.unwrap();
    let used = |event: &ttwu_model::Event| match event.kind {
        ttwu_model::EventKind::Switch { next, .. } if !next.is_idle() => Some(event.cpu.number()),
        _ => None,
    };
    let cpus: std::collections::BTreeSet<u16> = trace.events().iter().filter_map(used).collect();
    assert_eq!(cpus.into_iter().collect::<Vec<_>>(), [0, 1]);
}
