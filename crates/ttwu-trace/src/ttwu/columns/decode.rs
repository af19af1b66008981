//! Columns into events. Nothing in them is believed: a number out of its range or a column that ends early is a fault of
//! the block.

use super::{
    COLUMNS, EVENTS_MAX, Local, Seen, SeenCpu, TOKEN_BY_CURRENT, TOKEN_KIND, TOKEN_SAME_CPU,
    TOKEN_SAME_FLAGS, flags_of, prio_of, state_of,
};
use crate::ttwu::wire::Bytes;
use ttwu_model::{CpuId, Event, EventKind, StateLetter, StrId, TaskId, TaskState, Time};

/// A block's columns being read.
pub(in crate::ttwu) struct Decoder<'a, 's> {
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
pub(in crate::ttwu) trait Names {
    /// The task with this number in the file.
    fn task(&mut self, number: u32) -> TaskId;
    /// The string with this number in the file.
    fn string(&mut self, number: u32) -> StrId;
}

impl<'a, 's> Decoder<'a, 's> {
    /// Starts on columns that [`Encoder::encode`] made.
    pub(in crate::ttwu) fn new(
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
    pub(in crate::ttwu) fn base(&self) -> Time {
        Time::from_ns(self.at)
    }

    /// Appends the events to `out`; after a fault, what was appended is not to be trusted.
    pub(in crate::ttwu) fn decode(mut self, out: &mut Vec<Event>) -> Result<(), &'static str> {
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
