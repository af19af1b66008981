//! Scheduler events: what a kernel tracepoint can say, in 32 bytes.
//!
//! One closed enum for all sources. It is generic over how a task is named, because a reader only knows pids
//! ([`RawEvent`]), and which *incarnation* of a pid is meant can only be decided in time order, by
//! [`Resolver`](crate::Resolver). Everything after that sees `Event<TaskId>`.
//!
//! What this does not do: keep every field of every tracepoint. Fields that no analysis can use are left in the file.

use crate::{CpuId, Pid, StrId, TaskId, Time};

/// Something that the scheduler (or an interrupt around it) did.
///
/// 32 bytes, so that a hundred million events fit in memory; a test holds the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<T = TaskId> {
    /// When, on the trace's clock.
    pub at: Time,
    /// In whose context the event was emitted: the task current on `cpu` (`common_pid`). For a wake-up this is the waker,
    /// which says little where `flags` shows interrupt context.
    pub by: T,
    /// The CPU that emitted the event (of a wake-up: the waker's).
    pub cpu: CpuId,
    /// Interrupt context and resched flags at that moment.
    pub flags: EventFlags,
    /// What happened.
    pub kind: EventKind<T>,
}

/// What happened. Names are the tracepoints' own unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind<T = TaskId> {
    /// `sched_waking`: a wake-up begins, before a CPU is chosen.
    Waking {
        /// The task being woken.
        wakee: T,
        /// The CPU it ran on last. The tracepoint calls this `target_cpu`, but it fires before `select_task_rq`: it is
        /// *not* the placement.
        prev_cpu: CpuId,
        /// The wakee's priority.
        prio: Prio,
    },
    /// `sched_wakeup`: the wakee is queued and runnable.
    Wakeup {
        /// The task woken.
        wakee: T,
        /// The CPU it was placed on.
        cpu: CpuId,
        /// The wakee's priority.
        prio: Prio,
    },
    /// `sched_wakeup_new`: a new task is queued for the first time.
    WakeupNew {
        /// The new task.
        wakee: T,
        /// The CPU it was placed on.
        cpu: CpuId,
        /// The new task's priority.
        prio: Prio,
    },
    /// `sched_switch`: `cpu` stops running `prev` and starts running `next`.
    Switch {
        /// The task switched out.
        prev: T,
        /// The task switched in.
        next: T,
        /// In what state `prev` was left.
        prev_state: TaskState,
        /// Priority of `prev`.
        prev_prio: Prio,
        /// Priority of `next`.
        next_prio: Prio,
    },
    /// `sched_migrate_task`: a task that is not running changes CPU.
    Migrate {
        /// The task moved.
        task: T,
        /// The CPU it leaves.
        orig_cpu: CpuId,
        /// The CPU it goes to.
        dest_cpu: CpuId,
        /// Its priority.
        prio: Prio,
    },
    /// `sched_process_fork`.
    Fork {
        /// The task that forks.
        parent: T,
        /// The new task, not yet runnable.
        child: T,
    },
    /// `sched_process_exit`: the task begins to die; its last switch-out follows.
    Exit {
        /// The dying task.
        task: T,
    },
    /// `sched_process_exec`.
    Exec {
        /// The task that executes a new program.
        task: T,
        /// The program's path, where the source gives one.
        file: Option<StrId>,
    },
    /// `sched_stat_runtime`: the fair class accounts run time to a task.
    StatRuntime {
        /// The task charged.
        task: T,
        /// Nanoseconds charged since the last such event.
        runtime_ns: u64,
    },
    /// `sched_stat_wait`: time a task spent runnable but not running (schedstats kernels).
    StatWait {
        /// The task that waited.
        task: T,
        /// Nanoseconds waited.
        delay_ns: u64,
    },
    /// `sched_stat_sleep`, `sched_stat_iowait` or `sched_stat_blocked` (schedstats kernels).
    StatSleep {
        /// The task that slept.
        task: T,
        /// Nanoseconds slept.
        delay_ns: u64,
    },
    /// `cpu_idle` with a state: the CPU named in the event enters an idle state.
    IdleEnter {
        /// The CPU that goes idle (usually the emitting one).
        cpu: CpuId,
        /// cpuidle's state index.
        state: u32,
    },
    /// `cpu_idle` with state −1: the CPU named in the event leaves idle.
    IdleExit {
        /// The CPU that wakes.
        cpu: CpuId,
    },
    /// `cpu_frequency`.
    Frequency {
        /// The CPU whose frequency changes.
        cpu: CpuId,
        /// New frequency.
        khz: u32,
    },
    /// `ipi_send_cpu` (≥ 6.4) or a single-CPU `ipi_raise`.
    IpiSend {
        /// The CPU interrupted.
        target: CpuId,
        /// Who sends, as `function+offset/size`; `wakeup_preempt+…` marks a remote wake-up preemption.
        callsite: Option<StrId>,
    },
    /// `ipi_send_cpumask` or `ipi_raise` to several CPUs.
    IpiSendMask {
        /// The CPU list as the source prints it.
        mask: Option<StrId>,
        /// Who sends, or the reason.
        callsite: Option<StrId>,
    },
    /// `ipi_entry`, or an x86 `irq_vectors:*_entry`.
    VectorEntry {
        /// The reason or vector name (`reschedule`, `local_timer`, `call_function_single`).
        name: StrId,
    },
    /// The end of [`EventKind::VectorEntry`].
    VectorExit {
        /// As in the entry.
        name: StrId,
    },
    /// `irq_handler_entry`.
    IrqEntry {
        /// Linux' interrupt number.
        irq: u32,
        /// The device's name.
        name: Option<StrId>,
    },
    /// `irq_handler_exit`.
    IrqExit {
        /// Linux' interrupt number.
        irq: u32,
    },
    /// `softirq_raise`.
    SoftirqRaise {
        /// Softirq number (1 TIMER, 3 NET_RX, 4 BLOCK, 7 SCHED, 8 HRTIMER, 9 RCU …).
        vec: u8,
    },
    /// `softirq_entry`.
    SoftirqEntry {
        /// Softirq number.
        vec: u8,
    },
    /// `softirq_exit`.
    SoftirqExit {
        /// Softirq number.
        vec: u8,
    },
    /// `hrtimer_expire_entry`, or `timer_expire_entry`.
    TimerExpire {
        /// The callback; `tick_nohz_handler`, `tick_sched_timer` or `tick_nohz_highres_handler` is the scheduler's tick.
        function: StrId,
    },
    /// `workqueue_execute_start`.
    WorkStart {
        /// The work function.
        function: StrId,
    },
    /// `workqueue_execute_end`.
    WorkEnd {
        /// The work function, where the source gives one.
        function: Option<StrId>,
    },
    /// A `sched_yield` system call begins (`sys_enter_sched_yield`, or `sys_enter` with that number).
    Yield,
    /// Events of `cpu`'s buffer were lost just before this point.
    Lost {
        /// How many, where the source counts them.
        count: Option<std::num::NonZeroU32>,
    },
    /// An event that ttwu does not interpret.
    Other {
        /// The tracepoint's name.
        name: StrId,
    },
}

