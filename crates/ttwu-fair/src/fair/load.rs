//! Load tracking through the hierarchy: attach, detach, removal, propagation to groups, h_load, util_est.

use super::{Extra, Fair, NONE, Queue, some};
use crate::mutation::{Mutation, broken};
use crate::{Contribution, EntityId, Feature, Kernel, LoadWeight, SchedAvg, ZeroLoad, scale_down};
use ttwu_model::CpuId;

/// Averages of tasks that were moved away while they slept, not yet taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Removed {
    pending: bool,
    load: u64,
    runnable: u64,
    util: u64,
}

/// A task's utilisation estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct UtilEst {
    ewma: u64,
    /// v6.6 and earlier: utilisation at the last sleep.
    enqueued: u64,
    /// Utilisation has not been updated since the estimate was.
    unchanged: bool,
}

/// Least divider of averages.
const PELT_MIN_DIVIDER: u64 = crate::LOAD_AVG_MAX - 1024;
/// Differences of utilisation below this do not count.
const UTIL_EST_MARGIN: u64 = 1024 / 100;
const CAPACITY: u64 = 1024;
/// How often a queue tells its group's total (v6.6 and later), ns.
const TG_UPDATE_NS: u64 = 1_000_000;

fn add_signed(to: &mut u64, delta: i64) {
    *to = to.checked_add_signed(delta).unwrap_or(0);
}

/// An entity's weight for [`SchedAvg::update`]. A group's may happen to be the number that stands for a queue there.
const fn average_weight(load: LoadWeight) -> u64 {
    // Both are 2 in the table's units.
    if load.weight() == SchedAvg::QUEUE { 2 * SchedAvg::QUEUE } else { load.weight() }
}

impl Fair {
    const fn zero_load(&self) -> ZeroLoad {
        match self.rules.kernel {
            Kernel::V5_5 => ZeroLoad::Accumulates,
            Kernel::V5_9
            | Kernel::V5_15
            | Kernel::V5_19
            | Kernel::V6_1
            | Kernel::Eevdf202304
            | Kernel::V6_6
            | Kernel::V6_12
            | Kernel::V7_2 => ZeroLoad::Skips,
        }
    }

    /// Accounts `id` and its queue up to `now` and passes on what changed below. Did the queue's averages change?
    ///
    /// Models: update_load_avg() without attach and detach, v5.5–v7.2.
    pub(super) fn age(&mut self, id: EntityId, now: u64) -> bool {
        self.age_entity(id, now);
        let mut changed = self.age_queue(self.queue_of(id), now);
        if !self.is_task(id) {
            if !self.has_history(id) {
                // The kernel does this when the group is made; here its queue is made when it is first needed.
                self.attach_load(id);
            }
            changed |= self.propagate(id);
        }
        changed
    }

    fn age_entity(&mut self, id: EntityId, now: u64) {
        let zero = self.zero_load();
        let entity = &self.e[id];
        let extra = &mut self.x[id.index()];
        if extra.avg.last_update_time == 0 {
            return;
        }
        let what = Contribution {
            load: u64::from(entity.on_rq),
            runnable: match (entity.sched_delayed, extra.own) {
                (true, _) => 0,
                (false, NONE) => u64::from(entity.on_rq),
                (false, _) => u64::from(extra.runnable),
            },
            running: entity.on_rq && self.q[extra.queue as usize].cfs.curr == Some(id),
        };
        if extra.avg.update(now, what, average_weight(entity.load), zero) {
            extra.est.unchanged = false;
        }
    }

    /// A sleeping entity's averages at `now`.
    pub(super) fn age_blocked(&mut self, id: EntityId, now: u64) {
        let (zero, load) = (self.zero_load(), self.e[id].load);
        let extra = &mut self.x[id.index()];
        if extra.avg.update(now, Contribution::NONE, average_weight(load), zero) {
            extra.est.unchanged = false;
        }
    }

