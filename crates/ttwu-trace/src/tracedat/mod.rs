//! `trace-cmd record`'s file, versions 6 and 7: either byte order, 32 and 64 bits, packed with zlib or zstd or not, with
//! several buffers.
//!
//! The file is a container: format texts, symbols, names and facts about the machine around ring-buffer pages, which
//! [`crate::ring`] reads. Times are what `trace-cmd report` shows: the file's date, offset and TSC options are applied.
//!
//! What this does not do: latency tracers' text (version 6 `latency`), guests' time synchronisation, and instances whose
//! clock is not the top buffer's; each is said.

mod compress;
mod options;
mod parts;
mod reader;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod v6;
mod v7;

use crate::detect::Head;
use crate::ring::{self, CpuPages, PageLayout, PlainPages, Recording};
use crate::source::{Decoder, Source};
use crate::tracepoint::{Endian, Machine, Symbols};
use crate::{Input, ReadError};
use compress::{ChunkedPages, Codec};
use parts::{Buffer, Contents};
use reader::Reader;
use std::sync::Arc;
use ttwu_model::CpuId;

/// The format's name in messages.
pub(crate) const FORMAT: &str = "trace.dat";

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Is it a trace.dat? (perf.data has the same magic only inside.)
pub(crate) fn probe(head: &Head<'_>) -> bool {
    head.bytes.starts_with(MAGIC)
}

/// A decoder of its events.
pub(crate) fn open(input: Input, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    recording(input, source)?.decoder(FORMAT, source)
}

/// What the first bytes say.
struct FileHead {
    version: u8,
    long_len: u8,
    page_size: u32,
    codec: Codec,
    /// `zstd 1.5.4`, empty without compression.
    codec_text: String,
}

impl FileHead {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        reader.expect(MAGIC)?;
        let at = reader.at();
        let text = reader.string("the version")?;
        let version = match text.parse::<u8>() {
            Ok(version @ (6 | 7)) => version,
            Ok(0..=5) => {
                let what =
                    format!("version {text} was never released; record again with a present trace-cmd");
                return Err(ReadError::Unsupported { format: FORMAT, what });
            }
            Ok(_) => return Err(ReadError::Newer { format: FORMAT, found: text, known: "7".to_owned() }),
            Err(_) => return Err(reader.damaged(at, format!("expected version 6 or 7, found {text:?}"))),
        };
        let at = reader.at();
        match reader.u8("the byte order")? {
            0 => reader.set_order(Endian::Little),
            1 => reader.set_order(Endian::Big),
            other => return Err(reader.damaged(at, format!("expected byte order 0 or 1, found {other}"))),
        }
        let at = reader.at();
        let long_len = reader.u8("the size of long")?;
        if !matches!(long_len, 4 | 8) {
            return Err(reader.damaged(at, format!("expected a long of 4 or 8 bytes, found {long_len}")));
        }
        let page_size = reader.u32("the page size")?;
        let (mut codec, mut codec_text) = (Codec::None, String::new());
        if version >= 7 {
            let name = reader.string("the compression's name")?;
            let release = reader.string("the compression's version")?;
            codec = Codec::from_name(&name)?;
            if codec != Codec::None {
                codec_text = format!("{name} {release}").trim_end().to_owned();
            }
        }
        Ok(Self { version, long_len, page_size, codec, codec_text })
    }
}

/// Reads all but the pages.
pub(crate) fn recording(input: Input, source: &mut Source) -> Result<Recording, ReadError> {
    let input = Arc::new(input);
    let mut reader = Reader::new(&input, 0, Endian::Little, "header");
    let head = FileHead::read(&mut reader)?;
    let contents = match head.version {
        6 => v6::read(&mut reader, &mut source.health)?,
        _ => v7::read(&mut reader, head.codec, &mut source.health)?,
    };
    let order = reader.order();
    let layout = page_layout(&head, &contents, order, source)?;
    note_facts(&head, &contents, source);
    let texts = contents.formats.iter().map(|(system, text)| (system.as_str(), text.as_slice()));
    let formats = ring::parse_formats(texts, &layout, source);
    if formats.is_empty() {
        let what = "has no event formats, without which its records mean nothing";
        return Err(ReadError::Unsupported { format: FORMAT, what: what.to_owned() });
    }
    let mut symbols = Symbols::new();
    symbols.add_kallsyms(&contents.kallsyms);
    symbols.add_printk_formats(&contents.printk);
    let pages = Pages { input: &input, order, codec: head.codec, layout }.of(&contents, source);
    Ok(Recording {
        formats,
        machine: machine(&contents),
        symbols,
        clock: contents.options.clock_map(),
        pages,
        stats: contents.options.stats,
        names: ring::parse_names(&contents.cmdlines),
        tgids: Vec::new(),
    })
}

/// The page layout that the file describes, else the usual one for its header.
fn page_layout(
    head: &FileHead,
    contents: &Contents,
    order: Endian,
    source: &mut Source,
) -> Result<PageLayout, ReadError> {
    let described = match &contents.header_page {
        Some(text) => PageLayout::parse(text, order),
        None => Err("the file does not describe its pages".to_owned()),
    };
    match described {
        Ok(layout) => Ok(layout),
        Err(why) => {
            let size = usize::try_from(head.page_size).unwrap_or(usize::MAX);
            let usual = PageLayout::usual(order, usize::from(head.long_len), size).ok_or_else(|| {
                ReadError::damaged(FORMAT, 0, format!("{why}, and its page size is {}", head.page_size))
            })?;
            source.health.add_repair(format!("{FORMAT}: {why}; the usual layout is assumed"));
            Ok(usual)
        }
    }
}

