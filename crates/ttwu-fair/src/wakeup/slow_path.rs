//! The slow path of fork and exec: down the domains to the idlest group, and to the idlest CPU in it.

use super::{Kind, Wakeup};
use crate::mutation::{Mutation, broken};
use crate::{Kernel, Machine, Policy};
use ttwu_model::{CpuId, SchedDomain, SchedGroup, SdFlags, SgcId};

/// A CPU's part in a group's statistics, without the task that is being placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuStats {
    /// Root `load_avg` less the task's `h_load` (not below 0).
    pub load: u64,
    /// Utilisation, with `util_est`, less the task's.
    pub util: u64,
    /// Root `runnable_avg` less the task's (v5.7 and later).
    pub runnable: u64,
    /// Tasks on the run queue, less the task if it is queued here.
    pub nr_running: u32,
    /// Fair tasks in the hierarchy (v6.12: queued, v7.2: runnable), less the task.
    pub h_nr: u32,
    /// Nothing else queued, running idle or the task itself, nothing on the wake list.
    pub idle: bool,
    /// Capacity left by other classes.
    pub capacity: u64,
}

/// What the slow path reads of a running machine.
pub trait SlowView {
    /// A CPU's part in its group's statistics.
    fn stats(&mut self, cpu: CpuId) -> CpuStats;
    /// Did affinity keep the balancer from evening out this group?
    fn imbalanced(&mut self, group: SgcId) -> bool;
    /// As [`super::View::available_idle`].
    fn available_idle(&mut self, cpu: CpuId) -> bool;
    /// As [`super::View::sched_idle`].
    fn sched_idle(&mut self, cpu: CpuId) -> bool;
    /// Root `load_avg`.
    fn load(&mut self, cpu: CpuId) -> u64;
    /// Exit latency of the idle state that the CPU is in; `None` without one.
    fn exit_latency(&mut self, cpu: CpuId) -> Option<u64>;
    /// When it went idle, ns; 0 if it is not.
    fn idle_stamp(&mut self, cpu: CpuId) -> u64;
}

/// How a group stands, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupType {
    /// Room for more tasks.
    HasSpare,
    /// No spare cycles, and no task waits for long.
    FullyBusy,
    /// A core with tasks on several threads, seen by a CPU with time (v6.6 and later, in balancing only).
    SmtBalance,
    /// Affinity keeps it from being even.
    Imbalanced,
    /// More tasks than it can run.
    Overloaded,
}

/// A group's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStats {
    /// How it stands.
    pub kind: GroupType,
    /// Load per capacity, 1024 at one full CPU; only where loads are compared.
    pub avg_load: u64,
    /// Sum of utilisations.
    pub util: u64,
    /// Tasks.
    pub nr_running: u32,
    /// Idle CPUs.
    pub idle_cpus: u32,
}

/// The CPU for a new or exec'ing task.
///
/// Models: sched_balance_find_dst_cpu(), find_idlest_cpu(), v5.5–v7.2. DEVIATION: groups with asymmetric packing, misfit
/// tasks and SMT balancing have no type of their own; 7.2's llc_balance is left out.
pub(super) fn find_idlest_cpu(
    policy: &Policy,
    machine: &Machine,
    wakeup: &Wakeup<'_>,
    top: &SchedDomain,
    view: &mut dyn SlowView,
) -> CpuId {
    let domains = machine.domains();
    let flag = match wakeup.kind {
        Kind::Wakeup => SdFlags::BALANCE_WAKE,
        Kind::Fork => SdFlags::BALANCE_FORK,
        Kind::Exec => SdFlags::BALANCE_EXEC,
    };
    if !top.span().intersects(wakeup.allowed) {
        return wakeup.prev_cpu;
    }
    let mut cpu = wakeup.this_cpu;
    let mut new = cpu;
    let mut index = domains.of(cpu).iter().position(|domain| std::ptr::eq(domain, top));
    while let Some(at) = index {
        let domain = &domains.of(cpu)[at];
        let child = at.checked_sub(1);
        if !domain.flags().contains(flag) {
            index = child;
            continue;
        }
        let Some(group) = idlest_group(policy, machine, wakeup, domain, cpu, view) else {
            index = child;
            continue;
        };
        new = idlest_cpu(policy, wakeup, group, cpu, view);
        if new == cpu {
            index = child;
            continue;
        }
        let weight = domain.weight();
        cpu = new;
        // The largest domain of the new CPU below the one just looked at.
        index = domains
            .of(cpu)
            .iter()
            .take_while(|below| below.weight() < weight)
            .enumerate()
            .fold(None, |found, (at, below)| if below.flags().contains(flag) { Some(at) } else { found });
    }
    new
}

