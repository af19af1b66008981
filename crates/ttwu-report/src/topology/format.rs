//! `ttwu/topology/1`: the JSON that scripts rely on, as types that only mirror it.
//!
//! `domains` is indexed by CPU number, so a CPU without domains (offline, a hole in the numbering) has an empty list.
//! Names of levels and flags, and CPU lists, are spelled as that kernel prints them. What is not stated is `null`.

use serde::Serialize;
use ttwu_model::{
    CpuId, DomainLevel, Generation, NodeMemory, SchedDomain, SchedDomains, SchedGroup, SdFlags, Topology,
    Unit,
};

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    kernel: String,
    /// The machine in ttwu's own text form, which reads back.
    text: String,
    arch: &'static str,
    online: String,
    offline: String,
    smt_active: bool,
    cluster_active: bool,
    cpus: Vec<Cpu>,
    nodes: Vec<Node>,
    domains: Vec<Vec<Domain>>,
}

#[derive(Serialize)]
struct Cpu {
    id: u16,
    online: bool,
    core: Option<usize>,
    cluster: Option<usize>,
    llc: Option<usize>,
    die: Option<usize>,
    package: Option<usize>,
    node: Option<u16>,
    capacity: Option<u16>,
    /// The kernel's derived numbers.
    sd_llc_id: u16,
    sd_llc_size: u32,
    sd_share_id: u16,
}

#[derive(Serialize)]
struct Node {
    id: u16,
    cpus: String,
    has_memory: Option<bool>,
    /// To each node in the order of this list; `null` where no distances are stated.
    distances: Option<Vec<u8>>,
}

#[derive(Serialize)]
struct Domain {
    level: &'static str,
    numa_distance: Option<u8>,
    span: String,
    weight: usize,
    flags: Vec<String>,
    min_interval_ms: u32,
    max_interval_ms: u32,
    busy_factor: u32,
    imbalance_pct: u32,
    cache_nice_tries: u32,
    imb_numa_nr: Option<u32>,
    /// The groups' CPUs in ring order, the CPU's own group first.
    groups: Vec<String>,
    /// The flags of the CPU's own group, as debugfs shows them.
    groups_flags: Vec<String>,
}

/// The machine and its domains under `generation` as JSON, schema `ttwu/topology/1`.
#[must_use]
pub fn render_json(topology: &Topology, generation: Generation) -> String {
    let domains = SchedDomains::build(topology, generation);
    let number = |index: usize| CpuId::new(u16::try_from(index).expect("at most 8192 CPUs"));
    let all = topology.online().union(topology.offline());
    let of = |index| domains.of(number(index)).iter().map(|domain| mirror_domain(&domains, domain)).collect();
    let document = Document {
        schema: "ttwu/topology/1",
        kernel: generation.to_string(),
        text: topology.to_string(),
        arch: topology.arch().name(),
        online: topology.online().to_string(),
        offline: topology.offline().to_string(),
        smt_active: domains.smt_active(),
        cluster_active: domains.cluster_active(),
        cpus: all.iter().map(|cpu| mirror_cpu(topology, &domains, cpu)).collect(),
        nodes: mirror_nodes(topology),
        domains: (0..topology.cpu_bound()).map(of).collect(),
    };
    serde_json::to_string(&document).expect("strings and numbers always serialise")
}

fn mirror_cpu(topology: &Topology, domains: &SchedDomains, cpu: CpuId) -> Cpu {
    let unit = |unit| topology.unit(unit, cpu).map(ttwu_model::UnitId::index);
    Cpu {
        id: cpu.number(),
        online: topology.online().contains(cpu),
        core: unit(Unit::Core),
        cluster: unit(Unit::Cluster),
        llc: unit(Unit::Llc),
        die: unit(Unit::Die),
        package: unit(Unit::Package),
        node: topology.node(cpu).map(|node| node.id.number()),
        capacity: topology.capacity(cpu),
        sd_llc_id: domains.llc_id(cpu).number(),
        sd_llc_size: domains.llc_size(cpu),
        sd_share_id: domains.share_id(cpu).number(),
    }
}

fn mirror_nodes(topology: &Topology) -> Vec<Node> {
    let nodes = topology.nodes();
    let mirror = |node: &ttwu_model::Node| Node {
        id: node.id.number(),
        cpus: node.cpus.to_string(),
        has_memory: match node.memory {
            NodeMemory::Unknown => None,
            NodeMemory::Present => Some(true),
            NodeMemory::Absent => Some(false),
        },
        distances: nodes.iter().map(|to| topology.node_distance(node.id, to.id)).collect(),
    };
    nodes.iter().map(mirror).collect()
}

fn mirror_domain(domains: &SchedDomains, domain: &SchedDomain) -> Domain {
    let generation = domains.generation();
    let own_flags = |group: &SchedGroup| names(group.flags(), generation);
    Domain {
        level: domain.level().name(generation),
        numa_distance: match domain.level() {
            DomainLevel::Numa(distance) => Some(distance),
            DomainLevel::Smt
            | DomainLevel::Cl
            | DomainLevel::Cls
            | DomainLevel::Mc
            | DomainLevel::Pkg
            | DomainLevel::Node => None,
        },
        span: domain.span().to_string(),
        weight: domain.weight(),
        flags: names(domain.flags(), generation),
        min_interval_ms: domain.min_interval_ms(),
        max_interval_ms: domain.max_interval_ms(),
        busy_factor: domain.busy_factor(),
        imbalance_pct: domain.imbalance_pct(),
        cache_nice_tries: domain.cache_nice_tries(),
        imb_numa_nr: domain.imb_numa_nr(),
        groups: domains.groups_of(domain).map(|group| group.span().to_string()).collect(),
        groups_flags: domains.groups_of(domain).next().map(own_flags).unwrap_or_default(),
    }
}

fn names(flags: SdFlags, generation: Generation) -> Vec<String> {
    flags.names(generation).map(|name| format!("SD_{name}")).collect()
}
