//! What balancing keeps from one pass to the next: per CPU and domain level, per CPU, per LLC, and per machine.
//!
//! About 500 bytes a CPU with seven levels; nothing here grows while a machine runs.

use crate::{Machine, Policy, ScanCost};
use ttwu_model::{CpuId, CpuSet, SgcId};

/// What a CPU remembers of one of its domains.
///
/// Models: struct sched_domain, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainState {
    /// Time of the last periodic pass, jiffies.
    pub last_balance: u64,
    /// Longest time a newidle pass of this level took, ns; decays.
    pub max_newidle_lb_cost_ns: u64,
    /// When that was last decayed (from v5.17 on: or raised), jiffies.
    pub last_decay: u64,
    /// When the success ratio was last computed, ns (v7.2).
    pub newidle_stamp_ns: u64,
    /// Time between passes of an idle CPU, ms.
    pub balance_interval_ms: u32,
    /// Passes in a row that moved nothing although they should have.
    pub nr_balance_failed: u32,
    /// Newidle passes, halved at 1024.
    pub newidle_calls: u32,
    /// Of which successful, weighted by their chance of being made.
    pub newidle_success: u32,
    /// Successes of the last 1024, the chance in 1024 of a newidle pass.
    pub newidle_ratio: u32,
}

/// What a CPU's run queue keeps for balancing.
///
/// Models: struct rq, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuState {
    /// Mean idle time and scan cost, also read by the idle search.
    pub scan: ScanCost,
    /// When it went idle, ns; 0 if it is not, or found work.
    pub idle_stamp_ns: u64,
    /// Half the limit of the mean idle time, ns.
    pub max_idle_balance_cost_ns: u64,
    /// When a tick starts the next periodic pass, jiffies.
    pub next_balance: u64,
    /// Is the stopper asked to push the running task away?
    pub active_balance: bool,
}

/// What the CPUs of an LLC share. Indexed by [`ttwu_model::SchedDomains::llc_id`].
///
/// Models: struct sched_domain_shared, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LlcState {
    /// How many CPUs an idle search may look at (SIS_UTIL).
    pub nr_idle_scan: u32,
    /// CPUs whose tick is not stopped.
    pub nr_busy_cpus: u32,
    /// Some core went wholly idle, and no scan since failed to find one.
    pub has_idle_cores: bool,
}

/// May kernel code be preempted? A newidle pass of such a kernel moves one task at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preemptible {
    /// CONFIG_PREEMPTION: full, lazy and boot-time models.
    Yes,
    /// None or voluntary.
    No,
}

/// All of a machine's balancing state.
#[derive(Clone, Debug)]
pub struct BalanceState {
    domains: Vec<DomainState>,
    first: Vec<u32>,
    cpus: Vec<CpuState>,
    llcs: Vec<LlcState>,
    imbalanced: Vec<u64>,
    /// Some CPU has two runnable tasks: newidle passes are worth it. To be set by who enqueues, when a queue reaches 2;
    /// passes of the top level compute it anew.
    pub overloaded: bool,
    /// Whether the kernel is preemptible.
    pub preemptible: Preemptible,
    /// CPUs that are idle with their tick stopped. See [`BalanceState::nohz_enter`].
    pub(super) nohz_idle: CpuSet,
    /// When some CPU without tick is due, jiffies.
    pub(super) nohz_next_balance: u64,
    random: u64,
}

