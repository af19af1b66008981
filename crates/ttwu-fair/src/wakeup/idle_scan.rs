//! The scans of an LLC for an idle core or CPU, and their budgets.

use super::idle_sibling::Search;
use super::{Rule, ScanEnd, Site};
use crate::mutation::{Mutation, broken};
use crate::{Cluster, Feature, Kernel};
use ttwu_model::{CpuId, CpuSet, SchedDomain, SdFlags};

/// What a scan found.
pub(super) struct Scan {
    pub(super) found: Option<CpuId>,
    pub(super) rule: Rule,
    pub(super) scanned: u32,
    pub(super) end: ScanEnd,
}

impl Scan {
    const fn nothing(scanned: u32, end: ScanEnd) -> Self {
        Self { found: None, rule: Rule::TargetBusy, scanned, end }
    }
}

/// A whole idle core, by a scan before and apart from that for CPUs. The thread met first is returned.
///
/// Siblings outside the task's mask are looked at too.
///
/// Models: select_idle_core(), v5.5–v5.11.
pub(super) fn old_idle_core(search: &mut Search<'_>, llc: &SchedDomain) -> Option<CpuId> {
    let target = search.target;
    if !search.machine.domains().smt_active() || !search.view.has_idle_cores(target) {
        return None;
    }
    let mut left = llc.span().intersection(search.wakeup.allowed);
    for cpu in llc.span().scan(target) {
        if !left.contains(cpu) {
            continue;
        }
        let siblings = search.machine.smt(cpu);
        let mut idle = true;
        for sibling in siblings.iter() {
            left.remove(sibling);
            if !search.idle(Site::Core, sibling) {
                idle = false;
                break;
            }
        }
        for sibling in siblings.iter() {
            left.remove(sibling);
        }
        if idle {
            return Some(cpu);
        }
    }
    search.view.clear_idle_cores(target);
    None
}

/// CPUs one after another, as far as SIS_PROP allows.
///
/// Models: select_idle_cpu(), v5.5–v5.11.
pub(super) fn old_idle_cpu<'a>(search: &mut Search<'a>, llc: &'a SchedDomain) -> Scan {
    let (this, target, machine) = (search.wakeup.this_cpu, search.target, search.machine);
    if machine.domains().llc(this).is_none() {
        return Scan::nothing(0, ScanEnd::None);
    }
    let cost = *search.view.scan_cost(this);
    let (idle_time, scan_cost) = (cost.avg_idle_ns / 512, cost.avg_scan_cost_ns + 1);
    if search.policy.has(Feature::SisAvgCpu) && idle_time < scan_cost {
        return Scan::nothing(0, ScanEnd::Forbidden);
    }
    let mut left = if search.policy.has(Feature::SisProp) {
        budget(llc.weight() as u64 * idle_time, scan_cost)
    } else {
        u64::MAX
    };
    let first_form = search.policy.kernel() == Kernel::V5_5;
    let rfc_v3 = search.policy.cluster == Cluster::RfcV3;
    let mut sched_idle = None;
    let mut scanned = 0;
    // v3 of the RFC walks the target's cluster first, then the rest, with one budget.
    let cluster = rfc_v3.then(|| machine.cluster(target));
    let near = llc.span().scan(target).filter(|&cpu| cluster.is_none_or(|cluster| cluster.contains(cpu)));
    let rest = |cluster: &'a CpuSet| llc.span().scan(target).filter(|&cpu| !cluster.contains(cpu));
    for cpu in near.chain(cluster.into_iter().flat_map(rest)) {
        let allowed = search.wakeup.allowed.contains(cpu);
        if !allowed && !first_form {
            continue;
        }
        left -= 1;
        if left == 0 {
            // The bookkeeping is skipped on this way out.
            let rule = Rule::CpuIdle;
            return Scan { found: sched_idle, rule, scanned, end: ScanEnd::Budget };
        }
        if !allowed {
            continue;
        }
        scanned += 1;
        let hit = if first_form { search.idle(Site::Cpu, cpu) } else { search.ok(Site::Cpu, cpu) };
        if hit {
            account(search, scanned);
            return Scan { found: Some(cpu), rule: Rule::CpuIdle, scanned, end: ScanEnd::Hit };
        }
        if first_form && sched_idle.is_none() && search.view.sched_idle(cpu) {
            sched_idle = Some(cpu);
        }
    }
    account(search, scanned);
    // v5.5 forgets the SCHED_IDLE candidate when the scan runs to its end.
    Scan::nothing(scanned, ScanEnd::Exhausted)
}

