//! Statistics of a domain's groups, and which group is the busiest.

use super::{Balancer, IdleType, Work, nr_idle_scan};
use crate::mutation::{Mutation, broken};
use crate::wakeup::{GroupSums, classify};
use crate::{Feature, GroupType, Kernel, Machine};
use ttwu_model::{CpuId, CpuSet, SchedDomain, SchedGroup, SdFlags};

/// One pass: who balances what.
pub(super) struct Env<'m> {
    /// The CPU that balances.
    pub(super) owner: CpuId,
    /// The CPU that gets the tasks; another one of its group when affinity demands it.
    pub(super) dst: CpuId,
    pub(super) idle: IdleType,
    pub(super) level: usize,
    pub(super) domain: &'m SchedDomain,
    pub(super) child: Option<&'m SchedDomain>,
    /// The domain above.
    pub(super) parent: Option<&'m SchedDomain>,
    /// CPUs left out because all their tasks are pinned, or tried as destination. Empty sets cost no memory.
    pub(super) excluded: CpuSet,
    pub(super) work: Work,
}

impl<'m> Env<'m> {
    pub(super) fn new(machine: &'m Machine, owner: CpuId, level: usize, idle: IdleType) -> Self {
        let domains = machine.domains().of(owner);
        Self {
            owner,
            dst: owner,
            idle,
            level,
            domain: &domains[level],
            child: level.checked_sub(1).map(|below| &domains[below]),
            parent: domains.get(level + 1),
            excluded: CpuSet::new(),
            work: Work::default(),
        }
    }

    pub(super) fn has(&self, flag: SdFlags) -> bool {
        self.domain.flags().contains(flag)
    }

    /// Does the balancing CPU have time?
    pub(super) fn is_idle(&self) -> bool {
        self.idle != IdleType::Busy
    }
}

/// A group with its statistics.
#[derive(Clone, Copy)]
pub(super) struct Group<'m> {
    pub(super) group: &'m SchedGroup,
    pub(super) kind: GroupType,
    /// Load per capacity; computed for overloaded groups, and for the local one when needed.
    pub(super) avg_load: u64,
    pub(super) load: u64,
    pub(super) util: u64,
    pub(super) capacity: u64,
    pub(super) nr_running: u32,
    pub(super) h_nr: u32,
    pub(super) idle_cpus: u32,
    pub(super) weight: u32,
}

impl Group<'_> {
    pub(super) fn average(&self) -> u64 {
        (self.load * 1024).checked_div(self.capacity).unwrap_or(0)
    }

    fn is_smt(&self) -> bool {
        self.group.flags().contains(SdFlags::SHARE_CPUCAPACITY)
    }
}

/// The local group, the busiest other one, and sums over the domain.
pub(super) struct Groups<'m> {
    pub(super) local: Group<'m>,
    pub(super) busiest: Option<Group<'m>>,
    pub(super) load: u64,
    pub(super) capacity: u64,
}

impl Groups<'_> {
    /// Mean load per capacity of the domain.
    pub(super) fn average(&self) -> u64 {
        (self.load * 1024).checked_div(self.capacity).unwrap_or(0)
    }
}

