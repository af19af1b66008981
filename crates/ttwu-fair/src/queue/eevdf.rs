//! EEVDF: averages, lag, eligibility, placement, deadlines, protection, pick.

use super::tree::NIL;
use super::{CfsRq, EnqueueFlags, Protect, QueueRules, Resched, SwitchIn, before};
use crate::mutation::{Mutation, broken};
use crate::{Entities, EntityId, Feature, Kernel, LoadWeight};

/// A lag as service (lag · weight) under another weight, towards zero.
pub(super) fn scale_lag(lag: i64, old: LoadWeight, new: LoadWeight) -> i64 {
    if new.weight() == 0 {
        return lag;
    }
    (i128::from(lag) * i128::from(old.weight()) / i128::from(new.weight())) as i64
}

impl CfsRq {
    /// A weight as the sums count it.
    fn sum_unit(&self, rules: &QueueRules, load: LoadWeight) -> i64 {
        let weight = if rules.kernel >= Kernel::V7_2 {
            match load.weight() >> self.sum_shift {
                weight @ 0..2 if self.sum_shift > 0 => weight.max(2),
                weight => weight,
            }
        } else {
            load.scaled_down()
        };
        weight as i64
    }

    fn key(&self, vruntime: u64) -> i64 {
        vruntime.wrapping_sub(self.zero_vruntime) as i64
    }

    pub(super) fn add_to_sums(&mut self, e: &Entities, rules: &QueueRules, id: EntityId) {
        if !rules.kernel.is_eevdf() {
            return;
        }
        if rules.kernel >= Kernel::V7_2 {
            self.make_room(e, rules, id);
        }
        let unit = self.sum_unit(rules, e[id].load);
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_add(self.key(e[id].vruntime).wrapping_mul(unit));
        self.sum_weight += unit;
        self.sum_slice = self.sum_slice.wrapping_add((e[id].slice as i64).wrapping_mul(unit));
    }

    pub(super) fn take_from_sums(&mut self, e: &Entities, rules: &QueueRules, id: EntityId) {
        if !rules.kernel.is_eevdf() {
            return;
        }
        let unit = self.sum_unit(rules, e[id].load);
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_sub(self.key(e[id].vruntime).wrapping_mul(unit));
        self.sum_weight -= unit;
        self.sum_slice = self.sum_slice.wrapping_sub((e[id].slice as i64).wrapping_mul(unit));
    }

    /// Drops binary places of all weights until the sums stay in 64 bits with `id` added.
    fn make_room(&mut self, e: &Entities, rules: &QueueRules, id: EntityId) {
        let fits = |queue: &Self| {
            let unit = queue.sum_unit(rules, e[id].load);
            let product = queue.key(e[id].vruntime).checked_mul(unit);
            product.and_then(|product| queue.sum_w_vruntime.checked_add(product)).is_some()
        };
        while !fits(self) && self.sum_shift < 10 {
            self.sum_shift += 1;
            let (mut sum, mut weight) = (0i64, 0i64);
            for other in self.queued(e) {
                let unit = self.sum_unit(rules, e[other].load);
                sum = sum.wrapping_add(self.key(e[other].vruntime).wrapping_mul(unit));
                weight += unit;
            }
            (self.sum_w_vruntime, self.sum_weight) = (sum, weight);
        }
    }

    /// The sums with the running entity's part.
    fn totals(&self, e: &Entities, rules: &QueueRules) -> (i64, i64) {
        let (mut sum, mut weight) = (self.sum_w_vruntime, self.sum_weight);
        if let Some(id) = self.curr_queued(e) {
            let unit = self.sum_unit(rules, e[id].load);
            sum = sum.wrapping_add(self.key(e[id].vruntime).wrapping_mul(unit));
            weight += unit;
        }
        (sum, weight)
    }

