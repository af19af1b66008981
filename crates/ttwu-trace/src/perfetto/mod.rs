//! Perfetto's protobuf traces: reader and writer, without generated code.
//!
//! Reads plain and compact scheduler events, compressed packets, what the trace says about its machine, and its losses.
//! Times are the bundles' raw ftrace time stamps; `TraceMeta::clock` names their clock (`boot` unless a bundle says
//! otherwise). They are not converted to another clock: every quantity that ttwu computes is a difference.
//!
//! What this does not do: user-space tracks, counters, profiles. They are counted in a note.

mod events;
mod index;
mod proto;
mod schema;
mod state;
#[cfg(test)]
mod tests;
mod write;

pub use write::PerfettoWriter;

use crate::detect::Head;
use crate::source::{Decoder, More, Source};
use crate::{Input, ReadError};
use events::Item;
use index::{BundleAt, Index, index};
use proto::{Fields, varint};
use schema::{bundle, packet};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use ttwu_model::{ClockStep, CpuId, Duration, Event, EventFlags, EventKind, Pid, Prio, RawEvent, Time};

const FORMAT: &str = "Perfetto";
/// Events handed over at a time.
const BATCH: usize = 1 << 16;

/// Fields of which every Perfetto trace has some in its first packets.
const KNOWN: [u32; 10] = [
    packet::FTRACE_EVENTS,
    packet::PROCESS_TREE,
    packet::TRUSTED_UID,
    packet::CLOCK_SNAPSHOT,
    packet::TIMESTAMP,
    packet::SEQUENCE_ID,
    packet::TRACE_CONFIG,
    packet::SYSTEM_INFO,
    packet::COMPRESSED_PACKETS,
    packet::ZSTD_COMPRESSED_PACKETS,
];

/// Is it a sequence of `Trace.packet` fields (tag 0x0a, length, packet)?
///
/// Protobuf has no magic number, and 0x0a is also a line end: the first packets must parse, and hold something that every
/// Perfetto trace has.
pub(crate) fn probe(head: &Head<'_>) -> bool {
    let mut rest = head.bytes;
    let mut known = false;
    for _ in 0..8 {
        if rest.is_empty() {
            break;
        }
        let (Some(0x0a), Some(len)) = (varint(&mut rest), varint(&mut rest)) else { return false };
        let left = head.len - (head.bytes.len() - rest.len()) as u64;
        if len > left {
            // A file that was cut inside its first packet is no use to anybody.
            return known;
        }
        let content = &rest[..usize::try_from(len).unwrap_or(usize::MAX).min(rest.len())];
        let whole = content.len() as u64 == len;
        rest = &rest[content.len()..];
        let mut fields = Fields::new(content);
        for (number, _) in &mut fields {
            known |= KNOWN.contains(&number);
        }
        if whole && fields.damaged() {
            return false;
        }
        if !whole {
            // A packet that reaches beyond the head can only be judged by its first key.
            let key = varint(&mut &*content).unwrap_or(0);
            known |= key & 7 == 2 && u32::try_from(key >> 3).is_ok_and(|number| KNOWN.contains(&number));
        }
    }
    known
}

/// Opens a Perfetto trace.
pub(crate) fn open(input: Input, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    let index = index(input, source)?;
    let streams = index.streams.keys().map(|&(sequence, cpu)| Stream::new(sequence, cpu)).collect();
    let mut reader =
        Reader { index, streams, heads: BinaryHeap::new(), cpus: Vec::new(), seen: BTreeSet::new(), last: 0 };
    for number in 0..reader.streams.len() {
        reader.refill(number, source)?;
    }
    Ok(Box::new(reader))
}

/// The bundles of one CPU from one writer, being read.
struct Stream {
    sequence: u64,
    cpu: CpuId,
    next_bundle: usize,
    items: VecDeque<Item>,
    last: u64,
}

impl Stream {
    const fn new(sequence: u64, cpu: CpuId) -> Self {
        Self { sequence, cpu, next_bundle: 0, items: VecDeque::new(), last: 0 }
    }
}

/// What runs on a CPU, for events that do not say it.
#[derive(Clone, Copy)]
struct Running {
    task: Pid,
    prio: Prio,
}

const NOBODY: Running = Running { task: Pid::UNKNOWN, prio: Prio::UNKNOWN };

struct Reader {
    index: Index,
    streams: Vec<Stream>,
    /// Next event's time and its stream, earliest first.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    cpus: Vec<Running>,
    /// Pids that occur in events.
    seen: BTreeSet<Pid>,
    last: u64,
}

