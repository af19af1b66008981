//! Does a woken task preempt the running one, across groups: lifted to the level that both share, buddies marked upwards.

use super::{Fair, NONE};
use crate::mutation::{Mutation, broken};
use crate::preempt::{Lifted, Step, marks_first, resume, wakeup_preempt_step};
use crate::{EntityId, Feature, PreemptQuery, PreemptReason, Preemption, Resched, TaskPolicy, Tunables};
use ttwu_model::CpuId;

/// What a wake-up's preemption check is told beside the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WakeupCheck {
    /// The wakee is new (WF_FORK).
    pub fork: bool,
    /// The waker will sleep soon (WF_SYNC).
    pub sync: bool,
    /// Placement chose the CPU (WF_RQ_SELECTED, v7.2).
    pub rq_selected: bool,
    /// The wakee was still queued, delayed, when it was woken (v7.2).
    pub delayed: bool,
    /// Is the running task to be rescheduled already?
    pub need_resched: Option<Resched>,
}

/// Which preference of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Buddy {
    Next,
    Last,
    Skip,
}

impl Fair {
    /// Does `wakee`, just queued on `cpu`, preempt the task that runs there?
    ///
    /// # Panics
    /// If no fair task runs: other classes are preempted without asking.
    ///
    /// Models: check_preempt_wakeup(), check_preempt_wakeup_fair(), wakeup_preempt_fair(), find_matching_se(), v5.5–v7.2.
    pub fn wakeup_preempt(
        &mut self,
        cpu: CpuId,
        wakee: EntityId,
        now: u64,
        check: WakeupCheck,
    ) -> Preemption {
        let task = self.curr(cpu).expect("the running task is fair");
        if task == wakee {
            return Preemption { verdict: None, reason: PreemptReason::Itself, slice_end: None };
        }
        let many = u64::from(self.q[self.queue_of(task)].cfs.nr_queued()) >= Tunables::NR_LATENCY;
        let eevdf = self.rules.kernel.is_eevdf();
        let cfs_marks = self.rules.has(Feature::NextBuddy) && !eevdf && many && !check.fork;
        if cfs_marks || marks_first(&self.rules, check.fork, &self.e[wakee]) {
            self.set_next_buddy(wakee);
        }
        let (curr, lifted) = self.common_level(task, wakee);
        let query = PreemptQuery {
            wakee: lifted,
            policy: self.e[wakee].policy,
            curr_policy: self.e[task].policy,
            fork: check.fork,
            sync: check.sync,
            rq_selected: check.rq_selected,
            delayed: check.delayed,
            need_resched: check.need_resched,
            now,
        };
        let queue = self.queue_of(curr);
        let had_next = self.q[queue].cfs.next;
        let preferred = self.curr_preferred(queue);
        let level = Lifted { many, curr_is_task: curr == task };
        let Self { rules, e, q, .. } = self;
        let mut step = wakeup_preempt_step(&mut q[queue].cfs, e, rules, &query, level);
        let answer = loop {
            match step {
                Step::Done(answer) => break answer,
                Step::Delayed(pick) => {
                    self.finish_delayed(pick.id, now);
                    let Self { rules, e, q, .. } = self;
                    step = resume(&mut q[queue].cfs, e, rules, &query, pick);
                }
            }
        };
        if let Some(above) = self.parent(curr) {
            let cfs = &self.q[queue].cfs;
            let (next, last) = (cfs.next, cfs.last);
            // The check marks buddies on its own level; the kernel marks all levels above too.
            if answer.slice_end.is_some() {
                self.forget_above(curr, preferred);
            }
            if next == Some(lifted) && had_next != next {
                self.set_next_buddy(above);
            }
            if last == Some(curr) && answer.verdict.is_some() {
                self.set_buddy(above, Buddy::Last);
            }
        }
        answer
    }

