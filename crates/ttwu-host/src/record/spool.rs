//! The raw recording on disk: perf's own stream format ("pipe mode"), written as the kernel hands it out.
//!
//! Why raw, and converted at the end: a recorder that decodes beside the workload is one more busy task to place, on exactly
//! the CPUs under study. Measured with `perf bench sched messaging -g 4 -l 2000` on two CPUs (489 000 events in 6 s): writing
//! them raw ran the recorder for 58 ms in 4 wake-ups; decoding and writing `.ttwu` takes another 170 ms, which at the end
//! disturb nothing. The price is disk: about 95 bytes an event until then, against 4. Why perf's format: the
//! file is a recording that this project's reader (and perf itself) opens at any moment, so after a crash of the recorder
//! it reads up to the last whole record, with nothing to repair.
//!
//! Both backends end here; tracefs' events are rewrapped as samples.

use crate::sys::PerfEventAttr;
use std::fs::{File, TryLockError};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

// Sample fields, in the bit order of `PERF_SAMPLE_*`.
pub(crate) const SAMPLE_TID: u64 = 1 << 1;
pub(crate) const SAMPLE_TIME: u64 = 1 << 2;
pub(crate) const SAMPLE_CPU: u64 = 1 << 7;
pub(crate) const SAMPLE_PERIOD: u64 = 1 << 8;
pub(crate) const SAMPLE_RAW: u64 = 1 << 10;
pub(crate) const SAMPLE_IDENTIFIER: u64 = 1 << 16;

// Record types.
pub(crate) const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_UNTHROTTLE: u32 = 6;
pub(crate) const RECORD_SAMPLE: u32 = 9;
const RECORD_HEADER_ATTR: u32 = 64;
const RECORD_TRACING_DATA: u32 = 66;
const RECORD_FINISHED_ROUND: u32 = 68;
const RECORD_HEADER_FEATURE: u32 = 80;

const FEATURE_NRCPUS: u64 = 7;
/// See ttwu-trace's reader of perf features.
const FEATURE_TTWU: u64 = 255;

/// Text features of perf's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    Hostname = 3,
    Release = 4,
    Version = 5,
    Arch = 6,
}

/// Which optional fields the samples have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleLayout {
    /// Samples carry the thread id of the recorder's pid namespace.
    pub(crate) tid: bool,
    /// Samples carry their period. It is always 1, but without it the kernel repeats an event that counts something (the
    /// nanoseconds of `sched_stat_runtime`) instead of reporting it once.
    pub(crate) period: bool,
}

impl SampleLayout {
    /// `sample_type` of the events.
    pub(crate) const fn sample_type(self) -> u64 {
        SAMPLE_IDENTIFIER
            | SAMPLE_TIME
            | SAMPLE_CPU
            | SAMPLE_RAW
            | if self.tid { SAMPLE_TID } else { 0 }
            | if self.period { SAMPLE_PERIOD } else { 0 }
    }

    /// Where a sample's thread id is, from the record's start.
    pub(crate) const TID_OFFSET: usize = 8 + 8 + 4;

    /// Where a sample's time is, from the record's start.
    pub(crate) const fn time_offset(self) -> usize {
        8 + 8 + if self.tid { 8 } else { 0 }
    }

    /// Where a sample's payload size is, from the record's start.
    pub(crate) const fn raw_offset(self) -> usize {
        self.time_offset() + 8 + 8 + if self.period { 8 } else { 0 }
    }

    /// Appends a record that says that events of `cpu` are missing up to `time`: so many, or nobody counted.
    pub(crate) fn lost_into(
        self,
        cpu: u16,
        time: u64,
        lost: Option<u64>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let trailer = self.trailer(time, u32::from(cpu), 0);
        // perf has no record for an uncounted loss; throttling, after which it goes on, is one in effect.
        let (kind, body) = match lost {
            Some(lost) => (RECORD_LOST, vec![0, lost]),
            None => (RECORD_UNTHROTTLE, vec![time, 0, 0]),
        };
        out.extend(record_header(kind, 8 * body.len() + trailer.len())?);
        out.extend(body.iter().flat_map(|word: &u64| word.to_ne_bytes()));
        out.extend(trailer);
        Ok(())
    }

