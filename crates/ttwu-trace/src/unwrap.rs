//! Compression around a recording: gzip, xz and zstd are undone, whatever is inside.
//!
//! The content goes through [`Input::spool`], so that it can be read at any offset afterwards: a small recording stays in
//! memory, a large one goes to an unnamed temporary file. All three decoders are pure Rust, so that no C library is needed
//! to build.
//!
//! A stream that ends early or is damaged gives what came out before the damage, said in the health: the reader behind it
//! knows how to go on from a truncated file. A stream that grows beyond all reason is refused, since nobody's recording
//! compresses like that and the disk would fill up.
//!
//! What this does not do: encrypted or multi-file archives (SchedViz's tar is that reader's own business), bzip2, lz4.

use crate::{Input, ReadError};
use std::io::{self, Read};
use ttwu_model::TraceHealth;
use xz4rust::{XzDecoder, XzNextBlockResult};

/// `trace.dat.gz.xz` happens when a script compresses what was compressed already; deeper nests are made to hurt.
const NEST_MAX: usize = 2;
/// Scheduler recordings compress 5 to 40 times, sparse ones 100 times.
const RATIO_MAX: u64 = 200;
/// Whatever the ratio, this much is harmless.
const SIZE_FREE: u64 = 64 << 20;
/// The largest dictionary that `xz -9` makes is 64 MiB; the file chooses it, so it must have a bound.
const XZ_DICTIONARY_MAX: usize = 256 << 20;

/// What a recording is wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    Gzip,
    Xz,
    Zstd,
}

impl Wrapping {
    /// What the first bytes of a file say.
    pub(crate) fn detect(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            // A zstd file may begin with a skippable frame (pzstd, seekable zstd).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }

    const fn tool(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -dk",
            Self::Xz => "xz -dk",
            Self::Zstd => "zstd -dk",
        }
    }

    fn reader<'a>(self, compressed: Sequential<'a>) -> Box<dyn Read + 'a> {
        match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(compressed)),
            Self::Xz => Box::new(XzStreams::new(compressed)),
            Self::Zstd => Box::new(ZstdFrames { compressed: Some(compressed), frame: None }),
        }
    }
}

/// The recording inside `input`, which may be wrapped or not, and the wrappings taken off, outermost first.
pub(crate) fn unwrap(
    mut input: Input,
    health: &mut TraceHealth,
) -> Result<(Input, Vec<Wrapping>), ReadError> {
    let mut undone = Vec::new();
    while let Some(wrapping) = Wrapping::detect(&input.bytes(0, 8)?) {
        if undone.len() == NEST_MAX {
            let what = format!(
                "{} is compressed more than {NEST_MAX} times over; decompress it with `{}` until it is a recording",
                input.name(),
                wrapping.tool()
            );
            return Err(ReadError::Unsupported { format: wrapping.name(), what });
        }
        input = undo(&input, wrapping, health)?;
        undone.push(wrapping);
    }
    Ok((input, undone))
}

fn undo(input: &Input, wrapping: Wrapping, health: &mut TraceHealth) -> Result<Input, ReadError> {
    let limit = ratio_limit(input.len());
    let mut content = Bounded::new(wrapping.reader(Sequential { input, at: 0 }), limit);
    let inside = Input::spool(&mut content, input.name())?;
    if content.over {
        let what = format!(
            "{} decompresses to more than {limit} bytes ({RATIO_MAX} times its size); if you trust it, decompress it \
             with `{}` first",
            input.name(),
            wrapping.tool()
        );
        return Err(ReadError::Unsupported { format: wrapping.name(), what });
    }
    if let Some(error) = content.failure {
        if inside.is_empty() {
            return Err(ReadError::damaged(
                wrapping.name(),
                0,
                format!("nothing can be decompressed: {error}"),
            ));
        }
        health.truncated_at.get_or_insert(inside.len());
        health.add_repair(format!(
            "{} stream ends early or is damaged ({error}): only the first {} bytes of its content are read",
            wrapping.name(),
            inside.len()
        ));
    }
    Ok(inside)
}

/// What `compressed` bytes may decompress to.
pub(crate) fn ratio_limit(compressed: u64) -> u64 {
    SIZE_FREE.max(compressed.saturating_mul(RATIO_MAX))
}

/// Reads an input from its start.
#[derive(Clone)]
struct Sequential<'a> {
    input: &'a Input,
    at: u64,
}