    /// Models: update_cfs_rq_load_avg(), v5.5–v7.2.
    fn age_queue(&mut self, queue: usize, now: u64) -> bool {
        let (zero, kernel) = (self.zero_load(), self.rules.kernel);
        let queue = &mut self.q[queue];
        let taken = queue.removed.pending;
        if taken {
            queue.take_removed(kernel);
        }
        let what = Contribution {
            load: scale_down(queue.cfs.load_sum()),
            runnable: u64::from(queue.h_nr_runnable),
            running: queue.cfs.curr.is_some(),
        };
        queue.avg.update(now, what, SchedAvg::QUEUE, zero) | taken
    }

    /// Tells the group how much this queue's load has changed. `forced` is what v5.5 and v5.9 do at attach and detach.
    ///
    /// Models: update_tg_load_avg(), v5.5–v7.2.
    pub(super) fn update_tg(&mut self, queue: usize, now: u64, forced: bool) {
        let kernel = self.rules.kernel;
        let queue = &mut self.q[queue];
        if queue.entity == NONE {
            return;
        }
        if kernel >= Kernel::V6_6 && now.wrapping_sub(queue.tg_updated) < TG_UPDATE_NS {
            return;
        }
        let delta = queue.avg.load_avg as i64 - queue.tg_contribution as i64;
        let forced = forced && kernel <= Kernel::V5_9;
        if forced || delta.unsigned_abs() > queue.tg_contribution / 64 {
            self.groups[queue.group as usize].load_avg += delta;
            queue.tg_contribution = queue.avg.load_avg;
            queue.tg_updated = now;
        }
    }

    /// Puts an entity's averages into its queue's, with the queue's time.
    ///
    /// Models: attach_entity_load_avg(), v5.5–v7.2.
    pub(super) fn attach_load(&mut self, id: EntityId) {
        let weight = self.e[id].load.scaled_down();
        let queue = self.queue_of(id);
        let (queue, extra) = (&mut self.q[queue], &mut self.x[id.index()]);
        let divider = queue.avg.divider();
        let avg = &mut extra.avg;
        avg.last_update_time = queue.avg.last_update_time;
        avg.period_contrib = queue.avg.period_contrib;
        avg.util_sum = avg.util_avg * divider;
        avg.runnable_sum = avg.runnable_avg * divider;
        let load_sum = avg.load_avg * divider;
        avg.load_sum = if weight < load_sum { load_sum / weight } else { 1 };
        queue.avg.load_avg += avg.load_avg;
        queue.avg.load_sum += weight * avg.load_sum;
        queue.avg.util_avg += avg.util_avg;
        queue.avg.util_sum += avg.util_sum;
        queue.avg.runnable_avg += avg.runnable_avg;
        queue.avg.runnable_sum += avg.runnable_sum;
        queue.add_propagated(avg.load_sum as i64);
    }

    /// Models: detach_entity_load_avg(), v5.5–v7.2.
    pub(super) fn detach_load(&mut self, id: EntityId) {
        let (kernel, weight) = (self.rules.kernel, self.e[id].load.scaled_down());
        let queue = self.queue_of(id);
        let (queue, avg) = (&mut self.q[queue], &self.x[id.index()].avg);
        queue.sub_load(kernel, avg.load_avg, weight * avg.load_sum);
        queue.sub_util_and_runnable(
            kernel,
            (avg.util_avg, avg.util_sum),
            (avg.runnable_avg, avg.runnable_sum),
        );
        queue.add_propagated((avg.load_sum as i64).wrapping_neg());
    }

    /// A task that moves while it sleeps leaves its averages to be removed.
    ///
    /// Models: remove_entity_load_avg(), v5.5–v7.2.
    pub(super) fn remove_load(&mut self, id: EntityId) {
        let queue = self.queue_of(id);
        self.age_blocked(id, self.q[queue].avg.last_update_time);
        let (removed, avg) = (&mut self.q[queue].removed, &self.x[id.index()].avg);
        removed.pending = !broken(Mutation::RemovedLoadKept);
        removed.load += avg.load_avg;
        removed.runnable += avg.runnable_avg;
        removed.util += avg.util_avg;
    }