    /// The trailer of records that are not samples (`sample_id_all`).
    fn trailer(self, time: u64, cpu: u32, id: u64) -> Vec<u8> {
        let mut words = Vec::new();
        if self.tid {
            words.push(0);
        }
        words.extend([time, u64::from_ne_bytes(pair(cpu, 0)), id]);
        words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect()
    }
}

fn pair(first: u32, second: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    bytes
}

/// What describes the machine's tracepoints to a reader: the tracing-data block of perf.data.
#[derive(Debug, Default)]
pub(crate) struct TracingData {
    pub(crate) header_page: Vec<u8>,
    pub(crate) header_event: Vec<u8>,
    /// System, and the format descriptions of its recorded tracepoints.
    pub(crate) systems: Vec<(String, Vec<String>)>,
    /// Lines of /proc/kallsyms, where events carry addresses.
    pub(crate) symbols: Vec<u8>,
}

impl TracingData {
    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        out.extend_from_slice(&[0x17, 0x08, 0x44]);
        out.extend_from_slice(b"tracing0.6\0");
        out.push(u8::from(cfg!(target_endian = "big")));
        out.push(u8::try_from(size_of::<libc::c_long>()).expect("a long is 4 or 8 bytes"));
        out.extend_from_slice(&narrow(crate::sys::page_size())?.to_ne_bytes());
        for (name, content) in [("header_page", &self.header_page), ("header_event", &self.header_event)] {
            out.extend_from_slice(name.as_bytes());
            out.push(0);
            out.extend_from_slice(&(content.len() as u64).to_ne_bytes());
            out.extend_from_slice(content);
        }
        // ftrace's own events (system `ftrace`) come first in a list of their own: none are recorded.
        out.extend_from_slice(&0_u32.to_ne_bytes());
        out.extend_from_slice(&narrow(self.systems.len())?.to_ne_bytes());
        for (system, formats) in &self.systems {
            out.extend_from_slice(system.as_bytes());
            out.push(0);
            out.extend_from_slice(&narrow(formats.len())?.to_ne_bytes());
            for format in formats {
                out.extend_from_slice(&(format.len() as u64).to_ne_bytes());
                out.extend_from_slice(format.as_bytes());
            }
        }
        out.extend_from_slice(&narrow(self.symbols.len())?.to_ne_bytes());
        out.extend_from_slice(&self.symbols);
        // No printk formats, no saved command lines.
        out.extend_from_slice(&0_u32.to_ne_bytes());
        out.extend_from_slice(&0_u64.to_ne_bytes());
        Ok(out)
    }
}

fn narrow(len: usize) -> io::Result<u32> {
    u32::try_from(len)
        .map_err(|_| io::Error::other(format!("a block of {len} bytes does not fit perf's format")))
}

/// Appends a string as perf's header has them: padded with at least one NUL to a multiple of 64, cut to fit a record.
fn put_string(body: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let text = &text.as_bytes()[..text.len().min(60_000)];
    let len = (text.len() + 1).next_multiple_of(64);
    body.extend_from_slice(&narrow(len)?.to_ne_bytes());
    body.extend_from_slice(text);
    body.resize(body.len() + len - text.len(), 0);
    Ok(())
}

/// The raw recording being written.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    path: PathBuf,
    layout: SampleLayout,
    whole: u64,
    /// Where the first round begins.
    events_at: Option<u64>,
}

