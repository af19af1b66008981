//! Idle CPUs whose tick is stopped: others balance for them.

use super::state::after;
use super::{Balancer, IdleType, Work};
use crate::mutation::{Mutation, broken};
use ttwu_model::CpuId;

/// Why a busy CPU wakes an idle one to balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KickReason {
    /// Two tasks or more are queued on it.
    Overloaded,
    /// Other classes take much of its capacity from a fair task.
    CapacityReduced,
    /// More than one CPU of its LLC is busy.
    LlcBusy,
}

impl Balancer<'_> {
    /// `cpu` stops its tick.
    ///
    /// Models: nohz_balance_enter_idle(), v5.5–v7.2.
    pub fn nohz_enter(&mut self, cpu: CpuId) {
        if self.state.nohz_idle.insert(cpu) {
            self.state.llc(self.machine, cpu).nr_busy_cpus -= 1;
        }
    }

    /// The first tick of `cpu` after its tick was stopped ([`Balancer::tick`] calls this).
    ///
    /// Models: nohz_balance_exit_idle(), v5.5–v7.2.
    pub fn nohz_exit(&mut self, cpu: CpuId) {
        if self.state.nohz_idle.remove(cpu) {
            self.state.llc(self.machine, cpu).nr_busy_cpus += 1;
        }
    }

    /// Which idle CPU a tick on `cpu` interrupts, if any.
    ///
    /// Models: nohz_balancer_kick(), find_new_ilb(), v5.5–v7.2. DEVIATION: kicks that only refresh blocked load are left to the
    /// caller; all CPUs count as housekeeping.
    pub(super) fn nohz_kick(&mut self, cpu: CpuId) -> Option<(CpuId, KickReason)> {
        if self.view.idle(cpu) {
            return None;
        }
        self.nohz_exit(cpu);
        let jiffies = self.view.jiffies();
        if self.state.nohz_idle.is_empty() || after(self.state.nohz_next_balance, jiffies) {
            return None;
        }
        let reason = self.kick_reason(cpu)?;
        let idle = &self.state.nohz_idle;
        let target = idle.iter().find(|&other| other != cpu && self.view.idle(other))?;
        Some((target, reason))
    }

    fn kick_reason(&mut self, cpu: CpuId) -> Option<KickReason> {
        let two = if broken(Mutation::KickAtThree) { 3 } else { 2 };
        if self.view.nr_running(cpu) >= two {
            return Some(KickReason::Overloaded);
        }
        let domains = self.machine.domains();
        let stats = self.view.stats(cpu);
        if let Some(lowest) = domains.of(cpu).first()
            && stats.h_nr >= 1
            && stats.capacity * u64::from(lowest.imbalance_pct()) < self.machine.capacity_orig(cpu) * 100
        {
            return Some(KickReason::CapacityReduced);
        }
        let busy = domains.llc(cpu).is_some() && self.state.llc(self.machine, cpu).nr_busy_cpus > 1;
        busy.then_some(KickReason::LlcBusy)
    }

    /// `cpu`, kicked, balances for all idle CPUs without tick, itself last, until it gets work itself.
    ///
    /// Models: nohz_idle_balance(), _nohz_idle_balance(), v5.5–v7.2. DEVIATION: v5.5–v5.11 went through the others in
    /// ascending order; here all go round from the CPU after the kicked one, as later.
    pub fn nohz_pass(&mut self, cpu: CpuId) -> Work {
        let mut work = Work::default();
        let machine = self.machine;
        if !self.view.idle(cpu) {
            return work;
        }
        let jiffies = self.view.jiffies();
        let mut next: Option<u64> = None;
        let bound = machine.cpu_bound();
        for step in 1..=bound {
            let number = (cpu.index() + step) % bound;
            let other = CpuId::new(u16::try_from(number).expect("below the bound, which CPU numbers are"));
            if !(self.state.nohz_idle.contains(other) || other == cpu) || !self.view.idle(other) {
                continue;
            }
            if self.view.nr_running(cpu) > 0 || self.view.pending(cpu) {
                // The rest is due at once, for the next kick.
                self.state.nohz_next_balance = jiffies;
                return work;
            }
            self.view.refresh(other);
            work.refreshed = true;
            if !after(self.state.cpu(other).next_balance, jiffies) {
                work.add(self.rebalance(other, IdleType::Idle));
            }
            let due = self.state.cpu(other).next_balance;
            if next.is_none_or(|next| after(next, due)) {
                next = Some(due);
            }
        }
        if let Some(next) = next {
            self.state.nohz_next_balance = next;
        }
        work
    }
}
