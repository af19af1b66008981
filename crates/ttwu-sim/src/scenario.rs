//! All that a run needs, as a value: equal scenarios give equal outcomes.

use crate::Costs;
use ttwu_fair::{Kernel, Policy};
use ttwu_model::{CpuSet, NodeId, Topology};
use ttwu_workload::Workload;

/// A run, completely described.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the tasks do.
    pub workload: Workload,
    /// On which machine.
    pub topology: Topology,
    /// Under which scheduler.
    pub policy: Policy,
    /// What everything costs there.
    pub costs: Costs,
    /// The rest of the kernel and of the hardware.
    pub settings: Settings,
    /// Of the generator behind all draws.
    pub seed: u64,
    /// The run ends here whatever the workload says, ns of simulated time.
    pub until_ns: u64,
}

/// A switch of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// It acts.
    On,
    /// It does not.
    Off,
}

/// When a requested reschedule takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreemptionModel {
    /// PREEMPT_NONE: on the way back to user mode.
    None,
    /// PREEMPT_VOLUNTARY: also between the steps of a system call.
    Voluntary,
    /// PREEMPT: also inside the kernel, wherever no lock is held.
    Full,
    /// PREEMPT_LAZY: as `Full` for full requests; lazy ones wait for user mode or the next tick.
    Lazy,
}

impl PreemptionModel {
    /// What distributions mostly build `kernel` with: voluntary, from v7.2 on lazy.
    #[must_use]
    pub const fn of(kernel: Kernel) -> Self {
        match kernel {
            Kernel::V5_5
            | Kernel::V5_9
            | Kernel::V5_15
            | Kernel::V5_19
            | Kernel::V6_1
            | Kernel::Eevdf202304
            | Kernel::V6_6
            | Kernel::V6_12 => Self::Voluntary,
            Kernel::V7_2 => Self::Lazy,
        }
    }
}

/// How an idle CPU chooses its idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Governor {
    /// The deepest state whose target residency fits the predicted idle time: the next timer or, if less, a robust mean of the
    /// last eight idle spans, as the menu governor has it.
    Menu,
    /// Always the state of this number (0 polls).
    Fixed(u8),
}

/// Does an idle CPU watch its reschedule flag, so that a wake-up needs no interrupt?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Polling {
    /// As the machine does it: the cost `idle_monitors` says up to which state.
    Machine,
    /// Never: every remote wake-up of an idle CPU is an interrupt.
    Never,
}

/// Idle states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdleSettings {
    /// How a state is chosen.
    pub governor: Governor,
    /// No deeper than this state; `None` is no limit.
    pub deepest: Option<u8>,
    /// The idle spans that a CPU remembers at the start, ns, give or take a sixteenth: some experiments are bistable in it. `None`: none, the next timer
    /// decides alone.
    pub history_ns: Option<u64>,
    /// Does a remembered span count the time of coming out of the state? Kernels subtract what their table says that takes; where
    /// it takes longer in fact, the rest counts, and deep states keep themselves chosen.
    pub spans_count_exit: Switch,
    /// Does it poll?
    pub polling: Polling,
}

/// A core's speed follows its use: 1.25 times its busy fraction, sampled, falling at most half way a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frequency {
    /// The least speed, in thousandths of the greatest.
    pub min_permille: u32,
    /// Time between samples, ns.
    pub sample_ns: u64,
}

/// Short tasks pinned to every CPU: what a machine does beside the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Noise {
    /// How long one runs, ns.
    pub run_ns: u64,
    /// Least time between two runs, ns.
    pub sleep_ns_min: u64,
    /// Greatest, ns.
    pub sleep_ns_max: u64,
}

/// Where a task's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryPlacement {
    /// On the node where it runs.
    Local,
    /// All on one node: running elsewhere costs `remote_memory_permille`.
    Node(NodeId),
}

/// Do the ticks of all CPUs coincide?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TickSkew {
    /// They do, as by default.
    Coincide,
    /// They are spread evenly over a tick (`skew_tick=1`).
    Spread,
}

/// Kernel and hardware besides policy, topology and costs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// When reschedules take effect.
    pub preemption: PreemptionModel,
    /// Idle states.
    pub idle: IdleSettings,
    /// Speed of cores; `None`: always the greatest (performance governor).
    pub frequency: Option<Frequency>,
    /// What else runs.
    pub noise: Option<Noise>,
    /// Is the lock of a stream's wait queue held while its sleepers are woken? It is in reality; some effects rest on it alone.
    pub wait_queue_lock: Switch,
    /// Where memory is.
    pub memory: MemoryPlacement,
    /// Ticks.
    pub tick_skew: TickSkew,
    /// The CPUs that all tasks are confined to (`numactl`, `taskset`); `None`: all.
    pub allowed: Option<CpuSet>,
    /// A task that waits longer than this to run is reported as starved, ns.
    pub starved_ns: u64,
}

impl Settings {
    /// What an ordinary machine under `kernel` has.
    #[must_use]
    pub const fn of(kernel: Kernel) -> Self {
        Self {
            preemption: PreemptionModel::of(kernel),
            idle: IdleSettings {
                governor: Governor::Menu,
                deepest: None,
                history_ns: None,
                spans_count_exit: Switch::Off,
                polling: Polling::Machine,
            },
            frequency: None,
            noise: None,
            wait_queue_lock: Switch::On,
            memory: MemoryPlacement::Local,
            tick_skew: TickSkew::Coincide,
            allowed: None,
            starved_ns: 10_000_000_000,
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time, ns.
    pub now_ns: u64,
    /// Where it ends at the latest, ns.
    pub until_ns: u64,
    /// Scheduler events so far.
    pub events: u64,
}

/// Should a run go on?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Yes.
    Continue,
    /// No: end here and give what there is.
    Cancel,
}

/// What a run puts out besides its figures. Nothing here changes a result.
pub struct Options<'a> {
    /// Keep a trace?
    pub trace: Switch,
    /// Keep the table of decisions? Its rows point into the trace, if there is one.
    pub decisions: Switch,
    /// Called now and then (every 2^16 steps).
    pub progress: Option<&'a mut dyn FnMut(Progress) -> Control>,
}

impl Options<'_> {
    /// Figures only.
    #[must_use]
    pub const fn quiet() -> Self {
        Self { trace: Switch::Off, decisions: Switch::Off, progress: None }
    }

    /// With a trace and its decisions.
    #[must_use]
    pub const fn traced() -> Self {
        Self { trace: Switch::On, decisions: Switch::On, progress: None }
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("trace", &self.trace)
            .field("decisions", &self.decisions)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}
