//! A report: all that renderers need, as plain data.
//!
//! Renderers compute nothing but shares and widths; what is not in here cannot be shown.

use ttwu_analysis::Results;
use ttwu_model::{Duration, TraceHealth, TraceMeta, TraceParts};

/// What was found in one recording.
#[derive(Clone, Debug)]
pub struct Report {
    /// The recording, as the user named it.
    pub file: String,
    /// What the recording says about itself.
    pub meta: TraceMeta,
    /// What is wrong with it.
    pub health: TraceHealth,
    /// Tasks that occur, without the idle ones.
    pub tasks_count: u64,
    /// Where the topology comes from, in words; `None` where there is none.
    pub topology: Option<String>,
    /// What the analyses that ran found.
    pub results: Results,
}

impl Report {
    /// A report on `file`.
    #[must_use]
    pub fn new(file: &str, parts: &TraceParts, topology: Option<String>, results: Results) -> Self {
        Self {
            file: file.to_owned(),
            meta: parts.meta.clone(),
            health: parts.health.clone(),
            tasks_count: parts.tasks.len() as u64 - 1,
            topology,
            results,
        }
    }

    /// First to last event; zero without events.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.results.span.map_or(Duration::ZERO, |(first, last)| last.saturating_since(first))
    }

    /// How many CPUs there are: as the source says, else those that occur where the CPU analysis ran.
    #[must_use]
    pub fn cpus_count(&self) -> Option<u64> {
        let said = self.meta.cpus_online.as_ref().map(|cpus| cpus.len() as u64);
        let said = said.or(self.meta.cpus_recorded.map(u64::from));
        let seen = || self.results.cpus.as_ref()?.value().map(|found| found.cpus.len() as u64);
        said.or_else(seen)
    }

    /// All events.
    #[must_use]
    pub fn events_count(&self) -> u64 {
        self.results.recorded.counts().values().sum()
    }
}

/// What is wrong with a recording, in a few words each; empty where it is clean.
#[must_use]
pub fn health_faults(health: &TraceHealth) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |times: u64, one: &str, many: &str| {
        if times > 0 {
            faults.push(format!("{} {}", crate::layout::count(times), if times == 1 { one } else { many }));
        }
    };
    fault(health.lost_events, "event lost", "events lost");
    fault(health.uncounted_gaps, "gap of unknown size", "gaps of unknown size");
    fault(health.switch_mismatches, "switch missing", "switches missing");
    fault(health.clock_steps_total, "clock step back", "clock steps back");
    fault(health.unknown_records.values().sum(), "unknown record", "unknown records");
    fault(health.foreign_cpu_events, "event of an unknown CPU", "events of unknown CPUs");
    fault(health.repairs.len() as u64, "repair", "repairs");
    if let Some(offset) = health.truncated_at {
        faults.push(format!("cut off at byte {offset}"));
    }
    faults
}
