//! The one checking constructor: lists of CPUs that share something, in; a [`Topology`], or the reason why there can be
//! no such machine, out.
//!
//! Lists rather than ids, because that is what `/sys` and perf's file headers have, and because ids of different sources
//! (per package, per die, global, negative for "unknown") cannot be compared.

use super::{Arch, Node, NodeId, NodeMemory, Place, Topology, Unit};
use crate::{CpuId, CpuSet};
use std::collections::BTreeMap;

/// What a source says about a machine's CPUs. Any value is allowed here; [`Topology::from_sibling_lists`] checks it.
///
/// Lists may repeat (each CPU's own list of a `/sys` tree, for instance). A CPU that no list of a kind mentions has an
/// unknown unit of that kind; for cores it is a core of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiblingLists {
    /// Which mask rules the machine's kernel uses.
    pub arch: Arch,
    /// CPUs that run.
    pub online: CpuSet,
    /// CPUs that exist and do not run.
    pub offline: CpuSet,
    /// Hardware threads that share a core.
    pub cores: Vec<CpuSet>,
    /// CPUs that share a cluster.
    pub clusters: Vec<CpuSet>,
    /// CPUs that share the last-level cache; sets of one CPU state a private last level.
    pub llcs: Vec<CpuSet>,
    /// CPUs of one die.
    pub dies: Vec<CpuSet>,
    /// CPUs of one package.
    pub packages: Vec<CpuSet>,
    /// NUMA nodes; none means one node 0 with every CPU.
    pub nodes: Vec<NodeList>,
    /// One row a node in the order of `nodes`; `None` where the source states none.
    pub distances: Option<Vec<Vec<u8>>>,
    /// Capacities, 1 to 1024, of CPUs that have another one than 1024.
    pub capacities: Vec<(CpuSet, u16)>,
    /// See [`Topology::reclaim_distance`].
    pub reclaim_distance: u8,
}

/// One NUMA node of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeList {
    /// The kernel's number.
    pub id: u16,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Has it memory?
    pub memory: NodeMemory,
}

/// One data or unified cache and the CPUs that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSharing {
    /// 1 for an L1, and so on.
    pub level: u8,
    /// Who shares it.
    pub cpus: CpuSet,
}

/// Why lists or a text are no topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// Nobody to run on.
    #[error("no online CPU: expected at least one")]
    NoCpu,
    /// A number beyond Linux's limit.
    #[error("CPU {cpu}: expected a number below {}", Topology::CPUS_MAX)]
    CpuTooLarge {
        /// The offender.
        cpu: CpuId,
    },
    /// Online and offline at once.
    #[error("CPU {cpu} is both online and offline: expected one of them")]
    OnlineAndOffline {
        /// The offender.
        cpu: CpuId,
    },
    /// A list speaks of a CPU that does not exist.
    #[error("{what} list `{list}` has CPU {cpu}, which is neither online nor offline: add it or take it out")]
    CpuUnknown {
        /// What kind of list.
        what: &'static str,
        /// The list.
        list: CpuSet,
        /// The offender.
        cpu: CpuId,
    },
    /// Two different units of one kind claim a CPU.
    #[error("CPU {cpu} is in two {what}s, `{first}` and `{second}`: expected disjoint lists")]
    Overlap {
        /// What kind of list.
        what: &'static str,
        /// The CPU claimed twice.
        cpu: CpuId,
        /// One claim.
        first: CpuSet,
        /// The other.
        second: CpuSet,
    },
    /// An inner unit sticks out of an outer one.
    #[error("{inner} `{inner_cpus}` is only partly in {outer} `{outer_cpus}`: expected it inside")]
    NotInside {
        /// Kind of the inner unit.
        inner: &'static str,
        /// The inner unit.
        inner_cpus: CpuSet,
        /// Kind of the outer unit.
        outer: &'static str,
        /// One of the outer units that it touches.
        outer_cpus: CpuSet,
    },
    /// Two units overlap and neither contains the other.
    #[error("{a} `{a_cpus}` and {b} `{b_cpus}` cross: expected one inside the other")]
    Crossing {
        /// Kind of one unit.
        a: &'static str,
        /// One unit.
        a_cpus: CpuSet,
        /// Kind of the other unit.
        b: &'static str,
        /// The other unit.
        b_cpus: CpuSet,
    },
    /// The same node number twice.
    #[error("node {0} is stated twice: expected one list a node")]
    NodeTwice(u16),
    /// A node without CPUs and without memory.
    #[error("node {0} has neither CPUs nor memory: take it out or say what it has")]
    NodeEmpty(u16),
    /// An online CPU in no node.
    #[error("online CPU {0} is in no node: expected it in one")]
    NoNode(CpuId),
    /// The distance table has another shape than the node list.
    #[error("distances: expected {nodes} rows of {nodes} numbers, found {found}")]
    DistanceShape {
        /// How many nodes there are.
        nodes: usize,
        /// What was found.
        found: String,
    },
    /// A distance that Linux would refuse too.
    #[error(
        "distance from node {from} to node {to} is {found}: expected 10 to itself and 11 to 254 to any other"
    )]
    Distance {
        /// From.
        from: u16,
        /// To.
        to: u16,
        /// The number.
        found: u8,
    },
    /// Out of range.
    #[error("capacity {found} of CPUs `{cpus}`: expected 1 to 1024")]
    Capacity {
        /// Whose.
        cpus: CpuSet,
        /// The number.
        found: u16,
    },
    /// Out of range.
    #[error("reclaim distance {0}: expected at least 10")]
    Reclaim(u8),
    /// A text that says something else than a topology.
    #[error("line {line}: expected {expected}, found `{found}`")]
    Text {
        /// Counted from 1.
        line: usize,
        /// What should have been there.
        expected: &'static str,
        /// What was there.
        found: String,
    },
    /// A CPU list of the text is none.
    #[error("line {line}: {source}")]
    List {
        /// Counted from 1.
        line: usize,
        /// Which list and what is wrong with it.
        source: crate::CpuSetError,
    },
}

