//! Free-running replay: the model runs the recording's tasks from their behaviour alone and is never set right.
//!
//! A task's behaviour is a list of stretches of run time, each ended by waking somebody, blocking, forking or exiting. The
//! model decides who runs, who is preempted and where a woken task goes; what it decides moves all later times. Decisions
//! are compared by what stays the same whatever the times: the n-th wake-up of the recording, the n-th block of a task.
//!
//! Given from outside: wake-ups by interrupts, by tasks of other classes and by the idle task, at their recorded times; moves
//! by the balancer of tasks that wait in the model too; the CPU of a new task. Ticks come in regular time, though those of
//! emulated machines do not.
//!
//! What this does not do: take time for wake-ups and switches, run other classes, or know groups.

mod run;
mod script;
mod view;

use run::Run;
use script::Script;
use ttwu_fair::{Machine, Policy};
use ttwu_model::Trace;

/// Equal ones among decisions that both took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Equal.
    pub equal: u64,
    /// Compared.
    pub total: u64,
}

impl Share {
    fn add(&mut self, equal: bool) {
        self.total += 1;
        self.equal += u64::from(equal);
    }

    fn merge(&mut self, other: Self) {
        self.equal += other.equal;
        self.total += other.total;
    }
}

/// The first decision in which the model left the recording's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Decisions that were equal before it.
    pub after: u64,
    /// Time of the decision in the model, ns on the trace's clock.
    pub at_ns: u64,
    /// What each decided, and how far the model's time was from the recording's.
    pub text: String,
}

/// How far the model follows a recording by itself.
#[derive(Clone, Debug, Default)]
pub struct FreeReport {
    /// CPUs chosen for wakees.
    pub placements: Share,
    /// Did the wakee take the CPU at once? Where both chose the same CPU and both had a task running there.
    pub preemptions: Share,
    /// Who ran next when a task blocked.
    pub picks: Share,
    /// The first decision that differs.
    pub first: Option<Divergence>,
    /// Wake-ups of tasks that had not blocked yet in the model: its time had moved.
    pub early: u64,
}

impl FreeReport {
    /// Adds another recording's; the first divergence stays that of the first.
    pub fn merge(&mut self, other: &Self) {
        self.placements.merge(other.placements);
        self.preemptions.merge(other.preemptions);
        self.picks.merge(other.picks);
        self.early += other.early;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// Runs the recording's tasks under `policy` on `machine`.
#[must_use]
pub fn free_run(trace: &Trace, policy: &Policy, machine: &Machine) -> FreeReport {
    let script = Script::of(trace, machine, policy.kernel());
    let Some((start, end)) = trace.span() else { return FreeReport::default() };
    let mut run = Run::new(trace, &script, policy, machine, start.as_ns());
    run.until(end.as_ns());
    run.report
}
