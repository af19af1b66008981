//! Backend: tracepoints through `perf_event_open`, one ring buffer per CPU.
//!
//! Every tracepoint is opened on every CPU, and all of a CPU share the buffer of the first. Samples hold only identifier,
//! time, CPU and the tracepoint's own bytes: less to write per event than perf's default, which repeats thread, address
//! and period that the payload or the constant period already say.

use super::error::{Operation, RecordError, Rights};
use super::events::Selection;
use super::ring::{self, Ring};
use super::spool::{SampleLayout, Spool};
use super::tracefs::Tracepoint;
use super::{Capture, CaptureError, Counts};
use crate::sys::{self, PerfEventAttr, PerfIoctl, attr_flag};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

const TYPE_TRACEPOINT: u32 = 2;
const FLAG_DISABLED: u32 = 0;
const FLAG_COMM: u32 = 9;
const FLAG_TASK: u32 = 13;
const FLAG_WATERMARK: u32 = 14;
pub(crate) const FLAG_SAMPLE_ID_ALL: u32 = 18;
const FLAG_USE_CLOCKID: u32 = 25;
const FORMAT_ID: u64 = 1 << 2;
/// Since Linux 6.0.
const FORMAT_LOST: u64 = 1 << 4;

/// The smallest buffer that is tried when the kernel does not give what was asked for.
const RING_BYTES_MIN: usize = 128 << 10;

/// All CPUs' events and buffers.
#[derive(Debug)]
pub(crate) struct PerfCapture {
    cpus: Vec<CpuEvents>,
    layout: SampleLayout,
    attrs: Vec<(PerfEventAttr, Vec<u64>)>,
    ring_bytes: usize,
}

/// One CPU's buffer and the events that write to it.
#[derive(Debug)]
struct CpuEvents {
    cpu: u16,
    ring: Ring,
    /// In the order of the selection; the first owns the buffer.
    events: Vec<File>,
    counts: Counts,
    time_last: u64,
}

/// How to open events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerfOptions {
    /// Bytes of buffer per CPU, a power of two.
    pub(crate) ring_bytes: usize,
    /// `CLOCK_MONOTONIC` instead of perf's own clock.
    pub(crate) monotonic: bool,
    /// Samples carry thread ids of our pid namespace.
    pub(crate) layout: SampleLayout,
}

impl PerfCapture {
    /// Opens the selection on `cpus`, not yet counting.
    pub(crate) fn open(
        selection: &Selection,
        cpus: &[u16],
        options: PerfOptions,
        notes: &mut Vec<String>,
    ) -> Result<Self, RecordError> {
        let rights = Rights::of_self();
        let mut capture = Self {
            cpus: Vec::new(),
            layout: options.layout,
            attrs: Vec::new(),
            ring_bytes: options.ring_bytes,
        };
        for point in &selection.tracepoints {
            let first = capture.attrs.is_empty();
            capture.attrs.push((attr(point, first, options), Vec::new()));
        }
        if let Some(&first) = cpus.first() {
            capture.probe(i32::from(first));
        }
        for &cpu in cpus {
            capture.open_cpu(selection, cpu, &rights, notes)?;
        }
        if capture.cpus.is_empty() {
            return Err(RecordError::Unsupported { what: "no CPU takes perf events".to_owned() });
        }
        if capture.ring_bytes < options.ring_bytes {
            notes.push(format!(
                "event buffers are {} KiB per CPU instead of {} KiB: more may not be locked",
                capture.ring_bytes >> 10,
                options.ring_bytes >> 10
            ));
        }
        Ok(capture)
    }

    /// Takes back what this kernel is too old for.
    fn probe(&mut self, cpu: i32) {
        let refuses = |attr: &PerfEventAttr| {
            sys::perf_event_open_cpu(attr, cpu).is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
        };
        if self.attrs.first().is_some_and(|(attr, _)| refuses(attr)) {
            for (attr, _) in &mut self.attrs {
                attr.read_format = FORMAT_ID;
            }
        }
    }

