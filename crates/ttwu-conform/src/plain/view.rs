//! The rebuilt machine as a [`View`], and the values that plain events do not have, each of which can be put otherwise.

use super::state::PlainState;
use ttwu_fair::{CpuStats, Machine, ScanCost, SlowView, TaskLoad, View, nr_idle_scan};
use ttwu_model::{CpuId, SgcId, TaskId};

/// A value that no plain event carries, and what else it might be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// As rebuilt.
    None,
    /// WF_SYNC was set.
    Sync,
    /// The load comparison of `wake_affine` goes the other way.
    Load,
    /// `wake_wide` answers the other way: the flips from before the recording.
    Flips,
    /// The balancer last left this many CPUs to be scanned.
    Scan(u32),
    /// The wakee's `recent_used_cpu` from before the recording.
    Recent(CpuId),
    /// Not missing but moving: this CPU went idle or busy during the wake-up.
    Changed(CpuId),
    /// The flag "some core is idle" is the other way.
    IdleCores,
}

impl Unknown {
    /// What is missing, in words.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Sync => "the sync flag",
            Self::Load => "the loads that wake_affine compared",
            Self::Flips => "wakee_flips from before the recording",
            Self::Scan(_) => "nr_idle_scan, which the balancer leaves",
            Self::Recent(_) => "recent_used_cpu from before the recording",
            Self::Changed(_) => "when the kernel looked at a CPU that went idle or busy meanwhile",
            Self::IdleCores => "has_idle_cores, which failed scans clear",
        }
    }
}

/// The rebuilt machine at one instant.
pub(super) struct PlainView<'a> {
    pub(super) state: &'a mut PlainState,
    pub(super) machine: &'a Machine,
    pub(super) waker: TaskId,
    pub(super) this: CpuId,
    pub(super) prev: CpuId,
    pub(super) wakee: TaskId,
    pub(super) unknown: Unknown,
    pub(super) cost: ScanCost,
    /// Did the scan of cores fail? Carried out by whoever owns the state, if the decision counts.
    pub(super) cleared: bool,
}

impl PlainView<'_> {
    /// `h_load` of a task in the root group.
    fn h_load(&self, task: TaskId, cpu: CpuId) -> u64 {
        let queue = self.state.cpus[cpu.index()].avg.load_avg;
        self.state.tasks[task.index()].avg.load_avg * queue / (queue + 1)
    }
}

impl View for PlainView<'_> {
    fn available_idle(&mut self, cpu: CpuId) -> bool {
        self.state.idle(cpu) != (self.unknown == Unknown::Changed(cpu))
    }

    fn sched_idle(&mut self, _: CpuId) -> bool {
        // Plain events show the priority of a SCHED_IDLE task as that of nice 0.
        false
    }

    fn target(&mut self, computed: CpuId) -> CpuId {
        match self.unknown {
            Unknown::Load if computed == self.prev => self.this,
            Unknown::Load => self.prev,
            Unknown::None
            | Unknown::Sync
            | Unknown::Flips
            | Unknown::Scan(_)
            | Unknown::Recent(_)
            | Unknown::Changed(_)
            | Unknown::IdleCores => computed,
        }
    }

    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        u32::try_from(self.state.cpus[cpu.index()].queued.len()).unwrap_or(u32::MAX)
    }

    fn nr_delayed(&mut self, _: CpuId) -> i64 {
        // Delayed tasks look asleep in plain events, so they are in neither count.
        0
    }

    fn load(&mut self, cpu: CpuId) -> u64 {
        self.state.cpus[cpu.index()].avg.load_avg
    }

    fn capacity(&mut self, cpu: CpuId) -> u64 {
        self.machine.capacity_orig(cpu)
    }

    fn task_load(&mut self, whose: TaskLoad) -> u64 {
        match whose {
            TaskLoad::Waker if self.waker.is_idle() => 0,
            TaskLoad::Waker => self.h_load(self.waker, self.this),
            TaskLoad::Wakee => self.h_load(self.wakee, self.prev),
        }
    }

    fn has_idle_cores(&mut self, cpu: CpuId) -> bool {
        let llc = self.machine.domains().llc_id(cpu);
        self.state.cpus[llc.index()].idle_cores != (self.unknown == Unknown::IdleCores)
    }

    fn clear_idle_cores(&mut self, _: CpuId) {
        self.cleared = true;
    }

    /// As the balancer would compute it now; the kernel's value is as old as the last balance of the LLC.
    fn nr_idle_scan(&mut self, cpu: CpuId) -> u32 {
        if let Unknown::Scan(count) = self.unknown {
            return count;
        }
        let Some(llc) = self.machine.domains().llc(cpu) else { return 0 };
        let weight = llc.weight() as u64;
        let sum: u64 = llc.span().iter().map(|cpu| self.state.util(cpu)).sum();
        nr_idle_scan(sum, weight, u64::from(llc.imbalance_pct()))
    }

    fn scan_cost(&mut self, _: CpuId) -> &mut ScanCost {
        &mut self.cost
    }

    fn scan_ns(&mut self, _: u32) -> u64 {
        0
    }
}

/// Wake-ups never ask it: no domain balances on wake-up.
pub(crate) struct NoSlowPath;

impl SlowView for NoSlowPath {
    fn stats(&mut self, _: CpuId) -> CpuStats {
        CpuStats::default()
    }

    fn imbalanced(&mut self, _: SgcId) -> bool {
        false
    }

    fn available_idle(&mut self, _: CpuId) -> bool {
        false
    }

    fn sched_idle(&mut self, _: CpuId) -> bool {
        false
    }

    fn load(&mut self, _: CpuId) -> u64 {
        0
    }

    fn exit_latency(&mut self, _: CpuId) -> Option<u64> {
        None
    }

    fn idle_stamp(&mut self, _: CpuId) -> u64 {
        0
    }
}
