//! The machine from an archive's copy of sysfs: `topology/nodeN/cpuM/topology/{thread,core}_siblings_list`.
//!
//! Caches are not in it, so last levels stay unknown. Nor is the architecture: x86's rules are assumed, and that is said.

use crate::ReadError;
use crate::ring::Tree;
use crate::source::Source;
use std::collections::BTreeMap;
use ttwu_model::{Arch, CpuId, CpuSet, NodeList, NodeMemory, SiblingLists, Topology};

/// Fills in the metadata's topology, as far as the archive has one.
pub(super) fn note(tree: &Tree, source: &mut Source) -> Result<(), ReadError> {
    let mut online = CpuSet::new();
    let mut nodes: BTreeMap<u16, CpuSet> = BTreeMap::new();
    let (mut cores, mut packages) = (Vec::new(), Vec::new());
    for name in tree.names() {
        let Some((node, cpu, file)) = place(name) else { continue };
        let list = match file {
            "thread_siblings_list" => &mut cores,
            "core_siblings_list" => &mut packages,
            _ => continue,
        };
        online.insert(cpu);
        nodes.entry(node).or_default().insert(cpu);
        let text = tree.text(name)?.unwrap_or_default();
        match CpuSet::parse_list(&String::from_utf8_lossy(&text)) {
            Ok(set) => list.push(set),
            Err(error) => source.health.add_repair(format!("{name} is left out: {error}")),
        }
    }
    if online.is_empty() {
        return Ok(());
    }
    let node = |(id, cpus)| NodeList { id, cpus, memory: NodeMemory::Unknown };
    let nodes = nodes.into_iter().map(node).collect();
    let lists = SiblingLists { cores, packages, nodes, ..SiblingLists::new(Arch::X86, online.clone()) };
    match Topology::from_sibling_lists(&lists) {
        Ok(topology) => {
            source.meta.topology_text = Some(topology.to_string());
            source.health.add_note(
                "the archive does not say the machine's architecture and caches: x86's rules, no caches"
                    .to_owned(),
            );
        }
        Err(error) => source.health.add_repair(format!("the archive's topology is left out: {error}")),
    }
    source.meta.cpus_online = Some(online);
    Ok(())
}

/// Node, CPU and file of a name such as `topology/node0/cpu3/topology/core_siblings_list`.
fn place(name: &str) -> Option<(u16, CpuId, &str)> {
    let mut parts = name.strip_prefix("topology/node")?.split('/');
    let node = parts.next()?.parse().ok()?;
    let cpu = parts.next()?.strip_prefix("cpu")?.parse().ok()?;
    (parts.next()? == "topology").then_some(())?;
    Some((node, CpuId::new(cpu), parts.next()?))
}