/// An event as a reader sees it: tasks are pids, and the task names printed in the event ride along so that renames are
/// noticed in time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent {
    /// The event.
    pub event: Event<Pid>,
    /// Names the event gives to its tasks, in the order of [`EventKind::tasks`]: `Switch` has prev and next, `Fork` parent
    /// and child, the others one.
    pub names: [Option<StrId>; 2],
}

impl<T: Copy> Event<T> {
    /// The same event with each task renamed by `rename`.
    pub fn map_tasks<U>(self, mut rename: impl FnMut(T) -> U) -> Event<U> {
        let by = rename(self.by);
        Event { at: self.at, by, cpu: self.cpu, flags: self.flags, kind: self.kind.map_tasks(rename) }
    }
}

impl<T: Copy> EventKind<T> {
    /// The tasks that the event is about (not the one in whose context it was emitted): `[prev, next]`,
    /// `[parent, child]`, or one.
    pub fn tasks(&self) -> [Option<T>; 2] {
        match *self {
            Self::Waking { wakee, .. } | Self::Wakeup { wakee, .. } | Self::WakeupNew { wakee, .. } => {
                [Some(wakee), None]
            }
            Self::Switch { prev, next, .. } => [Some(prev), Some(next)],
            Self::Fork { parent, child } => [Some(parent), Some(child)],
            Self::Migrate { task, .. }
            | Self::Exit { task }
            | Self::Exec { task, .. }
            | Self::StatRuntime { task, .. }
            | Self::StatWait { task, .. }
            | Self::StatSleep { task, .. } => [Some(task), None],
            Self::IdleEnter { .. }
            | Self::IdleExit { .. }
            | Self::Frequency { .. }
            | Self::IpiSend { .. }
            | Self::IpiSendMask { .. }
            | Self::VectorEntry { .. }
            | Self::VectorExit { .. }
            | Self::IrqEntry { .. }
            | Self::IrqExit { .. }
            | Self::SoftirqRaise { .. }
            | Self::SoftirqEntry { .. }
            | Self::SoftirqExit { .. }
            | Self::TimerExpire { .. }
            | Self::WorkStart { .. }
            | Self::WorkEnd { .. }
            | Self::Yield
            | Self::Lost { .. }
            | Self::Other { .. } => [None, None],
        }
    }

