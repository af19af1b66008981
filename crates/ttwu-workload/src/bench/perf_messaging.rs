//! `perf bench sched messaging`: hackbench's spray with 20 channels and 100 bytes.

use super::{Bench, MANY, Transport, spray::Spray};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc, flag};
use crate::{Builder, MeterRef};

/// `perf bench sched messaging` as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PerfMessaging {
    /// `-g`.
    pub groups: u32,
    /// `-l`.
    pub loops: u64,
    /// `-p` (else sockets).
    pub pipe: bool,
    /// `-t` (else processes).
    pub threads: bool,
    /// One sample: the time, ns.
    pub time: MeterRef,
}

pub(super) const TABLE: Table = Table {
    doc: WorkloadDoc {
        name: "messaging",
        doc: "perf bench sched messaging: hackbench's spray with 20 senders and receivers a group, 100 bytes a message",
        result: "Total time",
        options: &[
            OptionDoc {
                name: "group",
                short: &["g", "groups"],
                kind: OptionKind::Integer { min: 1, max: 10_000 },
                default: "10",
                doc: "groups",
            },
            OptionDoc {
                name: "nr_loops",
                short: &["l", "loops"],
                kind: OptionKind::Integer { min: 1, max: MANY },
                default: "100",
                doc: "rounds of each sender",
            },
            flag("pipe", &["p"], "pipes instead of sockets"),
            flag("thread", &["t", "threads"], "threads of one process instead of processes"),
        ],
    },
    build,
};

fn build(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let (groups, loops) = (options.count("group"), options.integer("nr_loops"));
    let (pipe, threads) = (options.flag("pipe"), options.flag("thread"));
    let transport = if pipe { Transport::Pipe } else { Transport::Unix };
    let time = Spray { groups, fds: 20, loops, bytes: 100, threads, transport, name: "sched-messaging" }
        .build(builder);
    Ok(Bench::PerfMessaging(PerfMessaging { groups, loops, pipe, threads, time }))
}
