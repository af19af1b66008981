//! Interrupts: which CPU handled which, when that changed, and which wake-ups were made from them.
//!
//! A wake-up's context (hardirq, softirq) is in its flags; *which* interrupt or softirq it was is what entry and exit events
//! of that CPU say. A wake-up in hardirq context belongs to the device interrupt that is open, else to the timer that
//! expired last in the same interrupt, else to the open vector, else to an interrupt that was not recorded.
//!
//! *A move* is a device interrupt handled by another CPU than the time before.
//!
//! What this does not do: tell per-CPU interrupts that share one number from a moving one (the kernel's own number is the
//! same on all CPUs); their moves are listed like others.

use crate::tally::{Tally, at, pair, unpair};
use crate::{Analysis, End, Measured, Moment, Needs};
use std::collections::BTreeMap;
use ttwu_model::{Context, CpuId, Duration, Event, EventKind, StrId, Time};

/// How many moves are kept, the first ones.
pub const MOVES_KEPT: usize = 50;

/// What interrupts did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Irqs {
    /// Device interrupts, most often first; `None` where `irq_handler_entry` was not recorded.
    pub irqs: Option<Vec<IrqUse>>,
    /// How often a device interrupt moved to another CPU.
    pub moves_total: u64,
    /// The first moves.
    pub moves: Vec<IrqMove>,
    /// Softirqs by number; `None` where `softirq_entry` was not recorded.
    pub softirqs: Option<Vec<IrqUse>>,
    /// Timer callbacks, most often first; `None` where `hrtimer_expire_entry` was not recorded.
    pub timers: Option<Vec<IrqUse>>,
    /// Interrupt vectors and received IPIs, most often first; `None` where they were not recorded.
    pub vectors: Option<Vec<IrqUse>>,
    /// IPIs sent, by the function that sent them, most often first; `None` where they were not recorded.
    pub ipis_sent: Option<Vec<IpisSent>>,
    /// Wake-ups from a hardware interrupt that was not recorded, and from a softirq that was not.
    pub wakeups_unattributed: [u64; 2],
    /// Were wake-ups recorded?
    pub wakeups_recorded: bool,
}

/// One interrupt, softirq, timer callback or vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IrqUse {
    /// Interrupt or softirq number, where it has one.
    pub number: Option<u32>,
    /// Its name; empty where the source has none.
    pub name: String,
    /// How often it was handled.
    pub count: u64,
    /// Where, by CPU.
    pub cpus: Vec<IrqOnCpu>,
    /// Wake-ups made from it.
    pub wakeups: u64,
}

/// An interrupt on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IrqOnCpu {
    /// The CPU.
    pub cpu: CpuId,
    /// How often.
    pub count: u64,
    /// Time between entry and exit, where both were seen.
    pub time: Duration,
}

/// A device interrupt that was handled by another CPU than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IrqMove {
    /// The first time on the new CPU.
    pub at: Time,
    /// The interrupt.
    pub irq: u32,
    /// Its name.
    pub name: String,
    /// The CPU before.
    pub from: CpuId,
    /// The CPU now.
    pub to: CpuId,
}

/// IPIs of one sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpisSent {
    /// The function, without offset; `?` where the source does not say.
    pub function: String,
    /// How many.
    pub count: u64,
    /// To the sender's own CPU.
    pub to_self: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    count: u64,
    time_ns: u64,
}

/// What one CPU is in the middle of.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    irq: Option<(u32, Time)>,
    softirq: Option<(u8, Time)>,
    timer: Option<StrId>,
    vector: Option<(StrId, Time)>,
}

/// Counts of one kind of interrupt.
#[derive(Clone, Debug, Default)]
struct Kind {
    cells: Tally<Cell>,
    wakeups: Tally<u64>,
}

impl Kind {
    fn entered(&mut self, id: u32, cpu: CpuId) {
        self.cells.entry(pair(id, cpu.number().into())).count += 1;
    }

    fn left(&mut self, id: u32, cpu: CpuId, lasted: Duration) {
        self.cells.entry(pair(id, cpu.number().into())).time_ns += lasted.as_ns();
    }

    fn woke(&mut self, id: u32) {
        *self.wakeups.entry(id.into()) += 1;
    }

