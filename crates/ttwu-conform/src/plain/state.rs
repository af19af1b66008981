//! The machine as plain events show it: who runs where, who waits, what is on its way, and the loads that follow.
//!
//! Loads are kept by the time that tasks were seen queued and running. What this does not do: know groups (every task
//! counts in the root queue), remote ticks that update no running task, or a task's history before its first event.

use std::collections::BTreeSet;
use ttwu_fair::{Contribution, Flips, Kernel, LoadWeight, Machine, SchedAvg, ZeroLoad};
use ttwu_model::{CpuId, Event, EventKind, Prio, TaskId, Trace};

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Place {
    /// No event has told.
    #[default]
    Unknown,
    /// Running or waiting there.
    On(CpuId),
    /// Blocked, or not yet queued again.
    Off,
}

/// What is known of a task.
#[derive(Clone, Debug)]
pub(crate) struct PlainTask {
    pub(crate) place: Place,
    /// The CPU that its load is counted on.
    pub(crate) cpu: Option<CpuId>,
    pub(crate) load: LoadWeight,
    nice: i8,
    /// Does the fair class run it?
    pub(crate) fair: bool,
    pub(crate) avg: SchedAvg,
    /// Estimated utilisation at its last sleep.
    pub(crate) estimate: u64,
    pub(crate) flips: Flips,
    pub(crate) recent: Option<CpuId>,
    /// It blocked while others were queued on its CPU, which has not been idle since.
    pub(crate) maybe_delayed: bool,
}

impl PlainTask {
    /// Its nice value when it was last seen.
    pub(crate) const fn nice(&self) -> i8 {
        self.nice
    }

    /// Nothing yet: a fair task of nice 0, as most are.
    fn unknown(now: u64) -> Self {
        Self {
            place: Place::Unknown,
            cpu: None,
            load: LoadWeight::of_nice(0),
            nice: 0,
            fair: true,
            avg: SchedAvg { last_update_time: now, ..SchedAvg::default() },
            estimate: 0,
            flips: Flips::default(),
            recent: None,
            maybe_delayed: false,
        }
    }
}

/// What is known of a CPU.
#[derive(Clone, Debug)]
pub(crate) struct PlainCpu {
    pub(crate) current: TaskId,
    /// Runnable tasks, the running one among them.
    pub(crate) queued: BTreeSet<TaskId>,
    /// Tasks on their way to it by its wake list.
    pub(crate) pending: BTreeSet<TaskId>,
    pub(crate) avg: SchedAvg,
    /// Flips of its idle task.
    pub(crate) idle_flips: Flips,
    pub(crate) idle_cores: bool,
    /// Was it idle after the last event, and since when is that so?
    was_idle: bool,
    changed_at: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct PlainState {
    pub(crate) cpus: Vec<PlainCpu>,
    pub(crate) tasks: Vec<PlainTask>,
    zero: ZeroLoad,
    smoothed_down: bool,
}

/// Smallest difference that changes an estimate.
const ESTIMATE_MARGIN: u64 = 10;

impl PlainState {
    /// What can be said of the machine before the first event, from what the events take for granted.
    pub(crate) fn before(trace: &Trace, machine: &Machine, kernel: Kernel) -> Self {
        let nobody = PlainCpu {
            current: TaskId::IDLE,
            queued: BTreeSet::new(),
            pending: BTreeSet::new(),
            avg: SchedAvg::default(),
            idle_flips: Flips::default(),
            idle_cores: false,
            was_idle: true,
            changed_at: 0,
        };
        let start = trace.span().map_or(0, |(first, _)| first.as_ns());
        let mut state = Self {
            cpus: vec![nobody; machine.cpu_bound()],
            tasks: vec![PlainTask::unknown(start); trace.tasks().len()],
            zero: if kernel == Kernel::V5_5 { ZeroLoad::Accumulates } else { ZeroLoad::Skips },
            smoothed_down: kernel < Kernel::V6_12,
        };
        for cpu in &mut state.cpus {
            cpu.avg.last_update_time = start;
        }
        let mut switched = vec![false; machine.cpu_bound()];
        let mut met = vec![false; trace.tasks().len()];
        for event in trace.events() {
            if let EventKind::Switch { prev, next, prev_prio, next_prio, .. } = event.kind {
                if let Some(seen) = switched.get_mut(event.cpu.index())
                    && !std::mem::replace(seen, true)
                {
                    state.cpus[event.cpu.index()].current = prev;
                    state.first(prev, event.cpu, prev_prio, &mut met);
                }
                state.first(next, event.cpu, next_prio, &mut met);
                met[prev.index()] = true;
            } else if let EventKind::Migrate { task, orig_cpu, prio, .. } = event.kind {
                state.first(task, orig_cpu, prio, &mut met);
            } else if let EventKind::Waking { wakee, prev_cpu, prio } = event.kind {
                if !std::mem::replace(&mut met[wakee.index()], true) {
                    state.set_prio(wakee, prio);
                    state.tasks[wakee.index()].cpu = Some(prev_cpu);
                    state.tasks[wakee.index()].place = Place::Off;
                }
            } else if let EventKind::WakeupNew { wakee, .. } | EventKind::Fork { child: wakee, .. } =
                event.kind
            {
                met[wakee.index()] = true;
            }
        }
        state
    }

