//! trace.dat version 6: one part after the other, no compression.

use super::options::{self, Options, RawOption};
use super::parts::{self, Buffer, Contents, CpuData};
use super::reader::Reader;
use crate::ReadError;
use ttwu_model::TraceHealth;

/// `NR_CPUS` has 8192 as its largest value; a little more is allowed for, a lot more is damage.
const CPUS_MAX: u32 = 1 << 16;

/// Reads everything but the trace data.
pub(super) fn read(reader: &mut Reader<'_>, health: &mut TraceHealth) -> Result<Contents, ReadError> {
    let header_page = parts::header_info(reader)?;
    let mut formats = parts::ftrace_formats(reader)?;
    formats.extend(parts::event_formats(reader)?);
    let kallsyms = parts::sized_text(reader, "kallsyms")?;
    let printk = parts::sized_text(reader, "printk formats")?;
    let cmdlines = parts::cmdlines(reader)?;
    reader.set_part("list of CPUs");
    let mut cpus = reader.u32("the CPU count")?;
    let mut options = Options::default();
    let mut instances = Vec::new();
    let mut tag = reader.bytes(10, "`options`, `latency` or `flyrecord`")?;
    if tag.starts_with(b"options") {
        reader.set_part("options");
        loop {
            let option = RawOption::read(reader, true)?;
            match option.id {
                options::DONE => break,
                options::BUFFER => {
                    let mut data = Reader::new(&option.data, 0, reader.order(), "buffer option");
                    instances.push((data.u64("its offset")?, data.string("its name")?));
                }
                _ => options.take(&option, reader.order(), health)?,
            }
        }
        reader.set_part("trace data");
        tag = reader.bytes(10, "`latency` or `flyrecord`")?;
    }
    // The option holds the machine's CPUs where they are more than those with data.
    cpus = options.cpu_count.unwrap_or(cpus);
    let buffer = flyrecord(reader, &tag, String::new(), cpus)?;
    let mut buffers = vec![buffer];
    for (offset, name) in instances {
        match instance(reader, offset, name.clone(), cpus) {
            Ok(buffer) => buffers.push(buffer),
            Err(error) => health.add_repair(format!("buffer `{name}` is left out: {error}")),
        }
    }
    options.cpu_count = Some(cpus);
    Ok(Contents { header_page: Some(header_page), formats, kallsyms, printk, cmdlines, options, buffers })
}

/// An instance's buffer, which lies elsewhere in the file and may begin with options of its own.
fn instance(reader: &Reader<'_>, offset: u64, name: String, cpus: u32) -> Result<Buffer, ReadError> {
    let mut reader = Reader::new(reader.input(), offset, reader.order(), "instance's trace data");
    let mut tag = reader.bytes(10, "`flyrecord`")?;
    if tag.starts_with(b"options") {
        while RawOption::read(&mut reader, true)?.id != options::DONE {}
        tag = reader.bytes(10, "`flyrecord`")?;
    }
    flyrecord(&mut reader, &tag, name, cpus)
}

fn flyrecord(reader: &mut Reader<'_>, tag: &[u8], name: String, cpus: u32) -> Result<Buffer, ReadError> {
    if tag.starts_with(b"latency") {
        return Err(parts::latency_text());
    }
    if !tag.starts_with(b"flyrecord") {
        let found = String::from_utf8_lossy(tag).into_owned();
        let what = format!("expected `options`, `latency` or `flyrecord`, found {found:?}");
        return Err(reader.damaged(reader.at() - tag.len() as u64, what));
    }
    if cpus > CPUS_MAX {
        return Err(reader.damaged(reader.at(), format!("{cpus} CPUs are more than Linux can have")));
    }
    let mut data = Vec::new();
    for cpu in 0..cpus {
        let offset = reader.u64("a CPU's data offset")?;
        let size = reader.u64("a CPU's data size")?;
        data.push(CpuData { cpu, offset, size });
    }
    Ok(Buffer { name, clock: None, page_size: None, packed: false, cpus: data })
}
