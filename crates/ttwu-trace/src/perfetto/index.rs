//! The first pass over a Perfetto trace: where each CPU's bundles are, and everything that is not an event.
//!
//! A trace is a heap of packets. Bundles of one CPU and one writer are in time order, but bundles of different CPUs lie in
//! any order, up to seconds apart; so the first pass notes where they are (24 bytes each), and the second merges them.
//! Packets that hold compressed packets are spelled out into a spool first, so that both passes see one plain trace.

use super::events::EventReader;
use super::proto::{Fields, Value, varint};
use super::schema::{FTRACE_CLOCKS, bundle, packet};
use crate::source::Source;
use crate::unwrap::{Bounded, ratio_limit};
use crate::{Input, ReadError};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use ttwu_model::{CpuId, Pid};

const FORMAT: &str = super::FORMAT;
/// No packet is larger: Perfetto writes at most a few hundred kilobytes, and reads whole packets into memory itself.
const PACKET_MAX: u64 = 256 << 20;

/// Walks the packets of a file through a window, since most are a few bytes long.
pub(super) struct Packets<'a> {
    input: &'a Input,
    at: u64,
    window: Vec<u8>,
    window_at: u64,
}

/// What comes next in a file.
pub(super) enum Next<'a> {
    /// A packet: where its content begins, and the content.
    Packet(u64, &'a [u8]),
    /// Another field of the `Trace` message.
    Other,
    /// The file ends inside a packet, which begins here.
    Cut(u64),
    /// What is here is no field.
    Damage(u64),
    End,
}

impl<'a> Packets<'a> {
    pub(super) const fn new(input: &'a Input) -> Self {
        Self { input, at: 0, window: Vec::new(), window_at: 0 }
    }

    /// Up to `len` bytes at `at`.
    fn bytes(&mut self, at: u64, len: u64) -> Result<&[u8], ReadError> {
        const WINDOW: u64 = 1 << 20;
        let end = at.saturating_add(len).min(self.input.len());
        if at < self.window_at || end > self.window_at + self.window.len() as u64 {
            self.window = self.input.bytes(at, len.max(WINDOW))?;
            self.window_at = at;
        }
        let start = usize::try_from(at - self.window_at).expect("inside the window");
        let len = usize::try_from(end.saturating_sub(at)).expect("inside the window");
        let found = self.window.get(start..).unwrap_or_default();
        Ok(&found[..len.min(found.len())])
    }

    pub(super) fn next(&mut self) -> Result<Next<'_>, ReadError> {
        let at = self.at;
        let head = self.bytes(at, 20)?;
        let mut rest = head;
        if head.is_empty() {
            return Ok(Next::End);
        }
        let whole = head.len() == 20;
        let (key, len) = (varint(&mut rest), varint(&mut rest));
        let start = at + (head.len() - rest.len()) as u64;
        let (Some(key), Some(len)) = (key, len) else {
            return Ok(if whole { Next::Damage(at) } else { Next::Cut(at) });
        };
        if key & 7 != 2 || key >> 3 == 0 || key >> 3 > 1000 || len > PACKET_MAX {
            return Ok(Next::Damage(at));
        }
        if len > self.input.len() - start {
            return Ok(Next::Cut(at));
        }
        self.at = start + len;
        if key >> 3 != 1 {
            return Ok(Next::Other);
        }
        Ok(Next::Packet(start, self.bytes(start, len)?))
    }
}

/// Reads an input with its compressed packets spelled out.
struct Spelled<'a> {
    packets: Packets<'a>,
    pending: Vec<u8>,
    taken: usize,
    done: bool,
}

impl Read for Spelled<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.pending.len() {
            if self.done {
                return Ok(0);
            }
            self.pending.clear();
            self.taken = 0;
            match self.packets.next().map_err(io::Error::other)? {
                Next::Packet(_, content) => spell(content, &mut self.pending)?,
                Next::Other => {}
                Next::End => self.done = true,
                Next::Cut(at) | Next::Damage(at) => {
                    self.done = true;
                    // The rest goes through as it is, for the index to say what is wrong with it.
                    self.pending = self.packets.bytes(at, 1 << 16).map_err(io::Error::other)?.to_vec();
                }
            }
        }
        let from = &self.pending[self.taken..];
        let len = from.len().min(buffer.len());
        buffer[..len].copy_from_slice(&from[..len]);
        self.taken += len;
        Ok(len)
    }
}

