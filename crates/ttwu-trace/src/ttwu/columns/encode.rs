//! Events into columns.

use super::{
    COLUMNS, EVENTS_MAX, Local, Seen, TOKEN_BY_CURRENT, TOKEN_SAME_CPU, TOKEN_SAME_FLAGS, flags_code,
    prio_code, state_code, tag,
};
use crate::ttwu::wire::put;
use ttwu_model::{CpuId, Event, EventKind, StrId, TaskId, Time};

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
pub(in crate::ttwu) struct Encoder {
    seen: Seen,
    tasks: Locals,
    strings: Locals,
    out: Out,
}

impl Encoder {
    /// Appends `events` (at most [`EVENTS_MAX`], in time order) to `raw`.
    pub(in crate::ttwu) fn encode(&mut self, events: &[Event], raw: &mut Vec<u8>) {
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
