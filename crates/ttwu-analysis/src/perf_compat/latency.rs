//! `perf sched latency` of 6.1 and of 7.3.
//!
//! ```text
//!              waking/wakeup              switch in
//!  Sleeping ─────────────────► Waiting ─────────────► Running     a delay is counted at each switch in from Waiting
//!     ▲                           ▲                      │
//!     └──── switch out (S, D, …) ─┼──────────────────────┤
//!                                 └─── switch out (R) ───┘
//! ```

use super::threads::{ThreadId, Threads};
use super::{PerfVersion, WakeupChoice};
use crate::{Analysis, End, Measured, Moment, Needs};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use ttwu_model::{Event, EventKind, Strings, TaskId, TaskNote, TaskState, TaskTable, Time};

/// perf's logarithmic buckets: below 1 µs, then doubling from 1 µs, the last for 2^20 µs and more.
pub const LOG_BUCKETS: usize = 22;

/// A column to sort by, largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfSortKey {
    /// Mean delay, in whole nanoseconds.
    Avg,
    /// Largest delay.
    Max,
    /// Number of delays, which perf calls switches.
    Switch,
    /// Run time.
    Runtime,
    /// Thread id.
    Pid,
}

impl PerfSortKey {
    /// perf's default order.
    pub const DEFAULT: [Self; 4] = [Self::Avg, Self::Max, Self::Switch, Self::Runtime];

    /// The key that perf's `-s` calls so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "avg" => Self::Avg,
            "max" => Self::Max,
            "switch" => Self::Switch,
            "runtime" => Self::Runtime,
            "pid" => Self::Pid,
            _ => return None,
        })
    }

    fn compare(self, left: &PerfLatencyRow, right: &PerfLatencyRow) -> Ordering {
        match self {
            Self::Avg => left.delay_ns_avg().cmp(&right.delay_ns_avg()),
            Self::Max => left.delay_ns_max.cmp(&right.delay_ns_max),
            Self::Switch => left.delays.cmp(&right.delays),
            Self::Runtime => left.runtime_ns.cmp(&right.runtime_ns),
            Self::Pid => left.tid.cmp(&right.tid),
        }
    }
}

/// What to make of the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfLatencyOptions {
    /// Whose rules.
    pub version: PerfVersion,
    /// One row a thread (`-p`) instead of one a name.
    pub per_thread: bool,
    /// `-s`: the columns to sort by; ties keep perf's own order.
    pub sort: Vec<PerfSortKey>,
    /// Was `sched_waking` recorded? `None` where the source does not list its events.
    pub waking_recorded: Option<bool>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfLatencyRow {
    /// The name by the last COMM record.
    pub name: String,
    /// The thread, of several the one with the highest id.
    pub tid: i32,
    /// How many threads are in this row.
    pub threads: u32,
    /// Sum of `sched_stat_runtime`.
    pub runtime_ns: u64,
    /// Number of delays.
    pub delays: u64,
    /// Their sum.
    pub delay_ns_sum: u64,
    /// The largest.
    pub delay_ns_max: u64,
    /// When the largest began; zero if all delays are zero.
    pub max_from: Time,
    /// When it ended.
    pub max_to: Time,
}

impl PerfLatencyRow {
    /// The mean, rounded down as perf does.
    #[must_use]
    pub const fn delay_ns_avg(&self) -> u64 {
        match self.delay_ns_sum.checked_div(self.delays) {
            Some(avg) => avg,
            None => 0,
        }
    }
}

/// What perf says of lost events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostRecords {
    /// Events lost.
    pub events: u64,
    /// Records in the file, of whatever kind; perf relates the two although they count different things.
    pub records: u64,
    /// LOST records.
    pub chunks: u64,
}

/// The table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfLatencyTable {
    /// Whose rules made it.
    pub version: PerfVersion,
    /// The rows that perf prints, in its order.
    pub rows: Vec<PerfLatencyRow>,
    /// Run time of these rows.
    pub runtime_ns: u64,
    /// Delays of these rows.
    pub delays: u64,
    /// Lost events.
    pub lost: LostRecords,
    /// Switches away from a task that, by the switch before, was not running.
    pub switch_bugs: u64,
    /// Wake-ups of sleeping tasks: what perf relates the former to.
    pub wakeups: u64,
    /// Delays of all but the idle task by [`LOG_BUCKETS`].
    pub histogram: [u64; LOG_BUCKETS],
}

/// What the last "atom" of a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtomState {
    /// perf has not heard of the thread.
    None,
    Sleeping,
    Waiting,
    SchedIn,
}

