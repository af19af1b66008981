//! Pages and descriptions as named files: a directory copied from tracefs, or the members of an archive of one.
//!
//! Three layouts are known by their names alone, so that a literal copy of tracefs, our own short form and SchedViz's
//! archive are one reader:
//!
//! | what | names |
//! |---|---|
//! | pages | `per_cpu/cpuN/trace_pipe_raw`, `cpuN.raw`, `traces/cpuN` |
//! | formats | `events/SYSTEM/NAME/format`, `formats/SYSTEM/NAME/format`, and `header_page` beside the systems |
//! | losses | `per_cpu/cpuN/stats`, `cpuN.stats` |
//! | names | `saved_cmdlines`, `saved_tgids`, `trace_clock`, `kallsyms`, `printk_formats` |
//! | what was on | `events/SYSTEM/NAME/enable` |
//!
//! Archive members are read where they lie; nothing is ever written under a name that an archive chooses.

use super::{ClockMap, CpuPages, CpuStats, PageLayout, PlainPages, Recording};
use super::{chosen_clock, note_clock, parse_formats, parse_names, parse_tgids};
use crate::source::Source;
use crate::tracepoint::{Endian, Machine, Symbols};
use crate::{Input, ReadError};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ttwu_model::{CpuId, TraceHealth};

/// A kernel has about 5000 tracepoints with five files each; far more is somebody's home directory.
const FILES_MAX: usize = 200_000;
/// `per_cpu/cpuN/trace_pipe_raw` is three deep, and a copy may sit in a directory of an archive.
const DEPTH_MAX: usize = 6;
/// The largest text: symbol tables have up to 20 MB.
const TEXT_MAX: u64 = 64 << 20;

/// Files by their names below a root, with `/` between the parts.
pub(crate) struct Tree {
    files: BTreeMap<String, Place>,
    name: String,
}

enum Place {
    Path(PathBuf),
    Member { archive: Arc<Input>, at: u64, len: u64 },
}

impl Tree {
    /// All files below a directory. Symbolic links to directories are not followed.
    pub(crate) fn of_directory(root: &Path, health: &mut TraceHealth) -> Result<Self, ReadError> {
        let mut files = BTreeMap::new();
        let mut left = vec![(root.to_owned(), String::new(), 0)];
        while let Some((directory, prefix, depth)) = left.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if depth == 0 => return Err(ReadError::io(root.display().to_string(), error)),
                Err(error) => {
                    health.add_note(format!("{} cannot be read: {error}", directory.display()));
                    continue;
                }
            };
            for entry in entries.filter_map(Result::ok) {
                let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else {
                    continue;
                };
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => {
                        left.push((entry.path(), format!("{name}/"), depth + 1));
                    }
                    Ok(kind) if !kind.is_dir() && files.len() < FILES_MAX => {
                        files.insert(name, Place::Path(entry.path()));
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(Self { files, name: root.display().to_string() })
    }

    /// All files of a tar archive, by their names below the directory that holds `traces/` or `formats/`.
    pub(crate) fn of_archive(input: Input, health: &mut TraceHealth) -> Result<Self, ReadError> {
        let name = input.name().to_owned();
        let archive = Arc::new(input);
        let mut tar = tar::Archive::new(Sequential { input: &archive, at: 0 });
        let entries = tar.entries_with_seek().map_err(|error| ReadError::io(&name, error))?;
        let mut files = BTreeMap::new();
        for entry in entries.take(FILES_MAX) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    health.truncated_at.get_or_insert(archive.len());
                    health.add_repair(format!("the archive's list of files ends early: {error}"));
                    break;
                }
            };
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let (at, len) = (entry.raw_file_position(), entry.size());
            let member = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let member = member.trim_start_matches("./").to_owned();
            if at.saturating_add(len) > archive.len() {
                health.truncated_at.get_or_insert(archive.len());
                health.add_repair(format!("archive member {member} is cut short"));
            }
            files.insert(member, Place::Member { archive: Arc::clone(&archive), at, len });
        }
        let mut tree = Self { files, name };
        tree.strip_prefix();
        Ok(tree)
    }

    /// Archives are often made of one directory; its name says nothing.
    fn strip_prefix(&mut self) {
        let marks = ["traces/cpu", "formats/", "per_cpu/", "events/"];
        let prefix = self.files.keys().find_map(|name| {
            let at = marks.iter().filter_map(|mark| name.find(mark)).min()?;
            (at > 0 && name[..at].ends_with('/')).then(|| name[..at].to_owned())
        });
        let rooted = self.files.keys().any(|name| marks.iter().any(|mark| name.starts_with(mark)));
        if let (Some(prefix), false) = (prefix, rooted) {
            let files = std::mem::take(&mut self.files);
            let rename = |(name, place): (String, Place)| match name.strip_prefix(&prefix) {
                Some(rest) => (rest.to_owned(), place),
                None => (name, place),
            };
            self.files = files.into_iter().map(rename).collect();
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The content of a text file, if there is one of that name; a longer one is cut at 64 MiB.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(match self.files.get(name) {
            None => None,
            Some(Place::Member { archive, at, len }) => Some(archive.bytes(*at, (*len).min(TEXT_MAX))?),
            Some(Place::Path(path)) => {
                // Not by the file's length: files of a live tracefs have none.
                let mut text = Vec::new();
                let file =
                    fs::File::open(path).map_err(|error| ReadError::io(path.display().to_string(), error))?;
                file.take(TEXT_MAX)
                    .read_to_end(&mut text)
                    .map_err(|error| ReadError::io(path.display().to_string(), error))?;
                Some(text)
            }
        })
    }

    /// A file's bytes where they lie: the input, and from where to where.
    fn span(&self, name: &str) -> Result<Option<(Arc<Input>, u64, u64)>, ReadError> {
        Ok(match self.files.get(name) {
            None => None,
            Some(Place::Member { archive, at, len }) => {
                Some((Arc::clone(archive), *at, at.saturating_add(*len)))
            }
            Some(Place::Path(path)) => {
                let input = Input::open(path)?;
                let len = input.len();
                Some((Arc::new(input), 0, len))
            }
        })
    }
}

