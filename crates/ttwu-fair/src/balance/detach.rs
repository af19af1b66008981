//! Which queue of the busiest group, and which of its tasks.

use super::groups::{Env, Group};
use super::imbalance::{Imbalance, Unit};
use super::{Balancer, IdleType, Preemptible};
use crate::mutation::{Mutation, broken};
use crate::{EntityId, Feature, Kernel};
use ttwu_model::{CpuId, SdFlags};

/// Tasks that one look at a queue may detach before they are attached; the kernel drops the lock in between.
pub(super) const BREAK: usize = 32;

/// What a walk over a queue found about affinity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pinned {
    /// Some task may not run on the destination.
    pub(super) some: bool,
    /// Some task may run on the destination.
    pub(super) movable: bool,
    /// Another CPU of the local group that some task may run on.
    pub(super) new_dst: Option<CpuId>,
}

/// A walk over the busiest queue.
pub(super) struct Walk {
    pub(super) src: CpuId,
    pub(super) imbalance: Imbalance,
    pub(super) pinned: Pinned,
    /// Tasks looked at.
    pub(super) seen: u64,
    /// Most tasks to look at.
    pub(super) seen_max: u64,
    taken: [Option<EntityId>; BREAK],
    count: usize,
}

impl Walk {
    pub(super) const fn new(src: CpuId, imbalance: Imbalance, seen_max: u64) -> Self {
        let pinned = Pinned { some: false, movable: false, new_dst: None };
        Self { src, imbalance, pinned, seen: 0, seen_max, taken: [None; BREAK], count: 0 }
    }
}

