//! Events as columns, and the predictions that make most of a column zeros.
//!
//! Scheduler events repeat each other: who is switched out is who was switched in, a wake-up is about the task of the
//! waking just before, a task was last on the CPU where it last was. So a value is stored as 0 when it is what
//! [`Seen`] predicts, and as value + 1 otherwise; runs of zeros vanish in compression. Writer and reader feed the same
//! [`Seen`] with the same events, starting afresh in every block, which is what lets a block stand for itself.
//!
//! Tasks and strings are numbered in the order in which a block first mentions them; the block lists which they are.
//! Small numbers, and the tables of [`Seen`] have no more rows than the block has tasks.

use super::wire::{Bytes, put};
use ttwu_model::{CpuId, Event, EventFlags, EventKind, Prio, StateLetter, StrId, TaskId, TaskState, Time};

/// Events of one block; also the bound that a reader holds a block to.
pub(super) const EVENTS_MAX: usize = 1 << 16;

/// The columns in the order of the file.
const COLUMNS: usize = 12;

/// The token's bits: event kind, and what came out as predicted.
const TOKEN_KIND: u8 = 0x1f;
const TOKEN_SAME_CPU: u8 = 0x20;
const TOKEN_BY_CURRENT: u8 = 0x40;
const TOKEN_SAME_FLAGS: u8 = 0x80;

/// Index of a task in its block; 0 is the idle task.
type Local = u32;

/// What the events of a block so far lead one to expect.
#[derive(Default)]
pub(super) struct Seen {
    cpus: Vec<SeenCpu>,
    tasks: Vec<SeenTask>,
    /// Last flags by event kind.
    flags: [u16; 32],
    cpu: u16,
}

#[derive(Clone, Copy, Default)]
struct SeenCpu {
    current: Local,
    /// The last task woken from here.
    woken: Local,
    /// The last task forked here.
    forked: Local,
    /// A task that was placed here and has not run yet.
    pending: Local,
    ipi_target: u16,
}

#[derive(Clone, Copy, Default)]
struct SeenTask {
    cpu: u16,
    prio: u8,
    woke: Local,
}

impl Seen {
    fn clear(&mut self) {
        self.cpus.clear();
        self.tasks.clear();
        self.flags = [0; 32];
        self.cpu = 0;
    }

    #[inline]
    fn cpu(&mut self, cpu: u16) -> &mut SeenCpu {
        let index = usize::from(cpu);
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, SeenCpu::default());
        }
        &mut self.cpus[index]
    }

    #[inline]
    fn task(&mut self, task: Local) -> &mut SeenTask {
        let index = task as usize;
        if index >= self.tasks.len() {
            self.tasks.resize(index + 1, SeenTask::default());
        }
        &mut self.tasks[index]
    }

    #[inline]
    fn waking(&mut self, from: u16, by: Local, wakee: Local, prev_cpu: u16, prio: u8) {
        *self.task(wakee) = SeenTask { cpu: prev_cpu, prio, woke: self.task(wakee).woke };
        self.task(by).woke = wakee;
        self.cpu(from).woken = wakee;
        self.cpu(prev_cpu).pending = wakee;
    }

    #[inline]
    fn placed(&mut self, wakee: Local, cpu: u16, prio: u8) {
        let task = self.task(wakee);
        (task.cpu, task.prio) = (cpu, prio);
        self.cpu(cpu).pending = wakee;
    }

    #[inline]
    fn switch(&mut self, cpu: u16, next: Local, prev: (Local, u8), next_prio: u8) {
        self.task(prev.0).prio = prev.1;
        let task = self.task(next);
        (task.cpu, task.prio) = (cpu, next_prio);
        let cpu = self.cpu(cpu);
        cpu.current = next;
        if cpu.pending == next {
            cpu.pending = 0;
        }
    }
}

/// A priority as a column stores it: 0 unknown, else priority + 2.
fn prio_code(prio: Prio) -> u8 {
    prio.get().map_or(0, |prio| u8::try_from(prio + 2).expect("-1..=140"))
}

fn prio_of(code: u8) -> Prio {
    if code == 0 { Prio::UNKNOWN } else { Prio::new(i32::from(code) - 2) }
}