    /// The same kind with each task renamed by `rename`, called in the order of [`EventKind::tasks`].
    pub fn map_tasks<U>(self, mut rename: impl FnMut(T) -> U) -> EventKind<U> {
        match self {
            Self::Waking { wakee, prev_cpu, prio } => {
                EventKind::Waking { wakee: rename(wakee), prev_cpu, prio }
            }
            Self::Wakeup { wakee, cpu, prio } => EventKind::Wakeup { wakee: rename(wakee), cpu, prio },
            Self::WakeupNew { wakee, cpu, prio } => EventKind::WakeupNew { wakee: rename(wakee), cpu, prio },
            Self::Switch { prev, next, prev_state, prev_prio, next_prio } => {
                let prev = rename(prev);
                EventKind::Switch { prev, next: rename(next), prev_state, prev_prio, next_prio }
            }
            Self::Migrate { task, orig_cpu, dest_cpu, prio } => {
                EventKind::Migrate { task: rename(task), orig_cpu, dest_cpu, prio }
            }
            Self::Fork { parent, child } => {
                let parent = rename(parent);
                EventKind::Fork { parent, child: rename(child) }
            }
            Self::Exit { task } => EventKind::Exit { task: rename(task) },
            Self::Exec { task, file } => EventKind::Exec { task: rename(task), file },
            Self::StatRuntime { task, runtime_ns } => {
                EventKind::StatRuntime { task: rename(task), runtime_ns }
            }
            Self::StatWait { task, delay_ns } => EventKind::StatWait { task: rename(task), delay_ns },
            Self::StatSleep { task, delay_ns } => EventKind::StatSleep { task: rename(task), delay_ns },
            Self::IdleEnter { cpu, state } => EventKind::IdleEnter { cpu, state },
            Self::IdleExit { cpu } => EventKind::IdleExit { cpu },
            Self::Frequency { cpu, khz } => EventKind::Frequency { cpu, khz },
            Self::IpiSend { target, callsite } => EventKind::IpiSend { target, callsite },
            Self::IpiSendMask { mask, callsite } => EventKind::IpiSendMask { mask, callsite },
            Self::VectorEntry { name } => EventKind::VectorEntry { name },
            Self::VectorExit { name } => EventKind::VectorExit { name },
            Self::IrqEntry { irq, name } => EventKind::IrqEntry { irq, name },
            Self::IrqExit { irq } => EventKind::IrqExit { irq },
            Self::SoftirqRaise { vec } => EventKind::SoftirqRaise { vec },
            Self::SoftirqEntry { vec } => EventKind::SoftirqEntry { vec },
            Self::SoftirqExit { vec } => EventKind::SoftirqExit { vec },
            Self::TimerExpire { function } => EventKind::TimerExpire { function },
            Self::WorkStart { function } => EventKind::WorkStart { function },
            Self::WorkEnd { function } => EventKind::WorkEnd { function },
            Self::Yield => EventKind::Yield,
            Self::Lost { count } => EventKind::Lost { count },
            Self::Other { name } => EventKind::Other { name },
        }
    }

    /// Tracepoint names by [`EventKind::ordinal`]; [`EventKind::Other`] has none here, it carries its own.
    pub const TRACEPOINTS: [Option<&'static str>; 28] = [
        Some("sched_waking"),
        Some("sched_wakeup"),
        Some("sched_wakeup_new"),
        Some("sched_switch"),
        Some("sched_migrate_task"),
        Some("sched_process_fork"),
        Some("sched_process_exit"),
        Some("sched_process_exec"),
        Some("sched_stat_runtime"),
        Some("sched_stat_wait"),
        Some("sched_stat_sleep"),
        Some("cpu_idle"),
        Some("cpu_frequency"),
        Some("ipi_send_cpu"),
        Some("ipi_send_cpumask"),
        Some("ipi_entry"),
        Some("ipi_exit"),
        Some("irq_handler_entry"),
        Some("irq_handler_exit"),
        Some("softirq_raise"),
        Some("softirq_entry"),
        Some("softirq_exit"),
        Some("hrtimer_expire_entry"),
        Some("workqueue_execute_start"),
        Some("workqueue_execute_end"),
        Some("sys_enter_sched_yield"),
        Some("lost"),
        None,
    ];

