//! Switches: why each task left its CPU, with the evidence.
//!
//! The state letter tells sleep and death. For a task that stayed runnable it does not tell the cause: `R+` is only set
//! for preemption inside the kernel, a task preempted on its way back to user mode shows `R`. The cause is the *first* thing
//! that asked for a reschedule in this run of the task, and that is visible in a recording that has the right events:
//!
//! ```text
//!  cause                 evidence, strongest first
//!  ────────────────────  ─────────────────────────────────────────────────────────────────────────────────────────────
//!  yield                 YieldCall: sched_yield entered at most 100 µs before, and the task did nothing else since
//!  wake-up preemption    FlagAtLocalWakeup: need-resched appears at a sched_wakeup emitted on this CPU for this CPU (the
//!                          kernel checks before it emits that event); also when the wake list is worked off here
//!                        WakeupIpi: another CPU sent ipi_send_cpu from wakeup_preempt (check_preempt_curr) in a wake-up
//!                        FlagAfterRemoteWakeup: need-resched appears here after a wake-up onto this CPU and without a
//!                          tick since the last event without it (inferred; sched_wakeup_new too, whose check comes later)
//!                        FlagAfterLocalWaking: need-resched appears at most 100 µs after a sched_waking here that put its
//!                          task on this CPU, where sched_wakeup was not recorded (inferred)
//!                        WakeeFollows: need-resched was not seen, or appeared unexplained after it; no tick is in
//!                          question, and the next task was woken at most 100 µs before; nothing shows that the check
//!                          said no: a local sched_wakeup, or an event here after a remote one, without the flag (inferred)
//!  migration preemption  MigrationIpi, FlagAfterMigration: the same, but by a task that a balancer put on this CPU
//!  tick                  FlagAfterTick: need-resched appears after a tick (or hrtick) and before any event outside of
//!                          that interrupt that lacks it
//!                        FlagAfterTimerInterrupt: the same after a local timer interrupt that woke nobody, where timer
//!                          callbacks were not recorded (inferred)
//!                        SwitchAfterTick: no event since a tick at most 200 µs before, no fresh wakee (inferred)
//!  unknown               FlagUnexplained: need-resched appears with none of the above; Nothing: it was not even seen
//! ```
//!
//! Other events may show the flag between its setting and the `sched_wakeup` that explains it (probes do); then the
//! `sched_wakeup` explains it after the fact: if `sched_waking` on this CPU came before the flag, or if both are in one
//! hardware interrupt, where the wake list is worked off.
//!
//! Ticks are `hrtimer_expire_entry` of `tick_nohz_handler`, `tick_sched_timer` or `tick_nohz_highres_handler`; `hrtick` is
//! the end of a slice. The local timer interrupt is x86's `local_timer_entry`. Lazy need-resched counts as need-resched, so that the cause is what set it first, not the tick that
//! enforced it later. A remote lazy request sends no IPI.
//!
//! What this does not do: look at blocked states more closely, or judge whether a preemption was right.

use crate::tally::{Tally, at, pair, unpair};
use crate::{Analysis, End, Measured, Moment, Needs, Who};
use std::collections::BTreeMap;
use ttwu_model::{
    Context, CpuId, Event, EventKind, Phase, StateLetter, StrId, Strings, TaskId, TaskState, Time, Timeline,
    Wait,
};

/// How long after `sched_yield` a switch is still that call's.
const YIELD_WINDOW_NS: u64 = 100_000;
/// How long after a tick a switch without any event in between is ascribed to it.
const TICK_WINDOW_NS: u64 = 200_000;
/// How fresh a wake-up must be to be taken for the cause where nothing shows it. With a 4 ms tick one such verdict in
/// forty is by chance.
const WAKEE_WINDOW_NS: u64 = 100_000;
/// How many pairs of preempted and preempting task are kept.
const PAIRS_KEPT: usize = 20;

/// Why a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwitchCause {
    /// It went to sleep, or stopped.
    Voluntary,
    /// A woken or new task preempted it.
    WakeupPreemption,
    /// A task that a balancer moved here preempted it.
    MigrationPreemption,
    /// The tick, or the end of its slice.
    Tick,
    /// It called `sched_yield`.
    Yield,
    /// It died.
    Exit,
    /// The recording cannot tell.
    Unknown,
}

