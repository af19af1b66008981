//! Where CPUs are: cores, clusters, last-level caches, dies, packages, NUMA nodes and their distances.
//!
//! A [`Topology`] holds what firmware and kernel *state* about a machine and nothing derived from it. What is not stated
//! stays unknown: a machine without cache information and one whose firmware states a private L2 as the last level get
//! different scheduling domains, so the two must never look alike. [`SchedDomains`] derives the kernel's view from it.
//!
//! One constructor checks every source (text, named machine, `/sys`, headers of a recording), so an impossible shape is
//! refused by name in one place. What this does not do: read files (that is the host crate's) or guess what is missing.

mod build;
mod derive;
mod domain;
mod groups;
mod machines;
#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod property_tests;
mod shape;
#[cfg(test)]
mod tests;
mod text;

pub use build::{CacheSharing, NodeList, SiblingLists, TopologyError};
pub use domain::{DomainLevel, Generation, GroupId, SchedDomain, SchedDomains, SchedGroup, SdFlags, SgcId};
pub use machines::{Citation, MACHINES, Machine, Mark};

use crate::{CpuId, CpuSet};
use std::fmt;

/// Which of the kernel's mask rules apply (they differ where information is missing and where nodes cut packages).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arch {
    /// x86: clusters are CPUs that share an L2, and no PKG level where a package holds several nodes.
    X86,
    /// arm64 and riscv: the kernel's architecture-neutral rules.
    Generic,
}

impl Arch {
    /// The word that [`Topology::parse`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86",
            Self::Generic => "generic",
        }
    }
}

/// A kind of thing that CPUs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Hardware threads of one core.
    Core,
    /// Cores that share an L2 or an L3 tag partition.
    Cluster,
    /// CPUs that share the last-level cache.
    Llc,
    /// A piece of silicon within a package.
    Die,
    /// A socket.
    Package,
}

impl Unit {
    /// All kinds, from the inside out.
    pub const ALL: [Self; 5] = [Self::Core, Self::Cluster, Self::Llc, Self::Die, Self::Package];

    /// The word that [`Topology::parse`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Cluster => "cluster",
            Self::Llc => "llc",
            Self::Die => "die",
            Self::Package => "package",
        }
    }
}

/// One unit of its kind. Dense from 0 in the order of the units' lowest CPUs; firmware's own numbers are not kept, since
/// they are sparse, signed or relative to the package depending on the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId(u16);

impl UnitId {
    /// The dense number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A NUMA node, by the kernel's number (which may have holes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u16);

impl NodeId {
    /// The node with this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number as Linux prints it.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Does a node have memory of its own?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeMemory {
    /// The source does not say.
    Unknown,
    /// It has some.
    Present,
    /// It has none: everything its CPUs touch is on another node.
    Absent,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The kernel's number.
    pub id: NodeId,
    /// Its CPUs, offline ones included where known; empty for a node that only has memory.
    pub cpus: CpuSet,
    /// Has it memory?
    pub memory: NodeMemory,
}

/// How near two CPUs are: the smallest thing that both belong to.
///
/// Stated facts only. Where the source does not say which CPUs share a cache, a pair is not `Llc`, even though the kernel
/// may treat the whole node as one cache domain ([`SchedDomains::same_llc`] tells that).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// One and the same CPU.
    SameCpu,
    /// Threads of one core.
    Smt,
    /// One cluster, where that is something else than the last-level cache.
    Cluster,
    /// One last-level cache, within one node.
    Llc,
    /// One die and node, different caches.
    Die,
    /// One NUMA node, different dies or dies unknown.
    Node,
    /// Different NUMA nodes ([`Topology::distance`] says how far, [`Topology::unit`] whether in one package).
    Remote,
}

impl Level {
    /// All levels, nearest first.
    pub const ALL: [Self; 7] =
        [Self::SameCpu, Self::Smt, Self::Cluster, Self::Llc, Self::Die, Self::Node, Self::Remote];

    /// The word used in reports and as a JSON key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SameCpu => "same_cpu",
            Self::Smt => "smt",
            Self::Cluster => "cluster",
            Self::Llc => "llc",
            Self::Die => "die",
            Self::Node => "node",
            Self::Remote => "remote",
        }
    }
}

/// Where one CPU is. Numbers index `Topology::units` and `Topology::nodes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    core: u16,
    cluster: Option<u16>,
    llc: Option<u16>,
    die: Option<u16>,
    package: Option<u16>,
    node: u16,
    capacity: u16,
}

/// A machine's CPUs and what they share. Immutable; made by [`Topology::from_sibling_lists`], which checks it.
///
/// Equal topologies are equal however they were written down. Up to [`Topology::CPUS_MAX`] CPUs; numbers may have holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    arch: Arch,
    places: Vec<Option<Place>>,
    online: CpuSet,
    offline: CpuSet,
    /// Indexed by `Unit as usize`; each list ordered by lowest CPU.
    units: [Vec<CpuSet>; 5],
    nodes: Vec<Node>,
    /// Row by row over `nodes`; `None` where the source has nodes but no distances.
    distances: Option<Vec<u8>>,
    reclaim_distance: u8,
}

impl Topology {
    /// Linux's own limit on the number of CPUs.
    pub const CPUS_MAX: usize = 8192;
    /// A node's distance to itself.
    pub const LOCAL_DISTANCE: u8 = 10;
    /// What Linux takes as the distance between nodes when firmware states none.
    pub const REMOTE_DISTANCE: u8 = 20;
    /// Beyond this distance domains neither pull wake-ups nor balance fork and exec; AMD EPYC uses 32.
    pub const RECLAIM_DISTANCE: u8 = 30;

