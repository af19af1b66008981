//! Which format a file has, by its content alone; compression around it is undone.
//!
//! Names lie (`perf.data` may be anything), so nothing here looks at one. Each format's module brings two functions:
//! `probe(&Head) -> bool`, cheap and free of false positives on the other formats, and
//! `open(Input, &mut Source) -> Result<Box<dyn Decoder>, ReadError>`. The tables below are the only list of them; the first
//! probe that says yes wins, so formats with a magic number come before those that are recognised by their looks.
//!
//! What this does not do: guess. Content that no probe knows is refused, with what it looks like.

use crate::source::{Decoder, Source};
use crate::unwrap::unwrap;
use crate::{Input, ReadError};
use std::fmt;
use std::path::Path;

/// How much of an input a probe sees. Text formats may begin with a long header, and HTML with its style sheets.
pub(crate) const HEAD_LEN: u64 = 64 << 10;

/// The formats that ttwu reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `perf record`'s file, seekable or pipe mode.
    PerfData,
    /// `trace-cmd record`'s file, version 6 or 7.
    TraceDat,
    /// A directory copied from tracefs: raw per-CPU ring-buffer pages and format files.
    Tracefs,
    /// SchedViz's archive of raw pages and format files.
    Schedviz,
    /// One or more bare ring-buffer pages.
    RawPages,
    /// ftrace text: `trace`, `trace-cmd report`, systrace and atrace, in HTML or not.
    FtraceText,
    /// `perf script`'s text.
    PerfScript,
    /// Perfetto's protobuf.
    Perfetto,
    /// ttwu's own format.
    Ttwu,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerfData => "perf.data",
            Self::TraceDat => "trace.dat",
            Self::Tracefs => "tracefs directory",
            Self::Schedviz => "SchedViz archive",
            Self::RawPages => "raw ring-buffer pages",
            Self::FtraceText => "ftrace text",
            Self::PerfScript => "perf script text",
            Self::Perfetto => "Perfetto",
            Self::Ttwu => "ttwu",
        })
    }
}

/// What a probe may look at.
pub(crate) struct Head<'a> {
    /// The first bytes, up to 64 KiB.
    pub(crate) bytes: &'a [u8],
    /// Length of the whole input.
    pub(crate) len: u64,
}

type Opened = Result<Box<dyn Decoder>, ReadError>;

/// A format that is one file.
struct FileReader {
    format: Format,
    probe: fn(&Head<'_>) -> bool,
    open: fn(Input, &mut Source) -> Opened,
}

/// A format that is a directory.
struct DirectoryReader {
    format: Format,
    probe: fn(&Path) -> bool,
    open: fn(&Path, &mut Source) -> Opened,
}

/// Magic numbers first, then structure, then looks.
const FILES: &[FileReader] = &[
    FileReader { format: Format::PerfData, probe: crate::perf::probe, open: crate::perf::open },
    FileReader { format: Format::TraceDat, probe: crate::tracedat::probe, open: crate::tracedat::open },
    FileReader { format: Format::Ttwu, probe: crate::ttwu::probe, open: crate::ttwu::open },
    FileReader { format: Format::Schedviz, probe: crate::schedviz::probe, open: crate::schedviz::open },
    FileReader { format: Format::Perfetto, probe: crate::perfetto::probe, open: crate::perfetto::open },
    FileReader {
        format: Format::FtraceText,
        probe: crate::text::probe_ftrace,
        open: crate::text::open_ftrace,
    },
    FileReader { format: Format::PerfScript, probe: crate::text::probe_perf, open: crate::text::open_perf },
    FileReader { format: Format::RawPages, probe: crate::rawpages::probe, open: crate::rawpages::open },
];

const DIRECTORIES: &[DirectoryReader] = &[DirectoryReader {
    format: Format::Tracefs,
    probe: crate::tracefs::probe,
    open: crate::tracefs::open_dir,
}];

/// The format of an (unwrapped) input.
///
/// # Errors
/// [`ReadError::UnknownFormat`], with what the content looks like.
pub fn detect(input: &Input) -> Result<Format, ReadError> {
    file_reader(input).map(|reader| reader.format)
}

fn file_reader(input: &Input) -> Result<&'static FileReader, ReadError> {
    let bytes = input.bytes(0, HEAD_LEN)?;
    reader_of(&Head { bytes: &bytes, len: input.len() }, input.name())
}

