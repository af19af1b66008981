//! Records to events: what each record type means, whatever container it comes in.
//!
//! Samples are the fast path: id → event, payload → sink, nothing allocated. All else is rare.

use super::attr::{Attr, Attrs, HEADER, SideId, ids};
use super::bytes::Bytes;
use super::feature::{Facts, clock_name};
use super::sink::RecordSink;
use super::tracing;
use crate::source::Source;
use crate::tracepoint::{Machine, RawRecord, Tracepoints, until_nul};
use crate::{Endian, ReadError};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use ttwu_model::{CpuId, LossWindow, NoteKind, Pid, StrId, TaskNote, Time, TraceHealth};

/// Record types, as perf and the kernel number them.
mod record {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const UNTHROTTLE: u32 = 6;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const LOST_SAMPLES: u32 = 13;
    /// The kernel's own types end here (`CALLCHAIN_DEFERRED`).
    pub(super) const KERNEL_LAST: u32 = 22;
    pub(super) const ATTR: u32 = 64;
    pub(super) const TRACING_DATA: u32 = 66;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const ID_INDEX: u32 = 69;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
    /// perf's own types end here (`SCHEDSTAT_DOMAIN`).
    pub(super) const USER_LAST: u32 = 86;
}

/// Where samples go.
pub(super) trait Sink {
    /// A tracepoint record; says whose it is (`common_pid`) where it looked.
    fn sample(
        &mut self,
        tracepoint: usize,
        payload: &[u8],
        at: Time,
        cpu: CpuId,
        tracepoints: &mut Tracepoints,
        source: &mut Source,
    ) -> Pid;
    /// Samples of this CPU were lost just before here.
    fn lost(&mut self, at: Time, cpu: CpuId, count: Option<NonZeroU32>);
    /// The recorder noted something about a task; its place among the events is the sink's to find.
    fn note(&mut self, note: TaskNote);
    /// All buffers have been emptied once.
    fn finish_round(&mut self);
    /// The input has ended.
    fn finish(&mut self);
    /// Says what times had to be mended.
    fn say_repairs(&self, health: &mut TraceHealth);
}

/// What to do after a stretch of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Go on; the rest of the stretch, if any, is an incomplete record.
    More,
    /// The next so many bytes are no records.
    Skip(u64),
    /// The next so many bytes are tracing data.
    Tracing(u64),
    /// The last record, which begins so many bytes before the end of what was used, holds a piece of compressed stream.
    Compressed(usize),
}

/// A loss whose place in time is not settled yet.
#[derive(Debug, Clone, Copy)]
struct HeldLoss {
    at: Time,
    cpu: CpuId,
    count: Option<NonZeroU32>,
}

/// A task's name and process from a side record.
#[derive(Debug, Clone, Copy)]
struct SideTask {
    pid: Pid,
    tgid: Pid,
    name: Option<StrId>,
}

/// The interpreter of records.
pub(super) struct Engine<S> {
    endian: Endian,
    pub(super) sink: S,
    pub(super) attrs: Attrs,
    pub(super) facts: Facts,
    tracepoints: Option<Tracepoints>,
    /// Index into `tracepoints` of each event in `attrs`.
    tracepoint_of: Vec<Option<usize>>,
    /// CPUs at or above it are not the machine's.
    cpus: usize,
    cpu_of_id: BTreeMap<u64, u32>,
    held: Vec<HeldLoss>,
    side: Vec<SideTask>,
    /// Samples whose task has the same number in the recorder's pid namespace, and another one.
    same_pids: u64,
    other_pids: u64,
    /// Records between here and the next round's end cannot be found.
    lost_track: bool,
    /// Time of the last sample before a stretch that could not be read, until the first one after it.
    gap_from: Option<Time>,
    last_at: Time,
    lost_total: u64,
    lost_samples_total: u64,
    other_samples: u64,
    no_cpu: u64,
    throttled: u64,
    /// Tasks known to be out of the pid table.
    released: BTreeSet<Pid>,
    /// Records of all kinds: perf relates lost events to it.
    records: u64,
}

