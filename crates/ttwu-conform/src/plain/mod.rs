//! Placements from plain scheduler events alone: the machine is rebuilt from who was seen where, and each wake-up is put
//! to the model.
//!
//! The kernel's answer is the migration between `sched_waking` and `sched_wakeup`, else the previous CPU. The state is that
//! of `sched_waking`: what changes until the kernel looks is a race, and is told from a fault by asking again with the state
//! at the end of the wake-up.
//!
//! What this does not do: score fork and exec (their slow path reads statistics that plain events do not give), or know a
//! task's allowed CPUs (all are assumed).

mod explain;
mod outcome;
mod state;
mod view;

use crate::score::{Aside, Cause, Miss, Score};
use explain::Explainer;
pub use explain::{Against, Explained, explain};
use outcome::has_wakeups;
pub(crate) use outcome::{Outcome, outcomes};
pub(crate) use state::{Place, PlainState};
use std::collections::{BTreeMap, BTreeSet};
use ttwu_fair::{Check, Flips, Kernel, Kind, Machine, Memory, Placement, Policy, ScanCost, Wakeup, place};
use ttwu_model::{Context, CpuId, CpuSet, Event, EventKind, TaskId, Trace};
pub(crate) use view::NoSlowPath;
use view::{PlainView, Unknown};

/// Scores of placements from plain events.
#[derive(Clone, Debug, Default)]
pub struct ReconstructReport {
    /// The model.
    pub model: Score,
    /// The baseline that answers the previous CPU, over the same wake-ups.
    pub always_prev: Score,
    /// The baseline that answers the waker's CPU, over the same wake-ups.
    pub always_this: Score,
    /// The wake-ups whose answer hangs on nothing that plain events lack.
    pub certain: Score,
    /// Wake-ups not put to the model, by the test that says so.
    pub unreconstructible: BTreeMap<&'static str, Aside>,
    /// Wake-ups in which no placement code ran, by the test that says so.
    pub without_placement: BTreeMap<&'static str, u64>,
    /// In how many wake-ups the answer would be another if a value that plain events lack were another.
    pub hangs_on: BTreeMap<&'static str, u64>,
}

impl ReconstructReport {
    /// Adds another recording's.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.model, &other.model),
            (&mut self.always_prev, &other.always_prev),
            (&mut self.always_this, &other.always_this),
            (&mut self.certain, &other.certain),
        ] {
            ours.merge(theirs);
        }
        for (test, aside) in &other.unreconstructible {
            self.unreconstructible.entry(test).or_default().merge(aside);
        }
        for (ours, theirs) in
            [(&mut self.without_placement, &other.without_placement), (&mut self.hangs_on, &other.hangs_on)]
        {
            for (test, count) in theirs {
                *ours.entry(test).or_default() += count;
            }
        }
    }

    /// Wake-ups that were not put to the model though placement code may have run.
    #[must_use]
    pub fn unreconstructible_count(&self) -> u64 {
        self.unreconstructible.values().map(|aside| aside.count).sum()
    }
}

const NOT_OUT: &str = "the wakee had not been switched out: whether it was still queued is in no event";
const DELAYED: &str = "the wakee blocked with others queued and its CPU has not been idle since: its dequeue may have been delayed";
const STOPPER: &str = "woken by its CPU's stopper thread: it changes its allowed CPUs, which are in no event";
const NO_END: &str = "no sched_wakeup follows: the recording ends";
const PINNED: &str = "a per-CPU kernel thread by its name";
const CLASS: &str = "the wakee is not of the fair class";

/// Puts the wake-ups of a plain trace to the model.
#[must_use]
pub fn reconstruct(trace: &Trace, policy: &Policy, machine: &Machine) -> ReconstructReport {
    let mut replay = Replay::new(trace, policy, machine);
    replay.run();
    replay.report
}

/// A wake-up that has been put to the model, until the state at its end is known.
struct Open {
    index: usize,
    at: u64,
    question: Question,
    answer: Placement,
    chosen: CpuId,
    /// No value that plain events lack would change the answer.
    certain: bool,
    /// The first such value with which the answer would have been the kernel's.
    would: Option<Unknown>,
}

/// What is asked, apart from the machine's state.
#[derive(Clone)]
struct Question {
    wakee: TaskId,
    waker: TaskId,
    this: CpuId,
    prev: CpuId,
    kthread: bool,
    in_task: bool,
    waker_flips: Flips,
    wakee_flips: Flips,
    recent: Option<CpuId>,
    jiffies: u64,
}

