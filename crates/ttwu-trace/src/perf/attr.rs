//! What each recorded event says about its samples' layout.
//!
//! A sample's fields follow from the event's `sample_type` bits, in a fixed order; all of them up to the raw payload have
//! a fixed size, except two (group reads and call chains). So offsets are computed once per event, and a sample costs a
//! few loads.

use super::bytes::Bytes;
use crate::Endian;

/// Bits of `sample_type`, as `include/uapi/linux/perf_event.h` numbers them.
mod sample {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `read_format`.
mod read {
    pub(super) const TIMES: [u64; 2] = [1, 2];
    pub(super) const ID: u64 = 4;
    pub(super) const GROUP: u64 = 8;
    pub(super) const LOST: u64 = 16;
}

/// Bits of the attribute's flag word, counted from its first declared one.
mod flag {
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
}

/// `PERF_TYPE_TRACEPOINT`.
const TYPE_TRACEPOINT: u32 = 2;
/// Bytes of a record's header.
pub(super) const HEADER: usize = 8;

/// One recorded event (`struct perf_event_attr`), as far as reading needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attr {
    kind: u32,
    config: u64,
    sample_type: u64,
    flags: u64,
    clockid: Option<i32>,
    pub(super) layout: Layout,
}

impl Attr {
    /// Reads an attribute of any version. Fields that an older version lacks are 0, as the kernel has it; what a newer one
    /// adds at the end does not change what samples look like, as new sample fields come after the raw payload.
    pub(super) fn parse(bytes: &[u8], endian: Endian) -> Option<Self> {
        let kind = endian.u32(bytes, 0)?;
        let config = endian.u64(bytes, 8)?;
        let sample_type = endian.u64(bytes, 24)?;
        let read_format = endian.u64(bytes, 32)?;
        let flags = match endian {
            Endian::Little => endian.u64(bytes, 40)?,
            // C counts bit fields from the other end there.
            Endian::Big => endian.u64(bytes, 40)?.reverse_bits(),
        };
        let clockid = endian.u32(bytes, 92).filter(|_| flags & flag::USE_CLOCKID != 0);
        Some(Self {
            kind,
            config,
            sample_type,
            flags,
            clockid: clockid.map(u32::cast_signed),
            layout: Layout::new(sample_type, read_format),
        })
    }

    /// The tracepoint's id, if it is one.
    pub(super) fn tracepoint(&self) -> Option<u64> {
        (self.kind == TYPE_TRACEPOINT).then_some(self.config)
    }

    /// The clock that was asked for, by its number in `clock_gettime`; `None` for perf's own.
    pub(super) fn clockid(&self) -> Option<i32> {
        self.clockid
    }

    pub(super) fn has_time(&self) -> bool {
        self.sample_type & sample::TIME != 0
    }
}

/// Where things are in a sample record, counted from the record's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) id: Option<usize>,
    pub(super) tid: Option<usize>,
    pub(super) time: Option<usize>,
    pub(super) cpu: Option<usize>,
    raw: Raw,
}

/// Where the raw payload's size is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Raw {
    None,
    At(usize),
    /// Behind fields of variable size, which begin here.
    Behind {
        start: usize,
        group: Option<Group>,
        callchain: Option<()>,
    },
}

/// A group read: how many words precede its count's values, and how many words a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    times: usize,
    words: usize,
}

impl Layout {
    fn new(sample_type: u64, read_format: u64) -> Self {
        let has = |bit| sample_type & bit != 0;
        let mut next = HEADER;
        let mut place = |bit| {
            has(bit).then(|| {
                next += 8;
                next - 8
            })
        };
        let identifier = place(sample::IDENTIFIER);
        place(sample::IP);
        let tid = place(sample::TID).map(|offset| offset + 4);
        let time = place(sample::TIME);
        place(sample::ADDR);
        let id = place(sample::ID);
        place(sample::STREAM_ID);
        let cpu = place(sample::CPU);
        place(sample::PERIOD);
        let times = read::TIMES.into_iter().filter(|bit| read_format & bit != 0).count();
        let words = 1 + [read::ID, read::LOST].into_iter().filter(|bit| read_format & bit != 0).count();
        let mut group = None;
        if has(sample::READ) {
            if read_format & read::GROUP != 0 {
                group = Some(Group { times, words });
            } else {
                next += 8 * (times + words);
            }
        }
        let callchain = has(sample::CALLCHAIN).then_some(());
        let raw = match (has(sample::RAW), group, callchain) {
            (false, ..) => Raw::None,
            (true, None, None) => Raw::At(next),
            (true, ..) => Raw::Behind { start: next, group, callchain },
        };
        Self { id: identifier.or(id), tid, time, cpu, raw }
    }

