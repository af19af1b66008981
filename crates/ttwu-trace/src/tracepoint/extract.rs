//! From a record's bytes to an event: fields located once per format, then read in place.
//!
//! Each tracepoint that an `EventKind` stands for has a row in [`plan`] that names its fields (with their names in older
//! kernels). A tracepoint without a row, or whose format lacks a field that the row needs, is `Other` and keeps its name.
//! A record too short for its fields is counted as damaged and becomes `Other` too, so that event counts stay right.

use super::format::{Endian, Field, Origin, Shape, TracepointFormat, integer, until_nul};
use super::names::Names;
use super::state::StateTable;
use super::{Machine, Symbols};
use crate::source::Source;
use ttwu_model::{CpuId, Event, EventFlags, EventKind, Pid, Prio, RawEvent, StrId, Strings, TaskState, Time};

/// Where a number is in a record.
#[derive(Debug, Clone, Copy)]
struct Number {
    offset: usize,
    size: usize,
    signed: bool,
}

/// Where a text is in a record.
#[derive(Debug, Clone, Copy)]
enum Text {
    /// `char[16]`: the common form of a task name.
    Comm { offset: usize },
    /// Text of another length in the record's fixed part.
    Fixed { offset: usize, size: usize },
    /// Behind `__data_loc` or `__rel_loc`.
    Dynamic { place: Number, origin: Origin },
}

/// Which wake-up tracepoint.
#[derive(Debug, Clone, Copy)]
enum Wake {
    Waking,
    Wakeup,
    New,
}

/// Which accounting tracepoint.
#[derive(Debug, Clone, Copy)]
enum Stat {
    Runtime,
    Wait,
    Sleep,
}

/// Which softirq tracepoint.
#[derive(Debug, Clone, Copy)]
enum Softirq {
    Raise,
    Entry,
    Exit,
}

/// Begin or end of a pair.
#[derive(Debug, Clone, Copy)]
enum Edge {
    Entry,
    Exit,
}

/// How an interrupt vector is named.
#[derive(Debug, Clone, Copy)]
enum VectorName {
    /// By the tracepoint: `irq_vectors:local_timer_entry`.
    Tracepoint(Option<StrId>),
    /// By a string's address: `ipi_entry`.
    Reason(Number),
}

/// What to make of a record, with all places found.
#[derive(Debug, Clone)]
enum Plan {
    Wake { which: Wake, comm: Text, pid: Number, prio: Option<Number>, cpu: Number },
    Switch(Box<Switch>),
    Migrate { comm: Text, pid: Number, prio: Option<Number>, orig: Number, dest: Number },
    Fork { parent_comm: Text, parent: Number, child_comm: Text, child: Number },
    Exit { comm: Text, pid: Number },
    Exec { pid: Number, file: Option<Text> },
    Stat { which: Stat, comm: Text, pid: Number, ns: Number },
    Idle { state: Number, cpu: Number },
    Frequency { khz: Number, cpu: Number },
    IpiSend { cpu: Number, callsite: Option<Number> },
    IpiMask { mask: Mask, callsite: Option<Number> },
    IpiRaise { mask: Mask, reason: Option<Number> },
    Vector { edge: Edge, name: VectorName },
    IrqEntry { irq: Number, name: Option<Text> },
    IrqExit { irq: Number },
    Softirq { which: Softirq, vec: Number },
    Timer { function: Number },
    WorkStart { function: Number },
    WorkEnd { function: Option<Number> },
    Yield,
    SysEnter { nr: Number, yield_nr: Option<i64> },
    Other,
}

#[derive(Debug, Clone)]
struct Switch {
    prev_comm: Text,
    prev: Number,
    prev_prio: Option<Number>,
    prev_state: Number,
    next_comm: Text,
    next: Number,
    next_prio: Option<Number>,
    /// Meanings of small numbers, so that the common ones cost a lookup.
    states: Box<[TaskState]>,
    table: StateTable,
}

/// Numbers below this are decoded by lookup: all single states since 4.14.
const STATES_READY: u64 = 512;

/// Where a CPU mask's place is noted.
#[derive(Debug, Clone, Copy)]
struct Mask {
    place: Number,
    origin: Origin,
    /// Bytes of its words.
    word: usize,
}

