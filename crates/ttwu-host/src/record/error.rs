//! Why recording failed, and what helps.
//!
//! The kernel answers nearly every obstacle with EPERM or EACCES, so the text comes from the operation, the error number
//! and what the process may do ([`Rights`]), by one pure function that tests can drive with any combination.

use crate::sys;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The machine forbids it: which right is missing, and how to get it. Exit code 3.
    #[error("{doing}: {reason}; {remedy}")]
    Forbidden {
        /// What was tried.
        doing: String,
        /// The kernel's answer and which right is missing.
        reason: String,
        /// How to get it.
        remedy: String,
    },
    /// This kernel cannot do it.
    #[error("{what}")]
    Unsupported {
        /// What is missing.
        what: String,
    },
    /// The command could not be started. Exit code 2.
    #[error("cannot run `{command}`: {source}")]
    Command {
        /// Its first word.
        command: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A process to record does not exist. Exit code 2.
    #[error("no process {pid}: {source}")]
    NoProcess {
        /// Its id.
        pid: i32,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The output cannot be written. Exit code 2.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// Where to.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A request that does not make sense. Exit code 2.
    #[error("{what}")]
    Usage {
        /// What is wrong, and what is expected.
        what: String,
    },
    /// The operating system failed in some other way.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl RecordError {
    pub(crate) fn system(what: impl Into<String>, source: io::Error) -> Self {
        Self::System { what: what.into(), source }
    }

    /// Does the machine forbid it (as opposed to a bad request)?
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden { .. } | Self::Unsupported { .. })
    }

    /// The error for `operation` refused with `error`, for a process with `rights`.
    pub(crate) fn refused(operation: &Operation, error: &io::Error, rights: &Rights) -> Self {
        let doing = operation.to_string();
        let errno = error.raw_os_error().unwrap_or(0);
        let forbidden = |reason: String, remedy: &str| Self::Forbidden {
            doing: doing.clone(),
            reason,
            remedy: remedy.to_owned(),
        };
        match (operation, errno) {
            (_, libc::EMFILE) => forbidden(
                format!("this process may open {} files (RLIMIT_NOFILE)", rights.files),
                "raise the hard limit with `ulimit -Hn` as root or LimitNOFILE=, or record fewer events",
            ),
            (_, libc::ENFILE) => {
                forbidden("the machine's table of open files is full".to_owned(), "raise sysctl fs.file-max")
            }
            (Operation::MapBuffer { bytes }, libc::EPERM) => {
                let limit = rights
                    .memlock
                    .map_or_else(|| "unlimited".to_owned(), |bytes| format!("{} KiB", bytes >> 10));
                forbidden(
                    format!(
                        "{} KiB per CPU are more than may be locked (kernel.perf_event_mlock_kb {}, RLIMIT_MEMLOCK {limit})",
                        bytes >> 10,
                        shown(rights.mlock_kb.as_deref()),
                    ),
                    "raise one of them, use a smaller buffer, or run with CAP_IPC_LOCK",
                )
            }
            (Operation::MapBuffer { bytes }, libc::ENOMEM) => {
                forbidden(format!("no memory for {} KiB per CPU", bytes >> 10), "use a smaller buffer")
            }
            (Operation::OpenEvent { .. }, libc::ENOSYS) => Self::Unsupported {
                what: format!(
                    "{doing}: this kernel has no perf_event_open (CONFIG_PERF_EVENTS off, or a sandbox without it); \
                     try `--backend tracefs`"
                ),
            },
            (Operation::OpenEvent { event }, libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
                Self::Unsupported { what: format!("{doing}: the kernel does not offer {event} to perf") }
            }
            (Operation::OpenEvent { .. }, libc::EPERM | libc::EACCES) => open_refused(&doing, rights),
            (Operation::ReadTracefs(path), libc::EPERM | libc::EACCES) if rights.euid == 0 => forbidden(
                format!("root is refused, so this is kernel lockdown or a security module{}", rights.hints()),
                &format!(
                    "check /sys/kernel/security/lockdown (must not be [confidentiality]) and the audit log for {}",
                    path.display()
                ),
            ),
            (Operation::ReadTracefs(_), libc::EPERM | libc::EACCES) => forbidden(
                format!("user {} may not read tracefs, which belongs to root", rights.euid),
                "run as root, or `sudo mount -o remount,mode=755 /sys/kernel/tracing` and grant CAP_PERFMON",
            ),
            (Operation::WriteTracefs(_), libc::EPERM | libc::EACCES | libc::EROFS) => forbidden(
                format!("tracefs may not be written{}", rights.hints()),
                "run as root on a machine whose /sys is writable, or use `--backend perf`",
            ),
            (Operation::MountTracefs, libc::EPERM | libc::EACCES | libc::ENOSYS) => forbidden(
                format!(
                    "it is mounted neither on /sys/kernel/tracing nor on /sys/kernel/debug/tracing, and this process may \
                     not mount it (needs CAP_SYS_ADMIN){}",
                    rights.hints()
                ),
                "`sudo mount -t tracefs nodev /sys/kernel/tracing`, or run as root; in a container add \
                 `--privileged` or bind-mount the host's /sys/kernel/tracing",
            ),
            (Operation::MountTracefs, libc::ENODEV) => {
                Self::Unsupported { what: "this kernel has no tracefs (CONFIG_TRACING is off)".to_owned() }
            }
            (_, _) => {
                let source = io::Error::from_raw_os_error(errno);
                Self::System {
                    what: doing,
                    source: if errno == 0 { io::Error::other(error.to_string()) } else { source },
                }
            }
        }
    }
}

