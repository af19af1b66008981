//! Periodic balancing: who is due, and what a tick starts.

use super::nohz::KickReason;
use super::state::after;
use super::{Balancer, IdleType, Work};
use crate::Kernel;
use crate::mutation::{Mutation, broken};
use ttwu_model::CpuId;

/// What a tick asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TickWork {
    /// Run [`Balancer::softirq`] on this CPU.
    pub balance: bool,
    /// Interrupt this idle CPU and run [`Balancer::nohz_pass`] there.
    pub kick: Option<(CpuId, KickReason)>,
}

impl Balancer<'_> {
    /// A tick on `cpu`: what it is to start. Call it on busy CPUs and on idle ones whose tick runs.
    ///
    /// Models: trigger_load_balance(), sched_balance_trigger(), v5.5–v7.2.
    pub fn tick(&mut self, cpu: CpuId) -> TickWork {
        let jiffies = self.view.jiffies();
        let balance = !after(self.state.cpu(cpu).next_balance, jiffies);
        TickWork { balance, kick: self.nohz_kick(cpu) }
    }

    /// The periodic pass of `cpu` itself.
    ///
    /// Models: run_rebalance_domains(), sched_balance_softirq(), v5.5–v7.2.
    pub fn softirq(&mut self, cpu: CpuId) -> Work {
        self.view.refresh(cpu);
        let idle = if self.view.idle(cpu) { IdleType::Idle } else { IdleType::Busy };
        let mut work = self.rebalance(cpu, idle);
        work.refreshed = true;
        work
    }

    /// Balances every level of `cpu` that is due.
    ///
    /// Models: rebalance_domains(), sched_balance_domains(), v5.5–v7.2.
    pub(super) fn rebalance(&mut self, cpu: CpuId, mut idle: IdleType) -> Work {
        let machine = self.machine;
        let hz = machine.tunables().hz;
        let jiffies = self.view.jiffies();
        let mut work = Work::default();
        let mut goes_on = true;
        let (mut decayed, mut costs_ns) = (false, 0);
        let mut next: Option<u64> = None;
        let mut busy = idle == IdleType::Busy && !self.view.sched_idle(cpu);
        for level in 0..machine.domains().of(cpu).len() {
            decayed |= self.state.domain(cpu, level).decay_cost(jiffies, hz);
            costs_ns += self.state.domain(cpu, level).max_newidle_lb_cost_ns;
            if !goes_on {
                // Another CPU balances for this group; only the costs of further levels matter, if some decayed.
                if decayed {
                    continue;
                }
                break;
            }
            let due =
                self.state.domain(cpu, level).last_balance.wrapping_add(self.interval(cpu, level, busy));
            if !after(due, jiffies) {
                let pass = self.pass(cpu, level, idle);
                work.add(pass.work);
                goes_on = !pass.refused;
                if pass.moved > 0 {
                    idle = if self.view.idle(cpu) { IdleType::Idle } else { IdleType::Busy };
                    busy = idle == IdleType::Busy && !self.view.sched_idle(cpu);
                }
                self.state.domain(cpu, level).last_balance = jiffies;
            }
            let due =
                self.state.domain(cpu, level).last_balance.wrapping_add(self.interval(cpu, level, busy));
            if next.is_none_or(|next| after(next, due)) {
                next = Some(due);
            }
        }
        let state = self.state.cpu(cpu);
        if decayed {
            state.max_idle_balance_cost_ns = costs_ns.max(machine.tunables().migration_cost_ns);
        }
        // Without domains, look again in a minute.
        state.next_balance = next.unwrap_or_else(|| jiffies.wrapping_add(60 * hz));
        work
    }

    /// Time between passes over a level, jiffies.
    ///
    /// Models: get_sd_balance_interval(), v5.5–v7.2.
    pub(super) fn interval(&mut self, cpu: CpuId, level: usize, busy: bool) -> u64 {
        let hz = self.machine.tunables().hz;
        let domain = &self.machine.domains().of(cpu)[level];
        let mut interval_ms = u64::from(self.state.domain(cpu, level).balance_interval_ms);
        if busy && !broken(Mutation::BusyFactorMissing) {
            interval_ms *= u64::from(domain.busy_factor());
        }
        let mut interval = (interval_ms * hz).div_ceil(1000);
        // One less, so that the levels of busy CPUs do not all fall due at once (v5.10 and later).
        if busy && self.policy.kernel() > Kernel::V5_9 {
            interval = interval.saturating_sub(1);
        }
        let longest = hz * self.machine.cpus_online() as u64 / 10;
        interval.clamp(1, longest.max(1))
    }
}
