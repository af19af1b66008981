//! Tasks, and what executes a program: a task in its own name, or an interrupt handler.

use ttwu_fair::{EntityId, Flips, TaskAttributes};
use ttwu_model::CpuId;

/// No task; as a CPU's current task, its idle task.
pub(super) const NOBODY: u32 = u32::MAX;

/// What a task wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not started.
    New,
    /// It wants to run.
    Runnable,
    /// It waits, or is about to: it may be on a run queue still.
    Sleeping,
    /// A waker has taken it and not queued it yet.
    Waking,
    /// It has ended.
    Dead,
}

/// In what mode a stretch of work is done, which decides who may interrupt it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// User mode: any reschedule takes effect.
    User,
    /// Kernel mode: only a preemptible kernel reschedules.
    Kernel,
    /// Kernel mode with locks held: interrupts wait.
    Atomic,
}

/// What follows when the present stretch of work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The next step of the program.
    Fetch,
    /// The task leaves its CPU unless somebody woke it meanwhile; `Exec::after` follows.
    Sleep,
    /// The CPU chooses again, then `Exec::after` follows.
    Reschedule,
    WriteCall,
    WriteDone,
    ReadCall,
    ReadDone,
    /// After waking readers: a writer that found the stream full goes to sleep.
    WriteSleep,
    ReadAgain,
    PollCheck,
    FutexWait,
    SemaphoreWait,
    QueueTake,
    MutexTry,
    SpinTry,
    SpinLook,
    Posted,
    CondUnlock,
    SleepTimer,
    SpinUntil,
    Forked,
    JoinCheck,
    Exiting,
    Submitted,
    Queued,
    FlushCheck,
    WorkerLook,
    WorkDone,
    Yielded,
    WakeLock,
    WakeBegin,
    WakePlace,
    WakeRetry,
    WakeEnqueue,
    WakeSent,
    IrqBody,
    IrqSoft,
    IrqOut,
    IrqEnd,
}

/// A wake-up of one or more tasks, under way.
#[derive(Clone, Debug)]
pub(super) struct WakeJob {
    pub(super) list: Vec<u32>,
    pub(super) at: usize,
    /// The wait-queue lock held meanwhile: object · 2 + side, or `NOBODY`.
    pub(super) lock: u32,
    pub(super) sync: bool,
    pub(super) fork: bool,
    /// Runs in softirq on the task's own behalf (loopback).
    pub(super) softirq: bool,
    pub(super) on_list: bool,
    pub(super) selected: bool,
    pub(super) chosen: u16,
    pub(super) began: u64,
    pub(super) decision: u32,
    /// Index of the trace's event that announced it.
    pub(super) event: u64,
    /// What follows.
    pub(super) then: Next,
}

/// What executes a program.
#[derive(Clone, Debug)]
pub(super) struct Exec {
    pub(super) next: Next,
    pub(super) after: Next,
    pub(super) mode: Mode,
    /// It watches something and goes on when that changes; no end is known.
    pub(super) spinning: bool,
    /// Flags of the operation under way.
    pub(super) slept: bool,
    pub(super) was: bool,
    /// Position in the code.
    pub(super) ip: u32,
    /// Work left of the present stretch, ns · 1000 at full speed.
    pub(super) left: u64,
    /// Operands of the operation under way.
    pub(super) object: u32,
    pub(super) object2: u32,
    pub(super) bytes: u32,
    pub(super) deadline: u64,
    pub(super) spin_from: u64,
    pub(super) regs: [u64; 8],
    pub(super) loops: Vec<u64>,
    pub(super) taken: Vec<u32>,
    /// Whose links `Slot::Item` means.
    pub(super) item: u32,
    /// Whose links `Slot::Link` means.
    pub(super) behalf: u32,
    /// The lock of a CPU that was taken last.
    pub(super) held: u32,
    pub(super) wake: WakeJob,
}

impl Exec {
    pub(super) fn new(ip: u32, behalf: u32, depth: u32) -> Self {
        Self {
            next: Next::Fetch,
            after: Next::Fetch,
            mode: Mode::User,
            spinning: false,
            slept: false,
            was: false,
            ip,
            left: 0,
            object: NOBODY,
            object2: NOBODY,
            bytes: 0,
            deadline: 0,
            spin_from: 0,
            regs: [0; 8],
            loops: vec![0; depth as usize],
            taken: Vec::new(),
            item: NOBODY,
            behalf,
            held: NOBODY,
            wake: WakeJob {
                list: Vec::new(),
                at: 0,
                lock: NOBODY,
                sync: false,
                fork: false,
                softirq: false,
                on_list: false,
                selected: false,
                chosen: 0,
                began: 0,
                decision: NOBODY,
                event: 0,
                then: Next::Fetch,
            },
        }
    }

    /// Is it inside a wake-up, where neither interrupts nor reschedules are taken?
    pub(super) const fn in_wakeup(&self) -> bool {
        matches!(
            self.next,
            Next::WakeLock
                | Next::WakeBegin
                | Next::WakePlace
                | Next::WakeRetry
                | Next::WakeEnqueue
                | Next::WakeSent
        )
    }
}

/// Who executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Task(u32),
    /// The interrupt context of this CPU.
    Irq(u16),
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) exec: Exec,
    pub(super) id: EntityId,
    pub(super) state: State,
    /// The CPU whose queue it belongs to.
    pub(super) cpu: u16,
    /// It runs, or has not finished switching out.
    pub(super) on_cpu: bool,
    pub(super) kthread: bool,
    /// It may run on one CPU only.
    pub(super) pinned: bool,
    pub(super) attributes: TaskAttributes,
    /// Index into the masks.
    pub(super) allowed: u32,
    pub(super) flips: Flips,
    pub(super) recent: CpuId,
    pub(super) waking_at: u64,
    /// The CPU that put it on a wake list.
    pub(super) listed_by: u16,
    /// The CPU that put it on its run queue.
    pub(super) queued_by: u16,
    /// Woken and not run since.
    pub(super) woken: bool,
    pub(super) runnable_at: u64,
    pub(super) running_from: u64,
    /// Where its cache lines are, and since when it has not used them.
    pub(super) cache_cpu: u16,
    pub(super) ran_until: u64,
    pub(super) working_kib: u32,
    pub(super) name: u32,
    /// The workload's task; `NOBODY` for workers and noise.
    pub(super) spec: u32,
    pub(super) process: u32,
    /// The worker pool; `NOBODY` for others.
    pub(super) pool: u32,
    pub(super) blocked_in_item: bool,
    pub(super) waited_max: u64,
    /// Its program is over: who joins it waits no more.
    pub(super) ended: bool,
    pub(super) joiners: Vec<u32>,
}
