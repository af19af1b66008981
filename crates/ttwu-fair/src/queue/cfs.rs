//! CFS, v5.5–v6.1: slices, placement, pick.

use super::{CfsRq, QueueRules, before};
use crate::mutation::{Mutation, broken};
use crate::{Entities, EntityId, Feature, Kernel, LoadWeight, Tunables, calc_delta, calc_delta_fair};
use std::cmp::Ordering;

/// Why an entity is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Forked; its slice, ns of wall time.
    New(u64),
    Woken,
}

impl CfsRq {
    /// The wall time that an entity may run before others get their turn, ns. `nr` is the number of tasks that share the
    /// period: those of the whole CPU with ALT_PERIOD, of this queue without.
    ///
    /// DEVIATION: one level. For an entity inside groups the caller multiplies level by level ([`CfsRq::share`]).
    ///
    /// Models: sched_slice(), v5.5–v6.1.
    #[must_use]
    pub fn slice_ns(&self, e: &Entities, rules: &QueueRules, id: EntityId, nr: u32) -> u64 {
        let period = Self::period_ns(rules, nr + u32::from(!e[id].on_rq));
        self.slice_floor(e, rules, id, self.share(e, id, period))
    }

    /// The time in which each of `nr` tasks runs once, ns.
    ///
    /// Models: __sched_period(), v5.5–v6.1.
    pub(crate) fn period_ns(rules: &QueueRules, nr: u32) -> u64 {
        let (tunables, nr) = (&rules.tunables, u64::from(nr));
        if nr > Tunables::NR_LATENCY { nr * tunables.min_granularity_ns } else { tunables.latency_ns }
    }

    /// `slice`, at least the granularity where BASE_SLICE says so.
    pub(crate) fn slice_floor(&self, e: &Entities, rules: &QueueRules, id: EntityId, slice: u64) -> u64 {
        if !rules.has(Feature::BaseSlice) {
            return slice;
        }
        let tunables = &rules.tunables;
        let purely_idle = self.nr_idle == self.nr_queued;
        let idle = rules.kernel >= Kernel::V5_19 && e[id].is_idle() && !purely_idle;
        slice.max(if idle { tunables.idle_min_granularity_ns } else { tunables.min_granularity_ns })
    }

    /// `id`'s part of `period` on this queue, ns.
    #[must_use]
    pub fn share(&self, e: &Entities, id: EntityId, period: u64) -> u64 {
        let entity = &e[id];
        let load =
            if entity.on_rq { self.load() } else { LoadWeight::of_sum(self.load + entity.load.weight()) };
        calc_delta(period, entity.load.weight(), load)
    }

    /// Where a new or woken entity stands.
    ///
    /// Models: place_entity(), v5.5–v6.1.
    pub(crate) fn place_cfs(
        &self,
        e: &mut Entities,
        rules: &QueueRules,
        id: EntityId,
        now: u64,
        start: Start,
    ) {
        let mut vruntime = self.zero_vruntime;
        match start {
            Start::New(slice) if rules.has(Feature::StartDebit) => {
                vruntime = vruntime.wrapping_add(calc_delta_fair(slice, e[id].load));
            }
            Start::New(_) => {}
            Start::Woken => {
                let tunables = &rules.tunables;
                let idle = rules.kernel >= Kernel::V5_19 && e[id].is_idle();
                let mut credit = if idle { tunables.min_granularity_ns } else { tunables.latency_ns };
                if rules.has(Feature::GentleFairSleepers) {
                    credit >>= 1;
                }
                vruntime = vruntime.wrapping_sub(credit);
            }
        }
        let entity = &mut e[id];
        let slept = now.wrapping_sub(entity.exec_start) as i64;
        // A comparison of virtual times half the range apart would turn round.
        let long = rules.kernel >= Kernel::V6_1 && entity.exec_start != 0 && slept > LONG_SLEEP_NS;
        if long || before(entity.vruntime, vruntime) || broken(Mutation::PlacementResets) {
            entity.vruntime = vruntime;
        }
    }

