//! Does a woken task preempt the running one?
//!
//! The question is put once per wake-up, after the wakee was queued. What the answer does to the queue (buddies, the running
//! task's protection, its accounting) is done here too, since later picks depend on it.
//!
//! What this does not do: lift tasks of different groups to siblings; the caller passes the two entities of the common level.

use crate::queue::{Protect, before};
use crate::{
    CfsRq, DequeueFlags, Entities, EntityId, Feature, Kernel, QueueRules, Resched, TaskPolicy, Tunables,
};
use std::cmp::Ordering;

/// A wake-up whose preemption is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptQuery {
    /// The wakee (or its group's entity on the running task's level).
    pub wakee: EntityId,
    /// The wakee's own policy.
    pub policy: TaskPolicy,
    /// The running task's own policy.
    pub curr_policy: TaskPolicy,
    /// It is new (WF_FORK).
    pub fork: bool,
    /// The waker will sleep soon (WF_SYNC).
    pub sync: bool,
    /// Placement chose the CPU (WF_RQ_SELECTED, v7.2).
    pub rq_selected: bool,
    /// Was the wakee still queued, delayed, when it was woken? (v7.2)
    pub delayed: bool,
    /// Is the running task to be rescheduled already?
    pub need_resched: Option<Resched>,
    /// Task clock, ns.
    pub now: u64,
}

/// Why the running task is preempted, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptReason {
    /// The wakee is the running task.
    Itself,
    /// A reschedule was requested already.
    NeedsResched,
    /// WAKEUP_PREEMPTION is off.
    FeatureOff,
    /// The running task is of the idle policy, the wakee is not.
    CurrIdle,
    /// The wakee is of the idle policy, the running task is not.
    WakeeIdle,
    /// A batch task does not preempt.
    Batch,
    /// CFS: the wakee leads by more than its granularity.
    Lead,
    /// CFS: it leads by less, or not at all.
    NoLead,
    /// A pick now would take the wakee.
    Picked,
    /// The same, since its shorter slice broke the running task's protection.
    PickedShort,
    /// A pick now would keep the running task.
    Kept,
    /// A pick now would take a third entity.
    Other,
    /// v7.2: a new task does not preempt.
    Fork,
    /// v7.2: a task that was still queued does not preempt.
    Delayed,
    /// NEXT_BUDDY with a sync waker: it has run long enough, and the wakee's deadline is earlier.
    SyncBuddy,
    /// NEXT_BUDDY with a sync waker that has not.
    SyncWait,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// What the check asks for; `None`: no preemption.
    pub verdict: Option<Resched>,
    /// Why.
    pub reason: PreemptReason,
    /// What accounting the running task asked for on the way: its slice ended.
    pub slice_end: Option<Resched>,
}

impl Preemption {
    const fn no(reason: PreemptReason) -> Self {
        Self { verdict: None, reason, slice_end: None }
    }

    /// Was a reschedule requested, for whatever reason?
    #[must_use]
    pub fn resched(&self) -> Option<Resched> {
        self.verdict.max(self.slice_end)
    }
}

/// How long a sync waker runs before the wakee takes over (v7.2, NEXT_BUDDY), ns.
const SYNC_RUN_NS: u64 = 500_000;
/// The same where placement chose the waker's CPU.
const SYNC_RUN_SELECTED_NS: u64 = 125_000;

/// Does `query.wakee`, just queued on `queue`, preempt its running entity?
///
/// # Panics
/// If nothing runs: the fair class is not asked then.
///
/// Models: check_preempt_wakeup(), check_preempt_wakeup_fair(), wakeup_preempt_fair(), v5.5–v7.2.
pub fn wakeup_preempt(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
) -> Preemption {
    let curr = queue.curr.expect("the running entity is fair");
    if curr == query.wakee {
        return Preemption::no(PreemptReason::Itself);
    }
    if rules.kernel.is_eevdf() {
        preempt_eevdf(queue, e, rules, query, curr)
    } else {
        preempt_cfs(queue, e, rules, query, curr)
    }
}

fn preempt_cfs(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
    curr: EntityId,
) -> Preemption {
    let many = u64::from(queue.nr_queued()) >= Tunables::NR_LATENCY;
    let may_be_buddy = !e[query.wakee].is_idle();
    let marked = rules.has(Feature::NextBuddy) && many && !query.fork;
    if marked && may_be_buddy {
        queue.next = Some(query.wakee);
    }
    if query.need_resched.is_some() {
        return Preemption::no(PreemptReason::NeedsResched);
    }
    let reason = if query.curr_policy == TaskPolicy::Idle && query.policy != TaskPolicy::Idle {
        PreemptReason::CurrIdle
    } else if query.policy == TaskPolicy::Idle {
        return Preemption::no(PreemptReason::WakeeIdle);
    } else if query.policy == TaskPolicy::Batch {
        return Preemption::no(PreemptReason::Batch);
    } else if !rules.has(Feature::WakeupPreemption) {
        return Preemption::no(PreemptReason::FeatureOff);
    } else {
        queue.update_curr(e, rules, query.now);
        if CfsRq::lead(e, rules, curr, query.wakee) != Ordering::Greater {
            return Preemption::no(PreemptReason::NoLead);
        }
        if !marked && may_be_buddy {
            queue.next = Some(query.wakee);
        }
        PreemptReason::Lead
    };
    if e[curr].on_rq && rules.has(Feature::LastBuddy) && many && !e[curr].is_idle() {
        queue.last = Some(curr);
    }
    Preemption { verdict: Some(Resched::Full), reason, slice_end: None }
}

