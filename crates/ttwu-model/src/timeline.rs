//! The timeline: events folded into intervals of running, waiting and sleeping.
//!
//! The only interpreter of events. Analyses never look at `sched_switch` themselves; they step a [`Timeline`] and read which
//! intervals the event ended ([`Timeline::ended`]) and which wake-up it completed ([`Timeline::placed`]). So that the rules
//! of what may be believed (gaps, lost events, wake-ups that race with going to sleep) exist once.
//!
//! It never invents time: a task whose switch-in was not seen has no running interval, a wait that a gap may have cut is
//! marked [`Interval::censored`].
//!
//! ```text
//!             waking            wakeup           switch in            switch out (R)        switch in
//!  sleeping ────┤ Runnable(Wakeup) ┆ ················ ├─── Running ───────┤ Runnable(Preempted) ├── Running ── …
//!               └ wake-up latency ─┴─────────────────┘                    └ preemption wait ────┘
//! ```
//!
//! What this does not do: name causes. Whether a switch was a wake-up preemption or the tick is an analysis.

use crate::{Context, CpuId, CpuSet, Duration, Event, EventFlags, EventKind, TaskId, TaskState, Time};

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is known: not seen yet, or a gap or contradiction took the knowledge away.
    Unknown,
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable(Wait),
    /// Blocked, in the state in which it was switched out.
    Sleeping(TaskState),
    /// Switched out for the last time.
    Dead,
}

/// Why a runnable task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// It was woken from sleep.
    Wakeup,
    /// It is new.
    New,
    /// It was switched out without going to sleep.
    Preempted,
}

/// A wake-up from its beginning to its placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When `sched_waking` came; `None` where only `sched_wakeup` or `sched_wakeup_new` was seen.
    pub waking_at: Option<Time>,
    /// When `sched_wakeup` (or `_new`) came; `None` where it was not recorded or is still to come.
    pub wakeup_at: Option<Time>,
    /// The task current on the waker's CPU; it says little in interrupt context.
    pub waker: TaskId,
    /// The CPU on which the waking code ran. Where only `sched_wakeup` was seen, the CPU that emitted that: with the wake
    /// list this is the target itself.
    pub waker_cpu: CpuId,
    /// Context and resched flags at the first of the two events.
    pub flags: EventFlags,
    /// Resched flags at `sched_wakeup`: a local wake-up preemption has been decided by then.
    pub flags_at_wakeup: EventFlags,
    /// The CPU that the wakee ran on before: `sched_waking` says it; where that is missing, the CPU of its last switch-out.
    pub prev_cpu: Option<CpuId>,
    /// The CPU chosen: `sched_migrate_task`'s destination within the wake-up, else `sched_wakeup`'s target, else the
    /// previous CPU.
    pub cpu: CpuId,
    /// Did `sched_migrate_task` move it within the wake-up?
    pub migrated: bool,
}

impl Wake {
    /// The beginning, as far as seen.
    #[must_use]
    pub fn from(&self) -> Option<Time> {
        self.waking_at.or(self.wakeup_at)
    }

    /// The context of the waker; the idle task is `Task` here, see [`TaskId::is_idle`].
    #[must_use]
    pub fn context(&self) -> Context {
        self.flags.context()
    }
}

/// A completed wake-up: it is now known where the task was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The task woken.
    pub wakee: TaskId,
    /// `Wakeup` or `New`.
    pub wait: Wait,
    /// The wake-up.
    pub wake: Wake,
}

/// A phase that ended (or, from [`Timeline::open`], was cut by the trace's end).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Whose.
    pub task: TaskId,
    /// What the task did.
    pub phase: Phase,
    /// When it began.
    pub from: Time,
    /// When it ended.
    pub to: Time,
    /// Where: the CPU it ran on, the CPU in whose queue it waited last, or the CPU it slept from.
    pub cpu: CpuId,
    /// The true length is not known: a gap, a lost event or the trace's end cut it.
    pub censored: bool,
    /// The wake-up that began a wait.
    pub wake: Option<Wake>,
}

impl Interval {
    /// Its length as seen.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.to.saturating_since(self.from)
    }
}

#[derive(Clone, Copy, Debug)]
struct TaskLine {
    phase: Phase,
    since: Time,
    cpu: Option<CpuId>,
    /// Where it was switched out last; unlike `cpu` not changed by migrations.
    ran_on: Option<CpuId>,
    wake: Option<Wake>,
    /// `sched_waking` that came while the task was, by the events, still running: it races with the task's going to sleep.
    racing: Option<Wake>,
    /// The placement of `wake` has been reported.
    reported: bool,
}

