//! Reading `.ttwu`, whole, cut or damaged.
//!
//! The summary at the end is looked for first, because it says what the recorder knew to be wrong. A file without one (a
//! crash, a full disk, a recorder still at work) reads up to its last whole block, and what the summary would have said
//! about gaps is found out from the events.

use super::block::{self, Block, Found, Kind};
use super::columns::{self, Names, Seen};
use super::parts::{TaskRow, get_health, get_meta, get_note, get_task};
use super::wire::Bytes;
use super::{FORMAT, HEADER, MAGIC, MAJOR};
use crate::detect::Head;
use crate::source::{Decoder, More, Source};
use crate::{Input, ReadError};
use std::collections::BTreeMap;
use std::path::Path;
use ttwu_model::{
    ContinuityCheck, LossWindow, Pid, RawEvent, StrId, Strings, TaskId, TaskInfo, Time, TraceHealth,
};

/// Is it ours?
pub(crate) fn probe(head: &Head<'_>) -> bool {
    head.bytes.starts_with(MAGIC)
}

/// Opens a `.ttwu` file.
pub(crate) fn open(input: Input, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    check_version(&input)?;
    let ending = read_ending(&input, source)?;
    let mut reader = Reader {
        at: HEADER as u64,
        end: ending.as_ref().map_or(input.len(), |ending| ending.at),
        lost_since: None,
        events_read: 0,
        events_written: ending.as_ref().map(|ending| ending.events),
        check: if ending.is_some() { None } else { Some(ContinuityCheck::default()) },
        input,
        seen: Seen::default(),
        known: Known::default(),
        last: Time::ZERO,
    };
    reader.known.tasks.insert(0, TaskId::IDLE);
    reader.known.tasks_made = 1;
    reader.read_meta(source, ending.is_some())?;
    Ok(Box::new(reader))
}

/// A side table that [`TtwuWriter::side_table`](crate::TtwuWriter::side_table) wrote, if the file has one of that name.
///
/// # Errors
/// When the file cannot be read, is not a `.ttwu` file, or is newer than this reader.
pub fn read_side_table(path: &Path, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
    let mut found = None;
    walk_side_tables(path, &mut |table, content| {
        if table == name {
            found = Some(content.to_vec());
        }
        found.is_none()
    })?;
    Ok(found)
}

/// All side tables of a `.ttwu` file, name and content, in their order.
///
/// # Errors
/// As [`read_side_table`].
pub fn side_tables(path: &Path) -> Result<Vec<(String, Vec<u8>)>, ReadError> {
    let mut tables = Vec::new();
    walk_side_tables(path, &mut |name, content| {
        tables.push((name.to_owned(), content.to_vec()));
        true
    })?;
    Ok(tables)
}

/// Hands side tables out until `each` has enough.
fn walk_side_tables(path: &Path, each: &mut dyn FnMut(&str, &[u8]) -> bool) -> Result<(), ReadError> {
    let (input, _) = crate::unwrap::unwrap(Input::open(path)?, &mut TraceHealth::default())?;
    check_version(&input)?;
    let mut at = HEADER as u64;
    loop {
        match block::read(&input, at)? {
            Found::Block(block) => {
                if block.kind == Kind::SIDE {
                    let mut bytes = Bytes::new(&block.raw);
                    let name = bytes.get_text();
                    if !each(&name, bytes.rest()) {
                        return Ok(());
                    }
                }
                at = block.end;
            }
            Found::Damage(_) => match block::find_mark(&input, at + 1)? {
                Some(next) => at = next,
                None => return Ok(()),
            },
            Found::Cut | Found::Nothing => return Ok(()),
        }
    }
}

fn check_version(input: &Input) -> Result<(), ReadError> {
    let header = input.bytes(0, HEADER as u64)?;
    if !header.starts_with(MAGIC) {
        return Err(ReadError::damaged(FORMAT, 0, "no .ttwu magic number; is it a .ttwu file?"));
    }
    let Ok([_, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _]) = <[u8; HEADER]>::try_from(&header[..]) else {
        return Err(ReadError::damaged(FORMAT, header.len() as u64, "the file ends inside its header"));
    };
    let (major, minor) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    if major > MAJOR {
        return Err(ReadError::Newer {
            format: FORMAT,
            found: format!("{major}.{minor}"),
            known: format!("{MAJOR}.x"),
        });
    }
    if major == 0 {
        return Err(ReadError::damaged(FORMAT, 8, "version 0 does not exist"));
    }
    Ok(())
}

struct Ending {
    /// Where the summary begins.
    at: u64,
    events: u64,
}

