//! trace.dat v7's compression: whole sections, and per-CPU data in chunks of some pages.
//!
//! Only claims that fit are believed: a chunk may not become larger than its stream's share of the memory, a section no
//! larger than any kernel's symbol table.

use super::FORMAT;
use super::reader::Reader;
use crate::ring::{Fill, PageSource};
use crate::tracepoint::Endian;
use crate::{Input, ReadError};
use std::io::{self, Read};
use std::sync::Arc;
use ttwu_model::TraceHealth;

/// The largest unpacked section: symbol tables of large kernels have about 20 MB.
const SECTION_MAX: u64 = 256 << 20;

/// The file's compression algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Zlib,
    Zstd,
}

impl Codec {
    /// By the name in the file's header.
    pub(super) fn from_name(name: &str) -> Result<Self, ReadError> {
        match name {
            "none" | "" => Ok(Self::None),
            "zlib" => Ok(Self::Zlib),
            "zstd" => Ok(Self::Zstd),
            other => {
                let what = format!(
                    "compressed with `{other}`, of which ttwu knows nothing (zlib and zstd it does); convert with \
                     `trace-cmd convert --compression zlib`"
                );
                Err(ReadError::Unsupported { format: FORMAT, what })
            }
        }
    }

    /// Unpacks `packed`, which must give exactly `len` bytes, and appends them to `out`.
    pub(super) fn unpack(self, packed: &[u8], len: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let before = out.len();
        match self {
            Self::None => return Err(io::Error::other("compressed data in a file without compression")),
            Self::Zlib => {
                flate2::read::ZlibDecoder::new(packed).take(len + 1).read_to_end(out)?;
            }
            Self::Zstd => {
                let frame = ruzstd::decoding::StreamingDecoder::new(packed).map_err(io::Error::other)?;
                frame.take(len + 1).read_to_end(out)?;
            }
        }
        let found = (out.len() - before) as u64;
        if found != len {
            out.truncate(before);
            let found = if found > len { "more".to_owned() } else { found.to_string() };
            return Err(io::Error::other(format!("expected {len} bytes unpacked, found {found}")));
        }
        Ok(())
    }
}

/// Unpacks a section whose header was just read.
pub(super) fn unpack_section(reader: &mut Reader<'_>, codec: Codec) -> Result<Input, ReadError> {
    let at = reader.at();
    let packed_len = reader.u32("the section's packed size")?;
    let len = u64::from(reader.u32("the section's unpacked size")?);
    if len > SECTION_MAX {
        return Err(reader.damaged(at, format!("claims to unpack to {len} bytes, more than {SECTION_MAX}")));
    }
    let packed = reader.bytes(u64::from(packed_len), "packed data")?;
    let mut out = Vec::new();
    codec.unpack(&packed, len, &mut out).map_err(|error| reader.damaged(at, error.to_string()))?;
    Ok(Input::from_bytes(out, reader.input().name()))
}

/// One CPU's pages in packed chunks: `u32 chunks`, then for each `u32 packed, u32 unpacked, data`.
pub(super) struct ChunkedPages {
    input: Arc<Input>,
    order: Endian,
    codec: Codec,
    at: u64,
    end: u64,
    /// `None` before the count was read.
    chunks_left: Option<u32>,
    len_max: u64,
    cpu: u32,
}

impl ChunkedPages {
    /// The chunks from `at` to `end`; none may unpack to more than `len_max` bytes.
    pub(super) fn new(
        input: Arc<Input>,
        order: Endian,
        codec: Codec,
        span: std::ops::Range<u64>,
        len_max: u64,
        cpu: u32,
    ) -> Self {
        Self { input, order, codec, at: span.start, end: span.end, chunks_left: None, len_max, cpu }
    }

    /// Says that the rest is lost.
    fn give_up(&mut self, why: &str, health: &mut TraceHealth) -> Fill {
        let left = self.chunks_left.unwrap_or(0);
        health.add_repair(format!(
            "cpu {}: packed trace data at {:#x} {why}; {left} chunks of its pages are lost",
            self.cpu, self.at
        ));
        self.chunks_left = Some(0);
        Fill::Gap
    }
}

impl PageSource for ChunkedPages {
    fn fill(&mut self, buffer: &mut Vec<u8>, _: usize, health: &mut TraceHealth) -> Result<Fill, ReadError> {
        let left = match self.chunks_left {
            Some(left) => left,
            None if self.at >= self.end => 0,
            None => {
                let count = self.order.u32(&self.input.bytes(self.at, 4)?, 0);
                self.at += 4;
                self.chunks_left = count;
                match count {
                    Some(count) => count,
                    None => return Ok(self.give_up("is cut", health)),
                }
            }
        };
        if left == 0 {
            return Ok(Fill::End);
        }
        let head = self.input.bytes(self.at, 8)?;
        let (Some(packed_len), Some(len)) = (self.order.u32(&head, 0), self.order.u32(&head, 4)) else {
            return Ok(self.give_up("is cut", health));
        };
        let (packed_len, len) = (u64::from(packed_len), u64::from(len));
        let next = self.at + 8 + packed_len;
        if next > self.end.min(self.input.len()) {
            return Ok(self.give_up("reaches beyond its end", health));
        }
        if len > self.len_max {
            return Ok(self.give_up(&format!("claims to unpack to {len} bytes"), health));
        }
        let packed = self.input.bytes(self.at + 8, packed_len)?;
        self.chunks_left = Some(left - 1);
        let result = self.codec.unpack(&packed, len, buffer);
        let place = std::mem::replace(&mut self.at, next);
        if let Err(error) = result {
            health.add_repair(format!(
                "cpu {}: the chunk of packed trace data at {place:#x} is lost: {error}",
                self.cpu
            ));
            return Ok(Fill::Gap);
        }
        Ok(Fill::More)
    }
}
