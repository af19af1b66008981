//! The file's header: where attributes, data and features are.

use super::attr::{Attr, ids};
use super::bytes::Bytes;
use super::engine::{Engine, Sink};
use super::feature::{FEATURE_BYTES_MAX, bit};
use crate::source::Source;
use crate::{Endian, Input, ReadError};

/// How the file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    /// A header that says where things are.
    Seekable,
    /// Records from here on.
    Pipe,
}

/// Byte order and container from a file's first 16 bytes; `None` if it is not perf's.
pub(super) fn recognise(head: &[u8]) -> Option<(Endian, Container, u64)> {
    let endian = match head.get(..8)? {
        b"PERFILE2" | b"PERFFILE" => Endian::Little,
        b"2ELIFREP" | b"ELIFFREP" => Endian::Big,
        _ => return None,
    };
    let size = endian.u64(head, 8)?;
    Some((endian, if size == 16 { Container::Pipe } else { Container::Seekable }, size))
}

/// Offset and length of a part of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// A seekable file's header.
#[derive(Debug)]
struct Header {
    attr_entry: u64,
    attrs: Section,
    data: Section,
    features: [u64; 4],
}

const SEEKABLE: u64 = 104;
/// A file has a few dozen events, thousands at the very most.
const ATTRS_MAX: u64 = 16 << 20;

/// Reads a seekable file's header into the engine; returns where the records are.
///
/// # Errors
/// When the header ends early or contradicts itself.
pub(super) fn read<S: Sink>(
    input: &Input,
    endian: Endian,
    engine: &mut Engine<S>,
    source: &mut Source,
) -> Result<Section, ReadError> {
    let bytes = input.bytes(0, SEEKABLE)?;
    let header = parse(&bytes, endian).ok_or_else(|| {
        ReadError::damaged(
            "perf.data",
            bytes.len() as u64,
            "expected a header of 104 bytes, found the file's end",
        )
    })?;
    read_attrs(input, endian, &header, engine, source)?;
    let mut data = header.data;
    if data.len == 0 {
        // What perf leaves when it is killed: the length is written last.
        data.len = input.len().saturating_sub(data.offset);
        source
            .health
            .add_repair("the header says that there are no data; read on to the file's end".to_owned());
    } else if data.offset.saturating_add(data.len) > input.len() {
        source.health.truncated_at = Some(input.len());
    }
    read_features(input, endian, &header, engine, source)?;
    Ok(data)
}

fn parse(bytes: &[u8], endian: Endian) -> Option<Header> {
    let mut rest = Bytes::new(bytes, endian);
    rest.take(16)?;
    let attr_entry = rest.u64()?;
    let mut section = || Some(Section { offset: rest.u64()?, len: rest.u64()? });
    let (attrs, data, _event_types) = (section()?, section()?, section()?);
    let features = [rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?];
    Some(Header { attr_entry, attrs, data, features })
}

/// An entry is an attribute and the place of its ids; how long the attribute is depends on the perf that wrote it.
fn read_attrs<S: Sink>(
    input: &Input,
    endian: Endian,
    header: &Header,
    engine: &mut Engine<S>,
    source: &mut Source,
) -> Result<(), ReadError> {
    let entry = header.attr_entry;
    if !(64 + 16..=4096).contains(&entry) {
        let what =
            format!("expected event attributes of 64 to 4080 bytes, found {}", entry.saturating_sub(16));
        return Err(ReadError::damaged("perf.data", 16, what));
    }
    if header.attrs.len > ATTRS_MAX {
        let what =
            format!("expected at most {ATTRS_MAX} bytes of event attributes, found {}", header.attrs.len);
        return Err(ReadError::damaged("perf.data", 32, what));
    }
    let bytes = input.bytes(header.attrs.offset, header.attrs.len)?;
    if (bytes.len() as u64) < header.attrs.len {
        source.health.truncated_at = Some(input.len());
    }
    let entry = usize::try_from(entry).expect("checked above");
    for entry in bytes.chunks_exact(entry) {
        let (attr, place) = entry.split_at(entry.len() - 16);
        let mut place = Bytes::new(place, endian);
        let (offset, len) = (place.u64().expect("16 bytes"), place.u64().expect("16 bytes"));
        if let Some(attr) = Attr::parse(attr, endian) {
            engine.attrs.push(attr, ids(&input.bytes(offset, len.min(ATTRS_MAX))?, endian));
        }
    }
    Ok(())
}

/// Features lie behind the data, in the order of their bits, with a table of places first.
fn read_features<S: Sink>(
    input: &Input,
    endian: Endian,
    header: &Header,
    engine: &mut Engine<S>,
    source: &mut Source,
) -> Result<(), ReadError> {
    let bits = feature_bits(header.features, endian);
    let mut table = header.data.offset.saturating_add(header.data.len);
    let mut cut = Vec::new();
    for feature in bits {
        let mut place = [0; 16];
        if input.read_at(table, &mut place)? < 16 {
            cut.push(feature.to_string());
            continue;
        }
        table += 16;
        let mut place = Bytes::new(&place, endian);
        let (offset, len) = (place.u64().expect("16 bytes"), place.u64().expect("16 bytes"));
        let bytes = input.bytes(offset, len.min(FEATURE_BYTES_MAX))?;
        if (bytes.len() as u64) < len {
            cut.push(feature.to_string());
        }
        engine.facts.add(feature, &bytes, endian, source);
    }
    if !cut.is_empty() {
        source.health.truncated_at.get_or_insert(input.len());
    }
    Ok(())
}

/// The set bits. perf stores an array of `long`, so a 32-bit big-endian machine's words are swapped in pairs; the host name
/// (bit 3) or the tracing data, which every file has, tells which it is.
fn feature_bits(words: [u64; 4], endian: Endian) -> Vec<u32> {
    let has = |words: &[u64; 4], bit: u32| words[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
    let looks_right = |words: &[u64; 4]| has(words, 3) || has(words, bit::TRACING_DATA);
    let swapped = words.map(|word| word.rotate_left(32));
    let words =
        if endian == Endian::Big && !looks_right(&words) && looks_right(&swapped) { swapped } else { words };
    (0..256).filter(|&bit| has(&words, bit)).collect()
}
