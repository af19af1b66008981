//! CPUs: which ones tasks were put on and ran on, how busy each was, and how long queues were.
//!
//! *A hit* is a wake-up placement: the CPU that the wake-up chose, as dmatest's counter of the current CPU per iteration
//! counts (one iteration, one wake-up). Runs and run time per CPU stand beside it: they differ where the balancer moves a
//! woken task, and where a task is preempted.
//!
//! *Queue length* is the running task (not the idle one) plus those known to wait; it is weighted by time, and counted only
//! while it is known what the CPU runs. Tasks that waited before the recording began are not known, so it is a lower bound.
//!
//! *Work conservation is violated* while some CPU has more than one runnable task and another runs its idle task with an
//! empty queue. Affinity is not in a trace: such a time is a question, not yet a fault. An episode also contains the time
//! that a wake-up needs to get an idle CPU going, so short ones are normal; they are counted by length.
//!
//! What this does not do: frequency and idle states.

use crate::occupancy::{Occupancy, Strip};
use crate::tally::{Tally, at, pair, unpair};
use crate::{Analysis, End, Levels, Measured, Moment, Needs, Who};
use ttwu_model::{CpuId, Duration, Event, EventKind, Phase, TaskId, Time, Timeline, Wait};

/// Queue lengths from this one on are counted together.
pub const QUEUE_LENGTH_MAX: usize = 16;

/// How many of the longest violations are kept.
pub const VIOLATIONS_KEPT: usize = 10;

/// What CPUs did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Per CPU, by number; CPUs without any event in between have nothing known.
    pub cpus: Vec<CpuUse>,
    /// Per task that ran or was woken, longest run time first.
    pub tasks: Vec<TaskCpus>,
    /// First to last event.
    pub span: Duration,
    /// Times with work waiting and a CPU idle, over the machine.
    pub violations: Violations,
    /// The same where both CPUs share a last-level cache; `None` where caches are not known.
    pub violations_in_llc: Option<Violations>,
    /// Queue lengths over time.
    pub occupancy: Occupancy,
    /// Were wake-ups recorded? Otherwise hits are not known, and queues only hold preempted tasks.
    pub wakeups_recorded: bool,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuUse {
    /// Which.
    pub cpu: CpuId,
    /// Running a task.
    pub busy: Duration,
    /// Running the idle task.
    pub idle: Duration,
    /// The rest of the span: before its first switch, or in a gap.
    pub unknown: Duration,
    /// Switches to a task other than the idle one.
    pub switches_in: u64,
    /// Wake-ups placed on it.
    pub hits: u64,
    /// Time at each queue length; the last entry holds all lengths from [`QUEUE_LENGTH_MAX`] on.
    pub queue: [Duration; QUEUE_LENGTH_MAX + 1],
    /// Sum of length × ns, for [`CpuUse::queue_mean_milli`].
    pub queue_area_ns: u128,
}

impl CpuUse {
    /// Mean queue length over the known time, in thousandths; `None` where nothing is known.
    #[must_use]
    pub fn queue_mean_milli(&self) -> Option<u64> {
        let known: Duration = self.queue.iter().copied().sum();
        let known = u128::from(known.as_ns());
        (known != 0).then(|| u64::try_from(self.queue_area_ns * 1000 / known).unwrap_or(u64::MAX))
    }
}

/// One task's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCpus {
    /// Which task.
    pub who: Who,
    /// Its CPUs, by number.
    pub cpus: Vec<TaskOnCpu>,
}

impl TaskCpus {
    /// All wake-ups.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.cpus.iter().map(|cell| cell.hits).sum()
    }

    /// All known run time.
    #[must_use]
    pub fn run(&self) -> Duration {
        self.cpus.iter().map(|cell| cell.run).sum()
    }
}

/// One task on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskOnCpu {
    /// The CPU.
    pub cpu: CpuId,
    /// Its wake-ups placed there.
    pub hits: u64,
    /// How often it was run there, as far as its beginning and end are known.
    pub runs: u64,
    /// How long.
    pub run: Duration,
}

/// Times in which a CPU had more than one runnable task while another was idle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    /// How many.
    pub count: u64,
    /// All together.
    pub total: Duration,
    /// Count and time by length: below 10 µs, 100 µs, 1 ms, 10 ms, and longer.
    pub by_length: [(u64, Duration); 5],
    /// The longest, longest first.
    pub longest: Vec<Violation>,
}

/// One such time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it began.
    pub at: Time,
    /// How long it lasted.
    pub length: Duration,
    /// It was still going on at the trace's end.
    pub censored: bool,
}

