//! One CPU: what it does at the moment, and how far that is.

use super::schedule::Why;
use super::task::{Exec, NOBODY};
use ttwu_fair::{Flips, NewIdlePass, Resched};

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// In an idle state.
    Idle,
    /// On its way out of one.
    IdleExit,
    /// In the idle task, awake.
    IdleLoop,
    /// In its current task.
    Task,
    /// In an interrupt.
    Irq,
    /// Looking for work elsewhere, with interrupts off and the task that blocked still current.
    NewIdle,
    /// Between two tasks.
    Switch,
}

/// Where a CPU's time went, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// In idle states, and on the way out of them.
    pub(super) idle: u64,
    pub(super) irq: u64,
    pub(super) task: u64,
    /// Between tasks: choosing, looking for work, switching, the idle loop.
    pub(super) between: u64,
}

/// A newidle pass of a CPU under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looking {
    pub(super) pass: NewIdlePass,
    /// Why the CPU chooses.
    pub(super) why: Why,
    /// When it ran out of work, and when the look at the present level began.
    pub(super) since: u64,
    pub(super) level_since: u64,
    /// The look is over, what it moved is being moved.
    pub(super) looked: bool,
}

/// What arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Another CPU asks for a reschedule.
    Reschedule,
    /// Another CPU put something on the wake list.
    Call,
    /// A task's timer.
    Timer(u32),
    /// A device is done with a request: index of the request in flight.
    Device(u32),
    /// The tick.
    Tick,
    /// The slice timer.
    Hrtick,
    /// Balance for all idle CPUs.
    Nohz,
    /// Push the running task to another CPU, since it may not run here any more.
    Stop { to: u16 },
    /// The same, for balance.
    Active { to: u16 },
    /// For the world: a task starts.
    Start(u32),
    /// For the world: a request leaves the device.
    Served(u32),
    /// For the world: sample the cores' speeds.
    Frequency,
    /// For the world: the end.
    End,
}

/// A CPU.
#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) context: Context,
    pub(super) present: bool,
    /// The running task; `NOBODY` is the idle task.
    pub(super) curr: u32,
    /// Still switching out.
    pub(super) leaving: u32,
    pub(super) need_resched: Option<Resched>,
    pub(super) looking: Looking,
    /// Work left of the present stretch as of `from`, ns · 1000.
    pub(super) left: u64,
    pub(super) from: u64,
    /// Does the core's speed matter to it?
    pub(super) scaled: bool,
    /// Is a stretch under way whose end is known?
    pub(super) timed: bool,
    /// Thousandths.
    pub(super) speed: u64,
    pub(super) frequency: u64,
    /// Interrupts that arrived and were not taken.
    pub(super) pending: Vec<Arrival>,
    pub(super) irq: Box<Exec>,
    pub(super) taking: Arrival,
    /// Is that interrupt's softirq under way?
    pub(super) soft: bool,
    pub(super) wake_list: Vec<u32>,
    /// The idle task's.
    pub(super) idle_flips: Flips,
    pub(super) busy: bool,
    pub(super) busy_from: u64,
    pub(super) busy_ns: u64,
    pub(super) busy_at_sample: u64,
    pub(super) idle_state: u8,
    pub(super) idle_from: u64,
    /// The last idle spans, us.
    pub(super) spans: [u64; 8],
    pub(super) span_at: u8,
    pub(super) span_count: u8,
    /// When caches were last flushed by an idle state.
    pub(super) flushed_at: u64,
    /// It was kicked to balance for all idle CPUs, and has not done so yet.
    pub(super) kicked: bool,
    /// The run-queue lock is free from then on.
    pub(super) lock_free_at: u64,
    /// Since when it is in this context, and what it spent so far.
    pub(super) since: u64,
    pub(super) spent: Spent,
}

impl Cpu {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            context: Context::Idle,
            present: true,
            curr: NOBODY,
            leaving: NOBODY,
            need_resched: None,
            looking: Looking {
                pass: NewIdlePass::default(),
                why: Why::Idle,
                since: 0,
                level_since: 0,
                looked: false,
            },
            left: 0,
            from: 0,
            scaled: false,
            timed: false,
            speed: 1000,
            frequency: 1000,
            pending: Vec::new(),
            irq: Box::new(Exec::new(0, NOBODY, depth)),
            taking: Arrival::Reschedule,
            soft: false,
            wake_list: Vec::new(),
            idle_flips: Flips::default(),
            busy: false,
            busy_from: super::BOOT,
            busy_ns: 0,
            busy_at_sample: 0,
            idle_state: 0,
            idle_from: 0,
            spans: [0; 8],
            span_at: 0,
            span_count: 0,
            flushed_at: 0,
            kicked: false,
            lock_free_at: 0,
            since: super::BOOT,
            spent: Spent::default(),
        }
    }

    /// It is in another context from now on; what it did until then is accounted.
    pub(super) fn enter(&mut self, context: Context, now: u64) {
        let ns = now - self.since;
        match self.context {
            Context::Idle | Context::IdleExit => self.spent.idle += ns,
            Context::Irq => self.spent.irq += ns,
            Context::Task => self.spent.task += ns,
            Context::IdleLoop | Context::NewIdle | Context::Switch => self.spent.between += ns,
        }
        self.since = now;
        self.context = context;
    }
}