struct Replay<'a> {
    trace: &'a Trace,
    policy: &'a Policy,
    machine: &'a Machine,
    online: CpuSet,
    state: PlainState,
    /// By wakee.
    open: BTreeMap<TaskId, Open>,
    /// By the index of the `sched_waking`.
    outcomes: BTreeMap<usize, Outcome>,
    /// `sched_wakeup` was recorded; without it a wakee is taken to be queued as soon as it is woken.
    wakeups: bool,
    report: ReconstructReport,
    explainer: Option<Explainer<'a>>,
}

impl<'a> Replay<'a> {
    fn new(trace: &'a Trace, policy: &'a Policy, machine: &'a Machine) -> Self {
        Self {
            trace,
            policy,
            machine,
            online: trace.meta().cpus_online.clone().unwrap_or_else(|| CpuSet::first(machine.cpu_bound())),
            state: PlainState::before(trace, machine, policy.kernel()),
            open: BTreeMap::new(),
            outcomes: outcomes(trace),
            wakeups: has_wakeups(trace),
            report: ReconstructReport::default(),
            explainer: None,
        }
    }

    fn run(&mut self) {
        for (index, event) in self.trace.events().iter().enumerate() {
            self.step(index, event);
        }
    }

    fn step(&mut self, index: usize, event: &Event) {
        if event.cpu.index() >= self.machine.cpu_bound() {
            return;
        }
        self.take(index, event);
        let now = event.at.as_ns();
        self.state.note_change(event.cpu, now);
        if let EventKind::Wakeup { cpu, .. }
        | EventKind::WakeupNew { cpu, .. }
        | EventKind::Waking { prev_cpu: cpu, .. }
        | EventKind::Migrate { dest_cpu: cpu, .. } = event.kind
        {
            self.state.note_change(cpu, now);
        }
        if let EventKind::Migrate { orig_cpu, .. } = event.kind {
            self.state.note_change(orig_cpu, now);
        }
    }

    fn take(&mut self, index: usize, event: &Event) {
        let now = event.at.as_ns();
        if let EventKind::Waking { wakee, prev_cpu, prio } = event.kind {
            self.state.set_prio(wakee, prio);
            self.waking(index, event, wakee, prev_cpu);
        } else if let EventKind::Wakeup { wakee, cpu, prio } = event.kind {
            self.close(wakee);
            self.state.set_prio(wakee, prio);
            self.arrived(wakee);
            if self.state.tasks[wakee.index()].place != Place::On(cpu) {
                self.state.enqueue(wakee, cpu, now);
            }
        } else if let EventKind::WakeupNew { wakee, cpu, prio } = event.kind {
            self.state.fork(wakee, cpu, prio, now);
            self.state.tasks[wakee.index()].recent = Some(event.cpu);
        } else if let EventKind::Switch { .. } = event.kind {
            self.state.switch(event, self.machine);
        } else if let EventKind::Migrate { task, dest_cpu, .. } = event.kind {
            let listed = self.outcome_of(task).is_some_and(|outcome| outcome.listed);
            self.close(task);
            if let Place::On(_) = self.state.tasks[task.index()].place {
                self.state.enqueue(task, dest_cpu, now);
            } else if listed {
                self.pend(task, dest_cpu);
            }
        } else if let EventKind::StatRuntime { .. } = event.kind {
            self.state.account(event.cpu, now);
        } else if let EventKind::Exit { task } = event.kind {
            self.state.tasks[task.index()].maybe_delayed = false;
        }
    }

    fn outcome_of(&self, wakee: TaskId) -> Option<&Outcome> {
        self.outcomes.get(&self.open.get(&wakee)?.index)
    }

    fn pend(&mut self, wakee: TaskId, cpu: CpuId) {
        if let Some(of) = self.state.cpus.get_mut(cpu.index()) {
            of.pending.insert(wakee);
        }
    }

    fn arrived(&mut self, wakee: TaskId) {
        for cpu in &mut self.state.cpus {
            cpu.pending.remove(&wakee);
        }
    }

