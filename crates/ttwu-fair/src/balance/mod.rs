//! Load balancing: which tasks a CPU pulls from others, when it looks, and what the passes leave behind for wake-ups.
//!
//! The rules read and change the machine through one trait ([`BalanceView`]), and keep what the kernel keeps per domain, CPU
//! and LLC in [`BalanceState`]. A pass moves its tasks through the view as it goes, because the next domain level is looked at
//! only if the CPU is still without work: a list of moves computed in advance would differ from the kernel after the first.
//!
//! What this does not model is refused or named. DEVIATION: asymmetric packing, misfit tasks, preferred nodes of NUMA
//! balancing (`fbq`), bandwidth throttling, core scheduling, and 7.2's cache-aware `llc_balance` have no part in balancing.
//! DEVIATION: a pass over one domain is one instant, so the machine-wide lock of NUMA levels (SERIALIZE) is always free and no
//! task wakes on a CPU while statistics are taken. Between the domains of a newidle pass its caller may let time pass.

mod active;
mod detach;
mod groups;
mod imbalance;
mod newidle;
mod nohz;
mod pass;
mod periodic;
mod state;

#[cfg(test)]
mod fair_tests;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trigger_tests;

pub use newidle::{NewIdle, NewIdlePass};
pub use nohz::KickReason;
pub use periodic::TickWork;
pub use state::{BalanceState, CpuState, DomainState, LlcState, Preemptible, nr_idle_scan};

use crate::{CpuStats, EntityId, Machine, Policy};
use ttwu_model::CpuId;

/// In what situation a CPU balances.
///
/// Models: enum cpu_idle_type, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleType {
    /// It is busy.
    Busy,
    /// It is idle.
    Idle,
    /// It is about to go idle.
    NewlyIdle,
}

/// What balancing asks of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TaskState {
    /// Runs at this moment.
    pub running: bool,
    /// Task clock of its CPU when its run time was last accounted, ns; 0 after a migration (until v6.1).
    pub exec_start: u64,
    /// A kernel thread bound to one CPU.
    pub per_cpu_kthread: bool,
    /// Under SCHED_IDLE.
    pub idle_policy: bool,
    /// The next or last buddy of its queue.
    pub buddy: bool,
    /// Blocked and still queued (v6.12 and later).
    pub delayed: bool,
}

/// Work done in a pass, for the cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Work {
    /// CPUs whose queues were read.
    pub cpus: u32,
    /// Tasks looked at in the busiest queue.
    pub tasks_seen: u32,
    /// Tasks moved.
    pub tasks_moved: u32,
    /// Were the CPU's blocked averages brought up to date?
    pub refreshed: bool,
}

impl Work {
    fn add(&mut self, other: Self) {
        self.cpus += other.cpus;
        self.tasks_seen += other.tasks_seen;
        self.tasks_moved += other.tasks_moved;
        self.refreshed |= other.refreshed;
    }
}

/// A request to the stopper of `src` to push the task that runs there to `dst`; executed with
/// [`Balancer::active_balance`] once the stopper runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveBalance {
    /// The CPU whose running task is to go.
    pub src: CpuId,
    /// The CPU that gets it.
    pub dst: CpuId,
}

/// The machine that is balanced.
///
/// The list of a CPU's tasks has a front and a back: a task goes to the front when it is enqueued and when it is picked, and
/// balancing takes from the back (`cfs_tasks` of the run queue).
pub trait BalanceView {
    /// Now, in jiffies.
    fn jiffies(&mut self) -> u64;

    /// Now, ns: the clock of idle times and decay.
    fn now_ns(&mut self) -> u64;

    /// The task clock of `cpu`, ns, as [`TaskState::exec_start`] is counted.
    fn clock_task_ns(&mut self, cpu: CpuId) -> u64;

    /// A CPU's part in the statistics. Values are as old as the queue's last update: an idle CPU's load does not decay until
    /// [`BalanceView::refresh`]. `idle` is [`BalanceView::idle`]; `h_nr` counts delayed tasks on v6.12 and not on v7.2.
    fn stats(&mut self, cpu: CpuId) -> CpuStats;

    /// Tasks on the run queue, of all classes.
    fn nr_running(&mut self, cpu: CpuId) -> u32;

    /// Does it run its idle task, with nothing queued and nothing on its wake list?
    ///
    /// Models: idle_cpu(), v5.5–v7.2.
    fn idle(&mut self, cpu: CpuId) -> bool;

    /// Has it runnable tasks, all under SCHED_IDLE?
    fn sched_idle(&mut self, cpu: CpuId) -> bool;

    /// Is a wake-up on its way on the wake list?
    fn pending(&mut self, cpu: CpuId) -> bool;

    /// Brings the averages of `cpu` (blocked ones too) up to date.
    ///
    /// Models: update_blocked_averages(), v5.5–v7.2.
    fn refresh(&mut self, cpu: CpuId);

    /// The fair task at the back of `cpu`'s list, the running one included.
    fn last_task(&mut self, cpu: CpuId) -> Option<EntityId>;

    /// The fair task that runs on `cpu`.
    fn running_task(&mut self, cpu: CpuId) -> Option<EntityId>;

    /// Puts the task at the front of `cpu`'s list.
    fn to_front(&mut self, cpu: CpuId, task: EntityId);

    /// What balancing asks of a task that is on `cpu`.
    fn task(&mut self, cpu: CpuId, task: EntityId) -> TaskState;

    /// May the task run on `cpu`?
    fn allows(&mut self, task: EntityId, cpu: CpuId) -> bool;

    /// `task_h_load()`.
    fn task_h_load(&mut self, task: EntityId) -> u64;

    /// `task_util_est()`.
    fn task_util(&mut self, task: EntityId) -> u64;

    /// Takes the task off `src`.
    fn detach(&mut self, src: CpuId, task: EntityId);

    /// Enqueues a detached task on `dst`, with its wake-up preemption check. Not always the CPU that balances: affinity may
    /// demand another one of its group.
    fn attach(&mut self, dst: CpuId, task: EntityId);

    /// How long so much work takes, ns. In the kernel this is measured; it decides whether the next pass is worth its time.
    fn work_ns(&mut self, work: Work) -> u64;

    /// Wakes the stopper of [`ActiveBalance::src`].
    fn start_active(&mut self, request: ActiveBalance);
}

/// The balancing rules of a policy on a machine, at work on its state.
pub struct Balancer<'a> {
    /// The rules.
    pub policy: &'a Policy,
    /// Where.
    pub machine: &'a Machine,
    /// What the kernel keeps from pass to pass.
    pub state: &'a mut BalanceState,
    /// The machine.
    pub view: &'a mut dyn BalanceView,
}
