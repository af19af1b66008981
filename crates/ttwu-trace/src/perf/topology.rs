//! CPU, NUMA and cache layout as perf's header has it.

use super::bytes::Bytes;
use ttwu_model::CpuSet;

/// The machine's layout as far as a recording's header tells it. Every list may be empty: perf writes what it could read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PerfTopology {
    /// CPUs of one socket (`core_siblings`), one set per socket.
    pub(crate) sockets: Vec<CpuSet>,
    /// CPUs of one core (`thread_siblings`), one set per core.
    pub(crate) cores: Vec<CpuSet>,
    /// CPUs of one die, one set per die; empty from kernels or perfs without dies.
    pub(crate) dies: Vec<CpuSet>,
    /// Core and socket number of each CPU, by CPU number.
    pub(crate) ids: Vec<(i32, i32)>,
    /// NUMA nodes: number, memory in KiB, CPUs.
    pub(crate) nodes: Vec<(u32, u64, CpuSet)>,
    /// Caches, each instance once.
    pub(crate) caches: Vec<PerfCache>,
}

/// One cache instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PerfCache {
    /// 1 is nearest to the core.
    pub(crate) level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub(crate) kind: String,
    /// As sysfs prints it (`32K`).
    pub(crate) size: String,
    /// CPUs that share it.
    pub(crate) cpus: CpuSet,
}

impl PerfTopology {
    /// The CPU topology feature: socket lists, core lists, then per-CPU numbers and die lists where the perf had them.
    pub(super) fn add_cpus(&mut self, bytes: &mut Bytes<'_>, cpus: Option<u32>) -> Option<()> {
        self.sockets = sets(bytes)?;
        self.cores = sets(bytes)?;
        // Older perfs end here, and there may be padding.
        for _ in 0..cpus.unwrap_or(0) {
            let (Some(core), Some(socket)) = (bytes.u32(), bytes.u32()) else { return Some(()) };
            self.ids.push((core.cast_signed(), socket.cast_signed()));
        }
        if let Some(dies) = sets(bytes) {
            self.dies = dies;
        }
        Some(())
    }

    pub(super) fn add_nodes(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let count = bytes.u32()?;
        for _ in 0..count {
            let (number, total, _free) = (bytes.u32()?, bytes.u64()?, bytes.u64()?);
            self.nodes.push((number, total, CpuSet::parse_list(&bytes.string()?).ok()?));
        }
        Some(())
    }

    pub(super) fn add_caches(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let (_version, count) = (bytes.u32()?, bytes.u32()?);
        for _ in 0..count {
            let (level, _line, _sets, _ways) = (bytes.u32()?, bytes.u32()?, bytes.u32()?, bytes.u32()?);
            let (kind, size, list) = (bytes.string()?, bytes.string()?, bytes.string()?);
            self.caches.push(PerfCache { level, kind, size, cpus: CpuSet::parse_list(&list).ok()? });
        }
        Some(())
    }
}

fn sets(bytes: &mut Bytes<'_>) -> Option<Vec<CpuSet>> {
    bytes.strings()?.iter().map(|list| CpuSet::parse_list(list).ok()).collect()
}
