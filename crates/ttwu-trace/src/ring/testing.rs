//! Writes ring-buffer pages for the tests: both byte orders, both word sizes, every kind of entry.

use super::PageLayout;
use crate::tracepoint::Endian;

/// A page being written.
pub(crate) struct PageWriter {
    layout: PageLayout,
    bytes: Vec<u8>,
    commit_flags: u64,
    lost: Option<u64>,
}

impl PageWriter {
    pub(crate) fn new(layout: PageLayout, time: u64) -> Self {
        let mut page = Self { layout, bytes: Vec::new(), commit_flags: 0, lost: None };
        page.put64(time);
        page.bytes.resize(layout.data_at(), 0);
        page
    }

    fn put32(&mut self, value: u32) {
        match self.layout.order() {
            Endian::Little => self.bytes.extend(value.to_le_bytes()),
            Endian::Big => self.bytes.extend(value.to_be_bytes()),
        }
    }

    fn put64(&mut self, value: u64) {
        match self.layout.order() {
            Endian::Little => self.bytes.extend(value.to_le_bytes()),
            Endian::Big => self.bytes.extend(value.to_be_bytes()),
        }
    }

    fn put_long(&mut self, value: u64) {
        if self.layout.long_len() == 4 {
            self.put32(u32::try_from(value).expect("fits a long"));
        } else {
            self.put64(value);
        }
    }

    /// An entry's first word.
    pub(crate) fn word(mut self, type_len: u32, delta: u32) -> Self {
        self.put32(match self.layout.order() {
            Endian::Little => type_len | delta << 5,
            Endian::Big => type_len << 27 | delta,
        });
        self
    }

    pub(crate) fn raw32(mut self, value: u32) -> Self {
        self.put32(value);
        self
    }

    /// A payload of whole words, in the short form.
    pub(crate) fn short(mut self, delta: u32, payload: &[u8]) -> Self {
        assert!(payload.len().is_multiple_of(4) && (4..=112).contains(&payload.len()));
        self = self.word(u32::try_from(payload.len() / 4).expect("checked"), delta);
        self.bytes.extend(payload);
        self
    }

    /// A payload in the long form.
    pub(crate) fn long(mut self, delta: u32, payload: &[u8]) -> Self {
        self = self.word(0, delta).raw32(u32::try_from(payload.len() + 4).expect("short"));
        self.bytes.extend(payload);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn extend(self, delta: u64) -> Self {
        let (high, low) = (delta >> 27, delta & ((1 << 27) - 1));
        self.word(30, u32::try_from(low).expect("masked")).raw32(u32::try_from(high).expect("fits"))
    }

    pub(crate) fn absolute(self, time: u64) -> Self {
        let time = time & ((1 << 59) - 1);
        let (high, low) = (time >> 27, time & ((1 << 27) - 1));
        self.word(31, u32::try_from(low).expect("masked")).raw32(u32::try_from(high).expect("masked"))
    }

    pub(crate) fn lost(mut self, count: Option<u64>) -> Self {
        // As the kernel does it: bit 31 is added as a negative int.
        let missed = if self.layout.long_len() == 8 { 0xffff_ffff_8000_0000 } else { 1 << 31 };
        self.commit_flags = missed | u64::from(count.is_some()) << 30;
        self.lost = count;
        self
    }

    /// The page, filled up to its size.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let commit = (self.bytes.len() - self.layout.data_at()) as u64 | self.commit_flags;
        if let Some(count) = self.lost {
            self.put_long(count);
        }
        let body = std::mem::take(&mut self.bytes);
        self.put_long(commit);
        let commit = std::mem::replace(&mut self.bytes, body);
        self.bytes[8..8 + commit.len()].copy_from_slice(&commit);
        assert!(self.bytes.len() <= self.layout.size());
        self.bytes.resize(self.layout.size(), 0);
        self.bytes
    }
}

/// All four kinds of machine.
pub(crate) fn layouts() -> [PageLayout; 4] {
    [(Endian::Little, 8), (Endian::Little, 4), (Endian::Big, 8), (Endian::Big, 4)]
        .map(|(order, long)| PageLayout::usual(order, long, 4096).expect("sound"))
}
