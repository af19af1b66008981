//! Events as columns, and the predictions that make most of a column zeros.
//!
//! Scheduler events repeat each other: who is switched out is who was switched in, a wake-up is about the task of the
//! waking just before, a task was last on the CPU where it last was. So a value is stored as 0 when it is what
//! [`Seen`] predicts, and as value + 1 otherwise; runs of zeros vanish in compression. Writer and reader feed the same
//! [`Seen`] with the same events, starting afresh in every block, which is what lets a block stand for itself.
//!
//! Tasks and strings are numbered in the order in which a block first mentions them; the block lists which they are.
//! Small numbers, and the tables of [`Seen`] have no more rows than the block has tasks.

mod decode;
mod encode;

pub(in crate::ttwu) use decode::{Decoder, Names};
pub(in crate::ttwu) use encode::Encoder;

use ttwu_model::{EventFlags, EventKind, Prio, StateLetter, TaskState};

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