/// How many CPUs a scan may look at, plus one.
pub(super) fn budget(span_time: u64, cost: u64) -> u64 {
    if span_time > 4 * cost || broken(Mutation::PropFloorMissing) { span_time / cost } else { 4 }
}

/// Keeps the mean cost of a scan.
fn account(search: &mut Search<'_>, scanned: u32) {
    let ns = search.view.scan_ns(scanned);
    let cost = search.view.scan_cost(search.wakeup.this_cpu);
    let step = (i64::try_from(ns).unwrap_or(i64::MAX) - cost.avg_scan_cost_ns.cast_signed()) / 8;
    cost.avg_scan_cost_ns = cost.avg_scan_cost_ns.saturating_add_signed(step);
}

/// One scan for both: whole cores while the LLC's flag says there are some, else single CPUs within the budget.
///
/// The budget is not used up while the flag is set: a stale flag costs a scan of the whole LLC.
///
/// Models: select_idle_cpu(), select_idle_core(), __select_idle_cpu(), v5.12–v7.2.
pub(super) fn scan_llc(search: &mut Search<'_>, llc: &SchedDomain, idle_cores: bool) -> Scan {
    let (this, target, kernel) = (search.wakeup.this_cpu, search.target, search.policy.kernel());
    let prop = search.policy.has(Feature::SisProp);
    if kernel <= Kernel::V5_19 && search.machine.domains().llc(this).is_none() {
        return Scan::nothing(0, ScanEnd::None);
    }
    let mut left = i64::MAX;
    if prop && !idle_cores {
        left = prop_budget(search, llc);
    }
    if search.policy.has(Feature::SisUtil) {
        let extra = i64::from(!broken(Mutation::SisUtilOffByOne));
        left = i64::from(search.view.nr_idle_scan(target)) + extra;
        if left == 1 {
            // Also when the flag is set, which then stays as it is.
            return Scan::nothing(0, ScanEnd::Forbidden);
        }
    }
    let mut walk =
        Walk { llc, idle_cores, left, fallback: None, scanned: 0, visited: CpuSet::new(), cluster: None };
    if search.policy.cluster == Cluster::Wakeup
        && let Some(group) = search.machine.domains().groups_of(llc).next()
        && group.flags().contains(SdFlags::CLUSTER)
    {
        if let Some(done) = walk.stage(search, group.span(), Site::Cluster) {
            return done;
        }
        walk.cluster = (!broken(Mutation::ClusterScannedTwice)).then_some(group.span());
    }
    if let Some(done) = walk.stage(search, llc.span(), Site::Cpu) {
        if prop && !idle_cores && done.end == ScanEnd::Hit {
            spend(search, done.scanned);
        }
        return done;
    }
    if idle_cores {
        if !broken(Mutation::IdleCoresFlagKept) {
            search.view.clear_idle_cores(target);
        }
    } else if prop {
        spend(search, walk.scanned);
    }
    match walk.fallback {
        Some(cpu) => Scan { found: Some(cpu), rule: Rule::CpuIdle, scanned: walk.scanned, end: ScanEnd::Hit },
        None => Scan::nothing(walk.scanned, ScanEnd::Exhausted),
    }
}

/// SIS_PROP's budget, after ageing: a waker that was not itself woken for some jiffies has halved its allowance as often.
fn prop_budget(search: &mut Search<'_>, llc: &SchedDomain) -> i64 {
    let jiffies = search.jiffies;
    let cost = search.view.scan_cost(search.wakeup.this_cpu);
    while cost.wake_stamp < jiffies && cost.wake_avg_idle_ns > 0 {
        cost.wake_stamp += 1;
        cost.wake_avg_idle_ns >>= u32::from(!broken(Mutation::PropNotAged));
    }
    let span_time = llc.weight() as u64 * cost.wake_avg_idle_ns;
    i64::try_from(budget(span_time, cost.avg_scan_cost_ns + 1)).unwrap_or(i64::MAX)
}