impl TaskLine {
    const UNSEEN: Self = Self {
        phase: Phase::Unknown,
        since: Time::ZERO,
        cpu: None,
        ran_on: None,
        wake: None,
        racing: None,
        reported: false,
    };
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuLine {
    current: Option<TaskId>,
    since: Time,
    last_event: Option<Time>,
    last_loss: Option<Time>,
    waiting: u32,
}

/// Task phases and CPU occupation after each event. Feed it events in time order.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    tasks: Vec<TaskLine>,
    cpus: Vec<CpuLine>,
    idle: CpuSet,
    busy: CpuSet,
    ended: Vec<Interval>,
    placed: Option<Placed>,
    changed: Vec<CpuId>,
    moved_by_wakeup: bool,
}

impl Timeline {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event. Afterwards [`Timeline::ended`] and [`Timeline::placed`] say what it changed.
    pub fn step(&mut self, event: &Event) {
        self.ended.clear();
        self.placed = None;
        self.changed.clear();
        self.moved_by_wakeup = false;
        self.cpu_mut(event.cpu);
        match event.kind {
            EventKind::Switch { prev, next, prev_state, .. } => self.switch(event, prev, next, prev_state),
            EventKind::Waking { wakee, prev_cpu, .. } => self.waking(event, wakee, prev_cpu),
            EventKind::Wakeup { wakee, cpu, .. } => self.wakeup(event, wakee, cpu, Wait::Wakeup),
            EventKind::WakeupNew { wakee, cpu, .. } => self.wakeup(event, wakee, cpu, Wait::New),
            EventKind::Migrate { task, dest_cpu, .. } => self.migrate(event, task, dest_cpu),
            EventKind::Lost { .. } => self.lost(event),
            EventKind::Fork { .. }
            | EventKind::Exit { .. }
            | EventKind::Exec { .. }
            | EventKind::StatRuntime { .. }
            | EventKind::StatWait { .. }
            | EventKind::StatSleep { .. }
            | EventKind::IdleEnter { .. }
            | EventKind::IdleExit { .. }
            | EventKind::Frequency { .. }
            | EventKind::IpiSend { .. }
            | EventKind::IpiSendMask { .. }
            | EventKind::VectorEntry { .. }
            | EventKind::VectorExit { .. }
            | EventKind::IrqEntry { .. }
            | EventKind::IrqExit { .. }
            | EventKind::SoftirqRaise { .. }
            | EventKind::SoftirqEntry { .. }
            | EventKind::SoftirqExit { .. }
            | EventKind::TimerExpire { .. }
            | EventKind::WorkStart { .. }
            | EventKind::WorkEnd { .. }
            | EventKind::Yield
            | EventKind::Other { .. } => {}
        }
        self.cpu_mut(event.cpu).last_event = Some(event.at);
    }

    /// The intervals that the last event ended: at most one wait, one sleep and two runs.
    #[must_use]
    pub fn ended(&self) -> &[Interval] {
        &self.ended
    }

    /// The wake-up that the last event completed. Where `sched_wakeup` is not recorded, that is the switch-in.
    #[must_use]
    pub fn placed(&self) -> Option<&Placed> {
        self.placed.as_ref()
    }

    /// CPUs whose current task or whose number of waiting tasks the last event changed; a CPU may be listed twice.
    #[must_use]
    pub fn changed_cpus(&self) -> &[CpuId] {
        &self.changed
    }

    /// Was the last event a `sched_migrate_task` within a wake-up?
    #[must_use]
    pub fn moved_by_wakeup(&self) -> bool {
        self.moved_by_wakeup
    }

    /// What `task` is doing, and since when.
    #[must_use]
    pub fn phase(&self, task: TaskId) -> (Phase, Time) {
        self.tasks.get(task.index()).map_or((Phase::Unknown, Time::ZERO), |line| (line.phase, line.since))
    }

    /// The CPU that `task` runs on, waits for, or slept from; `None` if never seen on one.
    #[must_use]
    pub fn cpu_of(&self, task: TaskId) -> Option<CpuId> {
        self.tasks.get(task.index())?.cpu
    }

    /// The task on `cpu` ([`TaskId::IDLE`] when idle), and since when; `None` while not known.
    #[must_use]
    pub fn current(&self, cpu: CpuId) -> Option<(TaskId, Time)> {
        let line = self.cpus.get(cpu.index())?;
        Some((line.current?, line.since))
    }