    /// All of them, by number; `name` gives name and number.
    fn uses(&self, name: impl Fn(u32) -> (Option<u32>, String)) -> Vec<IrqUse> {
        let mut uses: Vec<(u32, IrqUse)> = Vec::new();
        for (key, cell) in self.cells.sorted() {
            let (id, cpu) = unpair(key);
            if uses.last().is_none_or(|&(last, _)| last != id) {
                let (number, name) = name(id);
                uses.push((id, IrqUse { number, name, count: 0, cpus: Vec::new(), wakeups: 0 }));
            }
            let (_, one) = uses.last_mut().expect("just pushed");
            one.count += cell.count;
            let cpu = CpuId::try_from(u64::from(cpu)).expect("packed from a CPU");
            one.cpus.push(IrqOnCpu { cpu, count: cell.count, time: Duration::from_ns(cell.time_ns) });
        }
        let wakeups: BTreeMap<u64, u64> = self.wakeups.sorted().into_iter().collect();
        for (id, one) in &mut uses {
            one.wakeups = wakeups.get(&u64::from(*id)).copied().unwrap_or(0);
        }
        uses.into_iter().map(|(_, one)| one).collect()
    }
}

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct IrqsAnalysis {
    lines: Vec<Line>,
    irqs: Kind,
    softirqs: Kind,
    timers: Kind,
    vectors: Kind,
    names: BTreeMap<u32, StrId>,
    last_cpu: Tally<Option<CpuId>>,
    moves: Vec<(Time, u32, CpuId, CpuId)>,
    moves_total: u64,
    /// By call site, its index plus 1; 0 is "not said". Count and those to the sender itself.
    ipis: Vec<(u64, u64)>,
    unattributed: [u64; 2],
    waking_seen: bool,
}

impl IrqsAnalysis {
    /// Ready for the first event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn irq_entered(&mut self, event: &Event, irq: u32, name: Option<StrId>) {
        let cpu = event.cpu;
        self.irqs.entered(irq, cpu);
        let last = self.last_cpu.entry(irq.into());
        match last.replace(cpu) {
            Some(from) if from != cpu => {
                self.moves_total += 1;
                if self.moves.len() < MOVES_KEPT {
                    self.moves.push((event.at, irq, from, cpu));
                }
            }
            Some(_) => {}
            None => {
                if let Some(name) = name {
                    self.names.insert(irq, name);
                }
            }
        }
        let line = at(&mut self.lines, cpu.index());
        line.irq = Some((irq, event.at));
        line.timer = None;
    }

    fn woke(&mut self, event: &Event) {
        let line = *at(&mut self.lines, event.cpu.index());
        let context = match event.flags.context() {
            Context::Unknown if line.irq.is_some() => Context::Hardirq,
            Context::Unknown if line.softirq.is_some() => Context::Softirq,
            context => context,
        };
        match context {
            Context::Hardirq | Context::Nmi => match (line.irq, line.timer, line.vector) {
                (Some((irq, _)), _, _) => self.irqs.woke(irq),
                (None, Some(function), _) => self.timers.woke(index(function)),
                (None, None, Some((name, _))) => self.vectors.woke(index(name)),
                (None, None, None) => self.unattributed[0] += 1,
            },
            Context::Softirq => match line.softirq {
                Some((vec, _)) => self.softirqs.woke(vec.into()),
                None => self.unattributed[1] += 1,
            },
            Context::Task | Context::Unknown => {}
        }
    }
}

fn index(id: StrId) -> u32 {
    u32::try_from(id.index()).expect("fewer than 2^32 strings")
}

