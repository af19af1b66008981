//! The tick's question: has the running entity had its turn?

use crate::{CfsRq, Entities, EntityId, Feature, Kernel, QueueRules, Resched};

/// Why the tick asks for a reschedule, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TickReason {
    /// Nothing else is queued.
    Alone,
    /// CFS: it has run its slice. EEVDF: its request or protected window ended.
    SliceEnd,
    /// CFS: the first in order is behind by more than a slice.
    Behind,
    /// EEVDF-2023-04: a pick now would take another.
    OtherPicked,
    /// It goes on.
    GoesOn,
}

/// The tick's answer on one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickVerdict {
    /// What is asked for.
    pub resched: Option<Resched>,
    /// Why.
    pub reason: TickReason,
}

/// Accounts the running entity and asks whether its turn is over. `nr` is as in [`CfsRq::slice_ns`].
///
/// DEVIATION: v7.2's tick also turns a pending lazy request into a full one, first; whoever keeps the flag does that.
///
/// Models: entity_tick(), check_preempt_tick(), v5.5–v7.2.
pub fn entity_tick(
    queue: &mut CfsRq,
    e: &mut Entities,
    rules: &QueueRules,
    now: u64,
    nr: u32,
) -> TickVerdict {
    let accounted = queue.update_curr(e, rules, now);
    let ideal = match queue.curr {
        Some(curr) if !rules.kernel.is_eevdf() => queue.slice_ns(e, rules, curr, nr),
        _ => 0,
    };
    tick_accounted(queue, e, rules, accounted, ideal)
}

/// [`entity_tick`] after the accounting, which asked for `accounted`. `ideal` is the running entity's slice (CFS), ns.
///
/// Models: entity_tick(), check_preempt_tick(), v5.5–v7.2.
pub(crate) fn tick_accounted(
    queue: &mut CfsRq,
    e: &Entities,
    rules: &QueueRules,
    accounted: Option<Resched>,
    ideal: u64,
) -> TickVerdict {
    let verdict = |resched, reason| TickVerdict { resched, reason };
    if accounted.is_some() {
        return verdict(accounted, TickReason::SliceEnd);
    }
    let Some(curr) = queue.curr else { return verdict(None, TickReason::Alone) };
    if queue.nr_queued() <= 1 {
        return verdict(None, TickReason::Alone);
    }
    match rules.kernel {
        Kernel::V5_5 | Kernel::V5_9 | Kernel::V5_15 | Kernel::V5_19 | Kernel::V6_1 => {
            cfs_tick(queue, e, rules, curr, ideal)
        }
        Kernel::Eevdf202304 => {
            let ran = e[curr].sum_exec_runtime.wrapping_sub(e[curr].prev_sum_exec_runtime);
            // The proposal to keep CFS's least run; its value is the base slice's.
            if rules.has(Feature::TickMinGranularity) && ran < rules.tunables.base_slice_ns {
                return verdict(None, TickReason::GoesOn);
            }
            if queue.pick(e, rules) == Some(curr) {
                return verdict(None, TickReason::GoesOn);
            }
            queue.clear_buddies(curr);
            verdict(Some(Resched::Full), TickReason::OtherPicked)
        }
        Kernel::V6_6 | Kernel::V6_12 | Kernel::V7_2 => verdict(None, TickReason::GoesOn),
    }
}

fn cfs_tick(queue: &mut CfsRq, e: &Entities, rules: &QueueRules, curr: EntityId, ideal: u64) -> TickVerdict {
    let goes_on = TickVerdict { resched: None, reason: TickReason::GoesOn };
    let over = |reason| TickVerdict { resched: Some(Resched::Full), reason };
    let ran = e[curr].sum_exec_runtime.wrapping_sub(e[curr].prev_sum_exec_runtime);
    if ran > ideal {
        queue.clear_buddies(curr);
        return over(TickReason::SliceEnd);
    }
    if ran < rules.tunables.min_granularity_ns {
        return goes_on;
    }
    let Some(left) = queue.leftmost() else { return goes_on };
    // Virtual time against wall time: the kernel compares them so.
    let behind = e[curr].vruntime.wrapping_sub(e[left].vruntime) as i64;
    if behind > ideal as i64 { over(TickReason::Behind) } else { goes_on }
}

/// When the high-resolution slice timer is to expire, in ns of wall time from now; `None`: it is not started.
///
/// Models: hrtick_start_fair(), v7.2.
#[must_use]
pub fn hrtick_ns(queue: &CfsRq, e: &Entities, rules: &QueueRules) -> Option<u64> {
    if queue.nr_queued() <= 1 { None } else { until_deadline_ns(queue, e, rules) }
}

/// [`hrtick_ns`] where others of the CPU wait, be it in other queues.
pub(crate) fn until_deadline_ns(queue: &CfsRq, e: &Entities, rules: &QueueRules) -> Option<u64> {
    let curr = queue.curr.filter(|&id| e[id].on_rq)?;
    if !rules.has(Feature::Hrtick) || rules.kernel < Kernel::V7_2 {
        return None;
    }
    let left = e[curr].deadline.wrapping_sub(e[curr].vruntime) as i64;
    let left = u64::try_from(left).unwrap_or(0);
    Some((u128::from(left) * u128::from(e[curr].load.scaled_down()) / 1024) as u64)
}
