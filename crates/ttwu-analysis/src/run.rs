//! The driver: one pass over the events, one [`Timeline`], any set of analyses beside it.
//!
//! A struct with one optional field an analysis, rather than a list of trait objects: the analyses have different results,
//! a caller wants them by name, and the compiler sees through the loop. Adding an analysis is a field in
//! [`AnalysisSet`], [`Analyser`] and [`Results`], and a line in [`Analyser::feed`] and [`Analyser::finish`].
//!
//! What this does not do: read files. Whoever has events in time order feeds them, in chunks of any size; the chunking
//! changes no result.

use crate::{
    Analysis, Cpus, CpusAnalysis, End, Irqs, IrqsAnalysis, Latency, LatencyReport, Levels, Measured,
    Migrations, MigrationsAnalysis, Moment, PerfLatency, PerfLatencyOptions, PerfLatencyTable, PerfTimehist,
    PerfTimehistOptions, PerfTimehistRow, PerfTimehistSummary, Placement, PlacementAnalysis, Recorded,
    Switches, SwitchesAnalysis, TaskFilter, Timehist, TimehistFilter, TimehistRow, TimehistTotals, Wakers,
    WakersAnalysis,
};
use std::collections::{BTreeMap, VecDeque};
use ttwu_model::{Event, EventKind, Strings, TaskNote, TaskTable, Time, Timeline, Trace, TraceParts};

/// Which analyses to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnalysisSet {
    /// Waits per task and name, of the tasks that pass.
    pub latency: Option<TaskFilter>,
    /// `perf sched latency` as perf itself has it.
    pub perf_latency: Option<PerfLatencyOptions>,
    /// Where woken tasks were put.
    pub placement: bool,
    /// CPUs hit, occupation, queue lengths.
    pub cpus: bool,
    /// Who was moved where, and by whom.
    pub migrations: bool,
    /// Why tasks left their CPUs.
    pub switches: bool,
    /// Who handled which interrupt, and what it woke.
    pub irqs: bool,
    /// Who woke whom.
    pub wakers: bool,
    /// The machine's levels, where its topology is known.
    pub levels: Levels,
    /// `perf sched timehist` as perf itself has it.
    pub perf_timehist: Option<PerfTimehistOptions>,
    /// The list of runs that pass.
    pub timehist: Option<TimehistFilter>,
}

/// A pass over a trace's events, in chunks.
#[derive(Debug)]
pub struct Analyser {
    timeline: Timeline,
    counts: Counts,
    notes: VecDeque<TaskNote>,
    events_seen: u64,
    latency: Option<Latency>,
    perf_latency: Option<PerfLatency>,
    placement: Option<PlacementAnalysis>,
    cpus: Option<CpusAnalysis>,
    migrations: Option<MigrationsAnalysis>,
    switches: Option<SwitchesAnalysis>,
    irqs: Option<IrqsAnalysis>,
    wakers: Option<WakersAnalysis>,
    perf_timehist: Option<PerfTimehist>,
    timehist: Option<Timehist>,
    span: Option<(Time, Time)>,
}

/// What the analyses found; an analysis that was not asked for is `None`.
#[derive(Clone, Debug)]
pub struct Results {
    /// Which tracepoints were recorded, and how often each occurs.
    pub recorded: Recorded,
    /// First and last event's time; `None` for a trace without events.
    pub span: Option<(Time, Time)>,
    /// Waits per task and name.
    pub latency: Option<Measured<LatencyReport>>,
    /// `perf sched latency`.
    pub perf_latency: Option<Measured<PerfLatencyTable>>,
    /// Where woken tasks were put.
    pub placement: Option<Measured<Placement>>,
    /// CPUs hit, occupation, queue lengths.
    pub cpus: Option<Measured<Cpus>>,
    /// Who was moved where, and by whom.
    pub migrations: Option<Measured<Migrations>>,
    /// Why tasks left their CPUs.
    pub switches: Option<Measured<Switches>>,
    /// Who handled which interrupt, and what it woke.
    pub irqs: Option<Measured<Irqs>>,
    /// Who woke whom.
    pub wakers: Option<Measured<Wakers>>,
    /// The end of `perf sched timehist`; its rows come from [`Analyser::perf_timehist_rows`].
    pub perf_timehist: Option<Measured<PerfTimehistSummary>>,
    /// How many runs were listed; the rows come from [`Analyser::timehist_rows`].
    pub timehist: Option<Measured<TimehistTotals>>,
}

impl Analyser {
    /// Ready for the first event.
    #[must_use]
    pub fn new(set: &AnalysisSet) -> Self {
        let levels = || set.levels.clone();
        Self {
            timeline: Timeline::new(),
            counts: Counts::default(),
            notes: VecDeque::new(),
            events_seen: 0,
            latency: set.latency.clone().map(Latency::new),
            perf_latency: set.perf_latency.clone().map(PerfLatency::new),
            placement: set.placement.then(|| PlacementAnalysis::new(levels())),
            cpus: set.cpus.then(|| CpusAnalysis::new(levels())),
            migrations: set.migrations.then(|| MigrationsAnalysis::new(levels())),
            switches: set.switches.then(SwitchesAnalysis::new),
            irqs: set.irqs.then(IrqsAnalysis::new),
            wakers: set.wakers.then(|| WakersAnalysis::new(levels())),
            perf_timehist: set.perf_timehist.clone().map(PerfTimehist::new),
            timehist: set.timehist.clone().map(|filter| Timehist::new(filter, levels())),
            span: None,
        }
    }