    /// The first event of a task shows it runnable on `cpu`: it was so from the beginning.
    fn first(&mut self, task: TaskId, cpu: CpuId, prio: Prio, met: &mut [bool]) {
        if task.is_idle() || std::mem::replace(&mut met[task.index()], true) {
            return;
        }
        self.set_prio(task, prio);
        if let Some(of) = self.cpus.get_mut(cpu.index()) {
            of.queued.insert(task);
            self.tasks[task.index()].place = Place::On(cpu);
            self.tasks[task.index()].cpu = Some(cpu);
        }
    }

    pub(crate) fn set_prio(&mut self, task: TaskId, prio: Prio) {
        let row = &mut self.tasks[task.index()];
        if let Some(nice) = prio.nice() {
            (row.load, row.fair) = (LoadWeight::of_nice(nice), true);
            row.nice = i8::try_from(nice).unwrap_or(0);
        } else if prio.get().is_some() {
            row.fair = false;
        }
    }

    /// Is the CPU idle in the kernel's narrow sense?
    pub(crate) fn idle(&self, cpu: CpuId) -> bool {
        let of = &self.cpus[cpu.index()];
        of.current.is_idle() && of.queued.is_empty() && of.pending.is_empty()
    }

    /// Remembers when `cpu` went idle or busy.
    pub(crate) fn note_change(&mut self, cpu: CpuId, now: u64) {
        if cpu.index() < self.cpus.len() {
            let idle = self.idle(cpu);
            let of = &mut self.cpus[cpu.index()];
            if of.was_idle != idle {
                (of.was_idle, of.changed_at) = (idle, now);
            }
        }
    }

