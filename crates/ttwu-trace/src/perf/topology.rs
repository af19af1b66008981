//! CPU, NUMA and cache layout as perf's header has it.
//!
//! perf writes the lists that `/sys` has for the CPUs on line, so they go the same way as those: through the model's
//! checking constructor. Clusters, distances and capacities are not in the header and stay unknown.

use super::bytes::Bytes;
use ttwu_model::{Arch, CacheSharing, CpuSet, NodeList, NodeMemory, SiblingLists, Topology, TopologyError};

/// The machine's layout as far as a recording's header tells it. Every list may be empty: perf writes what it could read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PerfTopology {
    /// CPUs of one socket (`core_siblings`), one set per socket.
    pub(super) sockets: Vec<CpuSet>,
    /// CPUs of one core (`thread_siblings`), one set per core.
    pub(super) cores: Vec<CpuSet>,
    /// CPUs of one die, one set per die; empty from kernels or perfs without dies.
    pub(super) dies: Vec<CpuSet>,
    /// NUMA nodes.
    pub(super) nodes: Vec<PerfNode>,
    /// Caches, each instance once.
    pub(super) caches: Vec<PerfCache>,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PerfNode {
    /// The kernel's number.
    pub(super) number: u16,
    pub(super) memory_kib: u64,
    pub(super) cpus: CpuSet,
}

impl PerfNode {
    fn list(&self, online: &CpuSet) -> NodeList {
        let memory = if self.memory_kib == 0 { NodeMemory::Absent } else { NodeMemory::Present };
        NodeList { id: self.number, cpus: self.cpus.intersection(online), memory }
    }
}

/// One cache instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PerfCache {
    /// 1 is nearest to the core.
    pub(super) level: u8,
    /// `Data`, `Instruction` or `Unified`.
    pub(super) kind: String,
    /// CPUs that share it.
    pub(super) cpus: CpuSet,
}

impl PerfTopology {
    /// CPUs that were on line; empty where the header does not say.
    pub(super) fn online(&self) -> CpuSet {
        self.sockets.iter().fold(CpuSet::new(), |all, socket| all.union(socket))
    }

    /// The machine, where the header has its CPUs.
    ///
    /// # Errors
    /// When the lists contradict each other.
    pub(super) fn build(&self, arch: Option<&str>) -> Result<Option<Topology>, TopologyError> {
        let online = self.online();
        if online.is_empty() {
            return Ok(None);
        }
        let arch = match arch {
            Some("x86_64" | "i386" | "i486" | "i586" | "i686") => Arch::X86,
            Some(_) | None => Arch::Generic,
        };
        let mut lists = SiblingLists::new(arch, online.clone());
        lists.packages.clone_from(&self.sockets);
        lists.cores.clone_from(&self.cores);
        lists.dies.clone_from(&self.dies);
        lists.nodes = self.nodes.iter().map(|node| node.list(&online)).collect();
        let data = self.caches.iter().filter(|cache| cache.kind != "Instruction");
        let caches: Vec<_> =
            data.map(|cache| CacheSharing { level: cache.level, cpus: cache.cpus.clone() }).collect();
        lists.set_caches(&caches);
        Topology::from_sibling_lists(&lists).map(Some)
    }

    /// The CPU topology feature: socket lists, core lists, then per-CPU numbers and die lists where the perf had them.
    pub(super) fn add_cpus(&mut self, bytes: &mut Bytes<'_>, cpus: Option<u32>) -> Option<()> {
        self.sockets = sets(bytes)?;
        self.cores = sets(bytes)?;
        // Older perfs end here, and there may be padding.
        for _ in 0..cpus.unwrap_or(0) {
            // Core and socket number, which the lists say better.
            if bytes.take(8).is_none() {
                return Some(());
            }
        }
        if let Some(dies) = sets(bytes) {
            self.dies = dies;
        }
        Some(())
    }

    pub(super) fn add_nodes(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let count = bytes.u32()?;
        for _ in 0..count {
            let (number, memory_kib, _free) = (bytes.u32()?, bytes.u64()?, bytes.u64()?);
            let cpus = CpuSet::parse_list(&bytes.string()?).ok()?;
            self.nodes.push(PerfNode { number: u16::try_from(number).ok()?, memory_kib, cpus });
        }
        Some(())
    }

    pub(super) fn add_caches(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let (_version, count) = (bytes.u32()?, bytes.u32()?);
        for _ in 0..count {
            let (level, _line, _sets, _ways) = (bytes.u32()?, bytes.u32()?, bytes.u32()?, bytes.u32()?);
            let (kind, _size, list) = (bytes.string()?, bytes.string()?, bytes.string()?);
            let cpus = CpuSet::parse_list(&list).ok()?;
            self.caches.push(PerfCache { level: u8::try_from(level).ok()?, kind, cpus });
        }
        Some(())
    }
}

fn sets(bytes: &mut Bytes<'_>) -> Option<Vec<CpuSet>> {
    bytes.strings()?.iter().map(|list| CpuSet::parse_list(list).ok()).collect()
}
