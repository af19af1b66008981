//! Ending a recording from outside: a handle, and signals tied to it.
//!
//! The recorder sleeps in poll on its buffers, so "stop" is a descriptor among them; a signal handler may write to it.

use crate::sys;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Asks a running recording to end, from any thread.
#[derive(Debug, Clone)]
pub struct StopHandle {
    event: Arc<File>,
}

impl StopHandle {
    /// A handle for one recording.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { event: Arc::new(File::from(sys::eventfd()?)) })
    }

    /// Ends the recording it was given to, now or as soon as that starts.
    pub fn stop(&self) {
        // Fails only when already signalled 2^64 - 1 times.
        let _ = (&*self.event).write_all(&1_u64.to_ne_bytes());
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// SIGINT, SIGTERM and SIGHUP end the recording while this lives; what they did before is restored on drop.
///
/// Only one at a time in a process: signal handlers are global.
#[derive(Debug)]
pub struct SignalGuard {
    _handle: StopHandle,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

/// Where the handler writes; −1 without a guard.
static TARGET: AtomicI32 = AtomicI32::new(-1);
/// The last signal that arrived, 0 for none.
static ARRIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(signal: libc::c_int) {
    ARRIVED.store(signal, Ordering::SeqCst);
    let fd = TARGET.load(Ordering::SeqCst);
    if fd >= 0 {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: write is async-signal-safe and the bytes are live; errno is restored, as the interrupted code may be
        // about to look at its own.
        unsafe {
            let errno = *libc::__errno_location();
            libc::write(fd, one.as_ptr().cast(), one.len());
            *libc::__errno_location() = errno;
        }
    }
}

impl SignalGuard {
    /// Ties the signals to `handle`.
    ///
    /// # Errors
    /// When another guard lives.
    pub fn install(handle: &StopHandle) -> io::Result<Self> {
        let fd: RawFd = handle.fd().as_raw_fd();
        if TARGET.compare_exchange(-1, fd, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return Err(io::Error::other("signals already end another recording"));
        }
        ARRIVED.store(0, Ordering::SeqCst);
        let mut before = Vec::new();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
            if let Some(old) = set_handler(signal, handler) {
                // Ignored on purpose (nohup, a background job): leave it so.
                if old.sa_sigaction == libc::SIG_IGN {
                    restore(signal, &old);
                } else {
                    before.push((signal, old));
                }
            }
        }
        Ok(Self { _handle: handle.clone(), before })
    }

    /// The signal that ended the recording, if one did.
    #[must_use]
    pub fn arrived(&self) -> Option<i32> {
        Some(ARRIVED.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            restore(*signal, old);
        }
        TARGET.store(-1, Ordering::SeqCst);
    }
}

/// While this lives, writing beyond RLIMIT_FSIZE is an error (EFBIG) instead of a deadly signal: a limit on file sizes
/// must cost the rest of the recording, not all of it.
#[derive(Debug)]
pub(crate) struct IgnoreFileSizeSignal(Option<libc::sigaction>);

impl IgnoreFileSizeSignal {
    pub(crate) fn install() -> Self {
        Self(set_handler(libc::SIGXFSZ, libc::SIG_IGN))
    }
}

impl Drop for IgnoreFileSizeSignal {
    fn drop(&mut self) {
        if let Some(old) = &self.0 {
            restore(libc::SIGXFSZ, old);
        }
    }
}

fn set_handler(signal: libc::c_int, handler: libc::sighandler_t) -> Option<libc::sigaction> {
    // SAFETY: sigaction is plain data for which zero (no flags, empty mask) is valid; both structures are live, and the
    // handler is either SIG_IGN or a function of the right type that only does async-signal-safe things.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        let mut old: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = handler;
        (libc::sigaction(signal, &raw const new, &raw mut old) == 0).then_some(old)
    }
}

fn restore(signal: libc::c_int, old: &libc::sigaction) {
    // SAFETY: `old` is what sigaction gave for this signal.
    unsafe {
        libc::sigaction(signal, std::ptr::from_ref(old), std::ptr::null_mut());
    }
}
