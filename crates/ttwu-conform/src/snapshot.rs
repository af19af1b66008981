//! A recorded decision as a [`View`]: the snapshot alone, or with the answers that the kernel's own checks gave.

use crate::Recording;
use crate::format::{Decision, RunQueueState};
use std::collections::VecDeque;
use ttwu_fair::{CpuStats, Kernel, ScanCost, SlowView, TaskLoad, View};
use ttwu_model::{CpuId, SgcId};

/// What the model is told beyond the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// Nothing.
    Snapshot,
    /// The answers of the idle checks, in order for each CPU, the recorded loads, and `has_idle_cores` where recorded.
    Answers,
    /// The same, and the target that `wake_affine` chose, where recorded.
    AnswersAndTarget,
}

impl Knowledge {
    /// Are the idle checks' answers known?
    const fn answers(self) -> bool {
        matches!(self, Self::Answers | Self::AnswersAndTarget)
    }
}

/// One value changed by hand, to see whether a race explains a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Altered {
    pub(crate) nr_idle_scan: Option<u32>,
    pub(crate) has_idle_cores: Option<bool>,
    /// Mean scan cost of the LLC (SIS_PROP), of an idle time of 1 ms.
    pub(crate) scan_cost_ns: Option<u64>,
    pub(crate) nr_running_delta: i64,
    pub(crate) load_delta: Option<(u16, i64)>,
    pub(crate) sched_idle_flip: Option<u16>,
    /// wake_affine chose the other of its two CPUs.
    pub(crate) other_target: bool,
}

impl Altered {
    /// SIS_PROP's inputs, which are not recorded: those of boot, or a mean cost altered by hand.
    fn cost(self) -> ScanCost {
        let boot = ScanCost::BOOT;
        self.scan_cost_ns.map_or(boot, |avg_scan_cost_ns| ScanCost {
            avg_scan_cost_ns,
            wake_stamp: u64::MAX,
            ..boot
        })
    }
}

/// The state that a decision was taken on.
pub(crate) struct Snapshot<'a> {
    recording: &'a Recording,
    decision: &'a Decision,
    answers: Vec<VecDeque<bool>>,
    knowledge: Knowledge,
    altered: Altered,
    task_loads: usize,
    cost: ScanCost,
}

/// `PF_EXITING`.
pub(crate) const PF_EXITING: u64 = 0x4;
/// `PF_IDLE`.
const PF_IDLE: u64 = 0x2;
/// `PF_KTHREAD`.
pub(crate) const PF_KTHREAD: u64 = 0x0020_0000;
/// The flag bit of `util_est`.
const UTIL_AVG_UNCHANGED: u64 = 0x8000_0000;

impl<'a> Snapshot<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        decision: &'a Decision,
        knowledge: Knowledge,
        altered: Altered,
    ) -> Self {
        let mut answers = vec![VecDeque::new(); recording.machine().cpu_bound()];
        if knowledge.answers() {
            for &(cpu, answer) in &decision.idle {
                if let Some(queue) = answers.get_mut(usize::from(cpu)) {
                    queue.push_back(answer != 0);
                }
            }
        }
        Self { recording, decision, answers, knowledge, altered, task_loads: 0, cost: altered.cost() }
    }

    fn rq(&self, cpu: CpuId) -> &'a RunQueueState {
        &self.decision.rq[cpu.index()]
    }

    fn kernel(&self) -> Kernel {
        self.recording.policy().kernel()
    }

    fn idle_now(&self, cpu: CpuId) -> bool {
        let rq = self.rq(cpu);
        rq.c == 0 && rq.n == 0 && rq.tp == 0
    }

    fn sched_idle_now(&self, cpu: CpuId) -> bool {
        let rq = self.rq(cpu);
        let now = rq.n > 0 && rq.hi == rq.n;
        if self.altered.sched_idle_flip == Some(cpu.number()) { !now } else { now }
    }

    /// The last reading of what the CPUs of an LLC share. A snapshot reads that once for each CPU, one after another, and
    /// the value may be rewritten in between; the last reading is the nearest to its use.
    ///
    /// Groups of four CPUs are read from the lowest to the highest; the order of the groups is not the same in all
    /// recordings' layouts, so in an LLC that spans several the CPU's own reading stands.
    fn last_reading(&self, cpu: CpuId) -> &'a RunQueueState {
        const GROUP: u16 = 4;
        let group = |cpu: CpuId| cpu.number() / GROUP;
        let own = self.rq(cpu);
        let Some(llc) = self.recording.domains().llc(cpu) else { return own };
        if llc.span().iter().any(|other| group(other) != group(cpu)) {
            return own;
        }
        llc.span().iter().last().map_or(own, |last| self.rq(last))
    }

    /// The hierarchical load of the queue on `cpu`: what was cached in this jiffy, else the queue's present load.
    fn h_load(&self, cpu: CpuId) -> u64 {
        let rq = self.rq(cpu);
        let jiffies = self.decision.sel.as_ref().map_or(0, |sel| sel.jif);
        if rq.hlu & 0xffff_ffff == jiffies & 0xffff_ffff { rq.hl } else { rq.la }
    }
}

