//! A file's bytes in large blocks, so that records are walked in place.

use crate::{Input, ReadError};

/// Read at once. Larger blocks leave the second-level cache between being read and being walked.
const BLOCK: usize = 1 << 18;
/// No record is longer than its 16-bit size can say.
const RECORD_MAX: usize = 1 << 16;

/// A window that moves over a span of the input.
#[derive(Debug)]
pub(super) struct Blocks {
    buffer: Vec<u8>,
    /// What of `buffer` is filled and not yet consumed.
    start: usize,
    filled: usize,
    /// Input offset of `buffer[filled]`.
    next: u64,
    end: u64,
}

impl Blocks {
    /// Over `offset..end`; the end may lie beyond the input's.
    pub(super) fn new(offset: u64, end: u64) -> Self {
        Self { buffer: Vec::new(), start: 0, filled: 0, next: offset, end }
    }

    /// What is next: at least a whole record, unless the span or the input ends before. [`Blocks::fill`] first.
    pub(super) fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.filled]
    }

    /// Input offset of the first byte of [`Blocks::window`].
    pub(super) fn offset(&self) -> u64 {
        self.next - (self.filled - self.start) as u64
    }

    /// Makes sure that the window holds a whole record, unless the span or the input ends before.
    ///
    /// # Errors
    /// The input's.
    pub(super) fn fill(&mut self, input: &Input) -> Result<(), ReadError> {
        if self.filled - self.start < RECORD_MAX && self.next < self.end.min(input.len()) {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
            let left = usize::try_from(self.end.min(input.len()) - self.next).unwrap_or(usize::MAX);
            let want = self.filled.saturating_add(left.min(BLOCK));
            if self.buffer.len() < want {
                self.buffer.resize(want, 0);
            }
            let read = input.read_at(self.next, &mut self.buffer[self.filled..want])?;
            self.filled += read;
            self.next += read as u64;
            if read == 0 {
                // The file became shorter than it was when opened.
                self.end = self.next;
            }
        }
        Ok(())
    }

    /// Passes over bytes that were looked at.
    ///
    /// # Panics
    /// If there are not that many in the window: our bug.
    pub(super) fn consume(&mut self, len: usize) {
        assert!(len <= self.filled - self.start, "consumed more than was filled");
        self.start += len;
    }

    /// Passes over bytes that need not be in the window.
    pub(super) fn skip(&mut self, len: u64) {
        let buffered = self.filled - self.start;
        match usize::try_from(len) {
            Ok(len) if len <= buffered => self.start += len,
            Ok(_) | Err(_) => {
                self.next = self.next.saturating_add(len - buffered as u64).min(self.end);
                self.start = self.filled;
            }
        }
    }
}