impl Spool {
    /// Begins a raw recording in `path`, replacing what was there.
    pub(crate) fn create(path: &Path, layout: SampleLayout) -> io::Result<Self> {
        // Asked before it is opened too: opening a FIFO waits for a reader.
        let refused = || io::Error::other("not a regular file; the recording is read again to convert it");
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            return Err(refused());
        }
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(refused());
        }
        // File systems without locks answer otherwise; then nothing protects two recordings from each other.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(io::Error::other("another recording is writing it"));
        }
        // The file itself, not a link to it: it will be replaced.
        let path = path.canonicalize()?;
        file.set_len(0)?;
        let mut spool = Self { file, path, layout, whole: 0, events_at: None };
        let mut magic = b"PERFILE2".to_vec();
        if cfg!(target_endian = "big") {
            magic.reverse();
        }
        magic.extend_from_slice(&16_u64.to_ne_bytes());
        match spool.append(&mut [IoSlice::new(&magic)]) {
            Ok(()) => Ok(spool),
            Err(error) => {
                // No room for anything: an empty file is no recording.
                let _ = std::fs::remove_file(&spool.path);
                Err(error)
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written so far, whole appends only.
    pub(crate) fn len(&self) -> u64 {
        self.whole
    }

    /// Where the kernel's records begin.
    pub(crate) fn events_at(&self) -> u64 {
        self.events_at.unwrap_or(self.whole)
    }

    /// Describes an event: its attributes and the ids that its samples carry.
    pub(crate) fn attr(&mut self, attr: PerfEventAttr, ids: &[u64]) -> io::Result<()> {
        let mut body = attr.to_bytes();
        body.extend(ids.iter().flat_map(|id| id.to_ne_bytes()));
        self.record(RECORD_HEADER_ATTR, &body, &[])
    }

    /// Writes a text of the header, cut to what a record can hold.
    pub(crate) fn feature(&mut self, feature: Feature, text: &str) -> io::Result<()> {
        let mut body = (feature as u64).to_ne_bytes().to_vec();
        put_string(&mut body, text)?;
        self.record(RECORD_HEADER_FEATURE, &body, &[])
    }

    /// Writes how many CPUs there can be, and are.
    pub(crate) fn cpu_counts(&mut self, possible: usize, online: usize) -> io::Result<()> {
        let mut body = FEATURE_NRCPUS.to_ne_bytes().to_vec();
        body.extend_from_slice(&narrow(possible)?.to_ne_bytes());
        body.extend_from_slice(&narrow(online)?.to_ne_bytes());
        self.record(RECORD_HEADER_FEATURE, &body, &[])
    }

    /// Writes something that perf's header has no place for; only ttwu reads it.
    pub(crate) fn own(&mut self, name: &str, text: &str) -> io::Result<()> {
        let mut body = FEATURE_TTWU.to_ne_bytes().to_vec();
        body.extend_from_slice(&2_u32.to_ne_bytes());
        put_string(&mut body, name)?;
        put_string(&mut body, text)?;
        body.resize(body.len().next_multiple_of(8), 0);
        self.record(RECORD_HEADER_FEATURE, &body, &[])
    }

    /// Writes the tracepoints' descriptions.
    pub(crate) fn tracing_data(&mut self, data: &TracingData) -> io::Result<()> {
        let mut bytes = data.to_bytes()?;
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        // The record's own size does not include the block; its body says how long that is.
        self.record(RECORD_TRACING_DATA, &narrow(bytes.len())?.to_ne_bytes(), &bytes)
    }

    /// Names threads that existed before the recording: process, thread, name.
    pub(crate) fn names<'a>(&mut self, tasks: impl Iterator<Item = (i32, i32, &'a str)>) -> io::Result<()> {
        let mut all = Vec::new();
        for (tgid, tid, name) in tasks {
            let mut body = tgid.to_ne_bytes().to_vec();
            body.extend_from_slice(&tid.to_ne_bytes());
            body.extend_from_slice(&name.as_bytes()[..name.len().min(15)]);
            body.resize((body.len() + 1).next_multiple_of(8), 0);
            body.extend(self.layout.trailer(0, 0, 0));
            all.extend(record_header(RECORD_COMM, body.len())?);
            all.extend(body);
        }
        self.append(&mut [IoSlice::new(&all)])
    }

    /// Says that `lost` events of `cpu` are missing up to `time`.
    pub(crate) fn lost(&mut self, cpu: u16, time: u64, lost: u64) -> io::Result<()> {
        let mut record = Vec::new();
        self.layout.lost_into(cpu, time, Some(lost), &mut record)?;
        self.append(&mut [IoSlice::new(&record)])
    }

    /// Writes the kernel's records of one drain of all CPUs, and the mark that lets a reader sort: after it, nothing older
    /// than the newest event of the drain *before* can still come.
    pub(crate) fn round(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        self.events_at.get_or_insert(self.whole);
        let mark = record_header(RECORD_FINISHED_ROUND, 0)?;
        let mut slices: Vec<IoSlice<'_>> =
            pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| IoSlice::new(piece)).collect();
        if slices.is_empty() {
            return Ok(());
        }
        slices.push(IoSlice::new(&mark));
        self.append(&mut slices)
    }

    fn record(&mut self, kind: u32, body: &[u8], after: &[u8]) -> io::Result<()> {
        let header = record_header(kind, body.len())?;
        self.append(&mut [IoSlice::new(&header), IoSlice::new(body), IoSlice::new(after)])
    }

    /// Appends all of `slices`, or nothing: what a full disk cuts short is taken back, so that the file always ends with a
    /// whole record.
    fn append(&mut self, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        match write_all(&mut self.file, slices) {
            Ok(written) => {
                self.whole += written;
                Ok(())
            }
            Err(error) => {
                // If even this fails, the reader stops at the last whole record.
                let _ = self.file.set_len(self.whole);
                let _ = self.file.seek(SeekFrom::Start(self.whole));
                Err(error)
            }
        }
    }
}