impl BalanceState {
    /// As after boot at `jiffies`; `seed` is that of the draws of NI_RANDOM.
    #[must_use]
    pub fn new(
        policy: &Policy,
        machine: &Machine,
        preemptible: Preemptible,
        jiffies: u64,
        seed: u64,
    ) -> Self {
        let tunables = policy.tunables(machine.cpu_bound());
        let cpu = CpuState {
            scan: ScanCost::BOOT,
            idle_stamp_ns: 0,
            max_idle_balance_cost_ns: tunables.migration_cost_ns,
            next_balance: jiffies,
            active_balance: false,
        };
        let (mut domains, mut first) = (Vec::new(), Vec::with_capacity(machine.cpu_bound() + 1));
        let mut llcs = vec![LlcState::default(); machine.cpu_bound()];
        for number in 0..machine.cpu_bound() {
            let id = CpuId::new(u16::try_from(number).expect("CPU numbers are 16 bits"));
            first.push(u32::try_from(domains.len()).expect("seven levels of 65536 CPUs"));
            domains.extend(machine.domains().of(id).iter().map(|domain| DomainState {
                last_balance: jiffies,
                max_newidle_lb_cost_ns: 0,
                last_decay: jiffies,
                newidle_stamp_ns: 0,
                balance_interval_ms: domain.min_interval_ms(),
                nr_balance_failed: 0,
                newidle_calls: 512,
                newidle_success: 256,
                newidle_ratio: 512,
            }));
            llcs[machine.domains().llc_id(id).index()].nr_busy_cpus += 1;
        }
        first.push(u32::try_from(domains.len()).expect("seven levels of 65536 CPUs"));
        Self {
            domains,
            first,
            cpus: vec![cpu; machine.cpu_bound()],
            llcs,
            imbalanced: vec![0; machine.domains().sgc_count().div_ceil(64)],
            overloaded: false,
            preemptible,
            nohz_idle: CpuSet::new(),
            nohz_next_balance: jiffies,
            random: seed,
        }
    }

    /// The state of `cpu`'s domain on `level`, 0 being the smallest.
    ///
    /// # Panics
    /// For a CPU or level that the machine does not have.
    pub fn domain(&mut self, cpu: CpuId, level: usize) -> &mut DomainState {
        let index = self.first[cpu.index()] as usize + level;
        assert!(index < self.first[cpu.index() + 1] as usize, "CPU {cpu} has no level {level}");
        &mut self.domains[index]
    }

    /// The state of `cpu`.
    ///
    /// # Panics
    /// For a CPU that the machine does not have.
    pub fn cpu(&mut self, cpu: CpuId) -> &mut CpuState {
        &mut self.cpus[cpu.index()]
    }

    /// The record of the LLC of `cpu`.
    ///
    /// # Panics
    /// For a CPU that the machine does not have.
    pub fn llc(&mut self, machine: &Machine, cpu: CpuId) -> &mut LlcState {
        &mut self.llcs[machine.domains().llc_id(cpu).index()]
    }

    /// Did affinity keep a pass from evening out this group?
    #[must_use]
    pub fn is_imbalanced(&self, group: SgcId) -> bool {
        self.imbalanced[group.index() / 64] >> (group.index() % 64) & 1 == 1
    }

