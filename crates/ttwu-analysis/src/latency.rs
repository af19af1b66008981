//! How long tasks waited for a CPU, and why: per task and per name.
//!
//! ```text
//!   waking     wakeup      switch in      switch out (R)     switch in
//!     ├──────────┼─────────────┤ running ──────┤····················├──
//!     │  to_wakeup  to_switch  │               └── preempted ───────┘
//!     └────── wakeup ──────────┘
//! ```
//!
//! A *delay* is any of the three waits of [`Wait`]: after a wake-up, of a new task, after a preemption (or a yield). They are
//! told apart because they answer different questions, and added up because "delay" means their sum to perf 7 and to
//! schedstats. A wait whose beginning or end was not seen is counted as censored and is in no average: its length is
//! not known, and a guess is the commonest false outlier.
//!
//! What this does not do: reproduce perf's figures; see `perf_compat`.

use crate::distribution::{Distribution, Summary};
use crate::schbench::SchbenchTable;
use crate::{Analysis, End, Measured, Moment, Needs};
use std::collections::BTreeMap;
use ttwu_model::{Event, EventKind, Interval, Phase, Pid, Strings, TaskId, TaskTable, Time, Wait};

/// Waits that were not seen whole, by what cut them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Censored {
    /// The task was running or waiting when the recording began: its first switch-in ends a wait of unknown beginning (if it
    /// waited at all).
    pub by_start: u64,
    /// Events were lost, or contradict each other, during the wait.
    pub by_gap: u64,
    /// The task was woken while still on its way to sleep, and `sched_wakeup`, which would tell when it was queued, was not
    /// recorded: it waited at most since it left the CPU.
    pub by_race: u64,
    /// The task was still waiting when the recording ended.
    pub by_end: u64,
}

impl Censored {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.by_start + self.by_gap + self.by_race + self.by_end
    }

    fn add(&mut self, other: &Self) {
        self.by_start += other.by_start;
        self.by_gap += other.by_gap;
        self.by_race += other.by_race;
        self.by_end += other.by_end;
    }
}

/// One task, or all tasks of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyRow {
    /// The last name; `None` if no event named the task.
    pub name: Option<String>,
    /// The tasks in this row.
    pub tasks: Vec<TaskId>,
    /// Their pids, in the same order.
    pub pids: Vec<Pid>,
    /// Time on a CPU as seen by switches; time within a gap is not in it.
    pub runtime_ns: u64,
    /// How often a switch took the CPU from it.
    pub switches: u64,
    /// All waits for a CPU.
    pub delay: Summary,
    /// Waits after a wake-up; `None` if wake-ups were not recorded.
    pub wakeup: Option<Summary>,
    /// Of these, from `sched_waking` to `sched_wakeup`; `None` unless both were recorded.
    pub waking_to_wakeup: Option<Summary>,
    /// Of these, from `sched_wakeup` to the switch-in; `None` unless `sched_wakeup` was recorded.
    pub wakeup_to_switch: Option<Summary>,
    /// First waits of new tasks; `None` if `sched_wakeup_new` was not recorded.
    pub new: Option<Summary>,
    /// Waits after being switched out runnable.
    pub preempted: Summary,
    /// Waits not seen whole.
    pub censored: Censored,
}

/// The analysis' result. Rows are in descending order of summed delay, then of run time, then by task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyReport {
    /// One row a task.
    pub by_task: Vec<LatencyRow>,
    /// One row a name; tasks without a name have rows of their own.
    pub by_name: Vec<LatencyRow>,
    /// All tasks together (but not the idle tasks).
    pub total: LatencyRow,
    /// All waits by length, shortest first, from the first class that has any to the last.
    pub histogram: Vec<WaitClass>,
    /// Wake-up latencies of all these tasks as schbench would print them; `None` if wake-ups were not recorded.
    pub schbench: Option<SchbenchTable>,
    /// Tracepoints that were not recorded and which kinds of waits are therefore missing, in words.
    pub not_measured: Vec<String>,
}

/// Waits of about one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitClass {
    /// They are shorter than this, and not shorter than half of it.
    pub below_ns: u64,
    /// After a wake-up, or of a new task.
    pub wakeup: u64,
    /// After being switched out runnable.
    pub preempted: u64,
}

/// Which tasks to look at; an empty filter means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Any of these pids.
    pub pids: Vec<Pid>,
    /// Or any of these names, as a whole.
    pub names: Vec<String>,
}

impl TaskFilter {
    /// Is nothing filtered out?
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.pids.is_empty() && self.names.is_empty()
    }

    /// Does `task` pass? Any of its names counts.
    #[must_use]
    pub fn matches(&self, task: TaskId, strings: &Strings, tasks: &TaskTable) -> bool {
        if self.is_all() {
            return true;
        }
        let row = tasks.get(task);
        let named = |name: &String| row.names.iter().any(|&(_, id)| strings.get(id) == name);
        self.pids.contains(&row.pid) || self.names.iter().any(named)
    }
}