impl SwitchCause {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Voluntary,
        Self::WakeupPreemption,
        Self::MigrationPreemption,
        Self::Tick,
        Self::Yield,
        Self::Exit,
        Self::Unknown,
    ];

    /// Its name in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Voluntary => "voluntary",
            Self::WakeupPreemption => "wakeup_preemption",
            Self::MigrationPreemption => "migration_preemption",
            Self::Tick => "tick",
            Self::Yield => "yield",
            Self::Exit => "exit",
            Self::Unknown => "unknown",
        }
    }
}

/// What a cause was concluded from; the module's table says each precisely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwitchEvidence {
    /// The state in which it was left.
    State,
    /// A `sched_yield` just before.
    YieldCall,
    /// The flag at a local `sched_wakeup`.
    FlagAtLocalWakeup,
    /// An IPI from the wake-up check of another CPU.
    WakeupIpi,
    /// The flag after a wake-up from another CPU.
    FlagAfterRemoteWakeup,
    /// The flag after a local `sched_waking`.
    FlagAfterLocalWaking,
    /// The next task had just been woken.
    WakeeFollows,
    /// An IPI from the check of a migrated task.
    MigrationIpi,
    /// The flag after a migration to this CPU.
    FlagAfterMigration,
    /// The flag after a tick.
    FlagAfterTick,
    /// The flag after a local timer interrupt.
    FlagAfterTimerInterrupt,
    /// A tick just before.
    SwitchAfterTick,
    /// The flag, from nothing that was recorded.
    FlagUnexplained,
    /// No sign at all.
    Nothing,
}

impl SwitchEvidence {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::State,
        Self::YieldCall,
        Self::FlagAtLocalWakeup,
        Self::WakeupIpi,
        Self::FlagAfterRemoteWakeup,
        Self::FlagAfterLocalWaking,
        Self::WakeeFollows,
        Self::MigrationIpi,
        Self::FlagAfterMigration,
        Self::FlagAfterTick,
        Self::FlagAfterTimerInterrupt,
        Self::SwitchAfterTick,
        Self::FlagUnexplained,
        Self::Nothing,
    ];

    /// Its name in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::YieldCall => "yield_call",
            Self::FlagAtLocalWakeup => "flag_at_local_wakeup",
            Self::WakeupIpi => "wakeup_ipi",
            Self::FlagAfterRemoteWakeup => "flag_after_remote_wakeup",
            Self::FlagAfterLocalWaking => "flag_after_local_waking",
            Self::WakeeFollows => "wakee_follows",
            Self::MigrationIpi => "migration_ipi",
            Self::FlagAfterMigration => "flag_after_migration",
            Self::FlagAfterTick => "flag_after_tick",
            Self::FlagAfterTimerInterrupt => "flag_after_timer_interrupt",
            Self::SwitchAfterTick => "switch_after_tick",
            Self::FlagUnexplained => "flag_unexplained",
            Self::Nothing => "nothing",
        }
    }

    /// Is it a conclusion from nearness in time rather than something seen?
    #[must_use]
    pub const fn inferred(self) -> bool {
        matches!(
            self,
            Self::FlagAfterRemoteWakeup
                | Self::FlagAfterLocalWaking
                | Self::WakeeFollows
                | Self::FlagAfterTimerInterrupt
                | Self::SwitchAfterTick
        )
    }
}

/// Counts by [`SwitchCause`], in the order of [`SwitchCause::ALL`].
pub type ByCause = [u64; SwitchCause::ALL.len()];

/// Why tasks left their CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switches {
    /// All `sched_switch` events.
    pub total: u64,
    /// Those away from the idle task; they have no cause.
    pub from_idle: u64,
    /// The others, by cause.
    pub by_cause: ByCause,
    /// The others, by what the cause was concluded from, in the order of [`SwitchEvidence::ALL`].
    pub by_evidence: [u64; SwitchEvidence::ALL.len()],
    /// The others, by the state as the kernel prints it (`R`, `R+`, `S` …); `R?` where the source drops the `+`.
    pub by_state: BTreeMap<String, u64>,
    /// Per task, most switches first.
    pub tasks: Vec<TaskSwitches>,
    /// Who preempted whom by a wake-up, most often first.
    pub preemptions: Vec<PreemptionPair>,
    /// Tracepoints that would have told more causes, as far as they were not recorded.
    pub would_help: Vec<&'static str>,
    /// Did events carry the need-resched flag?
    pub flags_known: bool,
}

