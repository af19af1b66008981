//! What hardware and kernel paths cost: named integers, each with unit, source and standing.
//!
//! A table of rows, not constants in the code: results hang on them, so that each must be findable, changeable from a scenario
//! and printable beside a result. Most are estimates; the experiments say which of them decide.

use crate::PRESETS;
use crate::machine::IdleState;

/// A cost, by name. Rows of [`COSTS`] document them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each row of COSTS documents its cost")]
pub enum Cost {
    Syscall,
    PipeWrite,
    PipeRead,
    SocketWrite,
    SocketRead,
    PipeLines,
    PipeFar,
    SocketLines,
    SocketFar,
    SocketCold,
    Loopback,
    CopyKib,
    FutexWait,
    FutexWake,
    LockFree,
    Block,
    TimerSet,
    WakeBase,
    ScanCpu,
    EnqueueLocal,
    EnqueueRemote,
    LinesBack,
    ListPush,
    LinesLlc,
    LinesNode,
    LinesCluster,
    IpiSend,
    IpiDelivery,
    IpiDeliveryNode,
    MonitorWake,
    IrqEntry,
    IrqExit,
    Softirq,
    TimerHandler,
    Schedule,
    SwitchSame,
    SwitchOther,
    Tick,
    RefillCluster,
    RefillLlc,
    RefillNode,
    RefillRemote,
    RefillFlushed,
    RefillKibMax,
    RemoteMemory,
    SmtThroughput,
    NewidleCpu,
    MoveTask,
    Fork,
    Exit,
    Yield,
    QueueWork,
    WorkItem,
    Submit,
    DeviceHandler,
    AffinityMove,
    IdleEnter,
    IdleMonitors,
    Idle0Exit,
    Idle1Exit,
    Idle1Residency,
    Idle2Exit,
    Idle2Residency,
    Idle3Exit,
    Idle3Residency,
}

/// How far to trust a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// Somebody's judgement.
    Estimate,
    /// Read from a table, a data sheet or a measurement.
    Measured,
    /// Chosen so that a result comes out: what it was fitted on cannot be predicted with it.
    Fitted,
}

impl Basis {
    /// One word for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Measured => "measured",
            Self::Fitted => "fitted",
        }
    }
}

/// A cost's row.
#[derive(Clone, Copy, Debug)]
pub struct CostRow {
    /// Which.
    pub cost: Cost,
    /// Its name in scenario files; ends in its unit.
    pub name: &'static str,
    /// `ns`, `ns/KiB`, `permille`, `KiB` or `states`.
    pub unit: &'static str,
    /// The value of a Skylake or Cascade Lake server, the machine that most experiments ran on.
    pub value: u64,
    /// How far to trust it.
    pub basis: Basis,
    /// Where it comes from.
    pub source: &'static str,
    /// What it is.
    pub doc: &'static str,
}

const fn estimate(
    cost: Cost,
    name: &'static str,
    unit: &'static str,
    value: u64,
    source: &'static str,
    doc: &'static str,
) -> CostRow {
    CostRow { cost, name, unit, value, basis: Basis::Estimate, source, doc }
}

const fn measured(
    cost: Cost,
    name: &'static str,
    unit: &'static str,
    value: u64,
    source: &'static str,
    doc: &'static str,
) -> CostRow {
    CostRow { cost, name, unit, value, basis: Basis::Measured, source, doc }
}

use Cost as C;

/// Of rows that split what other rows' estimates hold: presets, whose calls were judged as a whole, leave them at 0.
const LUMPED: &str = "within the estimates of the calls themselves, which were judged as a whole; `ttwu calibrate` measures it";

