//! rt-tests' hackbench: groups of senders that spray messages at receivers.

use super::{Bench, MANY, spray::Spray};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc, flag, refused};
use crate::{Builder, MeterRef};

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// AF_UNIX stream sockets, the default.
    Unix,
    /// Pipes (`-p`).
    Pipe,
    /// TCP over loopback (`-i`).
    Inet,
}

/// hackbench as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hackbench {
    /// `-g`.
    pub groups: u32,
    /// `-f`: senders, and receivers, in a group.
    pub fds: u32,
    /// `-l`: rounds of each sender.
    pub loops: u64,
    /// `-s`, bytes.
    pub datasize: u32,
    /// `-T` (else processes).
    pub threads: bool,
    /// What carries the messages.
    pub transport: Transport,
    /// One sample: the time, ns.
    pub time: MeterRef,
}

impl Hackbench {
    /// Messages in the whole run: groups × fds² × loops.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.groups as u64 * self.fds as u64 * self.fds as u64 * self.loops
    }

    /// Senders and receivers: groups × 2 × fds.
    #[must_use]
    pub const fn tasks(&self) -> u64 {
        self.groups as u64 * 2 * self.fds as u64
    }
}

const fn positive(
    name: &'static str,
    short: &'static [&'static str],
    default: &'static str,
    max: u64,
    doc: &'static str,
) -> OptionDoc {
    OptionDoc { name, short, kind: OptionKind::Integer { min: 1, max }, default, doc }
}

pub(super) const TABLE: Table = Table {
    doc: WorkloadDoc {
        name: "hackbench",
        doc: "rt-tests' hackbench: in each group, every sender sends to every receiver",
        result: "Time, from the release of all tasks to the end of the last",
        options: &[
            positive("groups", &["g"], "10", 10_000, "groups"),
            positive("fds", &["f"], "20", 10_000, "senders, and receivers, in a group"),
            positive(
                "loops",
                &["l"],
                "100",
                MANY,
                "rounds of each sender; a round is one message to each receiver",
            ),
            positive("datasize", &["s"], "100", 1 << 20, "bytes in a message"),
            flag("threads", &["T"], "threads of one process instead of processes"),
            flag("process", &["P"], "processes, which is the default"),
            flag("pipe", &["p"], "pipes instead of sockets"),
            flag("inet", &["i"], "TCP over loopback instead of local sockets"),
            refused("fifo", &["F"], "SCHED_FIFO for the main task; only the fair class is"),
        ],
    },
    build,
};

fn build(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    if options.flag("threads") && options.flag("process") {
        return Err("expected one of `threads` and `process`".to_owned());
    }
    // Every sender of a group holds all its channels.
    if options.integer("groups") * options.integer("fds").pow(2) > 100_000_000 {
        return Err("groups, fds: expected at most 100 million pairs of sender and receiver".to_owned());
    }
    let transport = match (options.flag("pipe"), options.flag("inet")) {
        (true, true) => return Err("expected one of `pipe` and `inet`".to_owned()),
        (true, false) => Transport::Pipe,
        (false, true) => Transport::Inet,
        (false, false) => Transport::Unix,
    };
    let spray = Spray {
        groups: options.count("groups"),
        fds: options.count("fds"),
        loops: options.integer("loops"),
        bytes: options.count("datasize"),
        threads: options.flag("threads"),
        transport,
        name: "hackbench",
    };
    let time = spray.build(builder);
    let Spray { groups, fds, loops, bytes: datasize, threads, transport, name: _ } = spray;
    Ok(Bench::Hackbench(Hackbench { groups, fds, loops, datasize, threads, transport, time }))
}
