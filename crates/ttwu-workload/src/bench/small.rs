//! Loads of a few lines: massive_intr, a pair that shares a CPU, background noise.

use ttwu_model::{CpuId, CpuSet};

use super::{Bench, MANY};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc};
use crate::{Builder, Dist, MeterKind, MeterRef, Op, Start, TaskRef, Times, Until};

/// massive_intr as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MassiveIntr {
    /// Processes.
    pub nproc: u32,
    /// Seconds.
    pub runtime_s: u64,
    /// Loops of each process, in order of creation, and the process. The original prints pid and loops in order of finishing.
    pub loops: Vec<(TaskRef, MeterRef)>,
}

/// Two tasks on one CPU, of which one sleeps half of its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Duty {
    /// The task that always runs.
    pub always: TaskRef,
    /// The task that works, then sleeps.
    pub half: TaskRef,
    /// Work done by `always`, rounds of 100 µs.
    pub always_rounds: MeterRef,
    /// Work done by `half`, rounds of its `work`.
    pub half_rounds: MeterRef,
    /// Seconds.
    pub runtime_s: u64,
}

const fn seconds(name: &'static str, default: &'static str) -> OptionDoc {
    OptionDoc {
        name,
        short: &["r"],
        kind: OptionKind::Integer { min: 1, max: 86_400 },
        default,
        doc: "seconds",
    }
}

const fn time(name: &'static str, default: &'static str, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Dist { bare_ns: 1_000_000 }, default, doc }
}

pub(super) const MASSIVE_INTR: Table = Table {
    doc: WorkloadDoc {
        name: "massive_intr",
        doc: "Takeuchi's massive_intr: processes that compute 8 ms, then sleep 1 ms",
        result: "loops of each process, nearly equal under a fair scheduler",
        options: &[
            OptionDoc {
                name: "nproc",
                short: &["n"],
                kind: OptionKind::IntegerOrAuto { min: 1, max: 1024 },
                default: "auto",
                doc: "processes; auto is one a CPU (the original has no default)",
            },
            seconds("runtime", "10"),
            time(
                "work",
                "8ms",
                "work between sleeps, a loop count in the original: stolen time lengthens it",
            ),
            time("sleep", "1ms", "sleep"),
        ],
    },
    build: massive_intr,
};

/// The children sleep so long before they wait for the parent's signal, and the parent sends it then.
const CHILD_SETTLES_NS: u64 = 200_000_000;

fn massive_intr(options: &Options, machine: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let nproc = options.integer_or_auto("nproc").map_or(machine.cpus, |n| n as u32);
    let runtime_s = options.integer("runtime");
    let mut loops = Vec::new();
    for number in 0..nproc {
        let meter = builder.meter(format!("loops {number}"), MeterKind::Count);
        let body =
            vec![Op::Run(options.dist("work")), Op::Sleep(options.dist("sleep")), Op::Count { meter, by: 1 }];
        let end = CHILD_SETTLES_NS + runtime_s * 1_000_000_000;
        let program = builder.program(vec![
            Op::Sleep(Dist::constant(CHILD_SETTLES_NS)),
            Op::Repeat { times: Times::Before(end), counter: None, body },
        ]);
        loops.push((builder.task("massive_intr", program, Start::Forked), meter));
    }
    let mut ops: Vec<Op> = loops.iter().map(|(task, _)| Op::Spawn(*task)).collect();
    ops.extend(loops.iter().map(|(task, _)| Op::Join(*task)));
    let program = builder.program(ops);
    let main = builder.task("massive_intr", program, Start::At(0));
    builder.until(Until::Exit(main));
    Ok(Bench::MassiveIntr(MassiveIntr { nproc, runtime_s, loops }))
}

pub(super) const DUTY: Table = Table {
    doc: WorkloadDoc {
        name: "duty",
        doc: "two tasks on one CPU: one always runs, the other works and sleeps in equal parts",
        result: "their shares of the CPU: 67/33 with lag placement, about 50/50 under CFS",
        options: &[
            seconds("runtime", "10"),
            time("work", "10ms", "work between sleeps"),
            time("sleep", "10ms", "sleep"),
            OptionDoc {
                name: "cpu",
                short: &[],
                kind: OptionKind::Integer { min: 0, max: 65_535 },
                default: "0",
                doc: "the CPU that both share",
            },
        ],
    },
    build: duty,
};

/// Rounds in which the work of the task that always runs is counted.
const ROUND_NS: u64 = 100_000;

fn duty(options: &Options, machine: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let runtime_s = options.integer("runtime");
    let cpu = options.integer("cpu");
    if cpu >= u64::from(machine.cpus) {
        return Err(format!("cpu: the machine has {} CPUs, from 0", machine.cpus));
    }
    let always_rounds = builder.meter("always", MeterKind::Count);
    let half_rounds = builder.meter("half", MeterKind::Count);
    let forever = |body: Vec<Op>| vec![Op::Repeat { times: Times::Forever, counter: None, body }];
    let always = forever(vec![Op::Run(Dist::constant(ROUND_NS)), Op::Count { meter: always_rounds, by: 1 }]);
    let half = forever(vec![
        Op::Run(options.dist("work")),
        Op::Count { meter: half_rounds, by: 1 },
        Op::Sleep(options.dist("sleep")),
    ]);
    let [always, half] = [("always", always), ("half", half)].map(|(name, ops)| {
        let program = builder.program(ops);
        let task = builder.task(name, program, Start::At(0));
        builder.task_mut(task).allowed = Some([CpuId::new(cpu as u16)].into_iter().collect());
        task
    });
    builder.until(Until::Time(runtime_s * 1_000_000_000));
    Ok(Bench::Duty(Duty { always, half, always_rounds, half_rounds, runtime_s }))
}

pub(super) const NOISE: Table = Table {
    doc: WorkloadDoc {
        name: "noise",
        doc: "background: on every CPU short tasks that are pinned there; join it to another workload with ` & noise`",
        result: "none",
        options: &[
            OptionDoc {
                name: "run",
                short: &[],
                kind: OptionKind::Dist { bare_ns: 1_000 },
                default: "20us",
                doc: "work at a time",
            },
            time("sleep", "uniform(20ms..100ms)", "sleep between"),
            OptionDoc {
                name: "tasks",
                short: &[],
                kind: OptionKind::Integer { min: 1, max: 1_000 },
                default: "1",
                doc: "tasks a CPU",
            },
            OptionDoc {
                name: "runtime",
                short: &["r"],
                kind: OptionKind::Integer { min: 1, max: MANY },
                default: "10",
                doc: "seconds, when nothing else is run",
            },
        ],
    },
    build: noise,
};

fn noise(options: &Options, machine: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    // Sleeps first, so that the tasks do not all run at once at the start.
    let body = vec![Op::Sleep(options.dist("sleep")), Op::Run(options.dist("run"))];
    let program = builder.program(vec![Op::Repeat { times: Times::Forever, counter: None, body }]);
    for cpu in 0..machine.cpus {
        for number in 0..options.count("tasks") {
            let task = builder.task(format!("noise/{cpu}.{number}"), program, Start::At(0));
            builder.task_mut(task).allowed = Some([CpuId::new(cpu as u16)].into_iter().collect::<CpuSet>());
        }
    }
    builder.until(Until::Time(options.integer("runtime") * 1_000_000_000));
    Ok(Bench::Own)
}
