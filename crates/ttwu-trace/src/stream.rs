//! Reading a recording: a decoder on its own thread, pid resolution on the caller's.
//!
//! Two threads because decoding and analysing cost about the same; with both, a recording is read at the speed of the
//! slower half. Batches pass through a channel of two, which bounds the memory.

use crate::source::{Decoder, More, Source};
use crate::{Format, Input, ReadError, detect};
use std::path::Path;
use std::sync::mpsc;
use ttwu_model::{
    Event, Pid, RawEvent, Resolver, StrId, Strings, TaskId, TaskInfo, TaskNote, TaskTable, Time, Trace,
    TraceHealth, TraceMeta, TraceParts,
};

/// What the decoder's thread hands over.
struct Batch {
    events: Vec<RawEvent>,
    strings: Vec<Box<str>>,
    tgids: Vec<(Pid, Pid)>,
    names: Vec<(Pid, StrId)>,
    notes: Vec<TaskNote>,
    resolved: Vec<Event>,
    task_rows: Vec<(TaskId, TaskInfo)>,
}

/// How the decoder's thread ended.
struct Ending {
    source: Source,
    error: Option<ReadError>,
}

/// A recording being read, chunk by chunk in time order.
pub struct TraceStream {
    batches: mpsc::Receiver<Batch>,
    decoder: Option<std::thread::JoinHandle<Ending>>,
    resolver: Resolver,
    strings: Strings,
    health: TraceHealth,
    events: Vec<Event>,
    notes: Vec<TaskNote>,
    meta: TraceMeta,
    last: Time,
    format: Format,
}

/// Some further events of a [`TraceStream`], with what is known of tasks and strings so far.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    /// Events in time order, after those of earlier chunks.
    pub events: &'a [Event],
    /// All strings that these events refer to.
    pub strings: &'a Strings,
    /// All tasks that these events refer to.
    pub tasks: &'a TaskTable,
    /// What the recorder noted about tasks between these events.
    pub notes: &'a [TaskNote],
}