    /// The same kind with each string renamed by `rename`, for events that go from one trace's strings to another's.
    pub fn map_strings(self, mut rename: impl FnMut(StrId) -> StrId) -> Self {
        match self {
            Self::Exec { task, file } => Self::Exec { task, file: file.map(rename) },
            Self::IpiSend { target, callsite } => Self::IpiSend { target, callsite: callsite.map(rename) },
            Self::IpiSendMask { mask, callsite } => {
                let mask = mask.map(&mut rename);
                Self::IpiSendMask { mask, callsite: callsite.map(rename) }
            }
            Self::VectorEntry { name } => Self::VectorEntry { name: rename(name) },
            Self::VectorExit { name } => Self::VectorExit { name: rename(name) },
            Self::IrqEntry { irq, name } => Self::IrqEntry { irq, name: name.map(rename) },
            Self::TimerExpire { function } => Self::TimerExpire { function: rename(function) },
            Self::WorkStart { function } => Self::WorkStart { function: rename(function) },
            Self::WorkEnd { function } => Self::WorkEnd { function: function.map(rename) },
            Self::Other { name } => Self::Other { name: rename(name) },
            Self::Waking { .. }
            | Self::Wakeup { .. }
            | Self::WakeupNew { .. }
            | Self::Switch { .. }
            | Self::Migrate { .. }
            | Self::Fork { .. }
            | Self::Exit { .. }
            | Self::StatRuntime { .. }
            | Self::StatWait { .. }
            | Self::StatSleep { .. }
            | Self::IdleEnter { .. }
            | Self::IdleExit { .. }
            | Self::Frequency { .. }
            | Self::IrqExit { .. }
            | Self::SoftirqRaise { .. }
            | Self::SoftirqEntry { .. }
            | Self::SoftirqExit { .. }
            | Self::Yield
            | Self::Lost { .. } => self,
        }
    }

    /// The tracepoint's name, for counts and messages; `None` for [`EventKind::Other`], which carries its own.
    pub const fn tracepoint(&self) -> Option<&'static str> {
        Self::TRACEPOINTS[self.ordinal()]
    }

    /// A dense number of the tracepoint, so that events can be counted in an array: a map lookup by name costs more than
    /// everything else that is done to an event.
    pub const fn ordinal(&self) -> usize {
        match self {
            Self::Waking { .. } => 0,
            Self::Wakeup { .. } => 1,
            Self::WakeupNew { .. } => 2,
            Self::Switch { .. } => 3,
            Self::Migrate { .. } => 4,
            Self::Fork { .. } => 5,
            Self::Exit { .. } => 6,
            Self::Exec { .. } => 7,
            Self::StatRuntime { .. } => 8,
            Self::StatWait { .. } => 9,
            Self::StatSleep { .. } => 10,
            Self::IdleEnter { .. } | Self::IdleExit { .. } => 11,
            Self::Frequency { .. } => 12,
            Self::IpiSend { .. } => 13,
            Self::IpiSendMask { .. } => 14,
            Self::VectorEntry { .. } => 15,
            Self::VectorExit { .. } => 16,
            Self::IrqEntry { .. } => 17,
            Self::IrqExit { .. } => 18,
            Self::SoftirqRaise { .. } => 19,
            Self::SoftirqEntry { .. } => 20,
            Self::SoftirqExit { .. } => 21,
            Self::TimerExpire { .. } => 22,
            Self::WorkStart { .. } => 23,
            Self::WorkEnd { .. } => 24,
            Self::Yield => 25,
            Self::Lost { .. } => 26,
            Self::Other { .. } => 27,
        }
    }
}

/// In which context the kernel was when it emitted an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    /// Process context: the task itself did it.
    Task,
    /// A softirq, on top of whatever task was running.
    Softirq,
    /// A hardware interrupt.
    Hardirq,
    /// A non-maskable interrupt.
    Nmi,
    /// The source does not say.
    Unknown,
}

/// `common_flags` in mainline's meaning, or "not known".
///
/// Bits (v5.x–v7.x): 0x01 interrupts off, 0x02 NEED_RESCHED_LAZY (older kernels: interrupt flag not supported), 0x04
/// NEED_RESCHED, 0x08 hardirq, 0x10 softirq, 0x20 PREEMPT_RESCHED, 0x40 NMI, 0x80 bottom halves off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EventFlags(u16);