/// Appends a tracepoint's payload as the sample that perf would have made of it (without thread id and period). The identifier is the
/// tracepoint's number, with which every payload begins.
pub(crate) fn sample_into(cpu: u16, time: u64, payload: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let id = payload.get(..2).map_or(0, |id| u16::from_ne_bytes([id[0], id[1]]));
    // Size word and payload together fill whole 8-byte words, as the kernel has it.
    let raw = (4 + payload.len()).next_multiple_of(8);
    out.extend(record_header(RECORD_SAMPLE, 3 * 8 + raw)?);
    for word in [u64::from(id), time, u64::from_ne_bytes(pair(u32::from(cpu), 0))] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.extend_from_slice(&narrow(raw - 4)?.to_ne_bytes());
    out.extend_from_slice(payload);
    out.resize(out.len() + raw - 4 - payload.len(), 0);
    Ok(())
}

fn record_header(kind: u32, body: usize) -> io::Result<[u8; 8]> {
    let size = u16::try_from(8 + body).map_err(|_| io::Error::other(format!("a record of {body} bytes")))?;
    let mut header = [0; 8];
    header[..4].copy_from_slice(&kind.to_ne_bytes());
    header[6..].copy_from_slice(&size.to_ne_bytes());
    Ok(header)
}

/// As the unstable `Write::write_all_vectored`, with no more slices a call than the kernel takes.
fn write_all(file: &mut File, mut slices: &mut [IoSlice<'_>]) -> io::Result<u64> {
    const IOV_MAX: usize = 1024;
    let mut total = 0;
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let some = slices.len().min(IOV_MAX);
        match file.write_vectored(&slices[..some]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                total += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_one_recording() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.ttwu");
        let layout = SampleLayout { tid: false, period: false };
        let first = Spool::create(&path, layout).expect("the first");
        let error = Spool::create(&path, layout).expect_err("the second");
        assert_eq!(error.to_string(), "another recording is writing it");
        assert_eq!(std::fs::metadata(&path).expect("still there").len(), first.len());
        drop(first);
        Spool::create(&path, layout).expect("after the first");
    }
}