#[derive(Clone, Debug)]
struct Atoms {
    state: AtomState,
    waiting_since: Time,
    row: PerfLatencyRow,
}

/// The fold.
#[derive(Clone, Debug)]
pub struct PerfLatency {
    options: PerfLatencyOptions,
    choice: WakeupChoice,
    threads: Threads,
    atoms: Vec<Atoms>,
    current: Vec<Option<TaskId>>,
    lost: LostRecords,
    switch_bugs: u64,
    wakeups: u64,
    records: u64,
    histogram: [u64; LOG_BUCKETS],
}

impl PerfLatency {
    /// Ready for the first event.
    #[must_use]
    pub fn new(options: PerfLatencyOptions) -> Self {
        Self {
            choice: WakeupChoice::new(options.waking_recorded),
            options,
            threads: Threads::default(),
            atoms: Vec::new(),
            current: Vec::new(),
            lost: LostRecords::default(),
            switch_bugs: 0,
            wakeups: 0,
            records: 0,
            histogram: [0; LOG_BUCKETS],
        }
    }

    /// Takes a note that the recorder made before the next event. Exits do not matter here: perf does not ask for them.
    pub fn note(&mut self, note: &TaskNote) {
        self.threads.note(note);
    }

    fn atoms(&mut self, thread: ThreadId) -> &mut Atoms {
        while thread.index() >= self.atoms.len() {
            self.atoms.push(Atoms {
                state: AtomState::None,
                waiting_since: Time::ZERO,
                row: PerfLatencyRow {
                    name: String::new(),
                    tid: 0,
                    threads: 1,
                    runtime_ns: 0,
                    delays: 0,
                    delay_ns_sum: 0,
                    delay_ns_max: 0,
                    max_from: Time::ZERO,
                    max_to: Time::ZERO,
                },
            });
        }
        &mut self.atoms[thread.index()]
    }

    fn switch(&mut self, event: &Event, prev: TaskId, next: TaskId, state: TaskState, tasks: &TaskTable) {
        let cpu = event.cpu.index();
        if cpu >= self.current.len() {
            self.current.resize(cpu + 1, None);
        }
        let current = self.current[cpu].replace(next);
        if current.is_some_and(|current| current != prev) {
            self.switch_bugs += 1;
        }
        let waits = self.options.version.waits(state);
        let out = self.threads.of_task(prev, tasks, -1);
        let out = self.atoms(out);
        out.state = if waits { AtomState::Waiting } else { AtomState::Sleeping };
        out.waiting_since = event.at;
        let thread = self.threads.of_task(next, tasks, -1);
        let into = self.atoms(thread);
        if into.state == AtomState::None {
            // PERF: a task seen for the first time counts a delay of 0, which draws averages down.
            into.state = AtomState::Waiting;
            into.waiting_since = event.at;
        }
        if into.state == AtomState::Waiting {
            into.state = AtomState::SchedIn;
            let delay = event.at.saturating_since(into.waiting_since).as_ns();
            let row = &mut into.row;
            row.delay_ns_sum = row.delay_ns_sum.saturating_add(delay);
            row.delays += 1;
            if delay > row.delay_ns_max {
                row.delay_ns_max = delay;
                row.max_from = into.waiting_since;
                row.max_to = event.at;
            }
            if !next.is_idle() {
                self.histogram[log_bucket(delay)] += 1;
            }
        }
    }

    fn wakeup(&mut self, at: Time, wakee: TaskId, tasks: &TaskTable) {
        let thread = self.threads.of_task(wakee, tasks, -1);
        let atoms = self.atoms(thread);
        match atoms.state {
            AtomState::None | AtomState::Sleeping => {
                atoms.state = AtomState::Waiting;
                atoms.waiting_since = at;
                self.wakeups += 1;
            }
            AtomState::Waiting | AtomState::SchedIn => {}
        }
    }

    fn runtime(&mut self, at: Time, task: TaskId, runtime_ns: u64, tasks: &TaskTable) {
        let thread = self.threads.of_task(task, tasks, -1);
        let atoms = self.atoms(thread);
        if atoms.state == AtomState::None {
            atoms.state = AtomState::Waiting;
            atoms.waiting_since = at;
        }
        atoms.row.runtime_ns = atoms.row.runtime_ns.saturating_add(runtime_ns);
    }

