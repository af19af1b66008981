//! Text formats: what `cat trace`, `trace-cmd report`, `perf script`, systrace and atrace print.
//!
//! Text is what people send each other, and every tool prints it a little differently, so one reader takes all of it:
//! [`wrapper`] takes HTML and JavaScript off, [`lines`] also Chrome's JSON; [`prefix`] reads who, where and when;
//! [`event`] what happened; [`state`] and [`flags`] undo two columns that lost information on the way; [`header`] what
//! stands around the events; [`decoder`] puts it in time order.
//!
//! Text loses things that binary recordings have: nanoseconds (six decimals), most `common_flags`, sometimes the `+` of
//! `R+`. Each loss is *unknown* in the trace, not a guess, and named in its notes.
//!
//! This does not read function-graph text, the kernel's own latency format (relative times), nor call stacks, which it
//! skips.

mod decoder;
mod event;
mod flags;
mod header;
mod lines;
mod prefix;
mod scan;
mod state;
#[cfg(test)]
mod tests;
mod wrapper;

use crate::detect::Head;
use crate::source::{Decoder, Source};
use crate::{Input, ReadError};
use decoder::TextDecoder;
use flags::FlagColumn;
use header::Header;
use lines::Lines;
use prefix::Style;
use wrapper::Wrapper;

/// Lines that a probe looks at.
const PROBE_LINES: usize = 2000;

/// Is it ftrace's text, plain, in HTML or in JSON?
pub(crate) fn probe_ftrace(head: &Head<'_>) -> bool {
    // The trace may lie behind megabytes of the viewer's code or of other events; only `open` can see that there is none.
    let is_whole = head.len <= head.bytes.len() as u64;
    let holds = |key: &[u8]| !is_whole || memchr::memmem::find(head.bytes, key).is_some();
    if wrapper::is_html(head.bytes) {
        holds(b"trace-data") || holds(b"linuxPerfData")
    } else if is_chrome_json(head.bytes) {
        holds(b"systemTraceEvents")
    } else {
        looks_like(head.bytes) == Some(Style::Ftrace)
    }
}

/// Is it `perf script`'s text?
pub(crate) fn probe_perf(head: &Head<'_>) -> bool {
    looks_like(head.bytes) == Some(Style::Perf)
}

/// Opens ftrace's text.
pub(crate) fn open_ftrace(input: Input, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    open(input, Style::Ftrace, source)
}

/// Opens `perf script`'s text.
pub(crate) fn open_perf(input: Input, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    open(input, Style::Perf, source)
}

fn open(input: Input, style: Style, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    let head = input.bytes(0, 4096)?;
    let name = input.name().to_owned();
    let lines = if is_chrome_json(&head) {
        Lines::in_json(input)?.ok_or_else(|| ReadError::UnknownFormat {
            hint: format!("{name} is Chrome's JSON trace format without ftrace text (systemTraceEvents)"),
        })?
    } else {
        Lines::new(input)
    };
    Ok(Box::new(TextDecoder::open(lines, Wrapper::new(&head), style, source)?))
}

fn is_chrome_json(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    head.starts_with(b"{") && memchr::memmem::find(&head[..head.len().min(256)], b"traceEvents\"").is_some()
        || head.starts_with(b"{") && memchr::memmem::find(head, b"\"systemTraceEvents\"").is_some()
}

/// Whose text it is, by the first lines that parse; a header alone counts too (an empty trace).
fn looks_like(head: &[u8]) -> Option<Style> {
    let mut header = Header::new();
    let mut source = Source::default();
    let mut wrapper = Wrapper::new(head);
    // The last line of the head may be cut anywhere, but one that is not cut is before it.
    for line in head.split(|&byte| byte == b'\n').take(PROBE_LINES) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(line) = wrapper.line(line) else { continue };
        if header.line(&line, &mut source) {
            continue;
        }
        for style in [Style::Ftrace, Style::Perf] {
            if prefix::parse(&line, style, &FlagColumn::new()).is_ok()
                || prefix::parse(&line, style, &header.flags).is_ok()
            {
                return Some(style);
            }
        }
    }
    if header.seen {
        return Some(Style::Ftrace);
    }
    // perf script without CPU or time stamp: to be refused with the remedy, not as something unknown.
    memchr::memmem::find(head, b" sched:sched_").map(|_| Style::Perf)
}
