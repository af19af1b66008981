//! Scheduling domains as plain data, and the questions that the wake-up path and the balancer ask of them.
//!
//! Every domain belongs to one CPU, as in the kernel: two CPUs of one cache have equal spans but rings of groups that
//! start at different groups, and on NUMA levels different groups altogether. Groups live once in [`SchedDomains`] and
//! are named by [`GroupId`], so that a 512-CPU machine costs 512 rings of small numbers and not 512 copies of sets.
//!
//! What this does not hold: anything that changes while a machine runs (`balance_interval`, `nr_busy`, the `imbalanced`
//! flag). Such state belongs to whoever runs the machine, indexed by CPU and level or by [`SgcId`].

use super::Topology;
use crate::{CpuId, CpuSet};
use std::fmt;

/// A kernel generation, as far as it decides how domains are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation {
    major: u16,
    minor: u16,
    variant: Variant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Variant {
    Mainline,
    ClusterRfc,
}

impl Generation {
    /// Linux 5.5.
    pub const V5_5: Self = Self::new(5, 5);
    /// Linux 5.9.
    pub const V5_9: Self = Self::new(5, 9);
    /// Linux 5.9 with the cluster level "CL" of the RFC of December 2020 (version 2).
    pub const V5_9_CLUSTER_RFC: Self = Self { major: 5, minor: 9, variant: Variant::ClusterRfc };
    /// Linux 5.15.
    pub const V5_15: Self = Self::new(5, 15);
    /// Linux 5.19.
    pub const V5_19: Self = Self::new(5, 19);
    /// Linux 6.1.
    pub const V6_1: Self = Self::new(6, 1);
    /// Linux 6.6.
    pub const V6_6: Self = Self::new(6, 6);
    /// Linux 6.12.
    pub const V6_12: Self = Self::new(6, 12);
    /// Linux 7.2.
    pub const V7_2: Self = Self::new(7, 2);

    /// The generations that the rules were checked for, oldest first.
    pub const CHECKED: [Self; 9] = [
        Self::V5_5,
        Self::V5_9,
        Self::V5_9_CLUSTER_RFC,
        Self::V5_15,
        Self::V5_19,
        Self::V6_1,
        Self::V6_6,
        Self::V6_12,
        Self::V7_2,
    ];

    /// The mainline kernel with this version.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, variant: Variant::Mainline }
    }

    /// Reads `6.12`, a kernel release such as `6.12.117+deb13-amd64`, or `5.9+CL` for the cluster RFC.
    #[must_use]
    pub fn from_release(release: &str) -> Option<Self> {
        if release == "5.9+CL" {
            return Some(Self::V5_9_CLUSTER_RFC);
        }
        let (major, rest) = release.split_once('.')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some(Self::new(major.parse().ok()?, rest[..digits].parse().ok()?))
    }

    /// Is the kernel at least this old? The RFC counts as its base.
    pub(super) const fn since(self, major: u16, minor: u16) -> bool {
        self.major > major || (self.major == major && self.minor >= minor)
    }

    pub(super) const fn is_cluster_rfc(self) -> bool {
        matches!(self.variant, Variant::ClusterRfc)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = if self.is_cluster_rfc() { "+CL" } else { "" };
        write!(f, "{}.{}{variant}", self.major, self.minor)
    }
}

/// What a domain level stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DomainLevel {
    /// Threads of a core.
    Smt,
    /// The cluster level of the RFC of December 2020.
    Cl,
    /// The cluster level as merged in v5.16.
    Cls,
    /// CPUs of a last-level cache.
    Mc,
    /// CPUs of a node; the kernel calls it DIE before v6.7.
    Pkg,
    /// Nodes at no distance.
    Node,
    /// Nodes within this distance.
    Numa(u8),
}

impl DomainLevel {
    /// The name that kernels of this generation print.
    #[must_use]
    pub const fn name(self, generation: Generation) -> &'static str {
        match self {
            Self::Smt => "SMT",
            Self::Cl => "CL",
            Self::Cls => "CLS",
            Self::Mc => "MC",
            Self::Pkg if generation.since(6, 7) => "PKG",
            Self::Pkg => "DIE",
            Self::Node => "NODE",
            Self::Numa(_) => "NUMA",
        }
    }
}

/// A set of domain flags.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SdFlags(u32);

