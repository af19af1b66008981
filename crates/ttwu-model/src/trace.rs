//! A trace: events in time order, the tasks they speak of, and what is known to be missing.
//!
//! Readers produce [`RawEvent`]s in time order together with [`Strings`], [`TraceMeta`] and [`TraceHealth`];
//! [`TraceBuilder`] resolves pids to tasks and checks order. Nothing downstream may ask where a trace came from.

use crate::{
    CpuId, CpuSet, Duration, Event, EventKind, Pid, RawEvent, Resolver, StrId, TaskId, TaskNote, Time,
};
use std::collections::{BTreeMap, BTreeSet};

/// Interned strings, dense by [`StrId`].
///
/// Lookup is a sorted index rather than a hash map: the order of anything printed from it must not vary.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    strings: Vec<Box<str>>,
    by_text: BTreeMap<Box<str>, StrId>,
}

impl Strings {
    /// No strings yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { strings: Vec::new(), by_text: BTreeMap::new() }
    }

    /// The id of `text`, new or known.
    pub fn intern(&mut self, text: &str) -> StrId {
        if let Some(&id) = self.by_text.get(text) {
            return id;
        }
        let id = StrId::from_index(self.strings.len());
        self.strings.push(text.into());
        self.by_text.insert(text.into(), id);
        id
    }

    /// The id of `text`, if it occurs.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<StrId> {
        self.by_text.get(text).copied()
    }

    /// The text of `id`. An id of another trace gives `"?"` instead of a panic.
    #[must_use]
    pub fn get(&self, id: StrId) -> &str {
        self.strings.get(id.index()).map_or("?", |text| text)
    }

    /// How many strings there are; ids below it are valid.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// All strings with their ids, in id order.
    pub fn iter(&self) -> impl Iterator<Item = (StrId, &str)> {
        self.strings.iter().enumerate().map(|(index, text)| (StrId::from_index(index), &**text))
    }
}

/// One task of a trace: one incarnation of a pid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its thread id in the root pid namespace.
    pub pid: Pid,
    /// Its process' id, where the source says.
    pub tgid: Option<Pid>,
    /// Who forked it, where that was seen.
    pub parent: Option<TaskId>,
    /// The names it had, each with the time of the first event that showed it; empty if no event named it.
    pub names: Vec<(Time, StrId)>,
    /// When it was forked, where that was seen.
    pub forked_at: Option<Time>,
    /// When it exited, where that was seen.
    pub exited_at: Option<Time>,
}

/// All tasks of a trace, dense by [`TaskId`]; index 0 is the idle task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTable {
    tasks: Vec<TaskInfo>,
}

impl Default for TaskTable {
    fn default() -> Self {
        Self::new()
    }
}

impl TaskTable {
    /// Only the idle task.
    #[must_use]
    pub fn new() -> Self {
        let idle = TaskInfo {
            pid: Pid::IDLE,
            tgid: Some(Pid::IDLE),
            parent: None,
            names: Vec::new(),
            forked_at: None,
            exited_at: None,
        };
        Self { tasks: vec![idle] }
    }

    /// A table from rows in id order, the idle task first (own format's reader).
    ///
    /// # Panics
    /// If the first row is not the idle task.
    #[must_use]
    pub fn from_rows(tasks: Vec<TaskInfo>) -> Self {
        assert_eq!(tasks.first().map(|task| task.pid), Some(Pid::IDLE), "row 0 must be the idle task");
        Self { tasks }
    }

    pub(crate) fn push(&mut self, task: TaskInfo) -> TaskId {
        let id = TaskId::new(u32::try_from(self.tasks.len()).expect("fewer than 2^32 tasks"));
        self.tasks.push(task);
        id
    }

    /// See [`Resolver::put_row`]. Rows between are of nobody known.
    pub(crate) fn put_row(&mut self, task: TaskId, row: TaskInfo) {
        let nobody = || TaskInfo {
            pid: Pid::UNKNOWN,
            tgid: None,
            parent: None,
            names: Vec::new(),
            forked_at: None,
            exited_at: None,
        };
        if task.index() >= self.tasks.len() {
            self.tasks.resize_with(task.index() + 1, nobody);
        }
        let old = &mut self.tasks[task.index()];
        let mut names = std::mem::take(&mut old.names);
        names.extend(row.names);
        *old = TaskInfo { names, ..row };
    }

    pub(crate) fn get_mut(&mut self, task: TaskId) -> &mut TaskInfo {
        &mut self.tasks[task.index()]
    }

    /// How many tasks there are, the idle task included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Never: the idle task is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// One task's row.
    #[must_use]
    pub fn get(&self, task: TaskId) -> &TaskInfo {
        &self.tasks[task.index()]
    }