    /// Has `cpu` gone idle or busy since?
    pub(crate) fn changed_since(&self, cpu: CpuId, since: u64) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|of| of.changed_at >= since)
    }

    /// Flips of the task that runs on `cpu`, its idle task's where none does.
    pub(crate) fn flips_mut(&mut self, cpu: CpuId, task: TaskId) -> &mut Flips {
        if task.is_idle() {
            &mut self.cpus[cpu.index()].idle_flips
        } else {
            &mut self.tasks[task.index()].flips
        }
    }

    /// `cpu_util()`: the larger of the measured and the estimated utilisation, at most a whole CPU.
    pub(crate) fn util(&self, cpu: CpuId) -> u64 {
        let of = &self.cpus[cpu.index()];
        let estimate: u64 = of.queued.iter().map(|task| self.tasks[task.index()].estimate).sum();
        of.avg.util_avg.max(estimate).min(1024)
    }

    /// Accounts what `cpu` and its running task did up to now.
    pub(crate) fn account(&mut self, cpu: CpuId, now: u64) {
        let Some(of) = self.cpus.get_mut(cpu.index()) else { return };
        let fair = |task: &TaskId| self.tasks[task.index()].fair;
        let load = of.queued.iter().filter(|task| fair(task));
        let load: u64 = load.map(|task| self.tasks[task.index()].load.scaled_down()).sum();
        let runnable = of.queued.iter().filter(|task| fair(task)).count() as u64;
        let running = !of.current.is_idle() && fair(&of.current);
        of.avg.update(now, Contribution { load, runnable, running }, SchedAvg::QUEUE, self.zero);
        if running {
            let current = of.current;
            self.account_task(current, now, true, true);
        }
    }

    fn account_task(&mut self, task: TaskId, now: u64, queued: bool, running: bool) {
        let row = &mut self.tasks[task.index()];
        let on = u64::from(queued);
        let what = Contribution { load: on, runnable: on, running };
        row.avg.update(now, what, row.load.weight(), self.zero);
    }

    /// The task becomes runnable on `cpu`; its load comes along.
    pub(crate) fn enqueue(&mut self, task: TaskId, cpu: CpuId, now: u64) {
        if cpu.index() >= self.cpus.len() || task.is_idle() {
            return;
        }
        self.leave(task, now);
        self.account(cpu, now);
        self.account_task(task, now, false, false);
        if self.tasks[task.index()].cpu != Some(cpu) {
            self.move_load(task, cpu, now);
        }
        self.cpus[cpu.index()].queued.insert(task);
        let row = &mut self.tasks[task.index()];
        (row.place, row.cpu, row.maybe_delayed) = (Place::On(cpu), Some(cpu), false);
    }

    /// A new task starts with its full weight and half of what its CPU has left.
    pub(crate) fn fork(&mut self, task: TaskId, cpu: CpuId, prio: Prio, now: u64) {
        self.set_prio(task, prio);
        let Some(of) = self.cpus.get(cpu.index()) else { return };
        let util = 1024u64.saturating_sub(of.avg.util_avg) / 2;
        let row = &mut self.tasks[task.index()];
        row.avg = SchedAvg { last_update_time: now, ..SchedAvg::default() };
        (row.avg.load_avg, row.avg.util_avg, row.avg.runnable_avg) = (row.load.scaled_down(), util, util);
        let divider = row.avg.divider();
        (row.avg.load_sum, row.avg.util_sum, row.avg.runnable_sum) =
            (divider, util * divider, util * divider);
        row.cpu = None;
        self.enqueue(task, cpu, now);
    }

    /// Takes the task's averages from its old queue to that of `cpu`.
    fn move_load(&mut self, task: TaskId, cpu: CpuId, now: u64) {
        let row = &self.tasks[task.index()];
        let (load, util, runnable, fair) =
            (row.avg.load_avg, row.avg.util_avg, row.avg.runnable_avg, row.fair);
        if !fair {
            return;
        }
        let old = row.cpu;
        let apply = |avg: &mut SchedAvg, add: bool| {
            let change = |value: u64, by: u64| if add { value + by } else { value.saturating_sub(by) };
            avg.load_avg = change(avg.load_avg, load);
            avg.util_avg = change(avg.util_avg, util);
            avg.runnable_avg = change(avg.runnable_avg, runnable);
            let divider = avg.divider();
            avg.load_sum = avg.load_avg * divider;
            avg.util_sum = avg.util_avg * divider;
            avg.runnable_sum = avg.runnable_avg * divider;
        };
        if let Some(old) = old {
            self.account(old, now);
            apply(&mut self.cpus[old.index()].avg, false);
        }
        apply(&mut self.cpus[cpu.index()].avg, true);
    }

    /// The task is no longer runnable where it was.
    pub(crate) fn leave(&mut self, task: TaskId, now: u64) {
        let Place::On(cpu) = self.tasks[task.index()].place else { return };
        self.account(cpu, now);
        let running = self.cpus[cpu.index()].current == task;
        self.account_task(task, now, true, running);
        self.cpus[cpu.index()].queued.remove(&task);
        self.tasks[task.index()].place = Place::Off;
    }

    /// The task goes to sleep: its estimate follows its utilisation, up at once and down by a quarter.
    ///
    /// Models: util_est_update(), v5.5–v7.2, without the tests that keep a value when the task had to wait.
    fn sleep(&mut self, task: TaskId, now: u64) {
        self.leave(task, now);
        let row = &mut self.tasks[task.index()];
        let (util, old) = (row.avg.util_avg, row.estimate);
        row.estimate = if old <= util {
            util
        } else if old - util < ESTIMATE_MARGIN {
            old
        } else if self.smoothed_down {
            (4 * old - (old - util)) >> 2
        } else if util + ESTIMATE_MARGIN < row.avg.runnable_avg {
            old
        } else {
            (4 * old - (old - util)) >> 2
        };
    }

    /// `sched_switch`.
    pub(crate) fn switch(&mut self, event: &Event, machine: &Machine) {
        let EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } = event.kind else { return };
        let (cpu, now) = (event.cpu, event.at.as_ns());
        if cpu.index() >= self.cpus.len() {
            return;
        }
        self.account(cpu, now);
        if !prev.is_idle() {
            self.set_prio(prev, prev_prio);
            if prev_state.is_runnable() {
                if self.tasks[prev.index()].place != Place::On(cpu) {
                    self.enqueue(prev, cpu, now);
                }
            } else {
                self.sleep(prev, now);
                let row = &mut self.tasks[prev.index()];
                (row.cpu, row.maybe_delayed) =
                    (Some(cpu), row.fair && self.cpus[cpu.index()].queued.iter().any(|&task| task != prev));
            }
        }
        if next.is_idle() {
            for task in &mut self.tasks {
                task.maybe_delayed &= task.cpu != Some(cpu);
            }
        } else {
            self.set_prio(next, next_prio);
            if self.tasks[next.index()].place != Place::On(cpu) {
                self.enqueue(next, cpu, now);
            }
            self.account_task(next, now, true, false);
        }
        self.cpus[cpu.index()].current = next;
        if next.is_idle() && machine.smt(cpu).iter().all(|sibling| self.idle(sibling)) {
            self.set_idle_cores(machine, cpu, true);
        }
    }

    /// Sets the flag "some core is idle" of the LLC of `cpu`.
    pub(crate) fn set_idle_cores(&mut self, machine: &Machine, cpu: CpuId, to: bool) {
        let llc = machine.domains().llc_id(cpu);
        if let Some(of) = self.cpus.get_mut(llc.index()) {
            of.idle_cores = to;
        }
    }
}