/// The kernel's names of softirqs, by number.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl Analysis for IrqsAnalysis {
    type Output = Irqs;

    fn needs(&self) -> Needs {
        &[&["irq_handler_entry", "softirq_entry", "hrtimer_expire_entry", "ipi_send_cpu", "ipi_entry"]]
    }

    fn observe(&mut self, _moment: &Moment<'_>, event: &Event) {
        let (cpu, now) = (event.cpu, event.at);
        let line = at(&mut self.lines, cpu.index());
        if event.flags.context() != Context::Hardirq {
            line.timer = None;
        }
        match event.kind {
            EventKind::IrqEntry { irq, name } => self.irq_entered(event, irq, name),
            EventKind::IrqExit { irq } => {
                if let Some((open, since)) = line.irq.take()
                    && open == irq
                {
                    self.irqs.left(irq, cpu, now.saturating_since(since));
                }
            }
            EventKind::SoftirqEntry { vec } => {
                line.softirq = Some((vec, now));
                self.softirqs.entered(vec.into(), cpu);
            }
            EventKind::SoftirqExit { vec } => {
                if let Some((open, since)) = line.softirq.take()
                    && open == vec
                {
                    self.softirqs.left(vec.into(), cpu, now.saturating_since(since));
                }
            }
            EventKind::TimerExpire { function } => {
                line.timer = Some(function);
                self.timers.entered(index(function), cpu);
            }
            EventKind::VectorEntry { name } => {
                line.vector = Some((name, now));
                self.vectors.entered(index(name), cpu);
            }
            EventKind::VectorExit { name } => {
                if let Some((open, since)) = line.vector.take()
                    && open == name
                {
                    self.vectors.left(index(name), cpu, now.saturating_since(since));
                }
            }
            EventKind::IpiSend { target, callsite } => {
                let slot = at(&mut self.ipis, callsite.map_or(0, |id| id.index() + 1));
                slot.0 += 1;
                slot.1 += u64::from(target == cpu);
            }
            EventKind::IpiSendMask { callsite, .. } => {
                at(&mut self.ipis, callsite.map_or(0, |id| id.index() + 1)).0 += 1;
            }
            EventKind::Waking { .. } => {
                self.waking_seen = true;
                self.woke(event);
            }
            // The wake list makes sched_wakeup come from the target's IPI: only where there is nothing better.
            EventKind::Wakeup { .. } if !self.waking_seen => self.woke(event),
            EventKind::Lost { .. } => *line = Line::default(),
            _ => {}
        }
    }

    fn finish(self, end: &End<'_>) -> Measured<Irqs> {
        let needs = self.needs();
        end.recorded.measured(needs, || self.result(end))
    }
}

impl IrqsAnalysis {
    fn result(self, end: &End<'_>) -> Irqs {
        let strings = &end.parts.strings;
        let by_index: Vec<&str> = strings.iter().map(|(_, text)| text).collect();
        let text = |id: u32| by_index.get(id as usize).copied().unwrap_or("?").to_owned();
        let irq_name =
            |irq: u32| self.names.get(&irq).map_or(String::new(), |&id| strings.get(id).to_owned());
        let softirq = |vec: u32| SOFTIRQS.get(vec as usize).copied().unwrap_or("").to_owned();
        let most_first = |mut uses: Vec<IrqUse>| {
            uses.sort_by(|a, b| {
                b.count.cmp(&a.count).then(a.number.cmp(&b.number)).then_with(|| a.name.cmp(&b.name))
            });
            uses
        };
        let has = |name: &str| end.recorded.has(name);
        Irqs {
            irqs: has("irq_handler_entry")
                .then(|| most_first(self.irqs.uses(|irq| (Some(irq), irq_name(irq))))),
            moves_total: self.moves_total,
            moves: self
                .moves
                .iter()
                .map(|&(at, irq, from, to)| IrqMove { at, irq, name: irq_name(irq), from, to })
                .collect(),
            softirqs: has("softirq_entry").then(|| self.softirqs.uses(|vec| (Some(vec), softirq(vec)))),
            timers: has("hrtimer_expire_entry").then(|| most_first(self.timers.uses(|id| (None, text(id))))),
            vectors: has("ipi_entry").then(|| most_first(self.vectors.uses(|id| (None, text(id))))),
            ipis_sent: (has("ipi_send_cpu") || has("ipi_send_cpumask"))
                .then(|| ipis_sent(&self.ipis, &by_index)),
            wakeups_unattributed: self.unattributed,
            wakeups_recorded: has("sched_waking") || has("sched_wakeup"),
        }
    }
}

