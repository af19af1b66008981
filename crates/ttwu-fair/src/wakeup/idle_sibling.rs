//! `select_idle_sibling()`: an idle CPU near the target, first by guesses, then by a scan.
//!
//! Nothing is reserved: two wakers may choose the same idle CPU.

use super::idle_scan::{Scan, old_idle_core, old_idle_cpu, scan_llc};
use super::{Check, Memory, Placement, Rule, Site, View, Wakeup};
use crate::mutation::{Mutation, broken};
use crate::{Cluster, Kernel, KthreadStacking, Machine, Policy};
use ttwu_model::{CpuId, SchedDomain};

/// What the steps below share.
pub(super) struct Search<'a> {
    pub(super) policy: &'a Policy,
    pub(super) machine: &'a Machine,
    pub(super) wakeup: &'a Wakeup<'a>,
    pub(super) view: &'a mut dyn View,
    pub(super) checks: &'a mut dyn FnMut(Check),
    pub(super) target: CpuId,
    pub(super) jiffies: u64,
}

impl Search<'_> {
    /// Would `cpu` do? Kernels before 7.2 ask for idle first, then for SCHED_IDLE occupancy; 7.2 has one function for both.
    pub(super) fn ok(&mut self, site: Site, cpu: CpuId) -> bool {
        if self.policy.kernel() >= Kernel::V7_2 {
            let idle = self.view.choose_idle(cpu, !self.wakeup.wakee_is_idle_policy);
            (self.checks)(Check { site, cpu, idle });
            return idle;
        }
        self.idle(site, cpu) || self.view.sched_idle(cpu)
    }

    /// Is `cpu` idle, in the narrow sense?
    pub(super) fn idle(&mut self, site: Site, cpu: CpuId) -> bool {
        let idle = self.view.available_idle(cpu);
        (self.checks)(Check { site, cpu, idle });
        idle
    }

    fn same_llc(&self, a: CpuId, b: CpuId) -> bool {
        self.machine.domains().same_llc(a, b)
    }

    /// Does the task fit into what `cpu` has left? Always true on symmetric machines.
    ///
    /// Models: asym_fits_cpu(), fits_capacity(), v5.7–v7.2. DEVIATION: utilisation clamps (v6.1 and later) are not modelled.
    fn fits(&mut self, cpu: CpuId) -> bool {
        let old = self.policy.kernel() <= Kernel::V5_9;
        old || self.machine.domains().asym(self.target).is_none()
            || self.wakeup.util * 1280 < self.view.capacity(cpu) * 1024
    }

    /// Is the waker a per-CPU kernel thread under whose rule the wakee stays here?
    ///
    /// Models: is_per_cpu_kthread() in select_idle_sibling(), v5.6–v7.2.
    fn may_stack(&mut self) -> bool {
        let idle_task = self.wakeup.waker_is_idle_task && self.policy.kernel() >= Kernel::V5_15;
        let kthread = self.wakeup.waker_is_per_cpu_kthread || idle_task;
        let context = match self.policy.kthread_stacking {
            KthreadStacking::Off => false,
            KthreadStacking::AnyContext => true,
            KthreadStacking::InTask => self.wakeup.in_task || broken(Mutation::KthreadStacksInInterrupt),
        };
        kthread
            && context
            && (self.wakeup.prev_cpu == self.wakeup.this_cpu || broken(Mutation::KthreadStacksAnywhere))
            && (self.view.nr_running(self.wakeup.this_cpu) <= 1 || broken(Mutation::KthreadStacksBusy))
            && self.fits(self.wakeup.prev_cpu)
    }
}

