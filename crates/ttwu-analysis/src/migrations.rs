//! Migrations: which task moved from where to where, and who moved it.
//!
//! `sched_migrate_task` does not say why. Who emitted it, on which CPU, in what context, and what follows does:
//!
//! ```text
//!  cause      evidence
//!  ─────────  ────────────────────────────────────────────────────────────────────────────────────────────────────
//!  wake-up    WithinWakeup: between sched_waking and sched_wakeup, by the waker, on the waker's CPU
//!             TaskAsleep: the task was asleep (sched_waking not seen); balancers only move queued tasks
//!  fork       NewTask: forked and not yet woken for the first time (old kernels; newer ones do not emit it)
//!  newidle    PullerGoesToSleep: a task moved it to its own CPU, and the next switch there was that task going to sleep:
//!             the CPU looked for work before it went idle
//!  periodic   Softirq: from a softirq (or ksoftirqd); IdleTask: from the idle loop, outside of interrupts
//!  active     StopperOfBusyCpu: by a migration thread that was woken from a softirq, by an idle task, or by a task on the
//!             very CPU that got the task
//!  exec       StopperAskedByTaskThenExec: by a migration thread that the task itself had woken, and the task's next such
//!             sign is sched_process_exec
//!  affinity   StopperAskedByTask: the same without exec (its affinity no longer allows the CPU; also NUMA balancing);
//!             StopperAskedByOther: the migration thread was woken by another task; SyscallElsewhere: a task moved it
//!             itself, without going to sleep
//!  balancing  PulledUnknownContext: moved to the emitter's own CPU, but the source carries no context flags
//!  unknown    StopperUnknownWaker, TaskNotSeen, Nothing
//! ```
//!
//! What this does not do: count moves of sleeping tasks that were never woken on the new CPU; the kernel has none.

use crate::tally::{Tally, at};
use crate::{Analysis, ByRelation, End, Levels, Measured, Moment, Needs, Who};
use ttwu_model::{Context, CpuId, Event, EventKind, Phase, TaskId};

/// How many tasks are kept, most moves first.
const TASKS_KEPT: usize = 100;

/// Who moved a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MigrationCause {
    /// Its wake-up chose another CPU.
    Wakeup,
    /// It is new.
    Fork,
    /// It executes a new program.
    Exec,
    /// A CPU about to go idle pulled it.
    NewIdle,
    /// The balancer in softirq or in the idle loop.
    Periodic,
    /// A migration thread on behalf of a balancer.
    Active,
    /// A balancer, which one is not known.
    Balancing,
    /// Its affinity changed.
    Affinity,
    /// The recording cannot tell.
    Unknown,
}

impl MigrationCause {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Wakeup,
        Self::Fork,
        Self::Exec,
        Self::NewIdle,
        Self::Periodic,
        Self::Active,
        Self::Balancing,
        Self::Affinity,
        Self::Unknown,
    ];

    /// Its name in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wakeup => "wakeup",
            Self::Fork => "fork",
            Self::Exec => "exec",
            Self::NewIdle => "balance_newidle",
            Self::Periodic => "balance_periodic",
            Self::Active => "balance_active",
            Self::Balancing => "balance_other",
            Self::Affinity => "affinity",
            Self::Unknown => "unknown",
        }
    }
}

/// What a cause was concluded from; the module's table says each precisely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MigrationEvidence {
    /// By the waker, on its CPU, before `sched_wakeup`.
    WithinWakeup,
    /// The task was asleep.
    TaskAsleep,
    /// Forked and not yet woken.
    NewTask,
    /// The task that moved it went to sleep next.
    PullerGoesToSleep,
    /// From a softirq or ksoftirqd.
    Softirq,
    /// From the idle loop.
    IdleTask,
    /// The migration thread was woken by a balancer.
    StopperOfBusyCpu,
    /// It woke the migration thread itself, and executed a program.
    StopperAskedByTaskThenExec,
    /// It woke the migration thread itself.
    StopperAskedByTask,
    /// Another task woke the migration thread.
    StopperAskedByOther,
    /// A task moved it, and went on.
    SyscallElsewhere,
    /// Moved to the emitter's own CPU, in an unknown context.
    PulledUnknownContext,
    /// It is not known who woke the migration thread.
    StopperUnknownWaker,
    /// The task was never seen before.
    TaskNotSeen,
    /// No sign at all.
    Nothing,
}

