//! trace.dat version 7: sections anywhere in the file, found through a chain of option lists, each packed or not.

use super::compress::{Codec, unpack_section};
use super::options::{self, Options, RawOption};
use super::parts::{self, Buffer, Contents, CpuData};
use super::reader::Reader;
use crate::tracepoint::Endian;
use crate::{Input, ReadError};
use std::collections::{BTreeMap, BTreeSet};
use ttwu_model::TraceHealth;

/// Bit of a section's flags.
const PACKED: u16 = 1;
/// trace-cmd writes two or three lists; a longer chain is damage.
const LISTS_MAX: usize = 1000;
/// An instance is a directory that somebody made.
const BUFFERS_MAX: usize = 10_000;

/// What a section's header says.
struct SectionHead {
    id: u16,
    packed: bool,
}

impl SectionHead {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let id = reader.u16("a section's id")?;
        let flags = reader.u16("a section's flags")?;
        reader.u32("a section's description")?;
        reader.u64("a section's size")?;
        Ok(Self { id, packed: flags & PACKED != 0 })
    }
}

/// Where what is, from the option lists.
#[derive(Default)]
struct Map {
    options: Options,
    sections: BTreeMap<u16, u64>,
    buffers: Vec<(u64, Buffer)>,
    text_buffers: usize,
}

/// Reads everything but the trace data. `reader` stands behind the compression's name and version.
pub(super) fn read(
    reader: &mut Reader<'_>,
    codec: Codec,
    health: &mut TraceHealth,
) -> Result<Contents, ReadError> {
    let file = File { input: reader.input(), order: reader.order(), codec };
    let mut next = reader.u64("the offset of the options")?;
    let mut map = Map::default();
    let mut seen = BTreeSet::new();
    while next != 0 || seen.is_empty() {
        if !seen.insert(next) || seen.len() > LISTS_MAX {
            health.add_repair(format!("trace.dat: the chain of option lists runs in a circle at {next:#x}"));
            break;
        }
        match file.option_list(next, &mut map, health) {
            Ok(following) => next = following,
            Err(error) if seen.len() == 1 => return Err(error),
            Err(error) => {
                health.add_repair(format!("{error}; what it lists is lost"));
                break;
            }
        }
    }
    file.contents(map, health)
}

struct File<'a> {
    input: &'a Input,
    order: Endian,
    codec: Codec,
}

