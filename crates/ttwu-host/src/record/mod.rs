//! Recording the scheduler of the machine that this runs on.
//!
//! ```text
//!  tracepoints ─► ring buffer per CPU ─► raw recording on disk ─► (when the workload is done) ─► .ttwu
//!                  perf_event_open          spool.rs                  convert.rs
//!                  or a tracefs instance
//! ```
//!
//! Always system-wide, whatever the target: a wake-up is emitted by the *waker*, on the waker's CPU, so per-task events
//! would miss most wake-ups of a task and everything that it competed with. `--pid` and the command only *mark* the target
//! in the file. Nothing is lost by that: the kernel gives scheduler tracepoints with payload to no user who may not also
//! see all tasks.
//!
//! One thread sleeps in poll until a buffer is a quarter full, writes all buffers to disk as they are, and sleeps again.
//! Nothing is decoded before the workload has ended (see `spool.rs` for why, and for what a crash leaves behind).

mod child;
mod convert;
mod error;
mod events;
mod facts;
mod instance;
mod machine;
mod namespace;
mod perf_event;
mod ring;
mod spool;
mod stop;
pub(crate) mod tasks;
mod tracefs;

pub use error::RecordError;
pub use events::{EVENT_SETS, EventSet, EventSetError};
pub use stop::{SignalGuard, StopHandle};

use crate::sys;
use child::{Held, Running};
use events::Selection;
use machine::online_cpus;
use perf_event::{PerfCapture, PerfOptions};
use spool::{Feature, SampleLayout, Spool};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
#[expect(clippy::disallowed_types, reason = "a recorder measures how long it records")]
use std::time::Instant;
use tracefs::Tracefs;
use ttwu_model::{Pid, TraceMeta};

/// How the events come out of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Tracepoints through `perf_event_open`.
    Perf,
    /// An ftrace instance of our own in tracefs, removed again at the end.
    Tracefs,
}

/// Which clock stamps the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockChoice {
    /// `CLOCK_MONOTONIC` where reading it is cheap, else the tracer's own clock.
    Auto,
    /// `CLOCK_MONOTONIC`: recordings and logs of one boot can be merged.
    Monotonic,
    /// The tracer's own clock.
    Tracer,
}

/// What to record, and where to.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The file to make; replaced when it exists.
    pub output: PathBuf,
    /// Program and arguments to run and record until it ends; empty to run nothing.
    pub command: Vec<OsString>,
    /// A process to mark as the target, with its threads and children (in our pid namespace). Without a command, the
    /// recording ends when it ends.
    pub pid: Option<i32>,
    /// End after this long. A command that still runs then is sent SIGTERM.
    pub duration: Option<Duration>,
    /// Which tracepoints.
    pub events: EventSet,
    /// How.
    pub backend: Backend,
    /// Stamped by which clock.
    pub clock: ClockChoice,
    /// Buffer per CPU in bytes, rounded up to a power of two; `None` chooses by the number of CPUs.
    pub buffer_bytes: Option<usize>,
    /// Keep the raw recording (perf.data's stream format) instead of converting it.
    pub raw: bool,
}

impl RecordOptions {
    /// The usual recording of `command` into `output`.
    #[must_use]
    pub fn new(output: PathBuf, command: Vec<OsString>) -> Self {
        Self {
            output,
            command,
            pid: None,
            duration: None,
            events: EventSet::sched(),
            backend: Backend::Perf,
            clock: ClockChoice::Auto,
            buffer_bytes: None,
            raw: false,
        }
    }
}

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What the recorder is doing.
    pub phase: Phase,
    /// Time since the events were switched on.
    pub elapsed: Duration,
    /// Events taken from the kernel (while converting: converted).
    pub events: u64,
    /// Events that the kernel lost.
    pub lost: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Steps of making a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Events are being recorded.
    Recording,
    /// The workload is over; the raw recording is being converted.
    Converting,
}