/// Finds the summary and takes what it says.
fn read_ending(input: &Input, source: &mut Source) -> Result<Option<Ending>, ReadError> {
    const END_LEN: u64 = block::HEADER_LEN as u64 + 8;
    let Some(at) = input.len().checked_sub(END_LEN) else { return Ok(None) };
    let Found::Block(Block { kind: Kind::END, raw, .. }) = block::read(input, at)? else { return Ok(None) };
    let Ok(summary) = <[u8; 8]>::try_from(raw).map(u64::from_le_bytes) else { return Ok(None) };
    if summary < HEADER as u64 || summary >= at {
        return Ok(None);
    }
    let Found::Block(Block { kind: Kind::SUMMARY, raw, .. }) = block::read(input, summary)? else {
        return Ok(None);
    };
    let damaged = |what| ReadError::damaged(FORMAT, summary, what);
    let mut bytes = Bytes::new(&raw);
    let (meta, unknown) = get_meta(Bytes::new(bytes.get_bytes())).map_err(damaged)?;
    let more_unknown = get_health(Bytes::new(bytes.get_bytes()), &mut source.health).map_err(damaged)?;
    source.meta = meta;
    note_unknown_fields(source, unknown + more_unknown);
    Ok(Some(Ending { at: summary, events: bytes.get() }))
}

fn note_unknown_fields(source: &mut Source, count: u64) {
    if count > 0 {
        source.health.add_note(format!(
            "{count} fields of the meta data are unknown: the file was written by a newer ttwu"
        ));
    }
}

struct Reader {
    input: Input,
    at: u64,
    /// Where the blocks of events end.
    end: u64,
    seen: Seen,
    known: Known,
    last: Time,
    /// Since when blocks are missing.
    lost_since: Option<Time>,
    events_read: u64,
    /// How many there should be, by the summary.
    events_written: Option<u64>,
    /// Finds gaps in a file that has no summary to tell of them.
    check: Option<ContinuityCheck<TaskId>>,
}

/// The file's numbers of strings and tasks, and ours. They are the same unless a block is missing.
#[derive(Default)]
struct Known {
    strings: BTreeMap<u32, StrId>,
    tasks: BTreeMap<u32, TaskId>,
    tasks_made: u32,
}

impl Known {
    /// Our string for a number of the file; one that a missing block would have told is called `?`.
    fn string(&mut self, number: u32, strings: &mut Strings) -> StrId {
        *self.strings.entry(number).or_insert_with(|| strings.intern(&format!("?{number}")))
    }

    /// Our task for a number of the file, and whether it is new.
    fn task(&mut self, number: u32) -> (TaskId, bool) {
        if let Some(&task) = self.tasks.get(&number) {
            return (task, false);
        }
        let task = TaskId::new(self.tasks_made);
        self.tasks_made += 1;
        self.tasks.insert(number, task);
        (task, true)
    }
}

/// A task of which nothing is known.
const fn nobody() -> TaskInfo {
    TaskInfo {
        pid: Pid::UNKNOWN,
        tgid: None,
        parent: None,
        names: Vec::new(),
        forked_at: None,
        exited_at: None,
    }
}

/// Where a block of events finds its tasks and strings.
struct Lookup<'a> {
    known: &'a mut Known,
    source: &'a mut Source,
}

impl Names for Lookup<'_> {
    fn task(&mut self, number: u32) -> TaskId {
        let (task, new) = self.known.task(number);
        if new {
            self.source.task_rows.push((task, nobody()));
        }
        task
    }

    fn string(&mut self, number: u32) -> StrId {
        self.known.string(number, &mut self.source.strings)
    }
}

impl Decoder for Reader {
    fn decode(&mut self, source: &mut Source, _: &mut Vec<RawEvent>) -> Result<More, ReadError> {
        while self.at < self.end {
            match block::read(&self.input, self.at)? {
                Found::Block(block) => {
                    self.at = block.end;
                    self.take_block(&block, source);
                    if !source.resolved.is_empty() {
                        return Ok(More::Yes);
                    }
                }
                Found::Damage(what) => self.skip_damage(&what, source)?,
                Found::Cut | Found::Nothing => break,
            }
        }
        self.close_gap(self.last, source);
        let missing = self.events_written.map_or(0, |written| written.saturating_sub(self.events_read));
        if missing > 0 {
            source.health.lost_events = source.health.lost_events.saturating_add(missing);
            source.health.add_repair(format!("{missing} events of damaged blocks are missing"));
        }
        if self.check.is_some() {
            source.health.truncated_at.get_or_insert(self.at);
            source.health.add_repair(format!(
                "the file has no summary (crash, full disk, or still being written): read up to its last whole block, \
                 which ends at offset {:#x}",
                self.at
            ));
        }
        Ok(More::No)
    }
}

