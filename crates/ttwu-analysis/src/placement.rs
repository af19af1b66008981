//! Placement: where woken tasks were put, relative to where they ran before and to where the waker was.
//!
//! `sched_waking.target_cpu` is the *previous* CPU, since the event comes before a CPU is chosen; the CPU chosen is what
//! [`Timeline::placed`] says. Each wake-up is classified against both, by the context it was made from, and by outcome.
//!
//! ```text
//!          chosen = previous CPU    → kept         (also where the waker sits there too)
//!   else   chosen = waker's CPU     → pulled
//!   else                            → elsewhere
//! ```
//!
//! *Stacked while idle*: the CPU chosen was running another task when the decision began (`sched_waking`) although some CPU
//! was idle then; within the cluster, the last-level cache, the machine. Idle and busy are what switches show; a CPU of
//! which nothing is known counts as neither. Affinity is not in a trace: the idle CPU may have been forbidden. Per-CPU
//! kernel threads, which are known by their names, are counted apart for that reason, and so are wake-ups onto the waker's
//! own CPU, which it may have been about to leave.
//!
//! What this does not do: say why (that needs a model of the policy), or whether a wake-up was sync: plain events do not
//! carry the wake flags.

use crate::tally::at;
use crate::{Analysis, ByRelation, End, Levels, Measured, Moment, Needs, Relation, Who};
use ttwu_model::{
    Context, CpuId, Duration, Event, EventKind, Interval, Level, Phase, Placed, TaskId, Time, Timeline, Wait,
};

/// How many examples are kept of each kind.
pub const EXAMPLES: usize = 10;

/// What happened to woken tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Wake-ups of sleeping tasks whose placement is known. New tasks are not among them.
    pub total: u64,
    /// CPU chosen against the previous CPU.
    pub by_prev: ByRelation,
    /// CPU chosen against the waker's CPU.
    pub by_waker: ByRelation,
    /// Previous CPU against the waker's CPU: what there was to choose from.
    pub prev_to_waker: ByRelation,
    /// From what context they were made.
    pub context: ByContext,
    /// Outcomes.
    pub outcome: Outcome,
    /// Outcomes by context, in the order of [`WakeContext::ALL`].
    pub outcome_by_context: [Outcome; WakeContext::ALL.len()],
    /// Put behind a running task while a CPU was idle.
    pub stacked: Stacked,
    /// The first such wake-ups.
    pub stacked_first: Vec<StackedExample>,
    /// Those that waited longest, longest first.
    pub stacked_worst: Vec<StackedExample>,
    /// Placements of new tasks.
    pub new_tasks: NewTasks,
    /// Per task, those with wake-ups only, most wake-ups first.
    pub tasks: Vec<TaskPlacement>,
    /// Are the levels known? Otherwise there is only "same CPU" and "other CPU".
    pub topology_known: bool,
    /// Was `sched_waking` recorded? Otherwise the waker's CPU is that of `sched_wakeup`, which with the wake list is the
    /// target itself, and idle CPUs are those at `sched_wakeup`.
    pub waking_recorded: bool,
}

/// From where a wake-up was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeContext {
    /// A task, for itself.
    Task,
    /// A softirq.
    Softirq,
    /// A hardware interrupt.
    Hardirq,
    /// The idle task outside of interrupts.
    Idle,
    /// A non-maskable interrupt.
    Nmi,
    /// The source carries no flags.
    Unknown,
}

impl WakeContext {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Task, Self::Softirq, Self::Hardirq, Self::Idle, Self::Nmi, Self::Unknown];

    /// Its name in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Softirq => "softirq",
            Self::Hardirq => "hardirq",
            Self::Idle => "idle",
            Self::Nmi => "nmi",
            Self::Unknown => "unknown",
        }
    }

    /// The context of an event emitted with `current` on the CPU.
    #[must_use]
    pub const fn of(context: Context, current: TaskId) -> Self {
        match context {
            Context::Task if current.is_idle() => Self::Idle,
            Context::Task => Self::Task,
            Context::Softirq => Self::Softirq,
            Context::Hardirq => Self::Hardirq,
            Context::Nmi => Self::Nmi,
            Context::Unknown => Self::Unknown,
        }
    }
}

/// Counts by [`WakeContext`], in the order of [`WakeContext::ALL`].
pub type ByContext = [u64; WakeContext::ALL.len()];

/// Where wake-ups ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// On the previous CPU.
    pub kept: u64,
    /// On the waker's CPU, which was not the previous one.
    pub pulled: u64,
    /// On a third CPU.
    pub elsewhere: u64,
    /// The previous CPU is not known.
    pub unknown: u64,
}