const LETTERS: [StateLetter; 11] = [
    StateLetter::Running,
    StateLetter::Sleeping,
    StateLetter::DiskSleep,
    StateLetter::Stopped,
    StateLetter::Traced,
    StateLetter::Dead,
    StateLetter::Zombie,
    StateLetter::Parked,
    StateLetter::Idle,
    StateLetter::Other,
    StateLetter::Unknown,
];

fn state_code(state: TaskState) -> u8 {
    let letter = LETTERS.iter().position(|&letter| letter == state.letter()).expect("all letters are listed");
    let preempted = match state.preempted() {
        Some(false) => 0,
        Some(true) => 1,
        None => 2,
    };
    letter as u8 | preempted << 4
}

fn state_of(code: u8) -> Option<TaskState> {
    let preempted = match code >> 4 {
        0 => Some(false),
        1 => Some(true),
        2 => None,
        _ => return None,
    };
    Some(TaskState::new(*LETTERS.get(usize::from(code & 0xf))?, preempted))
}

fn flags_code(flags: EventFlags) -> u16 {
    flags.common_flags().map_or(0, |byte| 1 + u16::from(byte))
}

fn flags_of(code: u16) -> EventFlags {
    match code.checked_sub(1).map(u8::try_from) {
        Some(Ok(byte)) => EventFlags::from_common_flags(byte),
        Some(Err(_)) | None => EventFlags::UNKNOWN,
    }
}

/// Numbers things in the order of first mention, anew for each block.
#[derive(Default)]
struct Locals {
    /// By global index: (block number, local index), so that a new block need not clear it.
    known: Vec<(u32, Local)>,
    block: u32,
    /// Global index by local one.
    list: Vec<u32>,
}

impl Locals {
    fn start(&mut self) {
        self.block += 1;
        self.list.clear();
    }

    #[inline]
    fn local(&mut self, index: usize) -> Local {
        if index >= self.known.len() {
            self.known.resize(index + 1, (0, 0));
        }
        let (block, local) = self.known[index];
        if block == self.block {
            return local;
        }
        let local = self.list.len() as Local;
        self.list.push(u32::try_from(index).expect("ids are 32 bits"));
        self.known[index] = (self.block, local);
        local
    }
}

/// The columns being filled.
#[derive(Default)]
struct Out {
    token: Vec<u8>,
    time: Vec<u8>,
    cpu: Vec<u8>,
    by: Vec<u8>,
    flags: Vec<u8>,
    task: Vec<u8>,
    other_task: Vec<u8>,
    cpu_arg: Vec<u8>,
    prio: Vec<u8>,
    state: Vec<u8>,
    string: Vec<u8>,
    number: Vec<u8>,
}

impl Out {
    fn all(&mut self) -> [&mut Vec<u8>; COLUMNS] {
        let Self { token, time, cpu, by, flags, task, other_task, cpu_arg, prio, state, string, number } =
            self;
        [token, time, cpu, by, flags, task, other_task, cpu_arg, prio, state, string, number]
    }
}

/// `value` against its prediction.
#[inline]
fn put_predicted(column: &mut Vec<u8>, value: u32, predicted: u32) {
    put(column, if value == predicted { 0 } else { u64::from(value) + 1 });
}

/// Turns events into a block's columns; its tables are kept from block to block.
#[derive(Default)]
pub(super) struct Encoder {
    seen: Seen,
    tasks: Locals,
    strings: Locals,
    out: Out,
}

impl Encoder {
    /// Appends `events` (at most [`EVENTS_MAX`], in time order) to `raw`.
    pub(super) fn encode(&mut self, events: &[Event], raw: &mut Vec<u8>) {
        assert!(events.len() <= EVENTS_MAX, "the writer cuts blocks");
        self.seen.clear();
        self.tasks.start();
        self.tasks.local(TaskId::IDLE.index());
        self.strings.start();
        self.out.all().into_iter().for_each(Vec::clear);
        let base = events.first().map_or(Time::ZERO, |event| event.at);
        let mut last = base.as_ns();
        for event in events {
            put(&mut self.out.time, event.at.as_ns() - last);
            last = event.at.as_ns();
            self.encode_one(event);
        }
        put(raw, events.len() as u64);
        put(raw, base.as_ns());
        for list in [&self.tasks.list[1..], &self.strings.list] {
            put(raw, list.len() as u64);
            for &index in list {
                put(raw, u64::from(index));
            }
        }
        for column in self.out.all() {
            put(raw, column.len() as u64);
            raw.extend_from_slice(column);
        }
    }