fn preempt_eevdf(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
    curr: EntityId,
) -> Preemption {
    let lazy_model = rules.kernel >= Kernel::V7_2;
    let request = if lazy_model { Resched::Lazy } else { Resched::Full };
    let already =
        if lazy_model { query.need_resched == Some(Resched::Full) } else { query.need_resched.is_some() };
    if already {
        return Preemption::no(PreemptReason::NeedsResched);
    }
    if !rules.has(Feature::WakeupPreemption) {
        return Preemption::no(PreemptReason::FeatureOff);
    }
    let (curr_idle, wakee_idle) = (e[curr].is_idle(), e[query.wakee].is_idle());
    if curr_idle && !wakee_idle {
        if rules.kernel >= Kernel::V6_12 {
            CfsRq::cancel_protection(e, rules, curr);
        }
        return Preemption { verdict: Some(request), reason: PreemptReason::CurrIdle, slice_end: None };
    }
    if wakee_idle && !curr_idle {
        return Preemption::no(PreemptReason::WakeeIdle);
    }
    match query.policy {
        TaskPolicy::Normal => {}
        TaskPolicy::Batch => return Preemption::no(PreemptReason::Batch),
        TaskPolicy::Idle => return Preemption::no(PreemptReason::WakeeIdle),
    }
    let slice_end = queue.update_curr(e, rules, query.now);
    let answer = if lazy_model {
        decide_7_2(queue, e, rules, query, curr)
    } else {
        decide_by_pick(queue, e, rules, query, curr)
    };
    let verdict = answer.verdict.map(|_| request);
    Preemption { verdict, slice_end, ..answer }
}

/// Up to v6.12: preempt if a pick now would take the wakee.
fn decide_by_pick(
    queue: &CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
    curr: EntityId,
) -> Preemption {
    let short = rules.has(Feature::PreemptShort)
        && e[query.wakee].slice < e[curr].slice
        && queue.eligible(e, rules, query.wakee)
        && (before(e[query.wakee].deadline, e[curr].deadline) || !queue.eligible(e, rules, curr));
    if short {
        CfsRq::cancel_protection(e, rules, curr);
    }
    judge(queue.pick_eevdf(e, rules, Protect::Yes), query, curr, short)
}

fn judge(picked: Option<EntityId>, query: &PreemptQuery, curr: EntityId, short: bool) -> Preemption {
    if picked == Some(query.wakee) {
        let reason = if short { PreemptReason::PickedShort } else { PreemptReason::Picked };
        return Preemption { verdict: Some(Resched::Full), reason, slice_end: None };
    }
    Preemption::no(if picked == Some(curr) { PreemptReason::Kept } else { PreemptReason::Other })
}

/// v7.2: a shorter slice breaks the protection; otherwise buddies may be marked, and the window is narrowed.
///
/// Models: wakeup_preempt_fair(), preempt_sync(), v7.2.
fn decide_7_2(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
    curr: EntityId,
) -> Preemption {
    let short = rules.has(Feature::PreemptShort) && e[query.wakee].slice < e[curr].slice;
    if !short {
        if query.fork {
            return Preemption::no(PreemptReason::Fork);
        }
        if query.delayed {
            return Preemption::no(PreemptReason::Delayed);
        }
        let deadline = e[query.wakee].deadline;
        let better = queue.next.is_none_or(|next| !before(e[next].deadline, deadline));
        if rules.has(Feature::NextBuddy) && better {
            queue.next = Some(query.wakee);
            if query.sync {
                return sync_buddy(e, query, curr);
            }
        }
    }
    let protect = if short { Protect::No } else { Protect::Yes };
    let picked = loop {
        let picked = queue.pick_eevdf(e, rules, protect);
        match picked {
            Some(id) if e[id].sched_delayed => {
                let finish = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
                queue.dequeue(e, rules, id, query.now, finish);
            }
            picked => break picked,
        }
    };
    let answer = judge(picked, query, curr, short);
    if answer.verdict.is_some() {
        if short {
            CfsRq::cancel_protection(e, rules, curr);
            queue.clear_buddies(curr);
        }
    } else if rules.has(Feature::RunToParity) {
        queue.narrow_protection(e, rules, curr);
    }
    answer
}

fn sync_buddy(e: &Entities, query: &PreemptQuery, curr: EntityId) -> Preemption {
    let least = if query.rq_selected { SYNC_RUN_SELECTED_NS } else { SYNC_RUN_NS };
    let ran = query.now.wrapping_sub(e[curr].exec_start);
    if before(e[query.wakee].deadline, e[curr].deadline) && ran >= least {
        return Preemption {
            verdict: Some(Resched::Full),
            reason: PreemptReason::SyncBuddy,
            slice_end: None,
        };
    }
    Preemption::no(PreemptReason::SyncWait)
}
