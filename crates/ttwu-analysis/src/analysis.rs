//! What every analysis is: a fold with declared needs.

use std::collections::BTreeMap;
use ttwu_model::{Event, Strings, TaskTable, Time, Timeline, TraceParts};

/// The state around an event: the timeline has already taken it.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// Phases after the event; [`Timeline::ended`] and [`Timeline::placed`] say what the event changed.
    pub timeline: &'a Timeline,
    /// Strings known so far.
    pub strings: &'a Strings,
    /// Tasks known so far.
    pub tasks: &'a TaskTable,
}

/// Everything that is known at the end.
#[derive(Clone, Copy)]
pub struct End<'a> {
    /// Phases after the last event; [`Timeline::open`] gives those that the end cut.
    pub timeline: &'a Timeline,
    /// Tasks, strings, health and what the source says about itself.
    pub parts: &'a TraceParts,
    /// Which tracepoints were recorded.
    pub recorded: &'a Recorded,
    /// First and last event; `None` for a trace without events.
    pub span: Option<(Time, Time)>,
}

/// A fold over a trace's events.
pub trait Analysis {
    /// The result: plain data, or [`Measured::NotMeasured`].
    type Output;

    /// The tracepoints without which there is no result.
    fn needs(&self) -> Needs;

    /// Takes the next event; `moment.timeline` has already been stepped with it.
    fn observe(&mut self, moment: &Moment<'_>, event: &Event);

    /// The result.
    fn finish(self, end: &End<'_>) -> Measured<Self::Output>;
}

/// Tracepoints that an analysis needs: all of the groups, and of each group at least one.
pub type Needs = &'static [&'static [&'static str]];

/// A result, or which tracepoints are missing for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured<T> {
    /// It could be measured.
    Measured(T),
    /// The recording lacks these tracepoints (of each group, any one would do).
    NotMeasured {
        /// One entry a group, alternatives joined by ` or `.
        missing: Vec<String>,
    },
}

impl<T> Measured<T> {
    /// The value, if measured.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Measured(value) => Some(value),
            Self::NotMeasured { .. } => None,
        }
    }

    /// The value with `change` applied, if measured.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Measured<U> {
        match self {
            Self::Measured(value) => Measured::Measured(change(value)),
            Self::NotMeasured { missing } => Measured::NotMeasured { missing },
        }
    }
}

/// Which tracepoints were recorded: those that the source lists as switched on, and those that occur.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    counts: BTreeMap<String, u64>,
    switched_on: Option<std::collections::BTreeSet<String>>,
}

impl Recorded {
    /// From how often each tracepoint occurs and what the source says was switched on.
    #[must_use]
    pub fn new(counts: BTreeMap<String, u64>, parts: &TraceParts) -> Self {
        let bare = |name: &String| name.rsplit(':').next().unwrap_or(name).to_owned();
        let switched_on = parts.meta.events_recorded.as_ref().map(|names| names.iter().map(bare).collect());
        Self { counts, switched_on }
    }

    /// How often each tracepoint occurs, by name without system.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// Was `tracepoint` (without its system) recorded? If it does not occur and the source lists nothing, that is not
    /// known, and counts as no.
    #[must_use]
    pub fn has(&self, tracepoint: &str) -> bool {
        self.counts.contains_key(tracepoint)
            || self.switched_on.as_ref().is_some_and(|names| names.contains(tracepoint))
    }

    /// What is missing of `needs`, one entry a group.
    #[must_use]
    pub fn missing(&self, needs: Needs) -> Vec<String> {
        needs
            .iter()
            .filter(|group| !group.iter().any(|name| self.has(name)))
            .map(|group| group.join(" or "))
            .collect()
    }

    /// `value` if nothing of `needs` is missing.
    pub fn measured<T>(&self, needs: Needs, value: impl FnOnce() -> T) -> Measured<T> {
        let missing = self.missing(needs);
        if missing.is_empty() { Measured::Measured(value()) } else { Measured::NotMeasured { missing } }
    }
}
