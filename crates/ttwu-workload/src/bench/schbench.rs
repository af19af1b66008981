//! schbench: message threads that wake workers, generation A (2016 to 2019, as quoted in the mails) and C (since 2023).
//!
//! Both: a worker stores the time, pushes itself on its message thread's list, posts the message thread, waits. The message
//! thread sets its futex to blocked, takes the whole list with **one** time stamp, copies it to each worker and posts it, waits.
//! Wake-up latency is when the worker runs less that stamp.
//!
//! Generation A's worker spins for `cputime` of wall time before that; its message thread sleeps after each wake-up. C's worker
//! sleeps once, then multiplies matrices under the lock of the CPU that it is on: preempted or migrated inside, it makes the
//! next taker of that CPU's lock spin.
//!
//! DEVIATION: in C with `rps`, the original drops a request for a worker with more than 128 pending; here it is queued.

use super::{Bench, link};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc, flag, refused};
use crate::{Builder, Dist, MeterKind, MeterRef, ObjectId, ObjectKind, Op, Reg, Slot, Start, Times, Until};

/// schbench of 2016 to 2019 as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SchbenchA {
    /// `-m`.
    pub message_threads: u32,
    /// `-t`: workers of each.
    pub threads: u32,
    /// `-r`, s.
    pub runtime_s: u64,
    /// `-p`, bytes of the pipe test; 0 is off.
    pub pipe_bytes: u64,
    /// Wake-up latencies, ns. The original truncates to µs and drops zeros.
    pub wakeup: MeterRef,
    /// Wake-ups of workers.
    pub loops: MeterRef,
}

/// schbench since 2023 as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SchbenchC {
    /// `-m`.
    pub message_threads: u32,
    /// `-t`: workers of each.
    pub threads: u32,
    /// Whether `threads` was left to the machine, which the original prints.
    pub threads_auto: bool,
    /// `-r`, s.
    pub runtime_s: u64,
    /// `-i`, s.
    pub interval_s: u64,
    /// `-R`; 0 is off.
    pub rps: u64,
    /// `-p`, bytes of the pipe test; 0 is off.
    pub pipe_bytes: u64,
    /// Wake-up latencies, ns. The original truncates to µs and drops zeros.
    pub wakeup: MeterRef,
    /// Request latencies, ns.
    pub request: MeterRef,
    /// Requests done in each second; the original's first sample is a spurious 0.
    pub rps_seconds: MeterRef,
}

const fn number(
    name: &'static str,
    short: &'static [&'static str],
    default: &'static str,
    max: u64,
    doc: &'static str,
) -> OptionDoc {
    OptionDoc { name, short, kind: OptionKind::Integer { min: 1, max }, default, doc }
}

const fn micros(
    name: &'static str,
    short: &'static [&'static str],
    default: &'static str,
    doc: &'static str,
) -> OptionDoc {
    OptionDoc {
        name,
        short,
        kind: OptionKind::Time { bare_ns: 1_000, min: 0, max: 3_600_000_000_000 },
        default,
        doc,
    }
}

const PIPE: OptionDoc = OptionDoc {
    name: "pipe",
    short: &["p"],
    kind: OptionKind::Size { bare_bytes: 1, min: 0, max: 1 << 20 },
    default: "0",
    doc: "bytes that both sides fill for each wake-up, as a pipe would; 0 is off",
};

pub(super) const TABLE_A: Table = Table {
    doc: WorkloadDoc {
        name: "schbench-a",
        doc: "schbench of 2016 to 2019: workers spin and then wait for their message thread",
        result: "percentiles of wake-up latency",
        options: &[
            number("message-threads", &["m"], "2", 1_000, "message threads"),
            number("threads", &["t"], "16", 10_000, "workers of each message thread"),
            number("runtime", &["r"], "30", 86_400, "seconds"),
            micros(
                "sleeptime",
                &["s"],
                "30ms",
                "message thread's sleep after a wake-up; up to a quarter is added at random",
            ),
            micros("cputime", &["c"], "30ms", "worker's spinning before it waits again, wall time"),
            PIPE,
            refused("rps", &["R"], "generation A's batches; generation C (`schbench`) has `rps`"),
            refused("auto", &["a"], "it searches for a number of threads; sweep `threads` instead"),
        ],
    },
    build: build_a,
};