/// All costs, in the order of [`Cost`].
pub const COSTS: &[CostRow] = &[
    estimate(
        C::Syscall,
        "syscall_ns",
        "ns",
        150,
        "entry and exit with mitigations, servers of 2018-2022",
        "entering and leaving the kernel for one system call",
    ),
    estimate(
        C::PipeWrite,
        "pipe_write_ns",
        "ns",
        250,
        "assumed, not measured: 0.3-0.5 us a 100-byte call, system call included",
        "a pipe write beside the system call and the bytes",
    ),
    estimate(C::PipeRead, "pipe_read_ns", "ns", 250, "as pipe_write_ns", "a pipe read"),
    estimate(
        C::SocketWrite,
        "socket_write_ns",
        "ns",
        500,
        "buffer allocation and queueing",
        "a write to a unix socket",
    ),
    estimate(C::SocketRead, "socket_read_ns", "ns", 400, "as socket_write_ns", "a read from one"),
    estimate(
        C::PipeLines,
        "pipe_lines_ns",
        "ns",
        0,
        LUMPED,
        "a call on a pipe that another CPU used last: its lines, whatever the call carries",
    ),
    estimate(
        C::PipeFar,
        "pipe_far_ns",
        "ns",
        0,
        LUMPED,
        "a pipe read of what another CPU wrote, or write where another CPU read: the bytes' lines",
    ),
    estimate(C::SocketLines, "socket_lines_ns", "ns", 0, LUMPED, "as pipe_lines_ns, of a unix socket"),
    estimate(
        C::SocketFar,
        "socket_far_ns",
        "ns",
        0,
        LUMPED,
        "a socket read of a buffer that another CPU allocated, or write where another CPU frees them",
    ),
    estimate(
        C::SocketCold,
        "socket_cold_ns",
        "ns",
        0,
        LUMPED,
        "a socket call on a message out of private caches (refill_kib_max), since more are queued than fit",
    ),
    estimate(
        C::Loopback,
        "loopback_ns",
        "ns",
        2500,
        "TCP through the loopback device, netperf's 12 us a transaction",
        "network stack of a write over loopback, up to the receiver's socket",
    ),
    estimate(C::CopyKib, "copy_ns_per_kib", "ns/KiB", 60, "16 GB/s", "copying between user and kernel"),
    estimate(
        C::FutexWait,
        "futex_wait_ns",
        "ns",
        250,
        "hash and bucket lock",
        "a futex wait beside the system call",
    ),
    estimate(
        C::FutexWake,
        "futex_wake_ns",
        "ns",
        250,
        "as futex_wait_ns",
        "a futex wake beside the system call and the wake-up",
    ),
    estimate(
        C::LockFree,
        "lock_ns",
        "ns",
        20,
        "one atomic operation",
        "taking or releasing an uncontended lock",
    ),
    estimate(
        C::Block,
        "block_ns",
        "ns",
        400,
        "assumed, not measured: system call and block path of a sleep 0.5-1 us",
        "going to sleep, from the empty buffer to the run queue",
    ),
    estimate(C::TimerSet, "timer_set_ns", "ns", 200, "arming a high-resolution timer", "arming a timer"),
    estimate(
        C::WakeBase,
        "wake_base_ns",
        "ns",
        350,
        "assumed, not measured: 0.3-0.5 us",
        "a wake-up up to the placement",
    ),
    estimate(
        C::ScanCpu,
        "scan_cpu_ns",
        "ns",
        30,
        "assumed, not measured: 20-40 ns",
        "looking at one CPU of the LLC",
    ),
    estimate(
        C::EnqueueLocal,
        "enqueue_local_ns",
        "ns",
        300,
        "assumed, not measured",
        "queueing on one's own run queue",
    ),
    estimate(
        C::EnqueueRemote,
        "enqueue_remote_ns",
        "ns",
        700,
        "assumed, not measured: 0.6-0.8 us; decides the wake-list experiments",
        "queueing on another CPU's run queue, same LLC",
    ),
    estimate(
        C::LinesBack,
        "lines_back_ns",
        "ns",
        0,
        "within switch_same_ns and schedule_ns, which are lumped estimates; `ttwu calibrate` measures it",
        "switching to a task that another CPU woke: the lines of queue and task that it took",
    ),
    estimate(
        C::ListPush,
        "list_push_ns",
        "ns",
        100,
        "one atomic operation on a remote line",
        "putting a task on another CPU's wake list",
    ),
    estimate(
        C::LinesLlc,
        "lines_llc_ns",
        "ns",
        1500,
        "assumed, not measured: 1-2 us from CCX to CCX",
        "further lines of a wake-up into another LLC of the node",
    ),
    estimate(
        C::LinesNode,
        "lines_node_ns",
        "ns",
        2000,
        "assumed, not measured: 120-150 ns a line to the other socket",
        "further lines of a wake-up into another node",
    ),
    estimate(
        C::LinesCluster,
        "lines_cluster_ns",
        "ns",
        0,
        "only where clusters exist",
        "further lines of a wake-up into another cluster of the LLC",
    ),
    estimate(
        C::IpiSend,
        "ipi_send_ns",
        "ns",
        150,
        "assumed, not measured: 0.1-0.2 us",
        "sending an interrupt to another CPU",
    ),
    estimate(
        C::IpiDelivery,
        "ipi_delivery_ns",
        "ns",
        600,
        "assumed, not measured: 0.5-1 us",
        "until it arrives, same node",
    ),
    estimate(
        C::IpiDeliveryNode,
        "ipi_delivery_node_ns",
        "ns",
        1500,
        "assumed, not measured: 1-2 us",
        "until it arrives, other node",
    ),
    estimate(
        C::MonitorWake,
        "monitor_wake_ns",
        "ns",
        100,
        "one line transfer",
        "until a polling CPU sees its flag",
    ),
    estimate(
        C::IrqEntry,
        "irq_entry_ns",
        "ns",
        350,
        "assumed, not measured: entry and exit 0.5-1 us",
        "entering an interrupt",
    ),
    estimate(C::IrqExit, "irq_exit_ns", "ns", 250, "as irq_entry_ns", "leaving it"),
    estimate(C::Softirq, "softirq_ns", "ns", 250, "dispatch", "entering and leaving softirq"),
    estimate(
        C::TimerHandler,
        "timer_handler_ns",
        "ns",
        300,
        "hrtimer_interrupt without the callback's wake-up",
        "handling an expired timer",
    ),
    estimate(C::Schedule, "schedule_ns", "ns", 250, "pick and PELT", "choosing the next task"),
    estimate(
        C::SwitchSame,
        "switch_same_ns",
        "ns",
        700,
        "assumed, not measured: 1.0 us with the choice",
        "switching between threads of a process, or to and from idle",
    ),
    estimate(
        C::SwitchOther,
        "switch_other_ns",
        "ns",
        1300,
        "assumed, not measured: 1.5-2 us with the choice",
        "switching between processes",
    ),
    estimate(C::Tick, "tick_ns", "ns", 1500, "assumed, not measured: 1-3 us", "a tick"),
    estimate(
        C::RefillCluster,
        "refill_cluster_ns_per_kib",
        "ns/KiB",
        30,
        "assumed, not measured: 1-2 us for some 50 KiB",
        "refilling caches after a move within a cluster",
    ),
    estimate(
        C::RefillLlc,
        "refill_llc_ns_per_kib",
        "ns/KiB",
        80,
        "assumed, not measured: 3-5 us",
        "after a move within the LLC",
    ),
    estimate(
        C::RefillNode,
        "refill_node_ns_per_kib",
        "ns/KiB",
        300,
        "assumed, not measured: 10-20 us",
        "after a move to another LLC of the node",
    ),
    estimate(
        C::RefillRemote,
        "refill_remote_ns_per_kib",
        "ns/KiB",
        700,
        "assumed, not measured: 20-50 us",
        "after a move to another node",
    ),
    estimate(
        C::RefillFlushed,
        "refill_flushed_ns_per_kib",
        "ns/KiB",
        60,
        "L1 and L2 from the LLC",
        "on the same CPU after an idle state that flushed its caches",
    ),
    estimate(
        C::RefillKibMax,
        "refill_kib_max",
        "KiB",
        1024,
        "private caches",
        "what can be lost at most by a move inside the LLC",
    ),
    estimate(
        C::RemoteMemory,
        "remote_memory_permille",
        "permille",
        1250,
        "memory-bound share of ordinary code",
        "time of work whose memory is on another node",
    ),
    estimate(
        C::SmtThroughput,
        "smt_permille",
        "permille",
        1500,
        "assumed, not measured: 1.3-1.6",
        "throughput of a core with two busy threads, of that with one",
    ),
    estimate(
        C::NewidleCpu,
        "balance_cpu_ns",
        "ns",
        70,
        "assumed, not measured: 50-100 ns",
        "looking at one CPU when balancing",
    ),
    estimate(
        C::MoveTask,
        "move_task_ns",
        "ns",
        1500,
        "assumed, not measured: 1-2 us",
        "moving one task when balancing",
    ),
    estimate(
        C::Fork,
        "fork_ns",
        "ns",
        30_000,
        "pthread_create to fork of a small process",
        "creating a task",
    ),
    estimate(C::Exit, "exit_ns", "ns", 15_000, "thread exit", "ending a task"),
    estimate(C::Yield, "yield_ns", "ns", 150, "sched_yield beside system call and switch", "yielding"),
    estimate(
        C::QueueWork,
        "queue_work_ns",
        "ns",
        200,
        "pool lock and list",
        "queueing a work item, beside the wake-up",
    ),
    estimate(C::WorkItem, "work_item_ns", "ns", 200, "worker's loop", "taking a work item out of the pool"),
    estimate(C::Submit, "submit_ns", "ns", 500, "descriptor and doorbell", "handing a request to a device"),
    estimate(
        C::DeviceHandler,
        "device_handler_ns",
        "ns",
        500,
        "status read over the bus",
        "a device's interrupt handler, beside its program",
    ),
    estimate(
        C::AffinityMove,
        "stop_migrate_ns",
        "ns",
        4000,
        "stopper wake-up and two switches",
        "moving a running task by the stopper",
    ),
    estimate(
        C::IdleEnter,
        "idle_enter_ns",
        "ns",
        300,
        "governor and tick bookkeeping",
        "going into an idle state",
    ),
    measured(
        C::IdleMonitors,
        "idle_monitors",
        "states",
        99,
        "x86 mwait monitors the flag in every state; arm64 never",
        "idle states below this number see a wake-up without an interrupt; 0 none",
    ),
    measured(
        C::Idle0Exit,
        "idle_poll_exit_ns",
        "ns",
        0,
        "kernel's poll state",
        "exit latency of the polling state",
    ),
    measured(
        C::Idle1Exit,
        "idle_c1_exit_ns",
        "ns",
        2000,
        "intel_idle table, Skylake server",
        "exit latency of state 1",
    ),
    measured(
        C::Idle1Residency,
        "idle_c1_residency_ns",
        "ns",
        2000,
        "intel_idle table, Skylake server",
        "target residency of state 1",
    ),
    measured(
        C::Idle2Exit,
        "idle_c2_exit_ns",
        "ns",
        10_000,
        "intel_idle table, Skylake server (C1E)",
        "exit latency of state 2; with residency 0 there is none",
    ),
    measured(
        C::Idle2Residency,
        "idle_c2_residency_ns",
        "ns",
        20_000,
        "intel_idle table, Skylake server (C1E)",
        "target residency of state 2",
    ),
    measured(
        C::Idle3Exit,
        "idle_c3_exit_ns",
        "ns",
        133_000,
        "intel_idle table, Skylake server (C6)",
        "exit latency of state 3",
    ),
    measured(
        C::Idle3Residency,
        "idle_c3_residency_ns",
        "ns",
        600_000,
        "intel_idle table, Skylake server (C6)",
        "target residency of state 3; flushes private caches",
    ),
];