impl SdFlags {
    /// No flag.
    pub const EMPTY: Self = Self(0);
    /// Balance when about to become idle.
    pub const BALANCE_NEWIDLE: Self = Self(1);
    /// Balance on exec.
    pub const BALANCE_EXEC: Self = Self(1 << 1);
    /// Balance on fork.
    pub const BALANCE_FORK: Self = Self(1 << 2);
    /// Balance on wake-up: the slow path (v5.5 below asymmetric capacities only).
    pub const BALANCE_WAKE: Self = Self(1 << 3);
    /// A wake-up may pull the wakee to the waker's CPU.
    pub const WAKE_AFFINE: Self = Self(1 << 4);
    /// CPUs of different capacities within.
    pub const ASYM_CPUCAPACITY: Self = Self(1 << 5);
    /// All capacities of the machine within (v5.14 and later).
    pub const ASYM_CPUCAPACITY_FULL: Self = Self(1 << 6);
    /// Threads of one core.
    pub const SHARE_CPUCAPACITY: Self = Self(1 << 7);
    /// CPUs of one cluster (v6.7 and later).
    pub const CLUSTER: Self = Self(1 << 8);
    /// CPUs of one last-level cache (SHARE_PKG_RESOURCES before v6.8).
    pub const SHARE_LLC: Self = Self(1 << 9);
    /// Only one CPU balances at a time.
    pub const SERIALIZE: Self = Self(1 << 10);
    /// Spread tasks over sibling groups.
    pub const PREFER_SIBLING: Self = Self(1 << 11);
    /// Groups may overlap (no longer set in 7.2).
    pub const OVERLAP: Self = Self(1 << 12);
    /// Across NUMA nodes.
    pub const NUMA: Self = Self(1 << 13);
    /// Balance at all (v5.5 only).
    pub const LOAD_BALANCE: Self = Self(1 << 14);

    /// Every flag with its name without `SD_`, in the order in which recent kernels print them.
    const NAMES: [(Self, &'static str); 15] = [
        (Self::LOAD_BALANCE, "LOAD_BALANCE"),
        (Self::BALANCE_NEWIDLE, "BALANCE_NEWIDLE"),
        (Self::BALANCE_EXEC, "BALANCE_EXEC"),
        (Self::BALANCE_FORK, "BALANCE_FORK"),
        (Self::BALANCE_WAKE, "BALANCE_WAKE"),
        (Self::WAKE_AFFINE, "WAKE_AFFINE"),
        (Self::ASYM_CPUCAPACITY, "ASYM_CPUCAPACITY"),
        (Self::ASYM_CPUCAPACITY_FULL, "ASYM_CPUCAPACITY_FULL"),
        (Self::SHARE_CPUCAPACITY, "SHARE_CPUCAPACITY"),
        (Self::CLUSTER, "CLUSTER"),
        (Self::SHARE_LLC, "SHARE_LLC"),
        (Self::SERIALIZE, "SERIALIZE"),
        (Self::PREFER_SIBLING, "PREFER_SIBLING"),
        (Self::OVERLAP, "OVERLAP"),
        (Self::NUMA, "NUMA"),
    ];

    /// Are all of `flags` set?
    #[must_use]
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Is one of `flags` set?
    #[must_use]
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// With `flags` added.
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// With `flags` taken out.
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// The names of the set flags, without `SD_`, as kernels of this generation spell them.
    pub fn names(self, generation: Generation) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |&(flag, _)| self.contains(flag)).map(move |(flag, name)| {
            if flag == Self::SHARE_LLC && !generation.since(6, 8) { "SHARE_PKG_RESOURCES" } else { name }
        })
    }
}

impl fmt::Debug for SdFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names(Generation::V7_2).collect::<Vec<_>>().join("|"))
    }
}

/// One group of a [`SchedDomains`]; indexes [`SchedDomains::group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub(super) u32);

impl GroupId {
    /// The dense number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The state that the kernel shares between all views of one group (`struct sched_group_capacity`): key a table of
/// what changes at run time (capacity left, the `imbalanced` flag) by this. Dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SgcId(pub(super) u32);

impl SgcId {
    /// The dense number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A group of CPUs that a domain balances between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedGroup {
    pub(super) span: CpuSet,
    pub(super) balance_mask: CpuSet,
    pub(super) capacity: u32,
    pub(super) flags: SdFlags,
    pub(super) sgc: SgcId,
}

impl SchedGroup {
    /// Its CPUs.
    #[must_use]
    pub const fn span(&self) -> &CpuSet {
        &self.span
    }