/// Why a recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The command ended.
    Command,
    /// The process given by `pid` ended.
    Target,
    /// The time was up.
    Duration,
    /// Somebody asked, by [`StopHandle`] or a signal.
    Stopped,
    /// The file could not grow: disk full or a limit. What was recorded until then is kept.
    Output(String),
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The file.
    pub file: PathBuf,
    /// Events in it.
    pub events: u64,
    /// Events that the kernel lost.
    pub lost: u64,
    /// How long events were recorded.
    pub duration_ns: u64,
    /// The command's exit status as shells give it (128 + signal), where one ran and ended.
    pub command_exit: Option<i32>,
    /// The command's pid in the root pid namespace, where known.
    pub command_pid: Option<Pid>,
    /// Size of the file.
    pub file_bytes: u64,
    /// Size of the raw recording.
    pub raw_bytes: u64,
    /// The file is the raw recording: as asked, or because it could not be converted (see `notes`).
    pub kept_raw: bool,
    /// Why it ended.
    pub ended: Ended,
    /// What the user should know: tracepoints that this kernel lacks, smaller buffers, …
    pub notes: Vec<String>,
}

/// Events taken and lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) lost: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { events: self.events + other.events, lost: self.lost.saturating_add(other.lost) }
    }
}

/// Why a drain failed: the two have different consequences.
#[derive(Debug)]
pub(crate) enum CaptureError {
    /// The file cannot grow; what is in it stays good.
    Output(io::Error),
    /// The kernel's side failed.
    Capture(io::Error),
}

/// A backend with everything opened.
pub(crate) trait Capture {
    /// Describes the samples to come to the reader of the raw recording.
    fn describe(&self, spool: &mut Spool) -> io::Result<()>;
    /// Switches the events on.
    fn start(&mut self) -> io::Result<()>;
    /// Switches them off.
    fn stop(&mut self) -> io::Result<()>;
    /// Descriptors that become readable when a buffer wants to be drained.
    fn wakers(&self) -> Vec<BorrowedFd<'_>>;
    /// Moves what the buffers hold to the raw recording.
    fn drain(&mut self, spool: &mut Spool) -> Result<(), CaptureError>;
    /// The last drain, after [`Capture::stop`], and what only then is known.
    fn finish(&mut self, spool: &mut Spool) -> Result<(), CaptureError>;
    /// Events so far.
    fn counts(&self) -> Counts;
}

/// Buffers are drained at least this often, so that a crash costs at most this much and progress can be shown.
const TICK: Duration = Duration::from_secs(1);