impl Read for Sequential<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read_at(self.at, buffer).map_err(io::Error::other)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Ends at the limit or at the first error instead of failing, so that what came before is kept.
pub(crate) struct Bounded<'a> {
    inner: Box<dyn Read + 'a>,
    left: u64,
    /// What ended it before its end.
    pub(crate) failure: Option<io::Error>,
    /// Was there more than the limit?
    pub(crate) over: bool,
}

impl<'a> Bounded<'a> {
    pub(crate) fn new(inner: Box<dyn Read + 'a>, limit: u64) -> Self {
        Self { inner, left: limit, failure: None, over: false }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.failure.is_some() || self.over || buffer.is_empty() {
            return Ok(0);
        }
        match self.inner.read(buffer) {
            Ok(read) if read as u64 > self.left => {
                self.over = true;
                Ok(0)
            }
            Ok(read) => {
                self.left -= read as u64;
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.failure = Some(error);
                Ok(0)
            }
        }
    }
}

/// xz streams one after the other, with padding between them.
///
/// The library's own reader forgets how much input the end of a stream took, so it cannot go on to the next one.
struct XzStreams<'a> {
    compressed: Sequential<'a>,
    decoder: Box<XzDecoder<'static>>,
    buffer: Vec<u8>,
    used: usize,
    between: bool,
}

impl<'a> XzStreams<'a> {
    fn new(compressed: Sequential<'a>) -> Self {
        let decoder = XzDecoder::in_heap_with_alloc_dict_size(1 << 20, XZ_DICTIONARY_MAX);
        Self { compressed, decoder, buffer: Vec::new(), used: 0, between: false }
    }

    /// Is there any input left?
    fn fill(&mut self) -> io::Result<bool> {
        if self.used == self.buffer.len() {
            self.buffer.resize(64 << 10, 0);
            let read = self.compressed.read(&mut self.buffer)?;
            self.buffer.truncate(read);
            self.used = 0;
        }
        Ok(!self.buffer.is_empty())
    }
}

impl Read for XzStreams<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.fill()? {
                return if self.between { Ok(0) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
            if self.between {
                if self.buffer[self.used] == 0 {
                    self.used += 1;
                    continue;
                }
                self.decoder.reset();
                self.between = false;
            }
            let (used, made) = match self.decoder.decode(&self.buffer[self.used..], out) {
                Ok(XzNextBlockResult::NeedMoreData(used, made)) => (used, made),
                Ok(XzNextBlockResult::EndOfStream(used, made)) => {
                    self.between = true;
                    (used, made)
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            };
            if used == 0 && made == 0 && !self.between {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "xz decoder makes no progress"));
            }
            self.used += used;
            if made > 0 {
                return Ok(made);
            }
        }
    }
}

type ZstdFrame<'a> = ruzstd::decoding::StreamingDecoder<Sequential<'a>, ruzstd::decoding::FrameDecoder>;

/// zstd frames one after the other; skippable ones are skipped.
struct ZstdFrames<'a> {
    compressed: Option<Sequential<'a>>,
    frame: Option<ZstdFrame<'a>>,
}