    /// The averages' side of a weight change; the order's side is [`crate::CfsRq::reweight_group`].
    ///
    /// Models: reweight_entity(), v5.5–v7.2.
    pub(super) fn reweight_load(&mut self, id: EntityId, load: LoadWeight) {
        let (kernel, old, new) = (self.rules.kernel, self.e[id].load.scaled_down(), load.scaled_down());
        let queue = self.queue_of(id);
        let (queue, avg) = (&mut self.q[queue], &mut self.x[id.index()].avg);
        if avg.last_update_time == 0 {
            return;
        }
        queue.sub_load(kernel, avg.load_avg, old * avg.load_sum);
        avg.load_avg = new * avg.load_sum / avg.divider();
        queue.avg.load_avg += avg.load_avg;
        queue.avg.load_sum += new * avg.load_sum;
    }

    /// Hands a group queue's attached and detached load to its entity and the queue above. Was there any?
    ///
    /// Models: propagate_entity_load_avg(), v5.5–v7.2.
    fn propagate(&mut self, id: EntityId) -> bool {
        let (above, own) = (self.queue_of(id), self.x[id.index()].own as usize);
        if !std::mem::take(&mut self.q[own].propagate) || broken(Mutation::LoadNotPropagated) {
            return false;
        }
        let runnable_sum = std::mem::take(&mut self.q[own].prop_runnable_sum);
        self.q[above].add_propagated(runnable_sum);
        let weight = self.e[id].load.scaled_down();
        let below = self.q[own].avg;
        let below_weight = scale_down(self.q[own].cfs.load_sum());
        let kernel = self.rules.kernel;
        let (avg, queue) = (&mut self.x[id.index()].avg, &mut self.q[above].avg);
        let divider = queue.divider();
        Self::copy_up(
            kernel,
            divider,
            below.util_avg,
            (&mut avg.util_avg, &mut avg.util_sum),
            (&mut queue.util_avg, &mut queue.util_sum),
        );
        Self::copy_up(
            kernel,
            divider,
            below.runnable_avg,
            (&mut avg.runnable_avg, &mut avg.runnable_sum),
            (&mut queue.runnable_avg, &mut queue.runnable_sum),
        );
        if runnable_sum == 0 {
            return true;
        }
        let running_sum = avg.util_sum >> 10;
        let sum = if runnable_sum > 0 {
            (avg.load_sum + runnable_sum as u64).min(divider)
        } else {
            let mean = below.load_sum.checked_div(below_weight).unwrap_or(0);
            avg.load_sum.min(mean)
        };
        let sum = sum.max(running_sum);
        let (old_load, old_sum) = (avg.load_avg, avg.load_sum);
        let load_sum = weight * sum;
        avg.load_sum = sum;
        avg.load_avg = load_sum / divider;
        add_signed(&mut queue.load_avg, avg.load_avg as i64 - old_load as i64);
        add_signed(&mut queue.load_sum, load_sum as i64 - (weight * old_sum) as i64);
        if kernel > Kernel::V5_15 {
            queue.load_sum = queue.load_sum.max(queue.load_avg * PELT_MIN_DIVIDER);
        }
        true
    }

    /// Models: update_tg_cfs_util(), update_tg_cfs_runnable(), v5.7–v7.2.
    fn copy_up(
        kernel: Kernel,
        divider: u64,
        below: u64,
        (avg, sum): (&mut u64, &mut u64),
        (queue_avg, queue_sum): (&mut u64, &mut u64),
    ) {
        let delta = below as i64 - *avg as i64;
        if delta == 0 {
            return;
        }
        let old_sum = *sum;
        *avg = below;
        *sum = below * divider;
        add_signed(queue_avg, delta);
        add_signed(queue_sum, *sum as i64 - old_sum as i64);
        if kernel > Kernel::V5_15 {
            *queue_sum = (*queue_sum).max(*queue_avg * PELT_MIN_DIVIDER);
        } else {
            *queue_sum = *queue_avg * divider;
        }
    }