/// One task's switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSwitches {
    /// Which task.
    pub who: Who,
    /// By cause.
    pub by_cause: ByCause,
}

/// Wake-up preemptions of one task by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionPair {
    /// Who was preempted.
    pub preempted: Who,
    /// Who ran next.
    pub by: Who,
    /// How often.
    pub count: u64,
}

type Verdict = (SwitchCause, SwitchEvidence);

/// Something that may set a CPU's need-resched after the event that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Wakeup,
    Migration,
}

/// What is known of one CPU's current run.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    verdict: Option<Verdict>,
    flag_seen: bool,
    /// When the flag was seen first, if at all.
    flag_since: Time,
    /// The last event of this run that lacked it.
    flag_absent_at: Option<Time>,
    /// A tick of which it is not known yet whether it asked for a reschedule.
    tick: Option<Time>,
    /// That tick is only a timer interrupt of which the callbacks are not known.
    tick_is_vector: bool,
    /// The last `sched_waking` here, which lacked the flag, before its `sched_wakeup`.
    waking: Option<(TaskId, Time)>,
    /// The flag appeared, unexplained, within a wake-up that may yet explain it.
    explicable: Option<Explicable>,
    arrival: Option<Arrival>,
    /// A task put here by a wake-up whose check said no.
    declined: Option<TaskId>,
    yielded: Option<Time>,
    /// What this CPU itself was doing last, so that its IPIs can be ascribed.
    doing: Option<Arrival>,
}

/// How a later `sched_wakeup` may explain the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Explicable {
    /// It comes from the `sched_waking` before.
    ByWaking,
    /// It comes in the same interrupt, before any event outside of it.
    InInterrupt,
}

impl Line {
    /// The next task starts: only what this CPU does to others goes on.
    fn next_run(&mut self) {
        *self = Self { doing: self.doing, ..Self::default() };
    }
}

/// What a string of the trace means here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Meaning {
    #[default]
    NotLooked,
    Tick,
    TimerVector,
    PreemptCheck,
    Other,
}

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct SwitchesAnalysis {
    lines: Vec<Line>,
    meanings: Vec<Meaning>,
    total: u64,
    from_idle: u64,
    by_evidence: [u64; SwitchEvidence::ALL.len()],
    by_state: BTreeMap<TaskState, u64>,
    last_state: Option<(TaskState, u64)>,
    tasks: Vec<[u32; SwitchCause::ALL.len()]>,
    pairs: Tally<u64>,
    flags_known: bool,
    /// Timer callbacks were seen: then the timer interrupt itself says nothing.
    callbacks_seen: bool,
    last_verdict: Option<Verdict>,
}