impl File<'_> {
    /// Reads one list of options; where is the next?
    fn option_list(&self, at: u64, map: &mut Map, health: &mut TraceHealth) -> Result<u64, ReadError> {
        let mut reader = Reader::new(self.input, at, self.order, "options");
        if at == 0 || at >= self.input.len() {
            let what = format!(
                "expected the options there, the file has {} bytes: the recording was cut short or never finished",
                self.input.len()
            );
            return Err(reader.damaged(at, what));
        }
        let head = SectionHead::read(&mut reader)?;
        if head.id != options::DONE {
            return Err(reader.damaged(at, format!("expected section id 0, found {}", head.id)));
        }
        let unpacked = if head.packed { Some(unpack_section(&mut reader, self.codec)?) } else { None };
        let mut reader = match &unpacked {
            Some(section) => Reader::new(section, 0, self.order, "unpacked options"),
            None => reader,
        };
        loop {
            let option = RawOption::read(&mut reader, false)?;
            let mut data = Reader::new(&option.data, 0, self.order, "option");
            match option.id {
                options::DONE => return data.u64("the offset of the next options"),
                options::BUFFER if map.buffers.len() < BUFFERS_MAX => {
                    data.set_part("buffer option");
                    map.buffers.push(buffer_option(&mut data)?);
                }
                options::BUFFER_TEXT => map.text_buffers += 1,
                options::HEADER_INFO..=options::CMDLINES => {
                    map.sections.insert(option.id, data.u64("a section's offset")?);
                }
                _ => map.options.take(&option, self.order, health)?,
            }
        }
    }

    fn contents(&self, map: Map, health: &mut TraceHealth) -> Result<Contents, ReadError> {
        if map.buffers.is_empty() && map.text_buffers > 0 {
            return Err(parts::latency_text());
        }
        if map.text_buffers > 0 {
            health.add_note(format!("trace.dat: {} buffers of text are not read", map.text_buffers));
        }
        let offset = |id| map.sections.get(&id).copied();
        let event_formats = offset(options::EVENT_FORMATS);
        let mut formats =
            self.section(event_formats, options::EVENT_FORMATS, parts::event_formats)?.unwrap_or_default();
        // All but the events' formats can be done without.
        let mut without = |part: &str, error: &ReadError| {
            health.add_repair(format!("trace.dat: read without its {part}: {error}"));
        };
        let ftrace = self
            .section(offset(options::FTRACE_EVENTS), options::FTRACE_EVENTS, parts::ftrace_formats)
            .unwrap_or_else(|error| {
                without("ftrace formats", &error);
                None
            });
        formats.extend(ftrace.unwrap_or_default());
        let header_page = self
            .section(offset(options::HEADER_INFO), options::HEADER_INFO, parts::header_info)
            .unwrap_or_else(|error| {
                without("page header description", &error);
                None
            });
        let mut text = |id, part: &'static str| {
            let read = |reader: &mut Reader<'_>| match id {
                options::CMDLINES => parts::cmdlines(reader),
                _ => parts::sized_text(reader, part),
            };
            self.section(offset(id), id, read)
                .unwrap_or_else(|error| {
                    without(part, &error);
                    None
                })
                .unwrap_or_default()
        };
        let kallsyms = text(options::KALLSYMS, "kallsyms");
        let printk = text(options::PRINTK, "printk formats");
        let cmdlines = text(options::CMDLINES, "names of tasks");
        let mut buffers = Vec::new();
        for (at, mut buffer) in map.buffers {
            let mut reader = Reader::new(self.input, at, self.order, "trace data");
            match SectionHead::read(&mut reader) {
                Ok(head) => {
                    buffer.packed = head.packed;
                    buffers.push(buffer);
                }
                Err(error) => {
                    health.add_repair(format!("buffer `{}` is left out: {error}", buffer.name));
                    health.truncated_at.get_or_insert(self.input.len());
                }
            }
        }
        Ok(Contents { header_page, formats, kallsyms, printk, cmdlines, options: map.options, buffers })
    }

    /// Reads the section at `at` with `read`, if the file has it.
    fn section<T>(
        &self,
        at: Option<u64>,
        id: u16,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, ReadError>,
    ) -> Result<Option<T>, ReadError> {
        let Some(at) = at else { return Ok(None) };
        let mut reader = Reader::new(self.input, at, self.order, "section");
        let head = SectionHead::read(&mut reader)?;
        if head.id != id {
            return Err(reader.damaged(at, format!("expected section id {id}, found {}", head.id)));
        }
        if head.packed {
            let section = unpack_section(&mut reader, self.codec)?;
            return read(&mut Reader::new(&section, 0, self.order, "unpacked section")).map(Some);
        }
        read(&mut reader).map(Some)
    }
}

/// The offset of a buffer's section, and what the option says of it.
fn buffer_option(data: &mut Reader<'_>) -> Result<(u64, Buffer), ReadError> {
    let at = data.u64("its offset")?;
    let name = data.string("its name")?;
    let clock = Some(data.string("its clock")?);
    let page_size = Some(data.u32("its page size")?);
    let count = data.u32("its CPU count")?;
    let mut cpus = Vec::new();
    for _ in 0..count {
        let cpu = data.u32("a CPU's number")?;
        let offset = data.u64("a CPU's data offset")?;
        let size = data.u64("a CPU's data size")?;
        cpus.push(CpuData { cpu, offset, size });
    }
    Ok((at, Buffer { name, clock, page_size, packed: false, cpus }))
}