impl Engine<RecordSink> {
    /// Shows the records that are ready.
    pub(super) fn visit(&mut self, visit: &mut dyn FnMut(&RawRecord<'_>)) {
        if let Some(tracepoints) = &self.tracepoints {
            self.sink.visit(tracepoints.formats(), visit);
        }
    }
}

impl<S: Sink> Engine<S> {
    pub(super) fn new(endian: Endian, sink: S) -> Self {
        Self {
            endian,
            sink,
            attrs: Attrs::default(),
            facts: Facts::default(),
            tracepoints: None,
            tracepoint_of: Vec::new(),
            cpus: usize::MAX,
            cpu_of_id: BTreeMap::new(),
            held: Vec::new(),
            side: Vec::new(),
            same_pids: 0,
            other_pids: 0,
            lost_track: false,
            gap_from: None,
            last_at: Time::ZERO,
            lost_total: 0,
            lost_samples_total: 0,
            other_samples: 0,
            no_cpu: 0,
            throttled: 0,
            released: BTreeSet::new(),
            records: 0,
        }
    }

    /// Compiles what the header said, before the first sample.
    ///
    /// # Errors
    /// When tracepoints were recorded but their formats are not in the file.
    pub(super) fn prepare(&mut self, source: &mut Source) -> Result<(), ReadError> {
        self.attrs.index();
        let wanted = self.attrs.list().iter().filter_map(Attr::tracepoint).count();
        let tracing = match self.facts.tracing.take() {
            Some(tracing) if !tracing.formats.is_empty() || wanted == 0 => tracing,
            None if wanted == 0 => tracing::Tracing::default(),
            Some(_) | None => {
                let what = "tracepoints were recorded but their formats are missing: was perf killed before it could \
                            write the file's end? record again and stop it with Ctrl-C";
                return Err(ReadError::Unsupported { format: "perf.data", what: what.to_owned() });
            }
        };
        if wanted == 0 {
            source
                .health
                .add_note("no tracepoints were recorded, so there are no scheduler events".to_owned());
        }
        let machine =
            Machine { arch: source.meta.arch.clone(), kernel_release: source.meta.kernel_release.clone() };
        let tracepoints = Tracepoints::new(tracing.formats, &machine, tracing.symbols, source);
        let mut recorded = BTreeSet::new();
        self.tracepoint_of.clear();
        for attr in self.attrs.list() {
            let index = attr.tracepoint().and_then(|id| tracepoints.index(id));
            match (attr.tracepoint(), index) {
                (_, Some(index)) => {
                    let format = &tracepoints.formats()[index];
                    recorded.insert(format!("{}:{}", format.system(), format.name()));
                }
                (Some(id), None) => {
                    source
                        .health
                        .add_repair(format!("tracepoint {id} has no format; its events are skipped"));
                }
                (None, None) => {}
            }
            self.tracepoint_of.push(index);
        }
        self.tracepoints = Some(tracepoints);
        self.cpus = self.facts.cpus_possible.map_or(usize::MAX, |cpus| cpus as usize);
        source.meta.events_recorded = Some(recorded);
        source.meta.cpus_recorded = self.facts.cpus_possible;
        let topology = &self.facts.topology;
        source.meta.cpus_online = Some(topology.online()).filter(|online| !online.is_empty());
        match topology.build(source.meta.arch.as_deref()) {
            // ttwu's own recorder has said more already: clusters, distances, capacities.
            _ if source.meta.topology_text.is_some() => {}
            Ok(topology) => source.meta.topology_text = topology.map(|topology| topology.to_string()),
            Err(error) => source.health.add_repair(format!("ignored the header's topology: {error}")),
        }
        source.meta.resolution_ns = 1;
        let clock =
            self.attrs.list().iter().find_map(Attr::clockid).map_or_else(|| "perf".to_owned(), clock_name);
        source.meta.clock = Some(clock);
        if self.attrs.list().iter().any(|attr| attr.tracepoint().is_some() && !attr.has_time()) {
            source
                .health
                .add_repair("samples carry no time; all are shown at 0 (record with --timestamp)".to_owned());
        }
        Ok(())
    }

