//! What tasks wait for: pipes, sockets, futexes, locks, devices, workqueues.

use ttwu_model::{CpuId, CpuSet};

use crate::{Dist, Op};

/// An object of a workload, by its position in [`crate::Workload::objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// What carries bytes from writer to reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// A pipe: a ring of pages, small writes merged into the last page; readers and writers woken with WF_SYNC.
    Pipe {
        /// Pages in the ring (16 by default).
        pages: u32,
    },
    /// A connected pair of stream sockets.
    Socket {
        /// Which family.
        kind: SocketKind,
        /// Bytes of unread messages, with their overhead, after which a writer blocks.
        send_buffer_bytes: u32,
    },
}

/// A socket's family, which decides its overhead and who wakes the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketKind {
    /// AF_UNIX, SOCK_STREAM: the writer wakes the reader itself.
    Unix,
    /// TCP over loopback: the wake-up comes from softirq on the writer's CPU.
    Tcp,
    /// UDP over loopback: likewise.
    Udp,
}

/// On which CPU a device's interrupt arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterruptCpu {
    /// Always this one.
    Fixed(CpuId),
    /// The CPU that submitted the request (one hardware queue per CPU).
    Submitter,
}

/// A device that serves requests in the order in which they came, and then interrupts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// Requests served at once; the others queue, whatever their kind.
    pub channels: u32,
    /// Where its interrupts arrive.
    pub interrupt: InterruptCpu,
    /// The kinds of request that it knows, which [`Op::Submit`] names by position.
    pub requests: Vec<Request>,
}

/// A kind of request. In `hard` and `soft`, [`crate::Slot::Link`] means the links of the task on whose behalf the request was
/// submitted (also when a worker or a handler submitted it).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Time during which it occupies the device, ns.
    pub service: Dist,
    /// What `service` shrinks to, in thousandths, when another request waits at its beginning: a journal that commits in
    /// groups. 1000 is a device that does not.
    pub service_queued_permille: u32,
    /// Further time until the interrupt, which requests spend side by side, ns.
    pub latency: Dist,
    /// Run by the hard interrupt handler. Must not block.
    pub hard: Vec<Op>,
    /// Run in softirq (a tasklet) at the end of that interrupt, on the same CPU. Must not block.
    pub soft: Vec<Op>,
}

/// On which CPUs a workqueue's workers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// A pool per CPU; an item runs on the CPU where it was queued (`kworker/C:n`).
    PerCpu,
    /// Pools per node (before v6.6) or LLC, woken like any task (WQ_UNBOUND, `kworker/uP:n`).
    Unbound,
}

/// A workqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkQueue {
    /// Where its items run.
    pub bound: Bound,
    /// WQ_HIGHPRI: workers at nice −20.
    pub high_priority: bool,
}

/// A work item: queued on its workqueue, run once for each time that it was queued while not pending.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// The workqueue's object.
    pub queue: ObjectId,
    /// What the worker does, in kernel mode. May block. [`crate::Slot::Link`] means the links of the task on whose behalf it
    /// was queued (also when another worker or a handler queued it).
    pub body: Vec<Op>,
}

/// What an object is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// Bytes in order.
    Stream(StreamKind),
    /// A futex with two states, as schbench has one a task: `Post` sets it and wakes the waiter if it was not set; `Wait`
    /// clears it, or sleeps until it is set.
    Futex,
    /// A counting semaphore: each `Post` lets one `Wait` through, now or later. A completion is one that starts at 0.
    Semaphore {
        /// How many may pass before the first post.
        initial: u32,
    },
    /// A lock with a futex behind it: contenders sleep, the unlocker wakes the first.
    Mutex,
    /// A lock in user memory whose contenders spin on their CPUs; they and the owner can be preempted.
    SpinLock,
    /// Sleepers that a `Post` wakes one of, and `PostAll` all; without memory. `WaitUnlock` gives up a mutex meanwhile.
    Condition,
    /// Tasks wait until so many have come.
    Barrier {
        /// How many.
        parties: u32,
    },
    /// Tasks pushed last come out first, all at once (`Push`, `TakeAll`).
    List,
    /// A time stamp that one task writes and another reads.
    Cell,
    /// Time stamps in order, one a request, handed to whoever receives first (`Send`, `Receive`): a thread pool's queue,
    /// with a futex behind it.
    Queue,
    /// A device.
    Device(Device),
    /// A workqueue.
    WorkQueue(WorkQueue),
    /// A work item.
    Work(Work),
    /// Data that tasks touch, whose cache lines stay where they were last used.
    Data {
        /// Its size, bytes.
        bytes: u64,
    },
    /// A set of CPUs, for `SetAffinity`.
    Cpus(CpuSet),
}
