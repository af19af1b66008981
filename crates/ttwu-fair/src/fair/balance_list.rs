//! The balancer's list of a CPU's queued tasks, and moving queued tasks between CPUs.
//!
//! A task goes to the front when it is queued and when it is picked; the balancer walks from the back, so that it meets those
//! that have waited longest first. Links lie in the entities, as the kernel's do: nothing is allocated.

use super::{Fair, NONE, cpu_id, some};
use crate::{DequeueFlags, EnqueueFlags, EntityId, Kernel, Resched};
use ttwu_model::CpuId;

/// A walk over a CPU's list from the back.
#[derive(Clone, Debug)]
pub struct FromBack<'a> {
    fair: &'a Fair,
    at: u32,
}

impl Iterator for FromBack<'_> {
    type Item = EntityId;

    fn next(&mut self) -> Option<EntityId> {
        let id = some(self.at)?;
        self.at = self.fair.x[id.index()].newer;
        Some(id)
    }
}

impl Fair {
    /// The tasks queued on `cpu` (running and delayed ones included), the one longest in the list first.
    ///
    /// Models: rq->cfs_tasks, v5.5–v7.2.
    #[must_use]
    pub fn cfs_tasks_from_back(&self, cpu: CpuId) -> FromBack<'_> {
        FromBack { fair: self, at: self.cpus[cpu.index()].oldest }
    }

    /// Puts a queued task at the front of its CPU's list: what the balancer does with one it may not take.
    pub fn rotate_to_front(&mut self, id: EntityId) {
        self.unlist(id);
        self.list(id);
    }

    /// Does its queue prefer it (next or last buddy)? Balancing leaves those.
    #[must_use]
    pub fn is_buddy(&self, id: EntityId) -> bool {
        let queue = &self.q[self.queue_of(id)].cfs;
        queue.next == Some(id) || queue.last == Some(id)
    }

    pub(super) fn list(&mut self, id: EntityId) {
        let cpu = self.q[self.queue_of(id)].cpu as usize;
        let older = std::mem::replace(&mut self.cpus[cpu].newest, id.0);
        if older == NONE {
            self.cpus[cpu].oldest = id.0;
        } else {
            self.x[older as usize].newer = id.0;
        }
        let extra = &mut self.x[id.index()];
        (extra.older, extra.newer) = (older, NONE);
    }

    pub(super) fn unlist(&mut self, id: EntityId) {
        let cpu = self.q[self.queue_of(id)].cpu as usize;
        let (older, newer) = (self.x[id.index()].older, self.x[id.index()].newer);
        if newer == NONE {
            self.cpus[cpu].newest = older;
        } else {
            self.x[newer as usize].older = older;
        }
        if older == NONE {
            self.cpus[cpu].oldest = newer;
        } else {
            self.x[older as usize].newer = newer;
        }
    }

    /// Takes a queued task that is not running off its CPU, to be moved. `now` is that CPU's clock. Its load goes with it.
    /// Returns what accounting asked for.
    ///
    /// DEVIATION: up to v5.19 the load is taken out a moment later, after the dequeue.
    ///
    /// Models: detach_task(), migrate_task_rq_fair(), detach_entity_load_avg(), v5.5–v7.2.
    pub fn detach_task(&mut self, id: EntityId, now: u64) -> Option<Resched> {
        let cpu = cpu_id(self.q[self.queue_of(id)].cpu);
        assert!(self.curr(cpu) != Some(id), "a running task is not moved");
        let resched = self.dequeue_with(id, now, DequeueFlags::default(), true).resched;
        self.x[id.index()].avg.last_update_time = 0;
        if self.rules.kernel < Kernel::V6_1 {
            self.e[id].exec_start = 0;
        }
        resched
    }

    /// Queues a detached task on `to`, whose clock is `now`. The preemption check is the caller's.
    ///
    /// Models: attach_task(), v5.5–v7.2.
    pub fn attach_task(&mut self, to: CpuId, id: EntityId, now: u64) -> Option<Resched> {
        self.set_cpu(id, to);
        self.x[id.index()].migrated = true;
        self.enqueue_task(to, id, now, EnqueueFlags::default())
    }

    /// A task that sleeps or wakes belongs to `to` from now on. `now_from` is the clock of the CPU that it leaves.
    ///
    /// Its load there is removed at that queue's next update. CFS makes its virtual time relative. The next enqueue is taken
    /// as one of a migrated task, whatever its flags say.
    ///
    /// Models: migrate_task_rq_fair(), remove_entity_load_avg(), migrate_se_pelt_lag(), v5.5–v7.2.
    pub fn migrate(&mut self, id: EntityId, to: CpuId, now_from: u64) {
        assert!(!self.e[id].on_rq, "a queued task is detached and attached");
        let i = id.index();
        if self.x[i].queue == NONE || self.x[i].fresh {
            self.set_cpu(id, to);
            return;
        }
        let queue = self.queue_of(id);
        let from = self.q[queue].cpu;
        if from as usize == to.index() {
            return;
        }
        assert!(self.cpus[from as usize].curr != id.0, "a task is switched away from before it is moved");
        if !self.rules.kernel.is_eevdf() && !self.x[i].relative {
            let zero = self.q[queue].cfs.zero_vruntime();
            self.e[id].vruntime = self.e[id].vruntime.wrapping_sub(zero);
            self.x[i].relative = true;
        }
        if self.x[i].avg.last_update_time != 0 {
            self.remove_load(id);
            // v6.0 and later catch up on the time that an idle CPU did not account.
            let idle = self.cpus[from as usize].curr == NONE && self.q[from as usize].h_nr_queued == 0;
            if self.rules.kernel >= Kernel::V6_1 && idle {
                self.age_blocked(id, now_from);
            }
            self.x[i].avg.last_update_time = 0;
        }
        if self.rules.kernel < Kernel::V6_1 {
            self.e[id].exec_start = 0;
        }
        self.set_cpu(id, to);
        self.x[i].migrated = true;
    }

    /// The task has ended: its load leaves its last CPU's averages at the next update.
    ///
    /// Models: task_dead_fair(), v5.5–v7.2.
    pub fn exit_task(&mut self, id: EntityId) {
        assert!(!self.e[id].on_rq, "a task is dequeued before it is gone");
        if self.x[id.index()].avg.last_update_time != 0 {
            self.remove_load(id);
            self.x[id.index()].avg.last_update_time = 0;
        }
    }

    pub(super) fn set_cpu(&mut self, id: EntityId, cpu: CpuId) {
        let queue = self.queue_for(self.x[id.index()].group, cpu.index());
        self.x[id.index()].queue = queue;
    }
}
