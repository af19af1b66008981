//! A directory copied from tracefs: raw per-CPU pages, format files, names and statistics.
//!
//! Either a literal copy (`per_cpu/cpuN/trace_pipe_raw`, `events/…`) or the short form (`cpuN.raw`, `formats/…`); see
//! [`crate::ring::tree`] for the names. Raw pages lose nothing that the text of `trace` rounds away.
//!
//! What this does not do: read a live tracefs, whose pages are consumed by reading and whose end never comes.

use crate::ReadError;
use crate::ring::Tree;
use crate::ring::{self, Recording};
use crate::source::{Decoder, Source};
use std::path::Path;

/// The format's name in messages.
pub(crate) const FORMAT: &str = "tracefs directory";

/// Does the directory look like a copy of tracefs?
pub(crate) fn probe(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).exists();
    let formats = has("events") || has("formats");
    formats && (has("per_cpu") || has("traces") || any_raw(directory))
}

/// Is there a `cpuN.raw`? Not only `cpu0`: that CPU may have been off line.
fn any_raw(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.filter_map(Result::ok).any(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with("cpu") && name.ends_with(".raw"))
    })
}

/// A decoder of its events.
pub(crate) fn open_dir(directory: &Path, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    recording(directory, source)?.decoder(FORMAT, source)
}

/// Reads all but the pages.
pub(crate) fn recording(directory: &Path, source: &mut Source) -> Result<Recording, ReadError> {
    let tree = Tree::of_directory(directory, &mut source.health)?;
    ring::recording(&tree, FORMAT, source)
}

#[cfg(test)]
mod tests;
