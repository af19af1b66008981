//! `perf sched timehist` of 6.1 and of 7.3: a row at each switch out, with what the task did since it was switched out
//! before.
//!
//! ```text
//!   out            waking/wakeup       in (tprev)        out (t)
//!    ├──────────────────┼──────────────────┼───────────────┤
//!    └───────────── wait time ─────────────┴── run time ───┘
//!                       └──── sch delay ───┘
//! ```
//!
//! Rows are handed out as they come ([`PerfTimehist::take_rows`]), so that a caller who prints them needs no memory for a
//! long recording.
//!
//! What this does not do: call chains, `-I` (idle histogram), `--prio`, `-P`.

use super::threads::{ThreadId, Threads};
use super::timehist_summary::{PerfTimehistSummary, summary};
use super::{PerfVersion, WakeupChoice};
use crate::{Analysis, End, Measured, Moment, Needs};
use std::collections::BTreeMap;
use ttwu_model::{
    CpuId, Event, EventKind, NoteKind, Pid, Strings, TaskId, TaskNote, TaskState, TaskTable, Time,
};

/// What to make of the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfTimehistOptions {
    /// Whose rules.
    pub version: PerfVersion,
    /// `-w`: a row a wake-up.
    pub wakeups: bool,
    /// `-M`: a row a migration; without it perf does not count migrations either.
    pub migrations: bool,
    /// `-s`: no rows, only the summary.
    pub summary_only: bool,
    /// CPUs that were on line (`perf.cpus_online` of the source's facts); `None` makes perf assume 4.
    pub cpus_online: Option<u32>,
    /// Was `sched_waking` recorded? `None` where the source does not list its events.
    pub waking_recorded: Option<bool>,
}

/// A row, in perf's words: task names are complete (`comm[tid/pid]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfTimehistRow {
    /// A task (or the idle task) is switched out.
    Switch {
        /// When.
        at: Time,
        /// Where.
        cpu: CpuId,
        /// Who.
        task: String,
        /// Is it the idle task?
        idle: bool,
        /// Time off the CPU before this run.
        wait_ns: u64,
        /// Of that, since the wake-up.
        delay_ns: u64,
        /// This run.
        run_ns: u64,
        /// The letter of its state.
        state: char,
        /// Who comes next, `comm[pid]` by the event.
        next: String,
    },
    /// A wake-up.
    Wakeup {
        /// When.
        at: Time,
        /// The waker's CPU.
        cpu: CpuId,
        /// The waker.
        task: String,
        /// The task woken.
        wakee: String,
    },
    /// A migration.
    Migrate {
        /// When.
        at: Time,
        /// Where it was decided.
        cpu: CpuId,
        /// Who was current there.
        task: String,
        /// The task moved.
        migrated: String,
        /// From this CPU.
        from: CpuId,
        /// To this one.
        to: CpuId,
    },
    /// Events were lost.
    Lost {
        /// When.
        at: Time,
        /// Whose.
        cpu: CpuId,
        /// How many.
        count: u32,
    },
}

/// What perf keeps of a thread.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    last_time: Time,
    last_state: Option<char>,
    ready_to_run: Time,
    wait_ns: u64,
    delay_ns: u64,
    run_ns: u64,
    pub(super) stats: RunStats,
    pub(super) total_ns: u64,
    pub(super) migrations: u64,
}

/// Running mean and variance, in double precision and in perf's order of operations, as the last digits depend on it.
#[derive(Clone, Debug)]
pub(super) struct RunStats {
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) squares: f64,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl RunStats {
    fn add(&mut self, value: u64) {
        self.count += 1;
        let delta = value as f64 - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value as f64 - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }
}

impl Runtime {
    const NEW: Self = Self {
        last_time: Time::ZERO,
        last_state: None,
        ready_to_run: Time::ZERO,
        wait_ns: 0,
        delay_ns: 0,
        run_ns: 0,
        stats: RunStats { count: 0, mean: 0.0, squares: 0.0, min: u64::MAX, max: 0 },
        total_ns: 0,
        migrations: 0,
    };

    fn ran(&mut self, from: Time, to: Time) {
        (self.wait_ns, self.delay_ns, self.run_ns) = (0, 0, 0);
        if from != Time::ZERO {
            self.run_ns = to.saturating_since(from).as_ns();
            if self.ready_to_run != Time::ZERO {
                self.delay_ns = from.saturating_since(self.ready_to_run).as_ns();
            }
            if self.last_time != Time::ZERO {
                self.wait_ns = from.saturating_since(self.last_time).as_ns();
            }
        }
        // PERF: the first switch on a CPU counts as a run of 0, which draws minimum and mean down.
        self.stats.add(self.run_ns);
        self.total_ns = self.total_ns.saturating_add(self.run_ns);
    }
}