/// One tracepoint's way from bytes to events.
#[derive(Debug, Clone)]
pub(super) struct Extractor {
    endian: Endian,
    pid: Option<Number>,
    flags: Option<usize>,
    /// Bits of `common_flags` that mean on this kernel what they mean to `EventFlags`.
    flags_mask: u8,
    plan: Plan,
    name: Box<str>,
    /// `name` as interned when first needed.
    name_id: Option<StrId>,
}

impl Extractor {
    pub(super) fn new(format: &TracepointFormat, machine: &Machine) -> Self {
        let common = |name| format.field(name).and_then(number);
        Self {
            endian: format.encoding().endian,
            pid: common("common_pid"),
            flags: common("common_flags").filter(|flags| flags.size == 1).map(|flags| flags.offset),
            flags_mask: machine.common_flags_mask(),
            plan: plan(format, machine).unwrap_or(Plan::Other),
            name: format.name().into(),
            name_id: None,
        }
    }

    /// Does it make anything but `Other` of its records?
    pub(super) fn is_interpreted(&self) -> bool {
        !matches!(self.plan, Plan::Other)
    }

    /// The event that a record means.
    pub(super) fn extract(
        &mut self,
        payload: &[u8],
        at: Time,
        cpu: CpuId,
        with: &mut Lookup,
        source: &mut Source,
    ) -> RawEvent {
        let record = Record { payload, endian: self.endian };
        let by = self.pid.and_then(|place| record.pid(place)).unwrap_or(Pid::UNKNOWN);
        let flags = match self.flags.and_then(|offset| payload.get(offset)) {
            Some(&byte) => EventFlags::from_common_flags(byte & self.flags_mask),
            None => EventFlags::UNKNOWN,
        };
        let mut names = [None; 2];
        let kind = match self.kind(record, &mut names, with, &mut source.strings) {
            Some(kind) => kind,
            None => {
                if self.is_interpreted() && !matches!(self.plan, Plan::SysEnter { .. }) {
                    source.health.add_unknown(&format!("{} (damaged)", self.name));
                }
                names = [None; 2];
                EventKind::Other { name: self.own_name(&mut source.strings) }
            }
        };
        RawEvent { event: Event { at, by, cpu, flags, kind }, names }
    }

    fn own_name(&mut self, strings: &mut Strings) -> StrId {
        *self.name_id.get_or_insert_with(|| strings.intern(&self.name))
    }

    /// The kind, or `None` for what is not interpreted or too short.
    #[inline]
    fn kind(
        &mut self,
        record: Record<'_>,
        names: &mut [Option<StrId>; 2],
        with: &mut Lookup,
        strings: &mut Strings,
    ) -> Option<EventKind<Pid>> {
        Some(match &mut self.plan {
            &mut Plan::Wake { which, comm, pid, prio, cpu } => {
                let wakee = record.pid(pid)?;
                let (cpu, prio) = (record.cpu(cpu)?, record.prio(prio)?);
                names[0] = record.name(wakee, comm, with, strings)?;
                match which {
                    Wake::Waking => EventKind::Waking { wakee, prev_cpu: cpu, prio },
                    Wake::Wakeup => EventKind::Wakeup { wakee, cpu, prio },
                    Wake::New => EventKind::WakeupNew { wakee, cpu, prio },
                }
            }
            Plan::Switch(switch) => {
                let (prev, next) = (record.pid(switch.prev)?, record.pid(switch.next)?);
                names[0] = record.name(prev, switch.prev_comm, with, strings)?;
                names[1] = record.name(next, switch.next_comm, with, strings)?;
                EventKind::Switch {
                    prev,
                    next,
                    prev_state: switch.state(record.unsigned(switch.prev_state)?),
                    prev_prio: record.prio(switch.prev_prio)?,
                    next_prio: record.prio(switch.next_prio)?,
                }
            }
            &mut Plan::Migrate { comm, pid, prio, orig, dest } => {
                let task = record.pid(pid)?;
                let (orig_cpu, dest_cpu) = (record.cpu(orig)?, record.cpu(dest)?);
                names[0] = record.name(task, comm, with, strings)?;
                EventKind::Migrate { task, orig_cpu, dest_cpu, prio: record.prio(prio)? }
            }
            &mut Plan::Fork { parent_comm, parent, child_comm, child } => {
                let (parent, child) = (record.pid(parent)?, record.pid(child)?);
                names[0] = record.name(parent, parent_comm, with, strings)?;
                names[1] = record.name(child, child_comm, with, strings)?;
                EventKind::Fork { parent, child }
            }
            &mut Plan::Exit { comm, pid } => {
                let task = record.pid(pid)?;
                names[0] = record.name(task, comm, with, strings)?;
                EventKind::Exit { task }
            }
            &mut Plan::Exec { pid, file } => {
                let file = match file {
                    Some(place) => Some(with.names.text(record.text(place)?, strings)),
                    None => None,
                };
                EventKind::Exec { task: record.pid(pid)?, file }
            }
            &mut Plan::Stat { which, comm, pid, ns } => {
                let task = record.pid(pid)?;
                let ns = record.unsigned(ns)?;
                names[0] = record.name(task, comm, with, strings)?;
                match which {
                    Stat::Runtime => EventKind::StatRuntime { task, runtime_ns: ns },
                    Stat::Wait => EventKind::StatWait { task, delay_ns: ns },
                    Stat::Sleep => EventKind::StatSleep { task, delay_ns: ns },
                }
            }
            rest => Self::rare(rest, record, with, strings)?,
        })
    }