    /// Models: propagate_entity_cfs_rq(), v5.5–v7.2.
    pub(super) fn propagate_up(&mut self, id: EntityId, now: u64) {
        let mut at = self.parent(id);
        while let Some(entity) = at {
            if self.age(entity, now) {
                self.update_tg(self.queue_of(entity), now, false);
            }
            at = self.parent(entity);
        }
    }

    /// Lets the load of what sleeps decay, on all queues of `cpu`.
    ///
    /// Models: update_blocked_averages(), __update_blocked_fair(), v5.5–v7.2.
    pub fn update_blocked_averages(&mut self, cpu: CpuId, now: u64) {
        let mut leaves = std::mem::take(&mut self.cpus[cpu.index()].leaves);
        leaves.retain(|&own| {
            let own = own as usize;
            if self.age_queue(own, now) {
                self.update_tg(own, now, false);
            }
            let entity = EntityId(self.q[own].entity);
            let avg = &self.x[entity.index()].avg;
            if avg.load_avg > 0 || avg.util_avg > 0 || self.q[own].propagate {
                let changed = self.age(entity, now);
                if changed {
                    self.update_tg(self.queue_of(entity), now, false);
                }
            }
            let queue = &mut self.q[own];
            let avg = &queue.avg;
            queue.on_leaf_list = queue.cfs.nr_queued() > 0
                || avg.load_sum > 0
                || avg.util_sum > 0
                || avg.runnable_sum > 0
                || queue.removed.pending;
            queue.on_leaf_list
        });
        self.cpus[cpu.index()].leaves = leaves;
        self.age_queue(cpu.index(), now);
    }

    /// Puts a group's queue and those above it on the list that [`Fair::update_blocked_averages`] walks.
    pub(super) fn list_leaves(&mut self, mut queue: usize) {
        while self.q[queue].entity != NONE && !self.q[queue].on_leaf_list {
            self.q[queue].on_leaf_list = true;
            let depth = self.q[queue].depth;
            let cpu = self.q[queue].cpu as usize;
            let at = self.cpus[cpu].leaves.partition_point(|&other| self.q[other as usize].depth >= depth);
            self.cpus[cpu].leaves.insert(at, queue as u32);
            queue = self.queue_of(EntityId(self.q[queue].entity));
        }
    }

    /// A sleeping task's averages as of its queue's last update: what exec's placement reads.
    ///
    /// Models: sync_entity_load_avg(), v5.5–v7.2.
    pub fn sync_load(&mut self, id: EntityId) {
        if self.x[id.index()].avg.last_update_time != 0 {
            self.age_blocked(id, self.q[self.queue_of(id)].avg.last_update_time);
        }
    }

    /// Utilisation and runnable time of a new task, guessed from the queue that it comes to.
    ///
    /// Models: post_init_entity_util_avg(), v5.5–v7.2.
    pub(super) fn init_load(&mut self, id: EntityId) {
        let queue = &self.q[self.queue_of(id)].avg;
        let load = self.e[id].load;
        let weight = if self.rules.kernel >= Kernel::V6_12 { load.scaled_down() } else { load.weight() };
        let cap = CAPACITY.saturating_sub(queue.util_avg) / 2;
        let util = if cap == 0 || queue.util_avg == 0 {
            cap
        } else {
            (queue.util_avg * weight / (queue.load_avg + 1)).min(cap)
        };
        let avg = &mut self.x[id.index()].avg;
        (avg.load_avg, avg.util_avg, avg.runnable_avg) = (load.scaled_down(), util, util);
    }
}

/// What others read.
impl Fair {
    /// `cpu_load()`: the root queue's load average, as of its last update.
    #[must_use]
    pub fn load_avg(&self, cpu: CpuId) -> u64 {
        self.q[cpu.index()].avg.load_avg
    }

    /// `cpu_runnable()`: the root queue's runnable average, 1024 a task (v5.7 and later).
    #[must_use]
    pub fn runnable_avg(&self, cpu: CpuId) -> u64 {
        self.q[cpu.index()].avg.runnable_avg
    }

    /// The root queue's utilisation, 1024 for a CPU that is always busy.
    #[must_use]
    pub fn util_avg(&self, cpu: CpuId) -> u64 {
        self.q[cpu.index()].avg.util_avg
    }