impl SwitchesAnalysis {
    /// Ready for the first event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn meaning(&mut self, strings: &Strings, id: StrId) -> Meaning {
        let meaning = at(&mut self.meanings, id.index());
        if *meaning == Meaning::NotLooked {
            let text = strings.get(id);
            let function = text.split('+').next().unwrap_or(text);
            *meaning = match function {
                "tick_nohz_handler" | "tick_sched_timer" | "tick_nohz_highres_handler" | "hrtick" => {
                    Meaning::Tick
                }
                "local_timer" => Meaning::TimerVector,
                "wakeup_preempt" | "check_preempt_curr" | "ttwu_do_wakeup" => Meaning::PreemptCheck,
                _ => Meaning::Other,
            };
        }
        *meaning
    }

    /// What an event says about other CPUs, and what this CPU is doing.
    fn effect_on_others(&mut self, moment: &Moment<'_>, event: &Event) {
        let here = event.cpu;
        match event.kind {
            EventKind::Waking { .. } => self.line(here).doing = Some(Arrival::Wakeup),
            EventKind::Wakeup { cpu, .. } | EventKind::WakeupNew { cpu, .. } => {
                self.line(here).doing = Some(Arrival::Wakeup);
                if cpu != here {
                    self.line(cpu).arrival = Some(Arrival::Wakeup);
                }
            }
            EventKind::Migrate { dest_cpu, .. } if !moment.timeline.moved_by_wakeup() => {
                self.line(here).doing = Some(Arrival::Migration);
                if dest_cpu != here {
                    self.line(dest_cpu).arrival = Some(Arrival::Migration);
                }
            }
            EventKind::IpiSend { target, callsite: Some(callsite) }
                if self.meaning(moment.strings, callsite) == Meaning::PreemptCheck =>
            {
                let verdict = match self.line(here).doing {
                    Some(Arrival::Wakeup) | None => {
                        (SwitchCause::WakeupPreemption, SwitchEvidence::WakeupIpi)
                    }
                    Some(Arrival::Migration) => {
                        (SwitchCause::MigrationPreemption, SwitchEvidence::MigrationIpi)
                    }
                };
                // The kernel sends it only if need-resched was not set yet: so no earlier tick did it. A flag without
                // explanation was this one, seen before the IPI's event was written.
                let line = self.line(target);
                if line.verdict.is_none_or(|(cause, _)| cause == SwitchCause::Unknown) {
                    line.verdict = Some(verdict);
                }
                line.flag_seen = true;
                line.tick = None;
            }
            _ => {}
        }
    }

    /// The verdict on the last switch, which was not one away from the idle task.
    pub(crate) const fn last_verdict(&self) -> Option<Verdict> {
        self.last_verdict
    }

    fn line(&mut self, cpu: CpuId) -> &mut Line {
        at(&mut self.lines, cpu.index())
    }

    /// What an event shows of its own CPU's need-resched flag.
    fn flag(&mut self, moment: &Moment<'_>, event: &Event) {
        let is_vector = matches!(event.kind, EventKind::VectorEntry { .. });
        let is_tick = match event.kind {
            EventKind::TimerExpire { function } => {
                self.callbacks_seen = true;
                self.meaning(moment.strings, function) == Meaning::Tick
            }
            EventKind::VectorEntry { name } if !self.callbacks_seen => {
                self.meaning(moment.strings, name) == Meaning::TimerVector
            }
            _ => false,
        };
        let (cpu, context) = (event.cpu, event.flags.context());
        let line = self.line(cpu);
        if matches!(event.kind, EventKind::Yield) {
            line.yielded = Some(event.at);
        } else if context == Context::Task {
            line.yielded = None;
        }
        let Some(need_resched) = event.flags.need_resched() else {
            if is_tick && !is_vector {
                line.tick = Some(event.at);
            }
            return;
        };
        if need_resched {
            line.flag_appears(moment.timeline, event);
        } else {
            line.flag_absent(event, is_tick, context);
            line.tick_is_vector = (line.tick_is_vector && !is_tick) || (is_tick && is_vector);
        }
        self.flags_known = true;
    }

    fn switch(&mut self, timeline: &Timeline, event: &Event, prev: TaskId, next: TaskId, state: TaskState) {
        self.total += 1;
        if prev.is_idle() {
            self.from_idle += 1;
            self.line(event.cpu).next_run();
            return;
        }
        self.count_state(state);
        let line = self.line(event.cpu);
        let (cause, evidence) = line.verdict_at_switch(timeline, event.at, next, state);
        line.next_run();
        self.last_verdict = Some((cause, evidence));
        self.by_evidence[evidence as usize] += 1;
        let task = at(&mut self.tasks, prev.index());
        task[cause as usize] = task[cause as usize].saturating_add(1);
        if cause == SwitchCause::WakeupPreemption {
            *self.pairs.entry(pair(prev.index() as u32, next.index() as u32)) += 1;
        }
    }

    fn count_state(&mut self, state: TaskState) {
        // Runs of one state are common; the map is only touched when it changes.
        match &mut self.last_state {
            Some((last, count)) if *last == state => *count += 1,
            last => {
                if let Some((state, count)) = last.replace((state, 1)) {
                    *self.by_state.entry(state).or_default() += count;
                }
            }
        }
    }
}