    /// `sched_waking`: the question.
    fn waking(&mut self, index: usize, event: &Event, wakee: TaskId, prev: CpuId) {
        self.open.remove(&wakee);
        let outcome = self.outcomes.get(&index).copied();
        let row = self.state.tasks[wakee.index()].clone();
        let name =
            |task| self.trace.tasks().name_at(task, event.at).map(|name| self.trace.strings().get(name));
        if !row.fair {
            *self.report.without_placement.entry(CLASS).or_default() += 1;
            return;
        }
        if name(wakee).is_some_and(per_cpu_kthread) {
            *self.report.without_placement.entry(PINNED).or_default() += 1;
            return;
        }
        if prev.index() >= self.machine.cpu_bound() {
            return;
        }
        let Some(outcome) = outcome else {
            self.report.unreconstructible.entry(NO_END).or_default().add(None);
            return;
        };
        let maybe_delayed = row.maybe_delayed && self.policy.has(ttwu_fair::Feature::DelayDequeue);
        let stopped = name(event.by).is_some_and(|name| name.starts_with("migration/"));
        let aside = match row.place {
            Place::On(_) => Some(NOT_OUT),
            Place::Off | Place::Unknown if stopped => Some(STOPPER),
            Place::Off | Place::Unknown if maybe_delayed => Some(DELAYED),
            Place::Off | Place::Unknown => None,
        };
        let waker = event.by;
        let question = Question {
            wakee,
            waker,
            this: event.cpu,
            prev,
            kthread: !waker.is_idle() && name(waker).is_some_and(per_cpu_kthread),
            in_task: !matches!(event.flags.context(), Context::Hardirq | Context::Softirq | Context::Nmi),
            waker_flips: *self.state.flips_mut(event.cpu, waker),
            wakee_flips: row.flips,
            recent: row.recent,
            jiffies: event.at.as_ns() / (1_000_000_000 / self.machine.tunables().hz.max(1)),
        };
        self.explain_to_sink(index, &question, outcome.chosen, aside);
        if let Some(test) = aside {
            let (answer, ..) = self.ask(&question, Unknown::None);
            self.report.unreconstructible.entry(test).or_default().add(Some(answer.cpu == outcome.chosen));
            return;
        }
        let (answer, flips, recent, cleared) = self.ask(&question, Unknown::None);
        let (certain, would) = self.hangs(&question, &answer, outcome.chosen);
        *self.state.flips_mut(event.cpu, waker) = flips;
        self.state.tasks[wakee.index()].recent = Some(recent);
        if cleared {
            self.state.set_idle_cores(self.machine, answer.target, false);
        }
        self.open.insert(
            wakee,
            Open { index, at: event.at.as_ns(), question, answer, chosen: outcome.chosen, certain, would },
        );
        if outcome.listed && outcome.chosen == prev {
            self.pend(wakee, prev);
        }
        if !self.wakeups {
            self.close(wakee);
            self.state.enqueue(wakee, outcome.chosen, event.at.as_ns());
        }
    }

    /// Puts a question to the model: its answer, and what it leaves of the waker's flips, the wakee's recently used CPU
    /// and the flag of idle cores.
    fn ask(&mut self, question: &Question, unknown: Unknown) -> (Placement, Flips, CpuId, bool) {
        self.ask_as(Against { policy: self.policy, machine: self.machine }, question, unknown, &mut |_| {})
    }

    /// [`Replay::ask`] under any rules; `observer` is told each look at a CPU.
    fn ask_as(
        &mut self,
        rules: Against<'_>,
        question: &Question,
        unknown: Unknown,
        observer: &mut dyn FnMut(Check),
    ) -> (Placement, Flips, CpuId, bool) {
        let wakeup = Wakeup {
            kind: Kind::Wakeup,
            this_cpu: question.this,
            prev_cpu: question.prev,
            sync: unknown == Unknown::Sync,
            current_cpu: false,
            allowed: &self.online,
            wakee_is_idle_policy: false,
            waker_is_per_cpu_kthread: question.kthread,
            waker_is_idle_task: question.waker.is_idle(),
            in_task: question.in_task,
            util: self.state.tasks[question.wakee.index()].avg.util_avg,
        };
        let mut waker = question.waker_flips;
        let mut wakee = question.wakee_flips;
        if unknown == Unknown::Flips {
            // Large and equal numbers make it narrow or wide: one of the two is the other answer.
            let size = self.machine.domains().llc_size(question.this);
            (waker.flips, wakee.flips) = (size * size, size);
        }
        let mut recent = match unknown {
            Unknown::Recent(cpu) => cpu,
            Unknown::None
            | Unknown::Sync
            | Unknown::Load
            | Unknown::Flips
            | Unknown::Scan(_)
            | Unknown::Changed(_)
            | Unknown::IdleCores => question.recent.unwrap_or(question.prev),
        };
        let mut waker_recent = question.this;
        let mut memory = Memory {
            waker: &mut waker,
            wakee: &wakee,
            wakee_key: question.wakee.index() as u64,
            recent_used_cpu: &mut recent,
            waker_recent_used_cpu: &mut waker_recent,
            jiffies: question.jiffies,
        };
        let mut view = PlainView {
            state: &mut self.state,
            machine: rules.machine,
            waker: question.waker,
            this: question.this,
            prev: question.prev,
            wakee: question.wakee,
            unknown,
            cost: ScanCost::BOOT,
            cleared: false,
        };
        let Against { policy, machine } = rules;
        let answer = place(policy, machine, &wakeup, &mut memory, &mut view, &mut NoSlowPath, observer);
        (answer, waker, recent, view.cleared)
    }