    fn open_cpu(
        &mut self,
        selection: &Selection,
        cpu: u16,
        rights: &Rights,
        notes: &mut Vec<String>,
    ) -> Result<(), RecordError> {
        let mut events: Vec<File> = Vec::new();
        let mut ids = Vec::new();
        for ((attr, _), point) in self.attrs.iter().zip(&selection.tracepoints) {
            let refused = |error: &io::Error| {
                RecordError::refused(&Operation::OpenEvent { event: point.full_name() }, error, rights)
            };
            let event = match sys::perf_event_open_cpu(attr, i32::from(cpu)) {
                Ok(event) => event,
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) && events.is_empty() => {
                    notes.push(format!("CPU {cpu} went off line and is not recorded"));
                    return Ok(());
                }
                Err(error) => return Err(refused(&error)),
            };
            if let Some(filter) = &point.filter {
                let text = sys::c_string(filter).map_err(|error| refused(&error))?;
                sys::perf_ioctl(event.as_fd(), PerfIoctl::SetFilter(&text)).map_err(|source| {
                    RecordError::system(format!("cannot filter {} by `{filter}`", point.full_name()), source)
                })?;
            }
            let mut event = File::from(event);
            ids.push(read_counters(&mut event).map_err(|error| refused(&error))?.id);
            events.push(event);
        }
        let ring = self.map(events[0].as_fd(), rights)?;
        for event in &events[1..] {
            sys::perf_ioctl(event.as_fd(), PerfIoctl::SetOutput(events[0].as_fd()))
                .map_err(|source| RecordError::system("cannot share a perf buffer", source))?;
        }
        for ((_, all), id) in self.attrs.iter_mut().zip(ids) {
            all.push(id);
        }
        self.cpus.push(CpuEvents { cpu, ring, events, counts: Counts::default(), time_last: 0 });
        Ok(())
    }

    /// Maps a buffer, halving it where the kernel does not allow so much.
    fn map(&mut self, event: BorrowedFd<'_>, rights: &Rights) -> Result<Ring, RecordError> {
        loop {
            match Ring::map(event, self.ring_bytes) {
                Ok(ring) => return Ok(ring),
                Err(error) => {
                    let scarce = matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM));
                    if !scarce || self.ring_bytes <= RING_BYTES_MIN {
                        let operation = Operation::MapBuffer { bytes: self.ring_bytes };
                        return Err(RecordError::refused(&operation, &error, rights));
                    }
                    self.ring_bytes /= 2;
                }
            }
        }
    }

    /// Runs `request` on all events, tracepoint by tracepoint: switching one on interrupts its CPU, which those of a
    /// tracepoint already switched on would record.
    fn for_all(&self, request: PerfIoctl<'_>) -> io::Result<()> {
        for index in 0..self.attrs.len() {
            for cpu in &self.cpus {
                sys::perf_ioctl(cpu.events[index].as_fd(), request)?;
            }
        }
        Ok(())
    }

    /// How many records of each CPU's events were lost, by the kernel's counters.
    fn lost(&mut self) -> io::Result<Vec<u64>> {
        let count = |cpu: &mut CpuEvents| -> io::Result<u64> {
            let mut lost = 0_u64;
            for event in &mut cpu.events {
                lost = lost.saturating_add(read_counters(event)?.lost);
            }
            Ok(lost)
        };
        self.cpus.iter_mut().map(count).collect()
    }
}

/// What a perf event says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    /// How often it happened (or the sum of what it counts).
    value: u64,
    id: u64,
    /// Zero on kernels that do not tell.
    lost: u64,
}

