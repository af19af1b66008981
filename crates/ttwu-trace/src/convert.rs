//! From any readable recording to a file of another format.
//!
//! Everything streams: the reader hands out chunks, the writer keeps what it needs of them, so that a file larger than
//! memory converts. The output appears under its name only when it is complete.

use crate::{Chunk, ReadError, TraceStream};
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use ttwu_model::{TraceHealth, TraceMeta, TraceParts};

/// A format that ttwu writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// ttwu's own format: keeps everything.
    Ttwu,
    /// Perfetto's protobuf, for ui.perfetto.dev and trace_processor.
    Perfetto,
    /// Chrome's JSON, for viewers that know nothing else.
    Chrome,
    /// A directory of Parquet tables: events, switches, wakeups, tasks, cpus.
    Parquet,
}

impl Target {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("ttwu", Self::Ttwu),
        ("perfetto", Self::Perfetto),
        ("chrome", Self::Chrome),
        ("parquet", Self::Parquet),
    ];

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, target)| target)
    }

    /// Can this build write it?
    ///
    /// # Errors
    /// [`ConvertError::NotBuilt`].
    pub const fn check_built(self) -> Result<(), ConvertError> {
        match self {
            Self::Parquet if !cfg!(feature = "parquet") => Err(ConvertError::NotBuilt { target: self }),
            Self::Perfetto | Self::Ttwu | Self::Parquet | Self::Chrome => Ok(()),
        }
    }

    /// The format that an output's file name asks for.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "ttwu" => Some(Self::Ttwu),
            "pftrace" | "perfetto-trace" | "perfetto" => Some(Self::Perfetto),
            "json" => Some(Self::Chrome),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, target)| target == self).map_or("?", |(name, _)| name);
        f.write_str(name)
    }
}

/// What a conversion did.
#[derive(Debug, Clone)]
pub struct ConvertSummary {
    /// Events read.
    pub events_in: u64,
    /// Rows, events or slices written, in the target's own terms.
    pub events_out: u64,
    /// Size of the output.
    pub bytes_out: u64,
    /// What is wrong with the input, and what the target could not keep.
    pub health: TraceHealth,
}

/// Why a conversion failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The input.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The output's path.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// This build cannot write the format.
    #[error("this build of ttwu cannot write {target}: build it with `--features {target}`")]
    NotBuilt {
        /// The format.
        target: Target,
    },
}

/// What a writer wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Rows, events or slices.
    pub events: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A format's writer: takes chunks in time order, then what is known at the end.
pub trait TraceWriter {
    /// Adds the next events. Both tables of the chunk only grow from call to call.
    ///
    /// # Errors
    /// From the output.
    fn write(&mut self, chunk: Chunk<'_>) -> io::Result<()>;

    /// Ends the output.
    ///
    /// # Errors
    /// From the output.
    fn finish(self: Box<Self>, parts: &TraceParts) -> io::Result<Written>;
}

/// Counts what goes through.
pub(crate) struct Counted<W> {
    out: W,
    pub(crate) bytes: u64,
}

impl<W: Write> Counted<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, bytes: 0 }
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buffer)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads the recording at `input` and writes it to `output` as `target`. An output that exists is replaced, once the new
/// one is complete.
///
/// # Errors
/// [`ConvertError`].
pub fn convert(input: &Path, output: &Path, target: Target) -> Result<ConvertSummary, ConvertError> {
    let stream = TraceStream::open(input)?;
    let failed = |source| ConvertError::Write { path: output.to_owned(), source };
    if target == Target::Parquet {
        return crate::parquet_tables::convert_to_directory(stream, output);
    }
    // Tables beside the events stay beside them where the format can hold them. What is no `.ttwu` file has none.
    let keeps = target == Target::Ttwu && input.is_file();
    let tables = if keeps { crate::side_tables(input).unwrap_or_default() } else { Vec::new() };
    // A pipe or device is written as it comes: a file put in its place would destroy it.
    if std::fs::metadata(output).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let out = File::options().write(true).open(output).map_err(failed)?;
        let writer = file_writer(target, out, &stream, &tables).map_err(failed)?;
        return pump(stream, writer, output);
    }
    // The file itself, not a link to it, is replaced.
    let place = output.canonicalize().unwrap_or_else(|_| output.to_owned());
    let file = new_file(directory_of(&place)).map_err(failed)?;
    let writer = file.reopen().and_then(|out| file_writer(target, out, &stream, &tables)).map_err(failed)?;
    let summary = pump(stream, writer, output)?;
    file.persist(place).map_err(|error| failed(error.error))?;
    Ok(summary)
}

/// The writer of a format that is one file.
fn file_writer(
    target: Target,
    out: File,
    stream: &TraceStream,
    tables: &[(String, Vec<u8>)],
) -> io::Result<Box<dyn TraceWriter>> {
    let out = BufWriter::with_capacity(1 << 20, out);
    Ok(match target {
        Target::Ttwu => {
            let mut writer = crate::TtwuWriter::new(out, stream.meta())?;
            for (name, content) in tables {
                writer.side_table(name, content)?;
            }
            Box::new(writer)
        }
        Target::Perfetto => Box::new(crate::PerfettoWriter::new(out, stream.meta())?),
        Target::Chrome => Box::new(crate::ChromeWriter::new(out)?),
        Target::Parquet => unreachable!("a folder of files, not one"),
    })
}