impl SiblingLists {
    /// Only which CPUs run; nothing else stated.
    #[must_use]
    pub const fn new(arch: Arch, online: CpuSet) -> Self {
        Self {
            arch,
            online,
            offline: CpuSet::new(),
            cores: Vec::new(),
            clusters: Vec::new(),
            llcs: Vec::new(),
            dies: Vec::new(),
            packages: Vec::new(),
            nodes: Vec::new(),
            distances: None,
            capacities: Vec::new(),
            reclaim_distance: Topology::RECLAIM_DISTANCE,
        }
    }

    /// Takes the last-level caches from a list of all data and unified caches: for each CPU the highest level stated.
    /// An L1 alone states no last level. On x86 CPUs that share an L2 are a cluster, where none is stated otherwise.
    pub fn set_caches(&mut self, caches: &[CacheSharing]) {
        let mut highest: BTreeMap<CpuId, &CacheSharing> = BTreeMap::new();
        for cache in caches.iter().filter(|cache| cache.level > 1) {
            for cpu in cache.cpus.iter().filter(|&cpu| self.online.contains(cpu)) {
                let best = highest.entry(cpu).or_insert(cache);
                if cache.level > best.level {
                    *best = cache;
                }
            }
        }
        self.llcs = highest.values().map(|cache| cache.cpus.clone()).collect();
        if self.arch == Arch::X86 && self.clusters.is_empty() {
            let l2 = caches.iter().filter(|cache| cache.level == 2);
            self.clusters = l2.map(|cache| cache.cpus.clone()).collect();
        }
    }

    fn lists(&self, unit: Unit) -> &[CpuSet] {
        match unit {
            Unit::Core => &self.cores,
            Unit::Cluster => &self.clusters,
            Unit::Llc => &self.llcs,
            Unit::Die => &self.dies,
            Unit::Package => &self.packages,
        }
    }
}

/// Pairs of kinds of which the first must lie inside the second. Everything else may nest either way round: an LLC may
/// hold several nodes (sub-NUMA clusters), a node several packages (NUMA switched off), a cluster may be larger than a
/// last level that firmware states as private (Ampere Altra).
const INSIDE: [(Unit, Unit); 6] = [
    (Unit::Core, Unit::Cluster),
    (Unit::Core, Unit::Llc),
    (Unit::Core, Unit::Die),
    (Unit::Core, Unit::Package),
    (Unit::Cluster, Unit::Package),
    (Unit::Die, Unit::Package),
];

/// Pairs of kinds that must nest, whichever is inside.
const NESTED: [(Unit, Unit); 4] = [
    (Unit::Cluster, Unit::Llc),
    (Unit::Cluster, Unit::Die),
    (Unit::Llc, Unit::Die),
    (Unit::Llc, Unit::Package),
];

/// Units of one kind with the way back from a CPU to its unit.
struct Partition {
    what: &'static str,
    sets: Vec<CpuSet>,
    of: Vec<Option<u16>>,
}

