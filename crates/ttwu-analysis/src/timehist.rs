//! The list of runs: for each stretch of a task on a CPU, all that led to it and how it ended, on one row.
//!
//! ```text
//!   switched out     waking  wakeup     switch in          switch out
//!        ├──── slept ────┼──────┼──────────┤········ run ········├   one row, made here
//!                        └───── wait ──────┘                     └ state, cause, who comes next
//! ```
//!
//! A row is made when the run ends, so rows are in the order of their ends. They are handed out as they come
//! ([`Timehist::take_rows`]): a caller who prints them needs no memory for a long recording.
//!
//! What this does not do: imitate perf; see `perf_compat`.

use crate::tally::at;
use crate::{
    Analysis, End, Levels, Measured, Moment, Needs, Relation, SwitchCause, SwitchEvidence, SwitchesAnalysis,
    TaskFilter,
};
use ttwu_model::{
    Context, CpuId, CpuSet, Event, EventKind, Interval, Phase, Pid, TaskId, TaskState, Time, Wait, Wake,
};

/// Which runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimehistFilter {
    /// Runs that end at this time or later.
    pub from: Option<Time>,
    /// Runs that begin at this time or earlier.
    pub to: Option<Time>,
    /// Runs on these CPUs; `None` means all.
    pub cpus: Option<CpuSet>,
    /// Runs of these tasks; with a filter, idle tasks are left out.
    pub tasks: TaskFilter,
}

/// A task with the name it had at the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Which task.
    pub task: TaskId,
    /// Its pid.
    pub pid: Pid,
    /// Its name; `None` if no event named it.
    pub name: Option<String>,
}

/// The wait before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitBefore {
    /// Why it waited.
    pub wait: Wait,
    /// How long, as far as seen.
    pub ns: u64,
    /// The true length is not known.
    pub censored: bool,
}

/// The wake-up before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeBefore {
    /// The task current on the waker's CPU; says little in interrupt context.
    pub waker: Named,
    /// The waker's CPU.
    pub waker_cpu: CpuId,
    /// In which context it was woken.
    pub context: Context,
    /// From `sched_waking` to `sched_wakeup`, where both were recorded.
    pub waking_to_wakeup_ns: Option<u64>,
    /// Where it ran before.
    pub prev_cpu: Option<CpuId>,
    /// Where the wake-up put it.
    pub placed_cpu: CpuId,
    /// How far that is from where it ran before.
    pub from_prev: Relation,
    /// How far that is from the waker.
    pub from_waker: Relation,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimehistRow {
    /// Who ran.
    pub who: Named,
    /// Where.
    pub cpu: CpuId,
    /// When it was switched in.
    pub from: Time,
    /// When it was switched out, or last seen.
    pub to: Time,
    /// The end was not seen: events were lost, or the recording ended.
    pub censored: bool,
    /// How long it slept before the wake-up; `None` if that was not seen whole.
    pub slept_ns: Option<u64>,
    /// The wait before; `None` if it was not seen at all.
    pub wait: Option<WaitBefore>,
    /// The wake-up before; `None` if it was preempted, or the wake-up was not seen.
    pub wake: Option<WakeBefore>,
    /// How it was left, and why; `None` if the end was not seen. The idle task is left for no cause.
    pub left: Option<Left>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The state by the event.
    pub state: TaskState,
    /// Why, and by what evidence; `None` for the idle task.
    pub cause: Option<(SwitchCause, SwitchEvidence)>,
    /// Who runs next.
    pub next: Named,
}

/// How many rows there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimehistTotals {
    /// Rows listed.
    pub rows: u64,
    /// Runs that the filter left out.
    pub filtered: u64,
}

/// What is known of the run going on on a CPU.
#[derive(Clone, Debug, Default)]
struct Run {
    slept_ns: Option<u64>,
    wait: Option<Interval>,
}

/// The fold.
#[derive(Clone, Debug)]
pub struct Timehist {
    filter: TimehistFilter,
    levels: Levels,
    switches: SwitchesAnalysis,
    /// Length of the last sleep by task, until it runs again.
    slept: Vec<Option<u64>>,
    runs: Vec<Run>,
    rows: Vec<TimehistRow>,
    totals: TimehistTotals,
}