/// Call sites of one function together, whatever their offset.
fn ipis_sent(by_site: &[(u64, u64)], by_index: &[&str]) -> Vec<IpisSent> {
    let mut by_function: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (slot, &(count, to_self)) in by_site.iter().enumerate().filter(|(_, counts)| counts.0 > 0) {
        let site = slot.checked_sub(1).and_then(|index| by_index.get(index).copied()).unwrap_or("?");
        let sum = by_function.entry(site.split('+').next().unwrap_or(site)).or_default();
        sum.0 += count;
        sum.1 += to_self;
    }
    let sent = |(function, (count, to_self)): (&str, (u64, u64))| IpisSent {
        function: function.to_owned(),
        count,
        to_self,
    };
    let mut all: Vec<IpisSent> = by_function.into_iter().map(sent).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.count));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse_one;
    use crate::script::{lines, trace};
    use std::fmt::Write;

    fn check(script: &str, expected: &str) {
        let trace = trace(script);
        let measured = analyse_one(&trace, IrqsAnalysis::new());
        let Measured::Measured(out) = measured else { panic!("{measured:?}") };
        let mut text = String::new();
        let kinds = [
            ("irq", &out.irqs),
            ("softirq", &out.softirqs),
            ("timer", &out.timers),
            ("vector", &out.vectors),
        ];
        for (kind, uses) in kinds {
            for one in uses.iter().flatten() {
                let cpus: String = one
                    .cpus
                    .iter()
                    .map(|on| format!(" #{}:{} {}ns", on.cpu, on.count, on.time.as_ns()))
                    .collect();
                let number = one.number.map_or(String::new(), |number| format!("{number} "));
                writeln!(text, "{kind} {number}{}{cpus} wakes {}", one.name, one.wakeups).unwrap();
            }
        }
        for moved in &out.moves {
            writeln!(text, "{} moved {}->{} at {}", moved.irq, moved.from, moved.to, moved.at.as_ns())
                .unwrap();
        }
        for sent in out.ipis_sent.iter().flatten() {
            writeln!(text, "ipi {} {} self {}", sent.function, sent.count, sent.to_self).unwrap();
        }
        writeln!(text, "unattributed {:?}", out.wakeups_unattributed).unwrap();
        assert_eq!(lines(&text), lines(expected), "script:\n{script}");
    }

    #[test]
    fn interrupts_their_moves_and_their_wake_ups() {
        check(
            "10 0 idle h irq 39 disk
             11 0 idle h waking a 0
             15 0 idle h irqx 39
             16 0 idle s soft 4
             17 0 idle s waking b 0
             19 0 idle s softx 4
             20 0 idle s waking c 0
             30 1 idle h irq 39 disk
             33 1 idle h irqx 39
             40 1 idle h waking a 0",
            "irq 39 disk #0:1 5ns #1:1 3ns wakes 1
             softirq 4 BLOCK #0:1 3ns wakes 1
             39 moved 0->1 at 30
             unattributed [1, 1]",
        );
    }

    #[test]
    fn timers_own_the_wake_ups_of_their_interrupt() {
        check(
            "10 0 a h timer tick_nohz_handler
             11 0 a h timer hrtimer_wakeup
             12 0 a h waking b 0
             13 0 a . stat a 5
             14 0 a h waking c 0",
            "timer hrtimer_wakeup #0:1 0ns wakes 1
             timer tick_nohz_handler #0:1 0ns wakes 0
             unattributed [1, 0]",
        );
    }

    #[test]
    fn without_flags_the_open_interrupt_tells_the_context() {
        check(
            "10 0 a ? irq 5 net
             11 0 a ? waking b 0
             12 0 a ? irqx 5
             13 0 a ? waking c 0",
            "irq 5 net #0:1 2ns wakes 1
             unattributed [0, 0]",
        );
    }

    #[test]
    fn ipis_by_the_function_that_sends_them() {
        check(
            "10 0 a . ipi 1 wakeup_preempt+0x92/0xa0
             11 0 a . ipi 1 wakeup_preempt+0x12/0xa0
             12 0 a . ipi 0 irq_work_queue+0x1/0x2",
            "ipi wakeup_preempt 2 self 0
             ipi irq_work_queue 1 self 1
             unattributed [0, 0]",
        );
    }

    #[test]
    fn a_gap_closes_what_was_open() {
        check(
            "10 0 a h irq 5 net
             20 0 a . lost
             30 0 a h waking b 0
             40 0 a h irqx 5",
            "irq 5 net #0:1 0ns wakes 0
             unattributed [1, 0]",
        );
    }
}
