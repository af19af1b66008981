//! Costs of this machine from small native measurements.
//!
//! The measurements come from outside (`ttwu-host`); here are the equations that they determine costs by. Each says what a
//! micro-benchmark spends in terms of the simulator's steps, solved for the one cost that is not known yet, so that simulating
//! the same micro-benchmark gives the measured time back ([`simulated_round_trip`] checks that). No figure of a benchmark that
//! is later compared is used.
//!
//! An interval is that of the medians (order statistics), carried through the equations: each median in turn is put to either
//! end of its interval, and the differences add as squares. That takes them as independent, which separate runs are.
//!
//! What this does not do: cache refills, balancing, fork, devices, deep idle states. Those keep the preset's values, marked
//! so. Two costs that always occur together are told apart only by the preset's proportion; sources say where.

mod equations;
mod round_trip;

pub use equations::ABOUT as EQUATIONS;
pub use round_trip::{RoundTripError, simulated_round_trip};

use std::collections::BTreeMap;
use ttwu_sim::{Basis, COSTS, Cost, CostRow, Costs};
use ttwu_stats::{Interval, median_interval};

/// What is measured natively; each is ns of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measurement {
    /// Reading the clock.
    ClockRead,
    /// A system call that does nothing.
    SystemCall,
    /// A byte into a pipe and out again, one thread.
    PipeByte,
    /// As many as [`PAGE_BYTES`].
    PipePage,
    /// A byte into a unix stream socket and out again, one thread.
    SocketByte,
    /// How much dearer a call on a pipe is (mean of write and read) when the other end is used on another CPU of the LLC, with
    /// [`MESSAGE_BYTES`] a visit.
    PipeFar,
    /// As [`Measurement::PipeFar`], for each of [`FAR_MESSAGES`] messages a visit.
    PipeFarMany,
    /// As [`Measurement::PipeFar`], of a unix stream socket.
    SocketFar,
    /// As [`Measurement::PipeFarMany`], of a unix stream socket.
    SocketFarMany,
    /// A call on a unix stream socket (mean of write and read) where few messages are queued.
    SocketFew,
    /// The same where [`QUEUED_BYTES`] are queued by the same CPU.
    SocketMany,
    /// A futex wake without sleepers.
    FutexWakeNobody,
    /// A futex wait that returns at once.
    FutexWaitNot,
    /// `sched_yield` alone on a CPU.
    YieldAlone,
    /// One switch of two threads that yield to each other, with its call.
    YieldSwitch,
    /// A futex wake of a sleeper on the same CPU, for the waker.
    FutexWakeSameCpu,
    /// A futex wake of a sleeper on an idle CPU of the same LLC, for the waker.
    FutexWakeOtherCpu,
    /// From before that wake until the sleeper runs.
    FutexLatencyOtherCpu,
    /// A futex wake of a sleeper on the same CPU where the running task does not pause before, for the waker.
    BusyWakeNear,
    /// The same by a task on another CPU of the LLC.
    BusyWakeFar,
    /// From when the running task gives way to one that its own CPU woke, until it runs again.
    BusyBackNear,
    /// The same where another CPU woke.
    BusyBackFar,
    /// A pipe round trip of two threads on one CPU.
    PipeSameCpu,
    /// A pipe round trip of two processes on one CPU.
    PipeProcesses,
    /// A pipe round trip between SMT siblings.
    PipeSmt,
    /// A pipe round trip between two cores of an LLC (or of a node, where no two share one).
    PipeOtherCpu,
    /// A pipe round trip between two LLCs of a node.
    PipeOtherLlc,
    /// A pipe round trip between nodes.
    PipeOtherNode,
    /// How late a timer's sleeper runs on an idle CPU.
    TimerLate,
    /// A cache line's way between two cores of an LLC.
    Line,
    /// A cache line's way between two LLCs of a node.
    LineOtherLlc,
    /// A cache line's way between nodes.
    LineOtherNode,
}

/// Bytes of [`Measurement::PipePage`].
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a message in [`Measurement::PipeFar`] and its kin.
pub const MESSAGE_BYTES: usize = 100;
/// Sockets of [`Measurement::SocketMany`].
pub const QUEUED_SOCKETS: usize = 80;
/// Messages in each of them, [`MESSAGE_BYTES`] each.
pub const QUEUED_MESSAGES: usize = 200;
/// Memory that [`Measurement::SocketMany`] queues: the bytes rounded up by the allocator, and a buffer's own, as the simulator
/// counts them.
pub const QUEUED_BYTES: usize = QUEUED_SOCKETS * QUEUED_MESSAGES * (256 + 576);
/// Messages a visit in [`Measurement::PipeFarMany`] and [`Measurement::SocketFarMany`].
pub const FAR_MESSAGES: usize = 8;