    /// CPUs known to run their idle task.
    #[must_use]
    pub fn idle_cpus(&self) -> &CpuSet {
        &self.idle
    }

    /// CPUs known to run a task other than the idle one. A CPU in neither set is not known.
    #[must_use]
    pub fn busy_cpus(&self) -> &CpuSet {
        &self.busy
    }

    /// How many tasks are known to wait in the queue of `cpu` (without the running one).
    #[must_use]
    pub fn waiting(&self, cpu: CpuId) -> u32 {
        self.cpus.get(cpu.index()).map_or(0, |line| line.waiting)
    }

    /// CPUs that have been seen are below this number.
    #[must_use]
    pub fn cpu_bound(&self) -> usize {
        self.cpus.len()
    }

    /// All phases still going on at `end`, as censored intervals.
    pub fn open(&self, end: Time) -> impl Iterator<Item = Interval> + '_ {
        self.tasks.iter().enumerate().filter_map(move |(index, line)| {
            let cpu = line.cpu?;
            let (phase, task) = (line.phase, TaskId::new(u32::try_from(index).expect("dense ids")));
            match phase {
                Phase::Unknown | Phase::Dead => None,
                Phase::Running | Phase::Runnable(_) | Phase::Sleeping(_) => {
                    let wake = if matches!(phase, Phase::Runnable(_)) { line.wake } else { None };
                    Some(Interval { task, phase, from: line.since, to: end, cpu, censored: true, wake })
                }
            }
        })
    }

    fn task_mut(&mut self, task: TaskId) -> &mut TaskLine {
        if task.index() >= self.tasks.len() {
            self.tasks.resize(task.index() + 1, TaskLine::UNSEEN);
        }
        &mut self.tasks[task.index()]
    }

    fn cpu_mut(&mut self, cpu: CpuId) -> &mut CpuLine {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, CpuLine::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// Puts `task` into a phase, keeping the per-CPU count of waiting tasks.
    fn enter(&mut self, task: TaskId, phase: Phase, since: Time, cpu: CpuId) {
        self.leave_queue(task);
        let line = self.task_mut(task);
        line.phase = phase;
        line.since = since;
        line.cpu = Some(cpu);
        if matches!(phase, Phase::Runnable(_)) {
            self.cpu_mut(cpu).waiting += 1;
            self.note_change(cpu);
        }
    }

    fn note_change(&mut self, cpu: CpuId) {
        if self.changed.last() != Some(&cpu) {
            self.changed.push(cpu);
        }
    }

    fn leave_queue(&mut self, task: TaskId) {
        let line = *self.task_mut(task);
        if let (Phase::Runnable(_), Some(cpu)) = (line.phase, line.cpu) {
            self.cpu_mut(cpu).waiting -= 1;
            self.note_change(cpu);
        }
    }

    fn forget(&mut self, task: TaskId) {
        self.leave_queue(task);
        let line = self.task_mut(task);
        line.phase = Phase::Unknown;
        line.wake = None;
        line.racing = None;
    }

    /// `sched_waking`, by the wakee's phase:
    /// - sleeping or unknown: an ordinary wake-up begins; the task counts as waiting from here.
    /// - running: the wakee has marked itself sleeping but is not switched out yet. Either it goes on running (then
    ///   `sched_wakeup` follows while it runs) or it is switched out first and then queued. Kept aside until that is seen.
    /// - runnable: it is queued already (preempted on its way to sleep, or asleep but not yet dequeued); nothing begins.
    /// - dead: a pid whose reuse was not recorded; treated as unknown.
    fn waking(&mut self, event: &Event, wakee: TaskId, prev_cpu: CpuId) {
        let wake = Wake {
            waking_at: Some(event.at),
            wakeup_at: None,
            waker: event.by,
            waker_cpu: event.cpu,
            flags: event.flags,
            flags_at_wakeup: EventFlags::UNKNOWN,
            prev_cpu: Some(prev_cpu),
            cpu: prev_cpu,
            migrated: false,
        };
        match self.task_mut(wakee).phase {
            Phase::Running => self.task_mut(wakee).racing = Some(wake),
            Phase::Runnable(_) => {}
            Phase::Sleeping(_) | Phase::Unknown | Phase::Dead => {
                self.end_sleep(wakee, event.at);
                self.begin_wait(wakee, Wait::Wakeup, event.at, wake);
            }
        }
    }

    fn end_sleep(&mut self, task: TaskId, at: Time) {
        let line = *self.task_mut(task);
        if let (Phase::Sleeping(_), Some(cpu)) = (line.phase, line.cpu) {
            let censored = self.gap_since(cpu, line.since);
            self.ended.push(Interval {
                task,
                phase: line.phase,
                from: line.since,
                to: at,
                cpu,
                censored,
                wake: None,
            });
        }
    }

    fn begin_wait(&mut self, task: TaskId, wait: Wait, since: Time, wake: Wake) {
        self.enter(task, Phase::Runnable(wait), since, wake.cpu);
        let line = self.task_mut(task);
        line.wake = Some(wake);
        line.racing = None;
        line.reported = false;
    }

    /// `sched_wakeup` and `sched_wakeup_new`, by the wakee's phase:
    /// - runnable after `sched_waking`: the wake-up is complete.
    /// - sleeping or unknown: `sched_waking` was lost or not recorded, or came while the task still ran (`racing`): the wait
    ///   begins here, or when the task had left the CPU.
    /// - running: the task never left the CPU; the wake-up is consumed without a wait.
    fn wakeup(&mut self, event: &Event, wakee: TaskId, cpu: CpuId, wait: Wait) {
        let line = *self.task_mut(wakee);
        match line.phase {
            Phase::Running => self.task_mut(wakee).racing = None,
            Phase::Runnable(_) => {
                if let Some(wake) = line.wake.filter(|wake| wake.wakeup_at.is_none() && !line.reported) {
                    self.complete(event, wakee, cpu, wake);
                }
            }
            Phase::Sleeping(_) | Phase::Unknown | Phase::Dead => {
                let bare = Wake {
                    waking_at: None,
                    wakeup_at: None,
                    waker: event.by,
                    waker_cpu: event.cpu,
                    flags: event.flags,
                    flags_at_wakeup: event.flags,
                    prev_cpu: line.ran_on,
                    cpu,
                    migrated: false,
                };
                let wake = line.racing.unwrap_or(bare);
                let since = if line.racing.is_some() { line.since } else { event.at };
                self.end_sleep(wakee, since);
                self.begin_wait(wakee, wait, since, wake);
                self.complete(event, wakee, cpu, wake);
            }
        }
    }

    fn complete(&mut self, event: &Event, wakee: TaskId, cpu: CpuId, mut wake: Wake) {
        wake.wakeup_at = Some(event.at);
        wake.flags_at_wakeup = event.flags;
        wake.cpu = cpu;
        self.move_to(wakee, cpu);
        let line = self.task_mut(wakee);
        line.wake = Some(wake);
        line.reported = true;
        let Phase::Runnable(wait) = line.phase else { unreachable!("only waits are completed") };
        self.placed = Some(Placed { wakee, wait, wake });
    }

    fn move_to(&mut self, task: TaskId, cpu: CpuId) {
        let line = *self.task_mut(task);
        if matches!(line.phase, Phase::Runnable(_)) && line.cpu != Some(cpu) {
            self.enter(task, line.phase, line.since, cpu);
        } else {
            self.task_mut(task).cpu = Some(cpu);
        }
    }

    /// `sched_migrate_task`. It belongs to the wake-up when it comes from the waker's CPU, in the waker's name, before
    /// `sched_wakeup`; balancing moves come from the pulling CPU or from a migration thread.
    fn migrate(&mut self, event: &Event, task: TaskId, dest_cpu: CpuId) {
        let within = |wake: &Wake| {
            wake.wakeup_at.is_none()
                && !wake.migrated
                && wake.waker_cpu == event.cpu
                && wake.waker == event.by
        };
        let line = self.task_mut(task);
        let running = line.phase == Phase::Running;
        let pending = if running || line.racing.is_some() { &mut line.racing } else { &mut line.wake };
        if let Some(wake) = pending.as_mut().filter(|wake| within(wake)) {
            wake.cpu = dest_cpu;
            wake.migrated = true;
            self.moved_by_wakeup = true;
        }
        if !running {
            self.move_to(task, dest_cpu);
        }
    }

    fn switch(&mut self, event: &Event, prev: TaskId, next: TaskId, prev_state: TaskState) {
        let (at, cpu) = (event.at, event.cpu);
        let before = *self.cpu_mut(cpu);
        if let Some(current) = before.current
            && current != prev
            && !current.is_idle()
        {
            // The switch from `current` to `prev` was not recorded, so neither's time is known.
            self.forget(current);
        }
        if before.current == Some(prev) && before.since <= at {
            let run = Interval {
                task: prev,
                phase: Phase::Running,
                from: before.since,
                to: at,
                cpu,
                censored: false,
                wake: None,
            };
            self.ended.push(run);
        }
        if !prev.is_idle() {
            self.switch_out(event, prev, prev_state);
        }
        if !next.is_idle() {
            self.switch_in(event, next);
        }
        let line = self.cpu_mut(cpu);
        line.current = Some(next);
        line.since = at;
        if next.is_idle() {
            self.idle.insert(cpu);
            self.busy.remove(cpu);
        } else {
            self.idle.remove(cpu);
            self.busy.insert(cpu);
        }
        self.note_change(cpu);
    }

    fn switch_out(&mut self, event: &Event, prev: TaskId, state: TaskState) {
        let phase = if state.is_runnable() {
            Phase::Runnable(Wait::Preempted)
        } else if state.is_dead() {
            Phase::Dead
        } else {
            Phase::Sleeping(state)
        };
        self.enter(prev, phase, event.at, event.cpu);
        let line = self.task_mut(prev);
        line.wake = None;
        line.ran_on = Some(event.cpu);
        if !matches!(phase, Phase::Sleeping(_)) {
            line.racing = None;
        }
    }

    /// The switch-in, by what the task was doing:
    /// - runnable: its wait ends. If its placement was not reported yet (`sched_wakeup` not recorded), it is now.
    /// - sleeping with a racing `sched_waking`: it waited since some moment after it left the CPU; the longest possible wait
    ///   is reported as censored.
    /// - sleeping otherwise, or running elsewhere: its wake-up or switch-out was not recorded; no wait is known.
    /// - unknown: the first time it is seen.
    fn switch_in(&mut self, event: &Event, next: TaskId) {
        let (at, cpu) = (event.at, event.cpu);
        let line = *self.task_mut(next);
        let from_cpu = line.cpu.unwrap_or(cpu);
        match (line.phase, line.racing) {
            (Phase::Runnable(wait), _) => {
                let censored = self.gap_since(from_cpu, line.since) || self.gap_since(cpu, line.since);
                if let Some(wake) = line.wake.filter(|_| !line.reported) {
                    self.placed = Some(Placed { wakee: next, wait, wake });
                }
                self.push_wait(next, line.phase, line.since, at, cpu, censored, line.wake);
            }
            (Phase::Sleeping(_), Some(wake)) => {
                self.placed = Some(Placed { wakee: next, wait: Wait::Wakeup, wake });
                let waited = Phase::Runnable(Wait::Wakeup);
                self.push_wait(next, waited, line.since, at, cpu, true, Some(wake));
            }
            (Phase::Sleeping(_) | Phase::Unknown | Phase::Dead | Phase::Running, _) => {}
        }
        self.enter(next, Phase::Running, at, cpu);
        let line = self.task_mut(next);
        line.wake = None;
        line.racing = None;
    }

    #[expect(clippy::too_many_arguments, reason = "an interval's fields, pushed in two places")]
    fn push_wait(
        &mut self,
        task: TaskId,
        phase: Phase,
        from: Time,
        to: Time,
        cpu: CpuId,
        censored: bool,
        wake: Option<Wake>,
    ) {
        self.ended.push(Interval { task, phase, from, to, cpu, censored, wake });
    }

    fn gap_since(&self, cpu: CpuId, since: Time) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|line| line.last_loss.is_some_and(|loss| loss >= since))
    }

    /// A gap on `cpu`: what it runs is unknown from its last event on; waits in its queue are censored when they end.
    fn lost(&mut self, event: &Event) {
        let line = *self.cpu_mut(event.cpu);
        let known_until = line.last_event.unwrap_or(event.at);
        if let Some(current) = line.current {
            self.ended.push(Interval {
                task: current,
                phase: Phase::Running,
                from: line.since,
                to: known_until.max(line.since),
                cpu: event.cpu,
                censored: true,
                wake: None,
            });
            if !current.is_idle() {
                self.forget(current);
            }
        }
        self.idle.remove(event.cpu);
        self.busy.remove(event.cpu);
        self.note_change(event.cpu);
        let line = self.cpu_mut(event.cpu);
        line.current = None;
        line.last_loss = Some(event.at);
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
