//! Tasks through the hierarchy: queued, dequeued, picked, switched, ticked, forked, renamed in weight.

use super::{Extra, Fair, NONE, TaskAttributes, some};
use crate::mutation::{Mutation, broken};
use crate::tick::{tick_accounted, until_deadline_ns};
use crate::{
    CfsRq, DequeueFlags, Dequeued, EnqueueFlags, EntityId, Feature, Kernel, LoadWeight, Resched, SwitchIn,
    TaskPolicy, TickReason, TickVerdict,
};
use ttwu_model::CpuId;

/// What a task adds to the counters of every queue above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    queued: u32,
    runnable: u32,
    idle: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Joins,
    Leaves,
}

impl Fair {
    /// Queues a task on `cpu`, with the groups above it as far as they are not queued. Returns what accounting asked for.
    ///
    /// A task that is still queued, delayed, is woken where it is. A new task belongs to `cpu` from now on; any other must
    /// have been moved there. `flags.migrated` is overwritten by what [`Fair::migrate`] knows.
    ///
    /// Models: enqueue_task_fair(), v5.5–v7.2.
    pub fn enqueue_task(
        &mut self,
        cpu: CpuId,
        id: EntityId,
        now: u64,
        flags: EnqueueFlags,
    ) -> Option<Resched> {
        if self.e[id].on_rq {
            return self.wake_delayed(id, now);
        }
        let fresh = std::mem::take(&mut self.x[id.index()].fresh);
        if fresh {
            self.set_cpu(id, cpu);
            self.init_load(id);
        }
        debug_assert_eq!(self.cpu_of(id), Some(cpu), "a task is moved before it is queued elsewhere");
        let migrated = std::mem::take(&mut self.x[id.index()].migrated);
        let delayed = self.e[id].sched_delayed;
        if !delayed {
            self.est_enqueue(id);
        }
        let counts = self.counts(id, delayed);
        let flags = EnqueueFlags { migrated, ..flags };
        let resched = self.enqueue_levels(id, now, flags, counts);
        self.x[id.index()].relative = false;
        if migrated && matches!(self.rules.kernel, Kernel::V6_1 | Kernel::Eevdf202304) {
            self.e[id].exec_start = 0;
        }
        resched
    }

    fn enqueue_levels(
        &mut self,
        id: EntityId,
        now: u64,
        mut flags: EnqueueFlags,
        counts: Counts,
    ) -> Option<Resched> {
        let mut resched = None;
        let mut slice = None;
        let mut at = id;
        loop {
            if self.e[at].on_rq {
                if self.e[at].sched_delayed {
                    resched = resched.max(self.requeue(at, now));
                }
                break;
            }
            if let Some(slice) = slice {
                (self.e[at].slice, self.e[at].custom_slice) = (slice, true);
            }
            resched = resched.max(self.enqueue_entity(at, now, flags));
            let queue = self.queue_of(at);
            self.q[queue].count(counts, Change::Joins);
            let Some(above) = self.parent(at) else { return resched };
            slice = self.slice_below(queue);
            flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            at = above;
        }
        resched.max(self.update_levels(at, now, slice, counts, Change::Joins))
    }

    /// One level: load tracking, the group's weight, then the queue.
    ///
    /// Models: enqueue_entity(), v5.5–v7.2.
    fn enqueue_entity(&mut self, id: EntityId, now: u64, flags: EnqueueFlags) -> Option<Resched> {
        let queue = self.queue_of(id);
        let changed = self.age(id, now);
        if !self.has_history(id) {
            self.attach_load(id);
            self.update_tg(queue, now, true);
        } else if changed {
            self.update_tg(queue, now, false);
        }
        self.update_runnable(id);
        let load = self.new_weight(id);
        if let Some(load) = load {
            self.reweight_load(id, load);
        }
        let preferred = self.curr_preferred(queue);
        let Self { rules, e, q, .. } = self;
        let resched = q[queue].cfs.enqueue_reweighted(e, rules, id, now, flags, load);
        self.after_accounting(queue, resched, preferred);
        if self.is_task(id) {
            self.list(id);
        }
        if self.q[queue].entity != NONE {
            self.list_leaves(queue);
        }
        resched
    }