    /// All tasks in id order.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &TaskInfo)> {
        self.tasks
            .iter()
            .enumerate()
            .map(|(index, task)| (TaskId::new(u32::try_from(index).expect("checked in push")), task))
    }

    /// The name that `task` had at `at`: the last one shown up to then, else the first one shown later.
    #[must_use]
    pub fn name_at(&self, task: TaskId, at: Time) -> Option<StrId> {
        let names = &self.get(task).names;
        let seen = names.partition_point(|&(since, _)| since <= at);
        names.get(seen.saturating_sub(1)).map(|&(_, name)| name)
    }

    /// The last name that `task` had.
    #[must_use]
    pub fn last_name(&self, task: TaskId) -> Option<StrId> {
        self.get(task).names.last().map(|&(_, name)| name)
    }
}

/// What the source says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceMeta {
    /// The source's format, for people: `perf.data (zstd)`, `trace.dat v7`, …
    pub format: String,
    /// The program that made it (`perf version 6.1.187`, `ttwu 0.1.0`), where known.
    pub recorder: Option<String>,
    /// Kernel release, where known.
    pub kernel_release: Option<String>,
    /// Machine architecture (`x86_64`), where known.
    pub arch: Option<String>,
    /// Host name, where known.
    pub hostname: Option<String>,
    /// The clock of the time stamps (`local`, `mono`, `perf`, …), where known.
    pub clock: Option<String>,
    /// The command line that recorded it, where known.
    pub command: Option<String>,
    /// Number of CPUs that the source says it recorded.
    pub cpus_recorded: Option<u32>,
    /// CPUs that were on line, where known.
    pub cpus_online: Option<CpuSet>,
    /// Tracepoints that were switched on, as `system:name`, whether or not they fired. `None` where the source does not
    /// list them: then only an event that occurs is known to have been recorded.
    pub events_recorded: Option<BTreeSet<String>>,
    /// Smallest step of the time stamps in ns (1, or 1000 for text with six decimals).
    pub resolution_ns: u32,
    /// Pids of the recorder itself, so that its own activity can be told apart.
    pub recorder_pids: Vec<Pid>,
    /// Further facts in the words of their source: features, tunables, preemption model, idle states. Ordered.
    pub facts: BTreeMap<String, String>,
    /// The machine's topology in ttwu's text form, where the source has it: [`crate::Topology`]'s `Display` writes
    /// it, [`crate::Topology::parse`] reads it. Text rather than the type, so that a file of a newer version with a
    /// statement unknown here still opens.
    pub topology_text: Option<String>,
}

/// A time span in which events of one CPU (or of any CPU) are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossWindow {
    /// The CPU whose buffer lost events; `None` when the source does not say.
    pub cpu: Option<CpuId>,
    /// The last event seen before the gap (the trace's start, if none).
    pub from: Time,
    /// The first event after it.
    pub to: Time,
    /// How many events were lost, where counted.
    pub count: Option<u64>,
}

/// A clock that went back between two neighbouring events of one CPU's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// The CPU.
    pub cpu: CpuId,
    /// The time before the step.
    pub at: Time,
    /// How far back it went.
    pub back: Duration,
}

/// What is wrong with a trace. Importers drop nothing silently: they say it here, and every report shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHealth {
    /// Events that the source counts as lost.
    pub lost_events: u64,
    /// Gaps of which nobody counted the events.
    pub uncounted_gaps: u64,
    /// The gaps, in time order; at most [`TraceHealth::LIST_LIMIT`] are kept, the counts above are complete.
    pub loss_windows: Vec<LossWindow>,
    /// Clocks going back; at most [`TraceHealth::LIST_LIMIT`] are kept.
    pub clock_steps: Vec<ClockStep>,
    /// All clocks going back.
    pub clock_steps_total: u64,
    /// Records or lines that the reader does not know, by name, with how often.
    pub unknown_records: BTreeMap<String, u64>,
    /// Switches whose `prev` is not the task that the previous switch of that CPU put there: a switch is missing.
    pub switch_mismatches: u64,
    /// Events on a CPU outside the source's own CPU count or topology.
    pub foreign_cpu_events: u64,
    /// Where the input ends too early, as a byte offset.
    pub truncated_at: Option<u64>,
    /// What a reader mended to go on, in words.
    pub repairs: Vec<String>,
    /// Anything else that a reader of the results should know, in words. A note alone does not make a trace unclean.
    pub notes: Vec<String>,
}

impl TraceHealth {
    /// Bound of the lists: a damaged file must not fill the memory with its own complaints.
    pub const LIST_LIMIT: usize = 10_000;

