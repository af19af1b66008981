//! What placement reads of the machine.

use super::cpu::Cpu;
use super::task::NOBODY;
use std::cell::RefCell;
use ttwu_fair::{
    BalanceState, CpuStats, EntityId, Fair, Kernel, Machine, ScanCost, SlowView, TaskLoad, View,
};
use ttwu_model::{CpuId, SgcId};

/// Read by both paths.
pub(super) struct Shared<'a> {
    pub(super) fair: RefCell<&'a mut Fair>,
    pub(super) cpus: &'a [Cpu],
    pub(super) machine: &'a Machine,
    pub(super) wakee: EntityId,
    pub(super) now: u64,
    pub(super) idle_exit_ns: &'a [u64],
}

impl Shared<'_> {
    fn idle(&self, cpu: CpuId) -> bool {
        let state = &self.cpus[cpu.index()];
        state.curr == NOBODY && state.wake_list.is_empty() && self.fair.borrow().nr_running(cpu) == 0
    }
}

/// The fast path's view.
pub(super) struct Fast<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) waker: Option<EntityId>,
    pub(super) state: &'a mut BalanceState,
    pub(super) scan_cpu_ns: u64,
}

impl View for Fast<'_> {
    fn available_idle(&mut self, cpu: CpuId) -> bool {
        self.shared.idle(cpu)
    }

    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.shared.fair.borrow().sched_idle(cpu)
    }

    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        self.shared.fair.borrow().nr_running(cpu)
    }

    fn nr_delayed(&mut self, cpu: CpuId) -> i64 {
        i64::from(self.shared.fair.borrow().h_nr_delayed(cpu))
    }

    fn load(&mut self, cpu: CpuId) -> u64 {
        self.shared.fair.borrow().load_avg(cpu)
    }

    fn capacity(&mut self, cpu: CpuId) -> u64 {
        self.shared.machine.capacity_orig(cpu)
    }

    fn task_load(&mut self, whose: TaskLoad) -> u64 {
        let id = match whose {
            TaskLoad::Waker => self.waker,
            TaskLoad::Wakee => Some(self.shared.wakee),
        };
        id.map_or(0, |id| self.shared.fair.borrow_mut().task_h_load(id, self.shared.now))
    }

    fn has_idle_cores(&mut self, cpu: CpuId) -> bool {
        self.state.llc(self.shared.machine, cpu).has_idle_cores
    }

    fn clear_idle_cores(&mut self, cpu: CpuId) {
        self.state.llc(self.shared.machine, cpu).has_idle_cores = false;
    }

    fn nr_idle_scan(&mut self, cpu: CpuId) -> u32 {
        self.state.llc(self.shared.machine, cpu).nr_idle_scan
    }

    fn scan_cost(&mut self, cpu: CpuId) -> &mut ScanCost {
        &mut self.state.cpu(cpu).scan
    }

    fn scan_ns(&mut self, inspected: u32) -> u64 {
        u64::from(inspected) * self.scan_cpu_ns
    }
}

/// The slow path's view.
pub(super) struct Slow<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) kernel: Kernel,
    /// For forks: which groups affinity keeps uneven.
    pub(super) state: Option<BalanceState>,
}

impl SlowView for Slow<'_> {
    fn stats(&mut self, cpu: CpuId) -> CpuStats {
        let mut fair = self.shared.fair.borrow_mut();
        let wakee = self.shared.wakee;
        let own = fair.cpu_of(wakee) == Some(cpu) && fair.has_history(wakee);
        let queued = fair.cpu_of(wakee) == Some(cpu) && fair.is_queued(wakee);
        let (mut load, mut util, mut runnable) =
            (fair.load_avg(cpu), fair.cpu_util(cpu), fair.runnable_avg(cpu));
        if own {
            load = load.saturating_sub(fair.task_h_load(wakee, self.shared.now));
            util = util.saturating_sub(fair.task_util(wakee));
            runnable = runnable.saturating_sub(fair.entity_avg(wakee).runnable_avg);
        }
        let nr_running = fair.nr_running(cpu) - u32::from(queued);
        let h_nr = if self.kernel >= Kernel::V7_2 { fair.h_nr_runnable(cpu) } else { fair.nr_running(cpu) };
        let state = &self.shared.cpus[cpu.index()];
        let own_runs = state.curr != NOBODY && fair.curr(cpu) == Some(wakee);
        CpuStats {
            load,
            util,
            runnable,
            nr_running,
            h_nr: h_nr.saturating_sub(u32::from(queued)),
            idle: nr_running == 0 && (state.curr == NOBODY || own_runs) && state.wake_list.is_empty(),
            capacity: self.shared.machine.capacity_orig(cpu),
        }
    }

    fn imbalanced(&mut self, group: SgcId) -> bool {
        self.state.as_ref().is_some_and(|state| state.is_imbalanced(group))
    }

    fn available_idle(&mut self, cpu: CpuId) -> bool {
        self.shared.idle(cpu)
    }

    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.shared.fair.borrow().sched_idle(cpu)
    }

    fn load(&mut self, cpu: CpuId) -> u64 {
        self.shared.fair.borrow().load_avg(cpu)
    }

    fn exit_latency(&mut self, cpu: CpuId) -> Option<u64> {
        let state = &self.shared.cpus[cpu.index()];
        (state.curr == NOBODY).then(|| self.shared.idle_exit_ns[usize::from(state.idle_state)])
    }

    fn idle_stamp(&mut self, cpu: CpuId) -> u64 {
        let state = &self.shared.cpus[cpu.index()];
        if state.curr == NOBODY { state.idle_from } else { 0 }
    }
}
