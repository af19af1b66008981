//! `perf bench sched pipe`: two tasks, two pipes, one token.
//!
//! Task 0 reads then writes, task 1 writes then reads; an operation is one round trip, two wake-ups. As processes the parent is
//! task 1 itself and task 0 its child; as threads both are threads beside a main that joins them. Time starts before creation.

use super::{Bench, MANY, Transport, fixed};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc, flag};
use crate::{Builder, MeterKind, MeterRef, ObjectId, ObjectKind, Op, Reg, Start, Times, Until};

/// `perf bench sched pipe` as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PerfPipe {
    /// `-l`: round trips.
    pub loops: u64,
    /// `-T` (else processes).
    pub threaded: bool,
    /// `-n`: waits in epoll, then reads.
    pub nonblocking: bool,
    /// One sample: the time, ns.
    pub time: MeterRef,
}

pub(super) const TABLE: Table = Table {
    doc: WorkloadDoc {
        name: "pipe",
        doc: "perf bench sched pipe: two tasks hand a token to and fro through two pipes",
        result: "Total time, usecs/op and ops/sec; an operation is a round trip",
        options: &[
            OptionDoc {
                name: "loop",
                short: &["l", "loops"],
                kind: OptionKind::Integer { min: 1, max: MANY },
                default: "1000000",
                doc: "round trips",
            },
            flag("threaded", &["T", "threads"], "threads of one process instead of processes"),
            flag("nonblocking", &["n"], "wait in epoll_wait before each read"),
            flag("cgroups", &["G"], "each task in a task group of its own"),
        ],
    },
    build,
};

/// Bytes of the token: an int.
const TOKEN: u32 = 4;

fn build(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let (loops, threaded, nonblocking) =
        (options.integer("loop"), options.flag("threaded"), options.flag("nonblocking"));
    let time = builder.meter("time", MeterKind::Samples);
    let pipes =
        [0, 1].map(|n| builder.object(format!("pipe {n}"), ObjectKind::Stream(Transport::Pipe.stream())));
    let take = |pipe: ObjectId| {
        let read = Op::Read { from: fixed(pipe), bytes: TOKEN };
        if nonblocking { vec![Op::Poll { on: fixed(pipe) }, read] } else { vec![read] }
    };
    let give = |pipe: ObjectId| vec![Op::Write { to: fixed(pipe), bytes: TOKEN }];
    let rounds =
        |body: [Vec<Op>; 2]| Op::Repeat { times: Times::Count(loops), counter: None, body: body.concat() };
    let mut bodies =
        [vec![rounds([take(pipes[0]), give(pipes[1])])], vec![rounds([give(pipes[0]), take(pipes[1])])]];
    let groups =
        options.flag("cgroups").then(|| ["receive", "send"].map(|name| builder.group(name, None, 1024)));
    if let Some(groups) = groups {
        for (body, group) in bodies.iter_mut().zip(groups) {
            body.insert(0, Op::SetGroup(group));
        }
    }
    let [first, second] = bodies;

    let main_program = builder.program(Vec::new());
    let main = builder.task("sched-pipe", main_program, Start::At(0));
    let process = builder.task_mut(main).process;
    let spawn = |ops: Vec<Op>, builder: &mut Builder| {
        let program = builder.program(ops);
        let task = builder.task("sched-pipe", program, Start::Forked);
        if threaded {
            builder.task_mut(task).process = process;
        }
        task
    };
    let mut ops = vec![Op::Stamp(Reg(0))];
    if threaded {
        let tasks = [spawn(first, builder), spawn(second, builder)];
        ops.extend(tasks.map(Op::Spawn));
        ops.extend(tasks.map(Op::Join));
    } else {
        let child = spawn(first, builder);
        ops.push(Op::Spawn(child));
        ops.extend(second);
        ops.push(Op::Join(child));
    }
    ops.push(Op::Sample { meter: time, since: Reg(0) });
    builder.program_mut(main_program).ops = ops;
    builder.until(Until::Exit(main));
    Ok(Bench::PerfPipe(PerfPipe { loops, threaded, nonblocking, time }))
}