impl EventFlags {
    /// The source does not carry flags.
    pub const UNKNOWN: Self = Self(0);
    const KNOWN: u16 = 1 << 8;

    /// Flags from a `common_flags` byte.
    #[must_use]
    pub const fn from_common_flags(byte: u8) -> Self {
        Self(byte as u16 | Self::KNOWN)
    }

    /// The `common_flags` byte, where known.
    #[must_use]
    pub const fn common_flags(self) -> Option<u8> {
        if self.0 & Self::KNOWN == 0 { None } else { Some((self.0 & 0xff) as u8) }
    }

    /// The context that the flags show.
    #[must_use]
    pub const fn context(self) -> Context {
        match self.common_flags() {
            None => Context::Unknown,
            Some(flags) if flags & 0x40 != 0 => Context::Nmi,
            Some(flags) if flags & 0x08 != 0 => Context::Hardirq,
            Some(flags) if flags & 0x10 != 0 => Context::Softirq,
            Some(_) => Context::Task,
        }
    }

    /// Was a reschedule of the running task already requested (`NEED_RESCHED`, eager or lazy)? `None` where not known.
    #[must_use]
    pub const fn need_resched(self) -> Option<bool> {
        match self.common_flags() {
            None => None,
            Some(flags) => Some(flags & 0x06 != 0),
        }
    }
}

/// A task's kernel priority: −1 deadline, 0–99 real time, 100–139 fair (nice −20 … 19), 140 idle task; or not known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prio(u8);

impl Prio {
    /// The source does not give a priority.
    pub const UNKNOWN: Self = Self(u8::MAX);

    /// A priority as tracepoints print it; anything outside −1..=140 becomes [`Prio::UNKNOWN`].
    #[must_use]
    pub const fn new(prio: i32) -> Self {
        if prio >= -1 && prio <= 140 { Self((prio + 1) as u8) } else { Self::UNKNOWN }
    }

    /// The priority as tracepoints print it.
    #[must_use]
    pub const fn get(self) -> Option<i32> {
        if self.0 == u8::MAX { None } else { Some(self.0 as i32 - 1) }
    }

    /// The nice value of a fair task.
    #[must_use]
    pub const fn nice(self) -> Option<i32> {
        match self.get() {
            Some(prio) if prio >= 100 && prio < 140 => Some(prio - 120),
            Some(_) | None => None,
        }
    }
}

impl std::fmt::Debug for Prio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(prio) => write!(f, "prio{prio}"),
            None => f.write_str("prio?"),
        }
    }
}

/// The letter under which a task state is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateLetter {
    /// `R`: runnable; it lost the CPU without going to sleep.
    Running,
    /// `S`: interruptible sleep.
    Sleeping,
    /// `D`: uninterruptible sleep.
    DiskSleep,
    /// `T`: stopped.
    Stopped,
    /// `t`: traced.
    Traced,
    /// `X`: dead; also `x`, under which kernels before 4.14 show a task's last switch-out.
    Dead,
    /// `Z`: zombie.
    Zombie,
    /// `P`: parked.
    Parked,
    /// `I`: idle kernel thread (uninterruptible, not counted as load).
    Idle,
    /// Any other bit or letter (`K`, `W`, `N` of old kernels).
    Other,
    /// The source lost the letter.
    Unknown,
}

impl StateLetter {
    /// The state that the kernel prints as `letter`.
    #[must_use]
    pub const fn from_letter(letter: char) -> Self {
        match letter {
            'R' => Self::Running,
            'S' => Self::Sleeping,
            'D' => Self::DiskSleep,
            'T' => Self::Stopped,
            't' => Self::Traced,
            'X' | 'x' => Self::Dead,
            'Z' => Self::Zombie,
            'P' => Self::Parked,
            'I' => Self::Idle,
            '?' => Self::Unknown,
            _ => Self::Other,
        }
    }
}

/// The state in which `sched_switch` left the previous task.
///
/// `preempted` is the `+` of `R+`: the switch was a preemption *inside* the kernel. A user task preempted on its way back
/// to user mode shows plain `R`, so `R` without `+` does not mean "it yielded".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskState(u8);