/// The CPU in a name such as `traces/cpu7`: what stands between `before` and `after`.
fn cpu_in(name: &str, before: &str, after: &str) -> Option<CpuId> {
    name.strip_prefix(before)?.strip_suffix(after)?.parse().ok().map(CpuId::new)
}

/// The three places of per-CPU files, as what stands before and after the CPU's number.
const PAGE_NAMES: [(&str, &str); 3] =
    [("per_cpu/cpu", "/trace_pipe_raw"), ("cpu", ".raw"), ("traces/cpu", "")];
const STATS_NAMES: [(&str, &str); 2] = [("per_cpu/cpu", "/stats"), ("cpu", ".stats")];
/// The last is an `events` directory itself, given for pages that lie elsewhere.
const FORMAT_ROOTS: [&str; 3] = ["events/", "formats/", ""];

/// Is there any per-CPU file of pages?
pub(crate) fn has_pages(tree: &Tree) -> bool {
    tree.names().any(|name| PAGE_NAMES.iter().any(|(before, after)| cpu_in(name, before, after).is_some()))
}

/// The recording that a tree holds.
///
/// # Errors
/// Without pages or formats, and the operating system's.
pub(crate) fn recording(
    tree: &Tree,
    format: &'static str,
    source: &mut Source,
) -> Result<Recording, ReadError> {
    let spans = page_spans(tree)?;
    if spans.iter().all(|&(_, _, at, end)| at == end) {
        let what = format!(
            "{} has no per-CPU ring-buffer pages (cpuN.raw, per_cpu/cpuN/trace_pipe_raw or traces/cpuN), or they are \
             empty; a live tracefs is read with `ttwu record`",
            tree.name
        );
        return Err(ReadError::Unsupported { format, what });
    }
    let layout = layout(tree, &spans, source)?;
    let formats = formats(tree, &layout, source)?;
    if formats.is_empty() {
        let what = format!(
            "{} has pages but no format files (events/SYSTEM/NAME/format or formats/SYSTEM/NAME/format); copy them from \
             the machine's tracefs",
            tree.name
        );
        return Err(ReadError::Unsupported { format, what });
    }
    let mut stats = BTreeMap::new();
    for name in tree.names() {
        let cpu = STATS_NAMES.iter().find_map(|(before, after)| cpu_in(name, before, after));
        if let Some(cpu) = cpu {
            let text = tree.text(name)?.unwrap_or_default();
            stats.insert(cpu, CpuStats::parse(&String::from_utf8_lossy(&text)));
        }
    }
    let clock = tree.text("trace_clock")?.unwrap_or_default();
    note_clock(chosen_clock(&String::from_utf8_lossy(&clock)), false, source);
    let mut symbols = Symbols::new();
    symbols.add_kallsyms(&tree.text("kallsyms")?.unwrap_or_default());
    symbols.add_printk_formats(&tree.text("printk_formats")?.unwrap_or_default());
    source.meta.format = format.to_owned();
    source.meta.resolution_ns = 1;
    source.meta.cpus_recorded = u32::try_from(spans.len()).ok();
    source.meta.events_recorded = enabled_events(tree)?;
    let pages = spans
        .into_iter()
        .map(|(cpu, input, at, end)| CpuPages {
            cpu,
            layout,
            source: Box::new(PlainPages::new(input, at, end)),
        })
        .collect();
    Ok(Recording {
        formats,
        machine: Machine::default(),
        symbols,
        clock: ClockMap::IDENTITY,
        pages,
        stats,
        names: parse_names(&tree.text("saved_cmdlines")?.unwrap_or_default()),
        tgids: parse_tgids(&tree.text("saved_tgids")?.unwrap_or_default()),
    })
}