fn reader_of(head: &Head<'_>, name: &str) -> Result<&'static FileReader, ReadError> {
    FILES.iter().find(|reader| (reader.probe)(head)).ok_or_else(|| {
        let hint = format!("{name} {}; ttwu reads {EXPECTED}", looks_like(head));
        ReadError::UnknownFormat { hint }
    })
}

/// Is this the beginning of something that can be read, wrapped or not, when nobody knows yet how much follows?
pub(crate) fn expect_known(head: &[u8], name: &str) -> Result<(), ReadError> {
    if crate::unwrap::Wrapping::detect(head).is_some() {
        return Ok(());
    }
    reader_of(&Head { bytes: head, len: u64::MAX }, name).map(drop)
}

pub(crate) fn open_path(path: &Path) -> Result<(Format, Box<dyn Decoder>, Source), ReadError> {
    if !path.is_dir() {
        return open_input(Input::open(path)?);
    }
    let Some(reader) = DIRECTORIES.iter().find(|reader| (reader.probe)(path)) else {
        let hint = format!(
            "{} is a directory without per_cpu/cpu*/trace_pipe_raw copies and events/*/format files; ttwu reads {EXPECTED}",
            path.display()
        );
        return Err(ReadError::UnknownFormat { hint });
    };
    let mut source = Source::default();
    let decoder = (reader.open)(path, &mut source)?;
    Ok((reader.format, decoder, source))
}

pub(crate) fn open_input(input: Input) -> Result<(Format, Box<dyn Decoder>, Source), ReadError> {
    let mut source = Source::default();
    let (input, undone) = unwrap(input, &mut source.health)?;
    let reader = file_reader(&input)?;
    let decoder = (reader.open)(input, &mut source)?;
    for wrapping in undone.iter().rev() {
        source.meta.format.push_str(" in ");
        source.meta.format.push_str(wrapping.name());
    }
    Ok((reader.format, decoder, source))
}

const EXPECTED: &str = "perf.data, trace.dat, tracefs pages, ftrace and perf script text, Perfetto and .ttwu \
                        (plain or in gzip, xz or zstd)";

/// Beginnings of files that people hand to a trace reader by mistake, and what helps.
const LOOKS: &[(&[u8], &str)] = &[
    (b"\x7fELF", "is an ELF program or library, not a recording"),
    (b"\xc1\x1f\xfc\xc1", "is a CTF stream (LTTng, babeltrace), which ttwu does not read"),
    (b"\xc1\xfc\x1f\xc1", "is a CTF stream (LTTng, babeltrace), which ttwu does not read"),
    (b"/* CTF ", "is CTF metadata (LTTng, babeltrace), which ttwu does not read"),
    (b"\xa1\xb2\xc3\xd4", "is a pcap network capture"),
    (b"\xd4\xc3\xb2\xa1", "is a pcap network capture"),
    (b"\x0a\x0d\x0d\x0a", "is a pcapng network capture"),
    (b"BZh", "is compressed with bzip2; decompress it with `bzip2 -dk` first"),
    (b"\x04\x22\x4d\x18", "is compressed with lz4; decompress it with `lz4 -dk` first"),
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
    (b"PAR1", "is a Parquet file, which ttwu only writes"),
    (b"SQLite format 3\0", "is an SQLite data base"),
    (b"\x10\x00\x04\x46\x78\x54\x16\x00", "is a Fuchsia trace, which ttwu does not read"),
    (b"\x89PNG", "is a picture"),
    (b"%PDF", "is a PDF document"),
];

/// What unknown content looks like, as a predicate.
fn looks_like(head: &Head<'_>) -> String {
    if head.len == 0 {
        return "is empty: did the recorder stop before it wrote anything?".to_owned();
    }
    let head = head.bytes;
    if let Some((_, says)) = LOOKS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*says).to_owned();
    }
    if head.len() > 262 && &head[257..262] == b"ustar" {
        return "is a tar archive without SchedViz's files; unpack it first".to_owned();
    }
    if head.iter().all(|&byte| byte == 0) {
        return format!("begins with {} zero bytes: was it preallocated and never written?", head.len());
    }
    let text = head.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let mostly_text = text.len() > head.len() * 9 / 10;
    match text.trim_start().as_bytes().first() {
        Some(b'{' | b'[') if mostly_text && text.contains("\"traceEvents\"") => {
            "is Chrome's JSON trace format, which ttwu only writes".to_owned()
        }
        Some(b'{' | b'[') if mostly_text => "is JSON".to_owned(),
        Some(b'<') if mostly_text => "is HTML or XML without a systrace inside".to_owned(),
        Some(_) if mostly_text => {
            let line: String = text.trim_start().lines().next().unwrap_or("").chars().take(60).collect();
            format!("is text that is no trace's, beginning with {line:?}")
        }
        _ => format!("begins with the bytes {:02x?}", &head[..head.len().min(8)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &[u8], expect: &str) {
        let error = detect(&Input::from_bytes(content.to_vec(), "x")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("unknown format: x {expect}")), "{error}");
        assert!(error.ends_with(&format!("; ttwu reads {EXPECTED}")), "{error}");
    }

    #[test]
    fn unknown_content_says_what_it_looks_like() {
        check(b"", "is empty");
        check(b"\x7fELF\x02\x01", "is an ELF program");
        check(b" {\"traceEvents\": []}", "is Chrome's JSON");
        check(b"[1, 2]", "is JSON");
        check(b"\xd4\xc3\xb2\xa1\x02", "is a pcap");
        check(b"/* CTF 1.8 */", "is CTF metadata");
        check(&[0; 100], "begins with 100 zero bytes");
        check(b"Dear all,\nhello", "is text that is no trace's, beginning with \"Dear all,\"");
        check(&[1, 2, 3, 0xff, 0xfe], "begins with the bytes [01, 02, 03, ff, fe]");
    }

    #[test]
    fn a_device_without_end_is_refused_by_its_beginning() {
        let Err(error) = open_path(Path::new("/dev/zero")) else { panic!("opened /dev/zero") };
        assert!(
            error.to_string().starts_with("unknown format: /dev/zero begins with 65536 zero bytes"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_does_not_say_its_length_is_read() {
        let Err(error) = open_path(Path::new("/proc/self/limits")) else { panic!("opened limits") };
        assert!(error.to_string().contains("is text that is no trace's, beginning with \"Limit"), "{error}");
    }

    #[test]
    fn a_directory_that_is_no_tracefs_is_refused() {
        let Err(error) = open_path(Path::new("/")) else { panic!("opened /") };
        assert!(error.to_string().starts_with("unknown format: / is a directory without"), "{error}");
    }
}