/// EPERM or EACCES from `perf_event_open` has three gates: the paranoia sysctl, capabilities, and seccomp or a security
/// module when both should have let us through.
fn open_refused(doing: &str, rights: &Rights) -> RecordError {
    let paranoid = shown(rights.paranoid.as_deref());
    let (reason, remedy) = if rights.has(Capability::Perfmon) || rights.has(Capability::SysAdmin) {
        (
            format!(
                "CAP_PERFMON is there and kernel.perf_event_paranoid is {paranoid}, so a seccomp filter, a security \
                 module or kernel lockdown refuses{}",
                rights.hints()
            ),
            "in a container allow perf_event_open (`--security-opt seccomp=unconfined`, or `--privileged`)",
        )
    } else {
        (
            format!(
                "user {} lacks CAP_PERFMON, and kernel.perf_event_paranoid is {paranoid} (tracepoints of all tasks need -1 \
                 without it){}",
                rights.euid,
                rights.hints()
            ),
            "run as root, or `sudo setcap cap_perfmon,cap_dac_read_search,cap_syslog+ep` this program, or \
             `sudo sysctl kernel.perf_event_paranoid=-1` (tracefs must be readable too)",
        )
    };
    RecordError::Forbidden { doing: doing.to_owned(), reason, remedy: remedy.to_owned() }
}

fn shown(value: Option<&str>) -> &str {
    value.unwrap_or("unknown")
}

/// What was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Reading something under tracefs.
    ReadTracefs(PathBuf),
    /// Writing something under tracefs.
    WriteTracefs(PathBuf),
    /// Opening tracefs where it is not mounted.
    MountTracefs,
    /// `perf_event_open`.
    OpenEvent { event: String },
    /// `mmap` of a ring buffer.
    MapBuffer { bytes: usize },
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ReadTracefs(path) => write!(f, "cannot read {}", path.display()),
            Self::WriteTracefs(path) => write!(f, "cannot write {}", path.display()),
            Self::MountTracefs => f.write_str("cannot reach tracefs"),
            Self::OpenEvent { event } => write!(f, "cannot record {event}"),
            Self::MapBuffer { .. } => f.write_str("cannot map the event buffers"),
        }
    }
}

/// Capabilities that matter here, by their bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capability {
    SysAdmin = 21,
    Perfmon = 38,
}

/// What this process may do, as far as it bears on recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) euid: u32,
    pub(crate) capabilities: u64,
    /// kernel.perf_event_paranoid
    pub(crate) paranoid: Option<String>,
    /// kernel.perf_event_mlock_kb
    pub(crate) mlock_kb: Option<String>,
    /// RLIMIT_MEMLOCK in bytes; `None` is unlimited.
    pub(crate) memlock: Option<u64>,
    /// RLIMIT_NOFILE.
    pub(crate) files: u64,
    /// Content of /sys/kernel/security/lockdown.
    pub(crate) lockdown: Option<String>,
    /// Seccomp mode of this process (2 = filter).
    pub(crate) seccomp: Option<String>,
    /// What suggests a container.
    pub(crate) container: Option<String>,
}

impl Rights {
    /// This process' rights.
    pub(crate) fn of_self() -> Self {
        let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        Self {
            euid: sys::geteuid(),
            capabilities: field("CapEff").and_then(|hex| u64::from_str_radix(&hex, 16).ok()).unwrap_or(0),
            paranoid: line("/proc/sys/kernel/perf_event_paranoid"),
            mlock_kb: line("/proc/sys/kernel/perf_event_mlock_kb"),
            memlock: sys::memlock_limit(),
            files: sys::file_limit().rlim_cur,
            lockdown: line("/sys/kernel/security/lockdown"),
            seccomp: field("Seccomp"),
            container: container_hint(),
        }
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.capabilities & (1 << capability as u32) != 0
    }

    /// What else may stand in the way, as ` (…)`, or nothing.
    fn hints(&self) -> String {
        let mut hints = String::new();
        let mut hint = |text: &str| {
            let _ = write!(hints, "{}{text}", if hints.is_empty() { "" } else { ", " });
        };
        if let Some(lockdown) = &self.lockdown
            && !lockdown.contains("[none]")
        {
            hint(&format!("lockdown: {lockdown}"));
        }
        if self.seccomp.as_deref() == Some("2") {
            hint("a seccomp filter is active");
        }
        if let Some(container) = &self.container {
            hint(container);
        }
        if hints.is_empty() { hints } else { format!(" ({hints})") }
    }
}