impl Outcome {
    fn add(&mut self, prev: Option<CpuId>, waker: CpuId, chosen: CpuId) {
        match prev {
            None => self.unknown += 1,
            Some(prev) if prev == chosen => self.kept += 1,
            Some(_) if waker == chosen => self.pulled += 1,
            Some(_) => self.elsewhere += 1,
        }
    }
}

/// Wake-ups put behind a running task while a CPU was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stacked {
    /// An idle CPU shared the chosen CPU's core or cluster; `None` where no clusters are known.
    pub cluster: Option<u64>,
    /// An idle CPU shared its last-level cache (or something smaller); `None` where caches are not known.
    pub llc: Option<u64>,
    /// Any CPU was idle.
    pub machine: u64,
    /// Of `machine`: the nearest idle CPU.
    pub nearest_idle: ByRelation,
    /// Of `machine`: onto the waker's own CPU, in task context.
    pub behind_waker: u64,
    /// Of `machine`: kernel threads that by their names may run on one CPU only.
    pub bound_kthreads: u64,
    /// All wake-ups onto a CPU that ran another task, idle CPUs or not.
    pub onto_busy: u64,
}

/// One wake-up that was stacked while a CPU was idle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackedExample {
    /// When it began.
    pub at: Time,
    /// The task woken.
    pub wakee: Who,
    /// The task current on the waker's CPU.
    pub waker: Who,
    /// From what context it was made.
    pub context: WakeContext,
    /// Where the waking code ran.
    pub waker_cpu: CpuId,
    /// Where the wakee ran before.
    pub prev_cpu: Option<CpuId>,
    /// Where it was put.
    pub cpu: CpuId,
    /// The nearest idle CPU then.
    pub idle_cpu: CpuId,
    /// How far that was from the one chosen.
    pub idle_relation: Relation,
    /// How long the wakee waited.
    pub waited: Duration,
    /// The wait was cut by a gap or the trace's end.
    pub censored: bool,
}

/// Placements of new tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewTasks {
    /// How many.
    pub total: u64,
    /// CPU chosen against the parent's CPU.
    pub by_parent: ByRelation,
    /// Put behind a running task while a CPU was idle.
    pub stacked: Stacked,
}

/// One task's wake-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPlacement {
    /// Which task.
    pub who: Who,
    /// Its wake-ups.
    pub wakeups: u64,
    /// Where they ended.
    pub outcome: Outcome,
    /// Stacked while any CPU was idle.
    pub stacked: u64,
}

/// What is kept per task while folding.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    wakeups: u32,
    kept: u32,
    pulled: u32,
    elsewhere: u32,
    stacked: u32,
    stacked_new: u32,
    /// The wake-up that it waits from was stacked: the nearest idle CPU and how far it was.
    waits_stacked: Option<(CpuId, Relation)>,
}

/// An example before names are known.
#[derive(Clone, Copy, Debug)]
struct Found {
    interval: Interval,
    idle: (CpuId, Relation),
}

/// The fold.
#[derive(Clone, Debug)]
pub struct PlacementAnalysis {
    levels: Levels,
    out: Placement,
    rows: Vec<Row>,
    /// Idle and busy CPUs at each task's last `sched_waking`: `2 * words` words a task.
    snapshots: Vec<u64>,
    words: usize,
    first: Vec<Found>,
    worst: Vec<Found>,
}

impl PlacementAnalysis {
    /// Ready for the first event of a machine with these levels.
    #[must_use]
    pub fn new(levels: Levels) -> Self {
        let stacked = Stacked {
            cluster: levels.has_clusters().then_some(0),
            llc: levels.has_llcs().then_some(0),
            ..Stacked::default()
        };
        let out = Placement {
            total: 0,
            by_prev: ByRelation::default(),
            by_waker: ByRelation::default(),
            prev_to_waker: ByRelation::default(),
            context: ByContext::default(),
            outcome: Outcome::default(),
            outcome_by_context: Default::default(),
            stacked,
            stacked_first: Vec::new(),
            stacked_worst: Vec::new(),
            new_tasks: NewTasks { stacked, ..NewTasks::default() },
            tasks: Vec::new(),
            topology_known: levels.known(),
            waking_recorded: false,
        };
        Self {
            levels,
            out,
            rows: Vec::new(),
            snapshots: Vec::new(),
            words: 1,
            first: Vec::new(),
            worst: Vec::new(),
        }
    }