    fn encode_one(&mut self, event: &Event) {
        let cpu = event.cpu.number();
        let tasks = &mut self.tasks;
        let local = event.map_tasks(|task| tasks.local(task.index()));
        let tag = tag(&local.kind);
        let mut token = tag;
        if cpu == self.seen.cpu {
            token |= TOKEN_SAME_CPU;
        } else {
            put(&mut self.out.cpu, u64::from(cpu));
            self.seen.cpu = cpu;
        }
        if local.by == self.seen.cpu(cpu).current {
            token |= TOKEN_BY_CURRENT;
        } else {
            put(&mut self.out.by, u64::from(local.by));
        }
        let flags = flags_code(event.flags);
        if flags == self.seen.flags[usize::from(tag)] {
            token |= TOKEN_SAME_FLAGS;
        } else {
            put(&mut self.out.flags, u64::from(flags));
            self.seen.flags[usize::from(tag)] = flags;
        }
        self.out.token.push(token);
        self.encode_kind(cpu, local.by, &local.kind);
    }

    fn encode_kind(&mut self, at_cpu: u16, by: Local, kind: &EventKind<Local>) {
        let Self { seen, out, .. } = self;
        let here = *seen.cpu(at_cpu);
        match *kind {
            EventKind::Waking { wakee, prev_cpu, prio } => {
                let prio = prio_code(prio);
                put_predicted(&mut out.task, wakee, seen.task(by).woke);
                let known = *seen.task(wakee);
                put_predicted(&mut out.cpu_arg, prev_cpu.number().into(), known.cpu.into());
                put_predicted(&mut out.prio, prio.into(), known.prio.into());
                seen.waking(at_cpu, by, wakee, prev_cpu.number(), prio);
            }
            EventKind::Wakeup { wakee, cpu, prio } | EventKind::WakeupNew { wakee, cpu, prio } => {
                let prio = prio_code(prio);
                let new = matches!(kind, EventKind::WakeupNew { .. });
                put_predicted(&mut out.task, wakee, if new { here.forked } else { here.woken });
                let known = *seen.task(wakee);
                put_predicted(&mut out.cpu_arg, cpu.number().into(), known.cpu.into());
                put_predicted(&mut out.prio, prio.into(), known.prio.into());
                seen.placed(wakee, cpu.number(), prio);
            }
            EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } => {
                let (prev_prio, next_prio) = (prio_code(prev_prio), prio_code(next_prio));
                put_predicted(&mut out.task, prev, here.current);
                put_predicted(&mut out.other_task, next, here.pending);
                out.state.push(state_code(prev_state));
                put_predicted(&mut out.prio, prev_prio.into(), seen.task(prev).prio.into());
                put_predicted(&mut out.prio, next_prio.into(), seen.task(next).prio.into());
                seen.switch(at_cpu, next, (prev, prev_prio), next_prio);
            }
            EventKind::Migrate { task, orig_cpu, dest_cpu, prio } => {
                let prio = prio_code(prio);
                put_predicted(&mut out.task, task, here.woken);
                let known = *seen.task(task);
                put_predicted(&mut out.cpu_arg, orig_cpu.number().into(), known.cpu.into());
                put_predicted(&mut out.cpu_arg, dest_cpu.number().into(), at_cpu.into());
                put_predicted(&mut out.prio, prio.into(), known.prio.into());
                seen.placed(task, dest_cpu.number(), prio);
            }
            EventKind::Fork { parent, child } => {
                put_predicted(&mut out.task, parent, here.current);
                put_predicted(&mut out.other_task, child, 0);
                seen.cpu(at_cpu).forked = child;
            }
            EventKind::Exit { task } => put_predicted(&mut out.task, task, here.current),
            EventKind::Exec { task, file } => {
                put_predicted(&mut out.task, task, here.current);
                self.put_string(file);
            }
            EventKind::StatRuntime { task, runtime_ns } => {
                put_predicted(&mut out.task, task, here.current);
                put(&mut out.number, runtime_ns);
            }
            EventKind::StatWait { task, delay_ns } | EventKind::StatSleep { task, delay_ns } => {
                put_predicted(&mut out.task, task, here.woken);
                put(&mut out.number, delay_ns);
            }
            EventKind::IdleEnter { cpu, state } => self.put_cpu_and_number(at_cpu, cpu, state),
            EventKind::IdleExit { cpu } => {
                put_predicted(&mut out.cpu_arg, cpu.number().into(), at_cpu.into());
            }
            EventKind::Frequency { cpu, khz } => self.put_cpu_and_number(at_cpu, cpu, khz),
            EventKind::IpiSend { target, callsite } => {
                put_predicted(&mut out.cpu_arg, target.number().into(), here.ipi_target.into());
                seen.cpu(at_cpu).ipi_target = target.number();
                self.put_string(callsite);
            }
            EventKind::IpiSendMask { mask, callsite } => {
                self.put_string(mask);
                self.put_string(callsite);
            }
            EventKind::VectorEntry { name } | EventKind::VectorExit { name } | EventKind::Other { name } => {
                self.put_string(Some(name));
            }
            EventKind::IrqEntry { irq, name } => {
                put(&mut out.number, irq.into());
                self.put_string(name);
            }
            EventKind::IrqExit { irq } => put(&mut out.number, irq.into()),
            EventKind::SoftirqRaise { vec }
            | EventKind::SoftirqEntry { vec }
            | EventKind::SoftirqExit { vec } => put(&mut out.number, vec.into()),
            EventKind::TimerExpire { function } | EventKind::WorkStart { function } => {
                self.put_string(Some(function));
            }
            EventKind::WorkEnd { function } => self.put_string(function),
            EventKind::Yield => {}
            EventKind::Lost { count } => put(&mut out.number, count.map_or(0, |count| count.get().into())),
        }
    }

    fn put_cpu_and_number(&mut self, at_cpu: u16, cpu: CpuId, number: u32) {
        put_predicted(&mut self.out.cpu_arg, cpu.number().into(), at_cpu.into());
        put(&mut self.out.number, number.into());
    }

    fn put_string(&mut self, string: Option<StrId>) {
        let code = string.map_or(0, |string| 1 + self.strings.local(string.index()));
        put(&mut self.out.string, code.into());
    }
}