pub(super) const TABLE_C: Table = Table {
    doc: WorkloadDoc {
        name: "schbench",
        doc: "schbench since 2023: workers sleep, then multiply matrices under the lock of their CPU",
        result: "percentiles of wake-up latency, request latency and requests per second",
        options: &[
            number("message-threads", &["m"], "1", 1_000, "message threads"),
            OptionDoc {
                name: "threads",
                short: &["t"],
                kind: OptionKind::IntegerOrAuto { min: 1, max: 10_000 },
                default: "auto",
                doc: "workers of each message thread; auto is CPUs / message threads, rounded up",
            },
            number("runtime", &["r"], "30", 86_400, "seconds"),
            number("intervaltime", &["i"], "10", 86_400, "seconds between reports"),
            OptionDoc {
                name: "cache-footprint",
                short: &["F"],
                kind: OptionKind::Size { bare_bytes: 1 << 10, min: 24, max: 1 << 30 },
                default: "256",
                doc: "size of the matrices, KiB",
            },
            number("operations", &["n"], "5", 1_000_000, "multiplications a request"),
            micros("sleep-usec", &["s"], "100us", "sleep before each request's work"),
            OptionDoc {
                name: "rps",
                short: &["R"],
                kind: OptionKind::Integer { min: 0, max: 10_000_000 },
                default: "0",
                doc: "requests per second, issued back to back at the beginning of each second; 0 is off",
            },
            PIPE,
            flag("no-locking", &["L"], "without the locks of the CPUs"),
            flag("calibrate", &["C"], "without the locks, and without the sleep in the request latency"),
            OptionDoc {
                name: "step",
                short: &[],
                kind: OptionKind::Integer { min: 1, max: 1_000_000 },
                default: "970",
                doc: "picoseconds of one inner step of the multiplication (970: from a least request latency of 5547 us on a Xeon of 2.0 GHz)",
            },
            refused("auto-rps", &["A"], "it steers by the machine's /proc/stat; give `rps`"),
            refused(
                "warmuptime",
                &["w"],
                "the model has nothing to warm up that a run of 30 s needs; 0 is the default below 30 s",
            ),
            refused("message-cpus", &["M"], "pinning of message threads; use `cpus`"),
            refused("worker-cpus", &["W"], "pinning of workers; use `cpus`"),
            refused("split", &[], "sharing a part of the matrices"),
        ],
    },
    build: build_c,
};

/// Links of a worker: its futex, its time stamp, its message thread's futex and list, its page; then one lock a CPU.
const FUTEX: u32 = 0;
const STAMP: u32 = 1;
const BOSS_FUTEX: u32 = 2;
const BOSS_LIST: u32 = 3;
const PAGE: u32 = 4;
const LOCKS: u32 = 5;
/// Links of a message thread: futex and list.
const OWN_FUTEX: u32 = 0;
const OWN_LIST: u32 = 1;

/// Filling a page: 16 bytes a nanosecond, an estimate.
const fn fill_ns(bytes: u64) -> u64 {
    bytes / 16 + 1
}

fn forever(body: Vec<Op>) -> Op {
    Op::Repeat { times: Times::Forever, counter: None, body }
}