impl Timehist {
    /// Ready for the first event.
    #[must_use]
    pub fn new(filter: TimehistFilter, levels: Levels) -> Self {
        Self {
            filter,
            levels,
            switches: SwitchesAnalysis::new(),
            slept: Vec::new(),
            runs: Vec::new(),
            rows: Vec::new(),
            totals: TimehistTotals::default(),
        }
    }

    /// The rows since the last call.
    pub fn take_rows(&mut self) -> Vec<TimehistRow> {
        std::mem::take(&mut self.rows)
    }

    fn passes(&self, run: &Interval, moment: &Moment<'_>) -> bool {
        let filter = &self.filter;
        let tasks = &filter.tasks;
        filter.from.is_none_or(|from| run.to >= from)
            && filter.to.is_none_or(|to| run.from <= to)
            && filter.cpus.as_ref().is_none_or(|cpus| cpus.contains(run.cpu))
            && (tasks.is_all()
                || (!run.task.is_idle() && tasks.matches(run.task, moment.strings, moment.tasks)))
    }

    fn end_run(&mut self, moment: &Moment<'_>, run: &Interval, left: Option<Left>) {
        let before = std::mem::take(at(&mut self.runs, run.cpu.index()));
        if !self.passes(run, moment) {
            self.totals.filtered += 1;
            return;
        }
        self.totals.rows += 1;
        let wait = before.wait;
        let wake = wait.and_then(|wait| wait.wake).map(|wake| self.wake(moment, &wake));
        let row = TimehistRow {
            who: named(moment, run.task, run.from),
            cpu: run.cpu,
            from: run.from,
            to: run.to,
            censored: run.censored,
            slept_ns: before.slept_ns,
            wait: wait.and_then(|interval| match interval.phase {
                Phase::Runnable(wait) => {
                    Some(WaitBefore { wait, ns: interval.length().as_ns(), censored: interval.censored })
                }
                Phase::Unknown | Phase::Running | Phase::Sleeping(_) | Phase::Dead => None,
            }),
            wake,
            left,
        };
        self.rows.push(row);
    }

    fn wake(&self, moment: &Moment<'_>, wake: &Wake) -> WakeBefore {
        let at = wake.from().unwrap_or(Time::ZERO);
        let whole = wake.waking_at.zip(wake.wakeup_at);
        WakeBefore {
            waker: named(moment, wake.waker, at),
            waker_cpu: wake.waker_cpu,
            context: wake.context(),
            waking_to_wakeup_ns: whole.map(|(waking, wakeup)| wakeup.saturating_since(waking).as_ns()),
            prev_cpu: wake.prev_cpu,
            placed_cpu: wake.cpu,
            from_prev: self.levels.relation(wake.prev_cpu, wake.cpu),
            from_waker: self.levels.relation(Some(wake.waker_cpu), wake.cpu),
        }
    }
}

fn named(moment: &Moment<'_>, task: TaskId, at: Time) -> Named {
    let name = moment.tasks.name_at(task, at).map(|name| moment.strings.get(name).to_owned());
    let name = if task.is_idle() { Some("idle".to_owned()) } else { name };
    Named { task, pid: moment.tasks.get(task).pid, name }
}

impl Analysis for Timehist {
    type Output = TimehistTotals;

