//! Where samples go: into events, or as they are to whoever wants their fields.

use super::engine::Sink;
use super::rounds::{Rounds, Timed};
use crate::TracepointFormat;
use crate::source::Source;
use crate::tracepoint::{RawRecord, Tracepoints};
use std::num::NonZeroU32;
use ttwu_model::{CpuId, Event, EventFlags, EventKind, Pid, RawEvent, TaskNote, Time, TraceHealth};

/// Makes events.
pub(super) struct EventSink {
    rounds: Rounds<RawEvent>,
    /// Events in order, ready to be taken.
    pub(super) out: Vec<RawEvent>,
    /// Events taken before those.
    taken: u64,
    /// Notes in the file's order, whose place among the events is not settled.
    notes_waiting: Vec<TaskNote>,
    /// Notes that have their place.
    notes: Vec<TaskNote>,
}

impl EventSink {
    pub(super) fn new() -> Self {
        Self {
            rounds: Rounds::new(),
            out: Vec::new(),
            taken: 0,
            notes_waiting: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Moves what is ready out.
    pub(super) fn take(&mut self, out: &mut Vec<RawEvent>, notes: &mut Vec<TaskNote>) {
        self.taken += self.out.len() as u64;
        if out.is_empty() {
            // The next batch will be about as long; growing to it would copy it twice.
            let room = Vec::with_capacity(self.out.len());
            *out = std::mem::replace(&mut self.out, room);
        } else {
            out.append(&mut self.out);
        }
        notes.append(&mut self.notes);
    }

    /// Gives notes up to `until` their place among the events from index `from` of `out` on.
    fn place_notes(&mut self, from: usize, until: Time) {
        if self.notes_waiting.is_empty() {
            return;
        }
        self.notes_waiting.sort_by_key(|note| note.at);
        let settled = self.notes_waiting.partition_point(|note| note.at <= until);
        for mut note in self.notes_waiting.drain(..settled) {
            let index = from + self.out[from..].partition_point(|event| event.event.at <= note.at);
            note.before = self.taken + index as u64;
            self.notes.push(note);
        }
    }
}

impl Sink for EventSink {
    #[inline]
    fn sample(
        &mut self,
        tracepoint: usize,
        payload: &[u8],
        at: Time,
        cpu: CpuId,
        tracepoints: &mut Tracepoints,
        source: &mut Source,
    ) -> Pid {
        let event = tracepoints.event(tracepoint, payload, at, cpu, source);
        let by = event.event.by;
        self.rounds.push(event);
        by
    }

    fn lost(&mut self, at: Time, cpu: CpuId, count: Option<NonZeroU32>) {
        let kind = EventKind::Lost { count };
        let event = Event { at, by: Pid::UNKNOWN, cpu, flags: EventFlags::UNKNOWN, kind };
        self.rounds.push(RawEvent { event, names: [None; 2] });
    }

    fn note(&mut self, note: TaskNote) {
        self.notes_waiting.push(note);
    }

    fn finish_round(&mut self) {
        let from = self.out.len();
        self.rounds.finish_round(&mut self.out);
        self.place_notes(from, self.rounds.handed());
    }

    fn finish(&mut self) {
        let from = self.out.len();
        self.rounds.finish(&mut self.out);
        self.place_notes(from, Time::MAX);
    }

    fn say_repairs(&self, health: &mut TraceHealth) {
        self.rounds.say_repairs(health);
    }
}

/// Keeps records' bytes until their turn comes.
pub(super) struct RecordSink {
    rounds: Rounds<Kept>,
    ready: Vec<Kept>,
    /// Bytes of all records that wait or are ready.
    bytes: Vec<u8>,
}

/// One record in [`RecordSink::bytes`].
#[derive(Debug, Clone, Copy)]
struct Kept {
    at: Time,
    cpu: CpuId,
    tracepoint: u16,
    start: usize,
    len: u32,
}

impl Timed for Kept {
    fn at(&self) -> Time {
        self.at
    }

    fn cpu(&self) -> CpuId {
        self.cpu
    }

    fn set_at(&mut self, at: Time) {
        self.at = at;
    }
}

impl RecordSink {
    pub(super) fn new() -> Self {
        Self { rounds: Rounds::new(), ready: Vec::new(), bytes: Vec::new() }
    }

    /// Shows what is ready and forgets it.
    pub(super) fn visit(&mut self, formats: &[TracepointFormat], visit: &mut dyn FnMut(&RawRecord<'_>)) {
        if self.ready.is_empty() {
            return;
        }
        for kept in self.ready.drain(..) {
            let payload = &self.bytes[kept.start..kept.start + kept.len as usize];
            let format = &formats[usize::from(kept.tracepoint)];
            visit(&RawRecord { at: kept.at, cpu: kept.cpu, format, payload });
        }
        let mut bytes = Vec::with_capacity(self.bytes.len() / 2);
        for kept in self.rounds.waiting_mut() {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[kept.start..kept.start + kept.len as usize]);
            kept.start = start;
        }
        self.bytes = bytes;
    }
}

impl Sink for RecordSink {
    fn sample(
        &mut self,
        tracepoint: usize,
        payload: &[u8],
        at: Time,
        cpu: CpuId,
        _tracepoints: &mut Tracepoints,
        _source: &mut Source,
    ) -> Pid {
        let tracepoint = u16::try_from(tracepoint).expect("a table has fewer than 65536 tracepoints");
        let len = u32::try_from(payload.len()).expect("a record is shorter than 64 KiB");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        self.rounds.push(Kept { at, cpu, tracepoint, start, len });
        Pid::UNKNOWN
    }

    fn lost(&mut self, _at: Time, _cpu: CpuId, _count: Option<NonZeroU32>) {}

    fn note(&mut self, _note: TaskNote) {}

    fn finish_round(&mut self) {
        self.rounds.finish_round(&mut self.ready);
    }

    fn finish(&mut self) {
        self.rounds.finish(&mut self.ready);
    }

    fn say_repairs(&self, health: &mut TraceHealth) {
        self.rounds.say_repairs(health);
    }
}
