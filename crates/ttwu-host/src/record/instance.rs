//! Backend: an ftrace instance of our own in tracefs, read page by page.
//!
//! For machines where perf events are refused but tracefs is not. An instance has buffers and switches of its own, so other
//! users of tracing are not disturbed; it is removed again however the recording ends, and one that a killed recorder left
//! behind is removed by the next.
//!
//! Entries are rewrapped as perf samples, one copy each, so that both backends make the same raw recording. Unlike perf's
//! buffer, ftrace's is left overwriting: only then does the kernel say *where* it lost events, which in the other mode is a
//! mere count at the end.

use super::error::{Operation, RecordError, Rights};
use super::events::Selection;
use super::spool::{SampleLayout, Spool, sample_into};
use super::tracefs::{Tracefs, Tracepoint};
use super::{Capture, CaptureError, Counts};
use crate::sys::{self, PerfEventAttr};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use ttwu_trace::Endian;
use ttwu_trace::ring::{Lost, PageCursor, PageHead, PageLayout, Step};

/// Instances are `ttwu-PID`.
const NAME: &str = "ttwu-";

/// An instance and its CPUs' page streams.
#[derive(Debug)]
pub(crate) struct InstanceCapture {
    // Before the instance, so that dropping closes the streams first: an instance in use cannot be removed.
    cpus: Vec<CpuPages>,
    instance: Instance,
    points: Vec<Tracepoint>,
    layout: PageLayout,
    page: Vec<u8>,
    out: Vec<u8>,
    pages_max: usize,
}

/// One CPU's pages.
#[derive(Debug)]
struct CpuPages {
    cpu: u16,
    pages: File,
    counts: Counts,
    time_last: u64,
}

/// A directory under `instances/`, removed on drop.
#[derive(Debug)]
struct Instance {
    path: PathBuf,
    /// The path may lead through it.
    _tracefs: Arc<Tracefs>,
}

/// The layout of the samples that entries become: no thread id, for pages have none but the root namespace's.
pub(crate) const LAYOUT: SampleLayout = SampleLayout { tid: false, period: false };

impl InstanceCapture {
    /// Makes an instance with the selection's events switched on but tracing off.
    pub(crate) fn open(
        tracefs: &Arc<Tracefs>,
        selection: &Selection,
        cpus: &[u16],
        ring_bytes: usize,
        monotonic: bool,
        notes: &mut Vec<String>,
    ) -> Result<Self, RecordError> {
        let header = String::from_utf8_lossy(&tracefs.file("events/header_page")).into_owned();
        let order = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
        let layout = PageLayout::parse(&header, order).map_err(|what| RecordError::Unsupported { what })?;
        remove_abandoned(tracefs);
        let instance = Instance::create(tracefs)?;
        instance.set("tracing_on", "0")?;
        instance.set("buffer_size_kb", &(ring_bytes >> 10).to_string())?;
        if monotonic {
            instance.set("trace_clock", "mono")?;
        }
        // Since 5.1; without it the reader wakes more often.
        let _ = instance.set("buffer_percent", "25");
        for point in &selection.tracepoints {
            let directory = format!("events/{}/{}", point.system, point.name);
            if let Some(filter) = &point.filter {
                instance.set(&format!("{directory}/filter"), filter)?;
            }
            instance.set(&format!("{directory}/enable"), "1")?;
        }
        let mut capture = Self {
            cpus: Vec::new(),
            instance,
            points: selection.tracepoints.clone(),
            layout,
            page: vec![0; layout.size()],
            out: Vec::new(),
            pages_max: ring_bytes / layout.size() + 1,
        };
        for &cpu in cpus {
            match capture.instance.pages(cpu) {
                Ok(pages) => {
                    capture.cpus.push(CpuPages { cpu, pages, counts: Counts::default(), time_last: 0 });
                }
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                    notes.push(format!("CPU {cpu} went off line and is not recorded"));
                }
                Err(error) => {
                    let path = capture.instance.path.join(format!("per_cpu/cpu{cpu}"));
                    let operation = Operation::ReadTracefs(path);
                    return Err(RecordError::refused(&operation, &error, &Rights::of_self()));
                }
            }
        }
        Ok(capture)
    }

    /// Moves a CPU's pages to `out` as perf records, at most as many as its buffer holds: it fills while it is read.
    fn read_cpu(&mut self, index: usize) -> io::Result<()> {
        let cpu = &mut self.cpus[index];
        for _ in 0..self.pages_max {
            let read = match cpu.pages.read(&mut self.page) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            cpu.rewrap(&self.page[..read], &self.layout, &mut self.out)?;
        }
        Ok(())
    }
}

