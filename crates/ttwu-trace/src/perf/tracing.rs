//! The tracing data that perf stores: the beginning of a version 6 trace.dat, with all tracepoint formats in it.

use super::bytes::Bytes;
use crate::source::Source;
use crate::{Encoding, Endian, Symbols, TracepointFormat};

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// What of it matters.
#[derive(Debug, Default)]
pub(super) struct Tracing {
    pub(super) formats: Vec<TracepointFormat>,
    pub(super) symbols: Symbols,
}

/// Reads the section. What cannot be read is said in the health, and what came before it is kept.
pub(super) fn parse(bytes: &[u8], source: &mut Source) -> Tracing {
    let mut tracing = Tracing::default();
    if parse_into(bytes, &mut tracing, source).is_none() {
        let text = format!("tracing data ends early; kept {} tracepoint formats", tracing.formats.len());
        source.health.add_repair(text);
    }
    tracing
}

fn parse_into(bytes: &[u8], tracing: &mut Tracing, source: &mut Source) -> Option<()> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let mut head = Bytes::new(rest, Endian::Little);
    let _version = head.c_string()?;
    let endian = if head.u8()? == 0 { Endian::Little } else { Endian::Big };
    let long_bytes = if head.u8()? == 4 { 4 } else { 8 };
    let encoding = Encoding { endian, long_bytes };
    let mut rest = Bytes::new(head.rest(), endian);
    let _page_bytes = rest.u32()?;
    for _ in ["header_page", "header_event"] {
        rest.c_string()?;
        let len = rest.u64()?;
        rest.take(len)?;
    }
    let ftrace = rest.u32()?;
    for _ in 0..ftrace {
        format(&mut rest, "ftrace", encoding, tracing, source)?;
    }
    let systems = rest.u32()?;
    for _ in 0..systems {
        let system = String::from_utf8_lossy(rest.c_string()?);
        let count = rest.u32()?;
        for _ in 0..count {
            format(&mut rest, &system, encoding, tracing, source)?;
        }
    }
    let len = rest.u32()?;
    tracing.symbols.add_kallsyms(rest.take(u64::from(len))?);
    let len = rest.u32()?;
    tracing.symbols.add_printk_formats(rest.take(u64::from(len))?);
    Some(())
}

fn format(
    rest: &mut Bytes<'_>,
    system: &str,
    encoding: Encoding,
    tracing: &mut Tracing,
    source: &mut Source,
) -> Option<()> {
    let len = rest.u64()?;
    match TracepointFormat::parse(system, rest.take(len)?, encoding) {
        Ok(format) => tracing.formats.push(format),
        Err(error) => source.health.add_repair(format!("dropped a format of {system}: {error}")),
    }
    Some(())
}
