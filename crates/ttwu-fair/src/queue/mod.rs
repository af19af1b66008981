//! One run queue of the fair class: what is common to CFS and EEVDF.
//!
//! A queue is plain state beside the arena of [`Entities`]; every function names the entity and the time. The generations'
//! own arithmetic is in `cfs` and `eevdf`; the order of steps inside enqueue, dequeue and switch is here, since a recorded
//! kernel is compared step by step.
//!
//! What this does not do: hierarchies. A queue is one level; the entity of a group is an entity like a task's, and whoever
//! owns the groups calls the levels in the kernel's order.

mod cfs;
mod eevdf;
mod tree;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use tree::{Node, before};

use crate::mutation::{Mutation, broken};
use crate::{
    Entities, EntityId, Feature, FeatureSet, Kernel, LoadWeight, NICE_0_LOAD, Policy, SchedEntity, Tunables,
    calc_delta_fair,
};
use tree::Tree;

/// What the rules of a queue need of a policy and a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// The generation.
    pub kernel: Kernel,
    /// Which features are on.
    pub features: FeatureSet,
    /// Tunables, scaled to the machine.
    pub tunables: Tunables,
}

impl QueueRules {
    /// The rules of `policy` on a machine with `cpus` CPUs on line.
    #[must_use]
    pub fn new(policy: &Policy, cpus: usize) -> Self {
        Self { kernel: policy.kernel(), features: policy.features(), tunables: policy.tunables(cpus) }
    }

    /// Is `feature` on?
    #[must_use]
    pub const fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// Length of a tick, ns.
    #[must_use]
    pub const fn tick_ns(&self) -> u64 {
        1_000_000_000 / self.tunables.hz
    }

    /// Virtual time of `entity`'s request.
    fn vslice(&self, e: &Entities, id: EntityId) -> u64 {
        self.virtual_time(e[id].slice, e[id].load)
    }

    /// Wall time as virtual time. v7.2 divides by the weight where earlier kernels multiply by a rounded reciprocal.
    ///
    /// Models: calc_delta_fair(), v5.5–v7.2. The division is what recordings of v7.2 show for SCHED_IDLE tasks (1133 of 1134
    /// steps; the reciprocal gives 290); for other weights no recording tells.
    #[must_use]
    pub fn virtual_time(&self, wall: u64, load: LoadWeight) -> u64 {
        if self.kernel < Kernel::V7_2 || load.weight() == 0 {
            return calc_delta_fair(wall, load);
        }
        if load.weight() == NICE_0_LOAD {
            return wall;
        }
        match wall.checked_mul(NICE_0_LOAD) {
            Some(product) => product / load.weight(),
            None => (u128::from(wall) * u128::from(NICE_0_LOAD) / u128::from(load.weight())) as u64,
        }
    }
}

/// How urgently the running task is to be rescheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resched {
    /// At the next return to user mode, or when a tick makes it `Full` (v7.2).
    Lazy,
    /// At the next preemption point.
    Full,
}

/// Why an entity is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EnqueueFlags {
    /// It was woken.
    pub wakeup: bool,
    /// It was woken on another CPU than it slept on.
    pub migrated: bool,
    /// It is new.
    pub initial: bool,
}

/// Why an entity is dequeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DequeueFlags {
    /// It blocks.
    pub sleep: bool,
    /// It blocks in a state that is never delayed (stopped, traced, parked, dead; throttled on 7.2).
    pub special: bool,
    /// A delayed dequeue is finished.
    pub delayed: bool,
    /// It will be put back at once (an attribute changes).
    pub save: bool,
}

/// What a dequeue did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dequeued {
    /// Did it stay queued, delayed?
    pub delayed: bool,
    /// Did accounting ask for a reschedule?
    pub resched: Option<Resched>,
}

/// One queue.
///
/// Models: struct cfs_rq, v5.5–v7.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CfsRq {
    tree: Tree,
    /// The running entity, which is not in the tree but counts in `nr_queued` and `load` (unless it was dequeued already).
    pub curr: Option<EntityId>,
    /// To be picked next.
    pub next: Option<EntityId>,
    /// Was preempted; preferred (CFS).
    pub last: Option<EntityId>,
    /// Yielded; to be passed over (CFS).
    pub skip: Option<EntityId>,
    /// Sum of weights, scaled up, the running entity's included. Its reciprocal is computed when it is asked for.
    load: u64,
    nr_queued: u32,
    nr_idle: u32,
    /// The point from which virtual times are measured: `min_vruntime` up to v6.6, `zero_vruntime` after.
    zero_vruntime: u64,
    /// Σ weight · (vruntime − zero_vruntime) over the tree.
    sum_w_vruntime: i64,
    /// Σ weight over the tree.
    sum_weight: i64,
    /// Σ slice · weight over the tree (EEVDF-2023-04).
    sum_slice: i64,
    /// Binary places dropped from weights to keep the sums in 64 bits (v7.2).
    sum_shift: u32,
}

