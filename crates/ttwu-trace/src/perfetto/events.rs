//! Perfetto's ftrace events as ours: one at a time, compact runs, and events that have no message of their own.

use super::proto::{Fields, Value, packed};
use super::schema::{compact, event};
use super::state::States;
use crate::source::Source;
use crate::tracepoint::Names;
use std::collections::BTreeMap;
use ttwu_model::{CpuId, CpuSet, Event, EventFlags, EventKind, Pid, Prio, RawEvent, StrId, Time};

/// An event and whether it says which task it is about: compact events leave out the running one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) raw: RawEvent,
    pub(super) implicit: bool,
}

impl Item {
    pub(super) fn at(&self) -> u64 {
        self.raw.event.at.as_ns()
    }
}

/// What events of a recording are read with.
pub(super) struct EventReader {
    pub(super) states: States,
    /// `sched_yield`'s number on the recording's architecture.
    pub(super) yield_syscall: Option<i64>,
    /// Kernel symbols by packet sequence and the sequence's own number.
    pub(super) symbols: BTreeMap<(u64, u64), String>,
    /// Names of self-described generic events, by field number.
    pub(super) generics: BTreeMap<u32, String>,
    names: Names,
}

/// The fields of an event's message by number; Perfetto's event messages have few.
#[derive(Default)]
struct Args<'a> {
    values: [Option<Value<'a>>; 8],
}

impl<'a> Args<'a> {
    fn new(message: &'a [u8]) -> Option<Self> {
        let mut args = Self::default();
        let mut fields = Fields::new(message);
        for (number, value) in &mut fields {
            if let Some(slot) = args.values.get_mut(number as usize) {
                *slot = Some(value);
            }
        }
        (!fields.damaged()).then_some(args)
    }

    fn number(&self, field: usize) -> u64 {
        self.values[field].map_or(0, Value::number)
    }

    fn int(&self, field: usize) -> i32 {
        self.values[field].map_or(0, Value::int32)
    }

    fn bytes(&self, field: usize) -> &'a [u8] {
        self.values[field].map_or(&[], Value::bytes)
    }

    fn pid(&self, field: usize) -> Pid {
        Pid::new(self.int(field))
    }

    fn prio(&self, field: usize) -> Prio {
        self.values[field].map_or(Prio::UNKNOWN, |value| Prio::new(value.int32()))
    }

    fn cpu(&self, field: usize) -> Option<CpuId> {
        CpuId::try_from(self.number(field)).ok()
    }
}

/// An event's kind and the names of its tasks.
type Decoded = (EventKind<Pid>, [Option<StrId>; 2]);

impl EventReader {
    pub(super) fn new(release: Option<&str>, arch: Option<&str>) -> Self {
        let yield_syscall = match arch {
            Some("x86_64") => Some(24),
            Some("aarch64" | "riscv64" | "loongarch64") => Some(124),
            Some("armv7l" | "armv8l" | "i686" | "ppc64le" | "s390x") => Some(158),
            Some(_) | None => None,
        };
        Self {
            states: States::of_release(release),
            yield_syscall,
            symbols: BTreeMap::new(),
            generics: BTreeMap::new(),
            names: Names::new(),
        }
    }

    fn name(&mut self, name: &[u8], source: &mut Source) -> Option<StrId> {
        (!name.is_empty()).then(|| self.names.text(name, &mut source.strings))
    }

    fn some_name(&mut self, name: &[u8], source: &mut Source) -> StrId {
        self.names.text(name, &mut source.strings)
    }

    /// A kernel function by its interned number, or the number where it was not interned.
    fn function(&mut self, sequence: u64, number: u64, source: &mut Source) -> StrId {
        match self.symbols.get(&(sequence, number)) {
            Some(symbol) => source.strings.intern(symbol),
            None => source.strings.intern(&format!("{number:#x}")),
        }
    }