impl Line {
    fn flag_appears(&mut self, timeline: &Timeline, event: &Event) {
        let context = event.flags.context();
        let local_wakeup = match event.kind {
            EventKind::Wakeup { cpu, .. } | EventKind::WakeupNew { cpu, .. } => cpu == event.cpu,
            _ => false,
        };
        if context != Context::Hardirq {
            self.explicable.take_if(|how| *how == Explicable::InInterrupt);
        }
        if self.verdict.is_some() && local_wakeup && self.explicable.take().is_some() {
            self.verdict = Some((SwitchCause::WakeupPreemption, SwitchEvidence::FlagAtLocalWakeup));
        }
        if self.explicable == Some(Explicable::ByWaking) && matches!(event.kind, EventKind::Wakeup { .. }) {
            // The wake-up that was in the making put its task elsewhere.
            self.explicable = None;
            self.verdict = Some((SwitchCause::Unknown, SwitchEvidence::FlagUnexplained));
        }
        if std::mem::replace(&mut self.flag_seen, true) || self.verdict.is_some() {
            return;
        }
        self.flag_since = event.at;
        let waking = self.waking.filter(|&(wakee, since)| {
            event.at.saturating_since(since).as_ns() <= WAKEE_WINDOW_NS
                && timeline.cpu_of(wakee) == Some(event.cpu)
        });
        let verdict = match (self.tick, self.arrival) {
            // The tick was not resolved by an event between it and this one: either may have set the flag.
            (Some(_), _) if local_wakeup => (SwitchCause::Unknown, SwitchEvidence::FlagUnexplained),
            (None, _) if local_wakeup => (SwitchCause::WakeupPreemption, SwitchEvidence::FlagAtLocalWakeup),
            (Some(_), None) if self.tick_is_vector => {
                (SwitchCause::Tick, SwitchEvidence::FlagAfterTimerInterrupt)
            }
            (Some(_), None) => (SwitchCause::Tick, SwitchEvidence::FlagAfterTick),
            (None, _) if waking.is_some() => {
                (SwitchCause::WakeupPreemption, SwitchEvidence::FlagAfterLocalWaking)
            }
            (None, Some(Arrival::Wakeup)) => {
                (SwitchCause::WakeupPreemption, SwitchEvidence::FlagAfterRemoteWakeup)
            }
            (None, Some(Arrival::Migration)) => {
                (SwitchCause::MigrationPreemption, SwitchEvidence::FlagAfterMigration)
            }
            (Some(_), Some(_)) | (None, None) => (SwitchCause::Unknown, SwitchEvidence::FlagUnexplained),
        };
        self.explicable = match verdict.1 {
            SwitchEvidence::FlagAfterLocalWaking => Some(Explicable::ByWaking),
            SwitchEvidence::FlagUnexplained if self.tick.is_some() => None,
            // However long ago: the sched_wakeup that completes it decides.
            SwitchEvidence::FlagUnexplained if self.waking.is_some() => Some(Explicable::ByWaking),
            SwitchEvidence::FlagUnexplained if context == Context::Hardirq => Some(Explicable::InInterrupt),
            _ => None,
        };
        self.verdict = Some(verdict);
    }

    fn flag_absent(&mut self, event: &Event, is_tick: bool, context: Context) {
        self.arrival = None;
        self.flag_absent_at = Some(event.at);
        self.waking = match event.kind {
            EventKind::Waking { wakee, .. } => Some((wakee, event.at)),
            EventKind::Wakeup { .. } => None,
            _ => self.waking,
        };
        let mut after_tick = context != Context::Hardirq;
        match event.kind {
            EventKind::TimerExpire { .. } | EventKind::VectorEntry { .. } if is_tick => {
                self.tick = Some(event.at);
                return;
            }
            // Another timer's turn, or a wake-up: the tick's own work is over although the interrupt is not.
            EventKind::TimerExpire { .. } | EventKind::Waking { .. } => after_tick = true,
            EventKind::Wakeup { wakee, cpu, .. } if cpu == event.cpu => self.declined = Some(wakee),
            // Here the check comes after the event.
            EventKind::WakeupNew { cpu, .. } if cpu == event.cpu => self.arrival = Some(Arrival::Wakeup),
            EventKind::Migrate { dest_cpu, .. }
                if dest_cpu == event.cpu && self.doing == Some(Arrival::Migration) =>
            {
                self.arrival = Some(Arrival::Migration);
            }
            _ => {}
        }
        if after_tick {
            self.tick = None;
        }
    }

    /// Was an event here without the flag later than the end of the wake-up? Then its check said no.
    fn was_declined(&self, wakeup_at: Option<Time>) -> bool {
        wakeup_at.zip(self.flag_absent_at).is_some_and(|(wakeup, absent)| wakeup < absent)
    }