/// What is collected of one task.
#[derive(Clone, Debug, Default)]
struct Waits {
    runtime_ns: u64,
    switches: u64,
    seen: bool,
    wakeup: Distribution,
    new: Distribution,
    preempted: Distribution,
    waking_to_wakeup: Distribution,
    wakeup_to_switch: Distribution,
    censored: Censored,
}

impl Waits {
    fn merge(&mut self, other: &Self) {
        self.runtime_ns = self.runtime_ns.saturating_add(other.runtime_ns);
        self.switches += other.switches;
        self.wakeup.merge(&other.wakeup);
        self.new.merge(&other.new);
        self.preempted.merge(&other.preempted);
        self.waking_to_wakeup.merge(&other.waking_to_wakeup);
        self.wakeup_to_switch.merge(&other.wakeup_to_switch);
        self.censored.add(&other.censored);
    }
}

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    filter: TaskFilter,
    tasks: Vec<Waits>,
}

/// Which kinds of waits the recording can show.
#[derive(Clone, Copy)]
struct Kinds {
    wakeup: bool,
    split: bool,
    to_switch: bool,
    new: bool,
}

impl Latency {
    /// Ready for the first event; rows will be of tasks that pass `filter`.
    #[must_use]
    pub fn new(filter: TaskFilter) -> Self {
        Self { filter, tasks: Vec::new() }
    }

    fn task(&mut self, task: TaskId) -> &mut Waits {
        if task.index() >= self.tasks.len() {
            self.tasks.resize_with(task.index() + 1, Waits::default);
        }
        &mut self.tasks[task.index()]
    }

    fn waited(&mut self, interval: &Interval, wait: Wait) {
        let waits = self.task(interval.task);
        if interval.censored {
            // Any other wait after a wake-up begins with `sched_waking`; this one, when the task had left the CPU.
            let raced = interval.wake.is_some_and(|wake| {
                wake.wakeup_at.is_none() && wake.waking_at.is_some_and(|waking| waking < interval.from)
            });
            waits.censored.by_race += u64::from(raced);
            waits.censored.by_gap += u64::from(!raced);
            return;
        }
        let (from, to) = (interval.from, interval.to);
        match wait {
            Wait::Wakeup => {
                waits.wakeup.add(from, to);
                let Some(wake) = interval.wake else { return };
                if let Some(wakeup_at) = wake.wakeup_at {
                    // A wake-up that began while the task was still on its way to sleep starts to wait later.
                    let begin = wake.waking_at.map(|waking_at| waking_at.max(from));
                    if let Some(begin) = begin {
                        waits.waking_to_wakeup.add(begin, wakeup_at);
                    }
                    waits.wakeup_to_switch.add(wakeup_at, to);
                }
            }
            Wait::New => waits.new.add(from, to),
            Wait::Preempted => waits.preempted.add(from, to),
        }
    }

    fn row(waits: &Waits, kinds: Kinds, names: (Option<String>, Vec<TaskId>, Vec<Pid>)) -> LatencyRow {
        let mut all = waits.preempted.clone();
        all.merge(&waits.wakeup);
        all.merge(&waits.new);
        let (name, tasks, pids) = names;
        LatencyRow {
            name,
            tasks,
            pids,
            runtime_ns: waits.runtime_ns,
            switches: waits.switches,
            delay: all.summary(),
            wakeup: kinds.wakeup.then(|| waits.wakeup.summary()),
            waking_to_wakeup: kinds.split.then(|| waits.waking_to_wakeup.summary()),
            wakeup_to_switch: kinds.to_switch.then(|| waits.wakeup_to_switch.summary()),
            new: kinds.new.then(|| waits.new.summary()),
            preempted: waits.preempted.summary(),
            censored: waits.censored,
        }
    }

    fn report(&self, kinds: Kinds, strings: &Strings, tasks: &TaskTable) -> LatencyReport {
        let mut by_task = Vec::new();
        let mut names: BTreeMap<(Option<&str>, usize), Vec<TaskId>> = BTreeMap::new();
        let mut total = Waits::default();
        let mut everyone = Vec::new();
        for (task, info) in tasks.iter() {
            let Some(waits) = self.tasks.get(task.index()).filter(|_| !task.is_idle()) else { continue };
            if !waits.seen || !self.filter.matches(task, strings, tasks) {
                continue;
            }
            let name = tasks.last_name(task).map(|name| strings.get(name));
            // Tasks without a name are not one another's kin.
            names.entry((name, if name.is_none() { task.index() } else { 0 })).or_default().push(task);
            by_task.push(Self::row(waits, kinds, (name.map(str::to_owned), vec![task], vec![info.pid])));
            everyone.push(task);
        }
        let pids = |tasks_of: &[TaskId]| tasks_of.iter().map(|&task| tasks.get(task).pid).collect();
        let mut by_name = Vec::new();
        for ((name, _), members) in names {
            let mut waits = Waits::default();
            for task in &members {
                waits.merge(&self.tasks[task.index()]);
            }
            total.merge(&waits);
            let pids = pids(&members);
            by_name.push(Self::row(&waits, kinds, (name.map(str::to_owned), members, pids)));
        }
        sort(&mut by_task);
        sort(&mut by_name);
        let all_pids = pids(&everyone);
        let schbench = kinds.wakeup.then(|| SchbenchTable::new(&total.wakeup));
        let histogram = histogram(&total);
        let total = Self::row(&total, kinds, (None, everyone, all_pids));
        LatencyReport { by_task, by_name, total, histogram, schbench, not_measured: Vec::new() }
    }
}

