//! What a recorder notes about tasks beside the events: perf's COMM, FORK and EXIT records.
//!
//! Events carry the names that tasks have at that moment, and analyses go by those. The notes are kept because other
//! tools go by them instead (perf names a task by its last COMM record, even where every event says otherwise), and because
//! they tell tgids and parents of tasks that were there before the recording began.
//!
//! What this does not do: change any event. A trace without notes (all formats but perf.data) is complete.

use crate::{Pid, StrId, Time};

/// Something that a recorder noted between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskNote {
    /// The index, counted from the trace's start, of the event that it came just before.
    pub before: u64,
    /// When, on the trace's clock; zero for what was the case before the recording.
    pub at: Time,
    /// What.
    pub kind: NoteKind,
}

/// What was noted. Pids are the recorder's own, which in a container differ from those in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A task has this name now.
    Name {
        /// The thread.
        pid: Pid,
        /// Its process.
        tgid: Pid,
        /// The name.
        name: StrId,
    },
    /// A task was forked.
    Fork {
        /// The new thread.
        pid: Pid,
        /// Its process.
        tgid: Pid,
        /// The thread that forked it.
        parent: Pid,
        /// That thread's process.
        parent_tgid: Pid,
    },
    /// A task exits.
    Exit {
        /// The thread.
        pid: Pid,
        /// Its process.
        tgid: Pid,
    },
    /// A task is not in the pid table any more, though it may still run for a moment: samples in its name have no thread id.
    Released {
        /// The thread, by the event's own payload.
        pid: Pid,
        /// Its process as samples still have it; [`Pid::UNKNOWN`] if that is gone too.
        tgid: Pid,
    },
}