    fn verdict_at_switch(&self, timeline: &Timeline, now: Time, next: TaskId, state: TaskState) -> Verdict {
        if state.is_dead() {
            return (SwitchCause::Exit, SwitchEvidence::State);
        }
        if state.letter() == StateLetter::Unknown {
            return (SwitchCause::Unknown, SwitchEvidence::Nothing);
        }
        if !state.is_runnable() {
            return (SwitchCause::Voluntary, SwitchEvidence::State);
        }
        let within = |since: Time, window_ns: u64| now.saturating_since(since).as_ns() <= window_ns;
        if self.yielded.is_some_and(|yielded| within(yielded, YIELD_WINDOW_NS)) {
            return (SwitchCause::Yield, SwitchEvidence::YieldCall);
        }
        let unexplained = (SwitchCause::Unknown, SwitchEvidence::FlagUnexplained);
        if let Some(verdict) = self.verdict.filter(|&verdict| verdict != unexplained) {
            return verdict;
        }
        let fresh_wakee = timeline.ended().iter().any(|interval| {
            interval.task == next
                && matches!(interval.phase, Phase::Runnable(Wait::Wakeup | Wait::New))
                && !interval.censored
                && within(interval.from, WAKEE_WINDOW_NS)
                && (!self.flag_seen || interval.from < self.flag_since)
                && self.declined != Some(next)
                && !self.was_declined(interval.wake.and_then(|wake| wake.wakeup_at))
        });
        match self.tick {
            Some(tick)
                if within(tick, TICK_WINDOW_NS)
                    && !fresh_wakee
                    && !self.tick_is_vector
                    && !self.flag_seen =>
            {
                (SwitchCause::Tick, SwitchEvidence::SwitchAfterTick)
            }
            None if fresh_wakee => (SwitchCause::WakeupPreemption, SwitchEvidence::WakeeFollows),
            Some(_) | None => self.verdict.unwrap_or((SwitchCause::Unknown, SwitchEvidence::Nothing)),
        }
    }
}

impl Analysis for SwitchesAnalysis {
    type Output = Switches;

    fn needs(&self) -> Needs {
        &[&["sched_switch"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, next, prev_state, .. } => {
                self.switch(moment.timeline, event, prev, next, prev_state);
            }
            // After a gap nothing that came before can be relied on.
            EventKind::Lost { .. } => *self.line(event.cpu) = Line::default(),
            _ => {
                self.effect_on_others(moment, event);
                self.flag(moment, event);
            }
        }
    }

    fn finish(mut self, end: &End<'_>) -> Measured<Switches> {
        if let Some((state, count)) = self.last_state.take() {
            *self.by_state.entry(state).or_default() += count;
        }
        let needs = self.needs();
        end.recorded.measured(needs, || self.result(end))
    }
}

impl SwitchesAnalysis {
    fn result(self, end: &End<'_>) -> Switches {
        let mut by_state = BTreeMap::new();
        for (state, count) in &self.by_state {
            let unknown = state.is_runnable() && state.preempted().is_none();
            let letter = if unknown { "R?".to_owned() } else { state.to_string() };
            *by_state.entry(letter).or_default() += count;
        }
        let rows = self.tasks.iter().enumerate().filter(|(_, row)| row.iter().any(|&count| count > 0));
        let mut tasks: Vec<TaskSwitches> = rows
            .map(|(index, row)| TaskSwitches { who: Who::at(end.parts, index), by_cause: row.map(u64::from) })
            .collect();
        let mut by_cause = ByCause::default();
        for task in &tasks {
            for (sum, count) in by_cause.iter_mut().zip(task.by_cause) {
                *sum += count;
            }
        }
        let all = |task: &TaskSwitches| task.by_cause.iter().sum::<u64>();
        tasks.sort_by_key(|task| (std::cmp::Reverse(all(task)), task.who.task));
        let mut pairs = self.pairs.sorted();
        pairs.sort_by_key(|&(key, count)| (std::cmp::Reverse(count), key));
        pairs.truncate(PAIRS_KEPT);
        let preemption = |&(key, count): &(u64, u64)| {
            let (preempted, by) = unpair(key);
            let who = |index| Who::of(end.parts, TaskId::new(index));
            PreemptionPair { preempted: who(preempted), by: who(by), count }
        };
        let helpful =
            ["sched_waking", "sched_wakeup", "ipi_send_cpu", "hrtimer_expire_entry", "sys_enter_sched_yield"];
        Switches {
            total: self.total,
            from_idle: self.from_idle,
            by_cause,
            by_evidence: self.by_evidence,
            by_state,
            tasks,
            preemptions: pairs.iter().map(preemption).collect(),
            would_help: helpful.into_iter().filter(|name| !end.recorded.has(name)).collect(),
            flags_known: self.flags_known,
        }
    }
}

#[cfg(test)]
#[path = "switches_tests.rs"]
mod tests;