/// The fold.
#[derive(Clone, Debug)]
pub struct PerfTimehist {
    options: PerfTimehistOptions,
    choice: WakeupChoice,
    pub(super) threads: Threads,
    pub(super) runtimes: Vec<Runtime>,
    /// The idle tasks by CPU; perf has one for each CPU on line from the start.
    pub(super) idle: Vec<Option<Runtime>>,
    last_switch: Vec<Time>,
    /// Tasks out of the pid table, with their process as samples have it.
    released: BTreeMap<Pid, Pid>,
    /// CPUs, or the highest number of one seen (perf mixes the two).
    pub(super) max_cpu: u32,
    pub(super) first: Option<Time>,
    pub(super) last: Time,
    rows: Vec<PerfTimehistRow>,
}

impl PerfTimehist {
    /// Ready for the first event.
    #[must_use]
    pub fn new(options: PerfTimehistOptions) -> Self {
        // perf's arrays end at 4096 CPUs.
        let cpus = options.cpus_online.filter(|&cpus| cpus != 0).unwrap_or(4).min(4096);
        let mut threads = Threads::default();
        threads.find_or_add(0, 0);
        Self {
            choice: WakeupChoice::new(options.waking_recorded),
            options,
            threads,
            runtimes: Vec::new(),
            idle: vec![Some(Runtime::NEW); cpus as usize],
            last_switch: Vec::new(),
            released: BTreeMap::new(),
            max_cpu: cpus,
            first: None,
            last: Time::ZERO,
            rows: Vec::new(),
        }
    }

    /// Whose rules and which rows.
    #[must_use]
    pub fn options(&self) -> &PerfTimehistOptions {
        &self.options
    }

    /// The rows since the last call.
    pub fn take_rows(&mut self) -> Vec<PerfTimehistRow> {
        std::mem::take(&mut self.rows)
    }

    /// Takes a note that the recorder made before the next event.
    pub fn note(&mut self, note: &TaskNote) {
        self.threads.note(note);
        match note.kind {
            NoteKind::Exit { pid, .. } => {
                let Some(thread) = self.threads.find(pid.number()) else { return };
                match self.options.version {
                    PerfVersion::V6_1 => self.threads.set_dead(thread),
                    // PERF: 7.3 forgets a thread, and all that it counted of it, at its EXIT record. The last switch out
                    // comes after that and makes a new thread with that one run.
                    PerfVersion::V7 => self.threads.remove(thread),
                }
            }
            NoteKind::Released { pid, tgid } => {
                self.released.insert(pid, tgid);
            }
            NoteKind::Fork { pid, .. } => {
                self.released.remove(&pid);
            }
            NoteKind::Name { .. } => {}
        }
    }

    fn runtime(&mut self, thread: ThreadId) -> &mut Runtime {
        if thread.index() >= self.runtimes.len() {
            self.runtimes.resize(thread.index() + 1, Runtime::NEW);
        }
        &mut self.runtimes[thread.index()]
    }

    fn idle_runtime(&mut self, cpu: CpuId) -> &mut Runtime {
        if cpu.index() >= self.idle.len() {
            self.idle.resize((cpu.index() + 1).next_power_of_two(), None);
        }
        self.idle[cpu.index()].get_or_insert(Runtime::NEW)
    }

    /// The thread that perf takes an event to be in: by the process and thread that the sample itself names.
    fn current(&mut self, task: TaskId, moment: &Moment<'_>) -> ThreadId {
        if task.is_idle() {
            return self.threads.find_or_add(0, 0);
        }
        let row = moment.tasks.get(task);
        if !self.released.is_empty()
            && let Some(tgid) = self.released.get(&row.pid)
        {
            // PERF: all tasks already taken out of the pid table are one thread, number −1.
            return self.threads.find_or_add(tgid.number(), -1);
        }
        let tgid = row.tgid.unwrap_or(row.pid);
        self.threads.of_task(task, moment.tasks, tgid.number())
    }

    fn label(&self, thread: ThreadId, moment: &Moment<'_>) -> String {
        self.label_of(thread, moment.strings, moment.tasks)
    }

    /// The thread as perf prints it now.
    pub(super) fn label_of(&self, thread: ThreadId, strings: &Strings, tasks: &TaskTable) -> String {
        let name = self.threads.name(thread, strings, tasks);
        let row = self.threads.get(thread);
        // PERF: a thread first heard of by being woken is taken for one of process 0 for good, and printed without ids.
        match (row.pid, row.tid) {
            (0, _) => name,
            (pid, tid) if pid == tid => format!("{name}[{tid}]"),
            (pid, tid) => format!("{name}[{tid}/{pid}]"),
        }
    }

