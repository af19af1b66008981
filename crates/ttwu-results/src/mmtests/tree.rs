//! The files of one iteration's `logs` directory, by name in byte order as a shell in the C locale lists them, with gzip, xz
//! and zstd undone.

use super::Error;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// A log that unpacks to more than this is refused: no benchmark prints it, and a small file can claim any size.
const LOG_BYTES_MAX: u64 = 1 << 29;

/// How logs are packed, by the end of their names.
const PACKED: [&str; 3] = [".gz", ".xz", ".zst"];

/// One `logs` directory.
#[derive(Debug)]
pub(super) struct Logs {
    directory: PathBuf,
    names: Vec<String>,
}

impl Logs {
    /// The files of `directory`; none where it does not exist.
    pub(super) fn open(directory: PathBuf) -> Result<Self, Error> {
        let names = names(&directory, |entry| entry.path().is_file())?;
        Ok(Self { directory, names })
    }

    /// What is between `prefix` and `suffix` in the names that have both, in name order. Names are taken without the end
    /// that says how they are packed.
    pub(super) fn between(&self, prefix: &str, suffix: &str) -> Vec<String> {
        let mut found: Vec<String> = self
            .names
            .iter()
            .filter_map(|name| Some(plain(name).strip_prefix(prefix)?.strip_suffix(suffix)?.to_owned()))
            .collect();
        found.dedup();
        found
    }

    /// Whether there is a file of this name, packed or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|found| plain(found) == name)
    }

    /// The text of a file by its name without the end that says how it is packed. Bytes that are not UTF-8 are replaced:
    /// benchmarks print ASCII, and a damaged line must not hide the others.
    pub(super) fn text(&self, name: &str) -> Result<String, Error> {
        let full = self.names.iter().find(|found| plain(found) == name).map_or(name, String::as_str);
        let path = self.directory.join(full);
        let mut bytes = Vec::new();
        let read = unpacked(&path).and_then(|reader| reader.take(LOG_BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|source| Error::Read { path: path.clone(), source })?;
        if bytes.len() as u64 > LOG_BYTES_MAX {
            return Err(self.wrong(name, format!("more than {LOG_BYTES_MAX} bytes"), "a benchmark's log"));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// An error about the file `name`.
    pub(super) fn wrong(&self, name: &str, found: String, expected: &'static str) -> Error {
        Error::Log { path: self.directory.join(name), found, expected }
    }
}

/// The directories below `directory` whose names begin with `prefix`, in name order; none where it does not exist.
pub(super) fn directories(directory: &Path, prefix: &str) -> Result<Vec<String>, Error> {
    let mut found = names(directory, |entry| entry.path().is_dir())?;
    found.retain(|name| name.starts_with(prefix));
    Ok(found)
}

/// The benchmarks that an arm's iterations have results of, each once, in name order.
pub(super) fn benchmarks(arm: &Path) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for iteration in directories(arm, "iter-")? {
        let below = arm.join(iteration);
        let names = directories(&below, "")?;
        found.extend(names.into_iter().filter(|name| below.join(name).join("logs").is_dir()));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn names(directory: &Path, keep: impl Fn(&std::fs::DirEntry) -> bool) -> Result<Vec<String>, Error> {
    let failed = |source| Error::Read { path: directory.to_owned(), source };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if keep(&entry)
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn plain(name: &str) -> &str {
    PACKED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

fn unpacked(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = BufReader::new(File::open(path)?);
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Some("xz") => Box::new(xz4rust::XzReader::new(file)),
        Some("zst") => Box::new(ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?),
        _ => Box::new(file),
    })
}