    /// The CPUs that may balance on the group's behalf: its own, or on overlapping NUMA levels those whose own child
    /// domain is this group.
    #[must_use]
    pub const fn balance_mask(&self) -> &CpuSet {
        &self.balance_mask
    }

    /// The CPU that the kernel names the group by: the first of its balance mask.
    #[must_use]
    pub fn balance_cpu(&self) -> CpuId {
        self.balance_mask.lowest().or_else(|| self.span.lowest()).unwrap_or_default()
    }

    /// How many CPUs it has.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.span.len()
    }

    /// Sum of its CPUs' capacities with nothing running: 1024 for a full CPU, also for each thread of a core.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Flags of the domain whose span the group is. Groups of CPUs without a child domain have none, nor have any before
    /// v5.16, which introduced them.
    #[must_use]
    pub const fn flags(&self) -> SdFlags {
        self.flags
    }

    /// The shared record of the group.
    #[must_use]
    pub const fn sgc(&self) -> SgcId {
        self.sgc
    }
}

/// One domain of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedDomain {
    pub(super) level: DomainLevel,
    pub(super) span: CpuSet,
    pub(super) flags: SdFlags,
    pub(super) groups: Vec<GroupId>,
    pub(super) attributes: Attributes,
    pub(super) imb_numa_nr: Option<u32>,
}

/// Numbers that a domain gets when it is made and keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) min_interval: u32,
    pub(super) busy_factor: u32,
    pub(super) imbalance_pct: u32,
    pub(super) cache_nice_tries: u32,
}

impl SchedDomain {
    /// What level it is.
    #[must_use]
    pub const fn level(&self) -> DomainLevel {
        self.level
    }

    /// Its CPUs; the domain's own CPU is among them.
    #[must_use]
    pub const fn span(&self) -> &CpuSet {
        &self.span
    }

    /// How many CPUs it spans.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.span.len()
    }

    /// Its flags.
    #[must_use]
    pub const fn flags(&self) -> SdFlags {
        self.flags
    }

    /// Its groups in ring order, the domain's own CPU's group first.
    #[must_use]
    pub fn groups(&self) -> &[GroupId] {
        &self.groups
    }

    /// Shortest balance interval in ms, also the first one.
    #[must_use]
    pub const fn min_interval_ms(&self) -> u32 {
        self.attributes.min_interval
    }

    /// Longest balance interval in ms.
    #[must_use]
    pub const fn max_interval_ms(&self) -> u32 {
        2 * self.attributes.min_interval
    }

    /// How many times longer a busy CPU's interval is.
    #[must_use]
    pub const fn busy_factor(&self) -> u32 {
        self.attributes.busy_factor
    }

    /// Imbalance in percent from which balancing acts; 117 is 17 % more.
    #[must_use]
    pub const fn imbalance_pct(&self) -> u32 {
        self.attributes.imbalance_pct
    }

    /// Failed balances before cache-hot tasks move.
    #[must_use]
    pub const fn cache_nice_tries(&self) -> u32 {
        self.attributes.cache_nice_tries
    }

    /// Tasks that a NUMA imbalance may have; `None` before v5.18, which introduced it.
    #[must_use]
    pub const fn imb_numa_nr(&self) -> Option<u32> {
        self.imb_numa_nr
    }
}

/// One CPU's domains and what is derived from them.
#[derive(Clone, Debug)]
pub(super) struct CpuDomains {
    pub(super) domains: Vec<SchedDomain>,
    pub(super) llc: Option<usize>,
    pub(super) llc_id: CpuId,
    pub(super) llc_weight: u32,
    pub(super) share_id: CpuId,
    pub(super) cluster: Option<usize>,
    pub(super) numa: Option<usize>,
    pub(super) asym: Option<usize>,
}

/// The scheduling domains of a machine under one kernel generation, with degenerate levels removed.
///
/// Made by [`SchedDomains::build`] and [`SchedDomains::build_within`]; immutable. Asking for a CPU that has no domains
/// (offline, isolated, unknown) gives empty answers and never panics.
#[derive(Clone, Debug)]
pub struct SchedDomains {
    pub(super) generation: Generation,
    pub(super) cpus: Vec<CpuDomains>,
    pub(super) groups: Vec<SchedGroup>,
    pub(super) sgc_count: usize,
    pub(super) smt_active: bool,
    pub(super) cluster_active: bool,
}

