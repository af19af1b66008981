//! Why a recording cannot be scored.

use std::path::PathBuf;

/// Why a recording cannot be scored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConformError {
    /// A file is missing or unreadable.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A line of a decision file is not what it should be.
    #[error("{}: line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        /// The parser's reason.
        what: String,
    },
    /// The kernel's description of itself or of its machine is not usable.
    #[error("{}: {what}", path.display())]
    State {
        /// The recording.
        path: PathBuf,
        /// What is wrong, and what helps.
        what: String,
    },
}