impl View for Snapshot<'_> {
    fn available_idle(&mut self, cpu: CpuId) -> bool {
        // On 7.2 only choose_idle_cpu() was probed; the plain checks come from the snapshot.
        if self.kernel() < Kernel::V7_2
            && let Some(answer) = self.answers[cpu.index()].pop_front()
        {
            return answer;
        }
        self.idle_now(cpu)
    }

    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.sched_idle_now(cpu)
    }

    fn choose_idle(&mut self, cpu: CpuId, wakee_counts: bool) -> bool {
        if self.kernel() >= Kernel::V7_2
            && let Some(answer) = self.answers[cpu.index()].pop_front()
        {
            return answer;
        }
        self.available_idle(cpu) || (wakee_counts && self.sched_idle_now(cpu))
    }

    fn target(&mut self, computed: CpuId) -> CpuId {
        let recorded = self.decision.inlined("i_sis", 0).and_then(|cpu| u16::try_from(cpu).ok());
        match (self.knowledge, recorded) {
            (Knowledge::AnswersAndTarget, Some(cpu)) => CpuId::new(cpu),
            (_, _) if self.altered.other_target => {
                let prev = self.decision.sel.as_ref().map_or(computed, |sel| CpuId::new(sel.prev));
                if computed == prev { CpuId::new(self.decision.cpu) } else { prev }
            }
            (Knowledge::AnswersAndTarget | Knowledge::Answers | Knowledge::Snapshot, _) => computed,
        }
    }

    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        u32::try_from((self.rq(cpu).n + self.altered.nr_running_delta).max(0)).unwrap_or(u32::MAX)
    }

    fn nr_delayed(&mut self, cpu: CpuId) -> i64 {
        let rq = self.rq(cpu);
        rq.hr.map_or(0, |runnable| rq.h - runnable)
    }

    fn load(&mut self, cpu: CpuId) -> u64 {
        let delta =
            self.altered.load_delta.filter(|(at, _)| *at == cpu.number()).map_or(0, |(_, delta)| delta);
        self.rq(cpu).la.saturating_add_signed(delta)
    }

    fn capacity(&mut self, cpu: CpuId) -> u64 {
        self.rq(cpu).cap
    }

    fn task_load(&mut self, whose: TaskLoad) -> u64 {
        let recorded = self.decision.thl.get(self.task_loads).copied();
        self.task_loads += 1;
        if self.knowledge.answers()
            && let Some(load) = recorded
        {
            return load;
        }
        let (load, cpu) = match (whose, &self.decision.sel) {
            (TaskLoad::Wakee, Some(sel)) => (sel.load, sel.tcpu),
            (TaskLoad::Waker | TaskLoad::Wakee, _) => {
                (self.decision.rq[usize::from(self.decision.cpu)].cla, self.decision.cpu)
            }
        };
        let cpu = CpuId::new(cpu);
        load * self.h_load(cpu) / (self.rq(cpu).la + 1)
    }

    fn has_idle_cores(&mut self, cpu: CpuId) -> bool {
        if let Some(flag) = self.altered.has_idle_cores {
            return flag;
        }
        let recorded = self.decision.inlined("i_cpu", 1).map(|flag| flag != 0);
        match (self.knowledge.answers(), recorded) {
            (true, Some(flag)) => flag,
            // A sibling was found before the CPU scan: only without the flag.
            (true, None) if self.decision.inlined("i_smt", 0).is_some() => false,
            (true | false, _) => self.last_reading(cpu).ic != 0,
        }
    }

    fn clear_idle_cores(&mut self, _: CpuId) {}

    fn nr_idle_scan(&mut self, cpu: CpuId) -> u32 {
        let recorded = self.last_reading(cpu).is.max(0);
        self.altered.nr_idle_scan.unwrap_or(u32::try_from(recorded).unwrap_or(u32::MAX))
    }

    fn scan_cost(&mut self, _: CpuId) -> &mut ScanCost {
        &mut self.cost
    }

    fn scan_ns(&mut self, _: u32) -> u64 {
        0
    }
}