/// Records until the command or the target ends, the time is up, or `stop` says so, and writes the file.
///
/// `progress` is called about once a second from the recording thread; what it does is part of the recording.
///
/// # Errors
/// [`RecordError`]; nothing is left behind then.
pub fn record(
    options: &RecordOptions,
    stop: &StopHandle,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Summary, RecordError> {
    let _ignore = stop::IgnoreFileSizeSignal::install();
    child::check_command(&options.command)?;
    let files = sys::FileLimit::raise();
    let mut session = Session::open(options, &files)?;
    let outcome = session.run(options, stop, progress);
    let spool_path = session.spool.path().to_owned();
    let (end, capture_counts) = match outcome {
        Ok(end) => (end, session.capture.counts()),
        Err(error) => {
            drop(session);
            let _ = fs::remove_file(spool_path);
            return Err(error);
        }
    };
    session.finish(options, end, capture_counts, progress)
}

/// A recording between its opening and its file.
struct Session {
    capture: Box<dyn Capture>,
    spool: Spool,
    layout: SampleLayout,
    target: Option<(i32, OwnedFd)>,
    meta: TraceMeta,
    notes: Vec<String>,
    command: Option<Held>,
    threads: Vec<tasks::Thread>,
}

/// How [`Session::run`] ended.
struct End {
    why: Ended,
    duration: Duration,
    command: Option<(i32, Option<i32>)>,
    family: Vec<i32>,
}

impl Session {
    fn open(options: &RecordOptions, files: &sys::FileLimit) -> Result<Self, RecordError> {
        let tracefs = Arc::new(Tracefs::open()?);
        let mut selection = Selection::of(&options.events, &tracefs)?;
        let mut notes: Vec<String> =
            selection.missing.iter().map(|missing| format!("not recorded: {missing}")).collect();
        let target = options.pid.map(open_target).transpose()?;
        let cpus = online_cpus();
        let layout = SampleLayout { tid: !namespace::is_root(), period: selection.counts() };
        let monotonic = match options.clock {
            ClockChoice::Auto => machine::clock_is_cheap(),
            ClockChoice::Monotonic => true,
            ClockChoice::Tracer => false,
        };
        let ring_bytes = ring_bytes(options.buffer_bytes, cpus.len());
        let capture: Box<dyn Capture> = match options.backend {
            Backend::Perf => {
                let perf = PerfOptions { ring_bytes, monotonic, layout };
                Box::new(PerfCapture::open(&selection, &cpus, perf, &mut notes)?)
            }
            Backend::Tracefs => Box::new(instance::InstanceCapture::open(
                &tracefs, &selection, &cpus, ring_bytes, monotonic, &mut notes,
            )?),
        };
        let layout = match options.backend {
            Backend::Perf => layout,
            // Pages carry no thread ids of any namespace but the root's.
            Backend::Tracefs => instance::LAYOUT,
        };
        let clock = if monotonic { "mono" } else { tracer_clock(options.backend) };
        let mut meta = machine::describe_machine(&selection, &cpus, clock);
        meta.facts.insert("record.backend".to_owned(), backend_name(options.backend).to_owned());
        match crate::sysfs::read_topology(Path::new("/")) {
            Ok(topology) => meta.topology_text = Some(topology.to_string()),
            Err(error) => notes.push(format!("no topology: {error}")),
        }
        meta.facts.insert("record.tracefs".to_owned(), tracefs.how());
        meta.facts.insert("record.buffer_kib".to_owned(), (ring_bytes >> 10).to_string());
        meta.facts.insert("record.realtime_ns".to_owned(), machine::clock_pair());
        let command = if options.command.is_empty() {
            None
        } else {
            Some(Held::fork(&options.command, files.before())?)
        };
        let output = |source| RecordError::Output { path: options.output.clone(), source };
        let spool = match Spool::create(&options.output, layout) {
            Ok(spool) => spool,
            Err(source) => {
                if let Some(held) = command {
                    held.abandon();
                }
                return Err(output(source));
            }
        };
        let mut session = Self { capture, spool, layout, target, meta, notes, command, threads: Vec::new() };
        if let Err(source) = session.write_head(&tracefs, &mut selection) {
            let _ = fs::remove_file(session.spool.path());
            if let Some(held) = session.command.take() {
                held.abandon();
            }
            return Err(output(source));
        }
        Ok(session)
    }

    /// Writes all that a reader of the raw recording needs before its first event.
    fn write_head(&mut self, tracefs: &Tracefs, selection: &mut Selection) -> io::Result<()> {
        let uname = sys::uname();
        for (feature, text) in [
            (Feature::Hostname, &uname.nodename),
            (Feature::Release, &uname.release),
            (Feature::Version, &machine::recorder_name()),
            (Feature::Arch, &uname.machine),
        ] {
            self.spool.feature(feature, text)?;
        }
        self.threads = tasks::all();
        let online = self.meta.cpus_online.clone().unwrap_or_default();
        let facts = &mut self.meta.facts;
        if self.layout.tid {
            facts
                .insert("tasks.at_start".to_owned(), "not known: recorded inside a pid namespace".to_owned());
        } else {
            let runnable = self.threads.iter().filter(|thread| thread.state == 'R').map(|thread| thread.tid);
            facts.insert("tasks.count".to_owned(), self.threads.len().to_string());
            facts.insert("tasks.runnable_at_start".to_owned(), join(runnable));
            facts.insert("tasks.restricted_to_cpus".to_owned(), tasks::restricted(&self.threads, &online));
        }
        let possible = machine::possible_cpus().max(online.iter().last().map_or(0, |cpu| cpu.index() + 1));
        self.spool.cpu_counts(possible, online.len())?;
        self.write_own()?;
        self.capture.describe(&mut self.spool)?;
        self.spool.tracing_data(&machine::tracing_data(tracefs, selection))?;
        if !self.layout.tid {
            self.spool.names(names(&self.threads))?;
        }
        Ok(())
    }

    /// Writes what perf's header has no place for, as far as it is known before the first event.
    fn write_own(&mut self) -> io::Result<()> {
        let TraceMeta { recorder, command, topology_text, facts, .. } = &self.meta;
        for (name, text) in [("recorder", recorder), ("command", command), ("topology", topology_text)] {
            if let Some(text) = text {
                self.spool.own(name, text)?;
            }
        }
        if !self.layout.tid {
            self.spool.own("recorder_pids", &join(own_threads(&self.threads).into_iter()))?;
            if let Some(held) = &self.command {
                self.spool.own("target.pids", &held.pid().to_string())?;
            }
        }
        for (name, text) in facts {
            self.spool.own(name, text)?;
        }
        Ok(())
    }

    /// Records.
    fn run(
        &mut self,
        options: &RecordOptions,
        stop: &StopHandle,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<End, RecordError> {
        let held = self.command.take();
        if let Err(source) = self.capture.start() {
            if let Some(held) = held {
                held.abandon();
            }
            return Err(RecordError::system("cannot switch the events on", source));
        }
        let command_pid = held.as_ref().map(Held::pid);
        let mut running = held.map(Held::release).transpose()?;
        let (why, duration) = self.watch(options, stop, running.as_mut(), progress)?;
        self.capture.stop().map_err(|source| RecordError::system("cannot switch the events off", source))?;
        let why = match self.capture.finish(&mut self.spool) {
            Ok(()) => why,
            Err(CaptureError::Output(error)) => Ended::Output(error.to_string()),
            Err(CaptureError::Capture(source)) => {
                return Err(RecordError::system("cannot read the events", source));
            }
        };
        let family = self.target.as_ref().map_or_else(Vec::new, |(pid, _)| tasks::family(*pid));
        let exit = match running.as_mut() {
            Some(running) => settle(running, &why, stop, &mut self.notes)?,
            None => None,
        };
        Ok(End { why, duration, command: command_pid.map(|pid| (pid, exit)), family })
    }

    /// The loop: sleep until a buffer fills, something ends, or a second has passed; then drain.
    #[expect(clippy::disallowed_types, reason = "a recorder measures how long it records")]
    fn watch(
        &mut self,
        options: &RecordOptions,
        stop: &StopHandle,
        mut running: Option<&mut Running>,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<(Ended, Duration), RecordError> {
        let begin = Instant::now();
        let mut shown = begin;
        let mut deaf = Vec::new();
        loop {
            let elapsed = begin.elapsed();
            let left = options.duration.map(|duration| duration.saturating_sub(elapsed));
            if left == Some(Duration::ZERO) {
                return Ok((Ended::Duration, elapsed));
            }
            let mut wait = left.map_or(TICK, |left| left.min(TICK));
            if running.as_ref().is_some_and(|running| running.ended_fd().is_none()) {
                // No pidfd on this kernel: ask now and then.
                wait = wait.min(Duration::from_millis(50));
            }
            let ended = self.sleep(stop, running.as_deref(), wait, &mut deaf)?;
            match self.capture.drain(&mut self.spool) {
                Ok(()) => {}
                Err(CaptureError::Output(error)) => {
                    return Ok((Ended::Output(error.to_string()), begin.elapsed()));
                }
                Err(CaptureError::Capture(source)) => {
                    return Err(RecordError::system("cannot read the events", source));
                }
            }
            let command_ended = match running.as_deref_mut() {
                Some(running) if ended.command || running.ended_fd().is_none() => running
                    .try_wait()
                    .map_err(|source| RecordError::system("cannot wait for the command", source))?
                    .is_some(),
                Some(_) | None => false,
            };
            if command_ended {
                return Ok((Ended::Command, begin.elapsed()));
            }
            if ended.stopped {
                return Ok((Ended::Stopped, begin.elapsed()));
            }
            if ended.target && running.is_none() {
                return Ok((Ended::Target, begin.elapsed()));
            }
            if shown.elapsed() >= TICK {
                shown = Instant::now();
                progress(&self.progress(Phase::Recording, begin.elapsed()));
            }
        }
    }

    /// Sleeps until a descriptor is ready or `wait` has passed; which of the endings are ready. `deaf` collects buffers that
    /// only ever hang up (their CPU went off line): polling them again would spin.
    fn sleep(
        &self,
        stop: &StopHandle,
        running: Option<&Running>,
        wait: Duration,
        deaf: &mut Vec<usize>,
    ) -> Result<Ready, RecordError> {
        let none = libc::pollfd { fd: -1, events: 0, revents: 0 };
        let mut fds = vec![
            sys::pollfd(stop.fd()),
            running.and_then(Running::ended_fd).map_or(none, sys::pollfd),
            self.target.as_ref().map_or(none, |(_, fd)| sys::pollfd(fd.as_fd())),
        ];
        let first_waker = fds.len();
        fds.extend(self.capture.wakers().into_iter().map(sys::pollfd));
        for &index in &*deaf {
            fds[index].fd = -1;
        }
        sys::poll_readable(&mut fds, wait)
            .map_err(|source| RecordError::system("cannot wait for events", source))?;
        for (index, fd) in fds.iter().enumerate().skip(first_waker) {
            if fd.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                deaf.push(index);
            }
        }
        let ready = |index: usize| fds[index].revents != 0;
        Ok(Ready { stopped: ready(0), command: ready(1), target: ready(2) })
    }

    fn progress(&self, phase: Phase, elapsed: Duration) -> Progress {
        let Counts { events, lost } = self.capture.counts();
        Progress { phase, elapsed, events, lost, bytes: self.spool.len() }
    }

    /// Makes the file out of what was recorded.
    fn finish(
        self,
        options: &RecordOptions,
        end: End,
        counts: Counts,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, RecordError> {
        let Self { capture, mut spool, layout, mut meta, mut notes, threads, .. } = self;
        // Unmapping buffers and closing events takes the kernel a while; nothing is recorded any more.
        drop(capture);
        let pids = namespace::Pids::of(&spool, layout)
            .map_err(|source| RecordError::Output { path: options.output.clone(), source })?;
        let mut known = Vec::new();
        if layout.tid {
            known.extend(threads.iter().filter_map(|thread| {
                let (pid, tgid) = (pids.root(thread.tid)?, pids.root(thread.tgid)?);
                Some(convert::KnownTask { pid, tgid, name: thread.name.clone() })
            }));
        }
        meta.recorder_pids = own_threads(&threads).into_iter().filter_map(|tid| pids.root(tid)).collect();
        let command_pid = end.command.and_then(|(pid, _)| pids.root(pid));
        let family = end.family.iter().filter_map(|&pid| pids.root(pid)).map(Pid::number);
        let targets = join(command_pid.map(Pid::number).into_iter().chain(family));
        meta.facts.insert("target.pids".to_owned(), targets);
        meta.facts.insert("record.ended".to_owned(), ended_text(&end.why));
        if let Ended::Output(reason) = &end.why {
            notes.push(format!("the recording ends early: {reason}"));
        }
        // For a raw recording that is kept; a full disk costs these, not the recording.
        for (name, text) in [
            ("record.ended", ended_text(&end.why)),
            ("target.pids", meta.facts["target.pids"].clone()),
            ("recorder_pids", join(meta.recorder_pids.iter().map(|pid| pid.number()))),
        ] {
            let _ = spool.own(name, &text);
        }
        let raw_bytes = spool.len();
        let path = spool.path().to_owned();
        drop(spool);
        let raw = convert::Converted { events: counts.events, bytes: raw_bytes };
        let (converted, kept_raw) = if options.raw {
            (raw, true)
        } else {
            let mut tell = |events: u64, bytes: u64| {
                let lost = counts.lost;
                progress(&Progress { phase: Phase::Converting, elapsed: end.duration, events, lost, bytes });
            };
            match convert::convert(&path, meta, &notes, &known, &mut tell) {
                Ok(converted) => (converted, false),
                Err(reason) => {
                    // The recording is good and the command has run: no reason to fail.
                    notes.push(format!(
                        "{} stays in perf's format, which ttwu reads as well: {reason}",
                        path.display()
                    ));
                    (raw, true)
                }
            }
        };
        Ok(Summary {
            file: path,
            events: converted.events,
            lost: counts.lost,
            duration_ns: u64::try_from(end.duration.as_nanos()).unwrap_or(u64::MAX),
            command_exit: end.command.and_then(|(_, exit)| exit),
            command_pid,
            file_bytes: converted.bytes,
            raw_bytes,
            kept_raw,
            ended: end.why,
            notes,
        })
    }
}

/// Which endings a poll found.
struct Ready {
    stopped: bool,
    command: bool,
    target: bool,
}

/// Gets the command's exit status: it may still run when the recording ended for another reason.
fn settle(
    running: &mut Running,
    why: &Ended,
    stop: &StopHandle,
    notes: &mut Vec<String>,
) -> Result<Option<i32>, RecordError> {
    let failed = |source| RecordError::system("cannot wait for the command", source);
    let status = match why {
        Ended::Command | Ended::Target => Some(running.wait().map_err(failed)?),
        // Ctrl-C reached it too, so it gets a moment to end in its own way.
        Ended::Stopped => running.terminate(Duration::from_millis(500)).map_err(failed)?,
        Ended::Duration => running.terminate(Duration::ZERO).map_err(failed)?,
        // The workload is not to blame for a full disk: let it finish, unless told otherwise.
        Ended::Output(_) => running.wait_or(stop.fd()).map_err(failed)?,
    };
    if status.is_none() {
        notes.push("the command did not end on SIGTERM and was left running".to_owned());
    }
    Ok(status.map(child::exit_code))
}

fn open_target(pid: i32) -> Result<(i32, OwnedFd), RecordError> {
    sys::pidfd_open(pid).map(|fd| (pid, fd)).map_err(|source| RecordError::NoProcess { pid, source })
}

/// 8 MiB a CPU, 256 MiB in all: twice what perf takes, so that a recorder that has to wait its turn on a busy machine
/// loses nothing for some 10^5 events.
fn ring_bytes(wish: Option<usize>, cpus: usize) -> usize {
    const EACH: usize = 8 << 20;
    const ALL: usize = 256 << 20;
    const MIN: usize = 512 << 10;
    let page = sys::page_size();
    match wish {
        Some(bytes) => bytes.clamp(page, 1 << 30).next_power_of_two(),
        None => {
            let share = (ALL / cpus.max(1)).clamp(MIN, EACH);
            1 << share.ilog2()
        }
    }
}

fn tracer_clock(backend: Backend) -> &'static str {
    match backend {
        Backend::Perf => "perf",
        Backend::Tracefs => "local",
    }
}

fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Perf => "perf",
        Backend::Tracefs => "tracefs",
    }
}

fn names(threads: &[tasks::Thread]) -> impl Iterator<Item = (i32, i32, &str)> {
    threads.iter().map(|thread| (thread.tgid, thread.tid, &*thread.name))
}

/// Our own threads, those of the start included: the one that held the command is gone by now.
fn own_threads(at_start: &[tasks::Thread]) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or(-1);
    let mut tids: Vec<i32> =
        at_start.iter().filter(|thread| thread.tgid == own).map(|thread| thread.tid).collect();
    tids.extend(tasks::of_process(own).iter().map(|thread| thread.tid));
    tids.sort_unstable();
    tids.dedup();
    tids
}

fn ended_text(why: &Ended) -> String {
    match why {
        Ended::Command => "the command ended".to_owned(),
        Ended::Target => "the target process ended".to_owned(),
        Ended::Duration => "the time was up".to_owned(),
        Ended::Stopped => "stopped by the user".to_owned(),
        Ended::Output(reason) => format!("the file could not grow: {reason}"),
    }
}

fn join(numbers: impl Iterator<Item = i32>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}