/// Models: update_sg_wakeup_stats(), group_classify(), v5.5–v7.2.
fn group_stats(
    policy: &Policy,
    wakeup: &Wakeup<'_>,
    domain: &SchedDomain,
    group: &SchedGroup,
    view: &mut dyn SlowView,
) -> GroupStats {
    let kernel = policy.kernel();
    let allowed_only = matches!(kernel, Kernel::V6_1 | Kernel::Eevdf202304 | Kernel::V6_12 | Kernel::V7_2);
    let mut sum = GroupSums::default();
    let mut idle_cpus = 0;
    for cpu in group.span().iter() {
        if allowed_only && !wakeup.allowed.contains(cpu) {
            continue;
        }
        let stats = view.stats(cpu);
        sum.load += stats.load;
        sum.util += stats.util;
        sum.runnable += stats.runnable;
        sum.nr_running += stats.nr_running;
        idle_cpus += u32::from(stats.idle);
    }
    for cpu in group.span().iter() {
        sum.capacity += view.stats(cpu).capacity;
    }
    // v5.5 leaves the weight of the wake-up variant at 0 by mistake.
    let weight = if kernel == Kernel::V5_5 { 0 } else { u32::try_from(group.weight()).unwrap_or(u32::MAX) };
    let imbalanced = view.imbalanced(group.sgc());
    let kind = classify(kernel, u64::from(domain.imbalance_pct()), weight, &sum, imbalanced);
    let compared = match kind {
        GroupType::FullyBusy | GroupType::Overloaded => kernel != Kernel::V5_5,
        GroupType::HasSpare => kernel == Kernel::V5_5,
        GroupType::Imbalanced | GroupType::SmtBalance => false,
    };
    let avg_load = if compared { (sum.load * 1024).checked_div(sum.capacity).unwrap_or(0) } else { 0 };
    GroupStats { kind, avg_load, util: sum.util, nr_running: sum.nr_running, idle_cpus }
}

/// What CPUs of a group sum up to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupSums {
    pub(crate) load: u64,
    pub(crate) util: u64,
    pub(crate) runnable: u64,
    pub(crate) capacity: u64,
    pub(crate) nr_running: u32,
}

/// How a group of `weight` CPUs stands.
///
/// Models: group_is_overloaded(), group_has_capacity(), group_classify(), v5.5–v7.2.
pub(crate) fn classify(
    kernel: Kernel,
    pct: u64,
    weight: u32,
    sum: &GroupSums,
    imbalanced: bool,
) -> GroupType {
    let waiting = kernel >= Kernel::V5_9 && sum.capacity * pct < sum.runnable * 100;
    let overloaded = sum.nr_running > weight && (sum.capacity * 100 < sum.util * pct || waiting);
    let has_capacity = sum.nr_running < weight || (!waiting && sum.capacity * 100 > sum.util * pct);
    if overloaded {
        GroupType::Overloaded
    } else if imbalanced {
        GroupType::Imbalanced
    } else if has_capacity {
        GroupType::HasSpare
    } else {
        GroupType::FullyBusy
    }
}

/// Is `new` a better remote group than `best`? Equal ones keep the earlier.
///
/// Models: update_pick_idlest(), v5.5–v7.2.
fn better(policy: &Policy, new: &GroupStats, best: Option<&GroupStats>) -> bool {
    // The kernel's initial record is overloaded with the largest possible load.
    let Some(best) = best else {
        return new.kind < GroupType::Overloaded || new.avg_load < u64::MAX;
    };
    if new.kind != best.kind {
        return new.kind < best.kind;
    }
    match new.kind {
        GroupType::Overloaded | GroupType::FullyBusy => new.avg_load < best.avg_load,
        GroupType::Imbalanced | GroupType::SmtBalance => false,
        GroupType::HasSpare => {
            new.idle_cpus > best.idle_cpus
                || (new.idle_cpus == best.idle_cpus
                    && policy.kernel() >= Kernel::V5_9
                    && new.util < best.util
                    && !broken(Mutation::UtilTieIgnored))
        }
    }
}

/// The idlest remote group, or `None` to stay in the local one.
///
/// Models: sched_balance_find_dst_group(), find_idlest_group(), v5.5–v7.2.
fn idlest_group<'m>(
    policy: &Policy,
    machine: &'m Machine,
    wakeup: &Wakeup<'_>,
    domain: &'m SchedDomain,
    cpu: CpuId,
    view: &mut dyn SlowView,
) -> Option<&'m SchedGroup> {
    let mut local: Option<(&SchedGroup, GroupStats)> = None;
    let mut idlest: Option<(&SchedGroup, GroupStats)> = None;
    for group in machine.domains().groups_of(domain) {
        if !group.span().intersects(wakeup.allowed) {
            continue;
        }
        let stats = group_stats(policy, wakeup, domain, group, view);
        if group.span().contains(cpu) {
            local = Some((group, stats));
        } else if better(policy, &stats, idlest.as_ref().map(|(_, best)| best)) {
            idlest = Some((group, stats));
        }
    }
    let (group, remote) = idlest?;
    let Some((local_group, here)) = local else { return Some(group) };
    let goes = match here.kind.cmp(&remote.kind) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => match here.kind {
            GroupType::Overloaded | GroupType::FullyBusy => loads_differ(domain, &here, &remote),
            GroupType::Imbalanced | GroupType::SmtBalance => false,
            GroupType::HasSpare => spare_differs(policy, wakeup, domain, local_group, &here, &remote),
        },
    };
    goes.then_some(group)
}