    /// What the values that plain events lack might be otherwise.
    fn unknowns(&self, question: &Question) -> Vec<Unknown> {
        let llc_size = self.machine.domains().llc_size(question.prev);
        let cpus = || self.online.iter();
        let kernel = self.policy.kernel();
        let mut all = vec![Unknown::Sync, Unknown::Load, Unknown::Flips, Unknown::IdleCores];
        if kernel >= Kernel::V6_1 {
            all.extend((0..=llc_size).map(Unknown::Scan));
        }
        if question.recent.is_none() {
            all.extend(cpus().map(Unknown::Recent));
        }
        all
    }

    /// Is the answer the same whatever the values that plain events lack? And which of them would make it `chosen`?
    fn hangs(&mut self, question: &Question, answer: &Placement, chosen: CpuId) -> (bool, Option<Unknown>) {
        let mut hangs = BTreeSet::new();
        let mut would = None;
        for unknown in self.unknowns(question) {
            let other = self.ask(question, unknown).0.cpu;
            if other != answer.cpu {
                hangs.insert(unknown.what());
                if other == chosen {
                    would = would.or(Some(unknown));
                }
            }
        }
        for what in &hangs {
            *self.report.hangs_on.entry(what).or_default() += 1;
        }
        (hangs.is_empty(), would)
    }

    /// The end of a wake-up's placement: the answer counts, and a miss is looked into.
    fn close(&mut self, wakee: TaskId) {
        let Some(open) = self.open.remove(&wakee) else { return };
        let Open { ref question, answer, chosen, index, certain, .. } = open;
        let agrees = answer.cpu == chosen;
        let (cause, test) = if agrees { (Cause::Model, "") } else { self.explain(&open) };
        let event = self.trace.events()[index];
        let at = event.at.as_ns();
        let names = |task: TaskId| {
            if task.is_idle() {
                return "the idle task".to_owned();
            }
            self.trace
                .tasks()
                .name_at(task, event.at)
                .map_or_else(|| "?".to_owned(), |name| self.trace.strings().get(name).to_owned())
        };
        let miss = || Miss {
            line: index + 1,
            ts: format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000),
            cause,
            test,
            rule: format!("{:?}", answer.rule),
            text: format!(
                "{} woken on CPU {} by {} (prev {}): kernel {chosen}, model {} by {:?} (target {}, {:?})",
                names(question.wakee),
                question.this,
                names(question.waker),
                question.prev,
                answer.cpu,
                answer.rule,
                answer.target,
                answer.affine
            ),
        };
        self.report.model.add(agrees, miss);
        if certain {
            self.report.certain.add(agrees, miss);
        }
        let baseline = |rule: &str| Miss { rule: rule.to_owned(), test: "a baseline has no rules", ..miss() };
        self.report.always_prev.add(question.prev == chosen, || baseline("prev"));
        self.report.always_this.add(question.this == chosen, || baseline("this"));
    }

    /// Why the model differs, by asking again with what changed during the wake-up and with each unknown otherwise.
    ///
    /// The state is that of the wake-up's end by now; `unknowns` were asked with that of its beginning when it began.
    fn explain(&mut self, open: &Open) -> (Cause, &'static str) {
        let Open { question, chosen, .. } = open;
        if let Some(unknown) = open.would {
            return (Cause::State, unknown.what());
        }
        if self.ask(question, Unknown::None).0.cpu == *chosen {
            return (Cause::Race, "with the state at the end of the wake-up the model agrees");
        }
        let changed: Vec<CpuId> =
            self.online.iter().filter(|&cpu| self.state.changed_since(cpu, open.at)).collect();
        for cpu in changed {
            if self.ask(question, Unknown::Changed(cpu)).0.cpu == *chosen {
                return (
                    Cause::Race,
                    "one CPU went idle or busy during the wake-up, and with that the model agrees",
                );
            }
        }
        for unknown in self.unknowns(question) {
            if self.ask(question, unknown).0.cpu == *chosen {
                return (Cause::State, unknown.what());
            }
        }
        (Cause::Model, "neither a change during the wake-up nor one value that plain events lack explains it")
    }
}

/// Kernel threads bound to one CPU end their name with its number: `ksoftirqd/3`, `kworker/3:1H`.
pub(crate) fn per_cpu_kthread(name: &str) -> bool {
    let Some((thread, rest)) = name.rsplit_once('/') else { return false };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let known = matches!(
        thread,
        "ksoftirqd"
            | "migration"
            | "cpuhp"
            | "kworker"
            | "rcuc"
            | "rcuop"
            | "rcuog"
            | "rcuos"
            | "idle_inject"
            | "ktimers"
            | "backlog_napi"
            | "irq_work"
    );
    // `kworker/u17:2` is bound to no CPU, its number is that of a pool.
    known && digits > 0 && matches!(rest.as_bytes().get(digits), None | Some(b':'))
}
