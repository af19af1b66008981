//! How far apart two CPUs are, for analyses: a topology's levels, or no more than "the same" and "another".
//!
//! What this does not do: know the topology. It is given one, or none.

use ttwu_model::CpuId;

/// How far apart two CPUs are: the smallest thing that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The same logical CPU.
    SameCpu,
    /// Hardware threads of one core.
    Smt,
    /// Cores of one cluster (a shared L2 or L3 tag).
    Cluster,
    /// CPUs sharing the last-level cache.
    Llc,
    /// CPUs of one die.
    Die,
    /// CPUs of one NUMA node.
    Node,
    /// CPUs of different nodes.
    Remote,
    /// Different CPUs of a machine whose topology is not known.
    Other,
    /// One of the two CPUs is not known.
    Unknown,
}

impl Relation {
    /// All of them, nearest first.
    pub const ALL: [Self; 9] = [
        Self::SameCpu,
        Self::Smt,
        Self::Cluster,
        Self::Llc,
        Self::Die,
        Self::Node,
        Self::Remote,
        Self::Other,
        Self::Unknown,
    ];

    /// Its name in reports and JSON.
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
            Self::Other => "other_cpu",
            Self::Unknown => "unknown",
        }
    }
}

/// Counts by [`Relation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByRelation([u64; Relation::ALL.len()]);

impl ByRelation {
    /// Adds `count` to one of them.
    pub fn add(&mut self, relation: Relation, count: u64) {
        self.0[relation as usize] += count;
    }

    /// One of them.
    #[must_use]
    pub const fn get(&self, relation: Relation) -> u64 {
        self.0[relation as usize]
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

/// What one CPU belongs to; equal numbers mean shared things, [`Levels::NONE`] that there is no such level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The core.
    pub core: u16,
    /// The cluster.
    pub cluster: u16,
    /// The last-level cache.
    pub llc: u16,
    /// The die.
    pub die: u16,
    /// The NUMA node.
    pub node: u16,
}

/// A machine's levels, by CPU; empty where the topology is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    cpus: Vec<Place>,
}

impl Levels {
    /// "There is no such level", in a [`Place`].
    pub const NONE: u16 = u16::MAX;

    /// Nothing is known.
    #[must_use]
    pub const fn unknown() -> Self {
        Self { cpus: Vec::new() }
    }

    /// The levels of CPUs 0, 1, 2 ….
    #[must_use]
    pub const fn new(cpus: Vec<Place>) -> Self {
        Self { cpus }
    }

    /// Is a topology known?
    #[must_use]
    pub const fn known(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// Does any CPU share a cluster with another core?
    #[must_use]
    pub fn has_clusters(&self) -> bool {
        let shares =
            |a: &Place, b: &Place| a.cluster != Self::NONE && a.cluster == b.cluster && a.core != b.core;
        self.cpus.first().is_some_and(|_| {
            let mut sorted: Vec<&Place> = self.cpus.iter().collect();
            sorted.sort_by_key(|place| (place.cluster, place.core));
            sorted.windows(2).any(|two| shares(two[0], two[1]))
        })
    }

    /// The number of the cache that `cpu` shares, where known.
    #[must_use]
    pub fn llc(&self, cpu: CpuId) -> Option<u16> {
        self.cpus.get(cpu.index()).map(|place| place.llc).filter(|&llc| llc != Self::NONE)
    }

    /// How many CPUs share `cpu`'s last-level cache, where known.
    #[must_use]
    pub fn llc_size(&self, cpu: CpuId) -> Option<u32> {
        let llc = self.llc(cpu)?;
        u32::try_from(self.cpus.iter().filter(|place| place.llc == llc).count()).ok()
    }

    /// How far apart two CPUs are.
    #[must_use]
    pub fn relation(&self, a: Option<CpuId>, b: CpuId) -> Relation {
        let Some(a) = a else { return Relation::Unknown };
        if a == b {
            return Relation::SameCpu;
        }
        let (Some(a), Some(b)) = (self.cpus.get(a.index()), self.cpus.get(b.index())) else {
            return Relation::Other;
        };
        let same = |a: u16, b: u16| a == b && a != Self::NONE;
        if same(a.core, b.core) {
            Relation::Smt
        } else if same(a.cluster, b.cluster) {
            Relation::Cluster
        } else if same(a.llc, b.llc) {
            Relation::Llc
        } else if same(a.die, b.die) {
            Relation::Die
        } else if same(a.node, b.node) {
            Relation::Node
        } else {
            Relation::Remote
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_shared_thing_names_the_relation() {
        let place = |core, cluster, llc, die, node| Place { core, cluster, llc, die, node };
        let levels = Levels::new(vec![
            place(0, 0, 0, 0, 0),
            place(0, 0, 0, 0, 0),
            place(1, 0, 0, 0, 0),
            place(2, 1, 0, 0, 0),
            place(3, Levels::NONE, 1, 0, 0),
            place(4, Levels::NONE, 2, 1, 0),
            place(5, Levels::NONE, 3, 2, 1),
        ]);
        let relations: Vec<_> =
            (0..8).map(|cpu| levels.relation(Some(CpuId::new(cpu)), CpuId::new(0)).name()).collect();
        assert_eq!(relations, ["same_cpu", "smt", "cluster", "llc", "die", "node", "remote", "other_cpu"]);
        assert_eq!(levels.relation(None, CpuId::new(0)), Relation::Unknown);
        assert_eq!(Levels::unknown().relation(Some(CpuId::new(1)), CpuId::new(0)), Relation::Other);
        assert!(levels.has_clusters());
        assert_eq!(levels.llc_size(CpuId::new(2)), Some(4));
    }
}