/// Classes of a factor of two.
fn histogram(waits: &Waits) -> Vec<WaitClass> {
    let mut classes = [WaitClass::default(); u64::BITS as usize + 1];
    let class = |ns: u64| (u64::BITS - ns.leading_zeros()) as usize;
    for distribution in [&waits.wakeup, &waits.new] {
        distribution.for_each(|ns, count| classes[class(ns)].wakeup += count);
    }
    waits.preempted.for_each(|ns, count| classes[class(ns)].preempted += count);
    for (index, class) in classes.iter_mut().enumerate() {
        class.below_ns = 1_u64.checked_shl(index as u32).unwrap_or(u64::MAX);
    }
    let some = |class: &WaitClass| class.wakeup + class.preempted > 0;
    let (first, last) = (classes.iter().position(some), classes.iter().rposition(some));
    first.zip(last).map_or_else(Vec::new, |(first, last)| classes[first..=last].to_vec())
}

fn sort(rows: &mut [LatencyRow]) {
    let key = |row: &LatencyRow| (std::cmp::Reverse((row.delay.ns_sum, row.runtime_ns)), row.tasks[0]);
    rows.sort_by_key(key);
}

impl Analysis for Latency {
    type Output = LatencyReport;

    fn needs(&self) -> Needs {
        &[&["sched_switch"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        let mut waited = None;
        for interval in moment.timeline.ended() {
            match interval.phase {
                Phase::Running if interval.task.is_idle() => {}
                Phase::Running => {
                    let length = interval.length().as_ns();
                    let waits = self.task(interval.task);
                    waits.runtime_ns = waits.runtime_ns.saturating_add(length);
                }
                Phase::Runnable(wait) => {
                    waited = Some(interval.task);
                    self.waited(interval, wait);
                }
                Phase::Sleeping(_) | Phase::Unknown | Phase::Dead => {}
            }
        }
        if let EventKind::Switch { prev, next, .. } = event.kind {
            if !prev.is_idle() {
                let waits = self.task(prev);
                waits.switches += 1;
                waits.seen = true;
            }
            if !next.is_idle() {
                let waits = self.task(next);
                if waited != Some(next) {
                    let first = !waits.seen;
                    waits.censored.by_start += u64::from(first);
                    waits.censored.by_gap += u64::from(!first);
                }
                waits.seen = true;
            }
        }
    }

    fn finish(mut self, end: &End<'_>) -> Measured<LatencyReport> {
        let recorded = end.recorded;
        let at = end.span.map_or(Time::ZERO, |(_, last)| last);
        for interval in end.timeline.open(at).filter(|interval| !interval.task.is_idle()) {
            let length = interval.length().as_ns();
            let waits = self.task(interval.task);
            match interval.phase {
                Phase::Running => waits.runtime_ns = waits.runtime_ns.saturating_add(length),
                Phase::Runnable(_) => {
                    waits.censored.by_end += 1;
                    waits.seen = true;
                }
                Phase::Sleeping(_) | Phase::Unknown | Phase::Dead => {}
            }
        }
        let (waking, wakeup) = (recorded.has("sched_waking"), recorded.has("sched_wakeup"));
        let kinds = Kinds {
            wakeup: waking || wakeup,
            split: waking && wakeup,
            to_switch: wakeup,
            new: recorded.has("sched_wakeup_new"),
        };
        recorded.measured(self.needs(), || {
            let mut report = self.report(kinds, &end.parts.strings, &end.parts.tasks);
            let mut missing = |lacks: bool, what: &str| {
                if lacks {
                    report.not_measured.push(what.to_owned());
                }
            };
            missing(!kinds.wakeup, "waits after wake-ups (needs sched_waking or sched_wakeup)");
            missing(kinds.wakeup && !kinds.to_switch, "waking and queueing apart (needs sched_wakeup)");
            missing(kinds.wakeup && !waking, "time from waking to wake-up (needs sched_waking)");
            missing(!kinds.new, "first waits of new tasks (needs sched_wakeup_new)");
            report
        })
    }
}

#[cfg(test)]
#[path = "latency_tests.rs"]
mod tests;