    fn after_accounting(
        &mut self,
        queue: usize,
        resched: Option<Resched>,
        preferred: super::preempt::Preferred,
    ) {
        if resched.is_some()
            && let Some(curr) = self.q[queue].cfs.curr
        {
            self.forget_above(curr, preferred);
        }
    }

    /// The levels from `at` up, all queued: what happened below changes their averages, weights, slices and counters.
    fn update_levels(
        &mut self,
        at: EntityId,
        now: u64,
        mut slice: Option<u64>,
        counts: Counts,
        change: Change,
    ) -> Option<Resched> {
        let mut resched = None;
        let mut at = Some(at);
        while let Some(id) = at {
            let queue = self.queue_of(id);
            if self.age(id, now) {
                self.update_tg(queue, now, false);
            }
            self.update_runnable(id);
            resched = resched.max(self.update_group(id, now));
            if let Some(slice) = slice {
                self.q[queue].cfs.set_slice(&mut self.e, id, slice);
            }
            slice = self.slice_below(queue);
            self.q[queue].count(counts, change);
            at = self.parent(id);
        }
        resched
    }

    /// Models: se_update_runnable(), v5.7–v7.2.
    fn update_runnable(&mut self, id: EntityId) {
        let own = self.x[id.index()].own;
        if own != NONE && !broken(Mutation::GroupRunnableKept) {
            self.x[id.index()].runnable = self.q[own as usize].h_nr_runnable;
        }
    }

    /// The slice that the entity above `queue` takes over, or, where that entity stays delayed, the entity of its own level.
    /// From v6.12 on a group asks for as little time at once as the most impatient of what is queued in it.
    fn slice_below(&self, queue: usize) -> Option<u64> {
        if self.rules.kernel < Kernel::V6_12 {
            return None;
        }
        self.q[queue].cfs.min_slice(&self.e)
    }

    fn counts(&self, id: EntityId, delayed: bool) -> Counts {
        if !self.is_task(id) {
            return Counts { queued: 0, runnable: 0, idle: 0 };
        }
        let idle = u32::from(self.e[id].policy == TaskPolicy::Idle);
        Counts { queued: 1, runnable: u32::from(!delayed), idle }
    }

    fn wake_delayed(&mut self, id: EntityId, now: u64) -> Option<Resched> {
        assert!(self.e[id].sched_delayed, "a task is queued once");
        self.est_enqueue(id);
        self.requeue(id, now)
    }

    /// A delayed entity is wanted again.
    ///
    /// Models: requeue_delayed_entity(), clear_delayed(), v6.12–v7.2.
    fn requeue(&mut self, id: EntityId, now: u64) -> Option<Resched> {
        self.age(id, now);
        let queue = self.queue_of(id);
        let preferred = self.curr_preferred(queue);
        let Self { rules, e, q, .. } = self;
        let resched = q[queue].cfs.requeue_delayed(e, rules, id, now);
        self.after_accounting(queue, resched, preferred);
        if self.is_task(id) {
            self.change_runnable(id, Change::Joins);
        }
        resched
    }

    fn change_runnable(&mut self, id: EntityId, change: Change) {
        let counts = Counts { queued: 0, runnable: 1, idle: 0 };
        let mut at = Some(id);
        while let Some(id) = at {
            let queue = self.queue_of(id);
            self.q[queue].count(counts, change);
            at = self.parent(id);
        }
    }

    /// Takes a task out of its queue, with the groups above it that it leaves empty, or leaves it in, delayed.
    ///
    /// Models: dequeue_task_fair(), v5.5–v7.2.
    pub fn dequeue_task(&mut self, id: EntityId, now: u64, flags: DequeueFlags) -> Dequeued {
        self.dequeue_with(id, now, flags, false)
    }