/// Push oneself, wake the message thread, wait: what both generations do; the sample follows.
fn wait_for_message(wakeup: MeterRef) -> Vec<Op> {
    vec![
        Op::Stamp(Reg(0)),
        Op::Store { to: link(STAMP), from: Reg(0) },
        Op::Push(link(BOSS_LIST)),
        Op::Post(link(BOSS_FUTEX)),
        Op::Wait(link(FUTEX)),
        Op::Load { from: link(STAMP), to: Reg(0) },
        Op::Sample { meter: wakeup, since: Reg(0) },
    ]
}

/// The message thread's round; `nap` is its sleep after a wake-up.
fn message_loop(pipe_bytes: u64, nap: Option<Dist>) -> Op {
    let mut body = vec![Op::Reset(link(OWN_FUTEX)), Op::Stamp(Reg(0))];
    let mut each = Vec::new();
    if pipe_bytes > 0 {
        each.extend([
            Op::Touch(Slot::Item(PAGE)),
            Op::Run(Dist::constant(fill_ns(pipe_bytes))),
            Op::Stamp(Reg(0)),
        ]);
    }
    each.extend([Op::Store { to: Slot::Item(STAMP), from: Reg(0) }, Op::Post(Slot::Item(FUTEX))]);
    body.push(Op::TakeAll { list: link(OWN_LIST), body: each });
    body.push(Op::Wait(link(OWN_FUTEX)));
    body.extend(nap.filter(|_| pipe_bytes == 0).map(Op::Sleep));
    forever(body)
}

/// A worker's filling of its page in the pipe test.
fn fill_page(pipe_bytes: u64) -> [Op; 2] {
    [Op::Touch(link(PAGE)), Op::Run(Dist::constant(fill_ns(pipe_bytes)))]
}

/// Main, message threads and workers with their objects; `message` gives a message thread's program from its links.
struct Threads {
    message_threads: u32,
    workers: u32,
    locks: Vec<ObjectId>,
    page_bytes: u64,
    working_set_bytes: u64,
}

impl Threads {
    fn build(
        &self,
        builder: &mut Builder,
        main: Vec<Op>,
        worker: Vec<Op>,
        semaphores: bool,
        message: impl Fn(u32) -> Vec<Op>,
    ) {
        let main_program = builder.program(Vec::new());
        let main_task = builder.task("schbench", main_program, Start::At(0));
        let process = builder.task_mut(main_task).process;
        let worker_program = builder.program(worker);
        let mut spawns = Vec::new();
        for m in 0..self.message_threads {
            let boss_futex = builder.object(format!("futex m{m}"), ObjectKind::Futex);
            let list = builder.object(format!("list m{m}"), ObjectKind::List);
            let program = builder.program(Vec::new());
            let boss = builder.task("schbench", program, Start::Forked);
            let mut boss_links = vec![boss_futex, list];
            let mut ops: Vec<Op> = Vec::new();
            for w in 0..self.workers {
                let waits = if semaphores { ObjectKind::Semaphore { initial: 0 } } else { ObjectKind::Futex };
                let futex = builder.object(format!("futex m{m}w{w}"), waits);
                let stamp = builder.object(format!("stamp m{m}w{w}"), ObjectKind::Cell);
                let page = builder
                    .object(format!("page m{m}w{w}"), ObjectKind::Data { bytes: self.page_bytes.max(64) });
                let task = builder.task("schbench", worker_program, Start::Forked);
                let spec = builder.task_mut(task);
                spec.links = [&[futex, stamp, boss_futex, list, page][..], &self.locks].concat();
                spec.process = process;
                spec.working_set_bytes = self.working_set_bytes;
                boss_links.extend([futex, stamp]);
                ops.push(Op::Spawn(task));
            }
            ops.extend(message(m));
            builder.program_mut(program).ops = ops;
            let spec = builder.task_mut(boss);
            spec.links = boss_links;
            spec.process = process;
            spawns.push(boss);
        }
        builder.program_mut(main_program).ops = spawns.into_iter().map(Op::Spawn).chain(main).collect();
        builder.until(Until::Exit(main_task));
    }
}