    /// The sum of the estimates of the tasks queued.
    #[must_use]
    pub fn util_est(&self, cpu: CpuId) -> u64 {
        self.cpus[cpu.index()].util_est
    }

    /// The CPU's utilisation, with the estimate where that is on, at most 1024.
    ///
    /// Models: cpu_util_cfs(), v5.5–v7.2.
    #[must_use]
    pub fn cpu_util(&self, cpu: CpuId) -> u64 {
        let est = if self.rules.has(Feature::UtilEst) { self.util_est(cpu) } else { 0 };
        self.util_avg(cpu).max(est).min(CAPACITY)
    }

    /// The averages of a root queue.
    #[must_use]
    pub fn root_avg(&self, cpu: CpuId) -> &SchedAvg {
        &self.q[cpu.index()].avg
    }

    /// The averages of a task, or of a group's entity.
    #[must_use]
    pub fn entity_avg(&self, id: EntityId) -> &SchedAvg {
        &self.x[id.index()].avg
    }

    /// Does the task's load count on a CPU (`last_update_time` is not 0)?
    #[must_use]
    pub fn has_history(&self, id: EntityId) -> bool {
        self.x[id.index()].avg.last_update_time != 0
    }

    /// A task's utilisation, 0 … 1024.
    #[must_use]
    pub fn task_util(&self, id: EntityId) -> u64 {
        self.x[id.index()].avg.util_avg
    }

    /// A task's utilisation estimate.
    ///
    /// Models: _task_util_est(), v5.5–v7.2.
    #[must_use]
    pub fn task_util_est(&self, id: EntityId) -> u64 {
        let est = &self.x[id.index()].est;
        if self.rules.kernel >= Kernel::V6_12 { est.ewma } else { est.ewma.max(est.enqueued) }
    }

    /// A task's part in its CPU's load, through its groups. `now` is the jiffy clock, ns: shares of groups are kept for a jiffy.
    ///
    /// Models: task_h_load(), update_cfs_rq_h_load(), v5.5–v7.2.
    pub fn task_h_load(&mut self, id: EntityId, now: u64) -> u64 {
        let queue = self.queue_of(id);
        let h_load = self.queue_h_load(queue, now / self.rules.tick_ns() + 1);
        self.x[id.index()].avg.load_avg * h_load / (self.q[queue].avg.load_avg + 1)
    }

    pub(super) fn queue_h_load(&mut self, queue: usize, stamp: u64) -> u64 {
        if self.q[queue].h_load_stamp == stamp {
            return self.q[queue].h_load;
        }
        let h_load = match some(self.q[queue].entity) {
            None => self.q[queue].avg.load_avg,
            Some(entity) => {
                let above = self.queue_of(entity);
                let above_h_load = self.queue_h_load(above, stamp);
                above_h_load * self.x[entity.index()].avg.load_avg / (self.q[above].avg.load_avg + 1)
            }
        };
        (self.q[queue].h_load, self.q[queue].h_load_stamp) = (h_load, stamp);
        h_load
    }
}

/// util_est.
impl Fair {
    /// Models: util_est_enqueue(), v5.5–v7.2.
    pub(super) fn est_enqueue(&mut self, id: EntityId) {
        if self.rules.has(Feature::UtilEst) {
            let cpu = self.q[self.queue_of(id)].cpu as usize;
            self.cpus[cpu].util_est += self.task_util_est(id);
        }
    }

    /// Models: util_est_dequeue(), v5.5–v7.2.
    pub(super) fn est_dequeue(&mut self, id: EntityId) {
        if self.rules.has(Feature::UtilEst) {
            let cpu = self.q[self.queue_of(id)].cpu as usize;
            self.cpus[cpu].util_est = self.cpus[cpu].util_est.saturating_sub(self.task_util_est(id));
        }
    }