    pub(super) fn set_imbalanced(&mut self, group: SgcId, imbalanced: bool) {
        let (word, bit) = (&mut self.imbalanced[group.index() / 64], 1 << (group.index() % 64));
        if imbalanced {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    /// `cpu` is woken from idle: its mean idle time follows. Call it after the task is enqueued (v7.2: when the idle task is
    /// switched out), also if it was not idle.
    ///
    /// Models: ttwu_do_wakeup(), ttwu_do_activate(), update_rq_avg_idle(), v5.5–v7.2.
    pub fn end_idle(&mut self, policy: &Policy, cpu: CpuId, now_ns: u64, jiffies: u64) {
        let kernel = policy.kernel();
        let state = &mut self.cpus[cpu.index()];
        if state.idle_stamp_ns == 0 {
            return;
        }
        let idle = now_ns.wrapping_sub(state.idle_stamp_ns).cast_signed();
        let difference = idle.wrapping_sub(state.scan.avg_idle_ns.cast_signed());
        // v5.5 rounds down, later kernels towards zero.
        let step = if kernel == crate::Kernel::V5_5 { difference >> 3 } else { difference / 8 };
        let average = state.scan.avg_idle_ns.wrapping_add_signed(step);
        state.scan.avg_idle_ns = average.min(2 * state.max_idle_balance_cost_ns);
        if (crate::Kernel::V5_15..=crate::Kernel::V6_6).contains(&kernel) {
            state.scan.wake_stamp = jiffies;
            state.scan.wake_avg_idle_ns = state.scan.avg_idle_ns / 2;
        }
        state.idle_stamp_ns = 0;
    }

    /// `cpu` switches to its idle task: are now all threads of its core idle? `others_idle` is asked for the other threads.
    ///
    /// Models: __update_idle_core(), v5.5–v7.2.
    pub fn begin_idle(&mut self, machine: &Machine, cpu: CpuId, mut others_idle: impl FnMut(CpuId) -> bool) {
        if !machine.domains().smt_active() || self.llc(machine, cpu).has_idle_cores {
            return;
        }
        if machine.smt(cpu).iter().all(|sibling| sibling == cpu || others_idle(sibling)) {
            self.llc(machine, cpu).has_idle_cores = true;
        }
    }

    /// Splitmix64: the draws need no more than to be spread evenly, and a seed names a run.
    pub(super) const fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl DomainState {
    /// A newidle pass of this level took so long. Returns whether the longest time was decayed.
    ///
    /// From v5.17 on a pass that took longer also puts off the decay, and a shorter one may decay.
    ///
    /// Models: update_newidle_cost(), v5.17–v7.2; sched_balance_newidle(), rebalance_domains(), v5.5–v5.16.
    pub(super) fn note_cost(&mut self, policy: &Policy, cost_ns: u64, jiffies: u64, hz: u64) -> bool {
        let stamped = policy.kernel() > crate::Kernel::V5_15;
        if cost_ns > self.max_newidle_lb_cost_ns {
            self.max_newidle_lb_cost_ns = cost_ns;
            if stamped {
                self.last_decay = jiffies;
            }
            return false;
        }
        stamped && self.decay_cost(jiffies, hz)
    }

    /// Decays the longest time by 1 % a second. Returns whether it did.
    ///
    /// Models: rebalance_domains(), update_newidle_cost(), v5.5–v7.2.
    pub(super) fn decay_cost(&mut self, jiffies: u64, hz: u64) -> bool {
        if !after(jiffies, self.last_decay.wrapping_add(hz)) {
            return false;
        }
        self.max_newidle_lb_cost_ns = self.max_newidle_lb_cost_ns * 253 / 256;
        self.last_decay = jiffies;
        true
    }

    /// Counts a newidle pass and its success (0: none).
    ///
    /// Models: update_newidle_stats(), v6.1.y–v7.2. DEVIATION: the form of NI_RATE (the ratio grows by 1 for each 2²² ns that
    /// the counted passes took, so that rare passes are always made) is from memory and not exercised by a recording.
    pub(super) fn count_newidle(&mut self, by_rate: bool, success: u32, now_ns: u64) {
        self.newidle_calls += 1;
        self.newidle_success += success;
        if self.newidle_calls >= 1024 {
            let mut ratio = u64::from(self.newidle_success);
            if by_rate {
                ratio += now_ns.saturating_sub(self.newidle_stamp_ns) >> 22;
                ratio = ratio.min(1024);
                self.newidle_stamp_ns = now_ns;
            }
            self.newidle_ratio = u32::try_from(ratio).unwrap_or(u32::MAX);
            self.newidle_calls /= 2;
            self.newidle_success /= 2;
        }
    }
}

/// Is `a` later than `b`? Jiffies wrap, so the comparison is signed.
pub(super) const fn after(a: u64, b: u64) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// How many CPUs of an LLC of `weight` CPUs an idle search may look at, when their utilisations add up to `sum_util`; `pct` is
/// the imbalance percentage of the domain.
///
/// Models: update_idle_cpu_scan(), v6.0–v7.2.
#[must_use]
pub const fn nr_idle_scan(sum_util: u64, weight: u64, pct: u64) -> u32 {
    let x = sum_util / weight;
    let busy = x * x * pct * pct / (10_000 * 1024);
    let left = 1024_u64.saturating_sub(busy);
    #[expect(clippy::cast_possible_truncation, reason = "at most the LLC's weight")]
    let scan = (left * weight / 1024) as u32;
    scan
}
