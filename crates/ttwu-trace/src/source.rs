//! What every decoder fills besides its events.

use crate::ReadError;
use ttwu_model::{Event, Pid, RawEvent, StrId, Strings, TaskId, TaskInfo, TaskNote, TraceHealth, TraceMeta};

/// A decoder's side results. Strings are interned here; tgids and names are handed on with the next batch.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) strings: Strings,
    pub(crate) meta: TraceMeta,
    pub(crate) health: TraceHealth,
    /// Thread → process, from side records or a text column.
    pub(crate) tgids: Vec<(Pid, Pid)>,
    /// Names from side records, used only for tasks that no event has named by then. Names noted at the *end* of a
    /// recording (trace.dat's cmdlines) must come with the last batch.
    pub(crate) names: Vec<(Pid, StrId)>,
    /// Notes on tasks; [`TaskNote::before`] is the number of events decoded so far, over all batches.
    pub(crate) notes: Vec<TaskNote>,
    /// Events that come with their tasks, instead of raw ones (own format only).
    pub(crate) resolved: Vec<Event>,
    /// The rows of those tasks, as [`Resolver::put_row`](ttwu_model::Resolver::put_row) takes them.
    pub(crate) task_rows: Vec<(TaskId, TaskInfo)>,
}

/// Is there more to decode?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    Yes,
    No,
}

/// A format's reader behind its header.
pub(crate) trait Decoder: Send {
    /// Appends some further events to `out` (about 10^4 to 10^6, so that batches are worth handing over). All events of
    /// one call, and of later calls, are at or after those of earlier calls.
    ///
    /// # Errors
    /// Only where nothing more can be read at all. A damaged rest is said in `source.health`, and ends with `More::No`.
    fn decode(&mut self, source: &mut Source, out: &mut Vec<RawEvent>) -> Result<More, ReadError>;
}