/// The number of an event kind in the file. A new kind is a new major version: an old reader could not know which columns
/// it takes from.
fn tag<T>(kind: &EventKind<T>) -> u8 {
    match kind {
        EventKind::Waking { .. } => 0,
        EventKind::Wakeup { .. } => 1,
        EventKind::WakeupNew { .. } => 2,
        EventKind::Switch { .. } => 3,
        EventKind::Migrate { .. } => 4,
        EventKind::Fork { .. } => 5,
        EventKind::Exit { .. } => 6,
        EventKind::Exec { .. } => 7,
        EventKind::StatRuntime { .. } => 8,
        EventKind::StatWait { .. } => 9,
        EventKind::StatSleep { .. } => 10,
        EventKind::IdleEnter { .. } => 11,
        EventKind::IdleExit { .. } => 12,
        EventKind::Frequency { .. } => 13,
        EventKind::IpiSend { .. } => 14,
        EventKind::IpiSendMask { .. } => 15,
        EventKind::VectorEntry { .. } => 16,
        EventKind::VectorExit { .. } => 17,
        EventKind::IrqEntry { .. } => 18,
        EventKind::IrqExit { .. } => 19,
        EventKind::SoftirqRaise { .. } => 20,
        EventKind::SoftirqEntry { .. } => 21,
        EventKind::SoftirqExit { .. } => 22,
        EventKind::TimerExpire { .. } => 23,
        EventKind::WorkStart { .. } => 24,
        EventKind::WorkEnd { .. } => 25,
        EventKind::Yield => 26,
        EventKind::Lost { .. } => 27,
        EventKind::Other { .. } => 28,
    }
}

/// A block's columns being read.
pub(super) struct Decoder<'a, 's> {
    seen: &'s mut Seen,
    tasks: Vec<TaskId>,
    strings: Vec<StrId>,
    at: u64,
    left: usize,
    token: Bytes<'a>,
    time: Bytes<'a>,
    cpu: Bytes<'a>,
    by: Bytes<'a>,
    flags: Bytes<'a>,
    task: Bytes<'a>,
    other_task: Bytes<'a>,
    cpu_arg: Bytes<'a>,
    prio: Bytes<'a>,
    state: Bytes<'a>,
    string: Bytes<'a>,
    number: Bytes<'a>,
    fault: Option<&'static str>,
}

