//! rt-tests' cyclictest under the fair class: threads that sleep to planned times and measure how late they wake.
//!
//! The original holds deep idle states off for the whole run (`/dev/cpu_dma_latency`) unless told not to: whether that is so here is
//! a setting of the scenario, not of the workload, and [`Cyclictest::default_system`] says what the original would have done.
//!
//! DEVIATION: after a miss the original skips to the next planned time that is not past; here the missed ones are caught up.

use ttwu_model::CpuId;

use super::{Bench, MANY};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc, flag, refused};
use crate::{Builder, Dist, MeterKind, MeterRef, Op, Reg, Start, TaskRef, Times, Until};

/// cyclictest as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cyclictest {
    /// The threads.
    pub threads: Vec<CyclictestThread>,
    /// `--default-system`: deep idle states were left as they are.
    pub default_system: bool,
}

/// A thread of cyclictest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CyclictestThread {
    /// Its task.
    pub task: TaskRef,
    /// Its interval, µs (`I:`).
    pub interval_us: u64,
    /// How late it woke, ns (`Min`, `Act`, `Avg`, `Max`); their number is `C:`.
    pub latency: MeterRef,
}

const fn micros(
    name: &'static str,
    short: &'static [&'static str],
    default: &'static str,
    min: u64,
    doc: &'static str,
) -> OptionDoc {
    let kind = OptionKind::Time { bare_ns: 1_000, min, max: 3_600_000_000_000 };
    OptionDoc { name, short, kind, default, doc }
}

pub(super) const TABLE: Table = Table {
    doc: WorkloadDoc {
        name: "cyclictest",
        doc: "rt-tests' cyclictest under SCHED_OTHER: threads that wake at planned times",
        result: "latency of each thread: least, last, mean, greatest",
        options: &[
            OptionDoc {
                name: "threads",
                short: &["t"],
                kind: OptionKind::IntegerOrAuto { min: 1, max: 10_000 },
                default: "1",
                doc: "threads; auto is one a CPU",
            },
            flag("smp", &["S"], "one thread a CPU, pinned there"),
            micros("interval", &["i"], "1000us", 1_000, "interval of the first thread"),
            micros("distance", &["d"], "500us", 0, "what each further thread's interval is longer by"),
            OptionDoc {
                name: "loops",
                short: &["l"],
                kind: OptionKind::Integer { min: 0, max: MANY },
                default: "0",
                doc: "wake-ups of the first thread, with whose end all end; 0 is until the duration is over",
            },
            OptionDoc {
                name: "duration",
                short: &["D"],
                kind: OptionKind::Integer { min: 1, max: 604_800 },
                default: "10",
                doc: "seconds, without `loops` (the original goes on for ever)",
            },
            flag("default-system", &[], "leave deep idle states as they are (see the scenario's settings)"),
            refused("priority", &["p"], "a FIFO priority; only the fair class is"),
            refused("policy", &[], "policies besides SCHED_OTHER"),
            refused("priospread", &[], "FIFO priorities"),
        ],
    },
    build,
};

fn build(options: &Options, machine: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let smp = options.flag("smp");
    let count = match (smp, options.integer_or_auto("threads")) {
        (true, _) | (false, None) => machine.cpus,
        (false, Some(count)) => count as u32,
    };
    let loops = options.integer("loops");
    let times = if loops == 0 { Times::Forever } else { Times::Count(loops) };
    let mut threads = Vec::new();
    for number in 0..count {
        let interval = options.integer("interval") + u64::from(number) * options.integer("distance");
        let latency = builder.meter(format!("latency {number}"), MeterKind::Samples);
        let body = vec![
            Op::Periodic { timer: Reg(0), period: Dist::constant(interval), rebase: false },
            Op::Sample { meter: latency, since: Reg(0) },
        ];
        let program = builder.program(vec![Op::Repeat { times: times.clone(), counter: None, body }]);
        let task = builder.task("cyclictest", program, Start::At(0));
        let process = builder.task_mut(TaskRef(task.0 - number)).process;
        let spec = builder.task_mut(task);
        spec.process = process;
        if smp {
            spec.allowed = Some([CpuId::new(number as u16)].into_iter().collect());
        }
        threads.push(CyclictestThread { task, interval_us: interval / 1_000, latency });
    }
    builder.until(match loops {
        0 => Until::Time(options.integer("duration") * 1_000_000_000),
        _ => Until::Exit(threads[0].task),
    });
    Ok(Bench::Cyclictest(Cyclictest { threads, default_system: options.flag("default-system") }))
}
