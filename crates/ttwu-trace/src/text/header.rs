//! Lines around the events that say something about the whole: ftrace's comments, trace-cmd's preamble, and the comments
//! of `perf script --header`.

use super::flags::FlagColumn;
use super::scan::{Scan, trim_start};
use crate::source::Source;
use std::collections::BTreeSet;

/// What the header says that the decoder needs.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) flags: FlagColumn,
    /// Entries that the kernel says are in its buffer, and that were written to it.
    pub(super) entries: Option<(u64, u64)>,
    /// trace-cmd's number of CPU buffers: no event can be on a CPU beyond it.
    pub(super) cpu_buffers: Option<u64>,
    /// Something that only a trace has was there.
    pub(super) seen: bool,
}

impl Header {
    pub(super) fn new() -> Self {
        Self { flags: FlagColumn::new(), entries: None, cpu_buffers: None, seen: false }
    }

    /// Takes a line that is no event; `false` if it is nothing that is known.
    pub(super) fn line(&mut self, line: &[u8], source: &mut Source) -> bool {
        if let Some(comment) = line.strip_prefix(b"#") {
            self.comment(comment, source);
            return true;
        }
        let known = if let Some(number) = line.strip_prefix(b"cpus=") {
            self.cpu_buffers = Scan::new(number).unsigned();
            source.meta.cpus_recorded = self.cpu_buffers.and_then(|number| u32::try_from(number).ok());
            true
        } else {
            line.strip_prefix(b"version = ").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
                || is_empty_cpu(line)
                || line.starts_with(b"TRACE:")
                // Old trace-cmd: the trace's number of lines.
                || line.starts_with(b"Latency: ")
                || line.starts_with(b"Average wakeup latency")
                || line.starts_with(b"Maximum Latency")
                || line.starts_with(b"Minimum Latency")
                || line.starts_with(b"RT task timings")
                || line.starts_with(b"Other tasks timings")
        };
        self.seen |= known;
        known
    }

    fn comment(&mut self, comment: &[u8], source: &mut Source) {
        let text = trim_start(comment);
        if let Some(tracer) = text.strip_prefix(b"tracer: ") {
            self.seen = true;
            source.meta.facts.insert("tracer".to_owned(), lossy(tracer));
        } else if let Some(counts) = text.strip_prefix(b"entries-in-buffer/entries-written: ") {
            let mut scan = Scan::new(counts);
            let kept = scan.unsigned();
            let written = scan.literal(b"/").then(|| scan.unsigned()).flatten();
            // A file may be several buffers' texts, one behind the other.
            if let (Some(kept), Some(written)) = (kept, written) {
                let (kept_before, written_before) = self.entries.unwrap_or((0, 0));
                self.entries =
                    Some((kept_before.saturating_add(kept), written_before.saturating_add(written)));
            }
            if scan.skip_past(b"#P:") {
                source.meta.cpus_recorded = scan.unsigned().and_then(|number| u32::try_from(number).ok());
            }
        } else if let Some(events) = text.strip_prefix(b"enabled events: ") {
            let names: BTreeSet<String> = events
                .split(u8::is_ascii_whitespace)
                .filter(|name| name.contains(&b':'))
                .map(lossy)
                .collect();
            if !names.is_empty() {
                source.meta.events_recorded = Some(names);
            }
        } else if memchr::memmem::find(text, b"=> ").is_some() {
            self.flags.legend(text);
        } else if let Some(at) = memchr::memmem::find(text, b" : ") {
            perf_header(text[..at].trim_ascii(), text[at + 3..].trim_ascii(), source);
        }
    }
}

/// `CPU 3 is empty`, or a file's buffers being named.
fn is_empty_cpu(line: &[u8]) -> bool {
    line.strip_prefix(b"CPU ").is_some_and(|rest| {
        let mut scan = Scan::new(rest);
        scan.unsigned().is_some() && scan.literal(b" is empty")
    })
}

/// One line of `perf script --header`: `# os release : 6.18.44`.
fn perf_header(key: &[u8], value: &[u8], source: &mut Source) {
    let meta = &mut source.meta;
    let number = || Scan::new(value).unsigned().and_then(|number| u32::try_from(number).ok());
    match key {
        b"hostname" => meta.hostname = Some(lossy(value)),
        b"os release" => meta.kernel_release = Some(lossy(value)),
        b"arch" => meta.arch = Some(lossy(value)),
        b"perf version" => meta.recorder = Some(format!("perf version {}", lossy(value))),
        b"cmdline" => meta.command = Some(lossy(value)),
        b"nrcpus avail" => meta.cpus_recorded = number(),
        b"event" => {
            // `name = sched:sched_switch, , id = { 1, 2 }, type = 2, …`
            let name =
                value.strip_prefix(b"name = ").and_then(|rest| rest.split(|&byte| byte == b',').next());
            if let Some(name) = name {
                meta.events_recorded.get_or_insert_default().insert(lossy(name.trim_ascii()));
            }
        }
        // How many, not which: a fact, not a set.
        b"nrcpus online" | b"cpudesc" | b"total memory" | b"clockid" | b"captured on" => {
            meta.facts.insert(lossy(key), lossy(value));
        }
        _ => {}
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