    /// Places an entity as one that wakes, at the end of a stay in another group.
    pub(crate) fn place_woken(&self, e: &mut Entities, rules: &QueueRules, id: EntityId, now: u64) {
        self.place_cfs(e, rules, id, now, Start::Woken);
    }

    /// Places a forked child on its parent's queue, relative to it: it is queued elsewhere later.
    ///
    /// Models: task_fork_fair(), v5.5–v6.1.
    pub fn fork_cfs(&mut self, e: &mut Entities, rules: &QueueRules, child: EntityId, now: u64) {
        let slice = self.slice_ns(e, rules, child, self.nr_queued);
        self.fork_cfs_with(e, rules, child, now, slice);
    }

    /// [`CfsRq::fork_cfs`] with the child's slice given: inside groups it depends on more than this queue.
    pub(crate) fn fork_cfs_with(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        child: EntityId,
        now: u64,
        slice: u64,
    ) {
        self.update_curr(e, rules, now);
        if let Some(parent) = self.curr {
            e[child].vruntime = e[parent].vruntime;
        }
        self.place_cfs(e, rules, child, now, Start::New(slice));
        e[child].vruntime = e[child].vruntime.wrapping_sub(self.zero_vruntime);
    }

    /// Does `id` lead `curr` by more than its granularity?
    ///
    /// `Less`: it is behind. `Equal`: it leads, but not by enough.
    ///
    /// Models: wakeup_preempt_entity(), v5.5–v6.1.
    #[must_use]
    pub fn lead(e: &Entities, rules: &QueueRules, curr: EntityId, id: EntityId) -> Ordering {
        let lead = e[curr].vruntime.wrapping_sub(e[id].vruntime) as i64;
        if lead <= 0 {
            return Ordering::Less;
        }
        let granularity = calc_delta_fair(rules.tunables.wakeup_granularity_ns, e[id].load);
        let at_least = broken(Mutation::LeadInclusive) && lead == granularity as i64;
        if lead > granularity as i64 || at_least { Ordering::Greater } else { Ordering::Equal }
    }

    /// Models: pick_next_entity(), v5.5–v6.1.
    pub(crate) fn pick_cfs(&mut self, e: &Entities, rules: &QueueRules) -> Option<EntityId> {
        let curr = self.curr_queued(e);
        let ahead = |a: EntityId, b: EntityId| before(e[a].vruntime, e[b].vruntime);
        let first = match (self.leftmost(), curr) {
            (None, curr) => curr?,
            (Some(left), Some(curr)) if ahead(curr, left) => curr,
            (Some(left), _) => left,
        };
        let mut picked = first;
        if self.skip == Some(first) {
            let second = if curr == Some(first) {
                self.leftmost()
            } else {
                let second = self.tree.next(e, first.0).map(EntityId);
                match (second, curr) {
                    (None, curr) => curr,
                    (Some(second), Some(curr)) if ahead(curr, second) => Some(curr),
                    (second, _) => second,
                }
            };
            if let Some(second) = second
                && Self::lead(e, rules, second, first) != Ordering::Greater
            {
                picked = second;
            }
        }
        // The next buddy wins over the last one, and both over who is first, unless that were too unfair.
        let fair = |buddy: &EntityId| Self::lead(e, rules, *buddy, first) != Ordering::Greater;
        if let Some(next) = self.next.filter(fair) {
            picked = next;
        } else if let Some(last) = self.last.filter(fair) {
            picked = last;
        }
        if rules.kernel < Kernel::V5_15 {
            self.clear_buddies(picked);
        }
        Some(picked)
    }
}

/// Sleep after which a vruntime is no longer compared: 2⁶³ ns of virtual time at the least weight, about 104 days.
const LONG_SLEEP_NS: i64 = 1i64 << 53;