impl MigrationEvidence {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::WithinWakeup,
        Self::TaskAsleep,
        Self::NewTask,
        Self::PullerGoesToSleep,
        Self::Softirq,
        Self::IdleTask,
        Self::StopperOfBusyCpu,
        Self::StopperAskedByTaskThenExec,
        Self::StopperAskedByTask,
        Self::StopperAskedByOther,
        Self::SyscallElsewhere,
        Self::PulledUnknownContext,
        Self::StopperUnknownWaker,
        Self::TaskNotSeen,
        Self::Nothing,
    ];

    /// Its name in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WithinWakeup => "within_wakeup",
            Self::TaskAsleep => "task_asleep",
            Self::NewTask => "new_task",
            Self::PullerGoesToSleep => "puller_goes_to_sleep",
            Self::Softirq => "softirq",
            Self::IdleTask => "idle_task",
            Self::StopperOfBusyCpu => "stopper_of_busy_cpu",
            Self::StopperAskedByTaskThenExec => "stopper_asked_by_task_then_exec",
            Self::StopperAskedByTask => "stopper_asked_by_task",
            Self::StopperAskedByOther => "stopper_asked_by_other",
            Self::SyscallElsewhere => "syscall_elsewhere",
            Self::PulledUnknownContext => "pulled_unknown_context",
            Self::StopperUnknownWaker => "stopper_unknown_waker",
            Self::TaskNotSeen => "task_not_seen",
            Self::Nothing => "nothing",
        }
    }

    /// The cause that it stands for.
    #[must_use]
    pub const fn cause(self) -> MigrationCause {
        match self {
            Self::WithinWakeup | Self::TaskAsleep => MigrationCause::Wakeup,
            Self::NewTask => MigrationCause::Fork,
            Self::PullerGoesToSleep => MigrationCause::NewIdle,
            Self::Softirq | Self::IdleTask => MigrationCause::Periodic,
            Self::StopperOfBusyCpu => MigrationCause::Active,
            Self::StopperAskedByTaskThenExec => MigrationCause::Exec,
            Self::StopperAskedByTask | Self::StopperAskedByOther | Self::SyscallElsewhere => {
                MigrationCause::Affinity
            }
            Self::PulledUnknownContext => MigrationCause::Balancing,
            Self::StopperUnknownWaker | Self::TaskNotSeen | Self::Nothing => MigrationCause::Unknown,
        }
    }
}

/// Counts by [`MigrationCause`], in the order of [`MigrationCause::ALL`].
pub type ByMigrationCause = [u64; MigrationCause::ALL.len()];

/// Who was moved where, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrations {
    /// All of them.
    pub total: u64,
    /// By cause.
    pub by_cause: ByMigrationCause,
    /// By what the cause was concluded from, in the order of [`MigrationEvidence::ALL`].
    pub by_evidence: [u64; MigrationEvidence::ALL.len()],
    /// By distance.
    pub by_level: ByRelation,
    /// By distance for each cause.
    pub by_cause_and_level: [ByRelation; MigrationCause::ALL.len()],
    /// From which CPU to which, for the pairs that occur, by number.
    pub matrix: Vec<Route>,
    /// The tasks moved most often, with that.
    pub tasks: Vec<(Who, ByMigrationCause)>,
    /// How many tasks were moved at all.
    pub tasks_moved: u64,
    /// Are the levels known?
    pub topology_known: bool,
    /// Was `sched_process_exec` recorded? Otherwise exec counts as affinity.
    pub exec_recorded: bool,
}

/// Moves from one CPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// From.
    pub orig: CpuId,
    /// To.
    pub dest: CpuId,
    /// How often, by cause.
    pub by_cause: ByMigrationCause,
}

impl Route {
    /// How often.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.by_cause.iter().sum()
    }
}

/// A move whose cause the next switch on the CPU decides.
#[derive(Clone, Copy, Debug)]
struct Pull {
    task: TaskId,
    by: TaskId,
    orig: CpuId,
    context_known: bool,
}

/// What is kept per task.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    by_cause: [u32; MigrationCause::ALL.len()],
    kind: Kind,
    /// Of a migration thread: by whom and where it was woken last.
    woken: Option<(TaskId, CpuId, Context)>,
    /// The task asked its stopper to move it there; exec or affinity.
    asked: Option<(CpuId, CpuId)>,
    fresh: bool,
}

/// What a task's name says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    NotLooked,
    Stopper,
    Ksoftirqd,
    Other,
}

/// The fold.
#[derive(Clone, Debug)]
pub struct MigrationsAnalysis {
    levels: Levels,
    by_evidence: [u64; MigrationEvidence::ALL.len()],
    routes: Tally<u64>,
    rows: Vec<Row>,
    pulls: Vec<Vec<Pull>>,
}

