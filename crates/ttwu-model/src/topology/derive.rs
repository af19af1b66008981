//! From a [`Topology`] to scheduling domains, step by step as the kernel does it: masks per level, a chain of domains per
//! CPU, their groups, `imb_numa_nr`, and only then the removal of degenerate levels.
//!
//! The order matters and is kept: groups are the spans of the level below *before* removal, `imb_numa_nr` counts levels
//! that later go, and flags travel between levels while they are removed.
//!
//! DEVIATION: SHARE_POWERDOMAIN, ASYM_PACKING (x86 ITMT) and architecture tables of powerpc and s390 are not modelled.

use super::domain::{
    Attributes, CpuDomains, DomainLevel, Generation, GroupId, SchedDomain, SchedDomains, SchedGroup, SdFlags,
    SgcId,
};
use super::groups::{Draft, Drafts};
use super::{Arch, Place, Topology, Unit};
use crate::{CpuId, CpuSet};
use std::collections::BTreeMap;

/// Flags that mean something only between two or more groups (v5.10 and later).
const NEED_GROUPS: SdFlags = SdFlags::BALANCE_NEWIDLE
    .with(SdFlags::BALANCE_EXEC)
    .with(SdFlags::BALANCE_FORK)
    .with(SdFlags::BALANCE_WAKE)
    .with(SdFlags::ASYM_CPUCAPACITY)
    .with(SdFlags::ASYM_CPUCAPACITY_FULL)
    .with(SdFlags::SHARE_CPUCAPACITY)
    .with(SdFlags::CLUSTER)
    .with(SdFlags::SHARE_LLC)
    .with(SdFlags::SERIALIZE)
    .with(SdFlags::PREFER_SIBLING)
    .with(SdFlags::OVERLAP)
    .with(SdFlags::NUMA);

/// The same before v5.10: NUMA and OVERLAP are not among them.
const NEED_GROUPS_OLD: SdFlags = SdFlags::LOAD_BALANCE
    .with(SdFlags::BALANCE_NEWIDLE)
    .with(SdFlags::BALANCE_EXEC)
    .with(SdFlags::BALANCE_FORK)
    .with(SdFlags::ASYM_CPUCAPACITY)
    .with(SdFlags::SHARE_CPUCAPACITY)
    .with(SdFlags::SHARE_LLC);

/// One level of the machine: its mask for each CPU (indexed by number, empty for CPUs that are not online).
struct LevelMasks {
    level: DomainLevel,
    masks: Vec<CpuSet>,
}

/// A domain before removal of degenerate levels.
#[derive(Clone)]
pub(super) struct Proto {
    pub(super) span: CpuSet,
    pub(super) flags: SdFlags,
    level: usize,
    attributes: Attributes,
    imb_numa_nr: u32,
    ring: Vec<usize>,
}

/// Each CPU's domains on all levels, index in the chain = level.
pub(super) struct Chains {
    generation: Generation,
    cpus: Vec<Vec<Proto>>,
}

impl Chains {
    pub(super) fn domain(&self, cpu: CpuId, level: usize) -> Option<&Proto> {
        self.cpus.get(cpu.index())?.get(level)
    }

    pub(super) fn child(&self, cpu: CpuId, level: usize) -> Option<&Proto> {
        // A chain that ended below this level has no domain here, hence no child either.
        self.domain(cpu, level)?;
        self.domain(cpu, level.checked_sub(1)?)
    }

    pub(super) fn span(&self, cpu: CpuId, level: usize) -> &CpuSet {
        &self.cpus[cpu.index()][level].span
    }

    pub(super) const fn descends(&self) -> bool {
        self.generation.since(5, 13)
    }
}

