//! Single placements of a trace, explained: what the rules looked at, what they answer, and what the answer hangs on.

use super::{NOT_OUT, Question, Replay, Unknown};
use std::collections::BTreeSet;
use ttwu_fair::{Check, Machine, Placement, Policy};
use ttwu_model::{CpuId, Event, TaskId, Trace};

/// Other rules that the same question is put to.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The machine as that kernel sees it.
    pub machine: &'a Machine,
}

/// A wake-up's placement under the rules, in the state that the trace's events give.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Index of the `sched_waking` event.
    pub index: usize,
    /// When, ns.
    pub at_ns: u64,
    /// The woken task.
    pub wakee: TaskId,
    /// The task that ran where it was woken.
    pub waker: TaskId,
    /// The CPU that woke it.
    pub this: CpuId,
    /// The CPU that it ran on last.
    pub prev: CpuId,
    /// The CPU that the trace shows to be chosen.
    pub chosen: CpuId,
    /// The rules' answer.
    pub answer: Placement,
    /// What they looked at, in order.
    pub checks: Vec<Check>,
    /// The values that plain events lack and of which another would give another answer, in words.
    pub hangs_on: Vec<&'static str>,
    /// Those of which another would give the same answer by another rule or from another target.
    pub reason_hangs_on: Vec<&'static str>,
    /// Why the kernel may not have run its placement at all, if so.
    pub doubt: Option<&'static str>,
    /// The answer of the other rules.
    pub against: Option<Placement>,
}

/// Which wake-ups to explain, by the index of their event, the event and the wakee.
pub(super) type Wanted<'a> = &'a dyn Fn(usize, &Event, TaskId) -> bool;

/// What a replay explains on its way.
pub(super) struct Explainer<'a> {
    wanted: Wanted<'a>,
    against: Option<Against<'a>>,
    sink: &'a mut dyn FnMut(Explained),
}

/// Walks through a trace and explains the placements that are wanted to `sink`, in order.
///
/// Wake-ups of other classes, of per-CPU kernel threads and without an end in the trace have no placement to explain.
pub fn explain<'a>(
    trace: &'a Trace,
    rules: Against<'a>,
    against: Option<Against<'a>>,
    wanted: &'a dyn Fn(usize, &Event, TaskId) -> bool,
    sink: &'a mut dyn FnMut(Explained),
) {
    let mut replay = Replay::new(trace, rules.policy, rules.machine);
    replay.explainer = Some(Explainer { wanted, against, sink });
    replay.run();
}

impl<'a> Replay<'a> {
    /// Explains the wake-up to whoever wants it.
    pub(super) fn explain_to_sink(
        &mut self,
        index: usize,
        question: &Question,
        chosen: CpuId,
        aside: Option<&'static str>,
    ) {
        let Some(explainer) = self.explainer.take() else { return };
        let trace: &'a Trace = self.trace;
        let event = &trace.events()[index];
        // A task that was still queued is not placed at all.
        if aside != Some(NOT_OUT) && (explainer.wanted)(index, event, question.wakee) {
            let mut checks = Vec::new();
            let rules = Against { policy: self.policy, machine: self.machine };
            let (answer, ..) = self.ask_as(rules, question, Unknown::None, &mut |check| checks.push(check));
            let (mut hangs_on, mut reason_hangs_on) = (BTreeSet::new(), BTreeSet::new());
            for unknown in self.unknowns(question) {
                let other = self.ask(question, unknown).0;
                if other.cpu != answer.cpu {
                    hangs_on.insert(unknown.what());
                } else if (other.rule, other.target) != (answer.rule, answer.target) {
                    reason_hangs_on.insert(unknown.what());
                }
            }
            let against =
                explainer.against.map(|rules| self.ask_as(rules, question, Unknown::None, &mut |_| {}).0);
            (explainer.sink)(Explained {
                index,
                at_ns: event.at.as_ns(),
                wakee: question.wakee,
                waker: question.waker,
                this: question.this,
                prev: question.prev,
                chosen,
                answer,
                checks,
                hangs_on: hangs_on.into_iter().collect(),
                reason_hangs_on: reason_hangs_on.into_iter().collect(),
                doubt: aside,
                against,
            });
        }
        self.explainer = Some(explainer);
    }
}