    /// `detach`: its load leaves with it.
    pub(super) fn dequeue_with(
        &mut self,
        id: EntityId,
        now: u64,
        flags: DequeueFlags,
        detach: bool,
    ) -> Dequeued {
        let learns_first = self.rules.kernel >= Kernel::V6_12;
        if !self.e[id].sched_delayed {
            self.est_dequeue(id);
        }
        if flags.sleep && learns_first {
            self.est_update(id);
        }
        let out = self.dequeue_levels(id, now, flags, detach);
        if flags.sleep && !learns_first {
            self.est_update(id);
        }
        self.x[id.index()].relative = !self.rules.kernel.is_eevdf() && !flags.sleep;
        out
    }

    /// A delayed entity was picked: now it is dequeued for good.
    ///
    /// Models: pick_next_entity(), v6.12–v7.2.
    pub(super) fn finish_delayed(&mut self, id: EntityId, now: u64) {
        let flags = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
        self.dequeue_levels(id, now, flags, false);
    }

    /// Models: dequeue_entities(), v5.5–v7.2.
    fn dequeue_levels(&mut self, id: EntityId, now: u64, mut flags: DequeueFlags, detach: bool) -> Dequeued {
        let counts = self.counts(id, self.e[id].sched_delayed);
        let sleep = flags.sleep;
        let mut resched = None;
        let mut at = id;
        let slice = loop {
            let queue = self.queue_of(at);
            let out = self.dequeue_entity(at, now, flags, detach && at == id);
            resched = resched.max(out.resched);
            if out.delayed {
                if self.is_task(at) {
                    self.change_runnable(at, Change::Leaves);
                    return Dequeued { delayed: true, resched };
                }
                break self.slice_below(queue);
            }
            self.q[queue].count(counts, Change::Leaves);
            let Some(above) = self.parent(at) else { return Dequeued { delayed: false, resched } };
            at = above;
            if self.q[queue].cfs.load_sum() > 0 {
                if sleep && !broken(Mutation::GroupNotPreferred) {
                    // The rest of the group is preferred: its time was not used up.
                    self.set_next_buddy(above);
                }
                break self.slice_below(queue);
            }
            flags = DequeueFlags { sleep: true, special: false, delayed: false, ..flags };
        };
        resched = resched.max(self.update_levels(at, now, slice, counts, Change::Leaves));
        Dequeued { delayed: false, resched }
    }

    /// Models: dequeue_entity(), v5.5–v7.2.
    fn dequeue_entity(&mut self, id: EntityId, now: u64, flags: DequeueFlags, detach: bool) -> Dequeued {
        let queue = self.queue_of(id);
        let changed = self.age(id, now);
        let grouped = self.q[queue].entity != NONE;
        let preferred = self.curr_preferred(queue);
        if grouped {
            self.clear_buddies_up(id);
        }
        let Self { rules, e, q, .. } = self;
        let out = q[queue].cfs.dequeue(e, rules, id, now, flags);
        self.after_accounting(queue, out.resched, preferred);
        if out.delayed {
            return out;
        }
        if detach {
            self.detach_load(id);
            self.update_tg(queue, now, true);
        } else if changed {
            self.update_tg(queue, now, false);
        }
        self.update_runnable(id);
        self.update_group(id, now);
        if self.is_task(id) {
            self.unlist(id);
        }
        out
    }