    /// A task goes to sleep: its estimate learns.
    ///
    /// Models: util_est_update(), v5.5–v7.2.
    pub(super) fn est_update(&mut self, id: EntityId) {
        let Self { rules, x, .. } = self;
        if !rules.has(Feature::UtilEst) {
            return;
        }
        let Extra { est, avg, .. } = &mut x[id.index()];
        if est.unchanged {
            return;
        }
        let updated = if rules.kernel >= Kernel::V6_12 {
            est.learn(avg, rules.kernel < Kernel::V7_2)
        } else {
            let ignores_small = rules.kernel < Kernel::V5_15;
            est.learn_both(avg.util_avg, rules.has(Feature::UtilEstFastup), ignores_small)
        };
        est.unchanged |= updated;
    }
}

impl UtilEst {
    /// One value (v6.8 and later). Was it brought up to date, if only by leaving it?
    fn learn(&mut self, avg: &SchedAvg, bounded: bool) -> bool {
        let util = avg.util_avg;
        if self.ewma <= util {
            self.ewma = util;
            return true;
        }
        let down = self.ewma - util;
        if down < UTIL_EST_MARGIN {
            return true;
        }
        if bounded && util > CAPACITY {
            return false;
        }
        // A task that had to wait was not able to show what it uses.
        if util + UTIL_EST_MARGIN >= avg.runnable_avg {
            self.ewma = (4 * self.ewma - down) >> 2;
        }
        true
    }

    /// Two values (up to v6.7).
    fn learn_both(&mut self, util: u64, fast_up: bool, ignores_small: bool) -> bool {
        let old_enqueued = self.enqueued;
        let difference = util as i64 - self.ewma as i64;
        if fast_up && difference > 0 {
            (self.ewma, self.enqueued) = (util, util);
            return true;
        }
        if difference.unsigned_abs() < UTIL_EST_MARGIN {
            if ignores_small || util.abs_diff(old_enqueued) < UTIL_EST_MARGIN {
                return false;
            }
            self.enqueued = util;
            return true;
        }
        if util > CAPACITY {
            return false;
        }
        self.ewma = ((4 * self.ewma as i64 + difference) >> 2) as u64;
        self.enqueued = util;
        true
    }
}

impl Queue {
    fn take_removed(&mut self, kernel: Kernel) {
        let Removed { load, runnable, util, .. } = std::mem::take(&mut self.removed);
        let divider = self.avg.divider();
        self.sub_load(kernel, load, load * divider);
        self.sub_util_and_runnable(kernel, (util, util * divider), (runnable, runnable * divider));
        // Shifted as a signed number.
        self.add_propagated(((runnable * divider) as i64).wrapping_neg() >> 10);
    }

    fn sub_load(&mut self, kernel: Kernel, load_avg: u64, load_sum: u64) {
        let avg = &mut self.avg;
        avg.load_avg = avg.load_avg.saturating_sub(load_avg);
        avg.load_sum = avg.load_sum.saturating_sub(load_sum);
        if kernel > Kernel::V5_15 {
            avg.load_sum = avg.load_sum.max(avg.load_avg * PELT_MIN_DIVIDER);
        }
    }

    fn sub_util_and_runnable(&mut self, kernel: Kernel, util: (u64, u64), runnable: (u64, u64)) {
        let avg = &mut self.avg;
        let divider = avg.divider();
        for (mean, sum, (minus_mean, minus_sum)) in [
            (&mut avg.util_avg, &mut avg.util_sum, util),
            (&mut avg.runnable_avg, &mut avg.runnable_sum, runnable),
        ] {
            *mean = mean.saturating_sub(minus_mean);
            *sum = sum.saturating_sub(minus_sum);
            *sum =
                if kernel > Kernel::V5_15 { (*sum).max(*mean * PELT_MIN_DIVIDER) } else { *mean * divider };
        }
    }

    fn add_propagated(&mut self, runnable_sum: i64) {
        self.propagate = true;
        self.prop_runnable_sum = self.prop_runnable_sum.wrapping_add(runnable_sum);
    }
}

#[cfg(test)]
impl UtilEst {
    pub(super) fn of(ewma: u64) -> Self {
        Self { ewma, enqueued: ewma, unchanged: false }
    }

    pub(super) fn ewma(self) -> u64 {
        self.ewma
    }
}
