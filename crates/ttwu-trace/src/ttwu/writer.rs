//! Writing `.ttwu` as events come, for the recorder and for conversions of files larger than memory.

use super::block::{self, Kind};
use super::columns::{EVENTS_MAX, Encoder};
use super::parts::{Written, put_health, put_meta, put_note, put_string, put_task};
use super::wire::{put, put_bytes};
use super::{HEADER, MAGIC, MAJOR, MINOR};
use crate::Chunk;
use crate::convert::{TraceWriter, Written as Output};
use std::io::{self, Write};
use ttwu_model::{Event, Strings, TaskNote, TaskTable, Trace, TraceMeta, TraceParts};

/// Lists of strings and tasks beyond this many bytes go to a further block.
const LIST_BYTES: usize = 2 << 20;

/// Writes a whole trace as a `.ttwu` file and gives the file's length.
///
/// # Errors
/// From `out`.
pub fn write_ttwu(out: impl Write, trace: &Trace) -> io::Result<u64> {
    write_ttwu_with(out, trace, &[])
}

/// As [`write_ttwu`], with side tables: name and content of each.
///
/// # Errors
/// From `out`, or when a table is larger than 15 MiB.
pub fn write_ttwu_with(out: impl Write, trace: &Trace, tables: &[(String, Vec<u8>)]) -> io::Result<u64> {
    let TraceParts { meta, strings, tasks, health: _, notes } = trace.parts();
    let mut writer = TtwuWriter::new(out, meta)?;
    writer.write(Chunk { events: trace.events(), strings, tasks, notes })?;
    for (name, content) in tables {
        writer.side_table(name, content)?;
    }
    Ok(writer.finish(trace.parts())?.1)
}

/// Writes a `.ttwu` file chunk by chunk.
///
/// What was written up to the last [`TtwuWriter::flush`] survives a crash; [`TtwuWriter::finish`] adds what is only known
/// at the end. The writer does not buffer beyond one block, so give it a file as it is.
pub struct TtwuWriter<W: Write> {
    out: W,
    at: u64,
    pending: Vec<Event>,
    notes: Vec<TaskNote>,
    encoder: Encoder,
    strings_written: usize,
    tasks_written: Vec<Option<Written>>,
    events_written: u64,
    raw: Vec<u8>,
    scratch: Vec<u8>,
}

