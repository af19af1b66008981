//! What tasks wait for, as it stands.

use super::task::Who;
use std::collections::VecDeque;
use ttwu_workload::{ObjectKind, SocketKind, StreamKind, Workload};

/// A kernel lock with a queue of spinners, served in order.
#[derive(Debug, Default)]
pub(super) struct KernelLock {
    pub(super) held: bool,
    pub(super) spinners: VecDeque<Who>,
}

/// One side of a stream's sleepers.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// Sleepers with whether they are exclusive: pollers in front, others behind.
    pub(super) sleepers: VecDeque<(u32, bool)>,
    pub(super) lock: KernelLock,
}

impl Side {
    /// Takes out whom one wake-up reaches: all who are not exclusive, and one who is.
    pub(super) fn take(&mut self, into: &mut Vec<u32>) {
        let mut exclusive = false;
        self.sleepers.retain(|&(task, is_exclusive)| {
            let taken = !is_exclusive || !std::mem::replace(&mut exclusive, true);
            if taken {
                into.push(task);
            }
            !taken
        });
    }
}

/// The bytes of a stream.
#[derive(Debug)]
pub(super) enum Buffer {
    /// A pipe's ring of pages: bytes unread in each, and how far the last one is filled.
    Pipe { pages: VecDeque<u32>, filled: u32, pages_max: u32 },
    /// A socket's messages, the oldest first.
    Socket { kind: SocketKind, messages: VecDeque<Message>, used: u32, used_max: u32 },
}

/// A socket's message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Bytes unread.
    pub(super) bytes: u32,
    /// Memory taken.
    pub(super) memory: u32,
    /// The CPU that wrote it.
    pub(super) cpu: u16,
}

/// No CPU yet.
pub(super) const NEVER: u16 = u16::MAX;

/// Bytes in a page.
const PAGE: u32 = 4096;
/// What a socket buffer takes beside its bytes: `struct sk_buff` and the shared part of the data.
const SKB_OVERHEAD: u32 = 576;

/// A pipe or socket.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) buffer: Buffer,
    /// Readers, writers.
    pub(super) sides: [Side; 2],
    /// A pipe's mutex is free from then on.
    pub(super) free_at: u64,
    /// CPUs that used it last, wrote to it last and read from it last; [`NEVER`] for none.
    pub(super) used_by: u16,
    pub(super) written_by: u16,
    pub(super) read_by: u16,
}

impl Stream {
    fn new(kind: StreamKind) -> Self {
        let buffer = match kind {
            StreamKind::Pipe { pages } => {
                Buffer::Pipe { pages: VecDeque::new(), filled: 0, pages_max: pages.max(1) }
            }
            StreamKind::Socket { kind, send_buffer_bytes } => {
                Buffer::Socket { kind, messages: VecDeque::new(), used: 0, used_max: send_buffer_bytes }
            }
        };
        let sides = [Side::default(), Side::default()];
        Self { buffer, sides, free_at: 0, used_by: NEVER, written_by: NEVER, read_by: NEVER }
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.buffer {
            Buffer::Pipe { pages, .. } => pages.is_empty(),
            Buffer::Socket { messages, .. } => messages.is_empty(),
        }
    }

    /// Does a writer of anything have to wait?
    pub(super) fn is_full(&self) -> bool {
        match &self.buffer {
            Buffer::Pipe { pages, pages_max, .. } => pages.len() >= *pages_max as usize,
            Buffer::Socket { used, used_max, .. } => used >= used_max,
        }
    }

    /// Puts in what fits of `bytes`, and says how much that was.
    ///
    /// Models: pipe_write(), unix_stream_sendmsg(), v5.5–v7.2: a pipe's last page takes a small write whole or not at all.
    pub(super) fn put(&mut self, bytes: u32, cpu: u16) -> u32 {
        self.written_by = cpu;
        match &mut self.buffer {
            Buffer::Pipe { pages, filled, pages_max } => {
                let mut left = bytes;
                let part = left % PAGE;
                if part > 0
                    && *filled + part <= PAGE
                    && let Some(last) = pages.back_mut()
                {
                    *last += part;
                    *filled += part;
                    left -= part;
                }
                while left > 0 && pages.len() < *pages_max as usize {
                    let page = left.min(PAGE);
                    pages.push_back(page);
                    *filled = page;
                    left -= page;
                }
                bytes - left
            }
            Buffer::Socket { messages, used, used_max, .. } => {
                let mut left = bytes;
                while left > 0 && *used < *used_max {
                    let part = left.min(8 * PAGE);
                    let memory = part.next_multiple_of(256) + SKB_OVERHEAD;
                    messages.push_back(Message { bytes: part, memory, cpu });
                    *used += memory;
                    left -= part;
                }
                bytes - left
            }
        }
    }