    /// The weighted mean of the queue's virtual times: where lag is 0.
    ///
    /// Models: avg_vruntime(), EEVDF-2023-04–v7.2, without its effect on the reference point.
    #[must_use]
    pub fn average(&self, e: &Entities, rules: &QueueRules) -> u64 {
        let (mut sum, weight) = self.totals(e, rules);
        if weight == 0 {
            return self.zero_vruntime;
        }
        // The division truncates; from v6.6 on it is made a floor.
        if sum < 0 && rules.kernel >= Kernel::V6_6 && !broken(Mutation::TruncatedAverage) {
            sum = sum.wrapping_sub(weight - 1);
        }
        self.zero_vruntime.wrapping_add((sum / weight) as u64)
    }

    /// The average; from v6.12 on the reference point moves there.
    ///
    /// Models: avg_vruntime(), v6.12–v7.2.
    fn average_moving(&mut self, e: &Entities, rules: &QueueRules) -> u64 {
        let average = self.average(e, rules);
        if rules.kernel >= Kernel::V6_12 {
            self.set_zero_vruntime(average);
        }
        average
    }

    /// Is this virtual time not past the average (no division, so no rounding)?
    ///
    /// Models: vruntime_eligible(), EEVDF-2023-04–v7.2.
    fn eligible_at(&self, totals: (i64, i64), vruntime: u64) -> bool {
        let (sum, weight) = totals;
        let bound = self.key(vruntime).wrapping_mul(weight);
        if broken(Mutation::StrictEligibility) { sum > bound } else { sum >= bound }
    }

    /// Has `id` not had more than its share?
    ///
    /// Models: entity_eligible(), EEVDF-2023-04–v7.2.
    #[must_use]
    pub fn eligible(&self, e: &Entities, rules: &QueueRules, id: EntityId) -> bool {
        self.eligible_at(self.totals(e, rules), e[id].vruntime)
    }

    /// The most lag, either way, that `id` may carry, ns.
    ///
    /// Models: entity_lag(), EEVDF-2023-04–v7.2.
    #[must_use]
    pub fn lag_limit(&self, e: &Entities, rules: &QueueRules, id: EntityId) -> i64 {
        let wall = if rules.kernel >= Kernel::V7_2 {
            let running = self.curr_queued(e).map_or(0, |id| e[id].slice);
            let queued = self.tree.max_slice(e).unwrap_or(0);
            running.max(queued) + rules.tick_ns()
        } else {
            (2 * e[id].slice).max(rules.tick_ns())
        };
        rules.virtual_time(wall, e[id].load) as i64
    }

    fn clamped_lag(&mut self, e: &Entities, rules: &QueueRules, id: EntityId) -> (i64, i64) {
        let lag = self.average_moving(e, rules).wrapping_sub(e[id].vruntime) as i64;
        let limit = if broken(Mutation::UnclampedLag) { i64::MAX } else { self.lag_limit(e, rules, id) };
        (lag, lag.clamp(-limit, limit))
    }

    /// Stores the lag that `id` has now.
    ///
    /// Models: update_entity_lag(), EEVDF-2023-04–v7.2.
    pub(super) fn update_lag(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId) {
        let (_, clamped) = self.clamped_lag(e, rules, id);
        e[id].vlag = if e[id].sched_delayed && rules.kernel >= Kernel::V7_2 {
            // What it had when it blocked bounds what it gains by waiting.
            clamped.max(e[id].vlag).min(0)
        } else {
            clamped
        };
    }

    /// Virtual time, deadline and end of protection of a queued entity under another weight: its lag and what is left of its
    /// request are kept as service.
    ///
    /// Models: reweight_eevdf(), rescale_entity(), v6.6–v7.2.
    pub(super) fn rescaled(
        &mut self,
        e: &Entities,
        rules: &QueueRules,
        id: EntityId,
        load: LoadWeight,
    ) -> (u64, u64, u64) {
        let average = self.average_moving(e, rules);
        let entity = e[id];
        let scale = |distance: i64| scale_lag(distance, entity.load, load);
        let mut lag = average.wrapping_sub(entity.vruntime) as i64;
        if rules.kernel >= Kernel::V6_12 {
            let limit = self.lag_limit(e, rules, id);
            lag = lag.clamp(-limit, limit);
        }
        let vruntime = average.wrapping_sub(scale(lag) as u64);
        let moved = |time: u64| average.wrapping_add(scale(time.wrapping_sub(average) as i64) as u64);
        let protected = rules.kernel >= Kernel::V7_2 && Self::is_protected(e, rules, id);
        (vruntime, moved(entity.deadline), if protected { moved(entity.vprot) } else { entity.vprot })
    }