const COUNT: usize = COSTS.len();

/// The costs of a machine: every row's value, and which of them were changed by whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Costs {
    preset: &'static str,
    values: [u64; COUNT],
    basis: [Basis; COUNT],
    changed: Vec<Cost>,
}

/// Why a change of costs is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// No cost of that name.
    #[error("unknown cost `{name}`{}", nearest.map_or(String::new(), |near| format!("; did you mean `{near}`?")))]
    UnknownCost {
        /// As given.
        name: String,
        /// The nearest known name.
        nearest: Option<&'static str>,
    },
    /// No such machine.
    #[error("no costs for a machine `{name}`; known: {}", PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", "))]
    UnknownPreset {
        /// As given.
        name: String,
    },
    /// A value out of range.
    #[error("{name} cannot be {value}; it must be at most {max}")]
    TooLarge {
        /// The cost.
        name: &'static str,
        /// As given.
        value: u64,
        /// The greatest allowed.
        max: u64,
    },
    /// A scale by nothing.
    #[error("{name} cannot be scaled by {num}/{den}")]
    BadScale {
        /// The cost.
        name: &'static str,
        /// Numerator.
        num: u64,
        /// Denominator.
        den: u64,
    },
}

/// A second: no single step costs more.
const VALUE_MAX: u64 = 1_000_000_000;

