//! How far apart two CPUs are, for analyses: a topology's levels, or no more than "the same" and "another".
//!
//! What this does not do: know the topology. It is given one, or none.

use std::sync::Arc;
use ttwu_model::{CpuId, Level, Topology, Unit};

/// How far apart two CPUs are: the smallest thing that they share, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// By the topology, or the same CPU.
    At(Level),
    /// Different CPUs of which the topology is not known.
    OtherCpu,
    /// One of the two CPUs is not known.
    Unknown,
}

impl Relation {
    /// All of them, nearest first.
    pub const ALL: [Self; 9] = [
        Self::At(Level::SameCpu),
        Self::At(Level::Smt),
        Self::At(Level::Cluster),
        Self::At(Level::Llc),
        Self::At(Level::Die),
        Self::At(Level::Node),
        Self::At(Level::Remote),
        Self::OtherCpu,
        Self::Unknown,
    ];

    /// Its name in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::At(level) => level.name(),
            Self::OtherCpu => "other_cpu",
            Self::Unknown => "unknown",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::At(level) => level as usize,
            Self::OtherCpu => Level::ALL.len(),
            Self::Unknown => Level::ALL.len() + 1,
        }
    }
}

/// Counts by [`Relation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByRelation([u64; Relation::ALL.len()]);

impl ByRelation {
    /// Adds `count` to one of them.
    pub fn add(&mut self, relation: Relation, count: u64) {
        self.0[relation.index()] += count;
    }

    /// One of them.
    #[must_use]
    pub const fn get(&self, relation: Relation) -> u64 {
        self.0[relation.index()]
    }

    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that occur, nearest first.
    pub fn iter(&self) -> impl Iterator<Item = (Relation, u64)> + '_ {
        Relation::ALL.into_iter().zip(self.0).filter(|&(_, count)| count != 0)
    }
}

/// A machine's levels, or none where its topology is not known. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    topology: Option<Arc<Topology>>,
    /// All relations, row by row: analyses ask several times an event. Empty for large machines.
    table: Arc<[Relation]>,
    cpus: usize,
}

/// Up to this many CPUs relations are looked up in a table (64 KiB).
const TABLE_CPUS_MAX: usize = 256;

impl Levels {
    /// Nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self::default()
    }

    /// The levels of a machine.
    #[must_use]
    pub fn new(topology: Topology) -> Self {
        let cpus = topology.cpu_bound();
        let cpu = |index: usize| CpuId::try_from(index as u64).expect("a topology has at most 8192 CPUs");
        let relation = |a, b| topology.level(cpu(a), cpu(b)).map_or(Relation::OtherCpu, Relation::At);
        let rows = if cpus <= TABLE_CPUS_MAX { cpus } else { 0 };
        let table =
            (0..rows).flat_map(|a| (0..cpus).map(move |b| (a, b))).map(|(a, b)| relation(a, b)).collect();
        Self { topology: Some(Arc::new(topology)), table, cpus }
    }

    /// Is a topology known?
    #[must_use]
    pub const fn known(&self) -> bool {
        self.topology.is_some()
    }

    /// Are there clusters: something between the core and the last-level cache?
    #[must_use]
    pub fn has_clusters(&self) -> bool {
        self.topology.as_ref().is_some_and(|topology| {
            topology.units(Unit::Cluster).iter().any(|cluster| {
                let first = cluster.lowest();
                cluster
                    .iter()
                    .any(|cpu| first.is_some_and(|first| topology.level(first, cpu) == Some(Level::Cluster)))
            })
        })
    }

    /// Is it stated which CPUs share a last-level cache?
    #[must_use]
    pub fn has_llcs(&self) -> bool {
        self.topology.as_ref().is_some_and(|topology| topology.is_known(Unit::Llc))
    }

    /// The number of the last-level cache that `cpu` shares, where stated.
    #[must_use]
    pub fn llc(&self, cpu: CpuId) -> Option<usize> {
        Some(self.topology.as_ref()?.unit(Unit::Llc, cpu)?.index())
    }

    /// How many CPUs share `cpu`'s last-level cache, where stated.
    #[must_use]
    pub fn llc_size(&self, cpu: CpuId) -> Option<u32> {
        u32::try_from(self.topology.as_ref()?.siblings(Unit::Llc, cpu)?.len()).ok()
    }

    /// How far apart two CPUs are.
    #[must_use]
    pub fn relation(&self, a: Option<CpuId>, b: CpuId) -> Relation {
        let Some(a) = a else { return Relation::Unknown };
        if a == b {
            return Relation::At(Level::SameCpu);
        }
        if b.index() < self.cpus
            && let Some(&relation) = self.table.get(a.index() * self.cpus + b.index())
        {
            return relation;
        }
        let level = self.topology.as_ref().and_then(|topology| topology.level(a, b));
        level.map_or(Relation::OtherCpu, Relation::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttwu_model::Machine;

    #[test]
    fn relations_are_the_topologys_levels_or_less() {
        let machine = Machine::find("kunpeng920").expect("a named machine");
        let levels = Levels::new(machine.topology());
        let name = |a, b| levels.relation(Some(CpuId::new(a)), CpuId::new(b)).name();
        let names = [name(0, 0), name(0, 1), name(0, 5), name(0, 30), name(0, 60), name(0, 4000)];
        assert_eq!(names, ["same_cpu", "cluster", "llc", "remote", "remote", "other_cpu"]);
        assert_eq!(levels.relation(None, CpuId::new(0)), Relation::Unknown);
        assert_eq!(Levels::unknown().relation(Some(CpuId::new(1)), CpuId::new(0)), Relation::OtherCpu);
        assert!(levels.has_clusters() && levels.has_llcs());
        assert_eq!(levels.llc_size(CpuId::new(2)), Some(24));
    }

    #[test]
    fn counts_are_in_the_order_of_distance() {
        let mut by = ByRelation::default();
        for (count, relation) in (1..).zip(Relation::ALL) {
            by.add(relation, count);
        }
        assert_eq!(by.iter().map(|(_, count)| count).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
        assert_eq!((by.total(), by.get(Relation::OtherCpu)), (45, 8));
    }
}