    fn switch(&mut self, moment: &Moment<'_>, event: &Event, prev: TaskId, next: TaskId, state: TaskState) {
        let (t, cpu) = (event.at, event.cpu);
        if cpu.index() >= self.last_switch.len() {
            self.last_switch.resize(cpu.index() + 1, Time::ZERO);
        }
        let tprev = std::mem::replace(&mut self.last_switch[cpu.index()], t);
        let letter = if prev.is_idle() { 'I' } else { self.options.version.state_letter(state) };
        let (thread, name) = if prev.is_idle() {
            (None, "<idle>".to_owned())
        } else {
            let thread = self.switched_out(moment, prev);
            (Some(thread), self.label(thread, moment))
        };
        let ready = letter == 'R' && self.options.version >= PerfVersion::V7;
        let runtime = match thread {
            Some(thread) => self.runtime(thread),
            None => self.idle_runtime(cpu),
        };
        runtime.ran(tprev, t);
        let (wait_ns, delay_ns, run_ns) = (runtime.wait_ns, runtime.delay_ns, runtime.run_ns);
        runtime.last_time = t;
        runtime.last_state = Some(letter);
        // 7.3 counts the wait after a preemption as delay, 6.1 does not.
        runtime.ready_to_run = if ready { t } else { Time::ZERO };
        self.first.get_or_insert(t);
        self.last = t;
        if !self.options.summary_only {
            let next = next_label(moment, event, next);
            self.rows.push(PerfTimehistRow::Switch {
                at: t,
                cpu,
                task: name,
                idle: prev.is_idle(),
                wait_ns,
                delay_ns,
                run_ns,
                state: letter,
                next,
            });
        }
    }

    fn switched_out(&mut self, moment: &Moment<'_>, prev: TaskId) -> ThreadId {
        let thread = self.current(prev, moment);
        if self.options.version >= PerfVersion::V7
            && let Some(name) = moment.tasks.last_name(prev)
        {
            self.threads.name_if_unnamed(thread, name);
        }
        thread
    }

    fn wakeup(&mut self, moment: &Moment<'_>, event: &Event, wakee: TaskId) {
        let thread = self.threads.of_task(wakee, moment.tasks, 0);
        let runtime = self.runtime(thread);
        if runtime.ready_to_run == Time::ZERO {
            runtime.ready_to_run = event.at;
        }
        if self.options.wakeups && !self.options.summary_only {
            let waker = self.current(event.by, moment);
            let (task, wakee) = (self.label(waker, moment), self.label(thread, moment));
            self.rows.push(PerfTimehistRow::Wakeup { at: event.at, cpu: event.cpu, task, wakee });
        }
    }

    fn migrate(&mut self, moment: &Moment<'_>, event: &Event, task: TaskId, from: CpuId, to: CpuId) {
        if !self.options.migrations {
            return;
        }
        let thread = self.threads.of_task(task, moment.tasks, 0);
        self.runtime(thread).migrations += 1;
        if !self.options.summary_only {
            let by = self.current(event.by, moment);
            let (task, migrated) = (self.label(by, moment), self.label(thread, moment));
            self.rows.push(PerfTimehistRow::Migrate {
                at: event.at,
                cpu: event.cpu,
                task,
                migrated,
                from,
                to,
            });
        }
    }
}

fn next_label(moment: &Moment<'_>, event: &Event, next: TaskId) -> String {
    if next.is_idle() {
        return format!("swapper/{}[0]", event.cpu);
    }
    let name = moment.tasks.name_at(next, event.at).map_or("?", |name| moment.strings.get(name));
    format!("{name}[{}]", moment.tasks.get(next).pid)
}

impl Analysis for PerfTimehist {
    type Output = PerfTimehistSummary;

    fn needs(&self) -> Needs {
        &[&["sched_switch"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        self.max_cpu = self.max_cpu.max(u32::from(event.cpu.number()));
        match event.kind {
            EventKind::Switch { prev, next, prev_state, .. } => {
                self.switch(moment, event, prev, next, prev_state);
            }
            EventKind::Waking { wakee, .. } => {
                self.choice.prefers_waking = true;
                self.wakeup(moment, event, wakee);
            }
            EventKind::WakeupNew { wakee, .. } => self.wakeup(moment, event, wakee),
            EventKind::Wakeup { wakee, .. } if !self.choice.prefers_waking => {
                self.wakeup(moment, event, wakee);
            }
            EventKind::Wakeup { .. } => {}
            EventKind::Migrate { task, orig_cpu, dest_cpu, .. } => {
                self.migrate(moment, event, task, orig_cpu, dest_cpu);
            }
            EventKind::Fork { parent, child } => self.threads.fork_event(parent, child, moment.tasks),
            EventKind::Lost { count } => {
                if let Some(count) = count {
                    let (at, cpu, count) = (event.at, event.cpu, count.get());
                    self.rows.push(PerfTimehistRow::Lost { at, cpu, count });
                }
            }
            EventKind::Exit { .. }
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
    }

    fn finish(self, end: &End<'_>) -> Measured<PerfTimehistSummary> {
        let needs = self.needs();
        end.recorded.measured(needs, || summary(&self, &end.parts.strings, &end.parts.tasks))
    }
}