impl Topology {
    /// The machine that these lists describe. Distances may be asymmetric, as some firmware states them and the kernel
    /// uses them.
    ///
    /// # Errors
    /// When no machine can look like this; the message names the CPUs.
    pub fn from_sibling_lists(lists: &SiblingLists) -> Result<Self, TopologyError> {
        let known = check_cpus(lists)?;
        let placed = mentioned(lists);
        let with_core = union(&lists.cores);
        let alone = known.intersection(&placed).difference(&with_core);
        let mut cores = lists.cores.clone();
        cores.extend(alone.iter().map(|cpu| CpuSet::from_iter([cpu])));
        let core = Partition::new("core", &cores, &known)?;
        let [cluster, llc, die, package] = [Unit::Cluster, Unit::Llc, Unit::Die, Unit::Package]
            .map(|unit| Partition::new(unit.name(), lists.lists(unit), &known));
        let units = [core, cluster?, llc?, die?, package?];
        let nodes = check_nodes(lists)?;
        let node_sets: Vec<CpuSet> =
            nodes.iter().map(|node| node.cpus.clone()).filter(|cpus| !cpus.is_empty()).collect();
        let by_node = Partition::new("node", &node_sets, &known)?;
        for (inner, outer) in INSIDE {
            units[inner as usize].check_inside(&units[outer as usize])?;
        }
        units[Unit::Core as usize].check_inside(&by_node)?;
        for (a, b) in NESTED {
            units[a as usize].check_nested(&units[b as usize])?;
        }
        for unit in [Unit::Cluster, Unit::Llc, Unit::Die, Unit::Package] {
            units[unit as usize].check_nested(&by_node)?;
        }
        let distances = check_distances(lists)?;
        if lists.reclaim_distance < Self::LOCAL_DISTANCE {
            return Err(TopologyError::Reclaim(lists.reclaim_distance));
        }
        let places = places(lists, &known, &units, &nodes)?;
        Ok(Self {
            arch: lists.arch,
            places,
            online: lists.online.clone(),
            offline: lists.offline.clone(),
            units: units.map(|unit| unit.sets),
            nodes,
            distances,
            reclaim_distance: lists.reclaim_distance,
        })
    }
}

/// The CPUs of which anything is said. An offline CPU of a live `/sys` tree is only a number: it gets no place.
fn mentioned(lists: &SiblingLists) -> CpuSet {
    let units = Unit::ALL.iter().flat_map(|&unit| lists.lists(unit));
    let nodes = lists.nodes.iter().map(|node| &node.cpus);
    union(units.chain(nodes).chain([&lists.online]))
}

fn union<'a>(sets: impl IntoIterator<Item = &'a CpuSet>) -> CpuSet {
    let mut all = CpuSet::new();
    for set in sets {
        all = all.union(set);
    }
    all
}

fn check_cpus(lists: &SiblingLists) -> Result<CpuSet, TopologyError> {
    if lists.online.is_empty() {
        return Err(TopologyError::NoCpu);
    }
    if let Some(cpu) = lists.online.intersection(&lists.offline).lowest() {
        return Err(TopologyError::OnlineAndOffline { cpu });
    }
    let known = lists.online.union(&lists.offline);
    if let Some(cpu) = known.iter().find(|cpu| cpu.index() >= Topology::CPUS_MAX) {
        return Err(TopologyError::CpuTooLarge { cpu });
    }
    Ok(known)
}

fn check_nodes(lists: &SiblingLists) -> Result<Vec<Node>, TopologyError> {
    if lists.nodes.is_empty() {
        let cpus = mentioned(lists);
        return Ok(vec![Node { id: NodeId::new(0), cpus, memory: NodeMemory::Unknown }]);
    }
    let mut nodes = Vec::new();
    for list in &lists.nodes {
        if list.cpus.is_empty() && list.memory != NodeMemory::Present {
            return Err(TopologyError::NodeEmpty(list.id));
        }
        nodes.push(Node { id: NodeId::new(list.id), cpus: list.cpus.clone(), memory: list.memory });
    }
    nodes.sort_by_key(|node| node.id);
    match nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
        Some(pair) => Err(TopologyError::NodeTwice(pair[0].id.number())),
        None => Ok(nodes),
    }
}