impl<W: Write> TtwuWriter<W> {
    /// Begins a file with what is known about the source so far.
    ///
    /// # Errors
    /// From `out`.
    pub fn new(mut out: W, meta: &TraceMeta) -> io::Result<Self> {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..10].copy_from_slice(&MAJOR.to_le_bytes());
        header[10..12].copy_from_slice(&MINOR.to_le_bytes());
        out.write_all(&header)?;
        let mut writer = Self {
            out,
            at: HEADER as u64,
            pending: Vec::new(),
            notes: Vec::new(),
            encoder: Encoder::default(),
            strings_written: 0,
            tasks_written: Vec::new(),
            events_written: 0,
            raw: Vec::new(),
            scratch: Vec::new(),
        };
        put_meta(&mut writer.raw, meta);
        writer.put_block(Kind::META)?;
        Ok(writer)
    }

    /// Adds events, with all strings and tasks known so far. Both tables may only grow from call to call; tasks may
    /// become better known (a name, a process, an exit).
    ///
    /// # Errors
    /// From the output.
    ///
    /// # Panics
    /// If events are not in time order, within a call or across calls.
    pub fn write(&mut self, chunk: Chunk<'_>) -> io::Result<()> {
        self.notes.extend_from_slice(chunk.notes);
        let mut events = chunk.events;
        while self.pending.len() + events.len() >= EVENTS_MAX {
            let (now, later) = events.split_at(EVENTS_MAX - self.pending.len());
            self.pending.extend_from_slice(now);
            self.put_events(chunk.strings, chunk.tasks)?;
            events = later;
        }
        self.pending.extend_from_slice(events);
        Ok(())
    }

    /// Writes what is pending as a block of its own, so that it survives a crash. Blocks of a few events are wasteful:
    /// call it about once a second.
    ///
    /// # Errors
    /// From the output.
    pub fn flush(&mut self, strings: &Strings, tasks: &TaskTable) -> io::Result<()> {
        self.put_events(strings, tasks)?;
        self.out.flush()
    }

    /// Adds a table beside the events, in whatever form its owner gives it (reasons of a simulator's decisions, say).
    /// Read it with [`read_side_table`](crate::read_side_table).
    ///
    /// # Errors
    /// From the output, or when it is larger than 15 MiB.
    pub fn side_table(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        self.raw.clear();
        put_bytes(&mut self.raw, name.as_bytes());
        self.raw.extend_from_slice(content);
        self.put_block(Kind::SIDE)
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.at
    }

    /// Events taken so far, pending ones included.
    #[must_use]
    pub fn events_written(&self) -> u64 {
        self.events_written + self.pending.len() as u64
    }

    /// Ends the file: pending events, then the final tables, meta data and health (notes come with the chunks). Gives the
    /// output and the file's length.
    ///
    /// # Errors
    /// From the output.
    pub fn finish(mut self, parts: &TraceParts) -> io::Result<(W, u64)> {
        self.put_events(&parts.strings, &parts.tasks)?;
        self.raw.clear();
        let mut section = Vec::new();
        put_meta(&mut section, &parts.meta);
        put_bytes(&mut self.raw, &section);
        section.clear();
        put_health(&mut section, &parts.health);
        put_bytes(&mut self.raw, &section);
        put(&mut self.raw, self.events_written);
        let summary = self.at;
        self.put_block(Kind::SUMMARY)?;
        self.raw.clear();
        self.raw.extend_from_slice(&summary.to_le_bytes());
        self.put_block(Kind::END)?;
        self.out.flush()?;
        Ok((self.out, self.at))
    }

    /// Writes the pending events behind the strings and tasks that are new since the last block.
    fn put_events(&mut self, strings: &Strings, tasks: &TaskTable) -> io::Result<()> {
        self.put_strings(strings)?;
        self.put_tasks(tasks)?;
        self.put_notes()?;
        if self.pending.is_empty() {
            return Ok(());
        }
        self.raw.clear();
        self.encoder.encode(&self.pending, &mut self.raw);
        self.events_written += self.pending.len() as u64;
        self.pending.clear();
        self.put_block(Kind::EVENTS)
    }

    fn put_strings(&mut self, strings: &Strings) -> io::Result<()> {
        self.raw.clear();
        for (id, text) in strings.iter().skip(self.strings_written) {
            put_string(&mut self.raw, id, text);
            if self.raw.len() > LIST_BYTES {
                self.put_block(Kind::STRINGS)?;
                self.raw.clear();
            }
        }
        self.strings_written = strings.len();
        if self.raw.is_empty() { Ok(()) } else { self.put_block(Kind::STRINGS) }
    }

    fn put_tasks(&mut self, tasks: &TaskTable) -> io::Result<()> {
        self.raw.clear();
        self.tasks_written.resize(tasks.len(), None);
        for (id, task) in tasks.iter() {
            let now = Some(Written::of(task));
            let before = std::mem::replace(&mut self.tasks_written[id.index()], now);
            if before == now {
                continue;
            }
            put_task(&mut self.raw, id, task, before);
            if self.raw.len() > LIST_BYTES {
                self.put_block(Kind::TASKS)?;
                self.raw.clear();
            }
        }
        if self.raw.is_empty() { Ok(()) } else { self.put_block(Kind::TASKS) }
    }

    fn put_notes(&mut self) -> io::Result<()> {
        self.raw.clear();
        for note in std::mem::take(&mut self.notes) {
            put_note(&mut self.raw, &note);
            if self.raw.len() > LIST_BYTES {
                self.put_block(Kind::NOTES)?;
                self.raw.clear();
            }
        }
        if self.raw.is_empty() { Ok(()) } else { self.put_block(Kind::NOTES) }
    }

    fn put_block(&mut self, kind: Kind) -> io::Result<()> {
        self.at += block::write(&mut self.out, kind, &self.raw, &mut self.scratch)?;
        Ok(())
    }
}

impl<W: Write> TraceWriter for TtwuWriter<W> {
    fn write(&mut self, chunk: Chunk<'_>) -> io::Result<()> {
        Self::write(self, chunk)
    }

    fn finish(self: Box<Self>, parts: &TraceParts) -> io::Result<Output> {
        let events = self.events_written();
        let (_, bytes) = Self::finish(*self, parts)?;
        Ok(Output { events, bytes })
    }
}