    /// The kinds that do not come by the million.
    fn rare(
        plan: &mut Plan,
        record: Record<'_>,
        with: &mut Lookup,
        strings: &mut Strings,
    ) -> Option<EventKind<Pid>> {
        Some(match *plan {
            Plan::Idle { state, cpu } => {
                let cpu = record.cpu(cpu)?;
                // The kernel's −1 means "leaves idle"; the field is an unsigned 32 bits.
                match u32::try_from(record.unsigned(state)?).ok()? {
                    u32::MAX => EventKind::IdleExit { cpu },
                    state => EventKind::IdleEnter { cpu, state },
                }
            }
            Plan::Frequency { khz, cpu } => EventKind::Frequency {
                cpu: record.cpu(cpu)?,
                khz: u32::try_from(record.unsigned(khz)?).ok()?,
            },
            Plan::IpiSend { cpu, callsite } => EventKind::IpiSend {
                target: record.cpu(cpu)?,
                callsite: record.call_site(callsite, with, strings)?,
            },
            Plan::IpiMask { mask, callsite } => EventKind::IpiSendMask {
                mask: Some(strings.intern(&mask_text(record.mask(mask)?, mask.word, record.endian))),
                callsite: record.call_site(callsite, with, strings)?,
            },
            Plan::IpiRaise { mask, reason } => {
                let bytes = record.mask(mask)?;
                let callsite = match reason {
                    Some(place) => Some(with.string(record.unsigned(place)?, strings)),
                    None => None,
                };
                match only_cpu(bytes, mask.word, record.endian) {
                    Some(target) => EventKind::IpiSend { target, callsite },
                    None => {
                        let mask = Some(strings.intern(&mask_text(bytes, mask.word, record.endian)));
                        EventKind::IpiSendMask { mask, callsite }
                    }
                }
            }
            Plan::Vector { edge, ref mut name } => {
                let name = match name {
                    VectorName::Reason(place) => with.string(record.unsigned(*place)?, strings),
                    VectorName::Tracepoint(name) => (*name)?,
                };
                match edge {
                    Edge::Entry => EventKind::VectorEntry { name },
                    Edge::Exit => EventKind::VectorExit { name },
                }
            }
            Plan::IrqEntry { irq, name } => {
                let name = match name {
                    Some(place) => Some(with.names.text(record.text(place)?, strings)),
                    None => None,
                };
                EventKind::IrqEntry { irq: u32::try_from(record.unsigned(irq)?).ok()?, name }
            }
            Plan::IrqExit { irq } => EventKind::IrqExit { irq: u32::try_from(record.unsigned(irq)?).ok()? },
            Plan::Softirq { which, vec } => {
                let vec = u8::try_from(record.unsigned(vec)?).ok()?;
                match which {
                    Softirq::Raise => EventKind::SoftirqRaise { vec },
                    Softirq::Entry => EventKind::SoftirqEntry { vec },
                    Softirq::Exit => EventKind::SoftirqExit { vec },
                }
            }
            Plan::Timer { function } => {
                EventKind::TimerExpire { function: with.function(record.unsigned(function)?, strings) }
            }
            Plan::WorkStart { function } => {
                EventKind::WorkStart { function: with.function(record.unsigned(function)?, strings) }
            }
            Plan::WorkEnd { function } => EventKind::WorkEnd {
                function: match function {
                    Some(place) => Some(with.function(record.unsigned(place)?, strings)),
                    None => None,
                },
            },
            Plan::Yield => EventKind::Yield,
            Plan::SysEnter { nr, yield_nr } => {
                let nr = record.signed(nr)?;
                yield_nr.filter(|&yield_nr| yield_nr == nr).map(|_| EventKind::Yield)?
            }
            Plan::Other
            | Plan::Wake { .. }
            | Plan::Switch(_)
            | Plan::Migrate { .. }
            | Plan::Fork { .. }
            | Plan::Exit { .. }
            | Plan::Exec { .. }
            | Plan::Stat { .. } => return None,
        })
    }

