//! Compressed records: one zstd stream cut into records, with other records between the pieces.
//!
//! perf compresses what it takes from the buffers into one endless zstd frame, flushed once a buffer is empty, and writes
//! round marks uncompressed in between. So a mark counts at a *place in the decompressed stream*: the bytes produced by all
//! pieces before it. The decoder at hand keeps the last window of its output to itself until the frame ends, which never
//! happens. Two tricks make that harmless: the window is filled with zeros before the first block (matches are relative,
//! so they cannot tell), which makes the number of bytes produced exact; and at the input's end an empty last block sets
//! the rest free.

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::collections::VecDeque;

/// perf's levels go up to 22, whose window this is; a frame that asks for more is refused.
const WINDOW_MAX: u64 = 1 << 27;
/// Longest block content by the format.
const BLOCK_MAX: usize = 128 << 10;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A decompressed stream and the records between its pieces.
pub(super) struct Inflate {
    decoder: FrameDecoder,
    /// Compressed bytes that do not make a whole block yet.
    compressed: Vec<u8>,
    frame: Frame,
    /// Decompressed bytes, of which `consumed` are used up.
    ready: Vec<u8>,
    consumed: usize,
    /// Stream position of `ready`'s end.
    collected: u64,
    /// Stream position up to which the decoder has decoded.
    produced: u64,
    /// How many of the next bytes from the decoder are the zeros put in at the frame's start.
    zeros: usize,
    /// Uncompressed records that wait for the stream to reach their place.
    deferred: VecDeque<(u64, Vec<u8>)>,
}

/// Where in a frame the stream is.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// Before a frame's header.
    Outside,
    /// Inside one, with a checksum at its end or not.
    Inside { checksum: bool },
}

impl Inflate {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_MAX);
        Self {
            decoder,
            compressed: Vec::new(),
            frame: Frame::Outside,
            ready: Vec::new(),
            consumed: 0,
            collected: 0,
            produced: 0,
            zeros: 0,
            deferred: VecDeque::new(),
        }
    }

    /// Adds a piece of the compressed stream.
    ///
    /// # Errors
    /// What is wrong with it, in words; nothing more can come out then.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), String> {
        self.compressed.extend_from_slice(piece);
        let mut used = 0;
        while let Some(len) = self.step(used)? {
            used += len;
        }
        self.compressed.drain(..used);
        Ok(())
    }

    /// Keeps an uncompressed record for when the stream has reached this place.
    pub(super) fn defer(&mut self, record: &[u8]) {
        self.deferred.push_back((self.produced, record.to_vec()));
    }

    /// The next decompressed bytes, up to the next deferred record.
    pub(super) fn ready(&self) -> &[u8] {
        let ready = &self.ready[self.consumed..];
        match self.deferred.front() {
            Some(&(place, _)) => {
                let until = place.saturating_sub(self.position());
                &ready[..usize::try_from(until).unwrap_or(usize::MAX).min(ready.len())]
            }
            None => ready,
        }
    }

    /// Passes over bytes of [`Inflate::ready`].
    pub(super) fn consume(&mut self, len: usize) {
        self.consumed += len;
        if self.consumed == self.ready.len() {
            self.ready.clear();
            self.consumed = 0;
        } else if self.consumed > (1 << 20) {
            self.ready.drain(..self.consumed);
            self.consumed = 0;
        }
    }

    /// The deferred record whose place the stream has reached, if any. `stuck` bytes before the place make no whole
    /// record, so the place counts as reached.
    pub(super) fn due(&mut self, stuck: usize, failed: bool) -> Option<Vec<u8>> {
        let &(place, _) = self.deferred.front()?;
        if !failed && place > self.position() + stuck as u64 {
            return None;
        }
        self.deferred.pop_front().map(|(_, record)| record)
    }

    /// Ends the stream: everything becomes ready.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        if let Frame::Inside { checksum } = self.frame {
            let end: &[u8] = if checksum { &[1, 0, 0, 0, 0, 0, 0] } else { &[1, 0, 0] };
            self.decoder
                .decode_blocks(end, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|e| e.to_string())?;
            self.frame = Frame::Outside;
            self.collect();
        }
        Ok(())
    }

    /// Stream position of the next byte of [`Inflate::ready`].
    fn position(&self) -> u64 {
        self.collected - (self.ready.len() - self.consumed) as u64
    }

    /// Takes what the decoder gives. With the window always full of older bytes, that is as much as it has just decoded.
    fn collect(&mut self) {
        let mut zeros = self.zeros;
        if let Some(bytes) = self.decoder.collect() {
            let ended = matches!(self.frame, Frame::Outside);
            self.produced += if ended { 0 } else { bytes.len() as u64 };
            let skip = zeros.min(bytes.len());
            zeros -= skip;
            self.ready.extend_from_slice(&bytes[skip..]);
            self.collected += (bytes.len() - skip) as u64;
            if ended {
                self.produced = self.collected;
            }
        }
        self.zeros = zeros;
    }

    /// Begins a frame: fills the window with zeros.
    fn enter(&mut self, window: usize, checksum: bool) -> Result<(), String> {
        self.zeros = window;
        let mut left = window;
        while left > 0 {
            let len = left.min(BLOCK_MAX);
            // A block of one repeated byte: its header has the type (1) above the "last" bit, then the length.
            let header = (len << 3 | 1 << 1).to_le_bytes();
            let block = [header[0], header[1], header[2], 0];
            let strategy = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&block[..], strategy).map_err(|error| error.to_string())?;
            left -= len;
        }
        self.frame = Frame::Inside { checksum };
        Ok(())
    }

    /// Decodes one header or block at `self.compressed[at..]`; `None` when it is not complete yet.
    fn step(&mut self, at: usize) -> Result<Option<usize>, String> {
        let bytes = &self.compressed[at..];
        match self.frame {
            Frame::Outside => {
                let Some((len, checksum)) = frame_header(bytes)? else { return Ok(None) };
                let mut rest = &bytes[..len];
                self.decoder.reset(&mut rest).map_err(|error| error.to_string())?;
                let window = window_of(bytes);
                self.enter(window, checksum)?;
                Ok(Some(len))
            }
            Frame::Inside { checksum } => {
                let Some(len) = block_len(bytes, checksum) else { return Ok(None) };
                if bytes.len() < len {
                    return Ok(None);
                }
                let mut rest = &bytes[..len];
                let strategy = BlockDecodingStrategy::UptoBlocks(1);
                let ended =
                    self.decoder.decode_blocks(&mut rest, strategy).map_err(|error| error.to_string())?;
                if ended {
                    self.frame = Frame::Outside;
                }
                self.collect();
                Ok(Some(len))
            }
        }
    }
}

