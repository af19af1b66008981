//! What became of each wake-up, from the events that follow it.

use std::collections::BTreeMap;
use ttwu_model::{CpuId, EventKind, TaskId, Trace};

/// The end of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The CPU that was chosen: the one to which the wakee was migrated on the way, else its previous one.
    pub(crate) chosen: CpuId,
    /// It went by a wake list: another CPU than the waker's activated it.
    pub(crate) listed: bool,
}

struct Begun {
    index: usize,
    cpu: CpuId,
    chosen: CpuId,
}

/// Does the trace have `sched_wakeup`?
pub(crate) fn has_wakeups(trace: &Trace) -> bool {
    trace.events().iter().any(|event| matches!(event.kind, EventKind::Wakeup { .. }))
}

/// Outcomes by the index of the `sched_waking`; those whose `sched_wakeup` does not follow are absent.
///
/// `perf sched record` of newer kernels leaves `sched_wakeup` out: then the wakee's next switch ends its wake-up.
pub(crate) fn outcomes(trace: &Trace) -> BTreeMap<usize, Outcome> {
    let mut begun: BTreeMap<TaskId, Begun> = BTreeMap::new();
    let mut found = BTreeMap::new();
    let ends = has_wakeups(trace);
    for (index, event) in trace.events().iter().enumerate() {
        if let EventKind::Waking { wakee, prev_cpu, .. } = event.kind {
            begun.insert(wakee, Begun { index, cpu: event.cpu, chosen: prev_cpu });
        } else if let EventKind::Migrate { task, dest_cpu, .. } = event.kind {
            if let Some(begun) = begun.get_mut(&task).filter(|begun| begun.cpu == event.cpu) {
                begun.chosen = dest_cpu;
            }
        } else if let EventKind::Wakeup { wakee, .. } = event.kind
            && let Some(begun) = begun.remove(&wakee)
        {
            found.insert(begun.index, Outcome { chosen: begun.chosen, listed: event.cpu != begun.cpu });
        } else if let EventKind::Switch { next, .. } = event.kind
            && !ends
            && let Some(begun) = begun.remove(&next)
        {
            found.insert(begun.index, Outcome { chosen: begun.chosen, listed: false });
        }
    }
    found
}