/// The same snapshot for fork and exec.
pub(crate) struct SlowSnapshot<'a>(pub(crate) Snapshot<'a>);

impl SlowView for SlowSnapshot<'_> {
    fn stats(&mut self, cpu: CpuId) -> CpuStats {
        let rq = self.0.rq(cpu);
        let sel = self.0.decision.sel.as_ref().expect("fork and exec have a selection");
        let own = sel.tcpu == cpu.number() && sel.plut != 0;
        let queued = i64::from(sel.tcpu == cpu.number() && sel.onrq != 0);
        let less = |sum: u64, part: u64| if own { sum.saturating_sub(part) } else { sum };
        let estimate = rq.ue & !UTIL_AVG_UNCHANGED;
        let own_estimate = if own && queued == 1 { sel.uest & !UTIL_AVG_UNCHANGED } else { 0 };
        let util = less(rq.ua, sel.util).max(estimate.saturating_sub(own_estimate));
        let h_nr = match self.0.kernel() {
            Kernel::V7_2 => rq.hr.unwrap_or(rq.h),
            _ => rq.h,
        };
        let count = |value: i64| u32::try_from((value - queued).max(0)).unwrap_or(u32::MAX);
        let current_counts = rq.c == 0 || rq.c == sel.pid;
        CpuStats {
            load: less(rq.la, sel.load),
            util: util.min(self.0.recording.machine().capacity_orig(cpu)),
            runnable: less(rq.ra, sel.run),
            nr_running: count(rq.n),
            h_nr: count(h_nr),
            idle: rq.n - queued == 0 && current_counts && rq.tp == 0,
            capacity: rq.cap,
        }
    }

    fn imbalanced(&mut self, _: SgcId) -> bool {
        // Not recorded; it is set only where affinity kept the balancer from moving tasks.
        false
    }

    fn available_idle(&mut self, cpu: CpuId) -> bool {
        View::available_idle(&mut self.0, cpu)
    }

    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.0.sched_idle_now(cpu)
    }

    fn load(&mut self, cpu: CpuId) -> u64 {
        self.0.rq(cpu).la
    }

    fn exit_latency(&mut self, _: CpuId) -> Option<u64> {
        // The recorded guests have no cpuidle driver.
        None
    }

    fn idle_stamp(&mut self, cpu: CpuId) -> u64 {
        let rq = self.0.rq(cpu);
        // The stamp is read some time before whether the CPU is idle. One that was running then and is idle now went idle
        // in between: later than all stamps.
        let was_running = rq.cpf & PF_IDLE == 0;
        if was_running && self.0.idle_now(cpu) { u64::MAX } else { rq.ist.unwrap_or(0) }
    }
}
