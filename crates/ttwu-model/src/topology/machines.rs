//! Named machines: those of the discussions that this laboratory reproduces, and small ones for tests.
//!
//! Each row is a text that [`Topology::parse`] reads, with the source of every number in it. A number that nobody
//! stated is marked, so that a result that hangs on it can be told from one that does not.
//!
//! What this does not hold: clock rates, cache sizes or costs; those belong to cost models.

use super::Topology;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Stated in the discussion, a mail or a data sheet.
    Stated,
    /// From memory of such machines, not checked.
    Memory,
    /// Chosen by us where nobody says.
    Chosen,
}

impl Mark {
    /// One word for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Memory => "from memory",
            Self::Chosen => "chosen",
        }
    }
}

/// One number or choice of a machine and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Citation {
    /// What is said.
    pub fact: &'static str,
    /// By whom or why.
    pub from: &'static str,
    /// How far to trust it.
    pub mark: Mark,
}

/// One named machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// Its topology in the text form.
    pub text: &'static str,
    /// Every number of `text` with its source.
    pub sources: &'static [Citation],
}

impl Machine {
    /// The machine with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        MACHINES.iter().find(|machine| machine.name == name)
    }

    /// Its topology.
    ///
    /// # Panics
    /// Never: a test reads every row.
    #[must_use]
    pub fn topology(&self) -> Topology {
        Topology::parse(self.text).expect("rows of the table are valid")
    }
}

const fn stated(fact: &'static str, from: &'static str) -> Citation {
    Citation { fact, from, mark: Mark::Stated }
}

const fn memory(fact: &'static str, from: &'static str) -> Citation {
    Citation { fact, from, mark: Mark::Memory }
}

const fn chosen(fact: &'static str, from: &'static str) -> Citation {
    Citation { fact, from, mark: Mark::Chosen }
}

const CLUSTER_THREAD: &str = "cluster scheduling level, RFC v2, December 2020";
const DMA_THREAD: &str = "DMA engine regression, January 2022";
const WAKELIST_THREAD: &str = "wake list within the LLC, May 2022";
const DBENCH_THREAD: &str = "XFS/dbench, January 2020";
const QEMU_RECORDING: &str = "machine of the recorded kernel decisions: QEMU options and /sys of the guest";