    /// Walks whole records at the start of `stretch`, which begins at `offset` of the input. Returns the bytes used.
    ///
    /// # Errors
    /// As [`Engine::prepare`], in pipe mode.
    pub(super) fn walk(
        &mut self,
        stretch: &[u8],
        offset: u64,
        source: &mut Source,
    ) -> Result<(usize, Then), ReadError> {
        let mut used = if self.lost_track { self.find_round(stretch) } else { 0 };
        while let Some(header) = stretch.get(used..used + HEADER) {
            let kind = self.endian.u32(header, 0).expect("length checked");
            let size = record_size(header, self.endian).expect("length checked");
            if size < HEADER || kind == 0 || kind > (1 << 16) {
                self.lose_track(offset + used as u64, source);
                used += 1;
                used += self.find_round(&stretch[used..]);
                continue;
            }
            let Some(record) = stretch.get(used..used + size) else { break };
            used += size;
            self.records += 1;
            if kind == record::SAMPLE {
                if self.tracepoints.is_none() {
                    self.prepare(source)?;
                }
                self.sample(record, source);
                continue;
            }
            match kind {
                record::COMPRESSED | record::COMPRESSED2 => return Ok((used, Then::Compressed(size))),
                record::TRACING_DATA => {
                    let len = u64::from(self.endian.u32(record, HEADER).unwrap_or(0));
                    return Ok((used, Then::Tracing(len.next_multiple_of(8))));
                }
                record::AUXTRACE => {
                    return Ok((used, Then::Skip(self.endian.u64(record, HEADER).unwrap_or(0))));
                }
                _ => self.side_record(kind, record, source),
            }
        }
        Ok((used, Then::More))
    }

