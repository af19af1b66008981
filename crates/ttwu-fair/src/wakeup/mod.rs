//! Where a woken task goes: the question ([`Wakeup`]), what the rules read ([`View`]), and the answer ([`Placement`]).
//!
//! The functions below this module follow the kernel's order of tests, since each test reads state at its own instant and
//! a recorded kernel is compared test by test. All reads of changing state go through [`View`], so that a simulator, a
//! snapshot of a real kernel and a list of recorded answers can stand behind the same rules.

mod affine;
mod idle_scan;
mod idle_sibling;
mod names;
mod select;
mod slow_path;
mod wake_list;
mod wide;

#[cfg(test)]
mod rule_tests;
#[cfg(test)]
mod tests;

pub use select::place;
pub use slow_path::{CpuStats, GroupStats, GroupType, SlowView};
pub(crate) use slow_path::{GroupSums, adjust_numa_imbalance, classify};
pub use wake_list::{WakeListQuery, queue_on_wake_list};
pub use wide::Flips;

use ttwu_model::{CpuId, CpuSet};

/// Why the placement code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ordinary wake-up.
    Wakeup,
    /// A new task's first.
    Fork,
    /// `execve()` moves the task.
    Exec,
}

/// A question: where should this task run?
#[derive(Clone, Debug)]
pub struct Wakeup<'a> {
    /// Why it is asked.
    pub kind: Kind,
    /// The CPU that asks: the waker's, or the one that the interrupt hit.
    pub this_cpu: CpuId,
    /// The CPU that the task ran on last (`wake_cpu`).
    pub prev_cpu: CpuId,
    /// WF_SYNC, and the waker is not exiting: it announces that it will sleep soon.
    pub sync: bool,
    /// WF_CURRENT_CPU: take the waker's CPU if allowed (v6.6 and later).
    pub current_cpu: bool,
    /// The CPUs on which the task may run.
    pub allowed: &'a CpuSet,
    /// Is the task under SCHED_IDLE?
    pub wakee_is_idle_policy: bool,
    /// Is the current task of `this_cpu` a kernel thread bound to one CPU (other than the idle task)?
    pub waker_is_per_cpu_kthread: bool,
    /// Is the current task of `this_cpu` its idle task? From v5.14 on it passes for a per-CPU kernel thread.
    pub waker_is_idle_task: bool,
    /// Is the waker in process context (not in an interrupt)?
    pub in_task: bool,
    /// The task's utilisation, for machines with asymmetric capacities.
    pub util: u64,
}

/// What placement remembers of the two tasks from one wake-up to the next. Updated by [`place`].
#[derive(Debug)]
pub struct Memory<'a> {
    /// The waker's flips (the current task of `this_cpu`, also when an interrupt wakes).
    pub waker: &'a mut Flips,
    /// The wakee's flips.
    pub wakee: &'a Flips,
    /// Whom the waker wakes: any number that tells tasks apart.
    pub wakee_key: u64,
    /// The wakee's `recent_used_cpu`.
    pub recent_used_cpu: &'a mut CpuId,
    /// The waker's `recent_used_cpu`, which v5.5–v5.13 set.
    pub waker_recent_used_cpu: &'a mut CpuId,
    /// Now, in jiffies.
    pub jiffies: u64,
}

/// Whose load `wake_affine` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskLoad {
    /// The current task of `this_cpu`.
    Waker,
    /// The task being woken.
    Wakee,
}

/// What the rules read of a running machine. Methods take `&mut self` because a recording answers each question once.
pub trait View {
    /// Runs `cpu` its idle task, with nothing queued or on its wake list (and, under a hypervisor, is it not preempted)?
    ///
    /// Models: available_idle_cpu(), v5.5–v7.2.
    fn available_idle(&mut self, cpu: CpuId) -> bool;

    /// Has `cpu` runnable tasks, all of them under SCHED_IDLE?
    ///
    /// Models: sched_idle_cpu(), v5.5–v7.2.
    fn sched_idle(&mut self, cpu: CpuId) -> bool;

    /// Would `cpu` do: idle, or running only SCHED_IDLE tasks? The latter does not count for a SCHED_IDLE wakee, which would
    /// gain nothing (`wakee_counts` is false).
    ///
    /// Models: choose_idle_cpu(), v7.2.
    fn choose_idle(&mut self, cpu: CpuId, wakee_counts: bool) -> bool {
        self.available_idle(cpu) || (wakee_counts && self.sched_idle(cpu))
    }

    /// The target of the idle search, where `computed` is what `wake_affine` gave. A recording that knows the kernel's own
    /// target may put it here, to test the search by itself.
    fn target(&mut self, computed: CpuId) -> CpuId {
        computed
    }

    /// Tasks on the run queue, of all classes, with delayed ones.
    fn nr_running(&mut self, cpu: CpuId) -> u32;

    /// Delayed tasks: `h_nr_queued − h_nr_runnable`, which a race can make negative (v6.12 and later; 0 before).
    fn nr_delayed(&mut self, cpu: CpuId) -> i64;

    /// `load_avg` of the root queue.
    fn load(&mut self, cpu: CpuId) -> u64;

    /// Capacity left by other classes and interrupts, 1024 at full.
    fn capacity(&mut self, cpu: CpuId) -> u64;

