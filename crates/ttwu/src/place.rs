//! Files that are made: beside their place until they are complete, then under their name, so that a full disk leaves the
//! old file or none.

use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a file will be.
pub(crate) struct Place {
    path: PathBuf,
    beside: NamedTempFile,
}

impl Place {
    /// Fails where no file could be written.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        refuse_standard_output(path)?;
        if path.is_dir() {
            bail!("cannot write {}: it is a directory", path.display());
        }
        let folder = if is_replaceable(path) {
            match resolved(path).parent() {
                Some(parent) if parent != Path::new("") => parent.to_owned(),
                Some(_) | None => PathBuf::from("."),
            }
        } else {
            // A device or pipe has no place beside it.
            std::env::temp_dir()
        };
        let beside = tempfile::Builder::new()
            .prefix(".ttwu-")
            .permissions(permissions())
            .tempfile_in(folder)
            // Only the kind: the rest names the temporary file, which nobody asked for.
            .map_err(|error| anyhow!("cannot write {}: {}", path.display(), error.kind()))?;
        Ok(Self { path: path.to_owned(), beside })
    }

    /// Where it will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that becomes it.
    pub(crate) fn file(&self) -> &File {
        self.beside.as_file()
    }

    /// Where that is.
    pub(crate) fn beside(&self) -> &Path {
        self.beside.path()
    }

    /// Is it a place where writing may wait for somebody to read?
    pub(crate) fn may_wait(&self) -> bool {
        !is_replaceable(&self.path)
    }

    /// Puts the complete file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        let context = || cannot(&self.path);
        if is_replaceable(&self.path) {
            // The file itself, not a link to it, is replaced.
            self.beside.persist(resolved(&self.path)).map_err(|error| error.error).with_context(context)?;
        } else {
            let mut out = File::options().write(true).open(&self.path).with_context(context)?;
            std::io::copy(&mut self.beside.reopen().with_context(context)?, &mut out)
                .with_context(context)?;
        }
        Ok(())
    }
}

/// Fails where [`write()`] would, before work is done in vain; nothing stays there.
pub(crate) fn check(path: &Path) -> Result<()> {
    Place::new(path).map(drop)
}

/// Writes a whole file, or leaves what was there.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let place = Place::new(path)?;
    place.file().write_all(text.as_bytes()).with_context(|| cannot(path))?;
    place.finish()
}

/// What an error says first.
pub(crate) fn cannot(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Is the path free, or a plain file? A device or pipe is written to.
fn is_replaceable(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |there| there.is_file() || there.is_dir())
}

/// What a link leads to.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Standard output has the printed result, which would stand in the middle of the file.
fn refuse_standard_output(path: &Path) -> Result<()> {
    const NAMES: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    if NAMES.iter().any(|name| path == Path::new(name)) || is_standard_output(path) {
        bail!(
            "cannot write {}: standard output has the printed result; name another file or pipe{}",
            path.display(),
            if path == Path::new("-") { " (a file of that name is ./-)" } else { "" }
        );
    }
    Ok(())
}

/// By any other name. Devices are not meant: `/dev/null` may well be both.
fn is_standard_output(path: &Path) -> bool {
    let out = std::io::stdout().as_fd().try_clone_to_owned().and_then(|out| File::from(out).metadata());
    let (Ok(out), Ok(there)) = (out, std::fs::metadata(path)) else { return false };
    (out.is_file() || out.file_type().is_fifo()) && (out.dev(), out.ino()) == (there.dev(), there.ino())
}

/// Those of any new file.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}
