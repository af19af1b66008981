//! Why a file cannot be read.

use std::fmt;

/// Why a recording cannot be read: one line with the place, what was expected and found, and what helps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused.
    #[error("cannot read {what}: {source}")]
    Io {
        /// The file or stream.
        what: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The content is of no format that ttwu reads.
    #[error("unknown format: {hint}")]
    UnknownFormat {
        /// What the first bytes look like, and what is expected.
        hint: String,
    },
    /// The file is newer than this reader.
    #[error("{format} version {found} is newer than this reader (up to {known}); update ttwu")]
    Newer {
        /// The format's name.
        format: &'static str,
        /// The file's version.
        found: String,
        /// The newest version read.
        known: String,
    },
    /// The content contradicts its format so much that nothing can be used.
    #[error("{format}: {what} at {at}")]
    Damaged {
        /// The format's name.
        format: &'static str,
        /// Expected and found, as a lowercase fragment.
        what: String,
        /// Where.
        at: Position,
    },
    /// The content is sound but asks for something that ttwu does not do, or more than it allows.
    #[error("{format}: {what}")]
    Unsupported {
        /// The format's name.
        format: &'static str,
        /// What, and the remedy.
        what: String,
    },
}

/// A place in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Byte offset in the (unwrapped) input.
    Offset(u64),
    /// Line number, from 1.
    Line(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset(offset) => write!(f, "offset {offset:#x}"),
            Self::Line(line) => write!(f, "line {line}"),
        }
    }
}

impl ReadError {
    /// Damage at a byte offset.
    pub(crate) fn damaged(format: &'static str, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged { format, what: what.into(), at: Position::Offset(offset) }
    }

    /// An operating system's refusal.
    pub(crate) fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }
}