/// Which tasks and strings a block's local numbers stand for.
pub(super) trait Names {
    /// The task with this number in the file.
    fn task(&mut self, number: u32) -> TaskId;
    /// The string with this number in the file.
    fn string(&mut self, number: u32) -> StrId;
}

impl<'a, 's> Decoder<'a, 's> {
    /// Starts on columns that [`Encoder::encode`] made.
    pub(super) fn new(
        raw: &mut Bytes<'a>,
        seen: &'s mut Seen,
        names: &mut dyn Names,
    ) -> Result<Self, &'static str> {
        let left = bounded(raw.get(), EVENTS_MAX)?;
        let at = raw.get();
        let mut tasks = vec![TaskId::IDLE];
        // An event mentions up to three tasks and two strings; a list beyond that is made to eat memory.
        for _ in 0..bounded(raw.get(), 3 * left)? {
            let number = raw.get_u32();
            if !raw.sound() {
                return Err("task list too short");
            }
            tasks.push(names.task(number));
        }
        let mut strings = Vec::new();
        for _ in 0..bounded(raw.get(), 2 * left)? {
            let number = raw.get_u32();
            if !raw.sound() {
                return Err("string list too short");
            }
            strings.push(names.string(number));
        }
        let mut column = || Bytes::new(raw.get_bytes());
        let columns: [Bytes<'a>; COLUMNS] = std::array::from_fn(|_| column());
        let [token, time, cpu, by, flags, task, other_task, cpu_arg, prio, state, string, number] = columns;
        if !raw.sound() {
            return Err("columns too short");
        }
        seen.clear();
        Ok(Self {
            seen,
            tasks,
            strings,
            at,
            left,
            token,
            time,
            cpu,
            by,
            flags,
            task,
            other_task,
            cpu_arg,
            prio,
            state,
            string,
            number,
            fault: None,
        })
    }

    /// The first event's time.
    pub(super) fn base(&self) -> Time {
        Time::from_ns(self.at)
    }

