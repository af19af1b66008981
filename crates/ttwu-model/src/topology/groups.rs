//! Groups of domains before degenerate levels are removed: which CPUs each holds, in ring order.
//!
//! Models: build_sched_groups(), build_overlap_sched_groups(), v5.5–v7.2.
//!
//! Groups of all but NUMA levels are shared objects: every CPU of a domain refers to the same ones, so a change of flags
//! through one CPU is seen by all. NUMA levels make groups of their own for each CPU, since nodes see different
//! neighbourhoods. What this does not do: capacities at run time.

use super::derive::Chains;
use super::domain::SdFlags;
use crate::{CpuId, CpuSet};

/// A group under construction.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) span: CpuSet,
    pub(super) balance_mask: CpuSet,
    pub(super) flags: SdFlags,
    /// Level and first balance CPU: what the kernel keys the shared record by.
    pub(super) sgc: (usize, CpuId),
    /// `span` as a list.
    members: Vec<CpuId>,
}

impl Draft {
    fn new(span: CpuSet, balance_mask: CpuSet, flags: SdFlags, sgc: (usize, CpuId)) -> Self {
        Self { members: span.iter().collect(), span, balance_mask, flags, sgc }
    }
}

/// All groups, and those that are shared by their level and first CPU.
///
/// A cache of n CPUs has n rings of up to n groups, so what is done per step decides whether thousands of CPUs take
/// seconds or minutes: a step is a look into tables by CPU and never walks a set.
pub(super) struct Drafts {
    pub(super) all: Vec<Draft>,
    /// By level and first CPU.
    shared: Vec<Vec<Option<usize>>>,
    /// By level and member: the group of that CPU's child domain.
    own: Vec<Vec<Option<usize>>>,
    /// By level and member, for NUMA levels: the group as other CPUs see it.
    foreign: Vec<Vec<Option<usize>>>,
    /// By CPU: the last ring that covered it.
    covered: Vec<usize>,
    rings: usize,
}

impl Drafts {
    /// No groups yet, for chains of CPUs below `bound` with at most `levels` levels.
    pub(super) fn new(bound: usize, levels: usize) -> Self {
        Self {
            all: Vec::new(),
            shared: vec![vec![None; bound]; levels],
            own: vec![vec![None; bound]; levels],
            foreign: vec![vec![None; bound]; levels],
            covered: vec![0; bound],
            rings: 0,
        }
    }

    /// The ring of groups of `cpu`'s domain on `level`, as indices into `all`.
    pub(super) fn ring(&mut self, chains: &Chains, cpu: CpuId, level: usize) -> Vec<usize> {
        self.rings += 1;
        if chains.domain(cpu, level).is_some_and(|domain| domain.flags.contains(SdFlags::NUMA)) {
            self.overlapping_ring(chains, cpu, level)
        } else {
            self.disjoint_ring(chains, cpu, level)
        }
    }

    fn disjoint_ring(&mut self, chains: &Chains, cpu: CpuId, level: usize) -> Vec<usize> {
        let mut ring = Vec::new();
        for member in chains.span(cpu, level).scan(cpu) {
            if self.covered[member.index()] == self.rings {
                continue;
            }
            let index = match self.own[level][member.index()] {
                Some(index) => index,
                None => self.shared_group(chains, member, level),
            };
            self.cover(index);
            ring.push(index);
        }
        ring
    }

    /// The group that is `member`'s child domain, made when first met.
    fn shared_group(&mut self, chains: &Chains, member: CpuId, level: usize) -> usize {
        let child = chains.child(member, level);
        let first = child.and_then(|child| child.span.lowest()).unwrap_or(member);
        let all = &mut self.all;
        let index = *self.shared[level][first.index()].get_or_insert_with(|| {
            let span = child.map_or_else(|| CpuSet::from_iter([member]), |child| child.span.clone());
            let flags = child.map_or(SdFlags::EMPTY, |child| child.flags);
            all.push(Draft::new(span.clone(), span, flags, (level, first)));
            all.len() - 1
        });
        self.own[level][member.index()] = Some(index);
        index
    }

    fn cover(&mut self, index: usize) {
        for cpu in &self.all[index].members {
            self.covered[cpu.index()] = self.rings;
        }
    }

    fn overlapping_ring(&mut self, chains: &Chains, cpu: CpuId, level: usize) -> Vec<usize> {
        let span = chains.span(cpu, level);
        let mut ring = Vec::new();
        for member in span.scan(cpu) {
            // On irregular distances some CPU has nothing on this level.
            if self.covered[member.index()] == self.rings || chains.domain(member, level).is_none() {
                continue;
            }
            let from = if chains.descends() { descend(chains, member, level, span) } else { level };
            let mut index = self.foreign_group(chains, member, from);
            if ring.is_empty() {
                // Its own group of each CPU: removing degenerate levels changes its flags, for this CPU alone.
                self.all.push(self.all[index].clone());
                index = self.all.len() - 1;
            }
            self.cover(index);
            ring.push(index);
        }
        ring
    }

    /// The group that `member`'s child on level `from` is, with the flags that this child has before removal.
    fn foreign_group(&mut self, chains: &Chains, member: CpuId, from: usize) -> usize {
        if let Some(index) = self.foreign[from][member.index()] {
            return index;
        }
        let child = chains.child(member, from);
        let group = child.map_or_else(|| chains.span(member, from).clone(), |child| child.span.clone());
        let flags = child.map_or(SdFlags::EMPTY, |child| child.flags);
        let own_child_is_group =
            |&other: &CpuId| chains.child(other, from).is_some_and(|child| child.span == group);
        let balance_mask: CpuSet = group.iter().filter(own_child_is_group).collect();
        let first = balance_mask.lowest().unwrap_or(member);
        self.all.push(Draft::new(group, balance_mask, flags, (from, first)));
        let index = self.all.len() - 1;
        self.foreign[from][member.index()] = Some(index);
        index
    }
}

/// The level of `member` whose child does not leave `span`, and below that the lowest one of equal extent.
///
/// Models: find_descended_sibling(), v5.13–v7.2. Before, a group could stick out of its domain on machines with three
/// hops, which made balancing count CPUs outside.
fn descend(chains: &Chains, member: CpuId, level: usize, span: &CpuSet) -> usize {
    let mut at = level;
    match chains.child(member, level) {
        Some(child) if !child.span.is_subset(span) => {}
        Some(_) | None => return at,
    }
    while chains.child(member, at).is_some_and(|child| !child.span.is_subset(span)) {
        at -= 1;
    }
    while chains.child(member, at).is_some_and(|child| child.span == *chains.span(member, at)) {
        at -= 1;
    }
    at
}