/// Room for what one packet's compressed packets expand to; the recorder compresses half a megabyte at a time.
const SPELL_MAX: u64 = 64 << 20;

fn spell(content: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut compressed = false;
    for (number, value) in Fields::new(content) {
        match number {
            packet::COMPRESSED_PACKETS => {
                compressed = true;
                expand(flate2::read::ZlibDecoder::new(value.bytes()), out)?;
            }
            packet::ZSTD_COMPRESSED_PACKETS => {
                compressed = true;
                let frame =
                    ruzstd::decoding::StreamingDecoder::new(value.bytes()).map_err(io::Error::other)?;
                frame.take(SPELL_MAX).read_to_end(out)?;
            }
            _ => {}
        }
    }
    if !compressed {
        out.push(0x0a);
        let mut len = content.len();
        while len >= 0x80 {
            out.push(len as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend_from_slice(content);
    }
    Ok(())
}

fn expand(reader: impl Read, out: &mut Vec<u8>) -> io::Result<()> {
    let room = SPELL_MAX.saturating_sub(out.len() as u64);
    let read = reader.take(room + 1).read_to_end(out)?;
    if read as u64 > room {
        return Err(io::Error::other(
            "it expands to more than 64 MiB; decompress the trace with traceconv first",
        ));
    }
    Ok(())
}

/// Where a bundle is.
#[derive(Debug, Clone, Copy)]
pub(super) struct BundleAt {
    pub(super) offset: u64,
    pub(super) len: u32,
    /// Packets or events before it were lost.
    pub(super) after_loss: bool,
}

/// What the first pass finds.
pub(super) struct Index {
    pub(super) input: Input,
    /// Bundles by packet sequence and CPU, each in the order of the file.
    pub(super) streams: BTreeMap<(u64, CpuId), Vec<BundleAt>>,
    pub(super) reader: EventReader,
    /// Threads with their process and name, where the process tree says them.
    pub(super) threads: BTreeMap<Pid, Thread>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Thread {
    pub(super) tgid: Option<Pid>,
    pub(super) name: Option<String>,
}

/// State of the first pass.
#[derive(Default)]
struct Pass {
    streams: BTreeMap<(u64, CpuId), Vec<BundleAt>>,
    threads: BTreeMap<Pid, Thread>,
    symbols: BTreeMap<(u64, u64), String>,
    generics: BTreeMap<u32, String>,
    sequences: BTreeSet<u64>,
    overruns: BTreeMap<u64, (u64, u64)>,
    events_recorded: BTreeSet<String>,
    /// The configuration switches events on in ways that do not name them.
    events_implied: bool,
    clocks: BTreeSet<u64>,
    compact: bool,
    compressed: bool,
    uninteresting: u64,
}

/// What the first pass reads, or need not read.
const KNOWN_CONTENT: [u32; 9] = [
    packet::FTRACE_EVENTS,
    packet::PROCESS_TREE,
    packet::CLOCK_SNAPSHOT,
    packet::INTERNED_DATA,
    packet::TRACE_CONFIG,
    packet::FTRACE_STATS,
    packet::SYSTEM_INFO,
    packet::COMPRESSED_PACKETS,
    packet::ZSTD_COMPRESSED_PACKETS,
];

/// What packets carry for their own sake.
const ENVELOPE: [u32; 7] = [
    packet::TRUSTED_UID,
    packet::TIMESTAMP,
    packet::SEQUENCE_ID,
    packet::SEQUENCE_FLAGS,
    packet::PREVIOUS_PACKET_DROPPED,
    packet::SYNCHRONIZATION_MARKER,
    packet::TRACE_STATS,
];

pub(super) fn index(input: Input, source: &mut Source) -> Result<Index, ReadError> {
    let mut pass = Pass::default();
    pass.walk(&input, source)?;
    let (input, pass) = if pass.compressed {
        let spelled = spell_out(&input, source)?;
        let mut again = Pass { compressed: true, ..Pass::default() };
        again.walk(&spelled, source)?;
        (spelled, again)
    } else {
        (input, pass)
    };
    pass.finish(input, source)
}

fn spell_out(input: &Input, source: &mut Source) -> Result<Input, ReadError> {
    let spelled = Spelled { packets: Packets::new(input), pending: Vec::new(), taken: 0, done: false };
    let limit = ratio_limit(input.len());
    let mut content = Bounded::new(Box::new(spelled), limit);
    let inside = Input::spool(&mut content, input.name())?;
    if content.over {
        let what = format!(
            "compressed packets expand to more than {limit} bytes; if you trust the file, decompress it with \
             `traceconv decompress_packets` first"
        );
        return Err(ReadError::Unsupported { format: FORMAT, what });
    }
    if let Some(error) = content.failure {
        if inside.is_empty() {
            return Err(ReadError::damaged(
                FORMAT,
                0,
                format!("the first packet cannot be decompressed: {error}"),
            ));
        }
        source.health.truncated_at.get_or_insert(inside.len());
        source.health.add_repair(format!(
            "a compressed packet is damaged ({error}): only the first {} bytes of what the packets hold are read",
            inside.len()
        ));
    }
    Ok(inside)
}

impl Pass {
    /// Looks at all packets; stops at the first compressed one if none was expected.
    fn walk(&mut self, input: &Input, source: &mut Source) -> Result<(), ReadError> {
        let expect_compressed = self.compressed;
        let mut packets = Packets::new(input);
        loop {
            match packets.next()? {
                Next::Packet(at, content) => {
                    self.packet(at, content, source);
                    if self.compressed && !expect_compressed {
                        *source = Source { health: std::mem::take(&mut source.health), ..Source::default() };
                        source.health.unknown_records.clear();
                        return Ok(());
                    }
                }
                Next::Other => source.health.add_unknown("Perfetto field beside the packets"),
                Next::Cut(at) => {
                    source.health.truncated_at.get_or_insert(at);
                    source
                        .health
                        .add_repair(format!("the file ends inside a packet that begins at offset {at:#x}"));
                    return Ok(());
                }
                Next::Damage(at) => {
                    source.health.truncated_at.get_or_insert(at);
                    source.health.add_repair(format!(
                        "no packet at offset {at:#x}: {} bytes of the file are not read",
                        input.len() - at
                    ));
                    return Ok(());
                }
                Next::End => return Ok(()),
            }
        }
    }

    fn packet(&mut self, at: u64, content: &[u8], source: &mut Source) {
        let mut fields = Fields::new(content);
        let (mut sequence, mut dropped, mut events, mut interned) = (0, false, None, None);
        let mut others = false;
        for (number, value) in &mut fields {
            match number {
                packet::FTRACE_EVENTS => events = Some(value.bytes()),
                packet::SEQUENCE_ID => sequence = value.number(),
                packet::PREVIOUS_PACKET_DROPPED => dropped = value.number() != 0,
                packet::INTERNED_DATA => interned = Some(value.bytes()),
                packet::PROCESS_TREE => self.process_tree(value.bytes()),
                packet::SYSTEM_INFO => system_info(value.bytes(), source),
                packet::FTRACE_STATS => self.ftrace_stats(value.bytes()),
                packet::TRACE_CONFIG => self.trace_config(value.bytes()),
                packet::COMPRESSED_PACKETS | packet::ZSTD_COMPRESSED_PACKETS => {
                    if self.compressed {
                        source.health.add_unknown("Perfetto compressed packets within compressed packets");
                    }
                    self.compressed = true;
                }
                _ => {}
            }
            others |= !KNOWN_CONTENT.contains(&number) && !ENVELOPE.contains(&number);
        }
        if fields.damaged() {
            source.health.add_unknown("damaged Perfetto packet");
        }
        self.uninteresting += u64::from(others);
        // Perfetto marks the first packet of every sequence as if some had been dropped before it.
        let first = self.sequences.insert(sequence);
        if let Some(interned) = interned {
            self.interned(sequence, interned);
        }
        if let Some(message) = events {
            let offset = at + offset_in(content, message);
            self.bundle(sequence, dropped && !first, offset, message, source);
        }
    }

    fn bundle(&mut self, sequence: u64, dropped: bool, offset: u64, message: &[u8], source: &mut Source) {
        let (mut cpu, mut after_loss, mut clock) = (None, dropped, 0);
        for (number, value) in Fields::new(message) {
            match number {
                bundle::CPU => cpu = Some(value.number()),
                bundle::LOST_EVENTS => after_loss |= value.number() != 0,
                bundle::FTRACE_CLOCK => clock = value.number(),
                bundle::COMPACT_SCHED => self.compact |= !value.bytes().is_empty(),
                bundle::ERROR => source.health.add_unknown("ring-buffer page that Perfetto could not read"),
                bundle::GENERIC_EVENT_DESCRIPTORS => self.generic_event(value.bytes()),
                _ => {}
            }
        }
        let Ok(cpu) = CpuId::try_from(cpu.unwrap_or(0)) else {
            source.health.add_unknown("Perfetto bundle of an impossible CPU");
            return;
        };
        let Ok(len) = u32::try_from(message.len()) else { return };
        self.clocks.insert(clock);
        self.streams.entry((sequence, cpu)).or_default().push(BundleAt { offset, len, after_loss });
    }

    /// `GenericEventDescriptor`: a field number with a group, and a `DescriptorProto` that begins with the event's name.
    fn generic_event(&mut self, message: &[u8]) {
        let (mut id, mut name) = (0, None);
        for (number, value) in Fields::new(message) {
            match number {
                1 => id = value.number() as u32,
                2 => name = find(value.bytes(), 1).map(Value::text),
                _ => {}
            }
        }
        if let Some(name) = name {
            self.generics.insert(id, name);
        }
    }

    /// `InternedData.kernel_symbols`.
    fn interned(&mut self, sequence: u64, message: &[u8]) {
        const KERNEL_SYMBOLS: u32 = 26;
        for (_, value) in Fields::new(message).filter(|&(number, _)| number == KERNEL_SYMBOLS) {
            let symbol = value.bytes();
            if let (Some(iid), Some(text)) = (find(symbol, 1), find(symbol, 2)) {
                self.symbols.insert((sequence, iid.number()), text.text());
            }
        }
    }

    fn process_tree(&mut self, message: &[u8]) {
        const PROCESSES: u32 = 1;
        const THREADS: u32 = 2;
        for (number, value) in Fields::new(message) {
            let fields = Fields::new(value.bytes());
            match number {
                PROCESSES => {
                    let (mut pid, mut cmdline, mut is_comm) = (None, None, false);
                    for (number, value) in fields {
                        match number {
                            1 => pid = Some(Pid::new(value.int32())),
                            3 => drop(cmdline.get_or_insert_with(|| value.text())),
                            9 => is_comm = value.number() != 0,
                            _ => {}
                        }
                    }
                    let Some(pid) = pid else { continue };
                    let thread = self.threads.entry(pid).or_default();
                    thread.tgid = Some(pid);
                    // A command line is not what the kernel calls the task, unless Perfetto says so.
                    thread.name = cmdline.filter(|_| is_comm).or(thread.name.take());
                }
                THREADS => {
                    let (mut tid, mut thread) = (None, Thread::default());
                    for (number, value) in fields {
                        match number {
                            1 => tid = Some(Pid::new(value.int32())),
                            2 => thread.name = Some(value.text()).filter(|name| !name.is_empty()),
                            3 => thread.tgid = Some(Pid::new(value.int32())),
                            _ => {}
                        }
                    }
                    if let Some(tid) = tid {
                        self.threads.insert(tid, thread);
                    }
                }
                _ => {}
            }
        }
    }

    /// Overruns by CPU at the start and at the end of each tracing session; the sessions of a file share one buffer.
    fn ftrace_stats(&mut self, message: &[u8]) {
        const START: u64 = 1;
        let at_start = find(message, 1).is_some_and(|phase| phase.number() == START);
        for (_, value) in Fields::new(message).filter(|&(number, _)| number == 2) {
            let number = |field| find(value.bytes(), field).map_or(0, Value::number);
            let lost = number(3).saturating_add(number(4)).saturating_add(number(8));
            let (least, most) = self.overruns.entry(number(1)).or_insert((u64::MAX, 0));
            if at_start {
                *least = lost.min(*least);
            } else {
                *most = lost.max(*most);
            }
        }
    }

    /// `TraceConfig.data_sources.config.ftrace_config`: what was switched on.
    fn trace_config(&mut self, message: &[u8]) {
        let sources = Fields::new(message).filter(|&(number, _)| number == 2);
        for config in sources.filter_map(|(_, source)| find(find(source.bytes(), 1)?.bytes(), 100)) {
            for (number, value) in Fields::new(config.bytes()) {
                match number {
                    // A bare event name may be of any group, and `group/*` of any event.
                    1 => match value.text().split_once('/') {
                        Some((group, name)) if name != "*" => {
                            self.events_recorded.insert(format!("{group}:{name}"));
                        }
                        Some(_) | None => self.events_implied = true,
                    },
                    // atrace categories.
                    2 => self.events_implied = true,
                    _ => {}
                }
            }
        }
    }

    fn finish(self, input: Input, source: &mut Source) -> Result<Index, ReadError> {
        if self.streams.is_empty() && source.health.truncated_at == Some(0) {
            return Err(ReadError::damaged(FORMAT, 0, "the first packet is not whole"));
        }
        let meta = &mut source.meta;
        meta.format = match (self.compact, self.compressed) {
            (false, false) => FORMAT.to_owned(),
            (true, false) => format!("{FORMAT} (compact_sched)"),
            (false, true) => format!("{FORMAT} (compressed packets)"),
            (true, true) => format!("{FORMAT} (compact_sched, compressed packets)"),
        };
        meta.resolution_ns = 1;
        let mut clocks = self.clocks.iter().map(|&clock| {
            usize::try_from(clock)
                .ok()
                .and_then(|clock| FTRACE_CLOCKS.get(clock))
                .map_or("unknown", |name| *name)
        });
        meta.clock = clocks.next().map(str::to_owned);
        if clocks.next().is_some() {
            source
                .health
                .add_note("bundles are of several trace clocks; times are compared as if of one".to_owned());
        }
        if !self.events_recorded.is_empty() && !self.events_implied {
            meta.events_recorded = Some(self.events_recorded);
        }
        let overruns = self
            .overruns
            .values()
            .map(|&(least, most)| most.saturating_sub(if least == u64::MAX { 0 } else { least }));
        let lost = overruns.fold(0, u64::saturating_add);
        if lost > 0 {
            source.health.lost_events = source.health.lost_events.saturating_add(lost);
            source
                .health
                .add_note(format!("ftrace's own counters say that {lost} events were overrun or dropped"));
        }
        if self.uninteresting > 0 {
            source.health.add_note(format!(
                "{} packets of other data sources than ftrace are not read",
                self.uninteresting
            ));
        }
        let mut reader = EventReader::new(meta.kernel_release.as_deref(), meta.arch.as_deref());
        reader.symbols = self.symbols;
        reader.generics = self.generics;
        if meta.kernel_release.is_none() {
            source
                .health
                .add_note("no kernel release: task states are read as of v4.14 and later".to_owned());
        }
        Ok(Index { input, streams: self.streams, reader, threads: self.threads })
    }
}

/// `SystemInfo`.
fn system_info(message: &[u8], source: &mut Source) {
    let meta = &mut source.meta;
    for (number, value) in Fields::new(message) {
        match number {
            1 => {
                for (number, value) in Fields::new(value.bytes()) {
                    match number {
                        2 => drop(meta.facts.insert("kernel_version".to_owned(), value.text())),
                        3 => meta.kernel_release = Some(value.text()),
                        4 => meta.arch = Some(value.text()),
                        _ => {}
                    }
                }
            }
            3 => drop(meta.facts.insert("hz".to_owned(), value.number().to_string())),
            4 => meta.recorder = Some(value.text()),
            8 => meta.cpus_recorded = u32::try_from(value.number()).ok(),
            _ => {}
        }
    }
}

/// The first field of this number.
fn find(message: &[u8], field: u32) -> Option<Value<'_>> {
    Fields::new(message).find(|&(number, _)| number == field).map(|(_, value)| value)
}

/// Where in `whole` its subslice `part` begins. An empty part may be no subslice at all (a damaged field that holds a number
/// instead of bytes) and begins nowhere.
fn offset_in(whole: &[u8], part: &[u8]) -> u64 {
    if part.is_empty() { 0 } else { (part.as_ptr().addr() - whole.as_ptr().addr()) as u64 }
}