/// Length of the frame header at the start of `bytes`, and whether a checksum ends the frame; `None` when it is cut.
fn frame_header(bytes: &[u8]) -> Result<Option<(usize, bool)>, String> {
    let Some((magic, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    if *magic != MAGIC {
        return Err(format!("expected a zstd frame, found the bytes {magic:02x?}"));
    }
    let Some(&descriptor) = rest.first() else { return Ok(None) };
    let single = usize::from(descriptor >> 5 & 1);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = [single, 2, 4, 8][usize::from(descriptor >> 6)];
    let len = 5 + (1 - single) + dictionary + content;
    Ok((bytes.len() >= len).then_some((len, descriptor & 4 != 0)))
}

/// The window that a whole frame header asks for; the decoder has checked that it is allowed.
fn window_of(header: &[u8]) -> usize {
    let descriptor = header[4];
    if descriptor >> 5 & 1 == 0 {
        let base = 1usize << (10 + (header[5] >> 3));
        return base + base / 8 * usize::from(header[5] & 7);
    }
    // The window is the content's size, which the header ends with.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = &header[5 + dictionary..];
    let len = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let mut bytes = [0; 8];
    bytes[..len].copy_from_slice(&size[..len]);
    let size = u64::from_le_bytes(bytes) + if len == 2 { 256 } else { 0 };
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Length of the block at the start of `bytes`, its header and what follows a last one included.
fn block_len(bytes: &[u8], checksum: bool) -> Option<usize> {
    let &[a, b, c] = bytes.first_chunk::<3>()?;
    let header = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
    let (last, kind, size) = (header & 1, header >> 1 & 3, header >> 3);
    let content = if kind == 1 { 1 } else { size };
    Some(3 + content + if last == 1 && checksum { 4 } else { 0 })
}
