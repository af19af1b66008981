//! The file of a run's trace: beside its place until it is complete, then under its name.

use crate::decisions;
use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use ttwu_model::Trace;
use ttwu_sim::Decision;
use ttwu_trace::Target;

/// What was written.
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) events: u64,
    pub(super) bytes: u64,
}

/// Where a trace will be.
pub(super) struct Place {
    path: PathBuf,
    target: Target,
    /// `.ttwu`, which is converted for other targets.
    file: NamedTempFile,
}

impl Place {
    /// Fails where no trace could be written.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let target = crate::output::trace_target(path)?;
        target.check_built()?;
        if path.is_dir() {
            bail!("cannot write {}: it is a directory", path.display());
        }
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") && is_replaceable(path) => parent.to_owned(),
            Some(_) | None if is_replaceable(path) => PathBuf::from("."),
            // A device or pipe has no place beside it.
            Some(_) | None => std::env::temp_dir(),
        };
        let file = tempfile::Builder::new()
            .prefix(".ttwu-sim-")
            .permissions(permissions())
            .tempfile_in(folder)
            // Only the kind: the rest names the temporary file, which nobody asked for.
            .map_err(|error| anyhow!("cannot write {}: {}", path.display(), error.kind()))?;
        Ok(Self { path: path.to_owned(), target, file })
    }

    /// Is it a place where writing may wait for somebody to read?
    pub(super) fn may_wait(&self) -> bool {
        !is_replaceable(&self.path)
    }

    /// Writes it; a format that is not ours leaves the reasons of decisions out.
    pub(super) fn write(self, trace: &Trace, decisions: &[Decision]) -> Result<Written> {
        let name = self.path.display().to_string();
        let context = || format!("cannot write {name}");
        let tables = decisions::encode(decisions);
        let bytes = ttwu_trace::write_ttwu_with(self.file.as_file(), trace, &tables).with_context(context)?;
        let events = trace.events().len() as u64;
        if self.target != Target::Ttwu {
            let summary = ttwu_trace::convert(self.file.path(), &self.path, self.target)?;
            return Ok(Written { path: self.path, events, bytes: summary.bytes_out });
        }
        if is_replaceable(&self.path) {
            // The file itself, not a link to it, is replaced.
            let place = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
            self.file.persist(place).map_err(|error| error.error).with_context(context)?;
        } else {
            let mut out = File::options().write(true).open(&self.path).with_context(context)?;
            std::io::copy(&mut self.file.reopen().with_context(context)?, &mut out).with_context(context)?;
        }
        Ok(Written { path: self.path, events, bytes })
    }
}

/// Is the path free, or a plain file? A device or pipe is written to.
fn is_replaceable(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |there| there.is_file() || there.is_dir())
}

/// Those of any new file.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}