impl SchedDomains {
    /// The domains of the online CPUs in `roots`, each of which is a root domain of its own: CPUs outside are absent
    /// from all spans and have no domains. A CPU in several sets counts for the first.
    ///
    /// Models: build_sched_domains(), v5.5–v7.2.
    #[must_use]
    pub fn build_within(topology: &Topology, generation: Generation, roots: &[CpuSet]) -> Self {
        let levels = levels(topology, generation);
        let alone = |index: usize| {
            let cpu = CpuId::new(u16::try_from(index).expect("below 8192"));
            CpuDomains {
                domains: Vec::new(),
                llc: None,
                llc_id: cpu,
                llc_weight: 1,
                share_id: cpu,
                cluster: None,
                numa: None,
                asym: None,
            }
        };
        let mut built = Self {
            generation,
            cpus: (0..topology.cpu_bound()).map(alone).collect(),
            groups: Vec::new(),
            sgc_count: 0,
            smt_active: topology.has_smt(),
            cluster_active: false,
        };
        let mut left = topology.online().clone();
        for root in roots {
            let map = root.intersection(&left);
            left = left.difference(&map);
            if !map.is_empty() {
                build_root(topology, generation, &levels, &map, &mut built);
            }
        }
        built.cluster_active = built.cpus.iter().any(|cpu| cpu.cluster.is_some());
        built
    }
}

fn build_root(
    topology: &Topology,
    generation: Generation,
    levels: &[LevelMasks],
    map: &CpuSet,
    built: &mut SchedDomains,
) {
    let mut chains = Chains { generation, cpus: vec![Vec::new(); topology.cpu_bound()] };
    let asym_level = if generation.since(5, 14) { None } else { asym_level(topology, levels, map) };
    for cpu in map.iter() {
        chains.cpus[cpu.index()] = chain(topology, generation, levels, map, cpu, asym_level);
    }
    let mut drafts = Drafts::new(topology.cpu_bound(), levels.len());
    for cpu in map.iter() {
        for level in 0..chains.cpus[cpu.index()].len() {
            let ring = drafts.ring(&chains, cpu, level);
            chains.cpus[cpu.index()][level].ring = ring;
        }
    }
    if !generation.since(5, 16) {
        drafts.all.iter_mut().for_each(|group| group.flags = SdFlags::EMPTY);
    }
    if generation.since(5, 18) {
        for cpu in map.iter() {
            set_imb_numa_nr(generation, &mut chains.cpus[cpu.index()]);
        }
    }
    let single_node = topology.nodes().len() == 1;
    for cpu in map.iter() {
        let chain = std::mem::take(&mut chains.cpus[cpu.index()]);
        chains.cpus[cpu.index()] = remove_degenerate(generation, chain, single_node, &mut drafts.all);
    }
    finish(topology, levels, map, chains, &drafts.all, built);
}

/// All levels of the machine, bottom up, with their masks.
fn levels(topology: &Topology, generation: Generation) -> Vec<LevelMasks> {
    let bound = topology.cpu_bound();
    let each = |mask: &dyn Fn(&Place, CpuId) -> CpuSet| -> Vec<CpuSet> {
        let mut masks = vec![CpuSet::new(); bound];
        for cpu in topology.online().iter() {
            let place = topology.place(cpu).expect("online CPUs have a place");
            masks[cpu.index()] = mask(place, cpu).intersection(topology.online());
            masks[cpu.index()].insert(cpu);
        }
        masks
    };
    let node = |place: &Place| topology.nodes()[usize::from(place.node)].cpus.clone();
    let mut levels =
        vec![LevelMasks { level: DomainLevel::Smt, masks: each(&|place, _| smt_mask(topology, place)) }];
    if generation.is_cluster_rfc() {
        let masks = each(&|place, cpu| cluster_siblings(topology, place, cpu));
        levels.push(LevelMasks { level: DomainLevel::Cl, masks });
    }
    if generation.since(5, 16) {
        let masks = each(&|place, cpu| cluster_mask(topology, generation, place, cpu));
        levels.push(LevelMasks { level: DomainLevel::Cls, masks });
    }
    let masks = each(&|place, cpu| cache_mask(topology, generation, place, cpu));
    levels.push(LevelMasks { level: DomainLevel::Mc, masks });
    if topology.arch() == Arch::Generic || !package_holds_nodes(topology) {
        levels.push(LevelMasks { level: DomainLevel::Pkg, masks: each(&|place, _| node(place)) });
    }
    let count = topology.nodes().len();
    if count > 1 {
        let reach = |distance: u8| {
            move |place: &Place, _| {
                let row = usize::from(place.node);
                let near =
                    (0..count).filter(|&to| to == row || topology.effective_distance(row, to) <= distance);
                near.fold(CpuSet::new(), |all, to| all.union(&topology.nodes()[to].cpus))
            }
        };
        let masks = each(&reach(Topology::LOCAL_DISTANCE));
        levels.push(LevelMasks { level: DomainLevel::Node, masks });
        for distance in numa_distances(topology) {
            let masks = each(&reach(distance));
            levels.push(LevelMasks { level: DomainLevel::Numa(distance), masks });
        }
    }
    levels
}