    /// The raw payload of a sample; `None` where there is none or it does not fit.
    #[inline]
    pub(super) fn raw(self, record: &[u8], endian: Endian) -> Option<&[u8]> {
        let start = match self.raw {
            Raw::None => return None,
            Raw::At(start) => start,
            Raw::Behind { start, group, callchain } => variable(record, start, group, callchain, endian)?,
        };
        let size = endian.u32(record, start)?;
        record.get(start + 4..)?.get(..size as usize)
    }
}

/// Passes over the fields of variable size.
fn variable(
    record: &[u8],
    mut start: usize,
    group: Option<Group>,
    callchain: Option<()>,
    endian: Endian,
) -> Option<usize> {
    if let Some(group) = group {
        let values = usize::try_from(endian.u64(record, start)?).ok()?;
        let words = values.checked_mul(group.words)?.checked_add(1 + group.times)?;
        start = start.checked_add(words.checked_mul(8)?)?;
    }
    if callchain.is_some() {
        let frames = usize::try_from(endian.u64(record, start)?).ok()?;
        start = start.checked_add(frames.checked_add(1)?.checked_mul(8)?)?;
    }
    Some(start)
}

/// The identification at the end of records that are not samples (`sample_id_all`), counted from the record's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Trailer {
    len: usize,
    time: Option<usize>,
    cpu: Option<usize>,
    id: Option<usize>,
}

/// What a trailer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SideId {
    pub(super) time: Option<u64>,
    pub(super) cpu: Option<u32>,
    pub(super) id: Option<u64>,
}

impl Trailer {
    fn new(attr: &Attr) -> Self {
        if attr.flags & flag::SAMPLE_ID_ALL == 0 {
            return Self::default();
        }
        let order =
            [sample::TID, sample::TIME, sample::ID, sample::STREAM_ID, sample::CPU, sample::IDENTIFIER];
        let present = order.into_iter().filter(|bit| attr.sample_type & bit != 0);
        let len = 8 * present.clone().count();
        let from_end = |bit| present.clone().position(|found| found == bit).map(|index| len - 8 * index);
        Self {
            len,
            time: from_end(sample::TIME),
            cpu: from_end(sample::CPU),
            id: from_end(sample::IDENTIFIER).or_else(|| from_end(sample::ID)),
        }
    }

    /// The record without its trailer, and what the trailer says.
    pub(super) fn split(self, record: &[u8], endian: Endian) -> (&[u8], SideId) {
        let Some(start) = record.len().checked_sub(self.len).filter(|&start| start >= HEADER) else {
            return (record, SideId::default());
        };
        let at = |from_end: Option<usize>| from_end.map(|from_end| record.len() - from_end);
        let id = SideId {
            time: at(self.time).and_then(|offset| endian.u64(record, offset)),
            cpu: at(self.cpu).and_then(|offset| endian.u32(record, offset)),
            id: at(self.id).and_then(|offset| endian.u64(record, offset)),
        };
        (&record[..start], id)
    }
}

/// Ids up to this distance from the lowest are looked up directly.
const DENSE_IDS: u64 = 1 << 20;
/// No event has this index.
const NO_ATTR: u16 = u16::MAX;