    /// The entities of both tasks on the lowest level that they share.
    ///
    /// Models: find_matching_se(), v5.5–v7.2.
    fn common_level(&self, mut curr: EntityId, mut wakee: EntityId) -> (EntityId, EntityId) {
        while self.x[curr.index()].queue != self.x[wakee.index()].queue {
            let (left, right) = (self.q[self.queue_of(curr)].depth, self.q[self.queue_of(wakee)].depth);
            if left >= right {
                curr = self.parent(curr).expect("a deeper or unlike queue has one above");
            }
            if right >= left {
                wakee = self.parent(wakee).expect("a deeper or unlike queue has one above");
            }
        }
        (curr, wakee)
    }

    /// Prefers `id`, and its groups, at the next picks.
    ///
    /// Models: set_next_buddy(), v5.5–v7.2.
    pub(super) fn set_next_buddy(&mut self, id: EntityId) {
        self.set_buddy(id, Buddy::Next);
    }

    /// The task that yields, and its groups, are passed over once.
    ///
    /// Models: set_skip_buddy(), v5.5–v6.1.
    pub(super) fn set_skip_buddy(&mut self, id: EntityId) {
        self.set_buddy(id, Buddy::Skip);
    }

    fn set_buddy(&mut self, id: EntityId, buddy: Buddy) {
        let mut at = Some(id);
        while let Some(id) = at {
            let refused = !self.e[id].on_rq || self.e[id].policy == TaskPolicy::Idle;
            if refused && buddy != Buddy::Skip {
                return;
            }
            let queue = self.queue_of(id);
            *self.buddy_mut(queue, buddy) = Some(id);
            at = self.parent(id).filter(|_| !broken(Mutation::BuddyOnOneLevel));
        }
    }

    fn buddy_mut(&mut self, queue: usize, buddy: Buddy) -> &mut Option<EntityId> {
        let queue = &mut self.q[queue].cfs;
        match buddy {
            Buddy::Next => &mut queue.next,
            Buddy::Last => &mut queue.last,
            Buddy::Skip => &mut queue.skip,
        }
    }

    /// Forgets preferences for `id`, and for the groups above it as long as they are preferred too.
    ///
    /// Models: clear_buddies(), __clear_buddies_next(), __clear_buddies_last(), __clear_buddies_skip(), v5.5–v7.2.
    pub(super) fn clear_buddies_up(&mut self, id: EntityId) {
        for buddy in BUDDIES {
            self.clear_buddy_up(Some(id), buddy);
        }
    }

    fn clear_buddy_up(&mut self, mut at: Option<EntityId>, buddy: Buddy) {
        while let Some(id) = at {
            let queue = self.queue_of(id);
            let preferred = self.buddy_mut(queue, buddy);
            if *preferred != Some(id) {
                return;
            }
            *preferred = None;
            at = self.parent(id);
        }
    }

    /// As which buddies a group queue prefers its running entity, to be asked before its accounting, which may forget that;
    /// [`Fair::forget_above`] then does the levels above.
    pub(super) fn curr_preferred(&self, queue: usize) -> Preferred {
        let queue = &self.q[queue];
        if queue.entity == NONE {
            return Preferred([false; 3]);
        }
        let cfs = &queue.cfs;
        let is_curr = |buddy: Option<EntityId>| buddy.is_some() && buddy == cfs.curr;
        Preferred([is_curr(cfs.next), is_curr(cfs.last), is_curr(cfs.skip)])
    }

    /// The queue of `id` has forgotten it as the buddies that `preferred` names.
    pub(super) fn forget_above(&mut self, id: EntityId, preferred: Preferred) {
        for (buddy, _) in BUDDIES.into_iter().zip(preferred.0).filter(|(_, was)| *was) {
            self.clear_buddy_up(self.parent(id), buddy);
        }
    }
}

/// See [`Fair::curr_preferred`].
#[derive(Clone, Copy)]
pub(super) struct Preferred([bool; 3]);

const BUDDIES: [Buddy; 3] = [Buddy::Next, Buddy::Last, Buddy::Skip];
