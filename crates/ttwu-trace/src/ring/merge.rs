//! All CPUs' records in one order: by time, then by CPU number, then by buffer.
//!
//! A heap of streams, with the foremost one kept outside: scheduler events of one CPU come in runs, so mostly the same
//! stream stays in front and a record costs one comparison.

use super::stream::{CpuStream, Head};
use crate::ReadError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use ttwu_model::{CpuId, Time, TraceHealth};

/// What comes next in the merged order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A tracepoint's record.
    Record { at: Time, cpu: CpuId, payload: &'a [u8] },
    /// Events of this CPU are missing before its next record, which has this time.
    Lost { at: Time, cpu: CpuId, count: Option<u64> },
}

/// Time, CPU, index of the stream.
type Key = (u64, CpuId, usize);

/// The merge of several streams.
pub(crate) struct Merge {
    streams: Vec<CpuStream>,
    waiting: BinaryHeap<Reverse<Key>>,
    front: Option<usize>,
    started: bool,
}

impl Merge {
    pub(crate) fn new(streams: Vec<CpuStream>) -> Self {
        Self { streams, waiting: BinaryHeap::new(), front: None, started: false }
    }

    fn key(&self, index: usize) -> Key {
        let stream = &self.streams[index];
        (stream.time(), stream.cpu(), index)
    }

    /// Goes on to the next record or loss and gives it; `None` at the end.
    ///
    /// # Errors
    /// Only the operating system's.
    #[inline]
    pub(crate) fn advance(&mut self, health: &mut TraceHealth) -> Result<Option<Item<'_>>, ReadError> {
        if !self.started {
            self.start(health)?;
        } else if let Some(index) = self.front {
            self.streams[index].advance(health)?;
            if self.streams[index].head() == Head::End {
                self.front = self.waiting.pop().map(|Reverse((.., index))| index);
            } else if let Some(mut next) = self.waiting.peek_mut() {
                let stream = &self.streams[index];
                let key = (stream.time(), stream.cpu(), index);
                if key > next.0 {
                    self.front = Some(next.0.2);
                    *next = Reverse(key);
                }
            }
        }
        let Some(index) = self.front else { return Ok(None) };
        let stream = &self.streams[index];
        let (at, cpu) = (Time::from_ns(stream.time()), stream.cpu());
        Ok(match stream.head() {
            Head::Record { start, end } => Some(Item::Record { at, cpu, payload: stream.bytes(start, end) }),
            Head::Lost(count) => Some(Item::Lost { at, cpu, count }),
            Head::End => None,
        })
    }

    /// Puts every stream on its first record.
    #[cold]
    fn start(&mut self, health: &mut TraceHealth) -> Result<(), ReadError> {
        self.started = true;
        for index in 0..self.streams.len() {
            self.streams[index].advance(health)?;
            if self.streams[index].head() != Head::End {
                self.waiting.push(Reverse(self.key(index)));
            }
        }
        self.front = self.waiting.pop().map(|Reverse((.., index))| index);
        Ok(())
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