/// `Linux host 6.18.44 x86_64`, as trace-cmd writes it.
fn uname(contents: &Contents) -> Option<[&str; 3]> {
    let mut words = contents.options.uname.as_deref()?.split_ascii_whitespace();
    let (_, host, release) = (words.next()?, words.next()?, words.next()?);
    Some([host, release, words.last()?])
}

fn machine(contents: &Contents) -> Machine {
    match uname(contents) {
        Some([_, release, arch]) => {
            Machine { arch: Some(arch.to_owned()), kernel_release: Some(release.to_owned()) }
        }
        None => Machine::default(),
    }
}

fn note_facts(head: &FileHead, contents: &Contents, source: &mut Source) {
    let meta = &mut source.meta;
    meta.format = match head.codec_text.as_str() {
        "" => format!("{FORMAT} v{}", head.version),
        codec => format!("{FORMAT} v{} ({codec})", head.version),
    };
    meta.resolution_ns = 1;
    meta.recorder = contents.options.recorder.as_ref().map(|version| format!("trace-cmd {version}"));
    meta.cpus_recorded = contents.options.cpu_count;
    if let Some([host, release, arch]) = uname(contents) {
        meta.hostname = Some(host.to_owned());
        meta.kernel_release = Some(release.to_owned());
        meta.arch = Some(arch.to_owned());
    }
    ring::note_clock(main_clock(contents), contents.options.is_scaled(), source);
}

/// The clock of the first buffer that has data.
fn main_clock(contents: &Contents) -> Option<&str> {
    let with_data = |buffer: &&Buffer| buffer.cpus.iter().any(|cpu| cpu.size > 0);
    let buffer = contents.buffers.iter().find(with_data).or_else(|| contents.buffers.first());
    let own = buffer.and_then(|buffer| buffer.clock.as_deref()).filter(|clock| !clock.is_empty());
    own.or(contents.options.clock.as_deref())
}

struct Pages<'a> {
    input: &'a Arc<Input>,
    order: Endian,
    codec: Codec,
    layout: PageLayout,
}

impl Pages<'_> {
    /// All CPUs of all buffers that have the main clock.
    fn of(&self, contents: &Contents, source: &mut Source) -> Vec<CpuPages> {
        let main = main_clock(contents);
        let used = |buffer: &&Buffer| match buffer.clock.as_deref() {
            None | Some("") => true,
            Some(clock) => main.is_none_or(|main| main == clock),
        };
        let streams = contents.buffers.iter().filter(used).map(|buffer| buffer.cpus.len()).sum();
        let mut pages = Vec::new();
        for buffer in &contents.buffers {
            if !used(&buffer) {
                let bytes: u64 = buffer.cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.size));
                if bytes > 0 {
                    source.health.add_repair(format!(
                        "{FORMAT}: buffer `{}` ({bytes} bytes) is left out: its clock is `{}`, not `{}`",
                        buffer.name,
                        buffer.clock.as_deref().unwrap_or_default(),
                        main.unwrap_or_default()
                    ));
                }
                continue;
            }
            if !buffer.name.is_empty() && buffer.cpus.iter().any(|cpu| cpu.size > 0) {
                source.health.add_note(format!(
                    "{FORMAT}: events of buffer `{}` are merged with the others; one recorded in both counts twice",
                    buffer.name
                ));
            }
            self.of_buffer(buffer, ring::memory_share(streams), source, &mut pages);
        }
        pages
    }

    fn of_buffer(&self, buffer: &Buffer, share: u64, source: &mut Source, pages: &mut Vec<CpuPages>) {
        let layout = match buffer.page_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)) {
            // A sub-buffer size is set for each instance; the description in the file is the top one's.
            Some(size) if size > self.layout.size() => {
                PageLayout::usual(self.order, self.layout.long_len(), size).unwrap_or(self.layout)
            }
            Some(_) | None => self.layout,
        };
        for data in buffer.cpus.iter().filter(|data| data.size > 0) {
            let Ok(cpu) = CpuId::try_from(u64::from(data.cpu)) else {
                let text = format!("{FORMAT}: data of a CPU numbered {} is left out", data.cpu);
                source.health.add_repair(text);
                continue;
            };
            let end = data.offset.saturating_add(data.size);
            if end > self.input.len() {
                source.health.truncated_at.get_or_insert(self.input.len());
                let there = self.input.len().saturating_sub(data.offset);
                let text =
                    format!("{FORMAT}: of cpu {cpu}'s {} bytes of data only {there} are there", data.size);
                source.health.add_repair(text);
            }
            let pages_of_cpu = CpuPages {
                cpu,
                layout,
                source: if buffer.packed {
                    // The size leaves out the count of chunks at the data's start.
                    let span = data.offset..end.saturating_add(4);
                    let input = Arc::clone(self.input);
                    Box::new(ChunkedPages::new(input, self.order, self.codec, span, share, data.cpu))
                } else {
                    Box::new(PlainPages::new(Arc::clone(self.input), data.offset, end))
                },
            };
            pages.push(pages_of_cpu);
        }
    }
}
