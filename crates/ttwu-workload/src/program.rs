//! What one task does, step by step.

use crate::{Dist, GroupRef, MeterRef, ObjectId, TaskRef};

/// A task's register: a small number of its own, such as a loop's counter or a time stamp. There are [`Reg::COUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u8);

impl Reg {
    /// Registers a task has.
    pub const COUNT: usize = 8;
}

/// Which object an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// This one.
    Fixed(ObjectId),
    /// The executing task's link of this number ([`crate::TaskSpec::links`]), so that many tasks share a program.
    Link(u32),
    /// The executing task's link `base` + the register's value.
    Indexed {
        /// The first link.
        base: u32,
        /// The register, usually a loop's.
        by: Reg,
    },
    /// The executing task's link `base` + the number of the CPU that it runs on. A lock named so is one a CPU: after it has
    /// been taken on a CPU that the task has left meanwhile, it is given back and the new CPU's is tried; `Unlock` releases
    /// the one that was taken last, wherever the task is by then.
    ByCpu {
        /// The link for CPU 0.
        base: u32,
    },
    /// This link of the task that [`Op::TakeAll`] took out last.
    Item(u32),
}

/// How often a body is repeated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Times {
    /// So many times.
    Count(u64),
    /// Until the run ends.
    Forever,
    /// As long as the simulated clock, since the start of the run, is below this, ns.
    Before(u64),
}

/// One step. Times are in ns of a CPU at full speed where work is meant, of the wall clock where waiting is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Compute in user mode.
    Run(Dist),
    /// Compute in kernel mode, where only a preemptible kernel is interrupted by a reschedule.
    RunKernel(Dist),
    /// Be busy until this much of wall time has passed, preempted or not (a `gettimeofday` loop).
    Spin(Dist),
    /// Sleep on a high-resolution timer.
    Sleep(Dist),
    /// Sleep until the register's time + period, and set the register to that; when that is past already, go on at once.
    /// A register of 0 counts from now.
    Periodic {
        /// Keeps the planned time.
        timer: Reg,
        /// The period, ns.
        period: Dist,
        /// After a miss, count from now rather than from the planned time.
        rebase: bool,
    },
    /// Write `bytes` to a stream, blocking while it is full.
    Write {
        /// The stream.
        to: Slot,
        /// How many, in one call.
        bytes: u32,
    },
    /// Read `bytes` from a stream, in as many calls as it takes.
    Read {
        /// The stream.
        from: Slot,
        /// How many.
        bytes: u32,
    },
    /// Wait until a stream has something to read, without reading (`poll`). All who poll are woken by one write.
    Poll {
        /// The stream.
        on: Slot,
    },
    /// Post a futex, semaphore or condition, waking one waiter if there is one.
    Post(Slot),
    /// Wake all waiters of a condition or semaphore (`wake_up_all`, `complete_all`), or release a barrier's.
    PostAll(Slot),
    /// Wait at a futex, semaphore, condition or barrier.
    Wait(Slot),
    /// Wait at a futex or semaphore, but busily: go on looking at it in user mode instead of sleeping.
    SpinWait(Slot),
    /// Take back what was posted to a futex and not waited for (schbench sets its futex to blocked before it goes on).
    Reset(Slot),
    /// Do `then` if a wait at this futex or semaphore, or a read from this stream, would not sleep, else `otherwise`. Takes
    /// nothing itself.
    IfReady {
        /// The futex, semaphore, stream or queue.
        on: Slot,
        /// If so.
        then: Vec<Op>,
        /// If not.
        otherwise: Vec<Op>,
    },
    /// Append the register's value to a queue, waking one receiver if there is one.
    Send {
        /// The queue.
        to: Slot,
        /// The register.
        value: Reg,
    },
    /// Take the first value out of a queue, sleeping while it is empty.
    Receive {
        /// The queue.
        from: Slot,
        /// The register.
        into: Reg,
    },
    /// Wait at a condition, giving up a mutex meanwhile (`pthread_cond_wait`).
    WaitUnlock {
        /// The condition.
        on: Slot,
        /// The mutex.
        mutex: Slot,
    },
    /// Take a mutex or spin lock.
    Lock(Slot),
    /// Release it.
    Unlock(Slot),
    /// Push the executing task on a list.
    Push(Slot),
    /// Take all tasks off a list and do the body for each, the last pushed first, with [`Slot::Item`] as its links.
    TakeAll {
        /// The list.
        list: Slot,
        /// For each.
        body: Vec<Op>,
    },
    /// Hand a request to a device and go on.
    Submit {
        /// The device.
        to: Slot,
        /// Which of its kinds of request.
        request: u32,
    },
    /// Queue a work item, unless it is pending.
    Queue(Slot),
    /// Wait until a work item that was queued has run.
    Flush(Slot),
    /// Use data: brings its lines here from where they were used last.
    Touch(Slot),
    /// `sched_yield()`.
    Yield,
    /// Start a task whose [`crate::Start`] is `Forked`.
    Spawn(TaskRef),
    /// Wait until a task has ended.
    Join(TaskRef),
    /// End here, whatever follows.
    Exit,
    /// Restrict the executing task to a set of CPUs ([`crate::ObjectKind::Cpus`]).
    SetAffinity(Slot),
    /// Change the executing task's nice value.
    SetNice(i8),
    /// Move the executing task to a task group.
    SetGroup(GroupRef),
    /// Repeat.
    Repeat {
        /// How often.
        times: Times,
        /// Counts the rounds from 0; no program needs it afterwards.
        counter: Option<Reg>,
        /// What.
        body: Vec<Op>,
    },
    /// Do `then` with this probability, else `otherwise`.
    Choose {
        /// In thousandths.
        permille: u32,
        /// If drawn.
        then: Vec<Op>,
        /// If not.
        otherwise: Vec<Op>,
    },
    /// Set a register to now.
    Stamp(Reg),
    /// Write the register's value into a cell.
    Store {
        /// The cell.
        to: Slot,
        /// The register.
        from: Reg,
    },
    /// Read a cell into a register.
    Load {
        /// The cell.
        from: Slot,
        /// The register.
        to: Reg,
    },
    /// A sample: now − the register.
    Sample {
        /// Of what.
        meter: MeterRef,
        /// Since when.
        since: Reg,
    },
    /// Add to a counter.
    Count {
        /// Which.
        meter: MeterRef,
        /// How much.
        by: u64,
    },
    /// Count the CPU on which the task is.
    CountCpu(MeterRef),
}

/// What a task does from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Program {
    /// In order; the task exits after the last.
    pub ops: Vec<Op>,
}