    /// Models: finish_delayed_dequeue_entity(), v6.12–v7.2.
    pub(super) fn finish_delayed(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId) {
        let entity = &mut e[id];
        entity.sched_delayed = false;
        if rules.has(Feature::DelayZero) && entity.vlag > 0 {
            entity.vlag = 0;
        }
    }

    /// Where `id` stands when it is queued.
    ///
    /// Models: place_entity(), EEVDF-2023-04–v7.2.
    pub fn place(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId, flags: EnqueueFlags) {
        let average = self.average_moving(e, rules);
        if rules.kernel >= Kernel::V6_6 && !e[id].custom_slice {
            e[id].slice = rules.tunables.base_slice_ns;
        }
        let vslice = rules.vslice(e, id);
        let lag = self.lag_on_placement(e, rules, id, vslice);
        let entity = &mut e[id];
        let unplaced = entity.vruntime;
        entity.vruntime = average.wrapping_sub(lag as u64);
        if entity.rel_deadline {
            entity.deadline = entity.deadline.wrapping_add(entity.vruntime);
            entity.rel_deadline = false;
            return;
        }
        let halved = flags.initial && rules.has(Feature::PlaceDeadlineInitial);
        entity.deadline = entity.vruntime.wrapping_add(if halved { vslice / 2 } else { vslice });
        let bonus = rules.has(Feature::PlaceBonus) && flags.wakeup && !flags.migrated;
        if bonus && before(unplaced, entity.vruntime) {
            let credited = entity.vruntime.wrapping_sub(entity.slice / 2);
            entity.vruntime = if before(credited, unplaced) { unplaced } else { credited };
        }
    }

    fn lag_on_placement(&mut self, e: &Entities, rules: &QueueRules, id: EntityId, vslice: u64) -> i64 {
        let mut lag = e[id].vlag;
        if !rules.has(Feature::PlaceLag) || self.nr_queued == 0 || (rules.kernel >= Kernel::V7_2 && lag == 0)
        {
            return 0;
        }
        if rules.has(Feature::PlaceFudge) {
            let request = (e[id].slice as i64).wrapping_mul(self.sum_weight);
            if self.sum_slice > request {
                lag = lag.wrapping_add(vslice as i64).min(0);
            }
        }
        let running = self.curr_queued(e).map_or(0, |curr| self.sum_unit(rules, e[curr].load));
        let load = self.sum_weight + running;
        let unit = self.sum_unit(rules, e[id].load);
        // Joining moves the average; the lag is widened so that it comes out right after that.
        if broken(Mutation::LagNotWidened) {
            return lag;
        }
        let lag = lag.wrapping_mul(load + unit) / load.max(1);
        if rules.kernel >= Kernel::V7_2 && unit > load {
            self.move_zero(lag.wrapping_neg());
        }
        lag
    }

    /// Gives the running entity a new request when it has used up the old. Did it?
    ///
    /// Models: update_deadline(), EEVDF-2023-04–v7.2.
    pub(super) fn update_deadline(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId) -> bool {
        let late = broken(Mutation::LateRenewal) && e[id].vruntime == e[id].deadline;
        if before(e[id].vruntime, e[id].deadline) || late {
            return false;
        }
        if rules.kernel >= Kernel::V6_6 && !e[id].custom_slice {
            e[id].slice = rules.tunables.base_slice_ns;
        }
        let vslice = rules.vslice(e, id);
        e[id].deadline = e[id].vruntime.wrapping_add(vslice);
        self.average_moving(e, rules);
        true
    }