/// Fills in `answer`, whose `target` is set.
///
/// Models: select_idle_sibling(), v5.5–v7.2.
pub(super) fn select_idle_sibling(
    policy: &Policy,
    machine: &Machine,
    wakeup: &Wakeup<'_>,
    memory: &mut Memory<'_>,
    view: &mut dyn View,
    checks: &mut dyn FnMut(Check),
    answer: &mut Placement,
) {
    let target = answer.target;
    let mut search = Search { policy, machine, wakeup, view, checks, target, jiffies: memory.jiffies };
    let found = if policy.kernel() <= Kernel::V5_9 {
        old_sequence(&mut search, memory, answer)
    } else {
        sequence(&mut search, memory, answer)
    };
    (answer.cpu, answer.rule) = found;
}

/// v5.15 and later.
fn sequence(search: &mut Search<'_>, memory: &mut Memory<'_>, answer: &mut Placement) -> (CpuId, Rule) {
    let (prev, target) = (search.wakeup.prev_cpu, search.target);
    let domains = search.machine.domains();
    let clusters = search.policy.cluster == Cluster::Wakeup && domains.cluster_active();
    let near = |a, b| !clusters || domains.share_id(a) == domains.share_id(b);
    if search.ok(Site::Target, target) && search.fits(target) {
        return (target, Rule::TargetIdle);
    }
    let mut prev_kept = None;
    if prev != target && search.same_llc(prev, target) && search.ok(Site::Prev, prev) && search.fits(prev) {
        if near(prev, target) || broken(Mutation::PrevOfOtherClusterTaken) {
            return (prev, Rule::PrevIdle);
        }
        prev_kept = Some(prev);
    }
    if search.may_stack() {
        return (prev, Rule::KthreadStacking);
    }
    let recent = *memory.recent_used_cpu;
    if !broken(Mutation::RecentNotUpdated) {
        *memory.recent_used_cpu = prev;
    }
    let mut recent_kept = None;
    if recent != prev
        && recent != target
        && search.same_llc(recent, target)
        && search.ok(Site::Recent, recent)
        && (search.wakeup.allowed.contains(recent) || broken(Mutation::RecentIgnoresAffinity))
        && search.fits(recent)
    {
        if near(recent, target) {
            return (recent, Rule::RecentIdle);
        }
        recent_kept = Some(recent);
    }
    if let Some(domain) = domains.asym(target) {
        return idle_capacity(search, domain);
    }
    let Some(llc) = domains.llc(target) else {
        return (target, Rule::NoLlc);
    };
    let mut idle_cores = false;
    if domains.smt_active() {
        idle_cores = search.view.has_idle_cores(target);
        if !idle_cores
            && search.same_llc(prev, target)
            && let Some(cpu) = idle_smt(search, llc, prev)
        {
            return (cpu, Rule::SmtIdle);
        }
    }
    let Scan { found, rule, scanned, end } = scan_llc(search, llc, idle_cores);
    (answer.scanned, answer.scan) = (scanned, end);
    if let Some(cpu) = found {
        return (cpu, rule);
    }
    if let Some(cpu) = prev_kept {
        return (cpu, Rule::PrevKept);
    }
    if let Some(cpu) = recent_kept {
        return (cpu, Rule::RecentKept);
    }
    (target, Rule::TargetBusy)
}

/// v5.5 and v5.9: separate core and CPU scans, siblings last, the recently used CPU remembered on a hit only.
fn old_sequence(search: &mut Search<'_>, memory: &mut Memory<'_>, answer: &mut Placement) -> (CpuId, Rule) {
    let (prev, target) = (search.wakeup.prev_cpu, search.target);
    let domains = search.machine.domains();
    if search.policy.kernel() == Kernel::V5_9
        && let Some(domain) = domains.asym(target)
    {
        return idle_capacity(search, domain);
    }
    if search.ok(Site::Target, target) {
        return (target, Rule::TargetIdle);
    }
    if prev != target && search.same_llc(prev, target) && search.ok(Site::Prev, prev) {
        return (prev, Rule::PrevIdle);
    }
    if search.may_stack() {
        return (prev, Rule::KthreadStacking);
    }
    let recent = *memory.recent_used_cpu;
    if recent != prev
        && recent != target
        && search.same_llc(recent, target)
        && search.ok(Site::Recent, recent)
        && search.wakeup.allowed.contains(recent)
    {
        *memory.recent_used_cpu = prev;
        return (recent, Rule::RecentIdle);
    }
    let Some(llc) = domains.llc(target) else {
        return (target, Rule::NoLlc);
    };
    if let Some(cpu) = old_idle_core(search, llc) {
        return (cpu, Rule::CoreIdle);
    }
    if search.policy.cluster == Cluster::RfcV2
        && let Some(cpu) = idle_cluster(search)
    {
        return (cpu, Rule::ClusterIdle);
    }
    let Scan { found, rule, scanned, end } = old_idle_cpu(search, llc);
    (answer.scanned, answer.scan) = (scanned, end);
    if let Some(cpu) = found {
        return (cpu, rule);
    }
    match idle_smt(search, llc, target) {
        Some(cpu) => (cpu, Rule::SmtIdle),
        None => (target, Rule::TargetBusy),
    }
}

