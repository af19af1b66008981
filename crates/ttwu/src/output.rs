//! Standard output that may be a pipe whose reader has gone, and standard error that may be asked to be quiet.

use crate::exit::{Done, Failure, Outcome};
use anyhow::{Context, bail};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use ttwu_trace::Target;

/// Text or JSON on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people: 80 columns.
    Text,
    /// For scripts: one object with a `schema` key.
    Json,
}

/// The format that a trace's file name asks for; a name without extension (or a device) asks for `.ttwu`.
pub(crate) fn trace_target(path: &Path) -> anyhow::Result<Target> {
    match (Target::from_path(path), path.extension()) {
        (Some(target), _) => Ok(target),
        (None, None) => Ok(Target::Ttwu),
        (None, Some(_)) => {
            bail!("{}: no format has this extension; known: .ttwu, .pftrace, .json, .parquet", path.display())
        }
    }
}

/// `-` means standard input, as for other tools; a file of that name is `./-`.
pub(crate) fn input_path(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path }
}

/// A file that can be read more than once: the one at `path`, or a temporary copy of a pipe.
#[derive(Debug)]
pub(crate) struct Rereadable {
    path: PathBuf,
    _copy: Option<tempfile::NamedTempFile>,
}

impl Rereadable {
    /// Copies a pipe to its end.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let path = input_path(path);
        // What cannot be read is for the reader to say.
        let kind = std::fs::metadata(path).map(|there| there.file_type());
        if !kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) {
            return Ok(Self { path: path.to_owned(), _copy: None });
        }
        let cannot = || format!("cannot read {}", path.display());
        let mut copy = tempfile::Builder::new().prefix("ttwu-").tempfile().with_context(cannot)?;
        let mut from = std::fs::File::open(path).with_context(cannot)?;
        std::io::copy(&mut from, &mut copy).with_context(cannot)?;
        Ok(Self { path: copy.path().to_owned(), _copy: Some(copy) })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes a result. A reader that stops early (`| head`) is not an error.
pub(crate) fn print(text: &str) -> Outcome {
    let text = harmless(text);
    let mut out = std::io::stdout().lock();
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        Ok(()) => Ok(Done::Ok),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Done::Ok),
        Err(error) => Err(Failure::input(anyhow::Error::new(error).context("cannot write the result"))),
    }
}

/// The words in lines of at most 80 columns, each after `indent` columns; the first line's are there.
pub(crate) fn wrapped(out: &mut String, indent: usize, text: &str) {
    let mut column = indent;
    let mut first = true;
    for word in text.split_whitespace() {
        if !first && column + word.len() + 1 > 80 {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
            first = true;
        }
        let space = if first { "" } else { " " };
        let _ = write!(out, "{space}{word}");
        column += word.len() + space.len();
        first = false;
    }
    out.push('\n');
}

/// Writes a line to standard error. Nobody can be told when that fails.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", one_line(line));
}

/// Text that cannot steer a terminal: a recording's task names are chosen by whoever ran there. Control characters other
/// than line feed and tab become the replacement character, one for one, so that columns stay.
fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    if text.contains(steers) { text.replace(steers, "\u{fffd}").into() } else { text.into() }
}

/// As [`harmless`], for a list that is written as it comes; a byte each, so it writes `?`.
#[derive(Debug)]
pub(crate) struct Harmless<W>(pub(crate) W);

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let steers = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t');
        if !buffer.iter().any(steers) {
            return self.0.write(buffer);
        }
        let clean: Vec<u8> = buffer.iter().map(|byte| if steers(byte) { b'?' } else { *byte }).collect();
        self.0.write(&clean)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// The text on one line that cannot steer a terminal: file names may hold anything.
fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let mut line = String::new();
    for char in text.chars() {
        if char.is_control() { line.extend(char.escape_default()) } else { line.push(char) }
    }
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2J\n\tb é"), "a\u{fffd}[2J\n\tb é");
        let mut list = Harmless(Vec::new());
        list.write_all("a\u{1b}[2J\n\tb é".as_bytes()).expect("memory");
        assert_eq!(list.0, "a?[2J\n\tb é".as_bytes());
        assert_eq!(one_line("a\nb\u{1b}[31m é"), "a\\nb\\u{1b}[31m é");
    }
}