impl TraceStream {
    /// Opens a recording of any known format; compression by gzip, xz or zstd around it is undone.
    ///
    /// # Errors
    /// When the file cannot be opened, is of no known format, or its header is unusable.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let (format, decoder, source) = detect::open_path(path)?;
        Ok(Self::start(format, decoder, source))
    }

    /// The same for bytes at hand.
    ///
    /// # Errors
    /// As [`TraceStream::open`].
    pub fn from_input(input: Input) -> Result<Self, ReadError> {
        let (format, decoder, source) = detect::open_input(input)?;
        Ok(Self::start(format, decoder, source))
    }

    pub(crate) fn start(format: Format, mut decoder: Box<dyn Decoder>, mut source: Source) -> Self {
        let (sender, batches) = mpsc::sync_channel(2);
        let meta = source.meta.clone();
        let decode = move || {
            let mut strings_sent = 0;
            loop {
                let mut events = Vec::new();
                let more = decoder.decode(&mut source, &mut events);
                let strings = source.strings.iter().skip(strings_sent).map(|(_, text)| text.into()).collect();
                strings_sent = source.strings.len();
                let tgids = std::mem::take(&mut source.tgids);
                let names = std::mem::take(&mut source.names);
                let notes = std::mem::take(&mut source.notes);
                let resolved = std::mem::take(&mut source.resolved);
                let task_rows = std::mem::take(&mut source.task_rows);
                let batch = Batch { events, strings, tgids, names, notes, resolved, task_rows };
                let abandoned = sender.send(batch).is_err();
                match more {
                    Ok(More::Yes) if !abandoned => {}
                    Ok(_) => return Ending { source, error: None },
                    Err(error) => return Ending { source, error: Some(error) },
                }
            }
        };
        Self {
            batches,
            decoder: Some(std::thread::spawn(decode)),
            resolver: Resolver::new(),
            strings: Strings::new(),
            health: TraceHealth::default(),
            events: Vec::new(),
            notes: Vec::new(),
            meta,
            last: Time::ZERO,
            format,
        }
    }

    /// The format that was found.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// What the source says about itself in its header; [`TraceStream::finish`] gives all of it.
    #[must_use]
    pub fn meta(&self) -> &TraceMeta {
        &self.meta
    }

    /// The strings of all events taken so far.
    #[must_use]
    pub fn strings(&self) -> &Strings {
        &self.strings
    }

    /// The tasks of all events taken so far.
    #[must_use]
    pub fn tasks(&self) -> &TaskTable {
        self.resolver.tasks()
    }

    /// The next events, or `None` at the end.
    ///
    /// # Panics
    /// If a decoder breaks its promise of time order: our bug.
    pub fn next_chunk(&mut self) -> Option<Chunk<'_>> {
        let batch = self.batches.recv().ok()?;
        for text in batch.strings {
            self.strings.intern(&text);
        }
        for (task, row) in batch.task_rows {
            self.resolver.put_row(task, row);
        }
        if batch.resolved.is_empty() {
            self.events.clear();
        } else {
            self.events = batch.resolved;
        }
        self.last = self.events.last().map_or(self.last, |event| event.at);
        self.events.reserve(batch.events.len());
        for raw in &batch.events {
            assert!(raw.event.at >= self.last, "decoder of {} broke time order", self.format);
            self.last = raw.event.at;
            self.events.push(self.resolver.resolve(raw, &mut self.health));
        }
        // Behind the batch's events, which may begin the tasks that are meant.
        for (pid, tgid) in batch.tgids {
            self.resolver.set_tgid(pid, tgid);
        }
        for (pid, name) in batch.names {
            self.resolver.set_name(pid, self.last, name);
        }
        let notes_before = self.notes.len();
        self.notes.extend(batch.notes);
        Some(Chunk {
            events: &self.events,
            strings: &self.strings,
            tasks: self.resolver.tasks(),
            notes: &self.notes[notes_before..],
        })
    }

    /// Everything but the events, once [`TraceStream::next_chunk`] has returned `None`; events not yet taken are dropped.
    ///
    /// # Errors
    /// What stopped the decoder, if it could not go on at all.
    pub fn finish(mut self) -> Result<TraceParts, ReadError> {
        while self.next_chunk().is_some() {}
        let decoder = self.decoder.take().expect("finish takes the stream");
        let ending = decoder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if let Some(error) = ending.error {
            return Err(error);
        }
        let Source { strings, meta, health: mut reader, .. } = ending.source;
        // The resolver's findings and the reader's are about different things; gaps are the resolver's alone unless the
        // reader knew of ones that have no event.
        reader.lost_events = reader.lost_events.saturating_add(self.health.lost_events);
        reader.uncounted_gaps += self.health.uncounted_gaps;
        reader.switch_mismatches += self.health.switch_mismatches;
        reader.loss_windows.extend(self.health.loss_windows);
        reader.loss_windows.sort_by_key(|window| (window.to, window.from));
        reader.loss_windows.truncate(TraceHealth::LIST_LIMIT);
        Ok(TraceParts { meta, strings, tasks: self.resolver.into_tasks(), health: reader, notes: self.notes })
    }

    /// Reads all of it into memory (32 bytes an event).
    ///
    /// # Errors
    /// As [`TraceStream::finish`].
    pub fn collect(mut self) -> Result<Trace, ReadError> {
        let mut events = Vec::new();
        while let Some(chunk) = self.next_chunk() {
            events.extend_from_slice(chunk.events);
        }
        Ok(Trace::from_parts(self.finish()?, events))
    }
}

/// Reads a whole recording.
///
/// # Errors
/// As [`TraceStream::open`] and [`TraceStream::finish`].
pub fn read(path: &Path) -> Result<Trace, ReadError> {
    TraceStream::open(path)?.collect()
}