/// Upper bounds (ns) of all but the last of [`Violations::by_length`].
pub const VIOLATION_BOUNDS_NS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

impl Violations {
    fn add(&mut self, violation: Violation) {
        if violation.length == Duration::ZERO {
            // Several events of one time stamp: nothing lasted.
            return;
        }
        self.count += 1;
        self.total += violation.length;
        let class = VIOLATION_BOUNDS_NS.iter().filter(|&&bound| violation.length.as_ns() >= bound).count();
        self.by_length[class].0 += 1;
        self.by_length[class].1 += violation.length;
        let place = self.longest.partition_point(|kept| kept.length >= violation.length);
        if place < VIOLATIONS_KEPT {
            self.longest.truncate(VIOLATIONS_KEPT - 1);
            self.longest.insert(place, violation);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    hits: u32,
    runs: u32,
    run_ns: u64,
}

/// What is kept per CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    busy_ns: u64,
    idle_ns: u64,
    switches_in: u64,
    hits: u64,
    queue_ns: [u64; QUEUE_LENGTH_MAX + 1],
    area_ns: u128,
    /// The length and since when; `None` while it is not known what the CPU runs.
    length: Option<u32>,
    since: Time,
    last_event: Time,
    over: bool,
    free: bool,
}

/// CPUs with too much to do and CPUs with nothing to do, of one group of CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    over: u32,
    free: u32,
}

impl Balance {
    const fn violated(self) -> bool {
        self.over > 0 && self.free > 0
    }
}

/// Violations of the machine, or of all its caches taken together.
#[derive(Clone, Debug, Default)]
struct Watch {
    groups: Vec<Balance>,
    violated: u32,
    since: Time,
    found: Violations,
}

impl Watch {
    fn change(&mut self, group: usize, now: Time, change: impl FnOnce(&mut Balance)) {
        let balance = at(&mut self.groups, group);
        let before = balance.violated();
        change(balance);
        match (before, balance.violated()) {
            (false, true) => {
                if self.violated == 0 {
                    self.since = now;
                }
                self.violated += 1;
            }
            (true, false) => {
                self.violated -= 1;
                if self.violated == 0 {
                    self.close(now, false);
                }
            }
            (true, true) | (false, false) => {}
        }
    }

    fn close(&mut self, now: Time, censored: bool) {
        let length = now.saturating_since(self.since);
        self.found.add(Violation { at: self.since, length, censored });
    }
}

/// The fold.
#[derive(Clone, Debug)]
pub struct CpusAnalysis {
    levels: Levels,
    lines: Vec<Line>,
    cells: Tally<Cell>,
    machine: Watch,
    llcs: Watch,
    strip: Strip,
}

impl CpusAnalysis {
    /// Ready for the first event of a machine with these levels.
    #[must_use]
    pub fn new(levels: Levels) -> Self {
        Self {
            levels,
            lines: Vec::new(),
            cells: Tally::default(),
            machine: Watch::default(),
            llcs: Watch::default(),
            strip: Strip::default(),
        }
    }

    fn cell(&mut self, task: TaskId, cpu: CpuId) -> &mut Cell {
        self.cells.entry(pair(task.index() as u32, cpu.number().into()))
    }

    fn ran(&mut self, task: TaskId, cpu: CpuId, length: Duration) {
        let line = at(&mut self.lines, cpu.index());
        if task.is_idle() {
            line.idle_ns += length.as_ns();
            return;
        }
        line.busy_ns += length.as_ns();
        let cell = self.cell(task, cpu);
        cell.runs += 1;
        cell.run_ns += length.as_ns();
    }

    /// Takes a CPU's new state after an event that may have changed it.
    fn queue_changed(&mut self, timeline: &Timeline, cpu: CpuId, now: Time) {
        let waiting = timeline.waiting(cpu);
        let current = timeline.current(cpu).map(|(task, _)| task);
        let length = current.map(|task| waiting + u32::from(!task.is_idle()));
        let over = length.is_some_and(|length| length > 1);
        let free = length == Some(0);
        let line = at(&mut self.lines, cpu.index());
        line.account(cpu, now, &mut self.strip);
        line.length = length;
        if (line.over, line.free) != (over, free) {
            let (was_over, was_free) = (line.over, line.free);
            (line.over, line.free) = (over, free);
            let change = |balance: &mut Balance| {
                balance.over = balance.over + u32::from(over) - u32::from(was_over);
                balance.free = balance.free + u32::from(free) - u32::from(was_free);
            };
            self.machine.change(0, now, change);
            if let Some(llc) = self.levels.llc(cpu) {
                self.llcs.change(llc, now, change);
            }
        }
    }
}

