//! dbench on XFS, as the scheduler sees it.
//!
//! A client works for `work`, then forces its file to disk: 43 times a pass of the load file that mmtests measures (3573 lines,
//! 43 of them `Flush`, no other forced wait). One such fsync:
//!
//! ```text
//! client    queues the CIL push and waits ─► (unbound) worker: push ─► client
//! client    submits, queues the requeue step and waits
//!           (bound, nice -20) worker: requeue step ─► journal device: flush
//! interrupt on the submitting CPU ─► same worker: flush step ─► journal device: write
//! interrupt ─► same worker: log I/O end ─► wakes the client, and goes on for `after`
//! ```
//!
//! Source: the workqueue trace in the mails of January 2020 (times within an fsync); the device's 85 + 55 µs of service and 30 µs
//! beside it, and the client's work, are estimates made with those mails' tables in view.

use super::{Bench, fixed, link};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc, flag, refused};
use crate::{
    Bound, Builder, Device, Dist, InterruptCpu, MeterKind, MeterRef, ObjectId, ObjectKind, Op, Reg, Request,
    Start, TaskRef, Times, Until, Work, WorkQueue,
};

/// dbench as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dbench {
    /// Clients.
    pub clients: u32,
    /// `-t`, s.
    pub timelimit_s: u64,
    /// fsyncs in a pass.
    pub fsyncs: u64,
    /// The times of each client's complete passes, ns, one after another from the release of the clients on, so that their running
    /// sum is when each was complete. The original prints whole ms.
    pub passes: Vec<MeterRef>,
    /// The clients' tasks.
    pub tasks: Vec<TaskRef>,
}

const fn dist(name: &'static str, default: &'static str, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Dist { bare_ns: 1_000 }, default, doc }
}

const fn integer(
    name: &'static str,
    short: &'static [&'static str],
    default: &'static str,
    range: (u64, u64),
    doc: &'static str,
) -> OptionDoc {
    OptionDoc { name, short, kind: OptionKind::Integer { min: range.0, max: range.1 }, default, doc }
}

pub(super) const TABLE: Table = Table {
    doc: WorkloadDoc {
        name: "dbench",
        doc: "dbench 4 on XFS as the scheduler sees it: work, then fsync through the log's kworkers, 43 times a pass",
        result: "time of each pass of the load file, ms",
        options: &[
            integer("clients", &["n"], "1", (1, 4096), "clients (the original has no default)"),
            integer("timelimit", &["t"], "600", (1, 86_400), "seconds"),
            integer("fsyncs", &[], "43", (1, 1_000_000), "fsyncs a pass"),
            dist("work", "uniform(250us..370us)", "client's work before each fsync"),
            OptionDoc {
                name: "cil",
                short: &[],
                kind: OptionKind::Choice(&["unbound", "bound"]),
                default: "unbound",
                doc: "workqueue of the CIL push: unbound since v5.4, bound before",
            },
            dist("push", "14us", "run of the CIL push"),
            dist("submit", "15us", "client's run between the push and its wait for the log"),
            dist("step", "6us", "run of the block layer's requeue and flush steps"),
            dist("ioend", "25us", "run of the log's I/O end before it wakes the client"),
            dist("after", "0us", "run of that worker after the wake-up"),
            dist("flush", "85us", "device's service of a flush"),
            dist("write", "55us", "device's service of a log write"),
            dist("latency", "30us", "time beside the service, which requests spend side by side"),
            integer(
                "group-commit",
                &[],
                "1000",
                (1, 1000),
                "what service shrinks to when others wait, in thousandths; 1000 is no group commit, 550 to 770 are likely",
            ),
            OptionDoc {
                name: "working-set",
                short: &[],
                kind: OptionKind::Size { bare_bytes: 1, min: 0, max: 1 << 30 },
                default: "64KiB",
                doc: "what a client must fetch again after it has moved",
            },
            flag("show-execute-time", &[], "times of passes, which are the result in any case"),
            refused("fsync", &["F"], "an fsync after each write"),
            refused("sync", &["s"], "O_SYNC"),
            refused("sync-dir", &["S"], "synchronous directories"),
            refused("warmup", &[], "the model starts warm: passes are alike from the first"),
            refused("target-rate", &["R"], "a limited rate"),
        ],
    },
    build,
};

/// Links of a client: its work items and its semaphore.
const PUSH: u32 = 0;
const REQUEUE: u32 = 1;
const FLUSH_STEP: u32 = 2;
const IO_END: u32 = 3;
const DONE: u32 = 4;
/// Kinds of request of the journal.
const FLUSH: u32 = 0;
const WRITE: u32 = 1;