impl TaskState {
    const LETTER: u8 = 0x0f;
    const PREEMPTED: u8 = 0x80;
    const PREEMPTED_UNKNOWN: u8 = 0x40;
    const TABLE: [StateLetter; 11] = [
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

    /// A state; `preempted` is `None` where the source drops the `+` (libtraceevent's plugin text).
    #[must_use]
    pub const fn new(letter: StateLetter, preempted: Option<bool>) -> Self {
        let mark = match preempted {
            None => Self::PREEMPTED_UNKNOWN,
            Some(true) => Self::PREEMPTED,
            Some(false) => 0,
        };
        Self(letter as u8 | mark)
    }

    /// The letter.
    #[must_use]
    pub const fn letter(self) -> StateLetter {
        Self::TABLE[(self.0 & Self::LETTER) as usize]
    }

    /// Preempted inside the kernel; `None` where the source does not say.
    #[must_use]
    pub const fn preempted(self) -> Option<bool> {
        if self.0 & Self::PREEMPTED_UNKNOWN != 0 { None } else { Some(self.0 & Self::PREEMPTED != 0) }
    }

    /// Did the task stay runnable (`R` or `R+`)?
    #[must_use]
    pub const fn is_runnable(self) -> bool {
        matches!(self.letter(), StateLetter::Running)
    }

    /// Is the task gone for good (`X` or `Z`)?
    #[must_use]
    pub const fn is_dead(self) -> bool {
        matches!(self.letter(), StateLetter::Dead | StateLetter::Zombie)
    }
}

impl std::fmt::Display for TaskState {
    /// The kernel's letter, with `+` for a preemption.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letter = match self.letter() {
            StateLetter::Running => 'R',
            StateLetter::Sleeping => 'S',
            StateLetter::DiskSleep => 'D',
            StateLetter::Stopped => 'T',
            StateLetter::Traced => 't',
            StateLetter::Dead => 'X',
            StateLetter::Zombie => 'Z',
            StateLetter::Parked => 'P',
            StateLetter::Idle => 'I',
            StateLetter::Other => 'O',
            StateLetter::Unknown => '?',
        };
        write!(f, "{letter}{}", if self.preempted() == Some(true) { "+" } else { "" })
    }
}

impl std::fmt::Debug for TaskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_stay_small() {
        assert_eq!(size_of::<Event>(), 32);
        assert_eq!(size_of::<RawEvent>(), 40);
    }

    #[test]
    fn ordinals_name_their_tracepoints() {
        let cpu = CpuId::new(0);
        let name = |kind: EventKind| kind.tracepoint();
        assert_eq!(name(EventKind::IdleExit { cpu }), Some("cpu_idle"));
        assert_eq!(name(EventKind::Frequency { cpu, khz: 1 }), Some("cpu_frequency"));
        assert_eq!(
            name(EventKind::Migrate {
                task: TaskId::IDLE,
                orig_cpu: cpu,
                dest_cpu: cpu,
                prio: Prio::UNKNOWN
            }),
            Some("sched_migrate_task")
        );
        assert_eq!(name(EventKind::WorkEnd { function: None }), Some("workqueue_execute_end"));
        assert_eq!(name(EventKind::Yield), Some("sys_enter_sched_yield"));
        assert_eq!(name(EventKind::Lost { count: None }), Some("lost"));
    }

    #[test]
    fn states_keep_letter_and_preemption() {
        for letter in TaskState::TABLE {
            for preempted in [None, Some(false), Some(true)] {
                let state = TaskState::new(letter, preempted);
                assert_eq!((state.letter(), state.preempted()), (letter, preempted));
            }
        }
        assert_eq!(TaskState::new(StateLetter::Running, Some(true)).to_string(), "R+");
    }

    #[test]
    fn prio_covers_all_classes() {
        for prio in -1..=140 {
            assert_eq!(Prio::new(prio).get(), Some(prio));
        }
        assert_eq!(Prio::new(141), Prio::UNKNOWN);
        assert_eq!(
            (Prio::new(100).nice(), Prio::new(139).nice(), Prio::new(99).nice()),
            (Some(-20), Some(19), None)
        );
    }

    #[test]
    fn context_is_the_innermost_one() {
        let context = |byte| EventFlags::from_common_flags(byte).context();
        assert_eq!(context(0x19), Context::Hardirq);
        assert_eq!(context(0x11), Context::Softirq);
        assert_eq!(context(0x81), Context::Task);
        assert_eq!(EventFlags::UNKNOWN.context(), Context::Unknown);
        assert_eq!(EventFlags::from_common_flags(0x02).need_resched(), Some(true));
    }
}