    /// Takes the recorder's notes, before the events that they lie between. Only perf's own tables go by them.
    pub fn note(&mut self, notes: &[TaskNote]) {
        if self.perf_latency.is_some() || self.perf_timehist.is_some() {
            self.notes.extend(notes);
        }
    }

    /// Takes the next events, which must not be before those of earlier chunks. `strings` and `tasks` are all that is known
    /// so far: both only grow from chunk to chunk.
    pub fn feed(&mut self, events: &[Event], strings: &Strings, tasks: &TaskTable) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        self.span = Some((self.span.map_or(first.at, |(from, _)| from), last.at));
        let mut rest = events;
        while !rest.is_empty() {
            let until = self.take_notes().saturating_sub(self.events_seen);
            let (now, later) = rest.split_at(usize::try_from(until).unwrap_or(usize::MAX).min(rest.len()));
            self.step(now, strings, tasks);
            self.events_seen += now.len() as u64;
            rest = later;
        }
    }

    /// Hands on the notes that come before the next event; the answer is the index of the event before which the next one
    /// comes.
    fn take_notes(&mut self) -> u64 {
        while let Some(note) = self.notes.front() {
            if note.before > self.events_seen {
                return note.before;
            }
            if let Some(latency) = &mut self.perf_latency {
                latency.note(note);
            }
            if let Some(timehist) = &mut self.perf_timehist {
                timehist.note(note);
            }
            self.notes.pop_front();
        }
        u64::MAX
    }

    /// Do only perf's own folds run, which keep state of their own? Then the timeline is not needed.
    fn only_perf(&self) -> bool {
        self.latency.is_none()
            && self.placement.is_none()
            && self.cpus.is_none()
            && self.migrations.is_none()
            && self.switches.is_none()
            && self.irqs.is_none()
            && self.wakers.is_none()
            && self.timehist.is_none()
    }

    fn step(&mut self, events: &[Event], strings: &Strings, tasks: &TaskTable) {
        if self.only_perf() {
            let moment = Moment { timeline: &self.timeline, strings, tasks };
            for event in events {
                self.counts.add(event);
                observe(&mut self.perf_latency, &moment, event);
                observe(&mut self.perf_timehist, &moment, event);
            }
            return;
        }
        for event in events {
            self.counts.add(event);
            self.timeline.step(event);
            let moment = Moment { timeline: &self.timeline, strings, tasks };
            observe(&mut self.latency, &moment, event);
            observe(&mut self.perf_latency, &moment, event);
            observe(&mut self.placement, &moment, event);
            observe(&mut self.cpus, &moment, event);
            observe(&mut self.migrations, &moment, event);
            observe(&mut self.switches, &moment, event);
            observe(&mut self.irqs, &moment, event);
            observe(&mut self.wakers, &moment, event);
            observe(&mut self.perf_timehist, &moment, event);
            observe(&mut self.timehist, &moment, event);
        }
    }

    /// Rows of `perf sched timehist` since the last call. To be called after each [`Analyser::feed`], lest they pile up.
    pub fn perf_timehist_rows(&mut self) -> Vec<PerfTimehistRow> {
        self.perf_timehist.as_mut().map_or_else(Vec::new, PerfTimehist::take_rows)
    }

    /// Runs listed since the last call. To be called after each [`Analyser::feed`], lest they pile up.
    pub fn timehist_rows(&mut self) -> Vec<TimehistRow> {
        self.timehist.as_mut().map_or_else(Vec::new, Timehist::take_rows)
    }

    /// Lists the runs that the end of the recording cuts; once, after the last [`Analyser::feed`].
    pub fn close_timehist(&mut self, strings: &Strings, tasks: &TaskTable) {
        let Some((_, last)) = self.span else { return };
        if let Some(timehist) = &mut self.timehist {
            timehist.close(&Moment { timeline: &self.timeline, strings, tasks }, last);
        }
    }

    /// The results, once the last event was fed.
    #[must_use]
    pub fn finish(mut self, parts: &TraceParts) -> Results {
        self.events_seen = u64::MAX;
        self.take_notes();
        let recorded = Recorded::new(self.counts.by_name(&parts.strings), parts);
        let end = End { timeline: &self.timeline, parts, recorded: &recorded, span: self.span };
        Results {
            span: end.span,
            latency: finish(self.latency, &end),
            perf_latency: finish(self.perf_latency, &end),
            placement: finish(self.placement, &end),
            cpus: finish(self.cpus, &end),
            migrations: finish(self.migrations, &end),
            switches: finish(self.switches, &end),
            irqs: finish(self.irqs, &end),
            wakers: finish(self.wakers, &end),
            perf_timehist: finish(self.perf_timehist, &end),
            timehist: finish(self.timehist, &end),
            recorded,
        }
    }
}