impl CpuPages {
    /// Appends a page's entries to `out` as perf records.
    fn rewrap(&mut self, page: &[u8], layout: &PageLayout, out: &mut Vec<u8>) -> io::Result<()> {
        let broken = |at: usize| {
            io::Error::other(format!("CPU {}: no whole entry at byte {at} of a live page", self.cpu))
        };
        let head = PageHead::parse(page, layout).map_err(|_| broken(8))?;
        match head.lost {
            Lost::None => {}
            Lost::Uncounted => {
                LAYOUT.lost_into(self.cpu, head.time, None, out)?;
                // At least one.
                self.counts.lost = self.counts.lost.saturating_add(1);
            }
            Lost::Counted(count) => {
                LAYOUT.lost_into(self.cpu, head.time, Some(count), out)?;
                self.counts.lost = self.counts.lost.saturating_add(count);
            }
        }
        let mut cursor = PageCursor::new(&head, layout);
        loop {
            match cursor.next(page) {
                Step::Entry(entry) => {
                    let payload = &page[entry.start..entry.end];
                    sample_into(self.cpu, entry.time, payload, out)?;
                    self.counts.events += 1;
                    self.time_last = entry.time;
                }
                Step::End => return Ok(()),
                Step::Damaged { at } => return Err(broken(at)),
            }
        }
    }
}

impl Instance {
    fn create(tracefs: &Arc<Tracefs>) -> Result<Self, RecordError> {
        let path = tracefs.root().join(format!("instances/{NAME}{}", std::process::id()));
        // A second recording in one process has a name of its own.
        let mut free = path.clone();
        for number in 2.. {
            match fs::create_dir(&free) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => {
                    free = PathBuf::from(format!("{}-{number}", path.display()));
                }
                Err(error) => {
                    return Err(RecordError::refused(
                        &Operation::WriteTracefs(free),
                        &error,
                        &Rights::of_self(),
                    ));
                }
            }
        }
        Ok(Self { path: free, _tracefs: Arc::clone(tracefs) })
    }

    fn set(&self, file: &str, value: &str) -> Result<(), RecordError> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(|error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                RecordError::refused(&Operation::WriteTracefs(path), &error, &Rights::of_self())
            } else {
                RecordError::system(format!("cannot set {file} of the instance to `{value}`"), error)
            }
        })
    }

    fn pages(&self, cpu: u16) -> io::Result<File> {
        File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw")))
    }

    /// Events that a CPU's buffer dropped without saying so in its pages.
    fn dropped(&self, cpu: u16) -> u64 {
        let stats = fs::read_to_string(self.path.join(format!("per_cpu/cpu{cpu}/stats"))).unwrap_or_default();
        stats
            .lines()
            .filter_map(|line| {
                let (name, count) = line.split_once(':')?;
                matches!(name, "commit overrun" | "dropped events").then(|| count.trim().parse().ok())?
            })
            .fold(0_u64, |sum: u64, count: u64| sum.saturating_add(count))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::write(self.path.join("tracing_on"), "0");
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes the instances of recorders that no longer exist. One that is in use cannot be removed, so a recorder in another
/// pid namespace is safe.
fn remove_abandoned(tracefs: &Arc<Tracefs>) {
    let Ok(entries) = fs::read_dir(tracefs.root().join("instances")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(NAME)) else { continue };
        let Some(pid) = rest.split('-').next().and_then(|pid| pid.parse::<i32>().ok()) else { continue };
        let gone = sys::kill(pid, 0).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH));
        if gone {
            drop(Instance { path: entry.path(), _tracefs: Arc::clone(tracefs) });
        }
    }
}

impl Capture for InstanceCapture {
    fn describe(&self, spool: &mut Spool) -> io::Result<()> {
        for point in &self.points {
            // What perf would have been asked for; the sample's identifier is the tracepoint's number.
            let attr = PerfEventAttr {
                kind: 2,
                size: PerfEventAttr::SIZE,
                config: u64::from(point.id),
                sample_period: 1,
                sample_type: LAYOUT.sample_type(),
                flags: sys::attr_flag(super::perf_event::FLAG_SAMPLE_ID_ALL),
                ..PerfEventAttr::default()
            };
            spool.attr(attr, &[u64::from(point.id)])?;
        }
        Ok(())
    }

    fn start(&mut self) -> io::Result<()> {
        fs::write(self.instance.path.join("tracing_on"), "1")
    }

    fn stop(&mut self) -> io::Result<()> {
        fs::write(self.instance.path.join("tracing_on"), "0")
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        self.cpus.iter().map(|cpu| cpu.pages.as_fd()).collect()
    }

    fn drain(&mut self, spool: &mut Spool) -> Result<(), CaptureError> {
        self.out.clear();
        for index in 0..self.cpus.len() {
            self.read_cpu(index).map_err(CaptureError::Capture)?;
        }
        spool.round(&[&self.out]).map_err(CaptureError::Output)
    }

    fn finish(&mut self, spool: &mut Spool) -> Result<(), CaptureError> {
        self.drain(spool)?;
        for cpu in &mut self.cpus {
            let dropped = self.instance.dropped(cpu.cpu);
            if dropped > 0 {
                spool.lost(cpu.cpu, cpu.time_last, dropped).map_err(CaptureError::Output)?;
                cpu.counts.lost = cpu.counts.lost.saturating_add(dropped);
            }
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        self.cpus.iter().fold(Counts::default(), |sum, cpu| sum + cpu.counts)
    }
}