/// The distinct distances between nodes with CPUs, ascending, without the local one.
///
/// DEVIATION: before v5.18 nodes without CPUs contributed distances too; such a level adds no CPU and degenerates.
fn numa_distances(topology: &Topology) -> Vec<u8> {
    let with_cpus: Vec<usize> = (0..topology.nodes().len())
        .filter(|&node| topology.nodes()[node].cpus.intersects(topology.online()))
        .collect();
    let mut distances: Vec<u8> = with_cpus
        .iter()
        .flat_map(|&from| with_cpus.iter().map(move |&to| topology.effective_distance(from, to)))
        .filter(|&distance| distance > Topology::LOCAL_DISTANCE)
        .collect();
    distances.sort_unstable();
    distances.dedup();
    distances
}

/// x86 has no PKG level where a package's CPUs are on several nodes: its node level would contradict the package.
fn package_holds_nodes(topology: &Topology) -> bool {
    topology.units(Unit::Package).iter().any(|package| {
        let online = package.intersection(topology.online());
        let mut nodes = online.iter().filter_map(|cpu| topology.place(cpu)).map(|place| place.node);
        let first = nodes.next();
        nodes.any(|node| Some(node) != first)
    })
}

/// The CPUs of a unit, on x86 only those of the place's own node: there a node boundary cuts caches and cores
/// (sub-NUMA clusters).
fn stated(topology: &Topology, unit: Unit, id: Option<u16>, place: &Place) -> Option<CpuSet> {
    let cpus = &topology.units(unit)[usize::from(id?)];
    Some(match topology.arch() {
        Arch::X86 => cpus.intersection(&topology.nodes()[usize::from(place.node)].cpus),
        Arch::Generic => cpus.clone(),
    })
}

fn smt_mask(topology: &Topology, place: &Place) -> CpuSet {
    stated(topology, Unit::Core, Some(place.core), place).expect("every place has a core")
}

fn cluster_siblings(topology: &Topology, place: &Place, cpu: CpuId) -> CpuSet {
    stated(topology, Unit::Cluster, place.cluster, place).unwrap_or_else(|| match topology.arch() {
        // Without an L2 id x86 falls back to the core.
        Arch::X86 => smt_mask(topology, place),
        Arch::Generic => [cpu].into_iter().collect(),
    })
}

/// Models: cpu_clustergroup_mask(), v5.16–v7.2.
fn cluster_mask(topology: &Topology, generation: Generation, place: &Place, cpu: CpuId) -> CpuSet {
    let cluster = cluster_siblings(topology, place, cpu);
    let swallows_cache = || cache_mask(topology, generation, place, cpu).is_subset(&cluster);
    if topology.arch() == Arch::Generic && generation.since(6, 0) && swallows_cache() {
        return smt_mask(topology, place);
    }
    cluster
}

/// Models: cpu_coregroup_mask(), v5.5–v7.2.
fn cache_mask(topology: &Topology, generation: Generation, place: &Place, cpu: CpuId) -> CpuSet {
    let llc = stated(topology, Unit::Llc, place.llc, place);
    if topology.arch() == Arch::X86 {
        return llc.unwrap_or_else(|| [cpu].into_iter().collect());
    }
    let mut mask = topology.nodes()[usize::from(place.node)].cpus.clone();
    let package = stated(topology, Unit::Package, place.package, place);
    for narrower in [package, llc].into_iter().flatten() {
        if narrower.is_subset(&mask) {
            mask = narrower;
        }
    }
    let cluster = cluster_siblings(topology, place, cpu);
    if generation.since(5, 16) && mask.is_subset(&cluster) { cluster } else { mask }
}

/// The lowest level on which every CPU sees one of the largest capacity, on a machine with several.
///
/// Models: asym_cpu_capacity_level(), v5.5–v5.13.
fn asym_level(topology: &Topology, levels: &[LevelMasks], map: &CpuSet) -> Option<usize> {
    let capacity = |cpu: CpuId| topology.capacity(cpu).unwrap_or(1024);
    let largest = map.iter().map(capacity).max()?;
    if map.iter().all(|cpu| capacity(cpu) == largest) {
        return None;
    }
    let sees = |cpu: CpuId| {
        levels.iter().position(|level| {
            level.masks[cpu.index()].intersection(map).iter().any(|other| capacity(other) == largest)
        })
    };
    map.iter().filter_map(sees).max()
}