fn observe<A: Analysis>(analysis: &mut Option<A>, moment: &Moment<'_>, event: &Event) {
    if let Some(analysis) = analysis {
        analysis.observe(moment, event);
    }
}

fn finish<A: Analysis>(analysis: Option<A>, end: &End<'_>) -> Option<Measured<A::Output>> {
    analysis.map(|analysis| analysis.finish(end))
}

/// Runs `set` over a whole trace in memory.
#[must_use]
pub fn analyse(trace: &Trace, set: &AnalysisSet) -> Results {
    let mut analyser = Analyser::new(set);
    analyser.note(&trace.parts().notes);
    analyser.feed(trace.events(), trace.strings(), trace.tasks());
    analyser.finish(trace.parts())
}

/// Runs one analysis of the caller's own over a whole trace, with a timeline of its own.
pub fn analyse_one<A: Analysis>(trace: &Trace, mut analysis: A) -> Measured<A::Output> {
    let mut timeline = Timeline::new();
    let mut counts = Counts::default();
    for event in trace.events() {
        counts.add(event);
        timeline.step(event);
        let moment = Moment { timeline: &timeline, strings: trace.strings(), tasks: trace.tasks() };
        analysis.observe(&moment, event);
    }
    let recorded = Recorded::new(counts.by_name(trace.strings()), trace.parts());
    let end = End { timeline: &timeline, parts: trace.parts(), recorded: &recorded, span: trace.span() };
    analysis.finish(&end)
}

/// Events per tracepoint: an array by kind, since a map lookup an event would cost more than the analyses.
#[derive(Clone, Debug)]
struct Counts {
    by_kind: [u64; EventKind::<ttwu_model::TaskId>::TRACEPOINTS.len()],
    /// [`EventKind::Other`] by its name's [`StrId`](ttwu_model::StrId).
    others: Vec<u64>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { by_kind: [0; EventKind::<ttwu_model::TaskId>::TRACEPOINTS.len()], others: Vec::new() }
    }
}

impl Counts {
    fn add(&mut self, event: &Event) {
        self.by_kind[event.kind.ordinal()] += 1;
        if let EventKind::Other { name } = event.kind {
            if name.index() >= self.others.len() {
                self.others.resize(name.index() + 1, 0);
            }
            self.others[name.index()] += 1;
        }
    }

    fn by_name(&self, strings: &Strings) -> BTreeMap<String, u64> {
        let known = EventKind::<ttwu_model::TaskId>::TRACEPOINTS.iter().zip(self.by_kind);
        let known = known.filter_map(|(name, count)| Some(((*name)?, count)));
        let others = strings.iter().map(|(_, name)| name).zip(self.others.iter().copied());
        let mut counts = BTreeMap::new();
        for (name, count) in known.chain(others).filter(|&(_, count)| count != 0) {
            *counts.entry(name.to_owned()).or_default() += count;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttwu_model::{CpuId, EventFlags, Pid, RawEvent, TraceBuilder};

    fn trace() -> Trace {
        let mut builder = TraceBuilder::new();
        let (odd, waking) = (builder.strings.intern("odd"), builder.strings.intern("sched_waking"));
        let cpu = CpuId::new(0);
        let kinds = [
            EventKind::Other { name: odd },
            EventKind::IdleEnter { cpu, state: 1 },
            EventKind::Other { name: odd },
            EventKind::IdleExit { cpu },
            EventKind::Other { name: waking },
            EventKind::Yield,
        ];
        for (at, kind) in kinds.into_iter().enumerate() {
            let at = Time::from_ns(at as u64);
            let event = Event { at, by: Pid::IDLE, cpu, flags: EventFlags::UNKNOWN, kind };
            builder.push(&RawEvent { event, names: [None; 2] });
        }
        builder.finish()
    }

    #[test]
    fn counts_are_by_tracepoint_whatever_the_chunks() {
        let trace = trace();
        for size in 1..=trace.events().len() {
            let mut analyser = Analyser::new(&AnalysisSet::default());
            for chunk in trace.events().chunks(size) {
                analyser.feed(chunk, trace.strings(), trace.tasks());
            }
            let results = analyser.finish(trace.parts());
            let counts: Vec<_> = results.recorded.counts().iter().map(|(name, n)| (&**name, *n)).collect();
            let expected = [("cpu_idle", 2), ("odd", 2), ("sched_waking", 1), ("sys_enter_sched_yield", 1)];
            assert_eq!(counts, expected, "chunks of {size}");
            assert_eq!(results.span, trace.span(), "chunks of {size}");
        }
    }

    #[test]
    fn a_trace_without_events_has_no_span() {
        let results = analyse(&TraceBuilder::new().finish(), &AnalysisSet::default());
        assert!(results.span.is_none() && results.recorded.counts().is_empty());
    }
}