    /// What the accounting of the running entity asks for after its request may have ended.
    ///
    /// Models: update_curr(), update_deadline(), did_preempt_short(), v6.6–v7.2.
    pub(super) fn slice_end(
        &mut self,
        e: &Entities,
        rules: &QueueRules,
        id: EntityId,
        renewed: bool,
    ) -> Option<Resched> {
        let resched = match rules.kernel {
            Kernel::V5_5 | Kernel::V5_9 | Kernel::V5_15 | Kernel::V5_19 | Kernel::V6_1 => None,
            // The tick compares picks instead.
            Kernel::Eevdf202304 => None,
            Kernel::V6_6 => (renewed && self.nr_queued > 1).then_some(Resched::Full),
            Kernel::V6_12 => {
                let short_done = rules.has(Feature::PreemptShort)
                    && !Self::is_protected(e, rules, id)
                    && !self.eligible(e, rules, id);
                ((renewed || short_done) && self.nr_queued != 1).then_some(Resched::Full)
            }
            Kernel::V7_2 => {
                let ended = renewed || !Self::is_protected(e, rules, id);
                (ended && self.nr_queued != 1).then_some(Resched::Lazy)
            }
        };
        if resched.is_some() {
            self.clear_buddies(id);
        }
        resched
    }

    /// Is the running entity's mark (v6.6–v6.12) or window (v7.2) in force? Eligibility is asked apart.
    ///
    /// Models: protect_slice(), v6.6–v7.2.
    #[must_use]
    pub fn is_protected(e: &Entities, rules: &QueueRules, id: EntityId) -> bool {
        if rules.kernel >= Kernel::V7_2 {
            before(e[id].vruntime, e[id].vprot)
        } else {
            e[id].vlag == e[id].deadline as i64
        }
    }

    /// The shortest slice in the queue, the running entity's included.
    ///
    /// Models: cfs_rq_min_slice(), v6.12–v7.2.
    #[must_use]
    pub fn min_slice(&self, e: &Entities) -> Option<u64> {
        let running = self.curr_queued(e).map(|id| e[id].slice);
        running.into_iter().chain(self.tree.min_slice(e)).min()
    }

    /// Starts the protection of an entity that begins to run.
    ///
    /// Models: set_next_entity(), set_protect_slice(), v6.6–v7.2.
    pub(super) fn protect(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId, really: SwitchIn) {
        match rules.kernel {
            Kernel::V5_5
            | Kernel::V5_9
            | Kernel::V5_15
            | Kernel::V5_19
            | Kernel::V6_1
            | Kernel::Eevdf202304 => {}
            Kernel::V6_6 | Kernel::V6_12 => e[id].vlag = e[id].deadline as i64,
            Kernel::V7_2 => {
                if really == SwitchIn::PutBack {
                    return;
                }
                let own = e[id].slice;
                let window = if rules.has(Feature::RunToParity) {
                    self.min_slice(e).unwrap_or(own)
                } else {
                    rules.tunables.base_slice_unscaled_ns
                };
                let window = if broken(Mutation::WideWindow) { own } else { window.min(own) };
                let entity = &mut e[id];
                entity.vprot = entity.deadline;
                if window != own {
                    let end = entity.vruntime.wrapping_add(rules.virtual_time(window, entity.load));
                    if before(end, entity.vprot) {
                        entity.vprot = end;
                    }
                }
            }
        }
    }

    /// Narrows the running entity's window to the shortest slice queued, after a wake-up that did not preempt.
    ///
    /// Models: update_protect_slice(), v7.2.
    pub(crate) fn narrow_protection(&self, e: &mut Entities, rules: &QueueRules, id: EntityId) {
        let Some(slice) = self.min_slice(e) else { return };
        let end = e[id].vruntime.wrapping_add(rules.virtual_time(slice, e[id].load));
        if before(end, e[id].vprot) {
            e[id].vprot = end;
        }
    }

    /// Ends the running entity's protection.
    ///
    /// Models: cancel_protect_slice(), v6.12–v7.2.
    pub(crate) fn cancel_protection(e: &mut Entities, rules: &QueueRules, id: EntityId) {
        if rules.kernel >= Kernel::V7_2 {
            if Self::is_protected(e, rules, id) {
                e[id].vprot = e[id].vruntime;
            }
        } else if Self::is_protected(e, rules, id) {
            e[id].vlag = e[id].deadline.wrapping_add(1) as i64;
        }
    }

