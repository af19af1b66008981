//! perf.data: the file of `perf record`, seekable or from a pipe, of any version and machine.
//!
//! Written for speed, since these files are the large ones: the file is read in blocks of a megabyte, records are walked in
//! place, sample fields are at offsets computed once per event, and time order comes from perf's own rounds (see
//! [`rounds`]), so that memory does not grow with the file.
//!
//! ```text
//! blocks ─► engine (records) ─► sink (events) ─► rounds (order) ─► out
//!   └► inflate (compressed records) ─► engine
//! ```
//!
//! Pids are the payload's, never the sample's own: those are numbers in the recorder's pid namespace.
//!
//! What this does not do: hardware samples, call chains, memory maps, build ids, AUX data. They are passed over.

mod attr;
mod blocks;
mod bytes;
mod engine;
mod feature;
mod header;
mod inflate;
mod rounds;
mod sink;
mod topology;
mod tracing;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;

use crate::detect::Head;
use crate::source::{Decoder, More, Source};
use crate::tracepoint::RawRecord;
use crate::{Input, ReadError};
use blocks::Blocks;
use engine::{Engine, Sink, Then};
use feature::FEATURE_BYTES_MAX;
use header::Container;
use inflate::Inflate;
use sink::{EventSink, RecordSink};
use ttwu_model::RawEvent;

/// Events of one batch; a round that is longer is one batch too.
const BATCH: usize = 1 << 15;

/// Does it begin with perf's magic number?
pub(crate) fn probe(head: &Head<'_>) -> bool {
    header::recognise(head.bytes).is_some()
}

/// Opens a perf.data file.
///
/// # Errors
/// When its header is unusable, or holds no formats of the tracepoints that it recorded.
pub(crate) fn open(input: Input, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    Ok(Box::new(EventReader {
        file: PerfFile::open(input, EventSink::new(), source)?,
        stage: Stage::Reading,
    }))
}

/// Shows every tracepoint record of a perf.data file to `visit`, in time order.
///
/// # Errors
/// As [`open`].
pub(crate) fn walk_records(
    input: Input,
    source: &mut Source,
    visit: &mut dyn FnMut(&RawRecord<'_>),
) -> Result<(), ReadError> {
    let mut file = PerfFile::open(input, RecordSink::new(), source)?;
    while file.step(source)? == More::Yes {
        file.engine.visit(visit);
    }
    file.finish_events();
    file.engine.visit(visit);
    file.engine.finish(source);
    Ok(())
}

/// How far an [`EventReader`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    /// All events are out; what is known only at the end is not.
    Ending,
}

struct EventReader {
    file: PerfFile<EventSink>,
    stage: Stage,
}

impl Decoder for EventReader {
    fn decode(&mut self, source: &mut Source, out: &mut Vec<RawEvent>) -> Result<More, ReadError> {
        let file = &mut self.file;
        if self.stage == Stage::Ending {
            file.engine.finish(source);
            return Ok(More::No);
        }
        // Names and processes go one batch behind the events: a pid's process is that of its present task, so the fork
        // that begins the task has to come first.
        file.engine.release_side(source);
        while file.engine.sink.out.len() < BATCH {
            if file.step(source)? == More::No {
                file.finish_events();
                self.stage = Stage::Ending;
                break;
            }
        }
        file.engine.sink.take(out, &mut source.notes);
        Ok(More::Yes)
    }
}

/// A file with its engine: gets stretches of records from wherever they are.
struct PerfFile<S> {
    input: Input,
    blocks: Blocks,
    engine: Engine<S>,
    /// Once a compressed record has been met, all records pass through here.
    inflate: Option<Inflate>,
    /// The compressed stream is damaged; the rest of it is passed over.
    inflate_failed: bool,
}