    /// Who should run on `cpu` now; nothing is switched yet. Delayed entities in the way are dequeued for good.
    ///
    /// Models: pick_next_task_fair(), pick_task_fair(), v5.5–v7.2.
    #[must_use]
    pub fn pick_next(&mut self, cpu: CpuId, now: u64) -> Option<EntityId> {
        'again: loop {
            let mut queue = cpu.index();
            if self.q[queue].cfs.nr_queued() == 0 {
                return None;
            }
            loop {
                self.update_queue_curr(queue, now);
                let Self { rules, e, q, .. } = self;
                let id = q[queue].cfs.pick(e, rules)?;
                if e[id].sched_delayed {
                    self.finish_delayed(id, now);
                    continue 'again;
                }
                match self.x[id.index()].own {
                    NONE => return Some(id),
                    own => queue = own as usize,
                }
            }
        }
    }

    /// Accounts a queue's running entity, if it is still queued.
    fn update_queue_curr(&mut self, queue: usize, now: u64) -> Option<Resched> {
        let curr = self.q[queue].cfs.curr.filter(|&id| self.e[id].on_rq)?;
        let preferred = self.curr_preferred(queue);
        let Self { rules, e, q, .. } = self;
        let resched = q[queue].cfs.update_curr(e, rules, now);
        if resched.is_some() {
            self.forget_above(curr, preferred);
        }
        resched
    }

    /// Switches `cpu` from the fair task that runs there, if any, to `next`, if any, on the levels where they differ.
    ///
    /// Models: pick_next_task_fair(), put_prev_set_next_task(), v5.5–v7.2. DEVIATION: without a previous task levels are set
    /// from the task up, as v6.12 does it; earlier kernels begin at the root. Only the order of load updates of one instant differs.
    pub fn switch(&mut self, cpu: CpuId, next: Option<EntityId>, now: u64) {
        match (self.curr(cpu), next) {
            (None, None) => {}
            (Some(_), None) => self.put_prev(cpu, now),
            (None, Some(next)) => self.set_next(cpu, next, now, SwitchIn::Picked),
            (Some(prev), Some(next)) if prev == next => {
                if self.rules.kernel < Kernel::V6_12 {
                    self.rotate_to_front(next);
                }
            }
            (Some(prev), Some(next)) => {
                self.switch_levels(prev, next, now);
                self.cpus[cpu.index()].curr = next.0;
                self.rotate_to_front(next);
            }
        }
    }

    fn switch_levels(&mut self, prev: EntityId, next: EntityId, now: u64) {
        let (mut out, mut into) = (prev, next);
        while self.x[out.index()].queue != self.x[into.index()].queue {
            let (out_depth, in_depth) = (self.q[self.queue_of(out)].depth, self.q[self.queue_of(into)].depth);
            if in_depth <= out_depth {
                self.put_prev_entity(self.queue_of(out), now);
                out = self.parent(out).expect("unlike queues of a CPU have one above");
            }
            if in_depth >= out_depth {
                self.set_next_entity(into, now, SwitchIn::Picked);
                into = self.parent(into).expect("unlike queues of a CPU have one above");
            }
        }
        self.put_prev_entity(self.queue_of(out), now);
        self.set_next_entity(into, now, SwitchIn::Picked);
    }

    /// The task begins to run on `cpu`, where no fair task runs.
    ///
    /// Models: set_next_task_fair(), v5.5–v7.2.
    pub fn set_next(&mut self, cpu: CpuId, id: EntityId, now: u64, really: SwitchIn) {
        assert!(self.curr(cpu).is_none(), "the previous task is put back first");
        let mut at = Some(id);
        while let Some(entity) = at {
            self.set_next_entity(entity, now, really);
            at = self.parent(entity);
        }
        self.cpus[cpu.index()].curr = id.0;
        if self.e[id].on_rq {
            self.rotate_to_front(id);
        }
    }

    /// The running task of `cpu` stops running; what of it is queued goes back into the order.
    ///
    /// Models: put_prev_task_fair(), v5.5–v7.2.
    pub fn put_prev(&mut self, cpu: CpuId, now: u64) {
        let mut at = some(std::mem::replace(&mut self.cpus[cpu.index()].curr, NONE));
        while let Some(id) = at {
            self.put_prev_entity(self.queue_of(id), now);
            at = self.parent(id);
        }
    }

    /// Models: set_next_entity(), v5.5–v7.2.
    fn set_next_entity(&mut self, id: EntityId, now: u64, really: SwitchIn) {
        let queue = self.queue_of(id);
        if self.q[queue].entity != NONE {
            self.clear_buddies_up(id);
        }
        if self.e[id].on_rq && self.age(id, now) {
            self.update_tg(queue, now, false);
        }
        let Self { rules, e, q, .. } = self;
        q[queue].cfs.set_next(e, rules, id, now, really);
    }

    /// Models: put_prev_entity(), v5.5–v7.2.
    fn put_prev_entity(&mut self, queue: usize, now: u64) {
        let Some(curr) = self.q[queue].cfs.curr else { return };
        if self.e[curr].on_rq {
            self.age(curr, now);
        }
        let preferred = self.curr_preferred(queue);
        let Self { rules, e, q, .. } = self;
        let resched = q[queue].cfs.put_prev(e, rules, now);
        if resched.is_some() {
            self.forget_above(curr, preferred);
        }
    }

    /// A tick on `cpu`: every level from the running task up is accounted and asked whether its turn is over. `None`: no fair
    /// task runs. The reason is that of the lowest level that asks for a reschedule, else the task's.
    ///
    /// DEVIATION: as for [`crate::entity_tick`], the lazy flag is the caller's.
    ///
    /// Models: task_tick_fair(), v5.5–v7.2.
    pub fn tick(&mut self, cpu: CpuId, now: u64) -> Option<TickVerdict> {
        let mut at = self.curr(cpu);
        let mut verdict: Option<TickVerdict> = None;
        while let Some(id) = at {
            let level = self.tick_entity(id, now);
            verdict = Some(match verdict {
                None => level,
                Some(first) => TickVerdict {
                    resched: first.resched.max(level.resched),
                    reason: if first.resched.is_none() && level.resched.is_some() {
                        level.reason
                    } else {
                        first.reason
                    },
                },
            });
            at = self.parent(id);
        }
        verdict
    }

    fn tick_entity(&mut self, id: EntityId, now: u64) -> TickVerdict {
        let queue = self.queue_of(id);
        if !self.e[id].on_rq {
            return TickVerdict { resched: None, reason: TickReason::Alone };
        }
        let preferred = self.curr_preferred(queue);
        let accounted = self.q[queue].cfs.update_curr(&mut self.e, &self.rules, now);
        if self.age(id, now) {
            self.update_tg(queue, now, false);
        }
        self.update_group(id, now);
        let asks = !self.rules.kernel.is_eevdf() && self.q[queue].cfs.nr_queued() > 1;
        let ideal = if asks { self.slice_ns(id) } else { 0 };
        let Self { rules, e, q, .. } = self;
        let verdict = tick_accounted(&mut q[queue].cfs, e, rules, accounted, ideal);
        if verdict.resched.is_some() {
            self.forget_above(id, preferred);
        }
        verdict
    }

    /// When the slice timer is to expire, ns from now; `None`: it is not started.
    ///
    /// Inside groups it is the deadline of the task's own level that counts.
    ///
    /// Models: hrtick_start_fair(), v7.2.
    #[must_use]
    pub fn hrtick(&self, cpu: CpuId) -> Option<u64> {
        let id = self.curr(cpu)?;
        if self.q[cpu.index()].h_nr_queued <= 1 {
            return None;
        }
        until_deadline_ns(&self.q[self.queue_of(id)].cfs, &self.e, &self.rules)
    }

    /// Accounts the running task of `cpu`; its slice may end by that.
    ///
    /// Models: update_curr_fair(), v5.5–v7.2.
    pub fn update_curr(&mut self, cpu: CpuId, now: u64) -> Option<Resched> {
        let id = self.curr(cpu)?;
        self.update_queue_curr(self.queue_of(id), now)
    }

    /// CFS: the wall time that `id` may run before others get their turn, through its groups, ns.
    ///
    /// Models: sched_slice(), v5.5–v6.1.
    #[must_use]
    pub fn slice_ns(&self, id: EntityId) -> u64 {
        let queue = &self.q[self.queue_of(id)];
        let nr = if self.rules.has(Feature::AltPeriod) {
            self.q[queue.cpu as usize].h_nr_queued
        } else {
            queue.cfs.nr_queued()
        };
        let mut slice = CfsRq::period_ns(&self.rules, nr + u32::from(!self.e[id].on_rq));
        let mut at = Some(id);
        while let Some(level) = at {
            slice = self.q[self.queue_of(level)].cfs.share(&self.e, level, slice);
            at = self.parent(level);
        }
        queue.cfs.slice_floor(&self.e, &self.rules, id, slice)
    }

    /// The running task of `cpu` gives way. Returns what accounting asked for; the caller reschedules.
    ///
    /// Models: yield_task_fair(), v5.5–v7.2.
    pub fn yield_task(&mut self, cpu: CpuId, now: u64) -> Option<Resched> {
        let id = self.curr(cpu).filter(|&id| self.e[id].on_rq)?;
        if self.q[cpu.index()].h_nr_queued == 1 {
            return None;
        }
        self.clear_buddies_up(id);
        let queue = self.queue_of(id);
        let Self { rules, e, q, .. } = self;
        if rules.kernel.is_eevdf() {
            return q[queue].cfs.yield_running(e, rules, now);
        }
        q[queue].cfs.update_curr(e, rules, now);
        self.set_skip_buddy(id);
        None
    }

    /// A task is forked on `cpu`, by the task that runs there: CFS places it relative to its parent's queue, earlier EEVDF
    /// accounts the parent. `now` is that CPU's clock. Then placement chooses a CPU and the child is queued there (`initial`).
    ///
    /// Models: task_fork_fair(), v5.5–v7.2.
    pub fn fork(&mut self, cpu: CpuId, child: EntityId, now: u64) {
        assert!(self.x[child.index()].fresh, "a task is forked once");
        self.set_cpu(child, cpu);
        let queue = self.queue_of(child);
        if !self.rules.kernel.is_eevdf() {
            let slice = self.slice_ns(child);
            let Self { rules, e, q, .. } = self;
            q[queue].cfs.fork_cfs_with(e, rules, child, now, slice);
        } else if self.rules.kernel < Kernel::V6_12 {
            self.update_queue_curr(queue, now);
        }
    }

    /// Changes a task's nice value, policy or slice: out, changed, in again, as the kernel does it.
    ///
    /// Models: set_user_nice(), __sched_setscheduler(), reweight_task(), v5.5–v7.2.
    pub fn set_attributes(&mut self, id: EntityId, now: u64, to: TaskAttributes) {
        let cpu = self.cpu_of(id);
        let queued = self.e[id].on_rq;
        let running = cpu.filter(|&cpu| self.curr(cpu) == Some(id));
        if queued {
            self.dequeue_with(id, now, DequeueFlags { save: true, ..DequeueFlags::default() }, false);
        }
        if let Some(cpu) = running {
            self.put_prev(cpu, now);
        }
        self.reweight_task(id, to.load());
        self.e[id].policy = to.policy;
        self.set_slice(id, to.slice_ns);
        if let (true, Some(cpu)) = (queued, cpu) {
            self.enqueue_task(cpu, id, now, EnqueueFlags::default());
        }
        if let Some(cpu) = running {
            self.set_next(cpu, id, now, SwitchIn::PutBack);
        }
    }

    fn reweight_task(&mut self, id: EntityId, load: LoadWeight) {
        let Extra { fresh, queue, .. } = self.x[id.index()];
        if queue != NONE && !fresh {
            self.reweight_load(id, load);
        } else {
            self.x[id.index()].avg.load_avg = load.scaled_down();
        }
        CfsRq::reweight_unqueued(&mut self.e, &self.rules, id, load);
    }
}

impl super::Queue {
    fn count(&mut self, by: Counts, change: Change) {
        match change {
            Change::Joins => {
                self.h_nr_queued += by.queued;
                self.h_nr_runnable += by.runnable;
                self.h_nr_idle += by.idle;
            }
            Change::Leaves => {
                self.h_nr_queued -= by.queued;
                self.h_nr_runnable -= by.runnable;
                self.h_nr_idle -= by.idle;
            }
        }
    }
}