    /// Models: yield_task_fair(), EEVDF-2023-04–v7.2.
    pub(super) fn yield_eevdf(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId) {
        let vslice = rules.vslice(e, id);
        if rules.kernel < Kernel::V6_12 {
            e[id].deadline = e[id].deadline.wrapping_add(vslice);
        } else if self.eligible(e, rules, id) {
            // It forfeits the rest of its request and gets a new one, by which the reference point moves too.
            e[id].vruntime = e[id].deadline;
            self.update_deadline(e, rules, id);
        }
    }

    /// Wakes an entity that had blocked but was still queued.
    ///
    /// Models: requeue_delayed_entity(), v6.12–v7.2.
    pub fn requeue_delayed(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        id: EntityId,
        now: u64,
    ) -> Option<Resched> {
        assert!(e[id].sched_delayed, "only a delayed entity is requeued");
        let mut resched = None;
        if rules.kernel >= Kernel::V7_2 {
            resched = self.update_curr(e, rules, now);
            let (lag, clamped) = self.clamped_lag(e, rules, id);
            let vlag = if rules.has(Feature::DelayZero) { clamped.max(e[id].vlag).min(0) } else { clamped };
            e[id].vlag = vlag;
            if vlag != lag {
                self.place_again(e, rules, id);
            }
        } else if rules.has(Feature::DelayZero) {
            self.update_lag(e, rules, id);
            if e[id].vlag > 0 {
                e[id].vlag = 0;
                self.place_again(e, rules, id);
            }
        }
        e[id].sched_delayed = false;
        resched
    }

    /// Out of the order, placed, in again; its weight stays in the queue's load all the time.
    fn place_again(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId) {
        let in_tree = self.curr != Some(id);
        self.nr_queued -= 1;
        if in_tree {
            self.remove(e, rules, id);
        }
        self.place(e, rules, id, EnqueueFlags::default());
        if in_tree {
            self.insert(e, rules, id);
        }
        self.nr_queued += 1;
    }

    /// The eligible entity with the earliest deadline, or the running one while it is protected.
    ///
    /// Models: pick_eevdf(), EEVDF-2023-04–v7.2.
    #[must_use]
    pub fn pick_eevdf(&self, e: &Entities, rules: &QueueRules, protect: Protect) -> Option<EntityId> {
        let totals = self.totals(e, rules);
        let curr = self.curr_queued(e);
        if rules.kernel >= Kernel::V6_12 && self.nr_queued == 1 {
            return curr.or_else(|| self.leftmost());
        }
        if rules.kernel >= Kernel::V7_2 && protect == Protect::Yes && rules.has(Feature::PickBuddy) {
            let eligible = |id: &EntityId| self.eligible_at(totals, e[*id].vruntime);
            if let Some(next) = self.next.filter(eligible) {
                return Some(next);
            }
        }
        let curr = curr.filter(|&id| self.eligible_at(totals, e[id].vruntime));
        if rules.has(Feature::GentleEevdf) && curr.is_some() {
            return curr;
        }
        let keeps = |id: &EntityId| match rules.kernel {
            Kernel::V5_5
            | Kernel::V5_9
            | Kernel::V5_15
            | Kernel::V5_19
            | Kernel::V6_1
            | Kernel::Eevdf202304 => false,
            Kernel::V6_6 | Kernel::V6_12 => {
                rules.has(Feature::RunToParity) && Self::is_protected(e, rules, *id)
            }
            Kernel::V7_2 => protect == Protect::Yes && Self::is_protected(e, rules, *id),
        };
        if let Some(curr) = curr.filter(keeps) {
            return Some(curr);
        }
        match rules.kernel {
            Kernel::Eevdf202304 => self.pick_posted(e, totals, curr),
            Kernel::V6_6 => Some(self.pick_min_deadline(e, totals, curr)?),
            _ => self.pick_first_eligible(e, totals, curr),
        }
    }

