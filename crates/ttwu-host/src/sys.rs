//! The system calls that the recorder needs and std lacks, each as a small safe function.
//!
//! libc with our own `perf_event_attr` instead of a bindings crate: the structure's first 112 bytes (its fifth published
//! size) are all that is used, the kernel takes any published size, and generated bindings would add a second copy of
//! what ttwu-trace already knows about the format. rustix has no `perf_event_open`.
//!
//! What this does not do: any policy. Errors are the kernel's own.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// `perf_event_attr` up to and including `sample_max_stack` (kernel 4.8, `PERF_ATTR_SIZE_VER5`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerfEventAttr {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup_watermark: u32,
    pub(crate) bp_type: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_stack_user: u32,
    pub(crate) clockid: i32,
    pub(crate) sample_regs_intr: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) sample_max_stack: u16,
    pub(crate) reserved: u16,
}

impl PerfEventAttr {
    /// The structure's size as the kernel knows it.
    pub(crate) const SIZE: u32 = 112;

    /// The bytes, as the kernel and perf.data lay them out.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::SIZE as usize);
        bytes.extend_from_slice(&self.kind.to_ne_bytes());
        bytes.extend_from_slice(&self.size.to_ne_bytes());
        for word in [self.config, self.sample_period, self.sample_type, self.read_format, self.flags] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(&self.wakeup_watermark.to_ne_bytes());
        bytes.extend_from_slice(&self.bp_type.to_ne_bytes());
        for word in [self.config1, self.config2, self.branch_sample_type, self.sample_regs_user] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(&self.sample_stack_user.to_ne_bytes());
        bytes.extend_from_slice(&self.clockid.to_ne_bytes());
        bytes.extend_from_slice(&self.sample_regs_intr.to_ne_bytes());
        bytes.extend_from_slice(&self.aux_watermark.to_ne_bytes());
        bytes.extend_from_slice(&self.sample_max_stack.to_ne_bytes());
        bytes.extend_from_slice(&self.reserved.to_ne_bytes());
        bytes
    }
}

/// A bit of the attr's bit field; bit fields fill from the other end on big-endian machines.
pub(crate) const fn attr_flag(bit: u32) -> u64 {
    if cfg!(target_endian = "big") { 1 << (63 - bit) } else { 1 << bit }
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = RawFd::try_from(check(result)?).map_err(io::Error::other)?;
    // SAFETY: every caller passes the result of a call that returns a new descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `perf_event_open` for all tasks on one CPU, close-on-exec.
pub(crate) fn perf_event_open_cpu(attr: &PerfEventAttr, cpu: i32) -> io::Result<OwnedFd> {
    const FD_CLOEXEC: libc::c_ulong = 1 << 3;
    // SAFETY: `attr` is a live structure of at least `attr.size` bytes that the kernel only reads.
    owned(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attr),
            -1 as libc::pid_t,
            cpu as libc::c_int,
            -1 as libc::c_int,
            FD_CLOEXEC,
        )
    })
}

/// The ioctls of a perf event that the recorder uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PerfIoctl<'a> {
    Enable,
    Disable,
    /// Send this event's records to another event's ring buffer.
    SetOutput(BorrowedFd<'a>),
    /// A tracepoint filter in the kernel's filter language.
    SetFilter(&'a CStr),
}

/// Runs one ioctl on a perf event.
pub(crate) fn perf_ioctl(fd: BorrowedFd<'_>, request: PerfIoctl<'_>) -> io::Result<()> {
    const KIND: u32 = b'$' as u32;
    let raw = fd.as_raw_fd();
    let result = match request {
        // SAFETY: these two take no pointer.
        PerfIoctl::Enable => unsafe { libc::ioctl(raw, libc::_IO(KIND, 0), 0) },
        // SAFETY: as above.
        PerfIoctl::Disable => unsafe { libc::ioctl(raw, libc::_IO(KIND, 1), 0) },
        // SAFETY: takes a descriptor by value.
        PerfIoctl::SetOutput(to) => unsafe { libc::ioctl(raw, libc::_IO(KIND, 5), to.as_raw_fd()) },
        // SAFETY: the kernel reads a NUL-terminated string, which a CStr is, during the call only.
        PerfIoctl::SetFilter(text) => unsafe {
            libc::ioctl(raw, libc::_IOW::<*const libc::c_char>(KIND, 6), text.as_ptr())
        },
    };
    check(libc::c_long::from(result)).map(drop)
}

/// A kernel file system mounted nowhere: the descriptor of its root, which no other process sees and which goes away with
/// it. So tracefs can be used on a machine that has not mounted it, without leaving a mount behind.
pub(crate) fn detached_mount(file_system: &CStr) -> io::Result<OwnedFd> {
    const CMD_CREATE: libc::c_uint = 6;
    const CLOEXEC: libc::c_uint = 1;
    let null = std::ptr::null::<libc::c_char>();
    // SAFETY: the name is NUL-terminated and only read.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, file_system.as_ptr(), CLOEXEC) })?;
    // SAFETY: CMD_CREATE takes no key, value or aux; null pointers are what it expects.
    check(unsafe {
        libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CMD_CREATE, null, null, 0 as libc::c_int)
    })?;
    // SAFETY: takes a descriptor and two numbers.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0 as libc::c_uint) })
}

