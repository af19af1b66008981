//! The bytes of a recording, with random access.
//!
//! Plain reads instead of a memory map: a map needs `unsafe`, turns a file truncated meanwhile into SIGBUS, and is no faster
//! when records are walked once in large blocks. Anything that cannot be read at an offset (a pipe, a compressed file) is
//! spooled: into memory while small, into an unnamed temporary file beyond that.

use crate::ReadError;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Spooled input up to this size stays in memory.
const SPOOL_IN_MEMORY: u64 = 64 << 20;

/// Random access to a recording's bytes.
#[derive(Debug)]
pub struct Input {
    backing: Backing,
    len: u64,
    name: String,
}

#[derive(Debug)]
enum Backing {
    File(File),
    Memory(Vec<u8>),
}

impl Input {
    /// Opens a file; a pipe or device is spooled to its end.
    ///
    /// # Errors
    /// [`ReadError::Io`] when it cannot be opened or read.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| ReadError::io(&name, source))?;
        let kind = file.metadata().map_err(|source| ReadError::io(&name, source))?;
        if kind.is_dir() {
            let source = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(ReadError::io(name, source));
        }
        // Files of procfs and tracefs say length 0 whatever is in them.
        if !kind.is_file() || kind.len() == 0 {
            return Self::drain(file, &name);
        }
        Ok(Self { backing: Backing::File(file), len: kind.len(), name })
    }

    /// Reads a pipe or device to its end, unless its beginning is of no format: some have no end (`/dev/zero`).
    fn drain(file: File, name: &str) -> Result<Self, ReadError> {
        let mut head = Vec::new();
        Read::take(&file, crate::detect::HEAD_LEN)
            .read_to_end(&mut head)
            .map_err(|source| ReadError::io(name, source))?;
        if head.len() as u64 == crate::detect::HEAD_LEN {
            crate::detect::expect_known(&head, name)?;
        }
        Self::spool(std::io::Cursor::new(head).chain(file), name)
    }

    /// Takes bytes that are already in memory; `name` is for messages.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>, name: &str) -> Self {
        Self { len: bytes.len() as u64, backing: Backing::Memory(bytes), name: name.to_owned() }
    }

    /// Reads `reader` to its end, keeping small content in memory and large content in an unnamed temporary file.
    ///
    /// # Errors
    /// [`ReadError::Io`] from the reader or the temporary file.
    pub fn spool(mut reader: impl Read, name: &str) -> Result<Self, ReadError> {
        let failed = |source| ReadError::io(name, source);
        let mut bytes = Vec::new();
        reader.by_ref().take(SPOOL_IN_MEMORY).read_to_end(&mut bytes).map_err(failed)?;
        if (bytes.len() as u64) < SPOOL_IN_MEMORY {
            return Ok(Self::from_bytes(bytes, name));
        }
        let mut file = tempfile::tempfile().map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        let rest = std::io::copy(&mut reader, &mut file).map_err(failed)?;
        Ok(Self { backing: Backing::File(file), len: bytes.len() as u64 + rest, name: name.to_owned() })
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Is there nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file's name, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the input.
    ///
    /// # Errors
    /// [`ReadError::Io`].
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        match &self.backing {
            Backing::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let found = &bytes[start..];
                let len = found.len().min(buffer.len());
                buffer[..len].copy_from_slice(&found[..len]);
                Ok(len)
            }
            Backing::File(file) => {
                let mut done = 0;
                while done < buffer.len() {
                    match file.read_at(&mut buffer[done..], offset + done as u64) {
                        Ok(0) => break,
                        Ok(read) => done += read,
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(source) => return Err(ReadError::io(&self.name, source)),
                    }
                }
                Ok(done)
            }
        }
    }

    /// The `len` bytes at `offset`, or as many as there are. Never allocates more than the input holds, whatever `len` says.
    ///
    /// # Errors
    /// [`ReadError::Io`].
    pub fn bytes(&self, offset: u64, len: u64) -> Result<Vec<u8>, ReadError> {
        let there = len.min(self.len.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(there).expect("no larger than the input")];
        let read = self.read_at(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}
