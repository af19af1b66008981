//! How much to move, and in what unit.

use super::Balancer;
use super::groups::{Env, Groups};
use crate::mutation::{Mutation, broken};
use crate::wakeup::adjust_numa_imbalance;
use crate::{GroupType, Kernel};
use ttwu_model::SdFlags;

/// In what unit an imbalance is counted.
///
/// Models: enum migration_type, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// `task_h_load`.
    Load,
    /// `task_util_est`.
    Util,
    /// Tasks.
    Task,
}

/// What is to be moved. Goes below 0 by what the last task is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Imbalance {
    pub(super) unit: Unit,
    pub(super) amount: i64,
}

const fn tasks(amount: u32) -> Imbalance {
    Imbalance { unit: Unit::Task, amount: amount as i64 }
}

const NONE: Imbalance = tasks(0);

impl Balancer<'_> {
    /// How much the busiest group is to lose. An amount of 0 means that nothing is to be done.
    ///
    /// Models: calculate_imbalance(), v5.5–v7.2.
    pub(super) fn imbalance(&mut self, env: &Env<'_>, groups: &mut Groups<'_>) -> Imbalance {
        let Some(busiest) = groups.busiest else { return NONE };
        match busiest.kind {
            GroupType::Imbalanced | GroupType::SmtBalance => return tasks(1),
            GroupType::HasSpare | GroupType::FullyBusy | GroupType::Overloaded => {}
        }
        if groups.local.kind == GroupType::HasSpare {
            return self.spare_imbalance(env, groups);
        }
        let kernel = self.policy.kernel();
        if groups.local.kind < GroupType::Overloaded {
            groups.local.avg_load = groups.local.average();
            if groups.local.avg_load >= busiest.avg_load {
                return NONE;
            }
            if kernel >= Kernel::V6_1 && groups.local.avg_load >= groups.average() {
                return NONE;
            }
        }
        // The kernel's differences are unsigned: one that would be negative is huge, so that the other one decides.
        let average = groups.average();
        let lead = |more: u64, less: u64| more.checked_sub(less).unwrap_or(u64::MAX);
        let above = lead(busiest.avg_load, average).saturating_mul(busiest.capacity);
        let below = lead(average, groups.local.avg_load).saturating_mul(groups.local.capacity);
        Imbalance { unit: Unit::Load, amount: signed(above.min(below) / 1024) }
    }

    /// The local group has room.
    fn spare_imbalance(&mut self, env: &Env<'_>, groups: &Groups<'_>) -> Imbalance {
        let (kernel, local) = (self.policy.kernel(), &groups.local);
        let Some(busiest) = groups.busiest.as_ref() else { return NONE };
        let shares_llc = kernel >= Kernel::V5_15 && env.has(SdFlags::SHARE_LLC);
        if busiest.kind > GroupType::FullyBusy && !shares_llc {
            let room = local.capacity.max(local.util) - local.util;
            // An idle CPU still takes one task from an overloaded group when utilisation says that there is no room.
            if room == 0 && env.is_idle() {
                return tasks(1);
            }
            return Imbalance { unit: Unit::Util, amount: signed(room) };
        }
        let lead = if busiest.weight == 1 || self.prefers_sibling(env) {
            self.sibling_difference(env, groups, busiest)
        } else {
            local.idle_cpus.saturating_sub(busiest.idle_cpus)
        };
        let numa = env.has(SdFlags::NUMA);
        let numa_nr = env.domain.imb_numa_nr().unwrap_or(0);
        let half = if broken(Mutation::WholeImbalance) { lead } else { lead >> 1 };
        tasks(match kernel {
            Kernel::V5_9 if numa && busiest.nr_running <= 2 => 0,
            Kernel::V5_15 if numa && busiest.nr_running < busiest.weight / 4 && half <= 2 => 0,
            Kernel::V5_5 | Kernel::V5_9 | Kernel::V5_15 => half,
            Kernel::V5_19 if numa => adjust_numa_imbalance(half, local.nr_running + 1, numa_nr),
            Kernel::V5_19 => half,
            Kernel::V6_1 | Kernel::Eevdf202304 | Kernel::V6_6 | Kernel::V6_12 | Kernel::V7_2 => {
                if numa && !broken(Mutation::NumaAllowanceMissing) {
                    adjust_numa_imbalance(lead, local.nr_running + 1, numa_nr) >> 1
                } else {
                    half
                }
            }
        })
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