    /// The record at the start of `stretch`, if it is whole.
    pub(super) fn first_record<'a>(&self, stretch: &'a [u8]) -> Option<&'a [u8]> {
        let size = record_size(stretch, self.endian)?;
        stretch.get(..size.max(HEADER))
    }

    /// The piece of compressed stream in a record, if it is of that type.
    pub(super) fn compressed_piece<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        match self.endian.u32(record, 0)? {
            record::COMPRESSED => record.get(HEADER..),
            record::COMPRESSED2 => {
                // The newer form states the length, because records are padded.
                let len = self.endian.u64(record, HEADER)?;
                let piece = record.get(HEADER + 8..)?;
                Some(usize::try_from(len).ok().and_then(|len| piece.get(..len)).unwrap_or(piece))
            }
            _ => None,
        }
    }

    /// The file's byte order.
    pub(super) fn endian(&self) -> Endian {
        self.endian
    }

    fn sample(&mut self, record: &[u8], source: &mut Source) {
        let endian = self.endian;
        let Some(attr) = self.attrs.of_sample(record, endian) else {
            source.health.add_unknown("sample of an unknown event");
            return;
        };
        let layout = self.attrs.list()[attr].layout;
        let Some(index) = self.tracepoint_of[attr] else {
            self.other_samples += 1;
            return;
        };
        let time = layout.time.map_or(Some(0), |offset| endian.u64(record, offset));
        let cpu = match layout.cpu {
            Some(offset) => endian.u32(record, offset),
            None => {
                let id = layout.id.and_then(|offset| endian.u64(record, offset));
                let known = id.and_then(|id| self.cpu_of_id.get(&id).copied());
                self.no_cpu += u64::from(known.is_none());
                Some(known.unwrap_or(0))
            }
        };
        let (Some(time), Some(Ok(cpu)), Some(payload)) =
            (time, cpu.map(|cpu| CpuId::try_from(u64::from(cpu))), layout.raw(record, endian))
        else {
            source.health.add_unknown("damaged sample");
            return;
        };
        let at = Time::from_ns(time);
        if cpu.index() >= self.cpus {
            source.health.foreign_cpu_events += 1;
        }
        if !self.held.is_empty() {
            self.settle_losses(cpu, at);
        }
        if let Some(from) = self.gap_from.take() {
            source.health.add_loss(LossWindow { cpu: None, from: from.min(at), to: at, count: None });
        }
        self.last_at = at;
        let tracepoints = self.tracepoints.as_mut().expect("prepared before the first sample");
        let by = self.sink.sample(index, payload, at, cpu, tracepoints, source);
        if let Some(tid) = layout.tid.and_then(|offset| endian.u32(record, offset)) {
            // Tasks outside the recorder's namespace are 0 in it, dead ones −1.
            let tid = tid.cast_signed();
            if tid > 0 && by.number() > 0 {
                self.same_pids += u64::from(tid == by.number());
                self.other_pids += u64::from(tid != by.number());
            } else if tid == -1 && by.number() > 0 {
                let process = layout.tid.and_then(|offset| endian.u32(record, offset - 4));
                self.released(by, Pid::new(process.map_or(-1, u32::cast_signed)), at);
            }
        }
    }

    /// The kernel gives −1 for the thread of a sample whose task has left the pid table. Noted once, before that sample.
    fn released(&mut self, pid: Pid, tgid: Pid, at: Time) {
        if self.released.insert(pid) {
            // Notes go behind events of their own time.
            let at = Time::from_ns(at.as_ns().saturating_sub(1));
            self.sink.note(TaskNote { before: 0, at, kind: NoteKind::Released { pid, tgid } });
        }
    }

    /// Puts losses of `cpu` before its next sample. The kernel notes a loss when it has room again, *after* it took the
    /// next sample's time; by their times alone the loss would come too late.
    fn settle_losses(&mut self, cpu: CpuId, at: Time) {
        let sink = &mut self.sink;
        self.held.retain(|loss| {
            if loss.cpu == cpu {
                sink.lost(loss.at.min(at), loss.cpu, loss.count);
            }
            loss.cpu != cpu
        });
    }

    fn side_record(&mut self, kind: u32, record: &[u8], source: &mut Source) {
        let endian = self.endian;
        let field = |index: usize| endian.u64(record, HEADER + 8 * index);
        match kind {
            record::FINISHED_ROUND => self.sink.finish_round(),
            record::COMM | record::FORK | record::EXIT => self.task_record(kind, record, source),
            record::LOST => {
                let (_, id) = self.attrs.trailer().split(record, endian);
                self.lose(field(1).unwrap_or(0), field(0), id, source);
            }
            record::LOST_SAMPLES => {
                self.lost_samples_total = self.lost_samples_total.saturating_add(field(0).unwrap_or(0));
            }
            record::THROTTLE => self.throttled += 1,
            record::UNTHROTTLE => {
                let (_, id) = self.attrs.trailer().split(record, endian);
                self.hold(id, field(1), None, source);
            }
            record::ATTR => self.add_attr(record),
            record::FEATURE => {
                let feature = field(0).and_then(|feature| u32::try_from(feature).ok()).unwrap_or(u32::MAX);
                self.facts.add(feature, record.get(HEADER + 8..).unwrap_or_default(), endian, source);
            }
            record::ID_INDEX => {
                for entry in record.get(HEADER + 8..).unwrap_or_default().chunks_exact(32) {
                    if let (Some(id), Some(cpu)) = (endian.u64(entry, 0), endian.u64(entry, 16)) {
                        self.cpu_of_id.insert(id, u32::try_from(cpu).unwrap_or(u32::MAX));
                    }
                }
            }
            1..=record::KERNEL_LAST | record::ATTR..=record::USER_LAST => {}
            _ => source.health.add_unknown(&format!("perf record type {kind}")),
        }
    }

    /// A record about a task: COMM has pid, tid, name; FORK and EXIT have pid, ppid, tid, ptid.
    fn task_record(&mut self, kind: u32, record: &[u8], source: &mut Source) {
        let (body, id) = self.attrs.trailer().split(record, self.endian);
        let mut body = Bytes::new(&body[HEADER..], self.endian);
        let mut pid = || body.u32().map(|pid| Pid::new(pid.cast_signed()));
        let noted = if kind == record::COMM {
            let (Some(tgid), Some(pid)) = (pid(), pid()) else { return };
            let name = source.strings.intern(&String::from_utf8_lossy(until_nul(body.rest())));
            self.side.push(SideTask { pid, tgid, name: Some(name) });
            NoteKind::Name { pid, tgid, name }
        } else {
            let (Some(tgid), Some(parent_tgid), Some(pid), Some(parent)) = (pid(), pid(), pid(), pid())
            else {
                return;
            };
            if kind == record::FORK {
                self.side.push(SideTask { pid, tgid, name: None });
                self.released.remove(&pid);
                NoteKind::Fork { pid, tgid, parent, parent_tgid }
            } else {
                NoteKind::Exit { pid, tgid }
            }
        };
        self.sink.note(TaskNote { before: 0, at: Time::from_ns(id.time.unwrap_or(0)), kind: noted });
    }

    /// A counted loss. More than 32 bits can say is damage; it is counted up to there.
    fn lose(&mut self, count: u64, id: Option<u64>, side: SideId, source: &mut Source) {
        self.lost_total = self.lost_total.saturating_add(count);
        let count = NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX));
        if count.is_some() {
            self.hold(side, id, count, source);
        }
    }

    fn hold(&mut self, side: SideId, id: Option<u64>, count: Option<NonZeroU32>, source: &mut Source) {
        let cpu = side.cpu.or_else(|| id.or(side.id).and_then(|id| self.cpu_of_id.get(&id).copied()));
        let cpu = cpu.and_then(|cpu| CpuId::try_from(u64::from(cpu)).ok());
        match (side.time, cpu) {
            (Some(time @ 1..), Some(cpu)) => self.held.push(HeldLoss { at: Time::from_ns(time), cpu, count }),
            (time, _) => {
                let to = time.map_or(self.last_at, Time::from_ns);
                let count = count.map(|count| u64::from(count.get()));
                source.health.add_loss(LossWindow { cpu: None, from: self.last_at.min(to), to, count });
            }
        }
    }

    fn add_attr(&mut self, record: &[u8]) {
        let body = &record[HEADER..];
        let size = self.endian.u32(body, 4).unwrap_or(0) as usize;
        if let Some(attr) = Attr::parse(body, self.endian) {
            self.attrs.push(attr, ids(body.get(size..).unwrap_or_default(), self.endian));
            // One that comes after samples counts too.
            self.attrs.index();
            let index = attr_index(&self.tracepoints, self.attrs.list().last());
            if self.tracepoints.is_some() {
                self.tracepoint_of.push(index);
            }
        }
    }

    fn lose_track(&mut self, offset: u64, source: &mut Source) {
        if !self.lost_track {
            self.lost_track = true;
            self.gap_from = Some(self.last_at);
            let text = format!("no record at offset {offset:#x}; skipped to the end of a round");
            source.health.add_repair(text);
        }
    }

    /// Bytes up to the next round's end: the only record that can be told by its looks.
    fn find_round(&mut self, stretch: &[u8]) -> usize {
        let mut mark = [0; 8];
        match self.endian {
            Endian::Little => (mark[0], mark[6]) = (68, 8),
            Endian::Big => (mark[3], mark[7]) = (68, 8),
        }
        // At any offset: what was damaged may have been a length.
        match stretch.windows(8).position(|bytes| bytes == mark) {
            Some(index) => {
                self.lost_track = false;
                index
            }
            None => stretch.len().saturating_sub(7),
        }
    }

    /// Hands on names and processes, once it is known whether their pids mean what pids in payloads mean.
    pub(super) fn release_side(&mut self, source: &mut Source) {
        if self.other_pids > self.same_pids {
            self.side.clear();
        } else if self.same_pids > 0 {
            self.hand_on_side(source);
        }
    }

    fn hand_on_side(&mut self, source: &mut Source) {
        for task in self.side.drain(..) {
            source.tgids.push((task.pid, task.tgid));
            source.names.extend(task.name.map(|name| (task.pid, name)));
        }
    }

    /// Releases losses after which their CPU has no sample.
    pub(super) fn finish_losses(&mut self) {
        for loss in std::mem::take(&mut self.held) {
            self.sink.lost(loss.at, loss.cpu, loss.count);
        }
    }

    /// Says what is known only at the end.
    pub(super) fn finish(&mut self, source: &mut Source) {
        source.meta.facts.insert("perf.records".to_owned(), self.records.to_string());
        self.sink.say_repairs(&mut source.health);
        if self.other_pids > self.same_pids {
            self.side.clear();
            let text = "recorded inside a pid namespace: pids are the machine's; names and processes of perf's side \
                        records have other numbers and are not used";
            source.health.add_note(text.to_owned());
        } else {
            self.hand_on_side(source);
        }
        if let Some(from) = self.gap_from.take() {
            source.health.add_loss(LossWindow { cpu: None, from, to: self.last_at.max(from), count: None });
        }
        if let Some(more) = self.lost_samples_total.checked_sub(self.lost_total).filter(|&more| more > 0) {
            // perf's own totals include losses after which nothing was written any more.
            source.health.lost_events = source.health.lost_events.saturating_add(more);
            source.health.add_note(format!("{more} of the lost events are known only from perf's totals"));
        }
        if self.other_samples > 0 {
            source
                .health
                .add_note(format!("{} samples of other events than tracepoints skipped", self.other_samples));
        }
        if self.no_cpu > 0 {
            let text =
                format!("{} samples carry no CPU; shown on CPU 0 (record with --sample-cpu)", self.no_cpu);
            source.health.add_repair(text);
        }
        if self.throttled > 0 {
            source.health.add_note(format!("events were throttled {} times", self.throttled));
        }
    }
}

/// Bytes of the record at the start of `bytes`, its header included.
#[inline]
fn record_size(bytes: &[u8], endian: Endian) -> Option<usize> {
    endian.u16(bytes, 6).map(usize::from)
}

fn attr_index(tracepoints: &Option<Tracepoints>, attr: Option<&Attr>) -> Option<usize> {
    tracepoints.as_ref()?.index(attr?.tracepoint()?)
}
