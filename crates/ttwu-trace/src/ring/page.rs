//! Walks the entries of one ring-buffer page.
//!
//! ```text
//! u64 timestamp | long commit | entry entry entry … | [long lost, when commit says so]
//! commit:  bits 0–26 bytes of entries, bit 30 a lost count follows them, bit 31 events were lost before this page
//!          (the kernel adds bit 31 as a negative int, so a 64-bit commit then has all bits above set too)
//! entry:   u32 type_len:5 time_delta:27 (bit fields: from the low end on little endian, from the high end on big)
//!          1–28     payload of 4 × type_len bytes
//!          0        u32 length follows, which counts itself and the payload
//!          29       padding: delta 0 ends the page, else u32 length to skip
//!          30       time extend: u32 of upper delta bits
//!          31       absolute time stamp of 59 bits
//! ```
//!
//! Time is the page's stamp plus all deltas. A cursor instead of an iterator, because the merge keeps page and cursor
//! side by side in one struct, which an iterator borrowing the page cannot do.

use super::PageLayout;
use crate::tracepoint::Endian;

const COMMIT_LEN: u64 = (1 << 27) - 1;
const LOST_COUNTED: u64 = 1 << 30;
const LOST_BEFORE: u64 = 1 << 31;

const DELTA_BITS: u32 = 27;
const ABSOLUTE_BITS: u32 = 59;

const DATA_LEN_MAX: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;

/// Events that were lost just before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// None were.
    None,
    /// Lost, and nobody counted.
    Uncounted,
    /// Lost and counted.
    Counted(u64),
}

/// What a page's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHead {
    /// Time stamp of the page, in the tracer's clock.
    pub time: u64,
    /// What is missing before it.
    pub lost: Lost,
    /// Where the entries end.
    pub end: usize,
}

/// A payload found by [`PageCursor::next`]: `page[start..end]` at `time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Time stamp in the tracer's clock.
    pub time: u64,
    /// Offset of the payload's first byte in the page.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
}

/// One step of a [`PageCursor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A payload.
    Entry(Entry),
    /// No further entries.
    End,
    /// The entry at this offset does not fit in the page; what follows it cannot be found.
    Damaged {
        /// Its offset in the page.
        at: usize,
    },
}

/// Where a walk over one page stands.
#[derive(Debug, Clone, Copy)]
pub struct PageCursor {
    at: usize,
    end: usize,
    time: u64,
    order: Endian,
}

impl PageHead {
    /// The header of `page`, which may be shorter than the layout says (the end of a cut file).
    ///
    /// # Errors
    /// The committed length when it does not fit.
    pub fn parse(page: &[u8], layout: &PageLayout) -> Result<Self, u64> {
        let order = layout.order();
        let time = order.u64(page, 0).ok_or(0u64)?;
        // The flags are in the low word of `commit` on both word sizes.
        let commit = order.long(page, 8, layout.long_len()).ok_or(0u64)?;
        let len = commit & COMMIT_LEN;
        let end = layout.data_at() + usize::try_from(len).expect("27 bits");
        if end > page.len() || end > layout.size() {
            return Err(len);
        }
        let lost = match (commit & LOST_BEFORE != 0, commit & LOST_COUNTED != 0) {
            (false, _) => Lost::None,
            (true, false) => Lost::Uncounted,
            (true, true) => match order.long(page, end, layout.long_len()) {
                Some(count) if count > 0 => Lost::Counted(count),
                Some(_) | None => Lost::Uncounted,
            },
        };
        Ok(Self { time, lost, end })
    }
}

impl PageCursor {
    /// Before the first entry of a page with this header.
    #[must_use]
    pub fn new(head: &PageHead, layout: &PageLayout) -> Self {
        Self { at: layout.data_at(), end: head.end, time: head.time, order: layout.order() }
    }

    /// The next payload. `page` is the one that the cursor was made for.
    #[inline]
    pub fn next(&mut self, page: &[u8]) -> Step {
        let page = &page[..self.end.min(page.len())];
        loop {
            if self.at >= page.len() {
                return Step::End;
            }
            let at = self.at;
            let Some(word) = self.order.u32(page, at) else { return self.damaged(at, page) };
            let (type_len, delta) = match self.order {
                Endian::Little => (word & 31, word >> 5),
                Endian::Big => (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1)),
            };
            if (1..=DATA_LEN_MAX).contains(&type_len) {
                let start = at + 4;
                let end = start + 4 * type_len as usize;
                if end > page.len() {
                    return self.damaged(at, page);
                }
                self.time = self.time.wrapping_add(u64::from(delta));
                self.at = end;
                return Step::Entry(Entry { time: self.time, start, end });
            }
            if type_len == PADDING && delta == 0 {
                self.at = page.len();
                return Step::End;
            }
            let Some(array) = self.order.u32(page, at + 4) else { return self.damaged(at, page) };
            match type_len {
                0 => {
                    // The length counts its own word; the next entry is aligned to 4 bytes.
                    let Some(len) = (array as usize).checked_sub(4) else { return self.damaged(at, page) };
                    let (start, end) = (at + 8, at + 8 + len);
                    if end > page.len() {
                        return self.damaged(at, page);
                    }
                    self.time = self.time.wrapping_add(u64::from(delta));
                    self.at = (end + 3) & !3;
                    return Step::Entry(Entry { time: self.time, start, end });
                }
                PADDING => {
                    // A discarded event. Its delta is real unless it is 1, which the kernel writes where it was 0.
                    let next = at + 4 + array as usize;
                    if array < 4 || next > page.len() {
                        return self.damaged(at, page);
                    }
                    if delta > 1 {
                        self.time = self.time.wrapping_add(u64::from(delta));
                    }
                    self.at = next;
                }
                TIME_EXTEND => {
                    self.time = self.time.wrapping_add((u64::from(array) << DELTA_BITS) | u64::from(delta));
                    self.at = at + 8;
                }
                _ => {
                    let low = (u64::from(array) << DELTA_BITS) | u64::from(delta);
                    self.time = restore_top_bits(low & ((1 << ABSOLUTE_BITS) - 1), self.time);
                    self.at = at + 8;
                }
            }
        }
    }

    /// Stops the walk: nothing behind a damaged entry can be found.
    #[cold]
    fn damaged(&mut self, at: usize, page: &[u8]) -> Step {
        self.at = page.len();
        Step::Damaged { at }
    }
}

/// A full time stamp from the 59 bits that an absolute one stores, given the time before it: the clock may have carried
/// into the upper bits in between.
fn restore_top_bits(low: u64, before: u64) -> u64 {
    let time = low | (before >> ABSOLUTE_BITS << ABSOLUTE_BITS);
    if before >> ABSOLUTE_BITS != 0 && time < before { time.wrapping_add(1 << ABSOLUTE_BITS) } else { time }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