impl Costs {
    /// The rows' own values: a Skylake or Cascade Lake server.
    #[must_use]
    pub fn skylake_server() -> Self {
        let mut values = [0; COUNT];
        let mut basis = [Basis::Estimate; COUNT];
        for (index, row) in COSTS.iter().enumerate() {
            (values[index], basis[index]) = (row.value, row.basis);
        }
        Self { preset: "skylake-server", values, basis, changed: Vec::new() }
    }

    /// The costs of a machine family in [`PRESETS`].
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn preset(name: &str) -> Result<Self, CostError> {
        let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
            return Err(CostError::UnknownPreset { name: name.to_owned() });
        };
        let mut costs = Self { preset: preset.name, ..Self::skylake_server() };
        for &(cost, value, basis, _) in preset.values {
            costs.values[cost as usize] = value;
            costs.basis[cost as usize] = basis;
        }
        Ok(costs)
    }

    /// The preset that this began as.
    #[must_use]
    pub const fn preset_name(&self) -> &'static str {
        self.preset
    }

    /// A value.
    #[must_use]
    pub const fn get(&self, cost: Cost) -> u64 {
        self.values[cost as usize]
    }

    /// How far to trust it.
    #[must_use]
    pub const fn basis(&self, cost: Cost) -> Basis {
        self.basis[cost as usize]
    }

    /// The costs that were changed since the preset, each once, in the order of the table.
    #[must_use]
    pub fn changed(&self) -> &[Cost] {
        &self.changed
    }

    /// The cost of this name.
    ///
    /// # Errors
    /// When there is none; with the nearest one that there is.
    pub fn find(name: &str) -> Result<&'static CostRow, CostError> {
        COSTS.iter().find(|row| row.name == name).ok_or_else(|| {
            let distances = COSTS.iter().map(|row| (strsim::levenshtein(row.name, name), row.name));
            let near = distances.min().filter(|&(distance, known)| distance <= known.len() / 3 + 1);
            CostError::UnknownCost { name: name.to_owned(), nearest: near.map(|(_, known)| known) }
        })
    }

    /// Sets a value, by name.
    ///
    /// # Errors
    /// When the name is unknown or the value above a second.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), CostError> {
        let row = Self::find(name)?;
        if value > VALUE_MAX {
            return Err(CostError::TooLarge { name: row.name, value, max: VALUE_MAX });
        }
        self.put(row.cost, value, self.basis(row.cost));
        Ok(())
    }

    /// Multiplies a value by a fraction, rounded down.
    ///
    /// # Errors
    /// As [`Costs::set`], and for a denominator of 0.
    pub fn scale(&mut self, name: &str, num: u64, den: u64) -> Result<(), CostError> {
        let row = Self::find(name)?;
        let scaled = (u128::from(self.get(row.cost)) * u128::from(num)).checked_div(u128::from(den));
        let Some(value) = scaled.and_then(|value| u64::try_from(value).ok()) else {
            return Err(CostError::BadScale { name: row.name, num, den });
        };
        self.set(name, value)
    }

    /// Sets a value with its standing, as calibration does.
    pub fn put(&mut self, cost: Cost, value: u64, basis: Basis) {
        self.values[cost as usize] = value;
        self.basis[cost as usize] = basis;
        if let Err(at) = self.changed.binary_search(&cost) {
            self.changed.insert(at, cost);
        }
    }

    /// The idle states that the machine has, shallowest first.
    pub(crate) fn idle_states(&self) -> Vec<IdleState> {
        let state =
            |exit, residency| IdleState { exit_ns: self.get(exit), residency_ns: self.get(residency) };
        let mut states = vec![IdleState { exit_ns: self.get(C::Idle0Exit), residency_ns: 0 }];
        for deeper in [
            state(C::Idle1Exit, C::Idle1Residency),
            state(C::Idle2Exit, C::Idle2Residency),
            state(C::Idle3Exit, C::Idle3Residency),
        ] {
            if deeper.residency_ns > 0 {
                states.push(deeper);
            }
        }
        states
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_enum_with_names_of_their_own() {
        for (index, row) in COSTS.iter().enumerate() {
            assert_eq!(row.cost as usize, index, "{}", row.name);
            assert_eq!(COSTS.iter().filter(|other| other.name == row.name).count(), 1, "{}", row.name);
        }
    }

    #[test]
    fn names_are_checked_and_suggested() {
        let mut costs = Costs::skylake_server();
        costs.set("ipi_delivery_ns", 0).unwrap();
        costs.scale("wake_base_ns", 3, 2).unwrap();
        assert_eq!((costs.get(Cost::IpiDelivery), costs.get(Cost::WakeBase)), (0, 525));
        assert_eq!(costs.changed(), [Cost::WakeBase, Cost::IpiDelivery]);
        assert_eq!(
            costs.set("ipi_delivery", 0).unwrap_err().to_string(),
            "unknown cost `ipi_delivery`; did you mean `ipi_delivery_ns`?"
        );
        assert!(costs.set("ipi_send_ns", 2_000_000_000).is_err());
        assert!(costs.scale("ipi_send_ns", 1, 0).is_err());
        assert!(Costs::preset("z80").unwrap_err().to_string().contains("skylake-server"));
    }

    #[test]
    fn every_preset_reads() {
        for preset in PRESETS {
            let costs = Costs::preset(preset.name).unwrap();
            assert_eq!(costs.preset_name(), preset.name);
            let states = costs.idle_states();
            assert!(states.len() <= 4);
            assert!(states.is_sorted_by_key(|state| state.residency_ns), "{}", preset.name);
        }
        assert_eq!(Costs::preset("skylake-server").unwrap(), Costs::skylake_server());
    }
}
