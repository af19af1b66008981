//! A CPU about to go idle looks for work.

use super::pass::Pass;
use super::state::after;
use super::{Balancer, IdleType, Work};
use crate::mutation::{Mutation, broken};
use crate::{Feature, Kernel};
use ttwu_model::{CpuId, SdFlags};

/// What a newidle pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NewIdle {
    /// Tasks pulled.
    pub moved: u32,
    /// Is something queued on the CPU now (pulled, or woken meanwhile)?
    pub has_work: bool,
    /// What was done; nothing when the pass was skipped.
    pub work: Work,
    /// How long it took, ns.
    pub cost_ns: u64,
}

impl Balancer<'_> {
    /// `cpu` has nothing left to run. Pulled tasks are queued on it when this returns, and the caller then picks
    /// again.
    ///
    /// Models: newidle_balance(), sched_balance_newidle(), v5.5–v7.2.
    pub fn newidle(&mut self, cpu: CpuId) -> NewIdle {
        let kernel = self.policy.kernel();
        // v5.5 has no flag for wake-ups under way.
        if kernel >= Kernel::V5_9 && self.view.pending(cpu) {
            return NewIdle::default();
        }
        self.state.cpu(cpu).idle_stamp_ns = self.view.now_ns();
        if self.skips_newidle(cpu) {
            if !self.machine.domains().of(cpu).is_empty() {
                self.pull_next_balance(cpu, 0);
            }
            return NewIdle::default();
        }
        self.view.refresh(cpu);
        let mut answer = self.newidle_levels(cpu);
        let state = self.state.cpu(cpu);
        state.max_idle_balance_cost_ns = state.max_idle_balance_cost_ns.max(answer.cost_ns);
        answer.has_work = answer.moved > 0 || self.view.nr_running(cpu) > 0;
        if answer.has_work {
            self.state.cpu(cpu).idle_stamp_ns = 0;
        }
        answer
    }

    /// Is looking for work not worth the time?
    fn skips_newidle(&mut self, cpu: CpuId) -> bool {
        let avg_idle_ns = self.state.cpu(cpu).scan.avg_idle_ns;
        let nothing = !self.state.overloaded && !broken(Mutation::OverloadIgnored);
        if self.policy.kernel() <= Kernel::V5_15 {
            let limit = self.machine.tunables().migration_cost_ns;
            return nothing
                || avg_idle_ns < limit
                || (broken(Mutation::AvgIdleInclusive) && avg_idle_ns == limit);
        }
        if self.machine.domains().of(cpu).is_empty() {
            return false;
        }
        nothing || avg_idle_ns < self.state.domain(cpu, 0).max_newidle_lb_cost_ns
    }

    fn newidle_levels(&mut self, cpu: CpuId) -> NewIdle {
        let kernel = self.policy.kernel();
        let machine = self.machine;
        let hz = machine.tunables().hz;
        let mut answer = NewIdle::default();
        // v5.17 counts the refresh of the averages as part of the first pass.
        let mut refreshed = kernel > Kernel::V5_15;
        for (level, domain) in machine.domains().of(cpu).iter().enumerate() {
            self.pull_next_balance(cpu, level);
            let longest = self.state.domain(cpu, level).max_newidle_lb_cost_ns;
            if self.state.cpu(cpu).scan.avg_idle_ns < answer.cost_ns + longest {
                break;
            }
            let mut pass = Pass { moved: 0, refused: false, work: Work::default() };
            if domain.flags().contains(SdFlags::BALANCE_NEWIDLE) {
                let Some(weight) = self.dice(cpu, level) else { continue };
                pass = self.pass(cpu, level, IdleType::NewlyIdle);
                pass.work.refreshed = std::mem::take(&mut refreshed);
                let cost = self.view.work_ns(pass.work);
                answer.cost_ns += cost;
                answer.work.add(pass.work);
                let jiffies = self.view.jiffies();
                self.state.domain(cpu, level).note_cost(self.policy, cost, jiffies, hz);
                if self.policy.has(Feature::NiRandom) {
                    self.count_newidle(cpu, level, if pass.moved > 0 { weight } else { 0 });
                }
                answer.moved += pass.moved;
            }
            let stop = if kernel >= Kernel::V6_12 {
                pass.moved > 0 || pass.refused
            } else {
                pass.moved > 0
                    || self.view.nr_running(cpu) > 0
                    || (kernel >= Kernel::V5_9 && self.view.pending(cpu))
            };
            if stop {
                break;
            }
        }
        answer
    }

    /// Whether chance, by the share of passes that succeeded, lets this one be made, and how many it then stands for.
    ///
    /// Models: sched_balance_newidle(), NI_RANDOM of v6.1.y–v7.2.
    fn dice(&mut self, cpu: CpuId, level: usize) -> Option<u32> {
        if !self.policy.has(Feature::NiRandom) {
            return Some(1);
        }
        let ratio = self.state.domain(cpu, level).newidle_ratio;
        if self.policy.kernel() >= Kernel::V7_2 && ratio >= 1024 {
            return Some(1);
        }
        let weight = 1 + ratio;
        let drawn = self.state.draw() % 1024;
        if drawn > u64::from(weight) {
            self.count_newidle(cpu, level, 0);
            return None;
        }
        Some((1024 + weight / 2) / weight)
    }

    fn count_newidle(&mut self, cpu: CpuId, level: usize, success: u32) {
        let now_ns = self.view.now_ns();
        let by_rate = self.policy.has(Feature::NiRate);
        self.state.domain(cpu, level).count_newidle(by_rate, success, now_ns);
    }

    /// An idle CPU balances this level sooner than a busy one: its next periodic pass may have to come forward.
    ///
    /// Models: update_next_balance(), v5.5–v7.2.
    fn pull_next_balance(&mut self, cpu: CpuId, level: usize) {
        let next = self.state.domain(cpu, level).last_balance.wrapping_add(self.interval(cpu, level, false));
        let state = self.state.cpu(cpu);
        if after(state.next_balance, next) {
            state.next_balance = next;
        }
    }
}