    /// Appends the events to `out`; after a fault, what was appended is not to be trusted.
    pub(super) fn decode(mut self, out: &mut Vec<Event>) -> Result<(), &'static str> {
        out.reserve(self.left);
        for _ in 0..self.left {
            let event = self.decode_one();
            if let Some(fault) = self.fault {
                return Err(fault);
            }
            out.push(event);
        }
        let rest = [
            self.token,
            self.time,
            self.cpu,
            self.by,
            self.flags,
            self.task,
            self.other_task,
            self.cpu_arg,
            self.prio,
            self.state,
            self.string,
            self.number,
        ];
        if rest.iter().all(Bytes::finished) { Ok(()) } else { Err("columns do not end together") }
    }

    #[inline]
    fn decode_one(&mut self) -> Event {
        let token = self.token.byte();
        let delta = self.time.get();
        match self.at.checked_add(delta) {
            Some(at) if self.time.sound() && self.token.sound() => self.at = at,
            Some(_) | None => self.fault = Some("time column ends early or overflows"),
        }
        if token & TOKEN_SAME_CPU == 0 {
            self.seen.cpu = narrow(self.cpu.get(), &mut self.fault);
        }
        let cpu = self.seen.cpu;
        let by = if token & TOKEN_BY_CURRENT != 0 {
            self.seen.cpu(cpu).current
        } else {
            let by = self.by.get();
            self.checked_task(by)
        };
        let tag = token & TOKEN_KIND;
        if token & TOKEN_SAME_FLAGS == 0 {
            self.seen.flags[usize::from(tag)] = narrow(self.flags.get(), &mut self.fault);
        }
        let flags = flags_of(self.seen.flags[usize::from(tag)]);
        let kind = self.decode_kind(tag, cpu, by);
        Event { at: Time::from_ns(self.at), by: self.tasks[by as usize], cpu: CpuId::new(cpu), flags, kind }
    }

    fn decode_kind(&mut self, tag: u8, cpu: u16, by: Local) -> EventKind {
        let here = *self.seen.cpu(cpu);
        match tag {
            0 => {
                let predicted = self.seen.task(by).woke;
                let (wakee, prev_cpu, prio) = self.get_wake(predicted);
                self.seen.waking(cpu, by, wakee, prev_cpu, prio);
                let wakee = self.tasks[wakee as usize];
                EventKind::Waking { wakee, prev_cpu: CpuId::new(prev_cpu), prio: prio_of(prio) }
            }
            1 | 2 => {
                let (wakee, cpu, prio) = self.get_wake(if tag == 1 { here.woken } else { here.forked });
                self.seen.placed(wakee, cpu, prio);
                let (wakee, cpu, prio) = (self.tasks[wakee as usize], CpuId::new(cpu), prio_of(prio));
                if tag == 1 {
                    EventKind::Wakeup { wakee, cpu, prio }
                } else {
                    EventKind::WakeupNew { wakee, cpu, prio }
                }
            }
            3 => self.decode_switch(cpu, here),
            4 => {
                let task = self.get_task(here.woken);
                let known = *self.seen.task(task);
                let orig_cpu = self.get_cpu(known.cpu);
                let dest_cpu = self.get_cpu(cpu);
                let prio = self.get_prio(known.prio);
                self.seen.placed(task, dest_cpu, prio);
                EventKind::Migrate {
                    task: self.tasks[task as usize],
                    orig_cpu: CpuId::new(orig_cpu),
                    dest_cpu: CpuId::new(dest_cpu),
                    prio: prio_of(prio),
                }
            }
            5 => {
                let parent = self.get_task(here.current);
                let code = self.other_task.get();
                let child = self.predicted_task(code, 0);
                self.seen.cpu(cpu).forked = child;
                EventKind::Fork { parent: self.tasks[parent as usize], child: self.tasks[child as usize] }
            }
            6 => EventKind::Exit { task: self.get_global_task(here.current) },
            7 => EventKind::Exec { task: self.get_global_task(here.current), file: self.get_string() },
            8 => EventKind::StatRuntime {
                task: self.get_global_task(here.current),
                runtime_ns: self.get_number(),
            },
            9 => EventKind::StatWait { task: self.get_global_task(here.woken), delay_ns: self.get_number() },
            10 => {
                EventKind::StatSleep { task: self.get_global_task(here.woken), delay_ns: self.get_number() }
            }
            _ => self.decode_other(tag, cpu, here),
        }
    }

    fn decode_switch(&mut self, cpu: u16, here: SeenCpu) -> EventKind {
        let prev = self.get_task(here.current);
        let code = self.other_task.get();
        let next = self.predicted_task(code, here.pending);
        let state = state_of(self.state.byte());
        if state.is_none() || !self.state.sound() || !self.other_task.sound() {
            self.fault = Some("switch columns end early or have an unknown state");
        }
        let predicted = self.seen.task(prev).prio;
        let prev_prio = self.get_prio(predicted);
        let predicted = self.seen.task(next).prio;
        let next_prio = self.get_prio(predicted);
        self.seen.switch(cpu, next, (prev, prev_prio), next_prio);
        EventKind::Switch {
            prev: self.tasks[prev as usize],
            next: self.tasks[next as usize],
            prev_state: state.unwrap_or(TaskState::new(StateLetter::Unknown, None)),
            prev_prio: prio_of(prev_prio),
            next_prio: prio_of(next_prio),
        }
    }

    /// The kinds that name no task.
    fn decode_other(&mut self, tag: u8, cpu: u16, here: SeenCpu) -> EventKind {
        match tag {
            11 => EventKind::IdleEnter { cpu: CpuId::new(self.get_cpu(cpu)), state: self.get_narrow() },
            12 => EventKind::IdleExit { cpu: CpuId::new(self.get_cpu(cpu)) },
            13 => EventKind::Frequency { cpu: CpuId::new(self.get_cpu(cpu)), khz: self.get_narrow() },
            14 => {
                let target = self.get_cpu(here.ipi_target);
                self.seen.cpu(cpu).ipi_target = target;
                EventKind::IpiSend { target: CpuId::new(target), callsite: self.get_string() }
            }
            15 => EventKind::IpiSendMask { mask: self.get_string(), callsite: self.get_string() },
            18 => EventKind::IrqEntry { irq: self.get_narrow(), name: self.get_string() },
            19 => EventKind::IrqExit { irq: self.get_narrow() },
            20 => EventKind::SoftirqRaise { vec: self.get_narrow() },
            21 => EventKind::SoftirqEntry { vec: self.get_narrow() },
            22 => EventKind::SoftirqExit { vec: self.get_narrow() },
            25 => EventKind::WorkEnd { function: self.get_string() },
            26 => EventKind::Yield,
            27 => EventKind::Lost { count: std::num::NonZeroU32::new(self.get_narrow()) },
            16 | 17 | 23 | 24 | 28 => {
                let Some(name) = self.get_string() else {
                    self.fault = Some("an event without its name");
                    return EventKind::Yield;
                };
                match tag {
                    16 => EventKind::VectorEntry { name },
                    17 => EventKind::VectorExit { name },
                    23 => EventKind::TimerExpire { function: name },
                    24 => EventKind::WorkStart { function: name },
                    _ => EventKind::Other { name },
                }
            }
            _ => {
                self.fault = Some("unknown event kind");
                EventKind::Yield
            }
        }
    }

    #[inline]
    fn get_wake(&mut self, predicted: Local) -> (Local, u16, u8) {
        let wakee = self.get_task(predicted);
        let known = *self.seen.task(wakee);
        (wakee, self.get_cpu(known.cpu), self.get_prio(known.prio))
    }

    #[inline]
    fn get_task(&mut self, predicted: Local) -> Local {
        let code = self.task.get();
        if !self.task.sound() {
            self.fault = Some("task column ends early");
        }
        self.predicted_task(code, predicted)
    }

    fn get_global_task(&mut self, predicted: Local) -> TaskId {
        let task = self.get_task(predicted);
        self.tasks[task as usize]
    }

    #[inline]
    fn predicted_task(&mut self, code: u64, predicted: Local) -> Local {
        match code.checked_sub(1) {
            None => predicted,
            Some(task) => self.checked_task(task),
        }
    }

    /// Everything in `Seen` went through here, so that predictions are in range as well.
    #[inline]
    fn checked_task(&mut self, task: u64) -> Local {
        if task < self.tasks.len() as u64 {
            return task as Local;
        }
        self.fault = Some("a task that the block does not list");
        0
    }

    #[inline]
    fn get_cpu(&mut self, predicted: u16) -> u16 {
        match self.cpu_arg.get().checked_sub(1) {
            None if self.cpu_arg.sound() => predicted,
            None => narrow(u64::MAX, &mut self.fault),
            Some(cpu) => narrow(cpu, &mut self.fault),
        }
    }

    #[inline]
    fn get_prio(&mut self, predicted: u8) -> u8 {
        match self.prio.get().checked_sub(1) {
            None if self.prio.sound() => predicted,
            None => narrow(u64::MAX, &mut self.fault),
            Some(prio) => narrow(prio, &mut self.fault),
        }
    }

    fn get_string(&mut self) -> Option<StrId> {
        let code = self.string.get();
        let index = code.checked_sub(1)?;
        let string = usize::try_from(index).ok().and_then(|index| self.strings.get(index)).copied();
        if string.is_none() {
            self.fault = Some("a string that the block does not list");
        }
        string
    }

    fn get_number(&mut self) -> u64 {
        let number = self.number.get();
        if !self.number.sound() {
            self.fault = Some("number column ends early");
        }
        number
    }

    fn get_narrow<T: TryFrom<u64> + Default>(&mut self) -> T {
        let number = self.get_number();
        narrow(number, &mut self.fault)
    }
}

/// `number` as a count of things of which there are at most `max`.
fn bounded(number: u64, max: usize) -> Result<usize, &'static str> {
    usize::try_from(number).ok().filter(|&number| number <= max).ok_or("a count beyond its limit")
}

/// `number` if it fits; a fault otherwise.
#[inline]
fn narrow<T: TryFrom<u64> + Default>(number: u64, fault: &mut Option<&'static str>) -> T {
    T::try_from(number).unwrap_or_else(|_| {
        *fault = Some("a number out of its range, or a column that ends early");
        T::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_flags_and_prios_come_back() {
        for letter in LETTERS {
            for preempted in [None, Some(false), Some(true)] {
                let state = TaskState::new(letter, preempted);
                assert_eq!(state_of(state_code(state)), Some(state));
            }
        }
        assert_eq!((state_of(0x0b), state_of(0x30)), (None, None));
        for prio in (-1..=140).map(Prio::new).chain([Prio::UNKNOWN]) {
            assert_eq!(prio_of(prio_code(prio)), prio);
        }
        for flags in (0..=255).map(EventFlags::from_common_flags).chain([EventFlags::UNKNOWN]) {
            assert_eq!(flags_of(flags_code(flags)), flags);
        }
    }
}