    /// Interns what is named by the tracepoint itself; once, before the first record.
    pub(super) fn prepare(&mut self, strings: &mut Strings) {
        if let Plan::Vector { name: VectorName::Tracepoint(name), .. } = &mut self.plan {
            let stem = self.name.strip_suffix("_entry").or_else(|| self.name.strip_suffix("_exit"));
            *name = Some(strings.intern(stem.unwrap_or(&self.name)));
        }
    }
}

impl Switch {
    #[inline]
    fn state(&self, number: u64) -> TaskState {
        match usize::try_from(number).ok().and_then(|index| self.states.get(index)) {
            Some(&state) => state,
            None => self.table.decode(number),
        }
    }
}

/// What turns numbers and names in records into strings; shared by all extractors of a file.
#[derive(Debug, Clone)]
pub(super) struct Lookup {
    names: Names,
    /// Functions, call sites and strings have separate caches: one address may mean different texts.
    functions: Names,
    call_sites: Names,
    symbols: Symbols,
}

impl Lookup {
    pub(super) fn new(symbols: Symbols) -> Self {
        Self { names: Names::new(), functions: Names::new(), call_sites: Names::new(), symbols }
    }

    fn function(&mut self, address: u64, strings: &mut Strings) -> StrId {
        self.functions.number(address, strings, |address| self.symbols.function(address))
    }

    fn call_site(&mut self, address: u64, strings: &mut Strings) -> StrId {
        self.call_sites.number(address, strings, |address| self.symbols.call_site(address))
    }

    fn string(&mut self, address: u64, strings: &mut Strings) -> StrId {
        self.names.number(address, strings, |address| self.symbols.string(address))
    }
}

/// A record's bytes with their byte order.
#[derive(Clone, Copy)]
struct Record<'a> {
    payload: &'a [u8],
    endian: Endian,
}

impl<'a> Record<'a> {
    /// Four bytes in the common order, which nearly all numbers are.
    #[inline]
    fn word(self, place: Number) -> Option<u32> {
        if place.size != 4 || self.endian != Endian::Little {
            return None;
        }
        self.payload.get(place.offset..)?.first_chunk().map(|&bytes| u32::from_le_bytes(bytes))
    }

    #[inline]
    fn signed(self, place: Number) -> Option<i64> {
        if place.signed
            && let Some(word) = self.word(place)
        {
            return Some(i64::from(word.cast_signed()));
        }
        let bytes = self.payload.get(place.offset..place.offset + place.size)?;
        integer(bytes, self.endian, place.signed)
    }

    /// The bits as an unsigned number, whatever the declaration says.
    #[inline]
    fn unsigned(self, place: Number) -> Option<u64> {
        if let Some(word) = self.word(place) {
            return Some(u64::from(word));
        }
        let bytes = self.payload.get(place.offset..place.offset + place.size)?;
        integer(bytes, self.endian, false).map(i64::cast_unsigned)
    }

    #[inline]
    fn pid(self, place: Number) -> Option<Pid> {
        i32::try_from(self.signed(place)?).ok().map(Pid::new)
    }

    #[inline]
    fn cpu(self, place: Number) -> Option<CpuId> {
        CpuId::try_from(self.unsigned(place)?).ok()
    }

    #[inline]
    fn prio(self, place: Option<Number>) -> Option<Prio> {
        let Some(place) = place else { return Some(Prio::UNKNOWN) };
        Some(i32::try_from(self.signed(place)?).map_or(Prio::UNKNOWN, Prio::new))
    }

    /// A task's name. The idle tasks' are not looked at: `swapper/3` says nothing that pid 0 and the CPU do not.
    #[inline]
    fn name(self, pid: Pid, place: Text, with: &mut Lookup, strings: &mut Strings) -> Option<Option<StrId>> {
        if pid == Pid::IDLE {
            return Some(None);
        }
        if let Text::Comm { offset } = place {
            let comm = self.payload.get(offset..)?.first_chunk::<16>()?;
            return Some(Some(with.names.comm(comm, strings)));
        }
        Some(Some(with.names.text(self.text(place)?, strings)))
    }