/// Main sleeps a second at a time, looking whether time is up.
fn sleep_out(runtime_s: u64) -> Vec<Op> {
    vec![Op::Repeat {
        times: Times::Count(runtime_s),
        counter: None,
        body: vec![Op::Sleep(Dist::constant(1_000_000_000))],
    }]
}

fn build_a(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let (sleep, cpu) = (options.integer("sleeptime"), options.integer("cputime"));
    let (pipe_bytes, runtime_s) = (options.integer("pipe"), options.integer("runtime"));
    if (1..4_000).contains(&sleep) {
        return Err("sleeptime: below 4us the original divides by zero; give 0 or at least 4us".to_owned());
    }
    let wakeup = builder.meter("wakeup", MeterKind::Samples);
    let loops = builder.meter("loops", MeterKind::Count);
    let mut body = Vec::new();
    if pipe_bytes > 0 {
        body.extend(fill_page(pipe_bytes));
    } else if cpu > 0 {
        body.push(Op::Spin(Dist::constant(cpu)));
    }
    body.extend(wait_for_message(wakeup));
    body.push(Op::Count { meter: loops, by: 1 });
    // rand_r() modulo a quarter, in whole microseconds.
    let nap = (sleep > 0).then(|| Dist::uniform(sleep, sleep + (sleep / 4_000 - 1) * 1_000));
    let threads = Threads {
        message_threads: options.count("message-threads"),
        workers: options.count("threads"),
        locks: Vec::new(),
        page_bytes: pipe_bytes,
        working_set_bytes: 4096 + pipe_bytes,
    };
    let main = vec![Op::Sleep(Dist::constant(runtime_s * 1_000_000_000))];
    threads.build(builder, main, vec![forever(body)], false, |_| vec![message_loop(pipe_bytes, nap.clone())]);
    Ok(Bench::SchbenchA(SchbenchA {
        message_threads: threads.message_threads,
        threads: threads.workers,
        runtime_s,
        pipe_bytes,
        wakeup,
        loops,
    }))
}

fn build_c(options: &Options, machine: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let message_threads = options.count("message-threads");
    let auto = options.integer_or_auto("threads");
    let workers = auto.map_or(machine.cpus.div_ceil(message_threads).max(1), |threads| threads as u32);
    let (runtime_s, rps, pipe_bytes) =
        (options.integer("runtime"), options.integer("rps"), options.integer("pipe"));
    if pipe_bytes > 0 && rps > 0 {
        return Err("expected one of `pipe` and `rps`".to_owned());
    }
    if work_ns(options, options.integer("cache-footprint")) > 1_000_000_000_000 {
        return Err("operations: expected at most 1000 s of work in a request".to_owned());
    }
    if rps > 0 && runtime_s * u64::from(workers) > 10_000_000 {
        return Err("rps: expected at most ten million workers times seconds of runtime".to_owned());
    }
    let meters = MetersC {
        wakeup: builder.meter("wakeup", MeterKind::Samples),
        request: builder.meter("request", MeterKind::Samples),
        rps: builder.meter("rps", MeterKind::Seconds),
    };
    let locks = (0..machine.cpus)
        .map(|cpu| builder.object(format!("lock of CPU {cpu}"), ObjectKind::SpinLock))
        .collect();
    let footprint = options.integer("cache-footprint");
    let threads = Threads {
        message_threads,
        workers,
        locks,
        page_bytes: pipe_bytes,
        working_set_bytes: if pipe_bytes > 0 { 4096 + pipe_bytes } else { footprint },
    };
    let worker = worker_c(options, &meters, rps, pipe_bytes, footprint);
    // The original divides and rounds down.
    let share = rps / u64::from(message_threads);
    threads.build(builder, sleep_out(runtime_s), worker, rps > 0, |_| match rps {
        0 => vec![message_loop(pipe_bytes, None)],
        _ => pacer(share, u64::from(workers), runtime_s),
    });
    Ok(Bench::SchbenchC(SchbenchC {
        message_threads,
        threads: workers,
        threads_auto: auto.is_none(),
        runtime_s,
        interval_s: options.integer("intervaltime"),
        rps,
        pipe_bytes,
        wakeup: meters.wakeup,
        request: meters.request,
        rps_seconds: meters.rps,
    }))
}