/// The domains of one CPU on all levels up to the first that spans the whole root domain.
fn chain(
    topology: &Topology,
    generation: Generation,
    levels: &[LevelMasks],
    map: &CpuSet,
    cpu: CpuId,
    asym_level: Option<usize>,
) -> Vec<Proto> {
    let classifies = generation.since(5, 14) && topology.is_asymmetric();
    let mut chain: Vec<Proto> = Vec::new();
    for (index, level) in levels.iter().enumerate() {
        let mask = &level.masks[cpu.index()];
        let mut span = map.intersection(mask);
        // The balance interval counts the whole mask in most kernels, isolated CPUs included.
        let weight = if generation.since(7, 0) { span.len() } else { mask.len() };
        let mut flags = creation_flags(topology, generation, level.level);
        flags = flags.with(match asym_level {
            Some(asym) if asym == index => SdFlags::ASYM_CPUCAPACITY,
            Some(_) => SdFlags::EMPTY,
            None if classifies => classify(topology, &span, map),
            None => SdFlags::EMPTY,
        });
        if let (true, Some(child)) = (flags.contains(SdFlags::ASYM_CPUCAPACITY), chain.last_mut()) {
            child.flags = child.flags.without(SdFlags::PREFER_SIBLING);
        }
        // A level that does not contain the one below is widened, as the kernel does after complaining.
        if let Some(child) = chain.last() {
            span = span.union(&child.span);
        }
        let attributes = attributes(generation, flags, weight);
        let whole = span == *map;
        chain.push(Proto { span, flags, level: index, attributes, imb_numa_nr: 0, ring: Vec::new() });
        if flags.contains(SdFlags::ASYM_CPUCAPACITY) && !generation.since(5, 7) {
            for lower in &mut chain {
                lower.flags = lower.flags.with(SdFlags::BALANCE_WAKE);
            }
        }
        if whole {
            break;
        }
    }
    chain
}

/// Models: sd_init(), v5.5–v7.2 (flags).
fn creation_flags(topology: &Topology, generation: Generation, level: DomainLevel) -> SdFlags {
    let mut flags = SdFlags::BALANCE_NEWIDLE
        .with(SdFlags::BALANCE_EXEC)
        .with(SdFlags::BALANCE_FORK)
        .with(SdFlags::WAKE_AFFINE)
        .with(SdFlags::PREFER_SIBLING);
    if !generation.since(5, 7) {
        flags = flags.with(SdFlags::LOAD_BALANCE);
    }
    match level {
        DomainLevel::Smt => flags.with(SdFlags::SHARE_CPUCAPACITY).with(SdFlags::SHARE_LLC),
        DomainLevel::Cls if generation.since(6, 7) => flags.with(SdFlags::SHARE_LLC).with(SdFlags::CLUSTER),
        DomainLevel::Cls | DomainLevel::Cl | DomainLevel::Mc => flags.with(SdFlags::SHARE_LLC),
        DomainLevel::Pkg | DomainLevel::Node => flags,
        DomainLevel::Numa(distance) => {
            let flags = flags.without(SdFlags::PREFER_SIBLING).with(SdFlags::SERIALIZE).with(SdFlags::NUMA);
            // 6.12 still sets OVERLAP, 7.2 no longer does; dropped with the level's own flags in v6.17, from memory.
            let flags = if generation.since(6, 17) { flags } else { flags.with(SdFlags::OVERLAP) };
            if distance > topology.reclaim_distance() {
                flags
                    .without(SdFlags::BALANCE_EXEC)
                    .without(SdFlags::BALANCE_FORK)
                    .without(SdFlags::WAKE_AFFINE)
            } else {
                flags
            }
        }
    }
}

