//! Does a woken task preempt the running one?
//!
//! The question is put once per wake-up, after the wakee was queued. What the answer does to the queue (buddies, the running
//! task's protection, its accounting) is done here too, since later picks depend on it.
//!
//! What this does not do: lift tasks of different groups to siblings; the caller passes the two entities of the common level.

use crate::queue::{Protect, before};
use crate::{
    CfsRq, DequeueFlags, Entities, EntityId, Feature, Kernel, QueueRules, Resched, SchedEntity, TaskPolicy,
    Tunables,
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
    let many = u64::from(queue.nr_queued()) >= Tunables::NR_LATENCY;
    if marks_first(rules, query.fork, &e[query.wakee]) && queue.curr != Some(query.wakee) {
        queue.next = Some(query.wakee);
    }
    let mut step = wakeup_preempt_step(queue, e, rules, query, Lifted { many, curr_is_task: true });
    loop {
        match step {
            Step::Done(answer) => return answer,
            Step::Delayed(pick) => {
                let finish = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
                queue.dequeue(e, rules, pick.id, query.now, finish);
                step = resume(queue, e, rules, query, pick);
            }
        }
    }
}

/// EEVDF up to v6.12, NEXT_BUDDY: is the wakee the next buddy before anything else is asked, so even where the running task is
/// to be rescheduled already? CFS marks inside the check, v7.2 late in it.
pub(crate) fn marks_first(rules: &QueueRules, fork: bool, wakee: &SchedEntity) -> bool {
    let early = rules.kernel.is_eevdf() && rules.kernel < Kernel::V7_2;
    early && rules.has(Feature::NextBuddy) && !fork && !wakee.is_idle() && !wakee.sched_delayed
}

/// What of the running task is lost when it is lifted to the common level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifted {
    /// CFS: do at least `NR_LATENCY` entities share the queue of the running *task*?
    pub(crate) many: bool,
    /// Is the running entity of the level the task itself?
    pub(crate) curr_is_task: bool,
}

/// An answer, or what has to be done before there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Done(Preemption),
    /// 7.2: the pick took a delayed entity. Finish its dequeue and [`resume`].
    Delayed(DelayedPick),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayedPick {
    pub(crate) id: EntityId,
    short: bool,
    slice_end: Option<Resched>,
}

/// [`wakeup_preempt`] up to the first delayed entity picked.
pub(crate) fn wakeup_preempt_step(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
    lifted: Lifted,
) -> Step {
    let curr = queue.curr.expect("the running entity is fair");
    if curr == query.wakee {
        return Step::Done(Preemption::no(PreemptReason::Itself));
    }
    if rules.kernel.is_eevdf() {
        preempt_eevdf(queue, e, rules, query, curr)
    } else {
        Step::Done(preempt_cfs(queue, e, rules, query, curr, lifted))
    }
}

/// Goes on after the dequeue of `pick` was finished.
pub(crate) fn resume(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
    pick: DelayedPick,
) -> Step {
    let curr = queue.curr.expect("the running entity is fair");
    pick_7_2(queue, e, rules, query, curr, pick.short, pick.slice_end)
}

fn preempt_cfs(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
    curr: EntityId,
    lifted: Lifted,
) -> Preemption {
    let many = lifted.many;
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
    let may_be_last = lifted.curr_is_task && e[curr].on_rq && !e[curr].is_idle();
    if may_be_last && rules.has(Feature::LastBuddy) && many {
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
) -> Step {
    let no = |reason| Step::Done(Preemption::no(reason));
    let lazy_model = rules.kernel >= Kernel::V7_2;
    let request = if lazy_model { Resched::Lazy } else { Resched::Full };
    let already =
        if lazy_model { query.need_resched == Some(Resched::Full) } else { query.need_resched.is_some() };
    if already {
        return no(PreemptReason::NeedsResched);
    }
    if !rules.has(Feature::WakeupPreemption) {
        return no(PreemptReason::FeatureOff);
    }
    let (curr_idle, wakee_idle) = (e[curr].is_idle(), e[query.wakee].is_idle());
    if curr_idle && !wakee_idle {
        if rules.kernel >= Kernel::V6_12 {
            CfsRq::cancel_protection(e, rules, curr);
        }
        let reason = PreemptReason::CurrIdle;
        return Step::Done(Preemption { verdict: Some(request), reason, slice_end: None });
    }
    if wakee_idle && !curr_idle {
        return no(PreemptReason::WakeeIdle);
    }
    match query.policy {
        TaskPolicy::Normal => {}
        TaskPolicy::Batch => return no(PreemptReason::Batch),
        TaskPolicy::Idle => return no(PreemptReason::WakeeIdle),
    }
    let slice_end = queue.update_curr(e, rules, query.now);
    if lazy_model {
        return decide_7_2(queue, e, rules, query, curr, slice_end);
    }
    Step::Done(Preemption { slice_end, ..decide_by_pick(queue, e, rules, query, curr) })
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
    slice_end: Option<Resched>,
) -> Step {
    let short = rules.has(Feature::PreemptShort) && e[query.wakee].slice < e[curr].slice;
    if !short {
        let done = |answer| Step::Done(lazily(answer, slice_end));
        if query.fork {
            return done(Preemption::no(PreemptReason::Fork));
        }
        if query.delayed {
            return done(Preemption::no(PreemptReason::Delayed));
        }
        let deadline = e[query.wakee].deadline;
        let better = queue.next.is_none_or(|next| !before(e[next].deadline, deadline));
        if rules.has(Feature::NextBuddy) && better {
            queue.next = Some(query.wakee);
            if query.sync {
                return done(sync_buddy(e, query, curr));
            }
        }
    }
    pick_7_2(queue, e, rules, query, curr, short, slice_end)
}

fn pick_7_2(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    query: &PreemptQuery,
    curr: EntityId,
    short: bool,
    slice_end: Option<Resched>,
) -> Step {
    let protect = if short { Protect::No } else { Protect::Yes };
    let picked = queue.pick_eevdf(e, rules, protect);
    if let Some(id) = picked.filter(|&id| e[id].sched_delayed) {
        return Step::Delayed(DelayedPick { id, short, slice_end });
    }
    let answer = judge(picked, query, curr, short);
    if answer.verdict.is_some() {
        if short {
            CfsRq::cancel_protection(e, rules, curr);
            queue.clear_buddies(curr);
        }
    } else if rules.has(Feature::RunToParity) {
        queue.narrow_protection(e, rules, curr);
    }
    Step::Done(lazily(answer, slice_end))
}

/// v7.2 asks for lazy reschedules only.
fn lazily(answer: Preemption, slice_end: Option<Resched>) -> Preemption {
    Preemption { verdict: answer.verdict.map(|_| Resched::Lazy), slice_end, ..answer }
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