/// Does this look like a container?
pub(crate) fn container_hint() -> Option<String> {
    for (path, text) in [("/.dockerenv", "docker container"), ("/run/.containerenv", "podman container")] {
        if fs::metadata(path).is_ok() {
            return Some(text.to_owned());
        }
    }
    fs::read_to_string("/run/systemd/container").ok().map(|kind| format!("{} container", kind.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: u64 = 0x1ff_ffff_ffff;

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
    fn check(operation: Operation, errno: i32, rights: &Rights, expect: &str) {
        let found =
            RecordError::refused(&operation, &io::Error::from_raw_os_error(errno), rights).to_string();
        assert_eq!(found, expect, "errno {errno}");
    }

    fn user() -> Rights {
        Rights {
            euid: 1000,
            paranoid: Some("2".to_owned()),
            mlock_kb: Some("516".to_owned()),
            memlock: Some(8 << 20),
            files: 1024,
            ..Rights::default()
        }
    }

    fn root() -> Rights {
        Rights { capabilities: ROOT, ..Rights { euid: 0, ..user() } }
    }

    fn open() -> Operation {
        Operation::OpenEvent { event: "sched:sched_switch".to_owned() }
    }

    #[test]
    fn a_user_learns_which_right_is_missing() {
        for errno in [libc::EACCES, libc::EPERM] {
            check(
                open(),
                errno,
                &user(),
                "cannot record sched:sched_switch: user 1000 lacks CAP_PERFMON, and kernel.perf_event_paranoid is 2 \
                 (tracepoints of all tasks need -1 without it); run as root, or `sudo setcap \
                 cap_perfmon,cap_dac_read_search,cap_syslog+ep` this program, or `sudo sysctl \
                 kernel.perf_event_paranoid=-1` (tracefs must be readable too)",
            );
        }
        check(
            Operation::ReadTracefs("/sys/kernel/tracing".into()),
            libc::EACCES,
            &user(),
            "cannot read /sys/kernel/tracing: user 1000 may not read tracefs, which belongs to root; run as root, or `sudo \
             mount -o remount,mode=755 /sys/kernel/tracing` and grant CAP_PERFMON",
        );
    }

    #[test]
    fn root_learns_what_still_stands_in_the_way() {
        let container = Rights {
            seccomp: Some("2".to_owned()),
            container: Some("docker container".to_owned()),
            ..root()
        };
        check(
            open(),
            libc::EPERM,
            &container,
            "cannot record sched:sched_switch: CAP_PERFMON is there and kernel.perf_event_paranoid is 2, so a seccomp \
             filter, a security module or kernel lockdown refuses (a seccomp filter is active, docker container); in a \
             container allow perf_event_open (`--security-opt seccomp=unconfined`, or `--privileged`)",
        );
        let locked = Rights { lockdown: Some("none integrity [confidentiality]".to_owned()), ..root() };
        check(
            Operation::ReadTracefs("/sys/kernel/tracing/events".into()),
            libc::EPERM,
            &locked,
            "cannot read /sys/kernel/tracing/events: root is refused, so this is kernel lockdown or a security module \
             (lockdown: none integrity [confidentiality]); check /sys/kernel/security/lockdown (must not be \
             [confidentiality]) and the audit log for /sys/kernel/tracing/events",
        );
        check(
            open(),
            libc::ENOSYS,
            &root(),
            "cannot record sched:sched_switch: this kernel has no perf_event_open (CONFIG_PERF_EVENTS off, or a sandbox \
             without it); try `--backend tracefs`",
        );
    }

    #[test]
    fn limits_are_named_with_their_values() {
        check(
            Operation::MapBuffer { bytes: 8 << 20 },
            libc::EPERM,
            &user(),
            "cannot map the event buffers: 8192 KiB per CPU are more than may be locked (kernel.perf_event_mlock_kb 516, \
             RLIMIT_MEMLOCK 8192 KiB); raise one of them, use a smaller buffer, or run with CAP_IPC_LOCK",
        );
        check(
            open(),
            libc::EMFILE,
            &user(),
            "cannot record sched:sched_switch: this process may open 1024 files (RLIMIT_NOFILE); raise the hard limit \
             with `ulimit -Hn` as root or LimitNOFILE=, or record fewer events",
        );
    }

    #[test]
    fn tracefs_out_of_reach_says_how_to_mount_it() {
        check(
            Operation::MountTracefs,
            libc::EPERM,
            &user(),
            "cannot reach tracefs: it is mounted neither on /sys/kernel/tracing nor on /sys/kernel/debug/tracing, and \
             this process may not mount it (needs CAP_SYS_ADMIN); `sudo mount -t tracefs nodev /sys/kernel/tracing`, or \
             run as root; in a container add `--privileged` or bind-mount the host's /sys/kernel/tracing",
        );
        check(
            Operation::MountTracefs,
            libc::ENODEV,
            &user(),
            "this kernel has no tracefs (CONFIG_TRACING is off)",
        );
    }
}