impl Reader {
    /// Takes the block of meta data that a file begins with, where the summary has not told better ones.
    fn read_meta(&mut self, source: &mut Source, have_summary: bool) -> Result<(), ReadError> {
        let Found::Block(block) = block::read(&self.input, self.at)? else { return Ok(()) };
        if block.kind != Kind::META {
            return Ok(());
        }
        self.at = block.end;
        if !have_summary {
            let (meta, unknown) = get_meta(Bytes::new(&block.raw))
                .map_err(|what| ReadError::damaged(FORMAT, block.at, what))?;
            source.meta = meta;
            note_unknown_fields(source, unknown);
        }
        Ok(())
    }

    /// Goes on at the next block mark.
    fn skip_damage(&mut self, what: &str, source: &mut Source) -> Result<(), ReadError> {
        let from = self.at;
        let next = block::find_mark(&self.input, from + 1)?.filter(|&next| next < self.end);
        self.at = next.unwrap_or(self.end);
        self.lose(source, &format!("{what} at offset {from:#x}: {} bytes skipped", self.at - from));
        Ok(())
    }

    /// Says that a block could not be used.
    fn lose(&mut self, source: &mut Source, what: &str) {
        source.health.add_repair(what.to_owned());
        self.lost_since.get_or_insert(self.last);
    }

    fn close_gap(&mut self, to: Time, source: &mut Source) {
        if let Some(from) = self.lost_since.take() {
            source.health.add_loss(LossWindow { cpu: None, from, to, count: None });
        }
    }

    fn take_block(&mut self, block: &Block, source: &mut Source) {
        let mut bytes = Bytes::new(&block.raw);
        let result = match block.kind {
            Kind::STRINGS => self.take_strings(&mut bytes, source),
            Kind::TASKS => self.take_tasks(&mut bytes, source),
            Kind::NOTES => self.take_notes(&mut bytes, source),
            Kind::EVENTS => self.take_events(&mut bytes, source),
            Kind::META | Kind::SUMMARY | Kind::SIDE | Kind::END => Ok(()),
            Kind(unknown) => {
                source.health.add_unknown(&format!("ttwu block kind {unknown}"));
                Ok(())
            }
        };
        if let Err(what) = result {
            self.lose(source, &format!("{what} in the block at offset {:#x}", block.at));
        }
    }

    fn take_strings(&mut self, bytes: &mut Bytes<'_>, source: &mut Source) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            let number = bytes.get_u32();
            let text = bytes.get_text();
            if !bytes.sound() {
                return Err("string list ends early");
            }
            let id = source.strings.intern(&text);
            self.known.strings.insert(number, id);
        }
        Ok(())
    }

    fn take_tasks(&mut self, bytes: &mut Bytes<'_>, source: &mut Source) -> Result<(), &'static str> {
        let mut rows = Vec::new();
        while !bytes.is_empty() {
            let row = get_task(bytes);
            if !bytes.sound() {
                return Err("task list ends early");
            }
            if row.number == 0 && row.pid != Pid::IDLE {
                return Err("task 0 is not the idle task");
            }
            // All rows get their ids before any parent is looked up: a parent may come after its child.
            let (task, _) = self.known.task(row.number);
            rows.push((task, row));
        }
        if u64::from(self.known.tasks_made) > self.input.len() {
            return Err("more tasks than the file has bytes");
        }
        for (task, row) in rows {
            let TaskRow { number: _, pid, tgid, parent, forked_at, exited_at, names } = row;
            let mut lookup = Lookup { known: &mut self.known, source };
            let parent = parent.map(|parent| lookup.task(parent));
            let names = names.into_iter().map(|(since, name)| (since, lookup.string(name))).collect();
            let info = TaskInfo { pid, tgid, parent, names, forked_at, exited_at };
            source.task_rows.push((task, info));
        }
        Ok(())
    }

    fn take_notes(&mut self, bytes: &mut Bytes<'_>, source: &mut Source) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            let name = |number| self.known.string(number, &mut source.strings);
            let note = get_note(bytes, name).ok_or("a note that is none")?;
            source.notes.push(note);
        }
        Ok(())
    }

    fn take_events(&mut self, bytes: &mut Bytes<'_>, source: &mut Source) -> Result<(), &'static str> {
        let mut lookup = Lookup { known: &mut self.known, source };
        let decoder = columns::Decoder::new(bytes, &mut self.seen, &mut lookup)?;
        let base = decoder.base();
        if base < self.last {
            return Err("time goes back");
        }
        let mut events = Vec::new();
        decoder.decode(&mut events)?;
        self.close_gap(base, source);
        self.events_read += events.len() as u64;
        if let Some(check) = &mut self.check {
            for event in &events {
                check.check(event, &mut source.health);
            }
        }
        self.last = events.last().map_or(self.last, |event| event.at);
        source.resolved = events;
        Ok(())
    }
}