impl Measurement {
    /// All, in order.
    pub const ALL: [Self; 32] = [
        Self::ClockRead,
        Self::SystemCall,
        Self::PipeByte,
        Self::PipePage,
        Self::SocketByte,
        Self::PipeFar,
        Self::PipeFarMany,
        Self::SocketFar,
        Self::SocketFarMany,
        Self::SocketFew,
        Self::SocketMany,
        Self::FutexWakeNobody,
        Self::FutexWaitNot,
        Self::YieldAlone,
        Self::YieldSwitch,
        Self::FutexWakeSameCpu,
        Self::FutexWakeOtherCpu,
        Self::FutexLatencyOtherCpu,
        Self::BusyWakeNear,
        Self::BusyWakeFar,
        Self::BusyBackNear,
        Self::BusyBackFar,
        Self::PipeSameCpu,
        Self::PipeProcesses,
        Self::PipeSmt,
        Self::PipeOtherCpu,
        Self::PipeOtherLlc,
        Self::PipeOtherNode,
        Self::TimerLate,
        Self::Line,
        Self::LineOtherLlc,
        Self::LineOtherNode,
    ];

    /// Its name in equations and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClockRead => "clock_read",
            Self::SystemCall => "system_call",
            Self::PipeByte => "pipe_byte",
            Self::PipePage => "pipe_page",
            Self::SocketByte => "socket_byte",
            Self::PipeFar => "pipe_far",
            Self::PipeFarMany => "pipe_far_many",
            Self::SocketFar => "socket_far",
            Self::SocketFarMany => "socket_far_many",
            Self::SocketFew => "socket_few",
            Self::SocketMany => "socket_many",
            Self::FutexWakeNobody => "futex_wake_nobody",
            Self::FutexWaitNot => "futex_wait_not",
            Self::YieldAlone => "yield_alone",
            Self::YieldSwitch => "yield_switch",
            Self::FutexWakeSameCpu => "futex_wake_same_cpu",
            Self::FutexWakeOtherCpu => "futex_wake_other_cpu",
            Self::FutexLatencyOtherCpu => "futex_latency_other_cpu",
            Self::BusyWakeNear => "busy_wake_near",
            Self::BusyWakeFar => "busy_wake_far",
            Self::BusyBackNear => "busy_back_near",
            Self::BusyBackFar => "busy_back_far",
            Self::PipeSameCpu => "pipe_same_cpu",
            Self::PipeProcesses => "pipe_processes",
            Self::PipeSmt => "pipe_smt",
            Self::PipeOtherCpu => "pipe_other_cpu",
            Self::PipeOtherLlc => "pipe_other_llc",
            Self::PipeOtherNode => "pipe_other_node",
            Self::TimerLate => "timer_late",
            Self::Line => "line",
            Self::LineOtherLlc => "line_other_llc",
            Self::LineOtherNode => "line_other_node",
        }
    }
}

/// Samples by measurement. What could not be measured is not in it, and why is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    samples: BTreeMap<Measurement, Vec<u64>>,
    missing: BTreeMap<Measurement, String>,
}

impl Observed {
    /// Of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds samples to those that are there (of an earlier round); fewer than six have no interval and count as missing.
    pub fn put(&mut self, what: Measurement, samples: Vec<u64>) {
        if samples.len() < 6 {
            self.miss(what, format!("only {} samples", samples.len()));
            return;
        }
        self.samples.entry(what).or_default().extend(samples);
    }

    /// Says why there are none.
    pub fn miss(&mut self, what: Measurement, why: impl Into<String>) {
        self.missing.insert(what, why.into());
    }

    /// The median with its interval, ns.
    #[must_use]
    pub fn median(&self, what: Measurement) -> Option<Interval> {
        let samples: Vec<f64> = self.samples.get(&what)?.iter().map(|&ns| ns as f64).collect();
        median_interval(&samples)
    }