    /// Is there nothing that could falsify a number?
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost_events == 0
            && self.uncounted_gaps == 0
            && self.loss_windows.is_empty()
            && self.clock_steps_total == 0
            && self.unknown_records.is_empty()
            && self.switch_mismatches == 0
            && self.foreign_cpu_events == 0
            && self.truncated_at.is_none()
            && self.repairs.is_empty()
    }

    /// Adds a gap.
    pub fn add_loss(&mut self, window: LossWindow) {
        match window.count {
            Some(count) => self.lost_events = self.lost_events.saturating_add(count),
            None => self.uncounted_gaps += 1,
        }
        if self.loss_windows.len() < Self::LIST_LIMIT {
            self.loss_windows.push(window);
        }
    }

    /// Adds a clock that went back.
    pub fn add_clock_step(&mut self, step: ClockStep) {
        self.clock_steps_total += 1;
        if self.clock_steps.len() < Self::LIST_LIMIT {
            self.clock_steps.push(step);
        }
    }

    /// Counts a record that the reader does not know. Names beyond [`TraceHealth::LIST_LIMIT`] count as `(others)`.
    pub fn add_unknown(&mut self, name: &str) {
        if let Some(count) = self.unknown_records.get_mut(name) {
            *count += 1;
        } else {
            let room = self.unknown_records.len() < Self::LIST_LIMIT;
            *self.unknown_records.entry(if room { name } else { "(others)" }.to_owned()).or_default() += 1;
        }
    }

    /// Says that something was mended.
    pub fn add_repair(&mut self, text: String) {
        if self.repairs.len() < Self::LIST_LIMIT {
            self.repairs.push(text);
        }
    }

    /// Says something that does not falsify numbers.
    pub fn add_note(&mut self, text: String) {
        if self.notes.len() < Self::LIST_LIMIT {
            self.notes.push(text);
        }
    }
}

/// Everything of a trace except its events: what a streaming reader has at its end.
#[derive(Clone, Debug, Default)]
pub struct TraceParts {
    /// What the source says about itself.
    pub meta: TraceMeta,
    /// Strings by id.
    pub strings: Strings,
    /// Tasks by id.
    pub tasks: TaskTable,
    /// What is wrong with it.
    pub health: TraceHealth,
    /// What the recorder noted about tasks beside the events, in order; empty for most formats.
    pub notes: Vec<TaskNote>,
}

/// A whole trace in memory: immutable, its events in time order.
///
/// Events with equal time keep the order of their source.
#[derive(Clone, Debug)]
pub struct Trace {
    parts: TraceParts,
    events: Vec<Event>,
}

impl Trace {
    /// A trace from resolved events, as a streaming reader hands them out.
    ///
    /// # Panics
    /// If the events are not in time order: readers sort, so this is our bug.
    #[must_use]
    pub fn from_parts(parts: TraceParts, events: Vec<Event>) -> Self {
        assert!(events.is_sorted_by_key(|event| event.at), "events must be in time order");
        Self { parts, events }
    }

    /// The events in time order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What the source says about itself.
    #[must_use]
    pub fn meta(&self) -> &TraceMeta {
        &self.parts.meta
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> &TaskTable {
        &self.parts.tasks
    }

    /// The strings.
    #[must_use]
    pub fn strings(&self) -> &Strings {
        &self.parts.strings
    }

    /// What is wrong with it.
    #[must_use]
    pub fn health(&self) -> &TraceHealth {
        &self.parts.health
    }

    /// All but the events.
    #[must_use]
    pub fn parts(&self) -> &TraceParts {
        &self.parts
    }

    /// First and last event's time; `None` without events.
    #[must_use]
    pub fn span(&self) -> Option<(Time, Time)> {
        Some((self.events.first()?.at, self.events.last()?.at))
    }

    /// How often each tracepoint occurs, by name.
    #[must_use]
    pub fn event_counts(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for event in &self.events {
            let name = match event.kind {
                EventKind::Other { name } => self.parts.strings.get(name),
                kind => kind.tracepoint().expect("only Other lacks a name"),
            };
            *counts.entry(name).or_default() += 1;
        }
        counts
    }
}

/// Makes a [`Trace`] from raw events that come in time order.
///
/// Readers that stream use a [`Resolver`] directly; this is the convenient whole.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    /// Strings that the events refer to; intern here before pushing.
    pub strings: Strings,
    /// What the source says about itself.
    pub meta: TraceMeta,
    resolver: Resolver,
    health: TraceHealth,
    events: Vec<Event>,
}

impl TraceBuilder {
    /// An empty trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next event.
    pub fn push(&mut self, raw: &RawEvent) {
        self.events.push(self.resolver.resolve(raw, &mut self.health));
    }

    /// What is known to be wrong so far, to add to.
    pub fn health_mut(&mut self) -> &mut TraceHealth {
        &mut self.health
    }

    /// The trace.
    ///
    /// # Panics
    /// If events were not pushed in time order.
    #[must_use]
    pub fn finish(self) -> Trace {
        let tasks = self.resolver.into_tasks();
        let parts = TraceParts {
            meta: self.meta,
            strings: self.strings,
            tasks,
            health: self.health,
            notes: Vec::new(),
        };
        Trace::from_parts(parts, self.events)
    }
}