    /// Remembers which CPUs are idle and busy as the choice for `wakee` begins.
    fn snapshot(&mut self, timeline: &Timeline, wakee: TaskId) {
        let (idle, busy) = (timeline.idle_cpus().words(), timeline.busy_cpus().words());
        let words = idle.len().max(busy.len());
        if words > self.words {
            self.widen(words);
        }
        let start = wakee.index() * 2 * self.words;
        if start + 2 * self.words > self.snapshots.len() {
            self.snapshots.resize(start + 2 * self.words, 0);
        }
        let (idle_slot, busy_slot) = self.snapshots[start..start + 2 * self.words].split_at_mut(self.words);
        fill(idle_slot, idle);
        fill(busy_slot, busy);
    }

    /// A CPU with a higher number than any before was seen: every snapshot gets longer.
    fn widen(&mut self, words: usize) {
        let old = std::mem::take(&mut self.snapshots);
        for set in old.chunks(self.words) {
            self.snapshots.extend_from_slice(set);
            self.snapshots.resize(self.snapshots.len() + words - self.words, 0);
        }
        self.words = words;
    }

    fn waking(&mut self, timeline: &Timeline, event: &Event, wakee: TaskId) {
        let racing = match timeline.phase(wakee) {
            (Phase::Running, _) => true,
            (Phase::Runnable(Wait::Wakeup), since) if since == event.at => false,
            // Queued already: not a placement, and the snapshot of the wake-up that queued it must stay.
            (Phase::Runnable(_) | Phase::Sleeping(_) | Phase::Unknown | Phase::Dead, _) => return,
        };
        self.snapshot(timeline, wakee);
        if racing && let Some(cpu) = timeline.cpu_of(wakee) {
            // It is the wakee itself that still keeps its CPU busy: nothing to be stacked behind.
            let busy = wakee.index() * 2 * self.words + self.words;
            self.snapshots[busy + cpu.index() / 64] &= !(1 << (cpu.index() % 64));
        }
    }

    fn placed(&mut self, timeline: &Timeline, placed: &Placed) {
        let Placed { wakee, wait, wake } = *placed;
        if wake.waking_at.is_none() {
            self.snapshot(timeline, wakee);
        }
        let by_waker = self.levels.relation(Some(wake.waker_cpu), wake.cpu);
        let context = WakeContext::of(wake.context(), wake.waker);
        let behind_waker = wake.cpu == wake.waker_cpu && context == WakeContext::Task;
        let row = at(&mut self.rows, wakee.index());
        row.waits_stacked = None;
        match wait {
            Wait::Wakeup => {
                row.wakeups += 1;
                match wake.prev_cpu {
                    None => {}
                    Some(prev) if prev == wake.cpu => row.kept += 1,
                    Some(_) if wake.waker_cpu == wake.cpu => row.pulled += 1,
                    Some(_) => row.elsewhere += 1,
                }
                let out = &mut self.out;
                out.total += 1;
                out.by_prev.add(self.levels.relation(wake.prev_cpu, wake.cpu), 1);
                out.by_waker.add(by_waker, 1);
                out.prev_to_waker.add(self.levels.relation(wake.prev_cpu, wake.waker_cpu), 1);
                out.context[context as usize] += 1;
                out.outcome.add(wake.prev_cpu, wake.waker_cpu, wake.cpu);
                out.outcome_by_context[context as usize].add(wake.prev_cpu, wake.waker_cpu, wake.cpu);
            }
            Wait::New => {
                self.out.new_tasks.total += 1;
                self.out.new_tasks.by_parent.add(by_waker, 1);
            }
            Wait::Preempted => return,
        }
        self.check_stacked(placed, behind_waker);
    }

    fn check_stacked(&mut self, placed: &Placed, behind_waker: bool) {
        let Placed { wakee, wait, wake } = *placed;
        let start = wakee.index() * 2 * self.words;
        let Some(snapshot) = self.snapshots.get(start..start + 2 * self.words) else { return };
        let (idle, busy) = snapshot.split_at(self.words);
        let index = wake.cpu.index();
        if busy.get(index / 64).is_none_or(|bits| bits & (1 << (index % 64)) == 0) {
            return;
        }
        let new = wait == Wait::New;
        let stacked = if new { &mut self.out.new_tasks.stacked } else { &mut self.out.stacked };
        stacked.onto_busy += 1;
        let nearest = members(idle).map(|cpu| (self.levels.relation(Some(cpu), wake.cpu), cpu)).min();
        let Some((relation, cpu)) = nearest else { return };
        stacked.machine += 1;
        stacked.nearest_idle.add(relation, 1);
        stacked.behind_waker += u64::from(behind_waker);
        if let Some(cluster) = &mut stacked.cluster {
            *cluster += u64::from(relation <= Relation::At(Level::Cluster));
        }
        if let Some(llc) = &mut stacked.llc {
            *llc += u64::from(relation <= Relation::At(Level::Llc));
        }
        let row = &mut self.rows[wakee.index()];
        row.waits_stacked = Some((cpu, relation));
        if new {
            row.stacked_new += 1;
        } else {
            row.stacked += 1;
        }
    }