    fn text(self, place: Text) -> Option<&'a [u8]> {
        Some(until_nul(match place {
            Text::Comm { offset } => self.payload.get(offset..offset + 16)?,
            Text::Fixed { offset, size } => self.payload.get(offset..offset + size)?,
            Text::Dynamic { place, origin } => self.dynamic(place, origin)?,
        }))
    }

    #[inline]
    fn dynamic(self, place: Number, origin: Origin) -> Option<&'a [u8]> {
        let word = u32::try_from(self.unsigned(place)?).ok()?;
        let (start, len) = ((word & 0xffff) as usize, (word >> 16) as usize);
        let start = match origin {
            Origin::Record => start,
            Origin::Field => place.offset + place.size + start,
        };
        self.payload.get(start..start + len)
    }

    fn mask(self, mask: Mask) -> Option<&'a [u8]> {
        self.dynamic(mask.place, mask.origin)
    }

    fn call_site(
        self,
        place: Option<Number>,
        with: &mut Lookup,
        strings: &mut Strings,
    ) -> Option<Option<StrId>> {
        let Some(place) = place else { return Some(None) };
        Some(Some(with.call_site(self.unsigned(place)?, strings)))
    }
}

/// The words of a mask, lowest first.
fn mask_words(bytes: &[u8], word: usize, endian: Endian) -> impl DoubleEndedIterator<Item = u64> {
    bytes.chunks_exact(word).map(move |bytes| integer(bytes, endian, false).map_or(0, i64::cast_unsigned))
}

/// A mask as the kernel prints it: groups of eight hex digits, highest first.
fn mask_text(bytes: &[u8], word: usize, endian: Endian) -> String {
    let mut groups = Vec::new();
    for value in mask_words(bytes, word, endian).rev() {
        if word == 8 {
            groups.push(format!("{:08x}", value >> 32));
        }
        groups.push(format!("{:08x}", value & 0xffff_ffff));
    }
    groups.join(",")
}

/// The only CPU in a mask, if it is one.
fn only_cpu(bytes: &[u8], word: usize, endian: Endian) -> Option<CpuId> {
    let mut found = None;
    for (index, value) in mask_words(bytes, word, endian).enumerate() {
        if value == 0 {
            continue;
        }
        if found.is_some() || !value.is_power_of_two() {
            return None;
        }
        found = Some(index * word * 8 + value.trailing_zeros() as usize);
    }
    CpuId::try_from(found? as u64).ok()
}

fn number(field: &Field) -> Option<Number> {
    match field.shape() {
        Shape::Integer | Shape::Pointer => {
            Some(Number { offset: field.offset(), size: field.size(), signed: field.is_signed() })
        }
        Shape::Text
        | Shape::Array { .. }
        | Shape::DynamicText { .. }
        | Shape::DynamicArray { .. }
        | Shape::Opaque => None,
    }
}

fn text(field: &Field) -> Option<Text> {
    match field.shape() {
        Shape::Text if field.size() == 16 => Some(Text::Comm { offset: field.offset() }),
        Shape::Text => Some(Text::Fixed { offset: field.offset(), size: field.size() }),
        Shape::DynamicText { origin } => Some(Text::Dynamic { place: place(field), origin }),
        Shape::Integer
        | Shape::Pointer
        | Shape::Array { .. }
        | Shape::DynamicArray { .. }
        | Shape::Opaque => None,
    }
}

fn place(field: &Field) -> Number {
    Number { offset: field.offset(), size: field.size(), signed: false }
}

fn mask(field: &Field) -> Option<Mask> {
    match field.shape() {
        Shape::DynamicArray { origin, element } => {
            Some(Mask { place: place(field), origin, word: usize::from(element.max(4)) })
        }
        Shape::Integer
        | Shape::Pointer
        | Shape::Text
        | Shape::Array { .. }
        | Shape::DynamicText { .. }
        | Shape::Opaque => None,
    }
}

