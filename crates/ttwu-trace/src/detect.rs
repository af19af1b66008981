//! Which format a file has, by its content; compression around it is undone.

use crate::source::{Decoder, Source};
use crate::{Input, ReadError};
use std::fmt;
use std::path::Path;

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

/// The format of an (unwrapped) input.
///
/// # Errors
/// [`ReadError::UnknownFormat`], with what the content looks like.
pub fn detect(input: &Input) -> Result<Format, ReadError> {
    let head = input.bytes(0, 4096)?;
    let _ = head;
    Err(ReadError::UnknownFormat { hint: format!("{} starts with nothing that ttwu knows", input.name()) })
}

pub(crate) fn open_path(path: &Path) -> Result<(Format, Box<dyn Decoder>, Source), ReadError> {
    open_input(Input::open(path)?)
}

pub(crate) fn open_input(input: Input) -> Result<(Format, Box<dyn Decoder>, Source), ReadError> {
    // Each format's module has `open(Input, &mut Source) -> Result<Box<dyn Decoder>, ReadError>`.
    let format = detect(&input)?;
    Err(ReadError::UnknownFormat { hint: format!("no reader for {format} yet") })
}