    /// The descent as posted in 2023: having gone right it cannot return to an earlier deadline on the left.
    fn pick_posted(&self, e: &Entities, totals: (i64, i64), curr: Option<EntityId>) -> Option<EntityId> {
        let deadline = |id: u32| e.at(id).deadline;
        let mut node = self.tree.root;
        let mut best = NIL;
        while node != NIL {
            let links = e.node(node);
            if !self.eligible_at(totals, e.at(node).vruntime) {
                node = links.left;
                continue;
            }
            if best == NIL || before(deadline(node), deadline(best)) {
                best = node;
                if deadline(best) == e.node(best).min_deadline {
                    break;
                }
            }
            let left_has = links.left != NIL && e.node(links.left).min_deadline == links.min_deadline;
            node = if left_has { links.left } else { links.right };
        }
        let best = Some(best).filter(|&id| id != NIL).map(EntityId);
        match (best, curr) {
            (None, Some(curr)) => Some(curr),
            (Some(best), Some(curr)) if before(e[curr].deadline, e[best].deadline) => Some(curr),
            (Some(best), _) => Some(best),
            (None, None) => self.leftmost(),
        }
    }

    /// The exact earliest deadline among the eligible; the tree's shape decides among equal ones.
    fn pick_min_deadline(
        &self,
        e: &Entities,
        totals: (i64, i64),
        curr: Option<EntityId>,
    ) -> Option<EntityId> {
        let deadline = |id: u32| e.at(id).deadline;
        let min = |id: u32| e.node(id).min_deadline;
        let mut node = self.tree.root;
        let mut best = curr.map_or(NIL, |id| id.0);
        let mut best_left = NIL;
        while node != NIL {
            let links = e.node(node);
            if !self.eligible_at(totals, e.at(node).vruntime) {
                node = links.left;
                continue;
            }
            if best == NIL || before(deadline(node), deadline(best)) {
                best = node;
            }
            if links.left != NIL {
                if best_left == NIL || before(min(links.left), min(best_left)) {
                    best_left = links.left;
                }
                if min(links.left) == links.min_deadline {
                    break;
                }
            }
            if deadline(node) == links.min_deadline {
                break;
            }
            node = links.right;
        }
        if best_left != NIL && (best == NIL || !before(deadline(best), min(best_left))) {
            return Some(EntityId(Self::descend_to_min(e, best_left)));
        }
        Some(best).filter(|&id| id != NIL).map(EntityId)
    }

    /// The entity of `top`'s subtree that has the subtree's earliest deadline: itself, else on the left, else on the right.
    fn descend_to_min(e: &Entities, top: u32) -> u32 {
        let wanted = e.node(top).min_deadline;
        let mut node = top;
        loop {
            if e.at(node).deadline == wanted {
                return node;
            }
            let links = e.node(node);
            let left_has = links.left != NIL && e.node(links.left).min_deadline == wanted;
            node = if left_has { links.left } else { links.right };
        }
    }

    /// The first in deadline order that is eligible: whole subtrees are passed by their least vruntime.
    fn pick_first_eligible(
        &self,
        e: &Entities,
        totals: (i64, i64),
        curr: Option<EntityId>,
    ) -> Option<EntityId> {
        let mut node = self.tree.root;
        let mut best = None;
        while node != NIL {
            let links = e.node(node);
            if links.left != NIL && self.eligible_at(totals, e.node(links.left).min_vruntime) {
                node = links.left;
                continue;
            }
            if self.eligible_at(totals, e.at(node).vruntime) {
                best = Some(EntityId(node));
                break;
            }
            node = links.right;
        }
        let tie =
            |a: EntityId, b: EntityId| broken(Mutation::RunningWinsTie) && e[a].deadline == e[b].deadline;
        match (best, curr) {
            (None, curr) => curr,
            (Some(best), Some(curr)) if before(e[curr].deadline, e[best].deadline) || tie(curr, best) => {
                Some(curr)
            }
            (best, _) => best,
        }
    }
}