    /// Reads an `FtraceEvent` of `cpu`; what is wrong with it, if it cannot be used.
    pub(super) fn event(
        &mut self,
        message: &[u8],
        cpu: CpuId,
        sequence: u64,
        source: &mut Source,
    ) -> Result<Item, &'static str> {
        let (mut at, mut by, mut flags) = (None, Pid::IDLE, EventFlags::UNKNOWN);
        let mut content = None;
        let mut fields = Fields::new(message);
        for (number, value) in &mut fields {
            match number {
                event::TIMESTAMP => at = Some(Time::from_ns(value.number())),
                event::PID => by = Pid::new(value.int32()),
                event::COMMON_FLAGS => flags = EventFlags::from_common_flags(value.number() as u8),
                _ => content = Some((number, value.bytes())),
            }
        }
        if fields.damaged() {
            return Err("damaged event");
        }
        let at = at.ok_or("event without a time")?;
        let Some((number, message)) = content else { return Err("event without content") };
        let args = Args::new(message).ok_or("damaged event content")?;
        let known = self.sched(number, &args, source).or_else(|| self.other(number, &args, sequence, source));
        let (kind, names) = match known {
            Some(known) => known,
            None if number == event::GENERIC => self.generic(message, source),
            None => {
                let name = event::OTHERS.iter().find(|(other, _)| *other == number).map(|(_, name)| *name);
                let name = match (name, self.generics.get(&number)) {
                    (Some(name), _) => source.strings.intern(name),
                    (None, Some(name)) => source.strings.intern(name),
                    (None, None) => source.strings.intern(&format!("perfetto ftrace event {number}")),
                };
                (EventKind::Other { name }, [None; 2])
            }
        };
        Ok(Item { raw: RawEvent { event: Event { at, by, cpu, flags, kind }, names }, implicit: false })
    }

    /// Events about tasks.
    fn sched(&mut self, number: u32, args: &Args<'_>, source: &mut Source) -> Option<Decoded> {
        let mut name = |field| self.name(args.bytes(field), source);
        Some(match number {
            event::SCHED_SWITCH => {
                let names = [name(1), name(5)];
                let kind = EventKind::Switch {
                    prev: args.pid(2),
                    next: args.pid(6),
                    prev_state: self.states.decode(args.number(4)),
                    prev_prio: args.prio(3),
                    next_prio: args.prio(7),
                };
                (kind, names)
            }
            event::SCHED_WAKING => {
                let kind =
                    EventKind::Waking { wakee: args.pid(2), prev_cpu: args.cpu(5)?, prio: args.prio(3) };
                (kind, [name(1), None])
            }
            event::SCHED_WAKEUP => {
                let kind = EventKind::Wakeup { wakee: args.pid(2), cpu: args.cpu(5)?, prio: args.prio(3) };
                (kind, [name(1), None])
            }
            event::SCHED_WAKEUP_NEW => {
                let kind = EventKind::WakeupNew { wakee: args.pid(2), cpu: args.cpu(5)?, prio: args.prio(3) };
                (kind, [name(1), None])
            }
            event::SCHED_MIGRATE_TASK => {
                let (orig_cpu, dest_cpu) = (args.cpu(4)?, args.cpu(5)?);
                let kind = EventKind::Migrate { task: args.pid(2), orig_cpu, dest_cpu, prio: args.prio(3) };
                (kind, [name(1), None])
            }
            event::SCHED_PROCESS_FORK => {
                let names = [name(1), name(3)];
                (EventKind::Fork { parent: args.pid(2), child: args.pid(4) }, names)
            }
            event::SCHED_PROCESS_EXIT => (EventKind::Exit { task: args.pid(2) }, [name(1), None]),
            event::SCHED_PROCESS_EXEC => (EventKind::Exec { task: args.pid(2), file: name(1) }, [None; 2]),
            _ => return None,
        })
    }

    /// Events about CPUs and interrupts.
    fn other(&mut self, number: u32, args: &Args<'_>, sequence: u64, source: &mut Source) -> Option<Decoded> {
        let vec = args.number(1) as u8;
        let irq = args.int(1).cast_unsigned();
        let kind = match number {
            event::CPU_FREQUENCY => EventKind::Frequency { cpu: args.cpu(2)?, khz: args.number(1) as u32 },
            event::CPU_IDLE => match args.number(1) as u32 {
                u32::MAX => EventKind::IdleExit { cpu: args.cpu(2)? },
                state => EventKind::IdleEnter { cpu: args.cpu(2)?, state },
            },
            event::IPI_ENTRY => EventKind::VectorEntry { name: self.some_name(args.bytes(1), source) },
            event::IPI_EXIT => EventKind::VectorExit { name: self.some_name(args.bytes(1), source) },
            event::IPI_RAISE => {
                let mask = args.number(1) as u32;
                let reason = self.name(args.bytes(2), source);
                if mask.count_ones() == 1 {
                    let target = CpuId::new(mask.trailing_zeros() as u16);
                    EventKind::IpiSend { target, callsite: reason }
                } else {
                    let cpus: CpuSet = (0..32).filter(|bit| mask & (1 << bit) != 0).map(CpuId::new).collect();
                    let mask = source.strings.intern(&cpus.to_string());
                    EventKind::IpiSendMask { mask: Some(mask), callsite: reason }
                }
            }
            event::SOFTIRQ_ENTRY => EventKind::SoftirqEntry { vec },
            event::SOFTIRQ_EXIT => EventKind::SoftirqExit { vec },
            event::SOFTIRQ_RAISE => EventKind::SoftirqRaise { vec },
            event::IRQ_HANDLER_ENTRY => EventKind::IrqEntry { irq, name: self.name(args.bytes(2), source) },
            event::IRQ_HANDLER_EXIT => EventKind::IrqExit { irq },
            event::WORKQUEUE_EXECUTE_START => {
                EventKind::WorkStart { function: self.function(sequence, args.number(2), source) }
            }
            event::WORKQUEUE_EXECUTE_END => {
                let function = args.values[2].map(|value| self.function(sequence, value.number(), source));
                EventKind::WorkEnd { function }
            }
            event::HRTIMER_EXPIRE_ENTRY | event::TIMER_EXPIRE_ENTRY => {
                EventKind::TimerExpire { function: self.function(sequence, args.number(3), source) }
            }
            event::SYS_ENTER if self.yield_syscall == Some(args.number(1).cast_signed()) => EventKind::Yield,
            event::SYS_ENTER => EventKind::Other { name: source.strings.intern("sys_enter") },
            _ => return None,
        };
        Some((kind, [None; 2]))
    }

    /// An event that carries its own name and fields. Scheduler tracepoints for which Perfetto has no message arrive so.
    fn generic(&mut self, message: &[u8], source: &mut Source) -> Decoded {
        let mut event_name: &[u8] = b"";
        let mut numbers = BTreeMap::new();
        let mut texts = BTreeMap::new();
        for (number, value) in Fields::new(message) {
            match number {
                1 => event_name = value.bytes(),
                2 => {
                    let Some(field) = Args::new(value.bytes()) else { continue };
                    match (field.values[3], field.values[4].or(field.values[5])) {
                        (Some(text), _) => drop(texts.insert(field.bytes(1), text.bytes())),
                        (None, Some(number)) => drop(numbers.insert(field.bytes(1), number.number())),
                        (None, None) => {}
                    }
                }
                _ => {}
            }
        }
        let mut text = |field: &str| texts.get(field.as_bytes()).map(|text| self.some_name(text, source));
        let number = |field: &str| numbers.get(field.as_bytes()).copied();
        let pid = |field: &str| number(field).map(|pid| Pid::new(pid as i32));
        let comm = text("comm");
        let kind = match (event_name, pid("pid")) {
            (b"sched_stat_runtime", Some(task)) => {
                number("runtime").map(|runtime_ns| EventKind::StatRuntime { task, runtime_ns })
            }
            (b"sched_stat_wait", Some(task)) => {
                number("delay").map(|delay_ns| EventKind::StatWait { task, delay_ns })
            }
            (b"sched_stat_sleep" | b"sched_stat_iowait" | b"sched_stat_blocked", Some(task)) => {
                number("delay").map(|delay_ns| EventKind::StatSleep { task, delay_ns })
            }
            (b"ipi_send_cpu", _) => number("cpu").or(number("cpumask")).and_then(|cpu| {
                let target = CpuId::try_from(cpu).ok()?;
                Some(EventKind::IpiSend { target, callsite: text("callsite") })
            }),
            (b"ipi_send_cpumask", _) => {
                let mask = text("cpumask");
                Some(EventKind::IpiSendMask { mask, callsite: text("callsite") })
            }
            (b"sys_enter_sched_yield", _) => Some(EventKind::Yield),
            _ => None,
        };
        match kind {
            Some(kind) => (kind, [comm.filter(|_| kind.tasks()[0].is_some()), None]),
            None => (EventKind::Other { name: self.some_name(event_name, source) }, [None; 2]),
        }
    }

    /// Reads a `CompactSched` of `cpu` into `out`; columns of unequal length are cut to the shortest and counted.
    pub(super) fn compact(&mut self, message: &[u8], cpu: CpuId, source: &mut Source, out: &mut Vec<Item>) {
        let mut columns: [&[u8]; 13] = [&[]; 13];
        let mut table = Vec::new();
        let mut fields = Fields::new(message);
        for (number, value) in &mut fields {
            if number == compact::INTERN_TABLE {
                table.push(self.some_name(value.bytes(), source));
            } else if let Some(column) = columns.get_mut(number as usize) {
                *column = value.bytes();
            }
        }
        if fields.damaged() {
            source.health.add_unknown("damaged Perfetto compact_sched");
        }
        let column = |number: u32| packed(columns[number as usize]);
        let name = |index: u64| usize::try_from(index).ok().and_then(|index| table.get(index)).copied();
        let unknown = EventFlags::UNKNOWN;
        let new = |at, flags, kind, names| {
            let event = Event { at: Time::from_ns(at), by: Pid::UNKNOWN, cpu, flags, kind };
            Item { raw: RawEvent { event, names }, implicit: true }
        };
        let rows = column(compact::SWITCH_PREV_STATE)
            .zip(column(compact::SWITCH_NEXT_PID))
            .zip(column(compact::SWITCH_NEXT_PRIO))
            .zip(column(compact::SWITCH_NEXT_COMM_INDEX));
        let mut at = 0u64;
        for (delta, (((state, pid), prio), comm)) in column(compact::SWITCH_TIMESTAMP).zip(rows) {
            at = at.wrapping_add(delta);
            let kind = EventKind::Switch {
                prev: Pid::UNKNOWN,
                next: Pid::new(pid as i32),
                prev_state: self.states.decode(state),
                prev_prio: Prio::UNKNOWN,
                next_prio: Prio::new(prio as i32),
            };
            out.push(new(at, unknown, kind, [None, name(comm)]));
        }
        let mut flags = column(compact::WAKING_COMMON_FLAGS);
        let rows = column(compact::WAKING_PID)
            .zip(column(compact::WAKING_TARGET_CPU))
            .zip(column(compact::WAKING_PRIO))
            .zip(column(compact::WAKING_COMM_INDEX));
        let mut at = 0u64;
        for (delta, (((pid, target), prio), comm)) in column(compact::WAKING_TIMESTAMP).zip(rows) {
            at = at.wrapping_add(delta);
            let flags = flags.next().map_or(unknown, |flags| EventFlags::from_common_flags(flags as u8));
            let Ok(prev_cpu) = CpuId::try_from(target) else {
                source.health.add_unknown("Perfetto compact waking to an impossible CPU");
                continue;
            };
            let kind =
                EventKind::Waking { wakee: Pid::new(pid as i32), prev_cpu, prio: Prio::new(prio as i32) };
            out.push(new(at, flags, kind, [name(comm), None]));
        }
        let counts =
            [compact::SWITCH_TIMESTAMP, compact::WAKING_TIMESTAMP].map(|number| column(number).count());
        let pairs =
            [(0, compact::SWITCH_NEXT_PID), (0, compact::SWITCH_NEXT_COMM_INDEX), (1, compact::WAKING_PID)];
        if pairs.iter().any(|&(which, number)| column(number).count() != counts[which]) {
            source
                .health
                .add_repair(format!("Perfetto compact_sched of cpu{cpu} has columns of unequal length"));
        }
    }
}