impl Read for ZstdFrames<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let made = frame.read(out)?;
                if made > 0 {
                    return Ok(made);
                }
                self.compressed = self.frame.take().map(ZstdFrame::into_inner);
            }
            let Some(mut compressed) = self.compressed.take() else { return Ok(0) };
            let head = compressed.input.bytes(compressed.at, 8).map_err(io::Error::other)?;
            match *head {
                [] => return Ok(0),
                [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d] => {
                    compressed.at += 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
                    self.compressed = Some(compressed);
                }
                _ => self.frame = Some(ZstdFrame::new(compressed).map_err(io::Error::other)?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    /// `printf 'ttwu ttwu ttwu\n' | xz --check=crc32`, xz 5.4.1.
    const XZ: [u8; 68] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01, 0x16,
        0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x00, 0x0e, 0x00, 0x0b, 0x5d, 0x00, 0x3a, 0x61, 0xd8,
        0xea, 0x20, 0x90, 0x13, 0x09, 0x2a, 0xc0, 0x00, 0x00, 0x00, 0x2d, 0x3d, 0x6a, 0x13, 0x00, 0x01, 0x23,
        0x0f, 0xdb, 0xdf, 0x90, 0x0e, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
    ];

    fn check(bytes: Vec<u8>, expect: &[u8]) -> TraceHealth {
        let mut health = TraceHealth::default();
        let (inside, _) = unwrap(Input::from_bytes(bytes, "test"), &mut health).unwrap();
        assert_eq!(inside.bytes(0, u64::MAX).unwrap(), expect);
        health
    }

    #[test]
    fn wrappings_are_undone_up_to_twice() {
        let plain = b"something of nobody's format".repeat(100);
        assert!(check(plain.clone(), &plain).is_clean());
        assert!(check(gzip(&plain), &plain).is_clean());
        assert!(check(zstd(&plain), &plain).is_clean());
        assert!(check(gzip(&zstd(&plain)), &plain).is_clean());
        let thrice = gzip(&gzip(&gzip(&plain)));
        let error = unwrap(Input::from_bytes(thrice, "t.gz"), &mut TraceHealth::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "gzip: t.gz is compressed more than 2 times over; decompress it with `gzip -dk` until it is a recording"
        );
    }

    #[test]
    fn xz_made_by_xz_is_read() {
        assert!(check(XZ.to_vec(), b"ttwu ttwu ttwu\n").is_clean());
        assert!(check([&XZ[..], &[0; 8], &XZ].concat(), b"ttwu ttwu ttwu\nttwu ttwu ttwu\n").is_clean());
    }

    #[test]
    fn several_members_and_frames_are_one_content() {
        assert!(check([gzip(b"one "), gzip(b"two")].concat(), b"one two").is_clean());
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
        assert!(
            check([&skippable[..], &zstd(b"one "), &skippable, &zstd(b"two")].concat(), b"one two")
                .is_clean()
        );
    }

    #[test]
    fn a_cut_stream_gives_what_it_had() {
        let mut rng = ttwu_testing::Rng::new(1);
        let plain: Vec<u8> = (0..1_000_000).map(|_| rng.next_u64() as u8).collect();
        for wrapped in [gzip(&plain), zstd(&plain)] {
            let mut health = TraceHealth::default();
            let cut = wrapped[..wrapped.len() * 9 / 10].to_vec();
            let (inside, _) = unwrap(Input::from_bytes(cut, "test"), &mut health).unwrap();
            assert!(plain.starts_with(&inside.bytes(0, u64::MAX).unwrap()));
            assert_eq!(health.truncated_at, Some(inside.len()));
            assert_eq!(health.repairs.len(), 1);
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = gzip(&vec![0; (SIZE_FREE + 1) as usize]);
        let error = unwrap(Input::from_bytes(bomb, "bomb.gz"), &mut TraceHealth::default()).unwrap_err();
        assert!(error.to_string().contains("decompress it with `gzip -dk` first"), "{error}");
    }

    #[test]
    fn a_real_recording_in_xz_is_read_whole_doubled_and_cut() {
        let Some(path) = ttwu_testing::shared("traces/own/hs-lost.data.xz") else { return };
        let wrapped = std::fs::read(path).unwrap();
        let mut health = TraceHealth::default();
        let (inside, undone) = unwrap(Input::from_bytes(wrapped.clone(), "x"), &mut health).unwrap();
        assert_eq!((inside.len(), undone), (477_303, vec![Wrapping::Xz]));
        let twice = [&wrapped[..], &[0; 4], &wrapped].concat();
        let (both, _) = unwrap(Input::from_bytes(twice, "x"), &mut health).unwrap();
        assert_eq!(both.len(), 2 * 477_303);
        assert!(health.is_clean());
        let cut = wrapped[..wrapped.len() / 2].to_vec();
        let (part, _) = unwrap(Input::from_bytes(cut, "x"), &mut health).unwrap();
        assert_eq!(health.truncated_at, Some(part.len()));
    }

    #[test]
    fn damaged_streams_never_panic() {
        let plain = b"ttwu ".repeat(1000);
        for (wrapped, name) in [(gzip(&plain), "gzip"), (zstd(&plain), "zstd"), (XZ.to_vec(), "xz")] {
            for seed in 0..300 {
                let damaged = ttwu_testing::damage(&wrapped, seed);
                let mut health = TraceHealth::default();
                // Whatever comes out is fine; `name` and `seed` make it again.
                let result = unwrap(Input::from_bytes(damaged, name), &mut health);
                drop((name, seed, result));
            }
        }
    }
}
