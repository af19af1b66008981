//! Where tracefs is, and what it says about tracepoints: ids, format descriptions, what exists.
//!
//! Looked for where it is usually mounted; where it is mounted nowhere, it is opened through a mount that no other process
//! sees (Linux ≥ 5.2) instead of changing the machine's mounts. Only a file system that really is tracefs is taken: the
//! directory itself exists, empty, on every kernel.

use super::error::{Operation, RecordError, Rights};
use crate::sys;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Usual mount points, in order of preference.
const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// An open tracefs.
#[derive(Debug)]
pub(crate) struct Tracefs {
    root: PathBuf,
    detached: Option<OwnedFd>,
}

/// One tracepoint: its number in raw records, and its format description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tracepoint {
    pub(crate) system: String,
    pub(crate) name: String,
    pub(crate) id: u16,
    pub(crate) format: String,
    /// A filter in the kernel's language, where only some occurrences are wanted.
    pub(crate) filter: Option<String>,
}

impl Tracepoint {
    /// `system:name`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }
}

impl Tracefs {
    /// Finds tracefs, or opens it detached.
    pub(crate) fn open() -> Result<Self, RecordError> {
        let mut refusal = None;
        for root in MOUNT_POINTS {
            // The kernel's own answer: a file that only tracefs has.
            match fs::metadata(Path::new(root).join("events/sched/sched_switch/id")) {
                Ok(_) => return Ok(Self { root: root.into(), detached: None }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refusal.get_or_insert((root, error));
                }
                Err(_) => {}
            }
        }
        if let Some((root, error)) = refusal {
            return Err(RecordError::refused(
                &Operation::ReadTracefs(root.into()),
                &error,
                &Rights::of_self(),
            ));
        }
        match sys::detached_mount(c"tracefs") {
            Ok(root) => {
                let path = PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd()));
                Ok(Self { root: path, detached: Some(root) })
            }
            Err(error) => Err(RecordError::refused(&Operation::MountTracefs, &error, &Rights::of_self())),
        }
    }

    /// The directory in which its files are; valid in this process only when detached.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// How it was reached, for the trace's facts.
    pub(crate) fn how(&self) -> String {
        match self.detached {
            Some(_) => "private mount".to_owned(),
            None => self.root.display().to_string(),
        }
    }

    /// Looks a tracepoint up; `None` when this kernel lacks it.
    ///
    /// # Errors
    /// When it is there but may not be read, or its description is not what a kernel writes.
    pub(crate) fn tracepoint(&self, system: &str, name: &str) -> Result<Option<Tracepoint>, RecordError> {
        let directory = self.root.join("events").join(system).join(name);
        let read = |file: &str| match fs::read_to_string(directory.join(file)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(RecordError::refused(
                &Operation::ReadTracefs(directory.join(file)),
                &error,
                &Rights::of_self(),
            )),
        };
        // ftrace:* events have no id file and no perf side.
        let (Some(id), Some(format)) = (read("id")?, read("format")?) else { return Ok(None) };
        let Ok(id) = id.trim().parse() else {
            let text = format!("{system}:{name} has the id `{}`, expected a number up to 65535", id.trim());
            return Err(RecordError::Unsupported { what: text });
        };
        let (system, name) = (system.to_owned(), name.to_owned());
        Ok(Some(Tracepoint { system, name, id, format, filter: None }))
    }

    /// All tracepoints of a system, or all systems when `system` is `None`, sorted.
    pub(crate) fn names(&self, system: Option<&str>) -> Vec<String> {
        let directory = self.root.join("events").join(system.unwrap_or(""));
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// A file of tracefs, empty where it cannot be read.
    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        read_large(&self.root.join(name)).unwrap_or_default()
    }
}

/// Reads a file in large pieces. `fs::read` feels its way with a small read first, after which some files of tracefs
/// (`header_page`) are at their end.
fn read_large(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(bytes),
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
}