/// All named machines.
pub const MACHINES: &[Machine] = &[
    Machine {
        name: "kunpeng920",
        title: "HiSilicon Kunpeng 920, 2 sockets x 2 nodes x 24 cores",
        text: "arch generic; 2 sockets x 2 nodes x 6 clusters x 4 cores; llc node
               distances 10 12 20 22 / 12 10 22 24 / 20 22 10 12 / 22 24 12 10",
        sources: &[
            stated("4 nodes of 24 CPUs, 6 clusters of 4 cores each, no SMT", CLUSTER_THREAD),
            stated("LLC spans the node: domains printed as 0-23 and 24-47", CLUSTER_THREAD),
            memory("distances 10 12 20 22 24", "SLIT of such servers"),
        ],
    },
    Machine {
        name: "kunpeng920-node",
        title: "one node of a Kunpeng 920: 24 cores in 6 clusters, one LLC",
        text: "arch generic; 1 socket x 6 clusters x 4 cores; llc socket",
        sources: &[
            stated("24 CPUs, 6 clusters of 4 cores, one LLC", CLUSTER_THREAD),
            chosen("alone, without the other nodes' domains", "numactl -N 0 keeps tasks in the node anyway"),
        ],
    },
    Machine {
        name: "kunpeng920-128",
        title: "HiSilicon Kunpeng 920 with 32-core dies, 2 sockets x 2 nodes x 32 cores",
        text: "arch generic; 2 sockets x 2 nodes x 8 clusters x 4 cores; llc node
               distances 10 12 20 22 / 12 10 22 24 / 20 22 10 12 / 22 24 12 10",
        sources: &[
            stated("8 clusters of 4 cores a node", "cluster wake-up series for v6.7, 2023"),
            memory("2 sockets x 2 nodes, distances as kunpeng920", "the 128-core model"),
        ],
    },
    Machine {
        name: "xeon-8269cy",
        title: "Intel Xeon Platinum 8269CY, 2 sockets x 26 cores x 2 threads",
        text: "arch x86; 2 sockets x 1 node x 26 cores x 2 threads; distances 21",
        sources: &[
            stated("2 sockets x 26 cores x 2 threads, one LLC a socket", WAKELIST_THREAD),
            memory("siblings are c and c + 52", "usual Linux numbering"),
            memory("distance 21", "SLIT of two-socket Xeons"),
        ],
    },
    Machine {
        name: "xeon-6132x2",
        title: "2 x Intel Xeon Gold 6132, 14 cores x 2 threads each",
        text: "arch x86; 2 sockets x 1 node x 14 cores x 2 threads; distances 21",
        sources: &[
            stated("Xeon 6132, two nodes", DMA_THREAD),
            memory("14 cores x 2 threads a socket; siblings are c and c + 28", "model's data sheet"),
            memory("distance 21", "SLIT of two-socket Xeons"),
        ],
    },
    Machine {
        name: "xeon-3204x2",
        title: "2 x Intel Xeon Bronze 3204, 6 cores each, no SMT",
        text: "arch x86; 2 sockets x 1 node x 6 cores; distances 21",
        sources: &[
            stated("Xeon 3204, two nodes", DMA_THREAD),
            memory("6 cores a socket without SMT", "model's data sheet"),
            memory("distance 21", "SLIT of two-socket Xeons"),
        ],
    },
    Machine {
        name: "epyc-7313x2",
        title: "2 x AMD EPYC 7313, 4 CCX of 4 cores x 2 threads each",
        text: "arch x86; 2 sockets x 1 node x 4 llcs x 4 cores x 2 threads; distances 32; reclaim 32",
        sources: &[
            stated("EPYC 7313; CPU numbers above 52, so two sockets", DMA_THREAD),
            memory("16 cores in 4 CCX; siblings are c and c + 32", "model's data sheet, usual numbering"),
            memory("distance 32", "SLIT of two-socket EPYCs, one node a socket"),
            stated("reclaim distance 32", "kernel's setting for EPYC"),
        ],
    },
    Machine {
        name: "epyc-7313",
        title: "AMD EPYC 7313, 4 CCX of 4 cores x 2 threads",
        text: "arch x86; 1 socket x 4 llcs x 4 cores x 2 threads; reclaim 32",
        sources: &[
            stated("EPYC 7313", DMA_THREAD),
            memory("16 cores in 4 CCX; siblings are c and c + 16", "model's data sheet, usual numbering"),
            stated("reclaim distance 32", "kernel's setting for EPYC"),
        ],
    },
    Machine {
        name: "ampere-altra",
        title: "Ampere Altra, 80 cores; firmware states a private L2 as the last level",
        text: "arch generic; 1 socket x 80 cores; llc cpu",
        sources: &[
            stated("80 cores, each CPU with its own LLC id: firmware reports only L2", WAKELIST_THREAD),
            chosen("one node, no clusters", "not stated"),
        ],
    },
    Machine {
        name: "ampere-altra-l3",
        title: "Ampere Altra, 80 cores, with the system-level cache in the firmware's tables",
        text: "arch generic; 1 socket x 80 cores; llc socket",
        sources: &[
            stated("80 cores", WAKELIST_THREAD),
            chosen("one LLC for the node", "what correct tables would state"),
        ],
    },
    Machine {
        name: "i7-4790",
        title: "Intel Core i7-4790, 4 cores x 2 threads, one LLC",
        text: "arch x86; 1 socket x 4 cores x 2 threads",
        sources: &[
            stated("i7-4790, 8 run queues", "EEVDF series, April 2023"),
            memory("siblings are c and c + 4", "usual Linux numbering"),
        ],
    },
    Machine {
        name: "xfs-48cpu-numa",
        title: "the dbench machine: 48 CPUs, 24 to an LLC, NUMA",
        text: "arch x86; 2 sockets x 1 node x 12 cores x 2 threads; distances 21",
        sources: &[
            stated("NUMA, 48 CPUs, 24 CPUs an LLC", DBENCH_THREAD),
            chosen(
                "12 cores x 2 threads a socket; siblings are c and c + 24",
                "2 x 24 without SMT is possible too",
            ),
            memory("distance 21", "SLIT of two-socket Xeons"),
        ],
    },
    Machine {
        name: "uma-8",
        title: "the second dbench machine: 8 cores, one LLC",
        text: "arch x86; 1 socket x 8 cores",
        sources: &[stated("8 cores, one LLC, UMA", DBENCH_THREAD)],
    },
    Machine {
        name: "oracle-a",
        title: "QEMU, 1 socket x 4 cores x 2 threads, one LLC",
        text: "arch x86; 1 socket x 4 cores x 2 threads; threads adjacent",
        sources: &[stated("all", QEMU_RECORDING)],
    },
    Machine {
        name: "oracle-b",
        title: "QEMU, 2 nodes x 4 cores",
        text: "arch x86; 2 sockets x 1 node x 4 cores; distances 21",
        sources: &[stated("all", QEMU_RECORDING)],
    },
    Machine {
        name: "oracle-c",
        title: "QEMU, 2 nodes x 2 clusters x 2 cores",
        text: "arch x86; 2 sockets x 1 node x 2 clusters x 2 cores; distances 21",
        sources: &[stated("all", QEMU_RECORDING)],
    },
    Machine {
        name: "oracle-d",
        title: "QEMU, 2 nodes x 4 cores x 2 threads",
        text: "arch x86; 2 sockets x 1 node x 4 cores x 2 threads; threads adjacent; distances 21",
        sources: &[stated("all", QEMU_RECORDING)],
    },
];
