//! `wake_affine()`: the waker's CPU or the previous one, as the centre of the idle search.

use super::{Affine, Check, Site, TaskLoad, View, Wakeup};
use crate::mutation::{Mutation, broken};
use crate::{Feature, Kernel, Policy, WakeAffineIdle};
use ttwu_model::{CpuId, SchedDomain};

/// The decision; `None` where both idle rules and weights leave the previous CPU.
///
/// Models: wake_affine(), v5.5–v7.2.
pub(super) fn wake_affine(
    policy: &Policy,
    wakeup: &Wakeup<'_>,
    domain: &SchedDomain,
    same_llc: bool,
    view: &mut dyn View,
    checks: &mut dyn FnMut(Check),
) -> (CpuId, Affine) {
    let (this, prev) = (wakeup.this_cpu, wakeup.prev_cpu);
    if policy.has(Feature::WaIdle)
        && let Some(found) = wake_affine_idle(policy, wakeup, same_llc, view, checks)
    {
        return found;
    }
    if policy.has(Feature::WaWeight) {
        let this_wins = wake_affine_weight(policy, wakeup, domain, view);
        return if this_wins { (this, Affine::WeightThis) } else { (prev, Affine::WeightPrev) };
    }
    (prev, Affine::Off)
}

/// The idle rules.
///
/// Models: wake_affine_idle(), v4.14–v7.2.
fn wake_affine_idle(
    policy: &Policy,
    wakeup: &Wakeup<'_>,
    same_llc: bool,
    view: &mut dyn View,
    checks: &mut dyn FnMut(Check),
) -> Option<(CpuId, Affine)> {
    let (this, prev) = (wakeup.this_cpu, wakeup.prev_cpu);
    let mut look = |view: &mut dyn View, site, cpu| {
        let idle = view.available_idle(cpu);
        checks(Check { site, cpu, idle });
        idle
    };
    match policy.wake_affine_idle {
        WakeAffineIdle::AnyIdle => {
            if look(view, Site::AffineThis, this) {
                return Some((this, Affine::ThisIdle));
            }
        }
        WakeAffineIdle::SharedCache => {
            if look(view, Site::AffineThis, this) && same_llc {
                return Some((this, Affine::ThisIdle));
            }
        }
        WakeAffineIdle::SharedCachePrevFirst => {
            if look(view, Site::AffineThis, this) && (same_llc || broken(Mutation::AffineAcrossLlcs)) {
                let both = look(view, Site::AffinePrev, prev) && !broken(Mutation::AffineThisFirst);
                return Some(if both { (prev, Affine::BothIdle) } else { (this, Affine::ThisIdle) });
            }
        }
        WakeAffineIdle::SharedCacheElsePrev => {
            if same_llc {
                if look(view, Site::AffineThis, this) {
                    return Some((this, Affine::ThisIdle));
                }
                if look(view, Site::AffinePrev, prev) {
                    return Some((prev, Affine::PrevIdle));
                }
            }
        }
    }
    if wakeup.sync {
        let running = i64::from(view.nr_running(this));
        // The subtraction is not clamped: a racy −1 stays −1.
        let delayed = if policy.kernel() >= Kernel::V6_12 { view.nr_delayed(this) } else { 0 };
        if running - delayed == if broken(Mutation::SyncAloneAtTwo) { 2 } else { 1 } {
            return Some((this, Affine::SyncAlone));
        }
    }
    if policy.has(Feature::WakeAffinePrev) && look(view, Site::AffinePrev, prev) {
        return Some((prev, Affine::PrevIdle));
    }
    None
}

/// Is the waker's CPU, with the wakee on it, less loaded than the previous one without?
///
/// Models: wake_affine_weight(), v5.5–v7.2.
fn wake_affine_weight(
    policy: &Policy,
    wakeup: &Wakeup<'_>,
    domain: &SchedDomain,
    view: &mut dyn View,
) -> bool {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let mut this_load = signed(view.load(wakeup.this_cpu));
    if wakeup.sync {
        let current = signed(view.task_load(TaskLoad::Waker));
        if current > this_load {
            return true;
        }
        this_load -= current;
    }
    let task = signed(view.task_load(TaskLoad::Wakee));
    let bias = policy.has(Feature::WaBias);
    this_load += task;
    if bias {
        this_load *= 100;
    }
    this_load *= signed(view.capacity(wakeup.prev_cpu));
    let mut prev_load = signed(view.load(wakeup.prev_cpu)) - task;
    if bias {
        prev_load *= 100 + (i64::from(domain.imbalance_pct()) - 100) / 2;
    }
    prev_load *= signed(view.capacity(wakeup.this_cpu));
    if wakeup.sync && !broken(Mutation::SyncTieLost) {
        prev_load += 1;
    }
    this_load < prev_load || (broken(Mutation::WeightInclusive) && this_load == prev_load)
}
