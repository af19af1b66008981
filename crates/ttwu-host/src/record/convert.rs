//! From the raw recording to the `.ttwu` file, once the workload is over.
//!
//! The raw recording stands under the final name until the converted one is complete beside it and takes its place, so at
//! no moment is there a half-written file under that name. A conversion that fails (no room for both) leaves the raw
//! recording, which reads just as well and is only larger.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use ttwu_model::{Pid, TaskInfo, TaskTable, Time, TraceMeta, TraceParts};
use ttwu_trace::{TraceStream, TtwuWriter};

/// What a conversion gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Converted {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

/// A thread that the raw recording could not name, in pids of the root namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownTask {
    pub(crate) pid: Pid,
    pub(crate) tgid: Pid,
    pub(crate) name: String,
}

/// Events between two calls of the progress function.
const TELL_EVERY: u64 = 1 << 20;

/// Converts the raw recording at `path` in place. `meta` replaces what the raw recording says about itself, which is a part
/// of it; `notes` join the reader's, `known` names tasks that it left nameless. The error is a reason in words; the raw recording is untouched then.
pub(crate) fn convert(
    path: &Path,
    meta: TraceMeta,
    notes: &[String],
    known: &[KnownTask],
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Converted, String> {
    let part = beside(path);
    let result = write(path, &part, meta, notes, known, tell).and_then(|converted| {
        fs::rename(&part, path).map_err(|error| error.to_string())?;
        Ok(converted)
    });
    result.inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

fn write(
    path: &Path,
    part: &Path,
    meta: TraceMeta,
    notes: &[String],
    known: &[KnownTask],
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Converted, String> {
    let mut stream = TraceStream::open(path).map_err(|error| error.to_string())?;
    let written = |error: std::io::Error| format!("cannot write {}: {error}", part.display());
    let mut writer = TtwuWriter::new(File::create(part).map_err(written)?, &meta).map_err(written)?;
    let mut told = 0;
    while let Some(chunk) = stream.next_chunk() {
        writer.write(chunk).map_err(written)?;
        if writer.events_written() - told >= TELL_EVERY {
            told = writer.events_written();
            tell(told, writer.bytes_written());
        }
    }
    let mut parts = stream.finish().map_err(|error| error.to_string())?;
    parts.meta = meta;
    name_known(&mut parts, known);
    for note in notes {
        parts.health.add_note(note.clone());
    }
    let events = writer.events_written();
    let (_, bytes) = writer.finish(&parts).map_err(written)?;
    Ok(Converted { events, bytes })
}

/// Gives tasks without name or process those of `known`.
fn name_known(parts: &mut TraceParts, known: &[KnownTask]) {
    if known.is_empty() {
        return;
    }
    let mut rows: Vec<TaskInfo> = parts.tasks.iter().map(|(_, task)| task.clone()).collect();
    for task in known {
        // The first of its pid: it was there when the recording began.
        if let Some(row) = rows.iter_mut().find(|row| row.pid == task.pid) {
            row.tgid.get_or_insert(task.tgid);
            if row.names.is_empty() {
                row.names.push((Time::ZERO, parts.strings.intern(&task.name)));
            }
        }
    }
    parts.tasks = TaskTable::from_rows(rows);
}

/// `FILE.part`, in the same directory so that it can be renamed.
fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}