/// A descriptor that becomes readable when the process `pid` (in our pid namespace) ends.
pub(crate) fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0 as libc::c_uint) })
}

/// Sends a signal.
pub(crate) fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: takes two numbers.
    check(libc::c_long::from(unsafe { libc::kill(pid, signal) })).map(drop)
}

/// A counter descriptor for waking a poll; non-blocking, close-on-exec.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers.
    owned(libc::c_long::from(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }))
}

/// A close-on-exec pipe: read end, write end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    // SAFETY: the kernel writes two descriptors to the array.
    check(libc::c_long::from(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) }))?;
    // SAFETY: both are new and ours.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Waits until one of `fds` is readable (or hung up) or `timeout` has passed; which ones are. An interrupting signal counts
/// as a timeout.
pub(crate) fn poll_readable(fds: &mut [libc::pollfd], timeout: Duration) -> io::Result<()> {
    let millis = i32::try_from(timeout.as_millis().max(u128::from(!timeout.is_zero()))).unwrap_or(i32::MAX);
    let count = libc::nfds_t::try_from(fds.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads and writes `count` entries of the slice.
    match check(libc::c_long::from(unsafe { libc::poll(fds.as_mut_ptr(), count, millis) })) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            for fd in fds {
                fd.revents = 0;
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// An entry for [`poll_readable`].
pub(crate) fn pollfd(fd: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// `CLOCK_MONOTONIC` now.
pub(crate) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
    }
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Effective user id.
pub(crate) fn geteuid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// The page size.
pub(crate) fn page_size() -> usize {
    // SAFETY: takes a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Name, release, version and machine of the running kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uname {
    pub(crate) nodename: String,
    pub(crate) release: String,
    pub(crate) version: String,
    pub(crate) machine: String,
}

/// What kernel runs.
pub(crate) fn uname() -> Uname {
    // SAFETY: utsname is plain bytes, for which zero is a valid value; the kernel fills it.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is live and of the right type.
    if unsafe { libc::uname(&raw mut name) } != 0 {
        return Uname::default();
    }
    let text = |bytes: &[libc::c_char]| {
        let bytes: Vec<u8> =
            bytes.iter().take_while(|&&byte| byte != 0).map(|byte| byte.to_ne_bytes()[0]).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Uname {
        nodename: text(&name.nodename),
        release: text(&name.release),
        version: text(&name.version),
        machine: text(&name.machine),
    }
}

/// The soft limit of open files, which while this lives is as high as the hard one: a machine with many CPUs needs more
/// descriptors than the usual 1024.
#[derive(Debug)]
pub(crate) struct FileLimit {
    before: libc::rlimit,
}

/// How many [`FileLimit`]s live, and the limits before the first: limits are the process', recordings may overlap.
static RAISED: Mutex<Option<(usize, libc::rlimit)>> = Mutex::new(None);

impl FileLimit {
    /// Raises the limit; where that fails it stays what it was.
    pub(crate) fn raise() -> Self {
        let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, before) = raised.unwrap_or_else(|| (0, file_limit()));
        set_file_limit(&libc::rlimit { rlim_cur: before.rlim_max, rlim_max: before.rlim_max });
        *raised = Some((count + 1, before));
        Self { before }
    }

    /// The limits before, for a child that must not notice.
    pub(crate) fn before(&self) -> libc::rlimit {
        self.before
    }
}

impl Drop for FileLimit {
    fn drop(&mut self) {
        let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
        *raised = match *raised {
            Some((count @ 2.., before)) => Some((count - 1, before)),
            Some(_) | None => {
                set_file_limit(&self.before);
                None
            }
        };
    }
}

/// Soft and hard limit of open files.
pub(crate) fn file_limit() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the structure.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
    }
    limit
}

/// Sets both limits of open files, if the kernel lets us. Async-signal-safe.
pub(crate) fn set_file_limit(limit: &libc::rlimit) {
    // SAFETY: the kernel reads the structure.
    unsafe {
        libc::setrlimit(libc::RLIMIT_NOFILE, std::ptr::from_ref(limit));
    }
}

/// The soft limit of locked memory in bytes, `None` when unlimited.
pub(crate) fn memlock_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the structure.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// On which CPUs the thread `tid` (in our pid namespace) may run, as the kernel's bit mask.
pub(crate) fn affinity_mask(tid: i32) -> io::Result<Vec<u8>> {
    let mut mask = vec![0_u8; 1024];
    // SAFETY: the kernel writes at most `mask.len()` bytes and returns how many.
    let written = check(unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, tid as libc::pid_t, mask.len(), mask.as_mut_ptr())
    })?;
    mask.truncate(usize::try_from(written).unwrap_or(0));
    Ok(mask)
}