impl SchedDomains {
    /// The domains of all online CPUs in one root domain, as after boot without isolation.
    #[must_use]
    pub fn build(topology: &Topology, generation: Generation) -> Self {
        Self::build_within(topology, generation, std::slice::from_ref(topology.online()))
    }

    /// The kernel generation whose rules were used.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// The domains of `cpu` from the smallest upwards. Each one's child is the one before it.
    #[must_use]
    pub fn of(&self, cpu: CpuId) -> &[SchedDomain] {
        self.cpus.get(cpu.index()).map_or(&[], |cpu| &cpu.domains)
    }

    /// `sd_llc`: the largest domain of `cpu` that shares the last-level cache. Absent where caches are private.
    #[must_use]
    pub fn llc(&self, cpu: CpuId) -> Option<&SchedDomain> {
        self.pick(cpu, |cpu| cpu.llc)
    }

    /// `sd_llc_id`: the first CPU of [`Self::llc`], or the CPU itself. Index per-LLC state by it.
    #[must_use]
    pub fn llc_id(&self, cpu: CpuId) -> CpuId {
        self.cpus.get(cpu.index()).map_or(cpu, |cpu| cpu.llc_id)
    }

    /// `sd_llc_size`: how many CPUs share the last-level cache; 1 where [`Self::llc`] is absent.
    #[must_use]
    pub fn llc_size(&self, cpu: CpuId) -> u32 {
        self.cpus.get(cpu.index()).map_or(1, |cpu| cpu.llc_weight)
    }

    /// Do `a` and `b` share the last-level cache, as the scheduler sees it (`cpus_share_cache`)?
    #[must_use]
    pub fn same_llc(&self, a: CpuId, b: CpuId) -> bool {
        self.llc_id(a) == self.llc_id(b)
    }

    /// `sd_share_id`: the first CPU of the lowest cluster domain, or [`Self::llc_id`] (v6.7 and later; before, always the
    /// latter).
    #[must_use]
    pub fn share_id(&self, cpu: CpuId) -> CpuId {
        self.cpus.get(cpu.index()).map_or(cpu, |cpu| cpu.share_id)
    }

    /// The lowest domain that is a cluster: with the CLUSTER flag (v6.7 and later), or the RFC's level.
    #[must_use]
    pub fn cluster(&self, cpu: CpuId) -> Option<&SchedDomain> {
        self.pick(cpu, |cpu| cpu.cluster)
    }

    /// `sd_numa`: the lowest NUMA domain.
    #[must_use]
    pub fn numa(&self, cpu: CpuId) -> Option<&SchedDomain> {
        self.pick(cpu, |cpu| cpu.numa)
    }

    /// `sd_asym_cpucapacity`: the lowest domain that has all capacities (before v5.14: that is asymmetric).
    #[must_use]
    pub fn asym(&self, cpu: CpuId) -> Option<&SchedDomain> {
        self.pick(cpu, |cpu| cpu.asym)
    }

    /// Has some core of the machine more than one running thread?
    #[must_use]
    pub const fn smt_active(&self) -> bool {
        self.smt_active
    }

    /// Has some CPU a [`Self::cluster`] domain?
    #[must_use]
    pub const fn cluster_active(&self) -> bool {
        self.cluster_active
    }

    /// A group of one of these domains.
    ///
    /// # Panics
    /// With an id of other domains.
    #[must_use]
    pub fn group(&self, id: GroupId) -> &SchedGroup {
        &self.groups[id.index()]
    }

    /// The groups of `domain` in ring order.
    pub fn groups_of<'a>(&'a self, domain: &'a SchedDomain) -> impl Iterator<Item = &'a SchedGroup> {
        domain.groups.iter().map(|&id| self.group(id))
    }

    /// How many [`SgcId`]s there are: the length of a table indexed by them.
    #[must_use]
    pub const fn sgc_count(&self) -> usize {
        self.sgc_count
    }

    fn pick(&self, cpu: CpuId, which: impl Fn(&CpuDomains) -> Option<usize>) -> Option<&SchedDomain> {
        let cpu = self.cpus.get(cpu.index())?;
        which(cpu).map(|index| &cpu.domains[index])
    }
}