fn loads_differ(domain: &SchedDomain, here: &GroupStats, remote: &GroupStats) -> bool {
    let pct = u64::from(domain.imbalance_pct());
    let imbalance = 1024 * (pct - 100) / 100;
    let numa = domain.flags().contains(SdFlags::NUMA);
    !(numa && remote.avg_load + imbalance >= here.avg_load)
        && remote.avg_load < here.avg_load + imbalance
        && (100 * here.avg_load > pct * remote.avg_load || broken(Mutation::ForkOnSmallLead))
}

fn spare_differs(
    policy: &Policy,
    wakeup: &Wakeup<'_>,
    domain: &SchedDomain,
    local_group: &SchedGroup,
    here: &GroupStats,
    remote: &GroupStats,
) -> bool {
    // DEVIATION: the preferred node of NUMA balancing is not modelled.
    if domain.flags().contains(SdFlags::NUMA) {
        let numa_nr = domain.imb_numa_nr().unwrap_or(0);
        let stays = match policy.kernel() {
            Kernel::V5_5 | Kernel::V5_9 => here.idle_cpus > 0,
            Kernel::V5_15 => u64::from(here.nr_running) < domain.weight() as u64 / 4,
            Kernel::V5_19 => here.nr_running < numa_nr,
            Kernel::V6_1 | Kernel::Eevdf202304 | Kernel::V6_6 | Kernel::V6_12 | Kernel::V7_2 => {
                let usable = local_group.span().intersection(wakeup.allowed).len();
                let numa_nr = numa_nr.min(u32::try_from(usable).unwrap_or(u32::MAX));
                let imbalance = here.idle_cpus.abs_diff(remote.idle_cpus);
                adjust_numa_imbalance(imbalance, here.nr_running + 1, numa_nr) == 0
            }
        };
        if stays {
            return false;
        }
    }
    here.idle_cpus < remote.idle_cpus || (broken(Mutation::ForkOnTie) && here.idle_cpus == remote.idle_cpus)
}

/// A small imbalance between nodes is allowed while the destination runs few tasks.
///
/// Models: adjust_numa_imbalance(), v5.18–v7.2.
pub(crate) const fn adjust_numa_imbalance(imbalance: u32, dst_running: u32, imb_numa_nr: u32) -> u32 {
    if dst_running > imb_numa_nr {
        return imbalance;
    }
    if imbalance <= 2 { 0 } else { imbalance }
}

/// The CPU of a group with the shallowest idle state, among equals the one that went idle last; without an idle one the
/// least loaded.
///
/// Models: sched_balance_find_dst_group_cpu(), find_idlest_group_cpu(), v5.5–v7.2.
fn idlest_cpu(
    policy: &Policy,
    wakeup: &Wakeup<'_>,
    group: &SchedGroup,
    this: CpuId,
    view: &mut dyn SlowView,
) -> CpuId {
    if group.weight() == 1 {
        return group.span().lowest().unwrap_or(this);
    }
    let mut best_latency = None::<u64>;
    let mut best_stamp = 0;
    let mut idle = None;
    let mut sched_idle = None;
    let mut least = (u64::MAX, this);
    for cpu in group.span().iter().filter(|&cpu| wakeup.allowed.contains(cpu)) {
        let first_form = policy.kernel() == Kernel::V5_5;
        if !first_form && view.sched_idle(cpu) && !broken(Mutation::SchedIdleNotTaken) {
            return cpu;
        }
        if view.available_idle(cpu) {
            let (latency, stamp) = (view.exit_latency(cpu), view.idle_stamp(cpu));
            let shallower = !broken(Mutation::IdleStateIgnored)
                && latency.is_some_and(|latency| best_latency.is_none_or(|best| latency < best));
            if shallower {
                best_latency = latency;
                best_stamp = stamp;
                idle = Some(cpu);
            } else if (latency.is_none() || latency == best_latency)
                && (stamp > best_stamp || (broken(Mutation::LastOfEquallyIdle) && stamp == best_stamp))
            {
                best_stamp = stamp;
                idle = Some(cpu);
            }
        } else if idle.is_none() {
            if first_form && view.sched_idle(cpu) {
                sched_idle = sched_idle.or(Some(cpu));
                continue;
            }
            let load = view.load(cpu);
            if load < least.0 {
                least = (load, cpu);
            }
        }
    }
    idle.or(sched_idle).unwrap_or(least.1)
}