impl<'m> Balancer<'m> {
    /// Models: update_sg_lb_stats(), group_classify(), v5.5–v7.2. DEVIATION: a group's capacity is the sum of what the CPUs have
    /// now; the kernel refreshes it once a balance interval.
    fn group_stats(
        &mut self,
        env: &mut Env<'_>,
        group: &'m SchedGroup,
        queued_twice: &mut bool,
    ) -> Group<'m> {
        let kernel = self.policy.kernel();
        let mut sums = GroupSums::default();
        let mut idle_cpus = 0;
        let mut h_nr = 0;
        for cpu in group.span().iter() {
            let stats = self.view.stats(cpu);
            sums.capacity += stats.capacity;
            if env.excluded.contains(cpu) {
                continue;
            }
            env.work.cpus += 1;
            sums.load += stats.load;
            sums.util += stats.util;
            sums.runnable += stats.runnable;
            sums.nr_running += stats.nr_running;
            h_nr += stats.h_nr;
            *queued_twice |= stats.nr_running > 1;
            idle_cpus += u32::from(stats.nr_running == 0 && stats.idle);
        }
        let weight = u32::try_from(group.weight()).unwrap_or(u32::MAX);
        let imbalanced = self.state.is_imbalanced(group.sgc());
        let mut kind = classify(kernel, u64::from(env.domain.imbalance_pct()), weight, &sums, imbalanced);
        let local = group.span().contains(env.dst);
        let smt = group.flags().contains(SdFlags::SHARE_CPUCAPACITY) && h_nr > 1;
        if kernel >= Kernel::V6_6 && !local && env.is_idle() && smt {
            // It ranks below the imbalanced ones, above all with time to spare.
            kind = kind.max(GroupType::SmtBalance);
        }
        let mut stats = Group {
            group,
            kind,
            avg_load: 0,
            load: sums.load,
            util: sums.util,
            capacity: sums.capacity,
            nr_running: sums.nr_running,
            h_nr,
            idle_cpus,
            weight,
        };
        if kind == GroupType::Overloaded {
            stats.avg_load = stats.average();
        }
        stats
    }

    /// Statistics of all groups in ring order, and what a pass leaves behind: the machine's overload flag (top level), and at
    /// the LLC's level how far idle searches may look.
    ///
    /// Models: update_sd_lb_stats(), update_idle_cpu_scan(), v5.5–v7.2.
    pub(super) fn domain_stats(&mut self, env: &mut Env<'m>) -> Option<Groups<'m>> {
        let mut local = None;
        let mut busiest: Option<Group<'m>> = None;
        let (mut load, mut capacity, mut util) = (0, 0, 0);
        let mut queued_twice = false;
        let machine = self.machine;
        for group in machine.domains().groups_of(env.domain) {
            let stats = self.group_stats(env, group, &mut queued_twice);
            load += stats.load;
            capacity += stats.capacity;
            util += stats.util;
            if group.span().contains(env.dst) && local.is_none() {
                local = Some(stats);
            } else if self.busier(&stats, busiest.as_ref()) {
                busiest = Some(stats);
            }
        }
        if env.parent.is_none() {
            self.state.overloaded = queued_twice;
        }
        if self.policy.has(Feature::SisUtil) && env.idle != IdleType::NewlyIdle {
            let domains = self.machine.domains();
            let weight = env.domain.weight() as u64;
            if u64::from(domains.llc_size(env.dst)) == weight && domains.llc(env.dst).is_some() {
                let pct = u64::from(env.domain.imbalance_pct());
                self.state.llc(self.machine, env.dst).nr_idle_scan = nr_idle_scan(util, weight, pct);
            }
        }
        Some(Groups { local: local?, busiest, load, capacity })
    }

    /// Is `new` a better group to pull from than `best`?
    ///
    /// Models: update_sd_pick_busiest(), v5.5–v7.2. DEVIATION: preferences between groups with and without SMT (hybrid
    /// machines) are not modelled.
    fn busier(&self, new: &Group<'_>, best: Option<&Group<'_>>) -> bool {
        if new.h_nr == 0 {
            return false;
        }
        let Some(best) = best else { return true };
        if new.kind != best.kind {
            return new.kind > best.kind;
        }
        let later = self.policy.kernel() >= Kernel::V6_6 && !best.is_smt();
        let spare = || {
            if broken(Mutation::BusiestIgnoresIdle) {
                return new.nr_running > best.nr_running;
            }
            new.idle_cpus < best.idle_cpus
                || (new.idle_cpus == best.idle_cpus && new.nr_running > best.nr_running)
        };
        match new.kind {
            GroupType::Overloaded => new.avg_load > best.avg_load,
            GroupType::Imbalanced => false,
            GroupType::SmtBalance if new.idle_cpus != 0 || best.idle_cpus != 0 => spare(),
            GroupType::SmtBalance | GroupType::FullyBusy => later,
            GroupType::HasSpare => spare(),
        }
    }

    /// Whether the busiest group is to be relieved at all.
    ///
    /// Models: find_busiest_group(), v5.5–v7.2.
    pub(super) fn should_relieve(&mut self, env: &Env<'_>, groups: &mut Groups<'_>) -> bool {
        let Some(busiest) = groups.busiest else { return false };
        if busiest.kind == GroupType::Imbalanced {
            return true;
        }
        if groups.local.kind > busiest.kind {
            return false;
        }
        if groups.local.kind == GroupType::Overloaded {
            let local = groups.local.avg_load;
            let pct = u64::from(env.domain.imbalance_pct());
            if local >= busiest.avg_load || local >= groups.average() || 100 * busiest.avg_load <= pct * local
            {
                return false;
            }
        }
        let has_spare = groups.local.kind == GroupType::HasSpare;
        if self.prefers_sibling(env) && has_spare && self.sibling_difference(env, groups, &busiest) > 1 {
            return true;
        }
        if busiest.kind == GroupType::Overloaded {
            return true;
        }
        let threshold =
            if broken(Mutation::IdleCpusInclusive) { busiest.idle_cpus } else { busiest.idle_cpus + 1 };
        env.is_idle() && !(busiest.weight > 1 && groups.local.idle_cpus <= threshold) && busiest.h_nr != 1
    }

    /// Do tasks spread over the groups of this domain?
    pub(super) fn prefers_sibling(&self, env: &Env<'_>) -> bool {
        env.child.is_some_and(|child| child.flags().contains(SdFlags::PREFER_SIBLING))
    }

    /// By how many tasks the busiest group leads; from v6.6 on in proportion to the groups' cores, and 0 for a busy CPU.
    ///
    /// Models: sibling_imbalance(), v6.6–v7.2; find_busiest_group(), v5.5–v6.1.
    pub(super) fn sibling_difference(&self, env: &Env<'_>, groups: &Groups<'_>, busiest: &Group<'_>) -> u32 {
        let local = &groups.local;
        if self.policy.kernel() < Kernel::V6_6 {
            return busiest.nr_running.saturating_sub(local.nr_running);
        }
        if !env.is_idle() || busiest.nr_running == 0 {
            return 0;
        }
        let (here, there) = (self.cores(local.group), self.cores(busiest.group));
        if here == there {
            return busiest.nr_running.saturating_sub(local.nr_running);
        }
        proportional_lead((here, local.nr_running), (there, busiest.nr_running))
    }

    fn cores(&self, group: &SchedGroup) -> u32 {
        if !self.machine.domains().smt_active() {
            return u32::try_from(group.weight()).unwrap_or(u32::MAX);
        }
        let first = |cpu: &CpuId| self.machine.smt(*cpu).lowest() == Some(*cpu);
        u32::try_from(group.span().iter().filter(first).count()).unwrap_or(u32::MAX)
    }
}

/// By how many tasks `there` leads over `here`, both as (cores, tasks), when each is to have tasks in proportion to its cores.
pub(super) const fn proportional_lead(here: (u32, u32), there: (u32, u32)) -> u32 {
    let cores = here.0 + there.0;
    let lead = (here.0 * there.1).saturating_sub(there.0 * here.1);
    let lead = (2 * lead + cores) / cores;
    if lead <= 1 && here.1 == 0 && there.1 > 1 { 2 } else { lead }
}
