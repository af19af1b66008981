//! The free-running machine as placement sees it.

use ttwu_fair::{EntityId, Fair, Machine, ScanCost, TaskLoad, View, nr_idle_scan};
use ttwu_model::CpuId;

pub(super) struct FreeView<'a> {
    pub(super) fair: &'a mut Fair,
    pub(super) machine: &'a Machine,
    pub(super) now: u64,
    pub(super) waker: Option<EntityId>,
    pub(super) wakee: EntityId,
    pub(super) cost: ScanCost,
}

impl FreeView<'_> {
    fn idle(&self, cpu: CpuId) -> bool {
        self.fair.curr(cpu).is_none() && self.fair.nr_running(cpu) == 0
    }
}

impl View for FreeView<'_> {
    fn available_idle(&mut self, cpu: CpuId) -> bool {
        self.idle(cpu)
    }

    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.fair.sched_idle(cpu)
    }

    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        self.fair.nr_running(cpu)
    }

    fn nr_delayed(&mut self, cpu: CpuId) -> i64 {
        i64::from(self.fair.h_nr_delayed(cpu))
    }

    fn load(&mut self, cpu: CpuId) -> u64 {
        self.fair.load_avg(cpu)
    }

    fn capacity(&mut self, cpu: CpuId) -> u64 {
        self.machine.capacity_orig(cpu)
    }

    fn task_load(&mut self, whose: TaskLoad) -> u64 {
        let task = match whose {
            TaskLoad::Waker => self.waker,
            TaskLoad::Wakee => Some(self.wakee),
        };
        task.map_or(0, |task| self.fair.task_h_load(task, self.now))
    }

    /// What the flag says when it is not stale.
    fn has_idle_cores(&mut self, cpu: CpuId) -> bool {
        let Some(llc) = self.machine.domains().llc(cpu) else { return false };
        llc.span().iter().any(|cpu| self.machine.smt(cpu).iter().all(|sibling| self.idle(sibling)))
    }

    fn clear_idle_cores(&mut self, _: CpuId) {}

    fn nr_idle_scan(&mut self, cpu: CpuId) -> u32 {
        let Some(llc) = self.machine.domains().llc(cpu) else { return 0 };
        let sum = llc.span().iter().map(|cpu| self.fair.cpu_util(cpu)).sum();
        nr_idle_scan(sum, llc.weight() as u64, u64::from(llc.imbalance_pct()))
    }

    fn scan_cost(&mut self, _: CpuId) -> &mut ScanCost {
        &mut self.cost
    }

    fn scan_ns(&mut self, _: u32) -> u64 {
        0
    }
}