/// Halves `value` so many times.
fn shifted(value: u64, times: u32) -> u64 {
    value >> times.min(63)
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Balancer<'_> {
    /// The queue to pull from.
    ///
    /// Models: find_busiest_queue(), v5.5–v7.2.
    pub(super) fn busiest_queue(
        &mut self,
        env: &mut Env<'_>,
        group: &Group<'_>,
        imbalance: Imbalance,
    ) -> Option<CpuId> {
        let mut busiest = None;
        let (mut most_load, mut its_capacity) = (0u128, 1u128);
        let mut most = 0;
        for cpu in group.group.span().iter().filter(|&cpu| !env.excluded.contains(cpu)) {
            let stats = self.view.stats(cpu);
            if stats.h_nr == 0 {
                continue;
            }
            match imbalance.unit {
                Unit::Load => {
                    let too_large = stats.h_nr == 1 && signed(stats.load) > imbalance.amount;
                    if too_large && !self.capacity_is_reduced(env, cpu) {
                        continue;
                    }
                    // load / capacity as products, so that nothing is rounded.
                    let (load, capacity) = (u128::from(stats.load), u128::from(stats.capacity));
                    if load * its_capacity > most_load * capacity {
                        (most_load, its_capacity) = (load, capacity);
                        busiest = Some(cpu);
                    }
                }
                Unit::Util => {
                    if stats.h_nr > 1 && stats.util > most {
                        most = stats.util;
                        busiest = Some(cpu);
                    }
                }
                Unit::Task => {
                    let nr = u64::from(stats.h_nr);
                    if nr > most || (broken(Mutation::LastOfEquallyBusy) && nr == most) {
                        most = nr;
                        busiest = Some(cpu);
                    }
                }
            }
        }
        busiest
    }

    /// Do other classes and interrupts take more of `cpu` than the domain's imbalance percentage?
    ///
    /// Models: check_cpu_capacity(), v5.5–v7.2.
    pub(super) fn capacity_is_reduced(&mut self, env: &Env<'_>, cpu: CpuId) -> bool {
        let pct = u64::from(env.domain.imbalance_pct());
        self.view.stats(cpu).capacity * pct < self.machine.capacity_orig(cpu) * 100
    }

    /// Detaches tasks from the back of the queue until the imbalance is gone, and attaches them, the last one first. Returns
    /// how many moved; at most [`BREAK`], so it is to be called again while it returns as many.
    ///
    /// Models: detach_tasks(), attach_tasks(), v5.5–v7.2. DEVIATION: the walk ends at its limit even if all tasks seen were
    /// pinned (v6.1–v6.10 went on).
    pub(super) fn move_tasks(&mut self, env: &mut Env<'_>, walk: &mut Walk) -> usize {
        walk.count = 0;
        let one_only = env.idle == IdleType::NewlyIdle && self.state.preemptible == Preemptible::Yes;
        while walk.imbalance.amount > 0 && walk.count < BREAK {
            if env.is_idle() && self.view.nr_running(walk.src) <= 1 && !broken(Mutation::LastTaskPulled) {
                break;
            }
            let Some(task) = self.view.last_task(walk.src) else { break };
            walk.seen += 1;
            if walk.seen > walk.seen_max {
                break;
            }
            env.work.tasks_seen += 1;
            let cost =
                self.may_migrate(env, walk, task).then(|| self.cost(env, walk.imbalance, task)).flatten();
            let Some(cost) = cost else {
                self.view.to_front(walk.src, task);
                continue;
            };
            self.view.detach(walk.src, task);
            walk.taken[walk.count] = Some(task);
            walk.count += 1;
            walk.imbalance.amount -= cost;
            if one_only && !broken(Mutation::NewidleTakesMany) {
                break;
            }
        }
        let reversed = !broken(Mutation::FirstDetachedFirst);
        for n in 0..walk.count {
            let index = if reversed { walk.count - 1 - n } else { n };
            if let Some(task) = walk.taken[index] {
                self.view.attach(env.dst, task);
            }
        }
        env.work.tasks_moved += u32::try_from(walk.count).unwrap_or(u32::MAX);
        walk.count
    }

    /// How much of the imbalance the task makes up; `None` if it is too large.
    fn cost(&mut self, env: &Env<'_>, imbalance: Imbalance, task: EntityId) -> Option<i64> {
        let kernel = self.policy.kernel();
        let failed = self.state.domain(env.owner, env.level).nr_balance_failed;
        match imbalance.unit {
            Unit::Load => {
                let load = self.view.task_h_load(task).max(1);
                let too_large = if kernel <= Kernel::V5_9 {
                    signed(load / 2) > imbalance.amount && failed <= env.domain.cache_nice_tries()
                } else {
                    signed(shifted(load, failed)) > imbalance.amount
                };
                (!too_large).then(|| signed(load))
            }
            Unit::Util => {
                let util = self.view.task_util(task);
                let seen = if kernel >= Kernel::V6_12 { shifted(util, failed) } else { util };
                (signed(seen) <= imbalance.amount).then(|| signed(util))
            }
            Unit::Task => Some(1),
        }
    }

    /// May the task go to the destination now?
    ///
    /// Models: can_migrate_task(), v5.5–v7.2. DEVIATION: throttled groups and NUMA locality are not modelled.
    fn may_migrate(&mut self, env: &Env<'_>, walk: &mut Walk, task: EntityId) -> bool {
        let kernel = self.policy.kernel();
        let state = self.view.task(walk.src, task);
        // A blocked task that is still queued adds load, and nothing else that a move could even out.
        if state.delayed && walk.imbalance.unit != Unit::Load {
            return false;
        }
        if state.per_cpu_kthread && kernel >= Kernel::V5_15 {
            return false;
        }
        if !self.view.allows(task, env.dst) && !broken(Mutation::AffinityIgnored) {
            walk.pinned.some = true;
            if env.idle != IdleType::NewlyIdle && walk.pinned.new_dst.is_none() {
                walk.pinned.new_dst = self.other_destination(env, task);
            }
            return false;
        }
        walk.pinned.movable = true;
        if state.running && !broken(Mutation::RunningTaskPulled) {
            return false;
        }
        let failed = self.state.domain(env.owner, env.level).nr_balance_failed;
        failed > env.domain.cache_nice_tries() || !self.is_hot(env, walk.src, &state)
    }

    /// Another CPU of the local group on which the task may run.
    fn other_destination(&mut self, env: &Env<'_>, task: EntityId) -> Option<CpuId> {
        let local = self.machine.domains().groups_of(env.domain).next()?;
        local
            .balance_mask()
            .iter()
            .find(|&cpu| cpu != env.dst && !env.excluded.contains(cpu) && self.view.allows(task, cpu))
    }

    /// Has the task data in the caches of `src`?
    ///
    /// Models: task_hot(), v5.5–v7.2.
    fn is_hot(&mut self, env: &Env<'_>, src: CpuId, task: &super::TaskState) -> bool {
        if task.idle_policy || env.has(SdFlags::SHARE_CPUCAPACITY) {
            return false;
        }
        if self.policy.has(Feature::CacheHotBuddy) && task.buddy && self.view.nr_running(env.dst) > 0 {
            return true;
        }
        let since = self.view.clock_task_ns(src).wrapping_sub(task.exec_start).cast_signed();
        let limit = signed(self.machine.tunables().migration_cost_ns);
        if broken(Mutation::HotInclusive) { since <= limit } else { since < limit }
    }
}