impl CfsRq {
    /// An empty queue.
    #[must_use]
    pub fn new(kernel: Kernel) -> Self {
        Self {
            tree: Tree::new(kernel),
            curr: None,
            next: None,
            last: None,
            skip: None,
            load: 0,
            nr_queued: 0,
            nr_idle: 0,
            // The kernel's start value: soon enough before the wrap to find mistakes early.
            zero_vruntime: (1u64 << 20).wrapping_neg(),
            sum_w_vruntime: 0,
            sum_weight: 0,
            sum_slice: 0,
            sum_shift: 0,
        }
    }

    /// Entities queued, the running and delayed ones included.
    #[must_use]
    pub const fn nr_queued(&self) -> u32 {
        self.nr_queued
    }

    /// Of those, entities of the idle policy.
    #[must_use]
    pub const fn nr_idle(&self) -> u32 {
        self.nr_idle
    }

    /// Sum of the weights queued.
    #[must_use]
    pub const fn load(&self) -> LoadWeight {
        LoadWeight::of_sum(self.load)
    }

    /// Sum of the weights queued, scaled up, without the reciprocal (a division).
    pub(crate) const fn load_sum(&self) -> u64 {
        self.load
    }

    /// Gives a group's entity the slice of what is queued inside it; what the tree knows of slices follows.
    pub(crate) fn set_slice(&self, e: &mut Entities, id: EntityId, slice: u64) {
        e[id].slice = slice;
        if e[id].on_rq && self.curr != Some(id) {
            self.tree.slice_changed(e, id.0);
        }
    }

    /// `min_vruntime` up to v6.6, `zero_vruntime` after.
    #[must_use]
    pub const fn zero_vruntime(&self) -> u64 {
        self.zero_vruntime
    }

    /// The tree's sums: Σ weight · key and Σ weight.
    #[must_use]
    pub const fn sums(&self) -> (i64, i64) {
        (self.sum_w_vruntime, self.sum_weight)
    }

    /// Moves the reference point without changing any virtual time: what a recording's state is put in with.
    pub const fn set_zero_vruntime(&mut self, zero: u64) {
        self.move_zero(zero.wrapping_sub(self.zero_vruntime) as i64);
    }

    /// The first in the tree's order.
    #[must_use]
    pub fn leftmost(&self) -> Option<EntityId> {
        self.tree.leftmost().map(EntityId)
    }

    /// The queued entities other than the running one, in the tree's order.
    pub fn queued<'a>(&'a self, e: &'a Entities) -> impl Iterator<Item = EntityId> + 'a {
        std::iter::successors(self.tree.leftmost(), |&id| self.tree.next(e, id)).map(EntityId)
    }

    /// Queues an entity as it stands, without placing it: one that a recording shows without its enqueue. `running` makes it
    /// the running entity.
    pub fn adopt(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId, running: bool) {
        assert!(!e[id].on_rq, "an entity is queued once");
        e[id].on_rq = true;
        self.account_enqueue(e, id);
        if running {
            self.curr = Some(id);
        } else {
            self.insert(e, rules, id);
        }
    }

    /// Gives an entity of this queue the values of `to`, its order and the sums following. Where it is queued stays.
    pub fn correct(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId, to: &SchedEntity) {
        let old = e[id];
        let new = SchedEntity { on_rq: old.on_rq, node: old.node, ..*to };
        let counted = (old.load, old.policy) != (new.load, new.policy);
        let ordered = (old.vruntime, old.deadline, old.slice) != (new.vruntime, new.deadline, new.slice);
        // An entity that is taken out and put back goes behind its equals; so only if it must.
        let in_tree = old.on_rq && self.curr != Some(id) && (counted || ordered);
        if in_tree {
            self.remove(e, rules, id);
        }
        if old.on_rq && counted {
            self.account_dequeue(e, id);
        }
        e[id] = SchedEntity { node: e[id].node, ..new };
        if old.on_rq && counted {
            self.account_enqueue(e, id);
        }
        if in_tree {
            self.insert(e, rules, id);
        }
    }

    /// Takes an entity out without accounting or lag: one that a recording shows to be gone.
    pub fn forget(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId) {
        self.clear_buddies(id);
        if e[id].on_rq {
            if self.curr != Some(id) {
                self.remove(e, rules, id);
            }
            e[id].on_rq = false;
            self.account_dequeue(e, id);
        }
        if self.curr == Some(id) {
            self.curr = None;
        }
    }