struct MetersC {
    wakeup: MeterRef,
    request: MeterRef,
    rps: MeterRef,
}

fn worker_c(options: &Options, meters: &MetersC, rps: u64, pipe_bytes: u64, footprint: u64) -> Vec<Op> {
    let mut body = Vec::new();
    if pipe_bytes > 0 {
        body.extend(fill_page(pipe_bytes));
    }
    if rps > 0 {
        let sample =
            [Op::Load { from: link(STAMP), to: Reg(0) }, Op::Sample { meter: meters.wakeup, since: Reg(0) }];
        let slept = [vec![Op::Wait(link(FUTEX))], sample.to_vec()].concat();
        body.push(Op::IfReady { on: link(FUTEX), then: vec![Op::Wait(link(FUTEX))], otherwise: slept });
    } else {
        body.extend(wait_for_message(meters.wakeup));
    }
    if pipe_bytes == 0 {
        body.extend(request_c(options, meters, footprint));
    }
    body.push(Op::Count { meter: meters.rps, by: 1 });
    vec![forever(body)]
}

/// The multiplications of a request, ns: each of side³ steps, the side as the original rounds it.
fn work_ns(options: &Options, footprint: u64) -> u64 {
    let side = u128::from((footprint / 3 / 8).isqrt());
    let steps = u128::from(options.integer("operations")) * side.pow(3);
    u64::try_from(steps * u128::from(options.integer("step")) / 1_000).unwrap_or(u64::MAX)
}

/// One request: sleep, then the multiplications under the lock of the CPU.
fn request_c(options: &Options, meters: &MetersC, footprint: u64) -> Vec<Op> {
    let (calibrate, unlocked) = (options.flag("calibrate"), options.flag("no-locking"));
    let work_ns = work_ns(options, footprint);
    let sleep = match options.integer("sleep-usec") {
        0 => Vec::new(),
        ns => vec![Op::Sleep(Dist::constant(ns))],
    };
    let start = vec![Op::Stamp(Reg(1))];
    let work = Op::Run(Dist::constant(work_ns));
    let lock = Slot::ByCpu { base: LOCKS };
    let work = if calibrate || unlocked { vec![work] } else { vec![Op::Lock(lock), work, Op::Unlock(lock)] };
    let end = vec![Op::Sample { meter: meters.request, since: Reg(1) }];
    if calibrate { [sleep, start, work, end].concat() } else { [start, sleep, work, end].concat() }
}

/// Issues `share` requests at the beginning of each second, round robin over the workers where the second before left off.
fn pacer(share: u64, workers: u64, runtime_s: u64) -> Vec<Op> {
    // The message thread's links: futex, list, then each worker's futex and time stamp.
    let issue = |first: u64, count: u64| {
        (first..first + count)
            .flat_map(|w| {
                let w = (w % workers) as u32;
                [
                    Op::Stamp(Reg(0)),
                    Op::Store { to: link(3 + 2 * w), from: Reg(0) },
                    Op::Post(link(2 + 2 * w)),
                ]
            })
            .collect::<Vec<Op>>()
    };
    let mut ops = Vec::new();
    for second in 0..runtime_s {
        let first = second * share % workers;
        let rounds = share / workers;
        if rounds > 0 {
            ops.push(Op::Repeat { times: Times::Count(rounds), counter: None, body: issue(first, workers) });
        }
        ops.extend(issue(first, share % workers));
        ops.push(Op::Periodic { timer: Reg(2), period: Dist::constant(1_000_000_000), rebase: true });
    }
    ops
}
