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
use std::collections::BTreeMap;

/// A group under construction.
pub(super) struct Draft {
    pub(super) span: CpuSet,
    pub(super) balance_mask: CpuSet,
    pub(super) flags: SdFlags,
    /// Level and first balance CPU: what the kernel keys the shared record by.
    pub(super) sgc: (usize, CpuId),
}

/// All groups, and those that are shared by their level and first CPU.
#[derive(Default)]
pub(super) struct Drafts {
    pub(super) all: Vec<Draft>,
    shared: BTreeMap<(usize, CpuId), usize>,
}

impl Drafts {
    /// The ring of groups of `cpu`'s domain on `level`, as indices into `all`.
    pub(super) fn ring(&mut self, chains: &Chains, cpu: CpuId, level: usize) -> Vec<usize> {
        if chains.domain(cpu, level).is_some_and(|domain| domain.flags.contains(SdFlags::NUMA)) {
            self.overlapping_ring(chains, cpu, level)
        } else {
            self.disjoint_ring(chains, cpu, level)
        }
    }

    fn disjoint_ring(&mut self, chains: &Chains, cpu: CpuId, level: usize) -> Vec<usize> {
        let span = chains.span(cpu, level);
        let mut covered = CpuSet::new();
        let mut ring = Vec::new();
        for member in span.scan(cpu) {
            if covered.contains(member) {
                continue;
            }
            let child = chains.child(member, level);
            let first = child.and_then(|child| child.span.lowest()).unwrap_or(member);
            let all = &mut self.all;
            let index = *self.shared.entry((level, first)).or_insert_with(|| {
                let span = child.map_or_else(|| [member].into_iter().collect(), |child| child.span.clone());
                let flags = child.map_or(SdFlags::EMPTY, |child| child.flags);
                all.push(Draft { balance_mask: span.clone(), span, flags, sgc: (level, first) });
                all.len() - 1
            });
            covered = covered.union(&self.all[index].span);
            ring.push(index);
        }
        ring
    }

    fn overlapping_ring(&mut self, chains: &Chains, cpu: CpuId, level: usize) -> Vec<usize> {
        let span = chains.span(cpu, level);
        let mut covered = CpuSet::new();
        let mut ring = Vec::new();
        for member in span.scan(cpu) {
            // On irregular distances some CPU has nothing on this level, or something that leaves itself out.
            if covered.contains(member) || chains.domain(member, level).is_none() {
                continue;
            }
            let from = if chains.descends() { descend(chains, member, level, span) } else { level };
            let child = chains.child(member, from);
            let group = child.map_or_else(|| chains.span(member, from).clone(), |child| child.span.clone());
            let flags = child.map_or(SdFlags::EMPTY, |child| child.flags);
            let own_child_is_group =
                |&other: &CpuId| chains.child(other, from).is_some_and(|child| child.span == group);
            let balance_mask: CpuSet = group.iter().filter(own_child_is_group).collect();
            let first = balance_mask.lowest().unwrap_or(member);
            covered = covered.union(&group);
            self.all.push(Draft { span: group, balance_mask, flags, sgc: (from, first) });
            ring.push(self.all.len() - 1);
        }
        ring
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