/// The directory that a path is in.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) | None => Path::new("."),
    }
}

/// A file beside the output, with the permissions that a new file would have.
fn new_file(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new()
        .prefix(".ttwu-convert-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)
}

/// Passes all of a stream to a writer.
pub(crate) fn pump(
    mut stream: TraceStream,
    mut writer: Box<dyn TraceWriter>,
    output: &Path,
) -> Result<ConvertSummary, ConvertError> {
    let failed = |source| ConvertError::Write { path: output.to_owned(), source };
    let mut events_in = 0;
    while let Some(chunk) = stream.next_chunk() {
        events_in += chunk.events.len() as u64;
        writer.write(chunk).map_err(failed)?;
    }
    let parts = stream.finish()?;
    let written = writer.finish(&parts).map_err(failed)?;
    Ok(ConvertSummary {
        events_in,
        events_out: written.events,
        bytes_out: written.bytes,
        health: parts.health,
    })
}

/// The name and version under which ttwu signs what it writes.
pub(crate) const WRITER: &str = concat!("ttwu ", env!("CARGO_PKG_VERSION"));

/// The recorder of a trace, for formats that name one program: its own where known.
pub(crate) fn recorder(meta: &TraceMeta) -> &str {
    meta.recorder.as_deref().unwrap_or(WRITER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: Target, out: &str) -> Option<(ConvertSummary, tempfile::TempDir)> {
        let input = ttwu_testing::shared("traces/own/hs-full.data.xz")?;
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join(out);
        assert_eq!(Target::from_path(&output), Some(target));
        let summary = convert(&input, &output, target).unwrap();
        assert_eq!(summary.events_in, 4137);
        assert_eq!(summary.bytes_out, std::fs::metadata(&output).unwrap().len());
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left beside the output"
        );
        Some((summary, directory))
    }

    #[test]
    fn files_convert() {
        let Some((summary, directory)) = check(Target::Ttwu, "out.ttwu") else { return };
        assert_eq!(summary.events_out, 4137);
        assert_eq!(crate::read(&directory.path().join("out.ttwu")).unwrap().events().len(), 4137);
        let (summary, directory) = check(Target::Perfetto, "out.pftrace").unwrap();
        assert_eq!(summary.events_out, 4137);
        let counts = crate::read(&directory.path().join("out.pftrace")).unwrap();
        assert_eq!(counts.event_counts()["sched_waking"], 1102);
        let (summary, directory) = check(Target::Chrome, "out.json").unwrap();
        let text = std::fs::read_to_string(directory.path().join("out.json")).unwrap();
        assert_eq!(text.lines().count() as u64, summary.events_out + 3);
        let slices = text.matches(r#""ph":"X""#).count();
        assert!((800..1764).contains(&slices), "{slices} slices of 1764 switches, idle ones not drawn");
    }

    #[test]
    fn links_and_devices_stay_what_they_are() {
        let Some(input) = ttwu_testing::shared("traces/own/hs-pipe.data") else { return };
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file.ttwu"), directory.path().join("link.ttwu"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let summary = convert(&input, &link, Target::Ttwu).unwrap();
        assert!(link.is_symlink());
        assert_eq!(summary.bytes_out, std::fs::metadata(&file).unwrap().len());
        let null = directory.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        assert_eq!(convert(&input, &null, Target::Ttwu).unwrap().bytes_out, summary.bytes_out);
        assert!(null.is_symlink() && !std::fs::metadata(&null).unwrap().is_file());
    }

    #[test]
    fn failures_name_the_file() {
        let nowhere = Path::new("/nonexistent/in");
        let error = convert(nowhere, Path::new("out.ttwu"), Target::Ttwu).unwrap_err();
        assert!(error.to_string().starts_with("cannot read /nonexistent/in: "), "{error}");
        let Some(input) = ttwu_testing::shared("traces/own/hs-pipe.data") else { return };
        let error = convert(&input, Path::new("/nonexistent/out.ttwu"), Target::Ttwu).unwrap_err();
        assert!(error.to_string().starts_with("cannot write /nonexistent/out.ttwu: "), "{error}");
    }

    #[test]
    #[cfg(not(feature = "parquet"))]
    fn a_build_without_parquet_says_so() {
        let Some(input) = ttwu_testing::shared("traces/own/hs-pipe.data") else { return };
        let error = convert(&input, Path::new("out"), Target::Parquet).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this build of ttwu cannot write parquet: build it with `--features parquet`"
        );
    }

    #[test]
    fn targets_have_names() {
        for (name, target) in Target::ALL {
            assert_eq!((Target::from_name(name), target.to_string().as_str()), (Some(target), name));
        }
        assert_eq!(Target::from_name("svg"), None);
    }
}