impl MigrationsAnalysis {
    /// Ready for the first event of a machine with these levels.
    #[must_use]
    pub fn new(levels: Levels) -> Self {
        let by_evidence = [0; MigrationEvidence::ALL.len()];
        Self { levels, by_evidence, routes: Tally::default(), rows: Vec::new(), pulls: Vec::new() }
    }

    fn row(&mut self, task: TaskId) -> &mut Row {
        at(&mut self.rows, task.index())
    }

    fn kind(&mut self, moment: &Moment<'_>, task: TaskId) -> Kind {
        let row = self.row(task);
        if row.kind == Kind::NotLooked
            && task.index() < moment.tasks.len()
            && let Some(name) = moment.tasks.last_name(task)
        {
            let name = moment.strings.get(name);
            row.kind = if task.is_idle() {
                Kind::Other
            } else if name.starts_with("migration/") {
                Kind::Stopper
            } else if name.starts_with("ksoftirqd/") {
                Kind::Ksoftirqd
            } else {
                Kind::Other
            };
        }
        row.kind
    }

    fn count(&mut self, task: TaskId, orig: CpuId, dest: CpuId, evidence: MigrationEvidence, times: i8) {
        let change = |count: &mut u64| *count = count.wrapping_add_signed(times.into());
        change(&mut self.by_evidence[evidence as usize]);
        let cause = evidence.cause();
        change(self.routes.entry(route_key(orig, dest, cause)));
        let moved = &mut self.row(task).by_cause[cause as usize];
        *moved = moved.wrapping_add_signed(times.into());
    }

    fn migrate(&mut self, moment: &Moment<'_>, event: &Event, task: TaskId, orig: CpuId, dest: CpuId) {
        let timeline = moment.timeline;
        let context = event.flags.context();
        let (phase, _) = timeline.phase(task);
        let fresh = self.row(task).fresh;
        let evidence = if timeline.moved_by_wakeup() {
            MigrationEvidence::WithinWakeup
        } else if matches!(phase, Phase::Sleeping(_)) {
            MigrationEvidence::TaskAsleep
        } else if fresh {
            MigrationEvidence::NewTask
        } else {
            match (self.kind(moment, event.by), context) {
                (Kind::Stopper, _) => self.by_stopper(event, task, orig, dest),
                (Kind::Ksoftirqd, _) | (_, Context::Softirq) => MigrationEvidence::Softirq,
                (_, Context::Task | Context::Unknown) if event.by.is_idle() => MigrationEvidence::IdleTask,
                (_, Context::Task | Context::Unknown) if event.cpu == dest => {
                    let context_known = context == Context::Task;
                    at(&mut self.pulls, dest.index()).push(Pull { task, by: event.by, orig, context_known });
                    return;
                }
                (_, Context::Task) if phase != Phase::Unknown => MigrationEvidence::SyscallElsewhere,
                (_, Context::Task) => MigrationEvidence::TaskNotSeen,
                (_, Context::Hardirq | Context::Nmi | Context::Unknown) => MigrationEvidence::Nothing,
            }
        };
        self.count(task, orig, dest, evidence, 1);
    }

    fn by_stopper(&mut self, event: &Event, task: TaskId, orig: CpuId, dest: CpuId) -> MigrationEvidence {
        match self.row(event.by).woken {
            None => MigrationEvidence::StopperUnknownWaker,
            Some((waker, _, Context::Task | Context::Unknown)) if waker == task => {
                self.row(task).asked = Some((orig, dest));
                MigrationEvidence::StopperAskedByTask
            }
            Some((_, _, Context::Softirq | Context::Hardirq | Context::Nmi)) => {
                MigrationEvidence::StopperOfBusyCpu
            }
            Some((waker, _, _)) if waker.is_idle() => MigrationEvidence::StopperOfBusyCpu,
            Some((_, cpu, _)) if cpu == dest && cpu != event.cpu => MigrationEvidence::StopperOfBusyCpu,
            Some(_) => MigrationEvidence::StopperAskedByOther,
        }
    }

    /// The switch after a task moved others to its own CPU.
    fn decide_pulls(&mut self, event: &Event, prev: TaskId, goes_to_sleep: bool) {
        let Some(pulls) = self.pulls.get_mut(event.cpu.index()).filter(|pulls| !pulls.is_empty()) else {
            return;
        };
        let mut pulls = std::mem::take(pulls);
        for pull in pulls.drain(..) {
            let evidence = if pull.by == prev && goes_to_sleep {
                MigrationEvidence::PullerGoesToSleep
            } else if pull.context_known {
                MigrationEvidence::SyscallElsewhere
            } else {
                MigrationEvidence::PulledUnknownContext
            };
            self.count(pull.task, pull.orig, event.cpu, evidence, 1);
        }
        self.pulls[event.cpu.index()] = pulls;
    }

