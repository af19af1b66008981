//! Is a remote wake-up put on the target's wake list, to be activated there?

use super::View;
use crate::mutation::{Mutation, broken};
use crate::{Feature, Machine, Policy, WakeList};
use ttwu_model::CpuId;

/// The question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeListQuery {
    /// The CPU that runs the wake-up.
    pub this_cpu: CpuId,
    /// The CPU chosen.
    pub cpu: CpuId,
    /// WF_ON_CPU: the wakee is still switching out there.
    pub on_cpu: bool,
    /// Is `cpu` among the task's allowed CPUs?
    pub allowed: bool,
    /// Is the target active (not on its way off line)?
    pub active: bool,
    /// Is it a stopper task?
    pub stopper: bool,
}

/// The answer: on the list, or activated directly under the remote run-queue lock.
///
/// Models: ttwu_queue_wakelist(), ttwu_queue_cond(), v5.5–v7.2.
pub fn queue_on_wake_list(
    policy: &Policy,
    machine: &Machine,
    query: &WakeListQuery,
    view: &mut dyn View,
) -> bool {
    if !policy.has(Feature::TtwuQueue) {
        return false;
    }
    let domains = machine.domains();
    let remote = query.this_cpu != query.cpu;
    let other_llc =
        remote && !domains.same_llc(query.this_cpu, query.cpu) && !broken(Mutation::WakeListWithinLlcOnly);
    let on_cpu = |view: &mut dyn View| {
        (query.on_cpu || broken(Mutation::WakeListAlways)) && remote && view.nr_running(query.cpu) <= 1
    };
    let most = u32::from(broken(Mutation::WakeListForOne));
    let nothing = |view: &mut dyn View| view.nr_running(query.cpu) <= most;
    match policy.wake_list {
        WakeList::OtherLlc => other_llc,
        WakeList::OnCpu => other_llc || on_cpu(view),
        WakeList::OnCpuActive => query.active && (other_llc || on_cpu(view)),
        WakeList::Rfc => {
            query.active && remote && (other_llc || view.available_idle(query.cpu) || on_cpu(view))
        }
        WakeList::NothingQueued => query.active && query.allowed && (other_llc || (remote && nothing(view))),
        WakeList::NothingQueuedFairOnly => {
            !query.stopper && query.active && query.allowed && (other_llc || (remote && nothing(view)))
        }
        WakeList::Always => remote && query.active,
        WakeList::Never => false,
    }
}
