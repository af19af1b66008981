//! `select_task_rq_fair()`: fast or slow path, and which of two CPUs is the target.

use super::slow_path::{SlowView, find_idlest_cpu};
use super::wide::wake_wide;
use super::{Affine, Check, Kind, Memory, Placement, Rule, ScanEnd, View, Wakeup};
use super::{affine::wake_affine, idle_sibling::select_idle_sibling};
use crate::{Kernel, Machine, Policy};
use ttwu_model::{SchedDomain, SdFlags};

/// Chooses a CPU for a task that is allowed on more than one (a pinned task never gets here). `checks` is told each look at
/// a CPU, in order; `slow` is asked on fork and exec only.
///
/// Models: select_task_rq_fair(), v5.5–v7.2.
///
/// DEVIATION: energy-aware placement (an energy model on asymmetric capacities) is not modelled.
pub fn place(
    policy: &Policy,
    machine: &Machine,
    wakeup: &Wakeup<'_>,
    memory: &mut Memory<'_>,
    view: &mut dyn View,
    slow: &mut dyn SlowView,
    checks: &mut dyn FnMut(Check),
) -> Placement {
    let (this, prev) = (wakeup.this_cpu, wakeup.prev_cpu);
    let domains = machine.domains();
    let mut answer = Placement {
        cpu: prev,
        rule: Rule::NoBalanceDomain,
        affine: Affine::NotTried,
        target: prev,
        scanned: 0,
        scan: ScanEnd::None,
    };
    let mut want_affine = false;
    if wakeup.kind == Kind::Wakeup {
        memory.waker.record(memory.wakee_key, memory.jiffies, machine.tunables().hz);
        let this_allowed = wakeup.allowed.contains(this);
        if wakeup.current_cpu && this_allowed && policy.kernel() >= Kernel::V6_6 {
            return Placement { cpu: this, rule: Rule::CurrentCpu, ..answer };
        }
        let wide = wake_wide(memory.waker.flips, memory.wakee.flips, domains.llc_size(this));
        want_affine = !wide && this_allowed;
    }
    let mut slow_domain: Option<&SchedDomain> = None;
    let flag = match wakeup.kind {
        Kind::Wakeup => SdFlags::BALANCE_WAKE,
        Kind::Fork => SdFlags::BALANCE_FORK,
        Kind::Exec => SdFlags::BALANCE_EXEC,
    };
    for domain in domains.of(this) {
        if policy.kernel() == Kernel::V5_5 && !domain.flags().contains(SdFlags::LOAD_BALANCE) {
            break;
        }
        if want_affine && domain.flags().contains(SdFlags::WAKE_AFFINE) && domain.span().contains(prev) {
            answer.affine = Affine::SameCpu;
            if this != prev {
                let same_llc = domains.same_llc(this, prev);
                (answer.target, answer.affine) = wake_affine(policy, wakeup, domain, same_llc, view, checks);
            }
            slow_domain = None;
            break;
        }
        if domain.flags().contains(flag) {
            slow_domain = Some(domain);
        } else if !want_affine {
            break;
        }
    }
    if let Some(domain) = slow_domain {
        let cpu = find_idlest_cpu(policy, machine, wakeup, domain, slow);
        return Placement { cpu, rule: Rule::Idlest, ..answer };
    }
    match wakeup.kind {
        Kind::Wakeup => {
            answer.target = view.target(answer.target);
            select_idle_sibling(policy, machine, wakeup, memory, view, checks, &mut answer);
            if want_affine && policy.kernel() <= Kernel::V5_9 {
                *memory.waker_recent_used_cpu = this;
            }
            answer
        }
        Kind::Fork | Kind::Exec => Placement { cpu: answer.target, ..answer },
    }
}