/// Models: asym_cpu_capacity_classify(), v5.14–v7.2.
fn classify(topology: &Topology, span: &CpuSet, map: &CpuSet) -> SdFlags {
    let distinct = |cpus: &CpuSet| {
        let mut capacities: Vec<u16> = cpus.iter().filter_map(|cpu| topology.capacity(cpu)).collect();
        capacities.sort_unstable();
        capacities.dedup();
        capacities.len()
    };
    match distinct(span) {
        0 | 1 => SdFlags::EMPTY,
        here if here == distinct(map) => SdFlags::ASYM_CPUCAPACITY.with(SdFlags::ASYM_CPUCAPACITY_FULL),
        _ => SdFlags::ASYM_CPUCAPACITY,
    }
}

/// Models: sd_init(), v5.5–v7.2 (numbers).
fn attributes(generation: Generation, flags: SdFlags, weight: usize) -> Attributes {
    let (busy_factor, imbalance_pct) = if generation.since(5, 10) { (16, 117) } else { (32, 125) };
    let (imbalance_pct, cache_nice_tries) = if flags.contains(SdFlags::SHARE_CPUCAPACITY) {
        (110, 0)
    } else if flags.contains(SdFlags::SHARE_LLC) {
        (117, 1)
    } else if flags.contains(SdFlags::NUMA) {
        (imbalance_pct, 2)
    } else {
        (imbalance_pct, 1)
    };
    let min_interval = u32::try_from(weight).expect("at most 8192 CPUs");
    Attributes { min_interval, busy_factor, imbalance_pct, cache_nice_tries }
}

/// Models: build_sched_domains(), v5.18–v7.2 (imb_numa_nr).
fn set_imb_numa_nr(generation: Generation, chain: &mut [Proto]) {
    let weight = |domain: &Proto| u32::try_from(domain.span.len()).expect("at most 8192 CPUs");
    let shares = |domain: &Proto| domain.flags.contains(SdFlags::SHARE_LLC);
    let mut base = 0;
    let mut base_span = 1;
    for index in 0..chain.len() {
        let own = weight(&chain[index]);
        let above_llc = index > 0 && shares(&chain[index - 1]) && !shares(&chain[index]);
        chain[index].imb_numa_nr = if above_llc {
            let llcs = own / weight(&chain[index - 1]);
            base = match (llcs, generation.since(6, 1)) {
                (1, true) => own / 8,
                (1, false) => own / 4,
                (several, _) => several,
            };
            if generation.since(6, 1) {
                base = base.max(1);
            }
            let numa = chain[index + 1..].iter().find(|domain| domain.flags.contains(SdFlags::NUMA));
            base_span = numa.map_or(own, weight);
            base
        } else {
            base * (own / base_span).max(1)
        };
    }
}

/// Models: sd_degenerate(), v5.5–v7.2.
fn is_degenerate(generation: Generation, domain: &Proto) -> bool {
    let need_groups = if generation.since(5, 10) { NEED_GROUPS } else { NEED_GROUPS_OLD };
    if domain.span.len() == 1 {
        return true;
    }
    let useful = domain.flags.intersects(need_groups) && domain.ring.len() > 1;
    !useful && !domain.flags.contains(SdFlags::WAKE_AFFINE)
}

/// Models: sd_parent_degenerate(), v5.5–v7.2.
fn is_parent_degenerate(generation: Generation, domain: &Proto, parent: &Proto, single_node: bool) -> bool {
    if is_degenerate(generation, parent) {
        return true;
    }
    if domain.span != parent.span {
        return false;
    }
    let mut flags = parent.flags;
    if parent.ring.len() == 1 {
        flags = if generation.since(5, 10) {
            flags.without(NEED_GROUPS)
        } else {
            let flags = flags.without(NEED_GROUPS_OLD).without(SdFlags::PREFER_SIBLING);
            if single_node { flags.without(SdFlags::SERIALIZE) } else { flags }
        };
    }
    domain.flags.contains(flags)
}

