//! The parts of a trace.dat whose content is the same in both versions.

use super::FORMAT;
use super::options::Options;
use super::reader::Reader;
use crate::ReadError;

/// Everything that the metadata says.
pub(super) struct Contents {
    /// The kernel's description of a page, where the file has it.
    pub(super) header_page: Option<String>,
    /// System and text.
    pub(super) formats: Vec<(String, Vec<u8>)>,
    pub(super) kallsyms: Vec<u8>,
    pub(super) printk: Vec<u8>,
    pub(super) cmdlines: Vec<u8>,
    pub(super) options: Options,
    /// The first is the top one, whose name is empty.
    pub(super) buffers: Vec<Buffer>,
}

/// One trace instance's data.
pub(super) struct Buffer {
    pub(super) name: String,
    pub(super) clock: Option<String>,
    pub(super) page_size: Option<u32>,
    pub(super) packed: bool,
    pub(super) cpus: Vec<CpuData>,
}

/// Where one CPU's data lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuData {
    pub(super) cpu: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// `header_page` and `header_event`; the text of the former.
pub(super) fn header_info(reader: &mut Reader<'_>) -> Result<String, ReadError> {
    reader.set_part("page header description");
    reader.expect(b"header_page\0")?;
    let len = reader.u64("header_page's size")?;
    let text = reader.bytes(len, "header_page")?;
    reader.expect(b"header_event\0")?;
    let len = reader.u64("header_event's size")?;
    reader.bytes(len, "header_event")?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Formats of ftrace's own entries.
pub(super) fn ftrace_formats(reader: &mut Reader<'_>) -> Result<Vec<(String, Vec<u8>)>, ReadError> {
    reader.set_part("ftrace formats");
    let count = reader.u32("the number of formats")?;
    let mut formats = Vec::new();
    for _ in 0..count {
        formats.push(("ftrace".to_owned(), format_text(reader)?));
    }
    Ok(formats)
}

/// Formats of the events, by system.
pub(super) fn event_formats(reader: &mut Reader<'_>) -> Result<Vec<(String, Vec<u8>)>, ReadError> {
    reader.set_part("event formats");
    let systems = reader.u32("the number of systems")?;
    let mut formats = Vec::new();
    for _ in 0..systems {
        let system = reader.string("a system's name")?;
        for _ in 0..reader.u32("the number of events")? {
            formats.push((system.clone(), format_text(reader)?));
        }
    }
    Ok(formats)
}

fn format_text(reader: &mut Reader<'_>) -> Result<Vec<u8>, ReadError> {
    let len = reader.u64("a format's size")?;
    reader.bytes(len, "a format")
}

/// A text with a 32-bit size: kallsyms and printk formats.
pub(super) fn sized_text(reader: &mut Reader<'_>, what: &'static str) -> Result<Vec<u8>, ReadError> {
    reader.set_part(what);
    let len = reader.u32("its size")?;
    reader.bytes(u64::from(len), what)
}

/// The saved names of tasks, with a 64-bit size.
pub(super) fn cmdlines(reader: &mut Reader<'_>) -> Result<Vec<u8>, ReadError> {
    reader.set_part("saved names of tasks");
    let len = reader.u64("their size")?;
    reader.bytes(len, "names")
}

/// A latency tracer's file holds text instead of pages.
pub(super) fn latency_text() -> ReadError {
    let what = "holds a latency tracer's text instead of ring-buffer pages; write it out with `trace-cmd report FILE > \
                FILE.txt` and read that";
    ReadError::Unsupported { format: FORMAT, what: what.to_owned() }
}