/// What to make of a tracepoint; `None` where a field is missing that it cannot do without.
fn plan(format: &TracepointFormat, machine: &Machine) -> Option<Plan> {
    let num = |name| format.field(name).and_then(number);
    let txt = |name| format.field(name).and_then(text);
    let wake = |which| {
        Some(Plan::Wake {
            which,
            comm: txt("comm")?,
            pid: num("pid")?,
            prio: num("prio"),
            cpu: num("target_cpu").or_else(|| num("cpu"))?,
        })
    };
    let stat = |which, ns| Some(Plan::Stat { which, comm: txt("comm")?, pid: num("pid")?, ns: num(ns)? });
    let softirq = |which| Some(Plan::Softirq { which, vec: num("vec")? });
    if format.system() == "irq_vectors" {
        let edge = if format.name().ends_with("_entry") {
            Edge::Entry
        } else if format.name().ends_with("_exit") {
            Edge::Exit
        } else {
            return None;
        };
        return Some(Plan::Vector { edge, name: VectorName::Tracepoint(None) });
    }
    match format.name() {
        "sched_waking" => wake(Wake::Waking),
        "sched_wakeup" => wake(Wake::Wakeup),
        "sched_wakeup_new" => wake(Wake::New),
        "sched_switch" => plan_switch(format),
        "sched_migrate_task" => Some(Plan::Migrate {
            comm: txt("comm")?,
            pid: num("pid")?,
            prio: num("prio"),
            orig: num("orig_cpu")?,
            dest: num("dest_cpu")?,
        }),
        "sched_process_fork" => Some(Plan::Fork {
            parent_comm: txt("parent_comm")?,
            parent: num("parent_pid")?,
            child_comm: txt("child_comm")?,
            child: num("child_pid")?,
        }),
        "sched_process_exit" => Some(Plan::Exit { comm: txt("comm")?, pid: num("pid")? }),
        "sched_process_exec" => Some(Plan::Exec { pid: num("pid")?, file: txt("filename") }),
        "sched_stat_runtime" => stat(Stat::Runtime, "runtime"),
        "sched_stat_wait" => stat(Stat::Wait, "delay"),
        "sched_stat_sleep" | "sched_stat_iowait" | "sched_stat_blocked" => stat(Stat::Sleep, "delay"),
        "cpu_idle" => Some(Plan::Idle { state: num("state")?, cpu: num("cpu_id")? }),
        "cpu_frequency" => Some(Plan::Frequency { khz: num("state")?, cpu: num("cpu_id")? }),
        "ipi_send_cpu" => Some(Plan::IpiSend { cpu: num("cpu")?, callsite: num("callsite") }),
        "ipi_send_cpumask" => {
            Some(Plan::IpiMask { mask: format.field("cpumask").and_then(mask)?, callsite: num("callsite") })
        }
        "ipi_raise" => {
            Some(Plan::IpiRaise { mask: format.field("target_cpus").and_then(mask)?, reason: num("reason") })
        }
        "ipi_entry" => Some(Plan::Vector { edge: Edge::Entry, name: VectorName::Reason(num("reason")?) }),
        "ipi_exit" => Some(Plan::Vector { edge: Edge::Exit, name: VectorName::Reason(num("reason")?) }),
        "irq_handler_entry" => Some(Plan::IrqEntry { irq: num("irq")?, name: txt("name") }),
        "irq_handler_exit" => Some(Plan::IrqExit { irq: num("irq")? }),
        "softirq_raise" => softirq(Softirq::Raise),
        "softirq_entry" => softirq(Softirq::Entry),
        "softirq_exit" => softirq(Softirq::Exit),
        "hrtimer_expire_entry" | "timer_expire_entry" => Some(Plan::Timer { function: num("function")? }),
        "workqueue_execute_start" => Some(Plan::WorkStart { function: num("function")? }),
        "workqueue_execute_end" => Some(Plan::WorkEnd { function: num("function") }),
        "sys_enter_sched_yield" => Some(Plan::Yield),
        "sys_enter" => Some(Plan::SysEnter { nr: num("id")?, yield_nr: machine.yield_number() }),
        _ => None,
    }
}

fn plan_switch(format: &TracepointFormat) -> Option<Plan> {
    let num = |name| format.field(name).and_then(number);
    let txt = |name| format.field(name).and_then(text);
    let table = StateTable::from_print(format.print());
    Some(Plan::Switch(Box::new(Switch {
        prev_comm: txt("prev_comm")?,
        prev: num("prev_pid")?,
        prev_prio: num("prev_prio"),
        prev_state: num("prev_state")?,
        next_comm: txt("next_comm")?,
        next: num("next_pid")?,
        next_prio: num("next_prio"),
        states: (0..STATES_READY).map(|number| table.decode(number)).collect(),
        table,
    })))
}
