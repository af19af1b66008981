//! What makes a run: the simulator today, a machine or a virtual machine later.

use crate::metrics::{Metric, counters, rows};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use ttwu_sim::{Control, End, Options, Outcome, Scenario, Switch};

/// A wish to end early, shared by whoever waits and whoever works.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// Nobody wishes it yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Ends runs that have begun as soon as they notice; no other begins.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Was it wished?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was measured in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// How the run ended.
    pub end: End,
    /// When, ns of its own time.
    pub sim_ns: u64,
    /// Scheduler events.
    pub events: u64,
    /// Of everything that happened; equal for equal scenarios.
    pub digest: u64,
    /// The workload's own results, in the benchmark's units.
    pub rows: Vec<Metric>,
    /// What happened how often: the material for *why*.
    pub counters: Vec<Metric>,
}

/// Why a run gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It was cancelled before its end.
    #[error("cancelled")]
    Cancelled,
    /// The simulator found itself at fault.
    #[error("the run with seed {seed} failed: {message}")]
    Panicked {
        /// The run's seed.
        seed: u64,
        /// What the assertion said.
        message: String,
    },
    /// All tasks wait for each other: a fault of the workload, or of the model.
    #[error("the run with seed {seed} is stuck after {sim_ns} ns: all tasks wait for each other")]
    Stuck {
        /// The run's seed.
        seed: u64,
        /// When, ns.
        sim_ns: u64,
    },
}

/// What makes a run of a scenario. Equal scenarios must give equal results.
pub trait Executor: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Makes one run.
    ///
    /// # Errors
    /// When there is no result.
    fn run(&self, scenario: &Scenario, cancel: &Cancel) -> Result<Measured, RunError>;
}

/// The simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Executor for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(&self, scenario: &Scenario, cancel: &Cancel) -> Result<Measured, RunError> {
        let outcome = simulate(scenario, cancel)?;
        Ok(Measured {
            end: outcome.end,
            sim_ns: outcome.sim_ns,
            events: outcome.events,
            digest: outcome.digest,
            rows: rows(&scenario.workload, &outcome),
            counters: counters(&outcome),
        })
    }
}

/// One run of the simulator, which ends when it is cancelled, and whose faults are its own.
///
/// # Errors
/// When it was cancelled, panicked or is stuck.
pub(crate) fn simulate(scenario: &Scenario, cancel: &Cancel) -> Result<Outcome, RunError> {
    let mut watch = |_| if cancel.is_cancelled() { Control::Cancel } else { Control::Continue };
    let mut options = Options { trace: Switch::Off, decisions: Switch::Off, progress: Some(&mut watch) };
    // A fault in one of a thousand cells must not lose the others; the run shares nothing with what goes on.
    let outcome = catch_unwind(AssertUnwindSafe(|| ttwu_sim::run(scenario, &mut options)))
        .map_err(|payload| RunError::Panicked { seed: scenario.seed, message: message(&*payload) })?;
    match outcome.end {
        End::Cancelled => Err(RunError::Cancelled),
        End::Stuck => Err(RunError::Stuck { seed: scenario.seed, sim_ns: outcome.sim_ns }),
        End::Completed | End::TimeLimit => Ok(outcome),
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Why there is no executor of a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot run on `{name}`: {why}")]
pub struct UnknownExecutor {
    /// As given.
    pub name: String,
    /// The reason.
    pub why: &'static str,
}

/// The executor of this name: `sim`; `host` and `vm` are refused, as they are not built.
///
/// # Errors
/// For every name but `sim`, with the reason.
pub fn executor(name: &str) -> Result<&'static dyn Executor, UnknownExecutor> {
    let why = match name {
        "sim" => return Ok(&Simulator),
        "host" => "runs on this machine are not built yet; `ttwu compare` takes files of benchmark output",
        "vm" => "runs in a virtual machine are not built yet; `ttwu compare` takes files of benchmark output",
        _ => "there is `sim`",
    };
    Err(UnknownExecutor { name: name.to_owned(), why })
}