impl<S: Sink> PerfFile<S> {
    fn open(input: Input, sink: S, source: &mut Source) -> Result<Self, ReadError> {
        let head = input.bytes(0, 16)?;
        let Some((endian, container, size)) = header::recognise(&head) else {
            return Err(ReadError::damaged("perf.data", 0, "expected a header of 16 bytes or more"));
        };
        let mut engine = Engine::new(endian, sink);
        let blocks = match container {
            Container::Seekable => {
                "perf.data".clone_into(&mut source.meta.format);
                let data = header::read(&input, endian, &mut engine, source)?;
                engine.prepare(source)?;
                Blocks::new(data.offset, data.offset.saturating_add(data.len))
            }
            Container::Pipe => {
                "perf.data (pipe)".clone_into(&mut source.meta.format);
                Blocks::new(size, u64::MAX)
            }
        };
        Ok(Self { input, blocks, engine, inflate: None, inflate_failed: false })
    }

    /// Reads on by about a block.
    fn step(&mut self, source: &mut Source) -> Result<More, ReadError> {
        if self.inflate.is_some() {
            return self.step_compressed(source);
        }
        self.blocks.fill(&self.input)?;
        let stretch = self.blocks.window();
        let len = stretch.len();
        let offset = self.blocks.offset();
        let (used, then) = self.engine.walk(stretch, offset, source)?;
        if let Then::Compressed(size) = then {
            source.meta.format.push_str(" (zstd)");
            self.inflate = Some(Inflate::new());
            self.blocks.consume(used - size);
            return Ok(More::Yes);
        }
        self.blocks.consume(used);
        match then {
            Then::Tracing(size) => {
                let bytes = self.input.bytes(self.blocks.offset(), size.min(FEATURE_BYTES_MAX))?;
                let endian = self.engine.endian();
                self.engine.facts.add(feature::bit::TRACING_DATA, &bytes, endian, source);
                self.blocks.skip(size);
            }
            Then::Skip(size) => self.blocks.skip(size),
            Then::More | Then::Compressed(_) if used == 0 => {
                if len > 0 {
                    source.health.truncated_at.get_or_insert(offset);
                }
                return Ok(More::No);
            }
            Then::More | Then::Compressed(_) => {}
        }
        Ok(More::Yes)
    }

    /// The same where records come out of a compressed stream: takes one record of the file.
    fn step_compressed(&mut self, source: &mut Source) -> Result<More, ReadError> {
        let Some(inflate) = &mut self.inflate else { return Ok(More::No) };
        self.blocks.fill(&self.input)?;
        let stretch = self.blocks.window();
        let offset = self.blocks.offset();
        let Some(record) = self.engine.first_record(stretch) else {
            if !stretch.is_empty() {
                source.health.truncated_at.get_or_insert(offset);
            }
            if !self.inflate_failed
                && let Err(error) = inflate.finish()
            {
                source.health.add_repair(format!("compressed data end badly: {error}"));
            }
            self.walk_inflated(offset, source)?;
            return Ok(More::No);
        };
        let size = record.len();
        match self.engine.compressed_piece(record) {
            None => inflate.defer(record),
            Some(_) if self.inflate_failed => {}
            Some(piece) => {
                if let Err(error) = inflate.push(piece) {
                    source
                        .health
                        .add_repair(format!("compressed data damaged at offset {offset:#x}: {error}"));
                    self.inflate_failed = true;
                }
            }
        }
        self.blocks.consume(size);
        self.walk_inflated(offset, source)?;
        Ok(More::Yes)
    }

    /// Walks what is decompressed, and the records in between at their places.
    fn walk_inflated(&mut self, offset: u64, source: &mut Source) -> Result<(), ReadError> {
        let Some(inflate) = &mut self.inflate else { return Ok(()) };
        loop {
            let stretch = inflate.ready();
            let len = stretch.len();
            let (used, _) = self.engine.walk(stretch, offset, source)?;
            inflate.consume(used);
            if let Some(record) = inflate.due(len - used, self.inflate_failed) {
                self.engine.walk(&record, offset, source)?;
            } else if used == 0 {
                return Ok(());
            }
        }
    }

    /// Hands on all events that still wait.
    fn finish_events(&mut self) {
        self.engine.finish_losses();
        self.engine.sink.finish();
    }
}