/// The distance table in the order of ascending node numbers.
fn check_distances(lists: &SiblingLists) -> Result<Option<Vec<u8>>, TopologyError> {
    let Some(rows) = &lists.distances else { return Ok(None) };
    let nodes = lists.nodes.len().max(1);
    if rows.len() != nodes || rows.iter().any(|row| row.len() != nodes) {
        let lengths: Vec<String> = rows.iter().take(8).map(|row| row.len().to_string()).collect();
        let found = format!("{} rows of {}", rows.len(), lengths.join(", "));
        return Err(TopologyError::DistanceShape { nodes, found });
    }
    let id = |index: usize| lists.nodes.get(index).map_or(0, |node| node.id);
    for (from, row) in rows.iter().enumerate() {
        for (to, &found) in row.iter().enumerate() {
            let local = found == Topology::LOCAL_DISTANCE;
            if (from == to) != local || found < Topology::LOCAL_DISTANCE || found == u8::MAX {
                return Err(TopologyError::Distance { from: id(from), to: id(to), found });
            }
        }
    }
    if nodes == 1 {
        return Ok(None);
    }
    let mut order: Vec<usize> = (0..nodes).collect();
    order.sort_by_key(|&index| id(index));
    Ok(Some(order.iter().flat_map(|&from| order.iter().map(move |&to| rows[from][to])).collect()))
}

fn places(
    lists: &SiblingLists,
    known: &CpuSet,
    units: &[Partition; 5],
    nodes: &[Node],
) -> Result<Vec<Option<Place>>, TopologyError> {
    let bound = known.iter().last().map_or(0, |cpu| cpu.index() + 1);
    let mut places = vec![None; bound];
    for cpu in known.iter() {
        let unit = |unit: Unit| units[unit as usize].of[cpu.index()];
        let node = nodes.iter().position(|node| node.cpus.contains(cpu));
        let (Some(core), Some(node)) = (unit(Unit::Core), node) else {
            if lists.online.contains(cpu) {
                return Err(TopologyError::NoNode(cpu));
            }
            continue;
        };
        places[cpu.index()] = Some(Place {
            core,
            cluster: unit(Unit::Cluster),
            llc: unit(Unit::Llc),
            die: unit(Unit::Die),
            package: unit(Unit::Package),
            node: u16::try_from(node).expect("fewer nodes than node numbers"),
            capacity: 1024,
        });
    }
    for (cpus, capacity) in &lists.capacities {
        if !(1..=1024).contains(capacity) {
            return Err(TopologyError::Capacity { cpus: cpus.clone(), found: *capacity });
        }
        for cpu in cpus.iter() {
            let what = "capacity";
            let unknown = || TopologyError::CpuUnknown { what, list: cpus.clone(), cpu };
            if !known.contains(cpu) {
                return Err(unknown());
            }
            places[cpu.index()].as_mut().ok_or_else(unknown)?.capacity = *capacity;
        }
    }
    Ok(places)
}

impl Partition {
    /// The distinct sets of `lists`, ordered by lowest CPU.
    fn new(what: &'static str, lists: &[CpuSet], known: &CpuSet) -> Result<Self, TopologyError> {
        let bound = known.iter().last().map_or(0, |cpu| cpu.index() + 1);
        let mut sets: Vec<CpuSet> = lists.iter().filter(|set| !set.is_empty()).cloned().collect();
        sets.sort();
        sets.dedup();
        let mut of = vec![None; bound];
        for (index, set) in sets.iter().enumerate() {
            // The sets before this one are disjoint and not empty, so there are at most as many as CPUs.
            let id = u16::try_from(index).expect("at most 8192 disjoint sets");
            for cpu in set.iter() {
                if !known.contains(cpu) {
                    return Err(TopologyError::CpuUnknown { what, list: set.clone(), cpu });
                }
                if let Some(first) = of[cpu.index()].replace(id) {
                    let first: CpuSet = sets[usize::from(first)].clone();
                    return Err(TopologyError::Overlap { what, cpu, first, second: set.clone() });
                }
            }
        }
        Ok(Self { what, sets, of })
    }

    /// The units of `other` that CPUs of `set` belong to, without repeats in a row.
    fn touched<'a>(other: &'a Self, set: &'a CpuSet) -> impl Iterator<Item = &'a CpuSet> {
        let mut last = None;
        set.iter().filter_map(move |cpu| {
            let id = other.of[cpu.index()]?;
            (last.replace(id) != Some(id)).then(|| &other.sets[usize::from(id)])
        })
    }

    fn check_inside(&self, outer: &Self) -> Result<(), TopologyError> {
        for set in &self.sets {
            for around in Self::touched(outer, set) {
                if !set.is_subset(around) {
                    return Err(TopologyError::NotInside {
                        inner: self.what,
                        inner_cpus: set.clone(),
                        outer: outer.what,
                        outer_cpus: around.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    fn check_nested(&self, other: &Self) -> Result<(), TopologyError> {
        for set in &self.sets {
            for against in Self::touched(other, set) {
                if !set.is_subset(against) && !against.is_subset(set) {
                    return Err(TopologyError::Crossing {
                        a: self.what,
                        a_cpus: set.clone(),
                        b: other.what,
                        b_cpus: against.clone(),
                    });
                }
            }
        }
        Ok(())
    }
}