/// SIS_PROP's bookkeeping of v5.14–v5.19: the scan's time is taken from the allowance.
fn spend(search: &mut Search<'_>, scanned: u32) {
    let ns = search.view.scan_ns(scanned);
    let cost = search.view.scan_cost(search.wakeup.this_cpu);
    cost.wake_avg_idle_ns = cost.wake_avg_idle_ns.saturating_sub(ns);
    account(search, scanned);
}

/// A scan under way.
struct Walk<'a> {
    llc: &'a SchedDomain,
    idle_cores: bool,
    left: i64,
    fallback: Option<CpuId>,
    scanned: u32,
    /// Threads of cores that were seen not to be idle: the kernel takes them out of its mask.
    visited: CpuSet,
    /// The cluster that was scanned already.
    cluster: Option<&'a CpuSet>,
}

impl Walk<'_> {
    /// Is `cpu` still in the mask?
    fn masked(&self, search: &Search<'_>, cpu: CpuId) -> bool {
        search.wakeup.allowed.contains(cpu)
            && self.llc.span().contains(cpu)
            && !self.visited.contains(cpu)
            && self.cluster.is_none_or(|cluster| !cluster.contains(cpu))
    }

    /// Scans the CPUs of `span` that are left, from the one after the target; `Some` when the whole scan is over.
    fn stage(&mut self, search: &mut Search<'_>, span: &CpuSet, site: Site) -> Option<Scan> {
        let offset = u16::from(!broken(Mutation::ScanFromTarget));
        let start = CpuId::new(search.target.number().saturating_add(offset));
        // `span` lies within the LLC.
        let allowed = if broken(Mutation::ScanIgnoresAffinity) { span } else { search.wakeup.allowed };
        for cpu in span.scan_within(allowed, start) {
            if self.visited.contains(cpu) || self.cluster.is_some_and(|cluster| cluster.contains(cpu)) {
                continue;
            }
            if self.idle_cores && !broken(Mutation::CoreScanSkipped) {
                self.scanned += 1;
                if self.core_is_idle(search, cpu) {
                    let rule = Rule::CoreIdle;
                    return Some(Scan { found: Some(cpu), rule, scanned: self.scanned, end: ScanEnd::Hit });
                }
                continue;
            }
            self.left -= 1;
            if self.left <= if broken(Mutation::BudgetInclusive) { -1 } else { 0 } {
                return Some(Scan::nothing(self.scanned, ScanEnd::Budget));
            }
            self.scanned += 1;
            if search.ok(site, cpu) {
                let rule = if site == Site::Cluster { Rule::ClusterIdle } else { Rule::CpuIdle };
                return Some(Scan { found: Some(cpu), rule, scanned: self.scanned, end: ScanEnd::Hit });
            }
        }
        None
    }

    /// Are all threads of `core`'s core idle? On the way the first idle (or SCHED_IDLE) thread is kept as fallback.
    ///
    /// Models: select_idle_core(), v5.12–v7.2.
    fn core_is_idle(&mut self, search: &mut Search<'_>, core: CpuId) -> bool {
        let own_mask = match search.policy.kernel() {
            Kernel::V6_1 | Kernel::Eevdf202304 | Kernel::V6_12 | Kernel::V7_2 => false,
            Kernel::V5_5 | Kernel::V5_9 | Kernel::V5_15 | Kernel::V5_19 | Kernel::V6_6 => true,
        };
        let mut idle = true;
        let siblings = search.machine.smt(core);
        for sibling in siblings.iter() {
            let usable = |walk: &Self, search: &Search<'_>| {
                if own_mask { search.wakeup.allowed.contains(sibling) } else { walk.masked(search, sibling) }
            };
            if search.idle(Site::Core, sibling) {
                if self.fallback.is_none() && usable(self, search) {
                    self.fallback = Some(sibling);
                }
                continue;
            }
            idle = false;
            if self.fallback.is_some() {
                break;
            }
            if search.view.sched_idle(sibling) && usable(self, search) {
                self.fallback = Some(sibling);
                break;
            }
        }
        if !idle {
            for sibling in siblings.iter() {
                self.visited.insert(sibling);
            }
        }
        idle
    }
}
