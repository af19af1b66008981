//! SchedViz' archive: a tar of raw ring-buffer pages, format files and the machine's topology, or of `sched.bt` text.
//!
//! Compression around it is undone before. Members are read where they lie in the archive ([`crate::ring::tree`]).

mod bpftrace;
mod topology;

use crate::detect::Head;
use crate::ring::Tree;
use crate::ring::{self, Recording};
use crate::source::{Decoder, Source};
use crate::{Input, ReadError};

/// The format's name in messages.
pub(crate) const FORMAT: &str = "SchedViz archive";

/// The member with `sched.bt`'s output.
const EBPF_TRACE: &str = "ebpf_trace";

/// tar's block.
const BLOCK: usize = 512;

/// Is it a tar archive with SchedViz' files near its beginning?
pub(crate) fn probe(head: &Head<'_>) -> bool {
    let mut at = 0;
    while let Some(header) = head.bytes.get(at..at + BLOCK) {
        if &header[257..262] != b"ustar" {
            return false;
        }
        let name = header[..100].split(|&byte| byte == 0).next().unwrap_or_default();
        let parts = |part: &[u8]| name.split(|&byte| byte == b'/').any(|found| found == part);
        let known = [&b"traces"[..], b"formats", b"per_cpu", b"ebpf_trace", b"metadata.textproto"];
        if known.into_iter().any(parts) {
            return true;
        }
        let digits = header[124..136].split(|&byte| !byte.is_ascii_digit()).find(|digits| !digits.is_empty());
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok()).unwrap_or("0");
        let Ok(len) = usize::from_str_radix(digits, 8) else { return false };
        let Some(next) = len.checked_next_multiple_of(BLOCK).and_then(|len| (at + BLOCK).checked_add(len))
        else {
            return false;
        };
        at = next;
    }
    false
}

/// A decoder of its events.
pub(crate) fn open(input: Input, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    let tree = Tree::of_archive(input, &mut source.health)?;
    topology::note(&tree, source)?;
    if !ring::has_pages(&tree)
        && let Some(text) = tree.text(EBPF_TRACE)?
    {
        return Ok(bpftrace::open(&text, source));
    }
    ring::recording(&tree, FORMAT, source)?.decoder(FORMAT, source)
}

/// Reads all but the pages; archives of `sched.bt` text have none.
pub(crate) fn recording(input: Input, source: &mut Source) -> Result<Recording, ReadError> {
    let tree = Tree::of_archive(input, &mut source.health)?;
    topology::note(&tree, source)?;
    ring::recording(&tree, FORMAT, source)
}

#[cfg(test)]
mod tests;