/// Models: cpu_attach_domain(), v5.5–v7.2.
fn remove_degenerate(
    generation: Generation,
    chain: Vec<Proto>,
    single_node: bool,
    drafts: &mut [Draft],
) -> Vec<Proto> {
    let group_flags = generation.since(5, 16);
    let mut kept: Vec<Proto> = Vec::new();
    let mut above = chain.into_iter().peekable();
    while let Some(next) = above.next() {
        let Some(domain) = kept.last_mut() else {
            kept.push(next);
            continue;
        };
        if !is_parent_degenerate(generation, domain, &next, single_node) {
            kept.push(next);
            continue;
        }
        if let (true, Some(new_parent)) = (group_flags, above.peek()) {
            drafts[new_parent.ring[0]].flags = domain.flags;
        }
        if next.flags.contains(SdFlags::PREFER_SIBLING) {
            domain.flags = domain.flags.with(SdFlags::PREFER_SIBLING);
        }
    }
    if kept.first().is_some_and(|lowest| is_degenerate(generation, lowest)) {
        kept.remove(0);
        if let Some(lowest) = kept.first() {
            drafts[lowest.ring[0]].flags = SdFlags::EMPTY;
        }
    }
    kept
}

/// Moves surviving domains and groups into `built`, equal groups once, and derives the per-CPU pointers.
fn finish(
    topology: &Topology,
    levels: &[LevelMasks],
    map: &CpuSet,
    mut chains: Chains,
    drafts: &[Draft],
    built: &mut SchedDomains,
) {
    let mut sgcs: BTreeMap<(usize, CpuId), SgcId> = BTreeMap::new();
    let mut known: BTreeMap<((usize, CpuId), CpuSet, SdFlags), GroupId> = BTreeMap::new();
    // A shared draft is met once by every CPU of its domain; looking it up by its CPUs each time would take minutes on
    // thousands of CPUs.
    let mut done: Vec<Option<GroupId>> = vec![None; drafts.len()];
    let id = |index: usize| u32::try_from(index).expect("fewer groups than 2^32");
    let mut group = |draft: &Draft, built: &mut SchedDomains| {
        *known.entry((draft.sgc, draft.span.clone(), draft.flags)).or_insert_with(|| {
            let next = SgcId(id(built.sgc_count));
            let sgc = *sgcs.entry(draft.sgc).or_insert(next);
            if sgc == next {
                built.sgc_count += 1;
            }
            let capacity = |cpu| u32::from(topology.capacity(cpu).unwrap_or(1024));
            built.groups.push(SchedGroup {
                span: draft.span.clone(),
                balance_mask: draft.balance_mask.clone(),
                capacity: draft.span.iter().map(capacity).sum(),
                flags: draft.flags,
                sgc,
            });
            GroupId(id(built.groups.len() - 1))
        })
    };
    for cpu in map.iter() {
        let domain = |proto: Proto| SchedDomain {
            level: levels[proto.level].level,
            groups: proto
                .ring
                .iter()
                .map(|&draft| *done[draft].get_or_insert_with(|| group(&drafts[draft], built)))
                .collect(),
            span: proto.span,
            flags: proto.flags,
            attributes: proto.attributes,
            imb_numa_nr: built.generation.since(5, 18).then_some(proto.imb_numa_nr),
        };
        let domains = std::mem::take(&mut chains.cpus[cpu.index()]).into_iter().map(domain).collect();
        built.cpus[cpu.index()] = pointers(built.generation, cpu, domains);
    }
}

/// Models: update_top_cache_domain(), v5.5–v7.2.
fn pointers(generation: Generation, cpu: CpuId, domains: Vec<SchedDomain>) -> CpuDomains {
    let first = |flag: SdFlags| domains.iter().position(|domain| domain.flags.contains(flag));
    let shared = domains.iter().take_while(|domain| domain.flags.contains(SdFlags::SHARE_LLC)).count();
    let llc = shared.checked_sub(1);
    let llc_id = llc.and_then(|index| domains[index].span.lowest()).unwrap_or(cpu);
    let llc_weight =
        llc.map_or(1, |index| u32::try_from(domains[index].span.len()).expect("at most 8192 CPUs"));
    let cluster = if generation.is_cluster_rfc() {
        domains.iter().position(|domain| domain.level == DomainLevel::Cl)
    } else {
        first(SdFlags::CLUSTER)
    };
    let share_id = cluster.filter(|_| generation.since(6, 7)).and_then(|index| domains[index].span.lowest());
    let full =
        if generation.since(5, 14) { SdFlags::ASYM_CPUCAPACITY_FULL } else { SdFlags::ASYM_CPUCAPACITY };
    CpuDomains {
        llc,
        llc_id,
        llc_weight,
        share_id: share_id.unwrap_or(llc_id),
        cluster,
        numa: first(SdFlags::NUMA),
        asym: first(full),
        domains,
    }
}
