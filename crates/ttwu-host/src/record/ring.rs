//! The mapped ring buffer of a perf event: what the kernel has written and we have not yet taken.
//!
//! Mapped writable, so that the kernel never overwrites what was not taken: a full buffer loses *new* events and says so
//! in a record, where an overwriting buffer would lose old ones silently. Records are handed out as slices of the mapping,
//! to be written to the file as they are: nothing is decoded or copied while the workload runs.

use super::spool::{RECORD_LOST, RECORD_SAMPLE};
use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Offset of `data_head` in the control page (`perf_event_mmap_page`); `data_tail` follows.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A mapped ring buffer.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    control: usize,
    capacity: usize,
    tail: u64,
}

// SAFETY: the mapping belongs to the process, not to a thread, and `Ring` is its only user.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the buffer of `event`: `capacity` bytes, a power of two of at least a page.
    pub(crate) fn map(event: BorrowedFd<'_>, capacity: usize) -> io::Result<Self> {
        let control = sys::page_size();
        assert!(capacity.is_power_of_two() && capacity >= control, "a ring of {capacity} bytes");
        // SAFETY: a new mapping at a place that the kernel chooses, of a descriptor that is open.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                control + capacity,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { base, control, capacity, tail: 0 })
    }

    /// The position up to which the kernel has written.
    pub(crate) fn head(&self) -> u64 {
        self.position(DATA_HEAD).load(Ordering::Acquire)
    }

    /// The bytes up to `head` (a value that [`Ring::head`] gave), in order; the second slice is what follows after the
    /// buffer's wrap.
    pub(crate) fn pending(&self, head: u64) -> [&[u8]; 2] {
        let len = usize::try_from(head.wrapping_sub(self.tail)).unwrap_or(usize::MAX).min(self.capacity);
        let start = usize::try_from(self.tail % self.capacity as u64).expect("below the capacity");
        let first = len.min(self.capacity - start);
        // SAFETY: data begins one page after `base` and is `capacity` bytes long; both ranges lie inside. The kernel has
        // finished writing them (acquire load of the head) and writes them again only once the tail has passed them, which
        // needs `&mut self` in `consume`, so the slices are dead by then.
        unsafe {
            let data = self.base.as_ptr().add(self.control);
            [
                std::slice::from_raw_parts(data.add(start), first),
                std::slice::from_raw_parts(data, len - first),
            ]
        }
    }

    /// Gives the bytes up to `head` back to the kernel.
    pub(crate) fn consume(&mut self, head: u64) {
        self.tail = head;
        self.position(DATA_TAIL).store(head, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the control page is mapped for the life of `self`; both fields are 8-byte aligned and only accessed
        // atomically, by the kernel too.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; no slice of it outlives `self`.
        unsafe {
            libc::munmap(self.base.as_ptr().cast(), self.control + self.capacity);
        }
    }
}

/// What a stretch of records holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tracepoint events.
    pub(crate) samples: u64,
    /// Events that the kernel says it lost.
    pub(crate) lost: u64,
    /// The time of the last event.
    pub(crate) time_last: Option<u64>,
}

/// Kernel records are 8-byte aligned and so is the wrap: a header never straddles it.
const HEADER: usize = 8;

/// Counts the records in `pending`, without looking at more than their headers; samples have their time `time_offset` bytes
/// from their start.
///
/// # Errors
/// When they are not a chain of whole records: then this is not what the kernel promises, and going on would loop.
pub(crate) fn tally(pending: [&[u8]; 2], time_offset: usize) -> io::Result<Tally> {
    let total = pending[0].len() + pending[1].len();
    let word = |at: usize| -> Option<[u8; 8]> {
        let (half, at) =
            if at < pending[0].len() { (pending[0], at) } else { (pending[1], at - pending[0].len()) };
        half.get(at..at + 8)?.try_into().ok()
    };
    let mut tally = Tally::default();
    let mut at = 0;
    let mut sample_last = None;
    while at < total {
        let header = word(at).ok_or_else(|| broken(at, total))?;
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        if size < HEADER || !size.is_multiple_of(8) || at + size > total {
            return Err(broken(at, total));
        }
        match kind {
            RECORD_SAMPLE => {
                tally.samples += 1;
                sample_last = Some(at);
            }
            RECORD_LOST if size >= HEADER + 16 => {
                let lost = word(at + 16).ok_or_else(|| broken(at, total))?;
                tally.lost = tally.lost.saturating_add(u64::from_ne_bytes(lost));
            }
            _ => {}
        }
        at += size;
    }
    tally.time_last = sample_last.and_then(|at| word(at + time_offset)).map(u64::from_ne_bytes);
    Ok(tally)
}

fn broken(at: usize, total: usize) -> io::Error {
    io::Error::other(format!("no whole record at byte {at} of {total} in a perf ring buffer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u64]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&0_u16.to_ne_bytes());
        bytes.extend_from_slice(&u16::try_from(HEADER + body.len() * 8).unwrap().to_ne_bytes());
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn records_are_counted_across_the_wrap() {
        let all: Vec<u8> =
            [record(9, &[1, 2, 3]), record(2, &[7, 40, 0, 0]), record(9, &[6]), record(3, &[0])].concat();
        for wrap in (0..=all.len()).step_by(8) {
            let tally = tally([&all[..wrap], &all[wrap..]], 8).unwrap();
            assert_eq!(tally, Tally { samples: 2, lost: 40, time_last: Some(6) }, "wrap at {wrap}");
        }
    }

    #[test]
    fn a_broken_chain_is_an_error_not_a_loop() {
        let mut zero = record(9, &[1]);
        zero[6] = 0;
        assert!(tally([&zero, &[]], 8).is_err());
        let whole = record(9, &[1, 2]);
        assert!(tally([&whole[..16], &[]], 8).is_err());
    }
}
