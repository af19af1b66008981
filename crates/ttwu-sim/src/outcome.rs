//! What a run gives.

use crate::Counters;
use ttwu_fair::{Affine, Check, PreemptReason, Rule, ScanEnd};
use ttwu_model::{CpuId, Trace};
use ttwu_workload::{ObjectId, TaskRef};

/// How many samples a meter keeps: 4 million, 32 MiB.
pub const SAMPLES_MAX: usize = 1 << 22;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// As the workload says it ends.
    Completed,
    /// At the scenario's `until_ns`.
    TimeLimit,
    /// Nothing was left that could ever happen: all tasks wait for each other. Or one of them did what no program may.
    Stuck,
    /// The caller cancelled it.
    Cancelled,
}

/// A meter's reading, in the order of the workload's meters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeterValue {
    /// Every sample in the order of taking, ns; beyond [`SAMPLES_MAX`] a choice of so many.
    Samples(Vec<u64>),
    /// The sum; it stays at the greatest number rather than wrap.
    Count(u64),
    /// By CPU number.
    Cpus(Vec<u64>),
    /// By whole second since the start; as long as needed.
    Seconds(Vec<u64>),
}

/// A task that waited too long to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starved {
    /// The workload's task; `None` for a kernel thread or noise.
    pub task: Option<TaskRef>,
    /// Its number in the run (pid − 1000).
    pub index: u32,
    /// Its longest wait, ns.
    pub waited_ns: u64,
}

/// What a task waits for that will never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Sleeps at this object of the workload.
    Object(ObjectId),
    /// Spins at it.
    Spins(ObjectId),
    /// Sleeps until the task of this number in the run ends.
    End(u32),
    /// Released this lock, which it did not hold.
    Unlocks(ObjectId),
}

/// A task that can never go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The workload's task; `None` for a worker.
    pub task: Option<TaskRef>,
    /// Its number in the run (pid − 1000).
    pub index: u32,
    /// For what.
    pub what: WaitsFor,
}

/// Why a wake-up went where it went: what no tracepoint says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Index of the `sched_waking` (or fork) event in the trace's events; without a trace, the number of the decision.
    pub event: u64,
    /// When, ns.
    pub at_ns: u64,
    /// The CPU that decided.
    pub this_cpu: CpuId,
    /// The CPU of the wakee before.
    pub prev_cpu: CpuId,
    /// The CPU chosen.
    pub cpu: CpuId,
    /// The rule; `None` where the task was not placed (pinned, or still queued).
    pub rule: Option<Rule>,
    /// How the target was chosen.
    pub affine: Affine,
    /// The target.
    pub target: CpuId,
    /// The CPUs that were looked at, in order.
    pub checks: Vec<Check>,
    /// CPUs scanned.
    pub scanned: u32,
    /// How the scan ended.
    pub scan: ScanEnd,
    /// Was it activated through the target's wake list?
    pub wake_list: bool,
    /// Why it preempted or not; `None` where an idle CPU took it, or the run ended first.
    pub preempt: Option<PreemptReason>,
}

/// What a run gives.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// When, ns of simulated time.
    pub sim_ns: u64,
    /// State-changing scheduler events: wake-ups, enqueues, dequeues, switches, migrations, ticks, forks, exits, idle entries
    /// and exits, interrupts.
    pub events: u64,
    /// What happened how often.
    pub counters: Counters,
    /// The workload's own meters, in its order.
    pub meters: Vec<MeterValue>,
    /// What tracepoints would have said.
    pub trace: Option<Trace>,
    /// Why the wake-ups went where they went.
    pub decisions: Vec<Decision>,
    /// Tasks that waited longer than the scenario's bound.
    pub starved: Vec<Starved>,
    /// Who can never go on: all tasks of a run that is [`End::Stuck`]; of another one those that wait for their own end.
    pub stuck: Vec<Waiting>,
    /// Of everything that happened, in order: equal for equal scenarios on any machine.
    pub digest: u64,
}