/// What all clients share.
struct Log {
    cil: ObjectId,
    high: ObjectId,
    journal: ObjectId,
}

fn build(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let clients = options.count("clients");
    let log = log(options, builder);
    let released = builder.object("released", ObjectKind::Barrier { parties: clients + 1 });
    let main_program = builder.program(Vec::new());
    let main = builder.task("dbench", main_program, Start::At(0));
    let (mut passes, mut tasks) = (Vec::new(), Vec::new());
    for client in 0..clients {
        let meter = builder.meter(format!("pass {client}"), MeterKind::Samples);
        let program = builder.program(client_ops(options, released, meter));
        let task = builder.task("dbench", program, Start::Forked);
        let links = work_items(options, client, &log, builder);
        let spec = builder.task_mut(task);
        spec.links = links;
        spec.working_set_bytes = options.integer("working-set");
        passes.push(meter);
        tasks.push(task);
    }
    let mut ops: Vec<Op> = tasks.iter().map(|task| Op::Spawn(*task)).collect();
    ops.push(Op::Wait(fixed(released)));
    ops.push(Op::Repeat {
        times: Times::Count(options.integer("timelimit")),
        counter: None,
        body: vec![Op::Sleep(Dist::constant(1_000_000_000))],
    });
    builder.program_mut(main_program).ops = ops;
    builder.until(Until::Exit(main));
    Ok(Bench::Dbench(Dbench {
        clients,
        timelimit_s: options.integer("timelimit"),
        fsyncs: options.integer("fsyncs"),
        passes,
        tasks,
    }))
}

fn log(options: &Options, builder: &mut Builder) -> Log {
    let bound = if options.choice("cil") == "bound" { Bound::PerCpu } else { Bound::Unbound };
    let cil = builder.object("xfs-cil", ObjectKind::WorkQueue(WorkQueue { bound, high_priority: false }));
    let high = builder
        .object("kblockd", ObjectKind::WorkQueue(WorkQueue { bound: Bound::PerCpu, high_priority: true }));
    let request = |service: &str, latency: Dist, next: u32| Request {
        service: options.dist(service),
        service_queued_permille: options.count("group-commit"),
        latency,
        hard: vec![Op::Queue(link(next))],
        soft: Vec::new(),
    };
    let journal = builder.object(
        "journal",
        ObjectKind::Device(Device {
            channels: 1,
            interrupt: InterruptCpu::Submitter,
            requests: vec![
                request("flush", options.dist("latency"), FLUSH_STEP),
                request("write", Dist::constant(0), IO_END),
            ],
        }),
    );
    Log { cil, high, journal }
}

/// A client's own work items; several may be in flight at once, and one that is pending is not queued again.
fn work_items(options: &Options, client: u32, log: &Log, builder: &mut Builder) -> Vec<ObjectId> {
    let run = |name: &str| Op::RunKernel(options.dist(name));
    let submit = |request: u32| Op::Submit { to: fixed(log.journal), request };
    let items = [
        ("push", log.cil, vec![run("push")]),
        ("requeue", log.high, vec![run("step"), submit(FLUSH)]),
        ("flush step", log.high, vec![run("step"), submit(WRITE)]),
        ("ioend", log.high, vec![run("ioend"), Op::Post(link(DONE)), run("after")]),
    ];
    let mut links: Vec<ObjectId> = items
        .into_iter()
        .map(|(name, queue, body)| {
            builder.object(format!("{name} {client}"), ObjectKind::Work(Work { queue, body }))
        })
        .collect();
    links.push(builder.object(format!("done {client}"), ObjectKind::Semaphore { initial: 0 }));
    links
}

fn client_ops(options: &Options, released: ObjectId, pass: MeterRef) -> Vec<Op> {
    let fsync = vec![
        // File operations of 5 to 20 µs each return to user mode in between: preemptible as user code is.
        Op::Run(options.dist("work")),
        Op::Queue(link(PUSH)),
        Op::Flush(link(PUSH)),
        Op::RunKernel(options.dist("submit")),
        Op::Queue(link(REQUEUE)),
        Op::Wait(link(DONE)),
    ];
    let fsyncs = Op::Repeat { times: Times::Count(options.integer("fsyncs")), counter: None, body: fsync };
    let one_pass = vec![Op::Stamp(Reg(0)), fsyncs, Op::Sample { meter: pass, since: Reg(0) }];
    vec![Op::Wait(fixed(released)), Op::Repeat { times: Times::Forever, counter: None, body: one_pass }]
}