    fn needs(&self) -> Needs {
        &[&["sched_switch"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        self.switches.observe(moment, event);
        let mut waited = None;
        for interval in moment.timeline.ended() {
            match interval.phase {
                Phase::Sleeping(_) => {
                    let length = (!interval.censored).then(|| interval.length().as_ns());
                    *at(&mut self.slept, interval.task.index()) = length;
                }
                Phase::Runnable(_) => waited = Some(*interval),
                Phase::Running => {
                    let left = match event.kind {
                        EventKind::Switch { prev, next, prev_state, .. } if prev == interval.task => {
                            let cause = self.switches.last_verdict().filter(|_| !prev.is_idle());
                            Some(Left { state: prev_state, cause, next: named(moment, next, event.at) })
                        }
                        _ => None,
                    };
                    self.end_run(moment, interval, left);
                }
                Phase::Unknown | Phase::Dead => {}
            }
        }
        if let EventKind::Switch { next, .. } = event.kind {
            let slept_ns = at(&mut self.slept, next.index()).take();
            let wait = waited.filter(|interval| interval.task == next);
            *at(&mut self.runs, event.cpu.index()) = Run { slept_ns, wait };
        }
    }

    fn finish(self, end: &End<'_>) -> Measured<TimehistTotals> {
        let needs = self.needs();
        end.recorded.measured(needs, || self.totals)
    }
}

impl Timehist {
    /// Lists the runs still going on at the end, as censored. To be called before the last [`Timehist::take_rows`].
    pub fn close(&mut self, moment: &Moment<'_>, last: Time) {
        let open: Vec<_> =
            moment.timeline.open(last).filter(|interval| interval.phase == Phase::Running).collect();
        for run in open {
            self.end_run(moment, &run, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::trace;
    use std::fmt::Write;
    use ttwu_model::Timeline;

    fn list(script: &str, filter: TimehistFilter) -> String {
        let trace = trace(script);
        let mut timeline = Timeline::new();
        let mut fold = Timehist::new(filter, Levels::unknown());
        for event in trace.events() {
            timeline.step(event);
            let moment = Moment { timeline: &timeline, strings: trace.strings(), tasks: trace.tasks() };
            fold.observe(&moment, event);
        }
        let moment = Moment { timeline: &timeline, strings: trace.strings(), tasks: trace.tasks() };
        fold.close(&moment, trace.span().expect("events").1);
        fold.take_rows().iter().map(text).collect()
    }

    fn text(row: &TimehistRow) -> String {
        let name = |named: &Named| named.name.clone().unwrap_or_else(|| "?".to_owned());
        let mut out = format!("{} {}-{} cpu{}", name(&row.who), row.from.as_ns(), row.to.as_ns(), row.cpu);
        if let Some(slept) = row.slept_ns {
            let _ = write!(out, " slept {slept}");
        }
        if let Some(wait) = row.wait {
            let _ = write!(out, " {:?} {}{}", wait.wait, wait.ns, if wait.censored { "+" } else { "" });
        }
        if let Some(wake) = &row.wake {
            let prev = wake.prev_cpu.map_or("?".to_owned(), |cpu| cpu.to_string());
            let _ = write!(out, " by {}@{} {prev}>{}", name(&wake.waker), wake.waker_cpu, wake.placed_cpu);
            let _ = write!(out, " {} {}", wake.from_prev.name(), wake.from_waker.name());
        }
        match &row.left {
            Some(left) => {
                let cause = left.cause.map_or("-", |(cause, _)| cause.name());
                let _ = writeln!(out, " {} {cause} then {}", left.state, name(&left.next));
            }
            None => out.push_str(" cut\n"),
        }
        out
    }

    const SCRIPT: &str = "10 0 a . sw a S idle
         30 1 b . waking a 0
         34 1 b . mig a 0 1
         35 1 b . wakeup a 1
         50 1 b . sw b R a
         90 1 a . sw a S b";

    #[test]
    fn a_row_tells_sleep_wait_waker_place_and_end() {
        let expected = "a 50-90 cpu1 slept 20 Wakeup 20 by b@1 0>1 other_cpu same_cpu S voluntary then b\n\
                        b 90-90 cpu1 Preempted 40 cut\n";
        let rows = list(SCRIPT, TimehistFilter { tasks: TaskFilter::default(), ..TimehistFilter::default() });
        let rows: Vec<_> = rows.lines().filter(|line| !line.starts_with("idle")).collect();
        assert_eq!(rows.join("\n") + "\n", expected);
    }

    #[test]
    fn filters_leave_rows_out() {
        let only = |names: &[&str]| TaskFilter {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            ..TaskFilter::default()
        };
        let count = |filter: TimehistFilter| list(SCRIPT, filter).lines().count();
        let all = TimehistFilter::default;
        assert_eq!(count(TimehistFilter { tasks: only(&["b"]), ..all() }), 1, "by name");
        assert_eq!(count(TimehistFilter { from: Some(Time::from_ns(91)), ..all() }), 0, "too late");
        assert_eq!(
            count(TimehistFilter { to: Some(Time::from_ns(60)), tasks: only(&["a", "b"]), ..all() }),
            1
        );
        let cpus = Some([CpuId::new(0)].into_iter().collect());
        assert_eq!(count(TimehistFilter { cpus, tasks: only(&["a", "b"]), ..all() }), 0, "by CPU");
    }
}