    fn exec(&mut self, task: TaskId) {
        if let Some((orig, dest)) = self.row(task).asked.take() {
            self.count(task, orig, dest, MigrationEvidence::StopperAskedByTask, -1);
            self.count(task, orig, dest, MigrationEvidence::StopperAskedByTaskThenExec, 1);
        }
    }
}

fn route_key(orig: CpuId, dest: CpuId, cause: MigrationCause) -> u64 {
    u64::from(orig.number()) << 32 | u64::from(dest.number()) << 16 | cause as u64
}

impl Analysis for MigrationsAnalysis {
    type Output = Migrations;

    fn needs(&self) -> Needs {
        &[&["sched_migrate_task"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        match event.kind {
            EventKind::Migrate { task, orig_cpu, dest_cpu, .. } => {
                self.migrate(moment, event, task, orig_cpu, dest_cpu);
            }
            EventKind::Switch { prev, prev_state, .. } => {
                self.decide_pulls(event, prev, !prev_state.is_runnable());
            }
            EventKind::Waking { wakee, .. } | EventKind::Wakeup { wakee, .. } => {
                // sched_wakeup only where sched_waking is missing: with the wake list it comes from the target.
                let waking = matches!(event.kind, EventKind::Waking { .. });
                if self.kind(moment, wakee) == Kind::Stopper && (waking || self.row(wakee).woken.is_none()) {
                    self.row(wakee).woken = Some((event.by, event.cpu, event.flags.context()));
                }
            }
            EventKind::WakeupNew { wakee, .. } => self.row(wakee).fresh = false,
            EventKind::Fork { child, .. } => self.row(child).fresh = true,
            EventKind::Exec { task, .. } => self.exec(task),
            EventKind::Lost { .. } => {
                let lost = event.cpu;
                let pulls = at(&mut self.pulls, lost.index());
                for pull in std::mem::take(pulls) {
                    self.count(pull.task, pull.orig, lost, MigrationEvidence::Nothing, 1);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self, end: &End<'_>) -> Measured<Migrations> {
        for cpu in 0..self.pulls.len() {
            let dest = CpuId::try_from(cpu as u64).expect("indexed by CPU");
            for pull in std::mem::take(&mut self.pulls[cpu]) {
                self.count(pull.task, pull.orig, dest, MigrationEvidence::Nothing, 1);
            }
        }
        let needs = self.needs();
        end.recorded.measured(needs, || self.result(end))
    }
}

impl MigrationsAnalysis {
    fn result(self, end: &End<'_>) -> Migrations {
        let mut out = Migrations {
            total: self.by_evidence.iter().sum(),
            by_cause: Default::default(),
            by_evidence: self.by_evidence,
            by_level: ByRelation::default(),
            by_cause_and_level: Default::default(),
            matrix: Vec::new(),
            tasks: Vec::new(),
            tasks_moved: 0,
            topology_known: self.levels.known(),
            exec_recorded: end.recorded.has("sched_process_exec"),
        };
        for (key, count) in self.routes.sorted() {
            let cpu = |bits: u64| CpuId::try_from(bits & 0xffff).expect("packed from a CPU");
            let (orig, dest, cause) = (cpu(key >> 32), cpu(key >> 16), (key & 0xffff) as usize);
            let level = self.levels.relation(Some(orig), dest);
            out.by_cause[cause] += count;
            out.by_level.add(level, count);
            out.by_cause_and_level[cause].add(level, count);
            if out.matrix.last().is_none_or(|route| (route.orig, route.dest) != (orig, dest)) {
                out.matrix.push(Route { orig, dest, by_cause: Default::default() });
            }
            out.matrix.last_mut().expect("just pushed").by_cause[cause] += count;
        }
        out.matrix.retain(|route| route.count() > 0);
        let sum = |row: &Row| row.by_cause.iter().map(|&count| u64::from(count)).sum::<u64>();
        let mut moved: Vec<(usize, &Row)> =
            self.rows.iter().enumerate().filter(|(_, row)| sum(row) > 0).collect();
        moved.sort_by_key(|&(index, row)| (std::cmp::Reverse(sum(row)), index));
        out.tasks_moved = moved.len() as u64;
        moved.truncate(TASKS_KEPT);
        out.tasks = moved
            .iter()
            .map(|&(index, row)| (Who::at(end.parts, index), row.by_cause.map(u64::from)))
            .collect();
        out
    }
}

#[cfg(test)]
#[path = "migrations_tests.rs"]
mod tests;
