//! The file of a run's trace.

use crate::{decisions, place};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
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
    target: Target,
    /// `.ttwu`, which is converted for other targets.
    place: place::Place,
}

impl Place {
    /// Fails where no trace could be written.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let target = crate::output::trace_target(path)?;
        target.check_built()?;
        Ok(Self { target, place: place::Place::new(path)? })
    }

    /// Is it a place where writing may wait for somebody to read?
    pub(super) fn may_wait(&self) -> bool {
        self.place.may_wait()
    }

    /// Writes it; a format that is not ours leaves the reasons of decisions out.
    pub(super) fn write(self, trace: &Trace, decisions: &[Decision]) -> Result<Written> {
        let Self { target, place } = self;
        let path = place.path().to_owned();
        let tables = decisions::encode(decisions);
        let bytes = ttwu_trace::write_ttwu_with(place.file(), trace, &tables)
            .with_context(|| place::cannot(&path))?;
        let events = trace.events().len() as u64;
        if target != Target::Ttwu {
            let summary = ttwu_trace::convert(place.beside(), &path, target)?;
            return Ok(Written { path, events, bytes: summary.bytes_out });
        }
        place.finish()?;
        Ok(Written { path, events, bytes })
    }
}