    /// `task_h_load()` of one of the two tasks.
    fn task_load(&mut self, whose: TaskLoad) -> u64;

    /// `has_idle_cores` of the LLC of `cpu`.
    fn has_idle_cores(&mut self, cpu: CpuId) -> bool;

    /// A core scan of the LLC of `cpu` found none: clear the flag.
    fn clear_idle_cores(&mut self, cpu: CpuId);

    /// `nr_idle_scan` of the LLC of `cpu` (SIS_UTIL).
    fn nr_idle_scan(&mut self, cpu: CpuId) -> u32;

    /// What SIS_PROP keeps for `cpu`.
    fn scan_cost(&mut self, cpu: CpuId) -> &mut ScanCost;

    /// How long a scan of so many CPUs took, ns (SIS_PROP's bookkeeping).
    fn scan_ns(&mut self, inspected: u32) -> u64;
}

/// A CPU's mean idle time and mean scan cost, by which SIS_PROP limits the idle search.
///
/// Models: struct rq and struct sched_domain, v5.5–v5.19.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanCost {
    /// Mean idle time, ns (`avg_idle`).
    pub avg_idle_ns: u64,
    /// What is left of it for this wakers' scans, ns (`wake_avg_idle`, v5.14 and later).
    pub wake_avg_idle_ns: u64,
    /// Jiffies up to which that has been aged (`wake_stamp`).
    pub wake_stamp: u64,
    /// Mean cost of a scan, ns (`avg_scan_cost` of the CPU's LLC domain).
    pub avg_scan_cost_ns: u64,
}

impl ScanCost {
    /// The values at boot.
    pub const BOOT: Self =
        Self { avg_idle_ns: 1_000_000, wake_avg_idle_ns: 1_000_000, wake_stamp: 0, avg_scan_cost_ns: 0 };
}

/// Where in the rules a CPU was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// Rule 1 of `wake_affine_idle()`, the waker's CPU.
    AffineThis,
    /// `wake_affine_idle()`, the previous CPU.
    AffinePrev,
    /// `select_idle_sibling()`: the target.
    Target,
    /// The previous CPU as candidate.
    Prev,
    /// The recently used CPU as candidate.
    Recent,
    /// Sibling threads of the target or previous CPU.
    Smt,
    /// Whole cores.
    Core,
    /// The target's cluster.
    Cluster,
    /// CPUs of the LLC.
    Cpu,
    /// Asymmetric capacities.
    Capacity,
}

/// One look at a CPU, in the order in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Where in the rules.
    pub site: Site,
    /// Which CPU.
    pub cpu: CpuId,
    /// The answer: idle; on 7.2, outside `wake_affine` and core scans, also "runs only SCHED_IDLE tasks".
    pub idle: bool,
}

/// The rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// WF_CURRENT_CPU.
    CurrentCpu,
    /// The target was idle.
    TargetIdle,
    /// The previous CPU was idle and shares the target's cache.
    PrevIdle,
    /// The waker is a per-CPU kthread on the previous CPU: stack.
    KthreadStacking,
    /// The recently used CPU was idle.
    RecentIdle,
    /// An idle thread of the same core.
    SmtIdle,
    /// A wholly idle core.
    CoreIdle,
    /// An idle CPU in the target's cluster.
    ClusterIdle,
    /// An idle CPU in the LLC.
    CpuIdle,
    /// An idle CPU with enough capacity.
    CapacityIdle,
    /// The scan found nothing; the idle previous CPU of another cluster was kept for this.
    PrevKept,
    /// The scan found nothing; the idle recently used CPU of another cluster was kept for this.
    RecentKept,
    /// Nothing idle was found: the target as it is.
    TargetBusy,
    /// There is no LLC domain to search.
    NoLlc,
    /// The slow path (fork, exec).
    Idlest,
    /// Fork or exec without a domain that balances: the previous CPU.
    NoBalanceDomain,
}

/// How the choice between the waker's CPU and the previous one went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Affine {
    /// It was not asked: a wide waker, an affinity, or no WAKE_AFFINE domain with both.
    NotTried,
    /// Both are the same CPU.
    SameCpu,
    /// Rule 1: the waker's CPU is idle.
    ThisIdle,
    /// Rule 1: both are idle, the previous CPU is preferred.
    BothIdle,
    /// Rule 2: a sync waker alone on its CPU.
    SyncAlone,
    /// Rule 3: the previous CPU is idle.
    PrevIdle,
    /// The waker's CPU is less loaded.
    WeightThis,
    /// It is not.
    WeightPrev,
    /// Neither WA_IDLE nor WA_WEIGHT is on: the previous CPU.
    Off,
}

/// How a scan for an idle CPU ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScanEnd {
    /// No scan was made.
    None,
    /// It found a CPU.
    Hit,
    /// Its budget ran out.
    Budget,
    /// It looked everywhere.
    Exhausted,
    /// SIS_UTIL allowed no scan at all.
    Forbidden,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The CPU.
    pub cpu: CpuId,
    /// The rule that chose it.
    pub rule: Rule,
    /// How the target was chosen.
    pub affine: Affine,
    /// What `wake_affine` chose: the CPU near which an idle one was searched.
    pub target: CpuId,
    /// CPUs inspected by the scan.
    pub scanned: u32,
    /// How the scan ended.
    pub scan: ScanEnd,
}