/// The first thread of `core`'s core that would do.
///
/// Models: select_idle_smt(), v5.5–v7.2.
fn idle_smt(search: &mut Search<'_>, llc: &SchedDomain, core: CpuId) -> Option<CpuId> {
    let kernel = search.policy.kernel();
    if !search.machine.domains().smt_active() {
        return None;
    }
    let within_llc = match kernel {
        Kernel::V5_5 | Kernel::V5_9 | Kernel::V6_6 => false,
        Kernel::V5_15 | Kernel::V5_19 | Kernel::V6_1 | Kernel::Eevdf202304 | Kernel::V6_12 | Kernel::V7_2 => {
            true
        }
    };
    let mut sched_idle = None;
    for cpu in search.machine.smt(core).iter() {
        let skipped = (cpu == core && kernel >= Kernel::V6_1)
            || !(search.wakeup.allowed.contains(cpu) || broken(Mutation::SmtIgnoresAffinity))
            || (within_llc && !llc.span().contains(cpu));
        if skipped {
            continue;
        }
        if kernel == Kernel::V5_5 {
            // v5.5 prefers a truly idle thread and falls back to the first one that runs SCHED_IDLE tasks only.
            if search.idle(Site::Smt, cpu) {
                return Some(cpu);
            }
            if sched_idle.is_none() && search.view.sched_idle(cpu) {
                sched_idle = Some(cpu);
            }
        } else if search.ok(Site::Smt, cpu) {
            return Some(cpu);
        }
    }
    sched_idle
}

/// The RFC's search of the target's cluster: no budget, no bookkeeping.
///
/// Models: select_idle_cluster() of the RFC v2 of December 2020, on v5.9.
fn idle_cluster(search: &mut Search<'_>) -> Option<CpuId> {
    let cluster = search.machine.cluster(search.target);
    if search.machine.domains().smt_active() || cluster.len() <= 1 {
        return None;
    }
    let allowed = search.wakeup.allowed;
    cluster.scan(search.target).find(|&cpu| allowed.contains(cpu) && search.idle(Site::Cluster, cpu))
}

/// The first CPU that would do and into which the task fits, else the one of largest capacity.
///
/// Models: select_idle_capacity(), v5.7–v7.2. DEVIATION: 7.2's tiers by idle core and its scan budget are not modelled.
fn idle_capacity(search: &mut Search<'_>, domain: &SchedDomain) -> (CpuId, Rule) {
    let target = search.target;
    let mut best: Option<(u64, CpuId)> = None;
    for cpu in domain.span().scan(target) {
        if !search.wakeup.allowed.contains(cpu) || !search.ok(Site::Capacity, cpu) {
            continue;
        }
        let capacity = search.view.capacity(cpu);
        if search.wakeup.util * 1280 < capacity * 1024 {
            return (cpu, Rule::CapacityIdle);
        }
        if best.is_none_or(|(most, _)| capacity > most) {
            best = Some((capacity, cpu));
        }
    }
    best.map_or((target, Rule::TargetBusy), |(_, cpu)| (cpu, Rule::CapacityIdle))
}