/// All recorded events, and which one a sample's id means.
#[derive(Debug, Clone, Default)]
pub(super) struct Attrs {
    attrs: Vec<Attr>,
    /// Sorted by id.
    ids: Vec<(u64, u16)>,
    /// Index by `id - lowest`, where ids lie close together, as the kernel numbers them.
    dense: Vec<u16>,
    lowest: u64,
    /// Where every sample has its id, known before knowing the event.
    id_place: Option<usize>,
    trailer: Trailer,
}

impl Attrs {
    /// Adds an event with the ids of its instances. At most 65534 are kept.
    pub(super) fn push(&mut self, attr: Attr, ids: impl IntoIterator<Item = u64>) {
        let Some(index) = u16::try_from(self.attrs.len()).ok().filter(|&index| index != NO_ATTR) else {
            return;
        };
        if self.attrs.is_empty() {
            self.id_place = attr.layout.id;
            self.trailer = Trailer::new(&attr);
        }
        self.attrs.push(attr);
        self.ids.extend(ids.into_iter().map(|id| (id, index)));
    }

    /// Makes lookups fast; call after the last [`Attrs::push`] (and again after further ones).
    pub(super) fn index(&mut self) {
        self.ids.sort_by_key(|&(id, _)| id);
        self.dense.clear();
        let (Some(&(lowest, _)), Some(&(highest, _))) = (self.ids.first(), self.ids.last()) else { return };
        self.lowest = lowest;
        if highest - lowest < DENSE_IDS {
            self.dense = vec![NO_ATTR; usize::try_from(highest - lowest).expect("bounded") + 1];
            for &(id, index) in &self.ids {
                self.dense[usize::try_from(id - lowest).expect("bounded")] = index;
            }
        }
    }

    pub(super) fn list(&self) -> &[Attr] {
        &self.attrs
    }

    pub(super) fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// Which event a sample belongs to, by index.
    #[inline]
    pub(super) fn of_sample(&self, record: &[u8], endian: Endian) -> Option<usize> {
        if self.ids.is_empty() || self.id_place.is_none() {
            return (!self.attrs.is_empty()).then_some(0);
        }
        let id = endian.u64(record, self.id_place?)?;
        if self.dense.is_empty() {
            let at = self.ids.binary_search_by_key(&id, |&(id, _)| id).ok()?;
            return Some(usize::from(self.ids[at].1));
        }
        let index = *self.dense.get(usize::try_from(id.wrapping_sub(self.lowest)).ok()?)?;
        (index != NO_ATTR).then_some(usize::from(index))
    }
}

/// The ids in a section or at a record's end.
pub(super) fn ids(bytes: &[u8], endian: Endian) -> Vec<u64> {
    let mut rest = Bytes::new(bytes, endian);
    std::iter::from_fn(|| rest.u64()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_follow_from_the_sample_type() {
        // What perf sched record asks for.
        let layout = Layout::new(
            sample::IP
                | sample::TID
                | sample::TIME
                | sample::CPU
                | sample::PERIOD
                | sample::RAW
                | sample::IDENTIFIER,
            20,
        );
        assert_eq!((layout.id, layout.tid, layout.time, layout.cpu), (Some(8), Some(28), Some(32), Some(40)));
        assert_eq!(layout.raw, Raw::At(56));
        let read = Layout::new(sample::TIME | sample::READ | sample::RAW, 1 | read::ID);
        assert_eq!((read.time, read.raw), (Some(8), Raw::At(16 + 24)));
    }

    #[test]
    fn payloads_behind_call_chains_and_group_reads_are_found() {
        let layout =
            Layout::new(sample::READ | sample::CALLCHAIN | sample::RAW, read::GROUP | 1 | read::LOST);
        let mut record = vec![0; 8];
        for word in [2u64, 77, 10, 0, 20, 0, 1, 0xffff] {
            record.extend(word.to_le_bytes());
        }
        record.extend(3u32.to_le_bytes());
        record.extend(b"abc");
        assert_eq!(layout.raw(&record, Endian::Little), Some(&b"abc"[..]));
        record[8..16].fill(0xff);
        assert_eq!(layout.raw(&record, Endian::Little), None);
        record.pop();
        assert_eq!(layout.raw(&record, Endian::Little), None);
    }
}