    fn curr_queued(&self, e: &Entities) -> Option<EntityId> {
        self.curr.filter(|&id| e[id].on_rq)
    }

    const fn move_zero(&mut self, delta: i64) {
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_sub(self.sum_weight.wrapping_mul(delta));
        self.zero_vruntime = self.zero_vruntime.wrapping_add(delta as u64);
    }

    /// `min_vruntime` follows the least virtual time, and never goes back.
    ///
    /// Models: update_min_vruntime(), v5.5–v6.6.
    fn update_min_vruntime(&mut self, e: &Entities, rules: &QueueRules) {
        if rules.kernel >= Kernel::V6_12 {
            return;
        }
        let curr = self.curr_queued(e).map(|id| e[id].vruntime);
        let left = self.leftmost().map(|id| e[id].vruntime);
        let least = match (curr, left) {
            (Some(curr), Some(left)) => {
                if before(left, curr) {
                    left
                } else {
                    curr
                }
            }
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        if before(self.zero_vruntime, least) || broken(Mutation::MinimumGoesBack) {
            self.move_zero(least.wrapping_sub(self.zero_vruntime) as i64);
        }
    }

    /// Accounts the running entity's time up to `now`; its slice may end by that.
    ///
    /// Models: update_curr(), v5.5–v7.2.
    pub fn update_curr(&mut self, e: &mut Entities, rules: &QueueRules, now: u64) -> Option<Resched> {
        let id = self.curr?;
        let curr = &mut e[id];
        let delta = now.wrapping_sub(curr.exec_start) as i64;
        if delta <= 0 {
            return None;
        }
        let delta = delta as u64;
        curr.exec_start = now;
        curr.sum_exec_runtime = curr.sum_exec_runtime.wrapping_add(delta);
        curr.vruntime = curr.vruntime.wrapping_add(rules.virtual_time(delta, curr.load));
        if !rules.kernel.is_eevdf() {
            self.update_min_vruntime(e, rules);
            return None;
        }
        let renewed = self.update_deadline(e, rules, id);
        self.update_min_vruntime(e, rules);
        self.slice_end(e, rules, id, renewed)
    }

    /// Queues `id`. For a fork, a balancing move or a changed attribute the caller has set its lag or relative time.
    ///
    /// Models: enqueue_entity(), v5.5–v7.2.
    pub fn enqueue(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        id: EntityId,
        now: u64,
        flags: EnqueueFlags,
    ) -> Option<Resched> {
        self.enqueue_reweighted(e, rules, id, now, flags, None)
    }

    /// [`CfsRq::enqueue`] of a group's entity whose weight changes on the way: after the running entity was accounted,
    /// before the new one is placed.
    pub(crate) fn enqueue_reweighted(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        id: EntityId,
        now: u64,
        flags: EnqueueFlags,
        load: Option<LoadWeight>,
    ) -> Option<Resched> {
        assert!(!e[id].on_rq, "an entity is queued once");
        let is_curr = self.curr == Some(id);
        let resched = if rules.kernel.is_eevdf() {
            if is_curr {
                self.place(e, rules, id, flags);
            }
            let resched = self.update_curr(e, rules, now);
            if let Some(load) = load {
                Self::reweight_unqueued(e, rules, id, load);
            }
            if !is_curr {
                self.place(e, rules, id, flags);
            }
            if flags.migrated && rules.kernel >= Kernel::V6_6 {
                e[id].exec_start = 0;
            }
            resched
        } else {
            let relative = !flags.wakeup || flags.migrated;
            if relative && is_curr {
                e[id].vruntime = e[id].vruntime.wrapping_add(self.zero_vruntime);
            }
            self.update_curr(e, rules, now);
            if relative && !is_curr {
                e[id].vruntime = e[id].vruntime.wrapping_add(self.zero_vruntime);
            }
            if let Some(load) = load {
                Self::reweight_unqueued(e, rules, id, load);
            }
            None
        };
        self.account_enqueue(e, id);
        if !rules.kernel.is_eevdf() && flags.wakeup {
            self.place_cfs(e, rules, id, now, cfs::Start::Woken);
        }
        if !is_curr {
            self.insert(e, rules, id);
        }
        e[id].on_rq = true;
        resched
    }

    /// Takes `id` out, or leaves it in, delayed.
    ///
    /// Models: dequeue_entity(), v5.5–v7.2.
    pub fn dequeue(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        id: EntityId,
        now: u64,
        flags: DequeueFlags,
    ) -> Dequeued {
        assert!(e[id].on_rq, "only a queued entity is dequeued");
        let resched = self.update_curr(e, rules, now);
        self.clear_buddies(id);
        if rules.kernel.is_eevdf() {
            // 7.2 takes the lag before it decides whether to delay.
            if rules.kernel >= Kernel::V7_2 {
                self.update_lag(e, rules, id);
            }
            let may_delay = flags.sleep && !flags.special && !flags.delayed && !e[id].sched_delayed;
            if may_delay
                && rules.has(Feature::DelayDequeue)
                && (!self.eligible(e, rules, id) || broken(Mutation::DelayAlways))
            {
                e[id].sched_delayed = true;
                return Dequeued { delayed: true, resched };
            }
            if rules.kernel < Kernel::V7_2 {
                self.update_lag(e, rules, id);
            }
            if rules.has(Feature::PlaceRelDeadline) && !flags.sleep {
                let entity = &mut e[id];
                entity.deadline = entity.deadline.wrapping_sub(entity.vruntime);
                entity.rel_deadline = true;
            }
        }
        if self.curr != Some(id) {
            self.remove(e, rules, id);
        }
        e[id].on_rq = false;
        self.account_dequeue(e, id);
        if flags.delayed {
            self.finish_delayed(e, rules, id);
        }
        if !rules.kernel.is_eevdf() && !flags.sleep {
            e[id].vruntime = e[id].vruntime.wrapping_sub(self.zero_vruntime);
        }
        if !flags.save {
            self.update_min_vruntime(e, rules);
        }
        Dequeued { delayed: false, resched }
    }

    fn account_enqueue(&mut self, e: &Entities, id: EntityId) {
        self.load += e[id].load.weight();
        self.nr_queued += 1;
        self.nr_idle += u32::from(e[id].is_idle());
    }

    fn account_dequeue(&mut self, e: &Entities, id: EntityId) {
        self.load -= e[id].load.weight();
        self.nr_queued -= 1;
        self.nr_idle -= u32::from(e[id].is_idle());
    }

    /// Forgets that `id` was to be preferred or passed over.
    ///
    /// Models: clear_buddies(), v5.5–v7.2.
    pub fn clear_buddies(&mut self, id: EntityId) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            if *buddy == Some(id) {
                *buddy = None;
            }
        }
    }

    fn insert(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId) {
        self.add_to_sums(e, rules, id);
        self.tree.insert(e, id.0);
    }

    fn remove(&mut self, e: &mut Entities, rules: &QueueRules, id: EntityId) {
        self.tree.remove(e, id.0);
        self.take_from_sums(e, rules, id);
    }

    /// Makes `id` the running entity. `really` says that it is switched to, not put back after an attribute changed.
    ///
    /// Models: set_next_entity(), v5.5–v7.2.
    pub fn set_next(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        id: EntityId,
        now: u64,
        really: SwitchIn,
    ) {
        assert!(self.curr.is_none(), "the previous entity is put back first");
        self.clear_buddies(id);
        if e[id].on_rq {
            self.remove(e, rules, id);
            self.protect(e, rules, id, really);
        }
        let entity = &mut e[id];
        entity.exec_start = now;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        self.curr = Some(id);
    }

    /// The running entity stops running; it goes back into the order unless it was dequeued.
    ///
    /// Models: put_prev_entity(), v5.5–v7.2.
    pub fn put_prev(&mut self, e: &mut Entities, rules: &QueueRules, now: u64) -> Option<Resched> {
        let id = self.curr?;
        let mut resched = None;
        if e[id].on_rq {
            resched = self.update_curr(e, rules, now);
            self.insert(e, rules, id);
        }
        self.curr = None;
        resched
    }

    /// Who should run: chosen among the queued, the running one included if it is still queued.
    ///
    /// From v6.12 on the answer may be a delayed entity; the caller finishes its dequeue and asks again.
    ///
    /// Models: pick_next_entity(), pick_eevdf(), v5.5–v7.2.
    #[must_use]
    pub fn pick(&mut self, e: &Entities, rules: &QueueRules) -> Option<EntityId> {
        if !rules.kernel.is_eevdf() {
            return self.pick_cfs(e, rules);
        }
        // v7.2 honours the buddy inside the pick proper.
        let honoured = match rules.kernel {
            Kernel::Eevdf202304 | Kernel::V6_6 => rules.has(Feature::NextBuddy),
            Kernel::V6_12 => rules.has(Feature::PickBuddy),
            Kernel::V5_5 | Kernel::V5_9 | Kernel::V5_15 | Kernel::V5_19 | Kernel::V6_1 | Kernel::V7_2 => {
                false
            }
        };
        if let Some(next) = self.next.filter(|&id| honoured && self.eligible(e, rules, id)) {
            return Some(next);
        }
        self.pick_eevdf(e, rules, Protect::Yes)
    }

    /// Changes the weight of an entity that is not queued: its lag is kept as service, not as virtual time.
    ///
    /// Models: reweight_entity(), v5.5–v7.2, for an entity off the queue.
    pub fn reweight_unqueued(e: &mut Entities, rules: &QueueRules, id: EntityId, load: LoadWeight) {
        assert!(!e[id].on_rq, "the entity is off the queue");
        if rules.kernel.is_eevdf() {
            e[id].vlag = eevdf::scale_lag(e[id].vlag, e[id].load, load);
        }
        // v6.12 leaves a relative deadline as it is; recordings of v7.2 show it scaled.
        if rules.kernel >= Kernel::V7_2 && e[id].rel_deadline {
            let relative = eevdf::scale_lag(e[id].deadline as i64, e[id].load, load);
            e[id].deadline = relative as u64;
        }
        e[id].load = load;
    }

    /// Changes the weight of a group's entity, wherever it is: its shares are computed anew.
    ///
    /// Models: reweight_entity(), reweight_eevdf(), rescale_entity(), v5.5–v7.2. Written from the specification: no recording
    /// shows these changes.
    pub fn reweight_group(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        id: EntityId,
        now: u64,
        load: LoadWeight,
    ) -> Option<Resched> {
        if !e[id].on_rq {
            Self::reweight_unqueued(e, rules, id, load);
            return None;
        }
        let resched = if self.curr == Some(id) { self.update_curr(e, rules, now) } else { None };
        let rescaled = (rules.kernel >= Kernel::V6_6).then(|| self.rescaled(e, rules, id, load));
        let in_tree = self.curr != Some(id);
        if in_tree {
            self.remove(e, rules, id);
        }
        self.account_dequeue(e, id);
        if let Some((vruntime, deadline, vprot)) = rescaled {
            (e[id].vruntime, e[id].deadline, e[id].vprot) = (vruntime, deadline, vprot);
        }
        e[id].load = load;
        self.account_enqueue(e, id);
        if in_tree {
            self.insert(e, rules, id);
        }
        self.update_min_vruntime(e, rules);
        resched
    }

    /// Changes a queued task's weight or policy: out, changed, in again, as the kernel does it.
    ///
    /// Models: set_user_nice(), __sched_setscheduler(), v5.5–v7.2.
    pub fn change(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        id: EntityId,
        now: u64,
        load: LoadWeight,
        policy: crate::TaskPolicy,
    ) {
        let queued = e[id].on_rq;
        let running = self.curr == Some(id);
        let flags = DequeueFlags { save: true, ..DequeueFlags::default() };
        if queued {
            self.dequeue(e, rules, id, now, flags);
        }
        if running {
            self.put_prev(e, rules, now);
        }
        Self::reweight_unqueued(e, rules, id, load);
        e[id].policy = policy;
        if queued {
            self.enqueue(e, rules, id, now, EnqueueFlags::default());
        }
        if running {
            self.set_next(e, rules, id, now, SwitchIn::PutBack);
        }
    }

    /// The running task gives way (sched_yield).
    ///
    /// Models: yield_task_fair(), v5.5–v7.2.
    pub fn yield_task(&mut self, e: &mut Entities, rules: &QueueRules, now: u64) -> Option<Resched> {
        if self.nr_queued == 1 {
            return None;
        }
        self.yield_running(e, rules, now)
    }

    /// [`CfsRq::yield_task`] of a task that others of its CPU wait for, be it in other queues.
    pub(crate) fn yield_running(
        &mut self,
        e: &mut Entities,
        rules: &QueueRules,
        now: u64,
    ) -> Option<Resched> {
        let id = self.curr_queued(e)?;
        self.clear_buddies(id);
        let resched = self.update_curr(e, rules, now);
        if rules.kernel.is_eevdf() {
            self.yield_eevdf(e, rules, id);
        } else {
            self.skip = Some(id);
        }
        resched
    }
}

/// Whether [`CfsRq::set_next`] follows a pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchIn {
    /// The entity is switched to.
    Picked,
    /// It was running all along; an attribute of it changed.
    PutBack,
}

/// Does a pick honour the running entity's protection and the next buddy?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protect {
    /// It does.
    Yes,
    /// Only eligibility and deadlines count (a wake-up with a shorter slice, v7.2).
    No,
}