    fn wait_ended(&mut self, interval: &Interval) {
        let Some(row) = self.rows.get_mut(interval.task.index()) else { return };
        let Some(idle) = row.waits_stacked.take() else { return };
        let found = Found { interval: *interval, idle };
        if self.first.len() < EXAMPLES {
            self.first.push(found);
        }
        let shorter = self.worst.partition_point(|kept| kept.interval.length() >= interval.length());
        if shorter < EXAMPLES {
            self.worst.truncate(EXAMPLES - 1);
            self.worst.insert(shorter, found);
        }
    }
}

fn fill(slot: &mut [u64], words: &[u64]) {
    let (head, tail) = slot.split_at_mut(words.len());
    head.copy_from_slice(words);
    tail.fill(0);
}

/// The CPUs of a mask.
fn members(words: &[u64]) -> impl Iterator<Item = CpuId> + '_ {
    words.iter().enumerate().flat_map(|(index, &bits)| {
        let mut left = bits;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            CpuId::try_from((index * 64 + bit) as u64).ok()
        })
    })
}

impl Analysis for PlacementAnalysis {
    type Output = Placement;

    fn needs(&self) -> Needs {
        &[&["sched_waking", "sched_wakeup"], &["sched_switch"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        let timeline = moment.timeline;
        if let EventKind::Waking { wakee, .. } = event.kind {
            self.waking(timeline, event, wakee);
        }
        if let Some(placed) = timeline.placed() {
            self.placed(timeline, placed);
        }
        for interval in timeline.ended() {
            if matches!(interval.phase, Phase::Runnable(Wait::Wakeup | Wait::New)) {
                self.wait_ended(interval);
            }
        }
    }

    fn finish(mut self, end: &End<'_>) -> Measured<Placement> {
        let last = end.span.map_or(Time::ZERO, |(_, last)| last);
        for interval in end.timeline.open(last) {
            if matches!(interval.phase, Phase::Runnable(Wait::Wakeup | Wait::New)) {
                self.wait_ended(&interval);
            }
        }
        let example = |found: &Found| {
            let wake = found.interval.wake.expect("only waits that a wake-up began are kept");
            StackedExample {
                at: wake.from().unwrap_or(found.interval.from),
                wakee: Who::of(end.parts, found.interval.task),
                waker: Who::of(end.parts, wake.waker),
                context: WakeContext::of(wake.context(), wake.waker),
                waker_cpu: wake.waker_cpu,
                prev_cpu: wake.prev_cpu,
                cpu: wake.cpu,
                idle_cpu: found.idle.0,
                idle_relation: found.idle.1,
                waited: found.interval.length(),
                censored: found.interval.censored,
            }
        };
        self.out.stacked_first = self.first.iter().map(example).collect();
        self.out.stacked_worst = self.worst.iter().map(example).collect();
        for (index, row) in
            self.rows.iter().enumerate().filter(|(_, row)| row.wakeups > 0 || row.stacked_new > 0)
        {
            let who = Who::at(end.parts, index);
            if who.is_bound_kthread() {
                self.out.stacked.bound_kthreads += u64::from(row.stacked);
                self.out.new_tasks.stacked.bound_kthreads += u64::from(row.stacked_new);
            }
            if row.wakeups > 0 {
                let known = row.kept + row.pulled + row.elsewhere;
                let outcome = Outcome {
                    kept: row.kept.into(),
                    pulled: row.pulled.into(),
                    elsewhere: row.elsewhere.into(),
                    unknown: (row.wakeups - known).into(),
                };
                let (wakeups, stacked) = (row.wakeups.into(), row.stacked.into());
                self.out.tasks.push(TaskPlacement { who, wakeups, outcome, stacked });
            }
        }
        self.out.tasks.sort_by(|a, b| b.wakeups.cmp(&a.wakeups).then_with(|| a.who.cmp(&b.who)));
        self.out.waking_recorded = end.recorded.has("sched_waking");
        let needs = self.needs();
        end.recorded.measured(needs, || self.out)
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
