//! Standard output that may be a pipe whose reader has gone, and standard error that may be asked to be quiet.

use crate::exit::{Done, Failure, Outcome};
use std::io::{ErrorKind, Write};

/// Text or JSON on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people: 80 columns.
    Text,
    /// For scripts: one object with a `schema` key.
    Json,
}

/// Writes a result. A reader that stops early (`| head`) is not an error.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        Ok(()) => Ok(Done::Ok),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Done::Ok),
        Err(error) => Err(Failure::input(anyhow::Error::new(error).context("cannot write the result"))),
    }
}
