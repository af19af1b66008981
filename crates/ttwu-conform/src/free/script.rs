//! What the tasks of a recording do, apart from how they were scheduled: how long each runs, whom it wakes after how much of
//! its own run time, when it blocks. And, beside that, what the kernel decided, to compare with.

use crate::plain::{Outcome, PlainState, outcomes, per_cpu_kthread};
use std::collections::BTreeMap;
use ttwu_fair::{Kernel, Machine};
use ttwu_model::{Context, CpuId, Event, EventKind, TaskId, Trace};

/// What a task does when it has run for a while.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Wakes somebody: an index into [`Script::wakes`].
    Wake(usize),
    /// Starts a task, on the CPU where it was started.
    Fork(TaskId, CpuId),
    /// Sleeps until it is woken.
    Block,
    /// Ends.
    Exit,
}

/// A stretch of run time and what ends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) run_ns: u64,
    pub(super) act: Act,
}

/// A wake-up and what became of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wake {
    pub(super) at: u64,
    pub(super) wakee: TaskId,
    /// The CPU that was chosen, where plain events show that a choice was made.
    pub(super) chosen: Option<CpuId>,
    /// Did the wakee take the CPU from a running task at once? `None`: nothing ran there.
    pub(super) preempted: Option<bool>,
    pub(super) in_task: bool,
}

/// Something that comes from outside the tasks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outside {
    /// An interrupt on this CPU, or a task that is not followed, wakes somebody.
    Wake(CpuId, usize),
    /// The balancer moves a task that waits.
    Move(TaskId, CpuId),
}

/// See the module.
pub(super) struct Script {
    pub(super) steps: Vec<Vec<Step>>,
    pub(super) wakes: Vec<Wake>,
    pub(super) outside: Vec<(u64, Outside)>,
    /// Who ran next when a task blocked, by task in the order of its blocks.
    pub(super) next: Vec<Vec<TaskId>>,
    /// Where tasks were before the first event.
    pub(super) before: PlainState,
    /// Bound to one CPU by their names.
    pub(super) bound: Vec<bool>,
}

struct Reader<'a> {
    script: Script,
    machine: &'a Machine,
    outcomes: BTreeMap<usize, Outcome>,
    current: Vec<TaskId>,
    since: Vec<u64>,
    ran: Vec<u64>,
    /// By wakee, from `sched_waking` to `sched_wakeup`.
    open: BTreeMap<TaskId, usize>,
    /// By CPU: the last wake-up to it while a task ran, until the next switch.
    asked: Vec<Option<usize>>,
}

impl Script {
    /// Reads the behaviour off a trace.
    pub(super) fn of(trace: &Trace, machine: &Machine, kernel: Kernel) -> Self {
        let tasks = trace.tasks().len();
        let before = PlainState::before(trace, machine, kernel);
        let name = |task| trace.tasks().last_name(task).map(|name| trace.strings().get(name));
        let bound = trace.tasks().iter().map(|(task, _)| name(task).is_some_and(per_cpu_kthread)).collect();
        let start = trace.span().map_or(0, |(first, _)| first.as_ns());
        let mut reader = Reader {
            current: before.cpus.iter().map(|cpu| cpu.current).collect(),
            since: vec![start; machine.cpu_bound()],
            ran: vec![0; tasks],
            open: BTreeMap::new(),
            asked: vec![None; machine.cpu_bound()],
            machine,
            outcomes: outcomes(trace),
            script: Self {
                steps: vec![Vec::new(); tasks],
                wakes: Vec::new(),
                outside: Vec::new(),
                next: vec![Vec::new(); tasks],
                before,
                bound,
            },
        };
        for (index, event) in trace.events().iter().enumerate() {
            if event.cpu.index() < machine.cpu_bound() {
                reader.take(index, event);
            }
        }
        reader.script
    }
}

impl Reader<'_> {
    /// Gives the task that runs on the event's CPU the time up to it.
    fn account(&mut self, event: &Event) {
        let cpu = event.cpu.index();
        let now = event.at.as_ns();
        self.ran[self.current[cpu].index()] += now.saturating_sub(self.since[cpu]);
        self.since[cpu] = now;
    }

    fn step(&mut self, task: TaskId, act: Act) {
        let run_ns = std::mem::take(&mut self.ran[task.index()]);
        self.script.steps[task.index()].push(Step { run_ns, act });
    }

    fn take(&mut self, index: usize, event: &Event) {
        let (cpu, now) = (event.cpu.index(), event.at.as_ns());
        let followed =
            |script: &Script, task: TaskId| !task.is_idle() && script.before.tasks[task.index()].fair;
        if let EventKind::Waking { wakee, prio, .. } = event.kind {
            self.script.before.set_prio(wakee, prio);
            if !followed(&self.script, wakee) {
                return;
            }
            let wake = self.script.wakes.len();
            let in_task = event.flags.context() == Context::Task;
            let chosen = self.outcomes.get(&index).map(|outcome| outcome.chosen);
            self.script.wakes.push(Wake { at: now, wakee, chosen, preempted: None, in_task });
            self.open.insert(wakee, wake);
            if in_task && self.current[cpu] == event.by && followed(&self.script, event.by) {
                self.account(event);
                self.step(event.by, Act::Wake(wake));
            } else {
                self.script.outside.push((now, Outside::Wake(event.cpu, wake)));
            }
        } else if let EventKind::Wakeup { wakee, cpu: to, .. } = event.kind {
            if let Some(wake) = self.open.remove(&wakee)
                && let Some(current) = self.current.get(to.index())
                && !current.is_idle()
                && *current != wakee
            {
                self.script.wakes[wake].preempted = Some(false);
                self.asked[to.index()] = Some(wake);
            }
        } else if let EventKind::WakeupNew { wakee, cpu: to, prio } = event.kind {
            self.script.before.set_prio(wakee, prio);
            if followed(&self.script, event.by) && self.current[cpu] == event.by {
                self.account(event);
                self.step(event.by, Act::Fork(wakee, to));
            }
        } else if let EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } = event.kind {
            self.account(event);
            self.script.before.set_prio(prev, prev_prio);
            self.script.before.set_prio(next, next_prio);
            if let Some(wake) = self.asked[cpu].take() {
                let wakee = self.script.wakes[wake].wakee;
                self.script.wakes[wake].preempted = Some(next == wakee && prev_state.is_runnable());
            }
            if !prev.is_idle() && !prev_state.is_runnable() {
                let act = if prev_state.is_dead() { Act::Exit } else { Act::Block };
                self.step(prev, act);
                self.script.next[prev.index()].push(next);
            }
            self.current[cpu] = next;
        } else if let EventKind::Migrate { task, dest_cpu, .. } = event.kind
            && !self.open.contains_key(&task)
            && dest_cpu.index() < self.machine.cpu_bound()
            && followed(&self.script, task)
        {
            self.script.outside.push((now, Outside::Move(task, dest_cpu)));
        }
    }
}