type PageSpan = (CpuId, Arc<Input>, u64, u64);

/// Every CPU's pages by the first of the three names that exists, in CPU order.
fn page_spans(tree: &Tree) -> Result<Vec<PageSpan>, ReadError> {
    for (before, after) in PAGE_NAMES {
        let mut spans = Vec::new();
        for name in tree.names() {
            if let Some(cpu) = cpu_in(name, before, after)
                && let Some((input, at, end)) = tree.span(name)?
            {
                spans.push((cpu, input, at, end));
            }
        }
        if !spans.is_empty() {
            spans.sort_by_key(|&(cpu, ..)| cpu);
            return Ok(spans);
        }
    }
    Ok(Vec::new())
}

fn layout(tree: &Tree, spans: &[PageSpan], source: &mut Source) -> Result<PageLayout, ReadError> {
    let mut first = Vec::new();
    for (_, input, at, end) in spans {
        if first.is_empty() {
            first = input.bytes(*at, (end - at).min(16))?;
        }
    }
    described_layout(tree, &first, source)
}

/// The layout by the tree's `header_page`, with the byte order that makes sense of `page`, since no file says it.
pub(crate) fn described_layout(
    tree: &Tree,
    page: &[u8],
    source: &mut Source,
) -> Result<PageLayout, ReadError> {
    let mut header = None;
    for root in FORMAT_ROOTS {
        header = match header {
            Some(header) => Some(header),
            None => tree.text(&format!("{root}header_page"))?,
        };
    }
    let described = match &header {
        Some(text) => PageLayout::parse(&String::from_utf8_lossy(text), Endian::Little),
        None => Err("there is no header_page".to_owned()),
    };
    let layout = described.unwrap_or_else(|why| {
        source.health.add_repair(format!("{why}; 4096-byte pages of a 64-bit kernel are assumed"));
        PageLayout::LITTLE_64
    });
    Ok(layout.with_order_of(page))
}

/// Events that were switched on when the copy was made. All off means that it was made after the recording had ended,
/// which says nothing.
fn enabled_events(tree: &Tree) -> Result<Option<BTreeSet<String>>, ReadError> {
    let mut events = BTreeSet::new();
    for name in tree.names() {
        let Some(event) = name.strip_prefix("events/").and_then(|rest| rest.strip_suffix("/enable")) else {
            continue;
        };
        if let Some((system, event)) = event.split_once('/')
            && tree.text(name)?.is_some_and(|text| text.starts_with(b"1"))
        {
            events.insert(format!("{system}:{event}"));
        }
    }
    Ok((!events.is_empty()).then_some(events))
}

/// All formats of a tree.
pub(crate) fn formats(
    tree: &Tree,
    layout: &PageLayout,
    source: &mut Source,
) -> Result<Vec<crate::TracepointFormat>, ReadError> {
    let mut texts = Vec::new();
    for name in tree.names() {
        let below = FORMAT_ROOTS.iter().find_map(|root| name.strip_prefix(root));
        let Some(mut parts) = below.map(|below| below.split('/')) else { continue };
        if let (Some(system), Some(_), Some("format"), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        {
            texts.push((system, tree.text(name)?.unwrap_or_default()));
        }
    }
    Ok(parse_formats(texts.iter().map(|(system, text)| (*system, text.as_slice())), layout, source))
}

/// An input as the tar reader wants it.
struct Sequential<'a> {
    input: &'a Input,
    at: u64,
}

impl Read for Sequential<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read_at(self.at, buffer).map_err(io::Error::other)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Sequential<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.input.len().checked_add_signed(by),
        };
        self.at = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
