//! A service with a thread pool under open load: what the Java services of the wake-list mails are to the scheduler.
//!
//! ```text
//! clients (timer, independent of answers) ─► acceptor: dispatch ─► pool's queue (futex) ─► a worker: service
//! ```
//!
//! Response time is counted from when the request was *due*, so that a late client does not hide waiting.

use super::{Bench, fixed};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc};
use crate::{Builder, Dist, MeterKind, MeterRef, ObjectKind, Op, Reg, Start, TaskRef, Times, Until};

/// The service as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rpc {
    /// Workers of the pool.
    pub workers: u32,
    /// Requests per second that were offered.
    pub rate: u64,
    /// Seconds.
    pub runtime_s: u64,
    /// Response times, ns.
    pub response: MeterRef,
    /// Requests done by second.
    pub done: MeterRef,
}

const fn dist(name: &'static str, default: &'static str, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Dist { bare_ns: 1_000 }, default, doc }
}

const fn integer(name: &'static str, default: &'static str, max: u64, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Integer { min: 1, max }, default, doc }
}

const fn auto(name: &'static str, max: u64, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::IntegerOrAuto { min: 1, max }, default: "auto", doc }
}

pub(super) const TABLE: Table = Table {
    doc: WorkloadDoc {
        name: "rpc",
        doc: "a thread-pool service under open load: acceptor, queue with futex hand-off, workers",
        result: "percentiles of response time, from when a request was due",
        options: &[
            auto("workers", 100_000, "threads of the pool; auto is two a CPU"),
            auto("rate", 100_000_000, "requests per second; auto is what makes `load`"),
            integer("load", "50", 1_000, "service asked for, percent of all CPUs, where `rate` is auto"),
            dist("service", "exponential(200us)", "a worker's work for a request"),
            dist("dispatch", "5us", "the acceptor's work for a request"),
            integer("clients", "1", 10_000, "tasks that send requests, each at its share of the rate"),
            integer("runtime", "10", 86_400, "seconds"),
        ],
    },
    build,
};

fn build(options: &Options, machine: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let service = options.dist("service");
    let workers = options.integer_or_auto("workers").map_or(2 * machine.cpus, |n| n as u32);
    let offered = || {
        let work_ns_per_s = u64::from(machine.cpus) * options.integer("load") * 10_000_000;
        work_ns_per_s.checked_div(service.mean()).unwrap_or(0)
    };
    let rate = options.integer_or_auto("rate").unwrap_or_else(offered);
    let clients = options.integer("clients");
    if rate < clients {
        return Err(format!(
            "rate: expected at least one request per second and client, found {rate} for {clients}"
        ));
    }
    let response = builder.meter("response", MeterKind::Samples);
    let done = builder.meter("done", MeterKind::Seconds);
    let accepted = builder.object("accepted", ObjectKind::Queue);
    let queue = builder.object("queue", ObjectKind::Queue);
    let forever = |body: Vec<Op>| vec![Op::Repeat { times: Times::Forever, counter: None, body }];

    let worker = builder.program(forever(vec![
        Op::Receive { from: fixed(queue), into: Reg(0) },
        Op::Run(service),
        Op::Sample { meter: response, since: Reg(0) },
        Op::Count { meter: done, by: 1 },
    ]));
    let acceptor = builder.program(forever(vec![
        Op::Receive { from: fixed(accepted), into: Reg(0) },
        Op::Run(options.dist("dispatch")),
        Op::Send { to: fixed(queue), value: Reg(0) },
    ]));
    let gap = Dist::exponential(1_000_000_000 * clients / rate);
    let client = builder.program(forever(vec![
        Op::Periodic { timer: Reg(0), period: gap, rebase: false },
        Op::Send { to: fixed(accepted), value: Reg(0) },
    ]));
    let first = builder.task("acceptor", acceptor, Start::At(0));
    let process = builder.task_mut(first).process;
    for _ in 0..workers {
        let task: TaskRef = builder.task("worker", worker, Start::At(0));
        builder.task_mut(task).process = process;
    }
    for _ in 0..clients {
        builder.task("client", client, Start::At(0));
    }
    let runtime_s = options.integer("runtime");
    builder.until(Until::Time(runtime_s * 1_000_000_000));
    Ok(Bench::Rpc(Rpc { workers, rate, runtime_s, response, done }))
}