    /// Takes out up to `bytes`, and says how much that was.
    pub(super) fn get(&mut self, bytes: u32, cpu: u16) -> u32 {
        self.read_by = cpu;
        let mut left = bytes;
        match &mut self.buffer {
            Buffer::Pipe { pages, filled, .. } => {
                while left > 0
                    && let Some(first) = pages.front_mut()
                {
                    let part = left.min(*first);
                    *first -= part;
                    left -= part;
                    if *first == 0 {
                        pages.pop_front();
                    }
                }
                if pages.is_empty() {
                    *filled = 0;
                }
            }
            Buffer::Socket { messages, used, .. } => {
                while left > 0
                    && let Some(first) = messages.front_mut()
                {
                    let part = left.min(first.bytes);
                    first.bytes -= part;
                    left -= part;
                    if first.bytes == 0 {
                        *used -= first.memory;
                        messages.pop_front();
                    }
                }
            }
        }
        bytes - left
    }

    /// Memory that a socket's messages take, bytes; a pipe's pages are few and reused.
    pub(super) const fn memory(&self) -> u64 {
        match &self.buffer {
            Buffer::Pipe { .. } => 0,
            Buffer::Socket { used, .. } => *used as u64,
        }
    }

    /// On which CPU was written what would be read next? A pipe's bytes have no owner each: its last writer stands for all.
    pub(super) fn next_written_by(&self) -> u16 {
        match &self.buffer {
            Buffer::Pipe { pages, .. } => {
                if pages.is_empty() {
                    NEVER
                } else {
                    self.written_by
                }
            }
            Buffer::Socket { messages, .. } => messages.front().map_or(NEVER, |message| message.cpu),
        }
    }

    /// After a read: are writers told that there is room? `was_full` is how it was before.
    ///
    /// Models: pipe_read(), unix_write_space(), sk_stream_write_space(), v5.5–v7.2: sockets only below a quarter of the buffer
    /// (TCP: a third free).
    pub(super) fn tells_writers(&self, was_full: bool) -> bool {
        match &self.buffer {
            Buffer::Pipe { .. } => was_full && !self.is_full(),
            Buffer::Socket { kind, used, used_max, .. } => {
                let room = match kind {
                    SocketKind::Unix => used.saturating_mul(4) <= *used_max,
                    SocketKind::Tcp | SocketKind::Udp => *used <= used_max / 3 * 2,
                };
                room && !self.sides[1].sleepers.is_empty()
            }
        }
    }
}

/// A request under way in a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) device: u32,
    pub(super) request: u32,
    pub(super) behalf: u32,
    /// The CPU that submitted it.
    pub(super) from: u16,
}

/// An object's state.
#[derive(Debug)]
pub(super) enum Object {
    Stream(Box<Stream>),
    Futex {
        set: bool,
        sleepers: VecDeque<u32>,
        spinners: Vec<u32>,
    },
    Semaphore {
        count: u64,
        sleepers: VecDeque<u32>,
        spinners: Vec<u32>,
    },
    Mutex {
        owner: u32,
        sleepers: VecDeque<u32>,
    },
    Spin {
        owner: u32,
        spinners: Vec<u32>,
    },
    Condition {
        sleepers: VecDeque<u32>,
    },
    Barrier {
        parties: u32,
        arrived: u32,
        sleepers: VecDeque<u32>,
    },
    List(Vec<u32>),
    Cell(u64),
    Queue {
        values: VecDeque<u64>,
        sleepers: VecDeque<u32>,
    },
    Device {
        busy: u32,
        waiting: VecDeque<u32>,
    },
    WorkQueue,
    Work {
        pending: bool,
        running: bool,
        again: Vec<u32>,
        flushers: Vec<u32>,
        behalf: u32,
    },
    /// Where its lines are.
    Data {
        cpu: Option<u16>,
    },
    /// Index of the mask.
    Cpus(u32),
}