fn read_counters(event: &mut File) -> io::Result<Counters> {
    // One read: the kernel gives all counters at once or none.
    let mut bytes = [0; 24];
    let read = event.read(&mut bytes)?;
    let word =
        |index: usize| u64::from_ne_bytes(bytes[index * 8..index * 8 + 8].try_into().expect("eight bytes"));
    match read {
        16 | 24 => Ok(Counters { value: word(0), id: word(1), lost: word(2) }),
        _ => Err(io::Error::other(format!("a perf event's counters are {read} bytes, expected 24"))),
    }
}

fn attr(point: &Tracepoint, first: bool, options: PerfOptions) -> PerfEventAttr {
    let mut flags = attr_flag(FLAG_DISABLED) | attr_flag(FLAG_SAMPLE_ID_ALL) | attr_flag(FLAG_WATERMARK);
    if options.monotonic {
        flags |= attr_flag(FLAG_USE_CLOCKID);
    }
    // One event per CPU also reports names and forks of new threads, which tell the process of each; these records speak in
    // pids of *our* namespace and would mislead when that is not the root.
    if first && !options.layout.tid {
        flags |= attr_flag(FLAG_COMM) | attr_flag(FLAG_TASK);
    }
    PerfEventAttr {
        kind: TYPE_TRACEPOINT,
        size: PerfEventAttr::SIZE,
        config: u64::from(point.id),
        sample_period: 1,
        sample_type: options.layout.sample_type(),
        read_format: FORMAT_ID | FORMAT_LOST,
        flags,
        // A quarter: as few wake-ups of the reader as perf has with its default of half of half the size, and three
        // quarters left for the time until it runs.
        wakeup_watermark: u32::try_from(options.ring_bytes / 4).unwrap_or(u32::MAX),
        clockid: if options.monotonic { libc::CLOCK_MONOTONIC } else { 0 },
        ..PerfEventAttr::default()
    }
}

impl Capture for PerfCapture {
    fn describe(&self, spool: &mut Spool) -> io::Result<()> {
        for (attr, ids) in &self.attrs {
            spool.attr(*attr, ids)?;
        }
        Ok(())
    }

    fn start(&mut self) -> io::Result<()> {
        self.for_all(PerfIoctl::Enable)
    }

    fn stop(&mut self) -> io::Result<()> {
        self.for_all(PerfIoctl::Disable)
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        self.cpus.iter().map(|cpu| cpu.events[0].as_fd()).collect()
    }

    fn drain(&mut self, spool: &mut Spool) -> Result<(), CaptureError> {
        let heads: Vec<u64> = self.cpus.iter().map(|cpu| cpu.ring.head()).collect();
        let mut pieces = Vec::with_capacity(2 * heads.len());
        let mut tallies = Vec::with_capacity(heads.len());
        for (cpu, &head) in self.cpus.iter().zip(&heads) {
            let pending = cpu.ring.pending(head);
            let tally = ring::tally(pending, self.layout.time_offset()).map_err(CaptureError::Capture)?;
            tallies.push(tally);
            pieces.extend(pending);
        }
        spool.round(&pieces).map_err(CaptureError::Output)?;
        for ((cpu, head), tally) in self.cpus.iter_mut().zip(heads).zip(tallies) {
            cpu.ring.consume(head);
            cpu.counts.events += tally.samples;
            cpu.counts.lost += tally.lost;
            cpu.time_last = tally.time_last.unwrap_or(cpu.time_last);
        }
        Ok(())
    }

    fn finish(&mut self, spool: &mut Spool) -> Result<(), CaptureError> {
        self.drain(spool)?;
        // The kernel reports a loss together with the next event that fits; after the last one nobody does.
        let lost = self.lost().map_err(CaptureError::Capture)?;
        for (cpu, lost) in self.cpus.iter_mut().zip(lost) {
            let unreported = lost.saturating_sub(cpu.counts.lost);
            if unreported > 0 {
                spool.lost(cpu.cpu, cpu.time_last, unreported).map_err(CaptureError::Output)?;
                cpu.counts.lost += unreported;
            }
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        self.cpus.iter().fold(Counts::default(), |sum, cpu| sum + cpu.counts)
    }
}