    /// How many samples.
    #[must_use]
    pub fn count(&self, what: Measurement) -> usize {
        self.samples.get(&what).map_or(0, Vec::len)
    }

    /// Why there are none.
    #[must_use]
    pub fn why_missing(&self, what: Measurement) -> Option<&str> {
        self.missing.get(&what).map(String::as_str)
    }
}

/// One cost after calibration.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// Its row.
    pub row: &'static CostRow,
    /// Its value, in the row's unit.
    pub value: u64,
    /// The 95 % interval; `None` where it was not measured or is not determined.
    pub interval: Option<(u64, u64)>,
    /// It was to be solved for, but what the equation leaves for it is below 0: it keeps the preset's value.
    pub not_determined: bool,
    /// How far to trust it.
    pub basis: Basis,
    /// The equation, or that it was not measured and why.
    pub source: String,
}

/// All costs of a machine, measured where possible.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Every cost, in the order of [`COSTS`].
    pub rows: Vec<Calibrated>,
    /// The same as the simulator takes them.
    pub costs: Costs,
}

/// Solves the equations; what they do not determine keeps the value in `base`.
///
/// Costs that `facts` names were read, not measured (idle states from the kernel's table), with their source; equations
/// take them as given.
#[must_use]
pub fn calibrate(observed: &Observed, base: &Costs, facts: &[(Cost, u64, &str)]) -> Calibration {
    let mut costs = base.clone();
    for &(cost, value, _) in facts {
        costs.put(cost, value, Basis::Measured);
    }
    let given = costs.clone();
    let known: Vec<Cost> = facts.iter().map(|fact| fact.0).collect();
    let medians: BTreeMap<Measurement, Interval> =
        Measurement::ALL.iter().filter_map(|&what| Some((what, observed.median(what)?))).collect();
    let solve = |moved: Option<(Measurement, f64)>, rejected: Option<&equations::Rejected>| {
        let value = |what: Measurement| match moved {
            Some((which, value)) if which == what => Some(value),
            Some(_) | None => medians.get(&what).map(|interval| interval.estimate),
        };
        equations::solve(&value, &given, &known, rejected)
    };
    let solution = solve(None, None);
    let solved_with = |what: Measurement, end: f64| solve(Some((what, end)), Some(&solution.rejected)).solved;
    let spread = |cost: Cost, value: f64| {
        let (mut below, mut above) = (0.0_f64, 0.0_f64);
        for (&what, interval) in &medians {
            for end in [interval.low, interval.high] {
                let moved = solved_with(what, end).get(&cost).map_or(0.0, |solved| solved.value - value);
                let side = if moved < 0.0 { &mut below } else { &mut above };
                *side += moved * moved;
            }
        }
        ((value - below.sqrt()).max(0.0), value + above.sqrt())
    };
    let mut rows = Vec::new();
    for row in COSTS {
        let fact = facts.iter().find(|fact| fact.0 == row.cost);
        let calibrated = match (solution.solved.get(&row.cost), fact) {
            (_, Some(&(_, value, source))) => Calibrated {
                row,
                value,
                interval: None,
                not_determined: false,
                basis: Basis::Measured,
                source: source.to_owned(),
            },
            (Some(solved), None) => {
                let (low, high) = spread(row.cost, solved.value);
                let interval = Some((low.floor() as u64, high.ceil() as u64));
                let value = solved.value.round() as u64;
                Calibrated {
                    row,
                    value,
                    interval,
                    not_determined: false,
                    basis: solved.basis,
                    source: solved.source.clone(),
                }
            }
            (None, None) => {
                let equation = solution.not_determined(row.cost);
                let why = match equation {
                    Some(equation) => format!("not determined: the remainder of {equation} is below 0"),
                    None => equations::needs(row.cost)
                        .iter()
                        .find_map(|&what| observed.why_missing(what))
                        .map_or("not measured".to_owned(), |why| format!("not measured ({why})")),
                };
                Calibrated {
                    row,
                    value: base.get(row.cost),
                    interval: None,
                    not_determined: equation.is_some(),
                    basis: base.basis(row.cost),
                    source: format!("{why}: default of {}", base.preset_name()),
                }
            }
        };
        if solution.solved.contains_key(&row.cost) && fact.is_none() {
            costs.put(row.cost, calibrated.value, calibrated.basis);
        }
        rows.push(calibrated);
    }
    Calibration { rows, costs }
}

#[cfg(test)]
mod tests;