/// A path as the kernel takes it.
pub(crate) fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(io::Error::other)
}

/// Binds the calling thread to one CPU.
pub(crate) fn bind_to_cpu(cpu: usize) -> io::Result<()> {
    // SAFETY: a cpu_set_t of zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: the index was checked against the set's size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the kernel reads a set of the size given.
    check(libc::c_long::from(unsafe {
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    }))?;
    Ok(())
}

/// Sleeps in the kernel while `word` is `expected`; returns on a wake-up, a signal, or when it is not.
pub(crate) fn futex_wait(word: &std::sync::atomic::AtomicU32, expected: u32) {
    // SAFETY: the word lives during the call, and a null time-out means none. The result does not matter: callers test the
    // word again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            std::ptr::null::<libc::timespec>(),
        );
    }
}

/// Wakes one sleeper of `word`; how many there were.
pub(crate) fn futex_wake(word: &std::sync::atomic::AtomicU32) -> bool {
    // SAFETY: the word lives during the call and is not written.
    let woken = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1)
    };
    woken > 0
}

/// The parent's process id: about the shortest system call.
pub(crate) fn getppid() -> i32 {
    // SAFETY: takes and returns plain numbers.
    unsafe { libc::getppid() }
}

/// Gives up the CPU to the next runnable thread.
pub(crate) fn sched_yield() {
    // SAFETY: takes nothing.
    unsafe { libc::sched_yield() };
}

/// Sleeps until `CLOCK_MONOTONIC` shows `at_ns`.
pub(crate) fn sleep_until(at_ns: u64) {
    let at = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the kernel reads a live timespec; an interrupted sleep shows as an early end, which callers measure.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const at,
            std::ptr::null_mut(),
        );
    }
}

/// Makes the calling thread `SCHED_BATCH`: woken, it preempts nobody. Anybody may.
pub(crate) fn be_batch() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads a live structure; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    check(libc::c_long::from(result)).map(drop)
}

/// How late the calling thread's timers may be so that they coincide with others, ns; 50 us unless told.
pub(crate) fn set_timer_slack(ns: u64) -> io::Result<()> {
    // SAFETY: this option takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns as libc::c_ulong, 0, 0, 0) };
    check(libc::c_long::from(result)).map(drop)
}

/// A child process that answers each byte from `from` with one to `to`, on `cpu`, `SCHED_BATCH` if `batch`, until the other
/// side of `from` is closed. It closes `not_its` first.
///
/// A fork, since only another address space makes the switch between processes that is to be measured; between fork and
/// exit the child makes nothing but async-signal-safe calls, as it must where there were other threads.
pub(crate) fn fork_echo(
    cpu: usize,
    batch: bool,
    (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
    not_its: &[BorrowedFd<'_>],
) -> io::Result<EchoChild> {
    // SAFETY: fork takes nothing; what the child does below is async-signal-safe.
    let pid = unsafe { libc::fork() };
    if pid != 0 {
        check(libc::c_long::from(pid))?;
        return Ok(EchoChild { pid });
    }
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    let ready = bind_to_cpu(cpu).is_ok() && (!batch || be_batch().is_ok());
    let mut byte = [0_u8];
    // SAFETY: plain system calls on descriptors that the child has copies of and a buffer on its stack; `_exit` runs no
    // destructor of the parent's.
    unsafe {
        for fd in not_its {
            libc::close(fd.as_raw_fd());
        }
        let buffer = byte.as_mut_ptr().cast::<libc::c_void>();
        while ready && libc::read(from, buffer, 1) == 1 && libc::write(to, buffer, 1) == 1 {}
        libc::_exit(i32::from(!ready))
    }
}

/// A child of [`fork_echo`]; waited for when dropped.
#[derive(Debug)]
pub(crate) struct EchoChild {
    pid: libc::pid_t,
}

impl Drop for EchoChild {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: the kernel writes the status; it is our child, which nobody else waits for.
        unsafe {
            libc::waitpid(self.pid, &raw mut status, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attr_has_the_kernels_size() {
        assert_eq!(size_of::<PerfEventAttr>(), PerfEventAttr::SIZE as usize);
        assert_eq!(PerfEventAttr::default().to_bytes().len(), PerfEventAttr::SIZE as usize);
    }
}
