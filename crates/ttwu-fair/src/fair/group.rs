//! Task groups: one entity and one queue a CPU, and how a group's shares are spread over its CPUs.

use super::{Extra, Fair, NONE, Queue};
use crate::mutation::{Mutation, broken};
use crate::{
    DequeueFlags, EnqueueFlags, EntityId, Kernel, LoadWeight, NICE_0_LOAD, Resched, SchedAvg, SchedEntity,
    SwitchIn, TaskPolicy,
};

/// A task group of one [`Fair`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub(super) u32);

impl GroupId {
    /// The group of all tasks that are in no other.
    pub const ROOT: Self = Self(0);

    /// Its number: dense, 0 for the root, in the order of [`Fair::add_group`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    parent: u32,
    /// Scaled up.
    shares: u64,
    /// Sum of the contributions of its queues.
    pub(super) load_avg: i64,
    /// By CPU; `NONE` until a task of the group comes there.
    queues: Vec<u32>,
}

impl Group {
    pub(super) const fn root() -> Self {
        Self { parent: NONE, shares: NICE_0_LOAD, load_avg: 0, queues: Vec::new() }
    }
}

/// Least weight of a group's entity, scaled up.
const MIN_SHARES: u64 = 2;
/// Most shares, in the units of `cpu.shares`.
const MAX_SHARES: u64 = 1 << 18;

impl Fair {
    /// A new group below `parent` with `shares` in the units of `cpu.shares` (1024 by default, cut to 2..=2¹⁸ as the kernel
    /// does it). A session's autogroup is a group below the root with 1024.
    pub fn add_group(&mut self, parent: GroupId, shares: u64) -> GroupId {
        let id = u32::try_from(self.groups.len()).expect("fewer than 2^32 groups");
        let shares = shares.clamp(2, MAX_SHARES) << 10;
        let queues = vec![NONE; self.cpus.len()];
        self.groups.push(Group { parent: parent.0, shares, load_avg: 0, queues });
        GroupId(id)
    }

    /// The group's entity on `cpu`; `None` for the root, and where no task of the group ever was.
    #[must_use]
    pub fn group_entity(&self, group: GroupId, cpu: ttwu_model::CpuId) -> Option<EntityId> {
        let queue = *self.groups[group.index()].queues.get(cpu.index())?;
        (queue != NONE).then(|| EntityId(self.q[queue as usize].entity))
    }

    /// The queue of `group` on `cpu`, made if it is not there.
    pub(super) fn queue_for(&mut self, group: u32, cpu: usize) -> u32 {
        if group == 0 {
            return cpu as u32;
        }
        let known = self.groups[group as usize].queues[cpu];
        if known != NONE {
            return known;
        }
        let parent_group = self.groups[group as usize].parent;
        let above = self.queue_for(parent_group, cpu);
        let own = u32::try_from(self.q.len()).expect("fewer than 2^32 queues");
        let load = LoadWeight::of_sum(NICE_0_LOAD);
        let entity = self.e.add(SchedEntity::new(load, TaskPolicy::Normal, &self.rules));
        self.x.push(Extra::new(SchedAvg::default(), above, own, parent_group));
        let queue = Queue::new(self.rules.kernel, entity.0, cpu as u32);
        let depth = self.q[above as usize].depth + 1;
        self.q.push(Queue { group, depth, ..queue });
        self.groups[group as usize].queues[cpu] = own;
        own
    }

    /// The weight that a group's entity should have now, scaled up.
    ///
    /// Models: calc_group_shares(), v5.5–v7.2.
    fn group_weight(&self, own: usize) -> u64 {
        let queue = &self.q[own];
        let group = &self.groups[queue.group as usize];
        let load = crate::scale_down(queue.cfs.load_sum()).max(queue.avg.load_avg);
        let others = group.load_avg - queue.tg_contribution as i64;
        let others = if broken(Mutation::SharesOnEveryCpu) { 0 } else { others };
        let total = u64::try_from(others + load as i64).unwrap_or(0);
        let shares = group.shares * load;
        shares.checked_div(total).unwrap_or(shares).clamp(MIN_SHARES, group.shares)
    }

