//! A machine as the wake-up path sees it: domains of one kernel generation, SMT siblings, cluster masks. Immutable.

use crate::{Cluster, Kernel, Policy, Tunables};
use ttwu_model::{CpuId, CpuSet, Generation, SchedDomains, Topology, Unit};

/// Topology and domains, with the masks that placement asks for precomputed.
#[derive(Clone, Debug)]
pub struct Machine {
    domains: SchedDomains,
    smt: Vec<CpuSet>,
    clusters: Vec<CpuSet>,
    capacity: Vec<u64>,
    cpus: usize,
    online: usize,
    tunables: Tunables,
}

impl Machine {
    /// `topology` under `policy`'s kernel.
    #[must_use]
    pub fn new(topology: &Topology, policy: &Policy) -> Self {
        Self::with_domains(topology, policy, SchedDomains::build(topology, generation(policy)))
    }

    /// With domains built elsewhere (cut by cpusets, or read from a kernel).
    #[must_use]
    pub fn with_domains(topology: &Topology, policy: &Policy, domains: SchedDomains) -> Self {
        let cpus = topology.cpu_bound();
        let every = || (0..cpus).map(|cpu| CpuId::new(u16::try_from(cpu).expect("CPU numbers are 16 bits")));
        let mask = |unit, cpu: CpuId| {
            let siblings = topology.siblings(unit, cpu).cloned();
            siblings.unwrap_or_else(|| std::iter::once(cpu).collect())
        };
        Self {
            domains,
            smt: every().map(|cpu| mask(Unit::Core, cpu)).collect(),
            clusters: every().map(|cpu| mask(Unit::Cluster, cpu)).collect(),
            capacity: every().map(|cpu| topology.capacity(cpu).map_or(1024, u64::from)).collect(),
            cpus,
            online: topology.online().len(),
            tunables: policy.tunables(topology.online().len()),
        }
    }

    /// The scheduling domains.
    #[must_use]
    pub const fn domains(&self) -> &SchedDomains {
        &self.domains
    }

    /// The threads of `cpu`'s core, itself included.
    ///
    /// # Panics
    /// For a CPU outside the topology.
    #[must_use]
    pub fn smt(&self, cpu: CpuId) -> &CpuSet {
        &self.smt[cpu.index()]
    }

    /// The CPUs of `cpu`'s cluster as the firmware states them, itself included.
    ///
    /// # Panics
    /// For a CPU outside the topology.
    #[must_use]
    pub fn cluster(&self, cpu: CpuId) -> &CpuSet {
        &self.clusters[cpu.index()]
    }

    /// `cpu`'s capacity with nothing running.
    ///
    /// # Panics
    /// For a CPU outside the topology.
    #[must_use]
    pub fn capacity_orig(&self, cpu: CpuId) -> u64 {
        self.capacity[cpu.index()]
    }

    /// The policy's tunables, scaled to this machine.
    #[must_use]
    pub const fn tunables(&self) -> &Tunables {
        &self.tunables
    }

    /// How many CPUs are on line.
    #[must_use]
    pub const fn cpus_online(&self) -> usize {
        self.online
    }

    /// CPU numbers are below this.
    #[must_use]
    pub const fn cpu_bound(&self) -> usize {
        self.cpus
    }
}

/// The domain rules that a policy's kernel uses, with its choice of cluster level.
fn generation(policy: &Policy) -> Generation {
    match (policy.kernel(), policy.cluster) {
        // The RFC's level exists on v5.9 only; a later kernel's own level has the same span.
        (_, Cluster::RfcDomain | Cluster::RfcV2 | Cluster::RfcV3) => Generation::V5_9_CLUSTER_RFC,
        (Kernel::V5_5, _) => Generation::V5_5,
        (Kernel::V5_9, _) => Generation::V5_9,
        (Kernel::V5_15, _) => Generation::V5_15,
        (Kernel::V5_19, _) => Generation::V5_19,
        (Kernel::V6_1 | Kernel::Eevdf202304, _) => Generation::V6_1,
        (Kernel::V6_6, _) => Generation::V6_6,
        (Kernel::V6_12, _) => Generation::V6_12,
        (Kernel::V7_2, _) => Generation::V7_2,
    }
}