impl Line {
    /// Adds the time since the last change.
    fn account(&mut self, cpu: CpuId, now: Time, strip: &mut Strip) {
        if let Some(length) = self.length {
            let lasted = now.saturating_since(self.since).as_ns(); // 0 where a gap began before the last change
            self.queue_ns[(length as usize).min(QUEUE_LENGTH_MAX)] += lasted;
            self.area_ns += u128::from(length) * u128::from(lasted);
            strip.add(cpu, self.since, lasted, length);
        }
        self.since = now;
    }
}

impl Analysis for CpusAnalysis {
    type Output = Cpus;

    fn needs(&self) -> Needs {
        &[&["sched_switch"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        let timeline = moment.timeline;
        for interval in timeline.ended() {
            if interval.phase == Phase::Running {
                self.ran(interval.task, interval.cpu, interval.length());
            }
        }
        if let Some(placed) = timeline.placed()
            && placed.wait == Wait::Wakeup
        {
            at(&mut self.lines, placed.wake.cpu.index()).hits += 1;
            self.cell(placed.wakee, placed.wake.cpu).hits += 1;
        }
        if let EventKind::Switch { next, .. } = event.kind {
            at(&mut self.lines, event.cpu.index()).switches_in += u64::from(!next.is_idle());
        }
        self.strip.begin(event.at);
        // What happened in a gap is not known from the CPU's last event on, not from where the gap is noticed.
        let line = at(&mut self.lines, event.cpu.index());
        let lost = matches!(event.kind, EventKind::Lost { .. });
        let now = if lost { line.last_event } else { event.at };
        line.last_event = event.at;
        for &cpu in timeline.changed_cpus() {
            self.queue_changed(timeline, cpu, now);
        }
    }

    fn finish(mut self, end: &End<'_>) -> Measured<Cpus> {
        let (first, last) = end.span.unwrap_or_default();
        for number in 0..self.lines.len() {
            let cpu = CpuId::try_from(number as u64).expect("lines are indexed by CPU");
            if let Some((task, since)) = end.timeline.current(cpu) {
                self.ran(task, cpu, last.saturating_since(since));
            }
            self.lines[number].account(cpu, last, &mut self.strip);
        }
        for watch in [&mut self.machine, &mut self.llcs] {
            if watch.violated > 0 {
                watch.close(last, true);
            }
        }
        let span = last.saturating_since(first);
        let needs = self.needs();
        end.recorded.measured(needs, || Cpus {
            cpus: self.lines.iter().enumerate().map(|(number, line)| cpu_use(number, line, span)).collect(),
            tasks: tasks(&self.cells, end),
            span,
            violations: self.machine.found,
            violations_in_llc: self.levels.has_llcs().then_some(self.llcs.found),
            occupancy: self.strip.result(),
            wakeups_recorded: end.recorded.has("sched_waking") || end.recorded.has("sched_wakeup"),
        })
    }
}

fn cpu_use(number: usize, line: &Line, span: Duration) -> CpuUse {
    let (busy, idle) = (Duration::from_ns(line.busy_ns), Duration::from_ns(line.idle_ns));
    CpuUse {
        cpu: CpuId::try_from(number as u64).expect("lines are indexed by CPU"),
        busy,
        idle,
        unknown: span - (busy + idle),
        switches_in: line.switches_in,
        hits: line.hits,
        queue: line.queue_ns.map(Duration::from_ns),
        queue_area_ns: line.area_ns,
    }
}

fn tasks(cells: &Tally<Cell>, end: &End<'_>) -> Vec<TaskCpus> {
    let mut tasks: Vec<TaskCpus> = Vec::new();
    for (key, cell) in cells.sorted() {
        let (task, cpu) = unpair(key);
        let task = TaskId::new(task);
        if tasks.last().is_none_or(|last| last.who.task != task) {
            tasks.push(TaskCpus { who: Who::of(end.parts, task), cpus: Vec::new() });
        }
        tasks.last_mut().expect("just pushed").cpus.push(TaskOnCpu {
            cpu: CpuId::try_from(u64::from(cpu)).expect("packed from a CPU"),
            hits: cell.hits.into(),
            runs: cell.runs.into(),
            run: Duration::from_ns(cell.run_ns),
        });
    }
    tasks.sort_by_key(|task| (std::cmp::Reverse(task.run()), task.who.task));
    tasks
}

#[cfg(test)]
#[path = "cpus_tests.rs"]
mod tests;
