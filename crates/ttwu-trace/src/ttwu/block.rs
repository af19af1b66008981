//! The frame around everything in a `.ttwu` file: a mark, a kind, lengths and a checksum.
//!
//! A block stands for itself, so a file that was cut (crash, full disk) reads up to its last whole block, and damage in
//! the middle costs one block: the reader looks for the next mark.
//!
//! ```text
//! offset  0  4 bytes  mark  e7 54 57 42
//!         4  u8       kind
//!         5  u8       codec: 0 stored, 1 lz4 block
//!         6  u16      0
//!         8  u32      stored length
//!        12  u32      raw length
//!        16  u32      CRC-32 of bytes 4..16 and the stored bytes
//!        20           stored bytes
//! ```
//! All numbers are little-endian.

use crate::{Input, ReadError};
use std::io::{self, Write};

pub(super) const MARK: [u8; 4] = [0xe7, b'T', b'W', b'B'];
pub(super) const HEADER_LEN: usize = 20;

/// No writer makes larger blocks (events need a quarter of it at most), so a reader need not believe in them.
pub(super) const RAW_LEN_MAX: usize = 16 << 20;

const STORED: u8 = 0;
const LZ4: u8 = 1;
/// lz4 cannot do better than this.
const LZ4_RATIO_MAX: usize = 255;

/// What a block holds. A reader skips kinds that it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind(pub(super) u8);

impl Kind {
    /// `TraceMeta` as known at the start.
    pub(super) const META: Self = Self(1);
    /// Strings that are new in the events that follow.
    pub(super) const STRINGS: Self = Self(2);
    /// Tasks that are new or better known in the events that follow.
    pub(super) const TASKS: Self = Self(3);
    /// Events.
    pub(super) const EVENTS: Self = Self(4);
    /// `TraceMeta` and `TraceHealth` as known at the end.
    pub(super) const SUMMARY: Self = Self(5);
    /// A named side table.
    pub(super) const SIDE: Self = Self(6);
    /// What the recorder noted about tasks beside the events.
    pub(super) const NOTES: Self = Self(8);
    /// Where the summary is; always the last block, and always of the same length.
    pub(super) const END: Self = Self(7);
}

/// Writes one block and returns its length in the file.
pub(super) fn write(out: &mut impl Write, kind: Kind, raw: &[u8], scratch: &mut Vec<u8>) -> io::Result<u64> {
    if raw.len() > RAW_LEN_MAX {
        let what = format!("a block of {} bytes; the limit is {RAW_LEN_MAX}", raw.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    scratch.resize(HEADER_LEN + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
    let packed = lz4_flex::block::compress_into(raw, &mut scratch[HEADER_LEN..]).unwrap_or(usize::MAX);
    let (codec, stored) = if packed < raw.len() {
        (LZ4, packed)
    } else {
        scratch[HEADER_LEN..HEADER_LEN + raw.len()].copy_from_slice(raw);
        (STORED, raw.len())
    };
    let block = &mut scratch[..HEADER_LEN + stored];
    block[..4].copy_from_slice(&MARK);
    block[4..8].copy_from_slice(&[kind.0, codec, 0, 0]);
    block[8..12].copy_from_slice(&len_u32(stored).to_le_bytes());
    block[12..16].copy_from_slice(&len_u32(raw.len()).to_le_bytes());
    let sum = checksum(&block[4..16], &block[HEADER_LEN..]);
    block[16..20].copy_from_slice(&sum.to_le_bytes());
    out.write_all(block)?;
    Ok(block.len() as u64)
}

fn len_u32(len: usize) -> u32 {
    u32::try_from(len).expect("below RAW_LEN_MAX")
}

fn checksum(header: &[u8], stored: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(header);
    sum.update(stored);
    sum.finalize()
}

/// A block that was read.
pub(super) struct Block {
    pub(super) kind: Kind,
    /// Where it begins.
    pub(super) at: u64,
    /// Where the next one begins.
    pub(super) end: u64,
    pub(super) raw: Vec<u8>,
}

/// What is at an offset.
pub(super) enum Found {
    Block(Block),
    /// No whole, sound block; in words, for the health.
    Damage(String),
    /// The input ends inside a block.
    Cut,
    /// The input ends here.
    Nothing,
}

/// Reads the block at `at`.
pub(super) fn read(input: &Input, at: u64) -> Result<Found, ReadError> {
    let header = input.bytes(at, HEADER_LEN as u64)?;
    if header.is_empty() {
        return Ok(Found::Nothing);
    }
    if !header.starts_with(&MARK[..header.len().min(4)]) {
        return Ok(Found::Damage("no block mark".to_owned()));
    }
    let Ok(header) = <[u8; HEADER_LEN]>::try_from(header) else { return Ok(Found::Cut) };
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (stored_len, raw_len) = (word(8) as usize, word(12) as usize);
    let codec = header[5];
    if stored_len > RAW_LEN_MAX || raw_len > RAW_LEN_MAX || raw_len / LZ4_RATIO_MAX > stored_len {
        return Ok(Found::Damage(format!("impossible block lengths {stored_len} and {raw_len}")));
    }
    let stored = input.bytes(at + HEADER_LEN as u64, stored_len as u64)?;
    if stored.len() < stored_len {
        return Ok(Found::Cut);
    }
    // The fuzzer must get past the checksum to reach the decoders.
    if checksum(&header[4..16], &stored) != word(16) && !cfg!(fuzzing) {
        return Ok(Found::Damage("block checksum does not match".to_owned()));
    }
    let raw = match codec {
        STORED => stored,
        LZ4 => {
            let mut raw = vec![0; raw_len];
            match lz4_flex::block::decompress_into(&stored, &mut raw) {
                Ok(len) if len == raw_len => raw,
                Ok(_) | Err(_) => return Ok(Found::Damage("block does not decompress".to_owned())),
            }
        }
        _ => return Ok(Found::Damage(format!("unknown block codec {codec}"))),
    };
    let end = at + (HEADER_LEN + stored_len) as u64;
    Ok(Found::Block(Block { kind: Kind(header[4]), at, end, raw }))
}

/// The next block mark at or after `from`.
pub(super) fn find_mark(input: &Input, from: u64) -> Result<Option<u64>, ReadError> {
    const STEP: u64 = 1 << 20;
    let mut at = from;
    loop {
        let bytes = input.bytes(at, STEP)?;
        if let Some(found) = bytes.windows(4).position(|window| window == MARK) {
            return Ok(Some(at + found as u64));
        }
        if (bytes.len() as u64) < STEP {
            return Ok(None);
        }
        at += STEP - 3;
    }
}