    fn rows(&mut self, strings: &Strings, tasks: &TaskTable) -> Vec<PerfLatencyRow> {
        let named = self.threads.iter().filter(|(thread, _)| {
            self.atoms.get(thread.index()).is_some_and(|atoms| atoms.state != AtomState::None)
        });
        let mut rows: Vec<_> = named
            .map(|(thread, known)| {
                let name = self.threads.name(thread, strings, tasks);
                PerfLatencyRow { name, tid: known.tid, ..self.atoms[thread.index()].row.clone() }
            })
            .collect();
        // perf keeps its trees in descending order.
        rows.sort_by_key(|row| std::cmp::Reverse(row.tid));
        if !self.options.per_thread {
            rows = merge_by_name(rows);
        }
        rows.retain(|row| row.delays != 0 && row.tid != 0 && row.name != "swapper");
        let keys = &self.options.sort;
        rows.sort_by(|left, right| {
            let order = keys.iter().map(|key| key.compare(right, left));
            order.fold(Ordering::Equal, Ordering::then)
        });
        rows
    }
}

impl Analysis for PerfLatency {
    type Output = PerfLatencyTable;

    fn needs(&self) -> Needs {
        &[&["sched_switch"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        let tasks = moment.tasks;
        let new = self.options.version >= PerfVersion::V7;
        match event.kind {
            EventKind::Switch { prev, next, prev_state, .. } => {
                self.switch(event, prev, next, prev_state, tasks);
            }
            EventKind::StatRuntime { task, runtime_ns } => self.runtime(event.at, task, runtime_ns, tasks),
            EventKind::WakeupNew { wakee, .. } => self.wakeup(event.at, wakee, tasks),
            EventKind::Waking { wakee, .. } if new => {
                self.choice.prefers_waking = true;
                self.wakeup(event.at, wakee, tasks);
            }
            // PERF: 6.1 does not know `sched_waking`. `perf sched record` records only that, so that 6.1's table has no
            // wake-up latency at all: its delays are those after a switch out in state R, and those of new tasks.
            EventKind::Waking { .. } => {}
            EventKind::Wakeup { wakee, .. } if !(new && self.choice.prefers_waking) => {
                self.wakeup(event.at, wakee, tasks);
            }
            EventKind::Wakeup { .. } => {}
            EventKind::Fork { parent, child } => self.threads.fork_event(parent, child, tasks),
            EventKind::Lost { count } => {
                self.lost.chunks += 1;
                self.lost.events += count.map_or(0, |count| u64::from(count.get()));
            }
            EventKind::Migrate { .. }
            | EventKind::Exit { .. }
            | EventKind::Exec { .. }
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
        self.records += 1;
    }

    fn finish(mut self, end: &End<'_>) -> Measured<PerfLatencyTable> {
        let parts = end.parts;
        // Other formats have no records beside events.
        let told = parts.meta.facts.get("perf.records").and_then(|text| text.parse().ok());
        self.lost.records = told.unwrap_or(self.records);
        let needs = self.needs();
        end.recorded.measured(needs, || {
            let rows = self.rows(&parts.strings, &parts.tasks);
            PerfLatencyTable {
                version: self.options.version,
                runtime_ns: rows.iter().map(|row| row.runtime_ns).sum(),
                delays: rows.iter().map(|row| row.delays).sum(),
                rows,
                lost: self.lost,
                switch_bugs: self.switch_bugs,
                wakeups: self.wakeups,
                histogram: self.histogram,
            }
        })
    }
}

fn log_bucket(delay_ns: u64) -> usize {
    let us = delay_ns / 1000;
    let bucket = (u64::BITS - us.leading_zeros()) as usize;
    bucket.min(LOG_BUCKETS - 1)
}

/// One row a name, in descending order of names; of the rows merged the first one stands for all.
fn merge_by_name(rows: Vec<PerfLatencyRow>) -> Vec<PerfLatencyRow> {
    let mut by_name: BTreeMap<String, PerfLatencyRow> = BTreeMap::new();
    for row in rows {
        match by_name.get_mut(&row.name) {
            None => {
                by_name.insert(row.name.clone(), row);
            }
            Some(all) => {
                all.threads += 1;
                all.runtime_ns = all.runtime_ns.saturating_add(row.runtime_ns);
                all.delays += row.delays;
                all.delay_ns_sum = all.delay_ns_sum.saturating_add(row.delay_ns_sum);
                if row.delay_ns_max > all.delay_ns_max {
                    all.delay_ns_max = row.delay_ns_max;
                    all.max_from = row.max_from;
                    all.max_to = row.max_to;
                }
            }
        }
    }
    by_name.into_values().rev().collect()
}