    /// Which mask rules the kernel of this machine uses.
    #[must_use]
    pub const fn arch(&self) -> Arch {
        self.arch
    }

    /// CPUs that run.
    #[must_use]
    pub const fn online(&self) -> &CpuSet {
        &self.online
    }

    /// CPUs that exist and do not run.
    #[must_use]
    pub const fn offline(&self) -> &CpuSet {
        &self.offline
    }

    /// One more than the highest CPU number: the length of a table indexed by CPU.
    #[must_use]
    pub fn cpu_bound(&self) -> usize {
        self.places.len()
    }

    /// How near `a` and `b` are, or `None` where this topology does not know one of them.
    #[must_use]
    pub fn level(&self, a: CpuId, b: CpuId) -> Option<Level> {
        let (here, there) = (self.place(a)?, self.place(b)?);
        let both = |x: Option<u16>, y: Option<u16>| x.is_some() && x == y;
        let same_llc = both(here.llc, there.llc);
        Some(if a == b {
            Level::SameCpu
        } else if here.core == there.core {
            Level::Smt
        } else if here.node != there.node {
            Level::Remote
        } else if both(here.cluster, there.cluster) && !(same_llc && self.cluster_is_llc(here)) {
            Level::Cluster
        } else if same_llc {
            Level::Llc
        } else if both(here.die, there.die) {
            Level::Die
        } else {
            Level::Node
        })
    }

    /// The unit of this kind that `cpu` belongs to; `None` where that is not stated or the CPU is unknown.
    #[must_use]
    pub fn unit(&self, unit: Unit, cpu: CpuId) -> Option<UnitId> {
        let place = self.place(cpu)?;
        let index = match unit {
            Unit::Core => Some(place.core),
            Unit::Cluster => place.cluster,
            Unit::Llc => place.llc,
            Unit::Die => place.die,
            Unit::Package => place.package,
        };
        index.map(UnitId)
    }

    /// The CPUs (offline ones included where known) of the unit of this kind that `cpu` belongs to.
    #[must_use]
    pub fn siblings(&self, unit: Unit, cpu: CpuId) -> Option<&CpuSet> {
        self.unit(unit, cpu).map(|id| &self.units[unit as usize][id.index()])
    }

    /// All units of this kind, indexed by [`UnitId::index`]. Empty where nothing is stated.
    #[must_use]
    pub fn units(&self, unit: Unit) -> &[CpuSet] {
        &self.units[unit as usize]
    }

    /// Is it stated for every online CPU which unit of this kind it belongs to?
    #[must_use]
    pub fn is_known(&self, unit: Unit) -> bool {
        self.online.iter().all(|cpu| self.unit(unit, cpu).is_some())
    }

    /// All NUMA nodes by ascending number, those without CPUs included.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of `cpu`.
    #[must_use]
    pub fn node(&self, cpu: CpuId) -> Option<&Node> {
        self.place(cpu).map(|place| &self.nodes[usize::from(place.node)])
    }

    /// The stated NUMA distance from one node to another; `None` where no distances are stated or a node is unknown. A
    /// node's distance to itself is always [`Self::LOCAL_DISTANCE`].
    #[must_use]
    pub fn node_distance(&self, from: NodeId, to: NodeId) -> Option<u8> {
        let row = self.nodes.iter().position(|node| node.id == from)?;
        let column = self.nodes.iter().position(|node| node.id == to)?;
        if row == column {
            return Some(Self::LOCAL_DISTANCE);
        }
        Some(self.distances.as_ref()?[row * self.nodes.len() + column])
    }

    /// The stated NUMA distance from `a`'s node to `b`'s.
    #[must_use]
    pub fn distance(&self, a: CpuId, b: CpuId) -> Option<u8> {
        self.node_distance(self.node(a)?.id, self.node(b)?.id)
    }

    /// Are distances stated? A single node needs none.
    #[must_use]
    pub fn distances_known(&self) -> bool {
        self.distances.is_some() || self.nodes.len() < 2
    }

    /// The distance beyond which domains neither pull wake-ups nor balance fork and exec.
    #[must_use]
    pub const fn reclaim_distance(&self) -> u8 {
        self.reclaim_distance
    }

    /// The CPU's capacity relative to the machine's strongest (1024), or `None` for an unknown CPU.
    #[must_use]
    pub fn capacity(&self, cpu: CpuId) -> Option<u16> {
        self.place(cpu).map(|place| place.capacity)
    }

    /// Do CPUs differ in capacity?
    #[must_use]
    pub fn is_asymmetric(&self) -> bool {
        let mut capacities = self.online.iter().filter_map(|cpu| self.capacity(cpu));
        let first = capacities.next();
        capacities.any(|capacity| Some(capacity) != first)
    }

    /// Has some core more than one running thread?
    #[must_use]
    pub fn has_smt(&self) -> bool {
        self.units(Unit::Core).iter().any(|core| core.intersection(&self.online).len() > 1)
    }

    /// The distance that the kernel works with: the stated one, or Linux's default where none is stated.
    fn effective_distance(&self, row: usize, column: usize) -> u8 {
        match &self.distances {
            Some(table) => table[row * self.nodes.len() + column],
            None if row == column => Self::LOCAL_DISTANCE,
            None => Self::REMOTE_DISTANCE,
        }
    }

    fn place(&self, cpu: CpuId) -> Option<&Place> {
        self.places.get(cpu.index())?.as_ref()
    }

    fn cluster_is_llc(&self, place: &Place) -> bool {
        place.cluster.zip(place.llc).is_some_and(|(cluster, llc)| {
            self.units[Unit::Cluster as usize][usize::from(cluster)]
                == self.units[Unit::Llc as usize][usize::from(llc)]
        })
    }
}
