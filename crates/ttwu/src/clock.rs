//! The only clock of the command: how long something took.
#![expect(clippy::disallowed_types, reason = "results say how long they took, and never depend on it")]

use std::time::{Duration, Instant};

/// Runs from its start on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts one.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Since then.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
