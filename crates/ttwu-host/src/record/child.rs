//! The command under study: forked, held just before its exec until events are recorded, and waited for.
//!
//! Held by a pipe in `pre_exec`, so that the recording begins exactly where the program does and a command that cannot be
//! started leaves no recording behind. std's `spawn` returns only after the exec, so a thread of its own sits in it
//! meanwhile. Waiting is a pidfd in the recorder's poll, not a loop.

use super::error::RecordError;
use crate::sys;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;

/// A forked command that has not yet begun.
#[derive(Debug)]
pub(crate) struct Held {
    name: String,
    /// In our pid namespace.
    pid: i32,
    go: File,
    spawn: JoinHandle<io::Result<Child>>,
}

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Readable when it ends; `None` on kernels before 5.3, where it is asked instead.
    ended: Option<OwnedFd>,
}

impl Held {
    /// Forks `command`: the program and its arguments. `files` are the limits of open files that it is to have.
    pub(crate) fn fork(command: &[OsString], files: libc::rlimit) -> Result<Self, RecordError> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| RecordError::Usage { what: "no command given after `--`".to_owned() })?;
        let name = program.to_string_lossy().into_owned();
        let failed = |source| RecordError::Command { command: name.clone(), source };
        let (held, go) = sys::pipe().map_err(failed)?;
        let (mut born, tell) = sys::pipe().map(|(born, tell)| (File::from(born), tell)).map_err(failed)?;
        let mut child = Command::new(program);
        child.args(arguments);
        let (wait_on, tell_on, not_ours) = (held.as_raw_fd(), tell.as_raw_fd(), go.as_raw_fd());
        // SAFETY: the closure runs in the forked child and calls only setrlimit, close, getpid, write, read and signal,
        // all async-signal-safe; it allocates nothing.
        unsafe {
            child.pre_exec(move || {
                sys::set_file_limit(&files);
                hold(wait_on, tell_on, not_ours)
            });
        }
        let spawn = std::thread::spawn(move || {
            let result = child.spawn();
            // Their ends in this process: the child has its own.
            drop((held, tell));
            result
        });
        let mut pid = [0; 4];
        if let Err(source) = born.read_exact(&mut pid) {
            // It never got to `hold`: fork itself failed.
            let source = spawn.join().ok().and_then(Result::err).unwrap_or(source);
            return Err(RecordError::Command { command: name, source });
        }
        Ok(Self { name, pid: i32::from_ne_bytes(pid), go: File::from(go), spawn })
    }

    /// Its pid in our pid namespace.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets it begin.
    pub(crate) fn release(mut self) -> Result<Running, RecordError> {
        let failed = |source| RecordError::Command { command: self.name.clone(), source };
        self.go.write_all(&[1]).map_err(failed)?;
        let spawned = self.spawn.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let child = spawned.map_err(failed)?;
        Ok(Running { child, ended: sys::pidfd_open(self.pid).ok() })
    }

    /// Ends it before it has begun.
    pub(crate) fn abandon(self) {
        // The child sees the pipe closed and gives up; its spawn then reports that, which nobody needs.
        drop(self.go);
        let _ = self.spawn.join();
    }
}

/// Runs in the child between fork and exec: says its pid, then waits for the word to go.
fn hold(wait_on: RawFd, tell_on: RawFd, not_ours: RawFd) -> io::Result<()> {
    let mut byte = 0_u8;
    // SAFETY: plain system calls on descriptors inherited from the parent and on a local byte. Closing `not_ours`, the
    // pipe's other end, makes the read below end when the recorder dies.
    let read = unsafe {
        libc::close(not_ours);
        // Ignored signals stay ignored across exec; the recorder ignores this one for itself.
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        let pid = libc::getpid().to_ne_bytes();
        libc::write(tell_on, pid.as_ptr().cast(), pid.len());
        loop {
            let read = libc::read(wait_on, (&raw mut byte).cast(), 1);
            if read != -1 || *libc::__errno_location() != libc::EINTR {
                break read;
            }
        }
    };
    if read == 1 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ECANCELED)) }
}

impl Running {
    /// What becomes readable when it ends.
    pub(crate) fn ended_fd(&self) -> Option<BorrowedFd<'_>> {
        self.ended.as_ref().map(AsFd::as_fd)
    }

    /// Its exit status, if it has ended.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Gives it `grace` to end by itself, then asks it to; `None` when it has not within about two seconds and was left
    /// running.
    pub(crate) fn terminate(&mut self, grace: Duration) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = self.wait_for(grace)? {
            return Ok(Some(status));
        }
        sys::kill(i32::try_from(self.child.id()).map_err(io::Error::other)?, libc::SIGTERM)?;
        self.wait_for(Duration::from_secs(2))
    }

    /// Waits for its end or until `stop` is readable; then it is asked to end.
    pub(crate) fn wait_or(&mut self, stop: BorrowedFd<'_>) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.wait_for(Duration::from_millis(500))? {
                return Ok(Some(status));
            }
            let mut fds = [sys::pollfd(stop)];
            sys::poll_readable(&mut fds, Duration::ZERO)?;
            if fds[0].revents != 0 {
                return self.terminate(Duration::ZERO);
            }
        }
    }

    /// Its exit status, if it ends within `time`.
    fn wait_for(&mut self, time: Duration) -> io::Result<Option<ExitStatus>> {
        const STEP: Duration = Duration::from_millis(50);
        let mut left = time;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if left.is_zero() {
                return Ok(None);
            }
            let step = left.min(STEP);
            match &self.ended {
                Some(ended) => sys::poll_readable(&mut [sys::pollfd(ended.as_fd())], step)?,
                None => std::thread::sleep(step),
            }
            left -= step;
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

/// Refuses a command that cannot exist, before any file is touched.
pub(crate) fn check_command(command: &[OsString]) -> Result<(), RecordError> {
    let Some(program) = command.first() else { return Ok(()) };
    let name = program.to_string_lossy();
    if name.contains('/') {
        return match fs::metadata(program) {
            Ok(_) => Ok(()),
            Err(source) => Err(RecordError::Command { command: name.into_owned(), source }),
        };
    }
    #[expect(clippy::disallowed_methods, reason = "a command is looked for where the user's shell would")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join(program).is_file()) {
        return Ok(());
    }
    let source = io::Error::new(io::ErrorKind::NotFound, "no such program in PATH");
    Err(RecordError::Command { command: name.into_owned(), source })
}

/// An exit status as shells give it: the code, or 128 plus the signal's number.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