impl Object {
    pub(super) fn all(workload: &Workload, mut mask: impl FnMut(&ttwu_model::CpuSet) -> u32) -> Vec<Self> {
        let each = workload.objects.iter().map(|spec| match &spec.kind {
            ObjectKind::Stream(kind) => Self::Stream(Box::new(Stream::new(*kind))),
            ObjectKind::Futex => Self::Futex { set: false, sleepers: VecDeque::new(), spinners: Vec::new() },
            ObjectKind::Semaphore { initial } => Self::Semaphore {
                count: u64::from(*initial),
                sleepers: VecDeque::new(),
                spinners: Vec::new(),
            },
            ObjectKind::Mutex => Self::Mutex { owner: super::task::NOBODY, sleepers: VecDeque::new() },
            ObjectKind::SpinLock => Self::Spin { owner: super::task::NOBODY, spinners: Vec::new() },
            ObjectKind::Condition => Self::Condition { sleepers: VecDeque::new() },
            ObjectKind::Barrier { parties } => {
                Self::Barrier { parties: *parties, arrived: 0, sleepers: VecDeque::new() }
            }
            ObjectKind::List => Self::List(Vec::new()),
            ObjectKind::Cell => Self::Cell(0),
            ObjectKind::Queue => Self::Queue { values: VecDeque::new(), sleepers: VecDeque::new() },
            ObjectKind::Device(_) => Self::Device { busy: 0, waiting: VecDeque::new() },
            ObjectKind::WorkQueue(_) => Self::WorkQueue,
            ObjectKind::Work(_) => Self::Work {
                pending: false,
                running: false,
                again: Vec::new(),
                flushers: Vec::new(),
                behalf: super::task::NOBODY,
            },
            ObjectKind::Data { .. } => Self::Data { cpu: None },
            ObjectKind::Cpus(set) => Self::Cpus(mask(set)),
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_merges_small_writes_and_takes_them_whole() {
        let mut pipe = Stream::new(StreamKind::Pipe { pages: 2 });
        for _ in 0..40 {
            assert_eq!(pipe.put(100, 0), 100);
        }
        assert!(!pipe.is_full());
        // 96 bytes are left in the first page: the next message takes the second one.
        assert_eq!(pipe.put(100, 0), 100);
        assert!(pipe.is_full(), "both pages are in use, though the last has room");
        assert_eq!(pipe.put(100, 0), 100, "which a small write still may use");
        assert_eq!(pipe.get(4000, 0), 4000);
        assert!(!pipe.is_full() && !pipe.is_empty());
        assert_eq!(pipe.get(1000, 0), 200);
        assert!(pipe.is_empty());
        assert_eq!(pipe.put(20_000, 0), 8192);
    }

    #[test]
    fn a_socket_tells_writers_below_a_quarter() {
        let mut socket =
            Stream::new(StreamKind::Socket { kind: SocketKind::Unix, send_buffer_bytes: 212_992 });
        let mut messages = 0;
        while socket.put(100, 0) == 100 {
            messages += 1;
        }
        // 256 + 576 bytes a message.
        assert_eq!(messages, 256);
        socket.sides[1].sleepers.push_back((1, false));
        let mut read = 0;
        while !socket.tells_writers(true) {
            assert_eq!(socket.get(100, 0), 100);
            read += 1;
        }
        assert_eq!(read, 192);
    }

    #[test]
    fn one_exclusive_sleeper_and_all_others() {
        let mut side = Side::default();
        side.sleepers.extend([(1, false), (2, true), (3, true), (4, false)]);
        let mut woken = Vec::new();
        side.take(&mut woken);
        assert_eq!(woken, [1, 2, 4]);
        side.take(&mut woken);
        assert_eq!(woken, [1, 2, 4, 3]);
    }
}