    /// The new weight of `id`, if it is a group's entity and its weight changes.
    ///
    /// Models: update_cfs_group(), v5.5–v7.2.
    pub(super) fn new_weight(&self, id: EntityId) -> Option<LoadWeight> {
        let own = self.x[id.index()].own;
        if own == NONE {
            return None;
        }
        // An emptied group keeps its weight, so that its lag is not scaled by chance (v6.12.y and later).
        if self.rules.kernel >= Kernel::V6_12 && self.q[own as usize].cfs.load_sum() == 0 {
            return None;
        }
        let weight = self.group_weight(own as usize);
        (weight != self.e[id].load.weight()).then(|| LoadWeight::of_sum(weight))
    }

    /// Brings a group's entity, queued or not, to the weight that it should have.
    pub(super) fn update_group(&mut self, id: EntityId, now: u64) -> Option<Resched> {
        let load = self.new_weight(id)?;
        let queue = self.queue_of(id);
        self.reweight_load(id, load);
        self.q[queue].cfs.reweight_group(&mut self.e, &self.rules, id, now, load)
    }

    /// Changes a group's shares (units of `cpu.shares`). `now` holds for every CPU.
    ///
    /// Models: sched_group_set_shares(), v5.5–v7.2.
    pub fn set_shares(&mut self, group: GroupId, shares: u64, now: u64) {
        assert!(group != GroupId::ROOT, "the root has no shares");
        self.groups[group.index()].shares = shares.clamp(2, MAX_SHARES) << 10;
        for cpu in 0..self.cpus.len() {
            let own = self.groups[group.index()].queues[cpu];
            let mut at = if own == NONE { NONE } else { self.q[own as usize].entity };
            while let Some(id) = super::some(at) {
                if self.age(id, now) {
                    self.update_tg(self.queue_of(id), now, false);
                }
                self.update_group(id, now);
                at = self.q[self.queue_of(id)].entity;
            }
        }
    }

    /// Moves a task to another group, on the CPU where it is.
    ///
    /// Models: sched_move_task(), task_change_group_fair(), v5.5–v7.2.
    pub fn set_group(&mut self, id: EntityId, group: GroupId, now: u64) {
        let i = id.index();
        if self.x[i].group == group.0 {
            return;
        }
        if self.x[i].queue == NONE {
            self.x[i].group = group.0;
            return;
        }
        let cpu = super::cpu_id(self.q[self.queue_of(id)].cpu);
        let (queued, running) = (self.e[id].on_rq, self.curr(cpu) == Some(id));
        if queued {
            self.dequeue_with(id, now, DequeueFlags { save: true, ..DequeueFlags::default() }, false);
        }
        if running {
            self.put_prev(cpu, now);
        }
        self.leave_queue(id, now);
        self.x[i].group = group.0;
        self.set_cpu(id, cpu);
        self.join_queue(id, now);
        if queued {
            self.enqueue_task(cpu, id, now, EnqueueFlags::default());
        }
        if running {
            self.set_next(cpu, id, now, SwitchIn::PutBack);
        }
    }

    /// Models: detach_task_cfs_rq(), v5.5–v7.2.
    fn leave_queue(&mut self, id: EntityId, now: u64) {
        let (i, queue) = (id.index(), self.queue_of(id));
        if !self.rules.kernel.is_eevdf() && !self.x[i].relative {
            let Self { rules, e, q, .. } = self;
            q[queue].cfs.place_woken(e, rules, id, now);
            let zero = q[queue].cfs.zero_vruntime();
            e[id].vruntime = e[id].vruntime.wrapping_sub(zero);
        }
        if self.x[i].avg.last_update_time != 0 {
            self.age(id, now);
            self.detach_load(id);
            self.update_tg(queue, now, true);
            self.propagate_up(id, now);
            self.x[i].avg.last_update_time = 0;
        }
    }

    /// Models: attach_task_cfs_rq(), v5.5–v7.2.
    fn join_queue(&mut self, id: EntityId, now: u64) {
        let (i, queue) = (id.index(), self.queue_of(id));
        if !self.x[i].fresh && !self.x[i].migrated {
            self.age(id, now);
            self.attach_load(id);
            self.update_tg(queue, now, true);
            self.propagate_up(id, now);
            self.list_leaves(queue);
        }
        if !self.rules.kernel.is_eevdf() && !self.x[i].relative {
            self.e[id].vruntime = self.e[id].vruntime.wrapping_add(self.q[queue].cfs.zero_vruntime());
        }
    }
}