impl Decoder for Reader {
    fn decode(&mut self, source: &mut Source, out: &mut Vec<RawEvent>) -> Result<More, ReadError> {
        while out.len() < BATCH {
            let Some(Reverse((_, number))) = self.heads.pop() else {
                self.name_tasks(source);
                return Ok(More::No);
            };
            // Stay with a stream while it is the earliest: CPUs are busy in bursts.
            let until = self.heads.peek().map_or(u64::MAX, |&Reverse((at, _))| at);
            while let Some(&item) = self.streams[number].items.front() {
                if item.at() > until || out.len() >= BATCH {
                    break;
                }
                self.streams[number].items.pop_front();
                let raw = self.complete(item);
                out.push(raw);
                if self.streams[number].items.is_empty() {
                    self.refill_items(number, source)?;
                }
            }
            if let Some(item) = self.streams[number].items.front() {
                self.heads.push(Reverse((item.at(), number)));
            }
        }
        Ok(More::Yes)
    }
}

impl Reader {
    fn refill(&mut self, number: usize, source: &mut Source) -> Result<(), ReadError> {
        self.refill_items(number, source)?;
        if let Some(item) = self.streams[number].items.front() {
            self.heads.push(Reverse((item.at(), number)));
        }
        Ok(())
    }

    /// Reads the stream's next bundle that has events.
    fn refill_items(&mut self, number: usize, source: &mut Source) -> Result<(), ReadError> {
        let stream = &mut self.streams[number];
        let bundles = &self.index.streams[&(stream.sequence, stream.cpu)];
        while stream.items.is_empty() {
            let Some(&BundleAt { offset, len, after_loss }) = bundles.get(stream.next_bundle) else { break };
            stream.next_bundle += 1;
            let message = self.index.input.bytes(offset, u64::from(len))?;
            let mut items = Vec::new();
            for (number, value) in Fields::new(&message) {
                match number {
                    bundle::EVENT => {
                        let reader = &mut self.index.reader;
                        match reader.event(value.bytes(), stream.cpu, stream.sequence, source) {
                            Ok(item) => items.push(item),
                            Err(what) => source.health.add_unknown(&format!("Perfetto {what}")),
                        }
                    }
                    bundle::COMPACT_SCHED => {
                        self.index.reader.compact(value.bytes(), stream.cpu, source, &mut items);
                    }
                    _ => {}
                }
            }
            stream.take(items, after_loss, source);
        }
        Ok(())
    }

    /// The event with what it leaves out, and in order.
    fn complete(&mut self, item: Item) -> RawEvent {
        let Item { mut raw, implicit } = item;
        let event = &mut raw.event;
        // Only streams whose own clock went back can be behind; that was said when they were read.
        self.last = self.last.max(event.at.as_ns());
        event.at = Time::from_ns(self.last);
        let index = event.cpu.index();
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, NOBODY);
        }
        let running = &mut self.cpus[index];
        if implicit {
            event.by = running.task;
        }
        match &mut event.kind {
            EventKind::Switch { prev, next, prev_prio, next_prio, .. } => {
                if implicit {
                    (*prev, *prev_prio) = (running.task, running.prio);
                }
                *running = Running { task: *next, prio: *next_prio };
            }
            EventKind::Lost { .. } => *running = NOBODY,
            _ => {}
        }
        for pid in event.kind.tasks().into_iter().flatten().chain([event.by]) {
            self.seen.insert(pid);
        }
        raw
    }

    /// What the process tree says of tasks that occur.
    fn name_tasks(&mut self, source: &mut Source) {
        for (&pid, thread) in self.index.threads.iter().filter(|(pid, _)| self.seen.contains(pid)) {
            if let Some(tgid) = thread.tgid {
                source.tgids.push((pid, tgid));
            }
            if let Some(name) = &thread.name {
                source.names.push((pid, source.strings.intern(name)));
            }
        }
    }
}

impl Stream {
    /// Puts a bundle's events in order behind those of earlier bundles.
    fn take(&mut self, mut items: Vec<Item>, after_loss: bool, source: &mut Source) {
        // Compact and plain events lie apart in a bundle. Stable: events of one time stay in order.
        items.sort_by_key(Item::at);
        let Some(first) = items.first().map(Item::at) else { return };
        if first < self.last {
            let back = Duration::from_ns(self.last - first);
            source.health.add_clock_step(ClockStep { cpu: self.cpu, at: Time::from_ns(self.last), back });
        }
        if after_loss {
            let event = Event {
                at: Time::from_ns(first.max(self.last)),
                by: Pid::UNKNOWN,
                cpu: self.cpu,
                flags: EventFlags::UNKNOWN,
                kind: EventKind::Lost { count: None },
            };
            self.items.push_back(Item { raw: RawEvent { event, names: [None; 2] }, implicit: false });
        }
        for mut item in items {
            self.last = self.last.max(item.at());
            item.raw.event.at = Time::from_ns(self.last);
            self.items.push_back(item);
        }
    }
}
