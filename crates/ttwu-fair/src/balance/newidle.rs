//! A CPU about to go idle looks for work.
//!
//! The kernel drops the queue's lock for that: tasks may be queued on the CPU, and wake-ups may come under way, while it looks.
//! So a pass can be made in steps ([`Balancer::newidle_begin`] and what follows), between which its caller lets time pass;
//! [`Balancer::newidle`] makes all of them at one instant.

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

/// A newidle pass under way, between two of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NewIdlePass {
    /// The level at work, or the next one to be asked about.
    level: usize,
    /// How many passes this one stands for, by chance.
    weight: u32,
    /// Were the CPU's averages refreshed without being counted yet?
    refreshed: bool,
    last: Option<Pass>,
    moved: u32,
    work: Work,
    cost_ns: u64,
}

impl Balancer<'_> {
    /// `cpu` has nothing left to run. Pulled tasks are queued on it when this returns, and the caller then picks
    /// again. The whole pass is one instant.
    ///
    /// Models: newidle_balance(), sched_balance_newidle(), v5.5–v7.2.
    pub fn newidle(&mut self, cpu: CpuId) -> NewIdle {
        let Some(mut pass) = self.newidle_begin(cpu) else { return NewIdle::default() };
        while self.newidle_next(cpu, &mut pass).is_some() {
            let work = self.newidle_look(cpu, &mut pass);
            let cost_ns = self.view.work_ns(work);
            self.newidle_took(cpu, &mut pass, cost_ns);
        }
        self.newidle_end(cpu, &pass)
    }

    /// `cpu` has nothing left to run: the first step of a pass, or `None` if there is to be none.
    ///
    /// Models: newidle_balance(), sched_balance_newidle(), v5.5–v7.2: up to the loop.
    pub fn newidle_begin(&mut self, cpu: CpuId) -> Option<NewIdlePass> {
        let kernel = self.policy.kernel();
        // v5.5 has no flag for wake-ups under way.
        if kernel >= Kernel::V5_9 && self.view.pending(cpu) {
            return None;
        }
        self.state.cpu(cpu).idle_stamp_ns = self.view.now_ns();
        if self.skips_newidle(cpu) {
            if !self.machine.domains().of(cpu).is_empty() {
                self.pull_next_balance(cpu, 0);
            }
            return None;
        }
        self.view.refresh(cpu);
        // v5.17 counts the refresh of the averages as part of the first pass.
        Some(NewIdlePass { refreshed: kernel > Kernel::V5_15, ..NewIdlePass::default() })
    }

    /// Goes on to the next level worth a look. Returns what looking at it will take, as far as that is known before; `None` when
    /// the pass is over. What follows, after that time, is [`Balancer::newidle_look`].
    pub fn newidle_next(&mut self, cpu: CpuId, pass: &mut NewIdlePass) -> Option<Work> {
        let machine = self.machine;
        let domains = machine.domains().of(cpu);
        if let Some(last) = pass.last.take() {
            if self.newidle_stops(cpu, &last) {
                return None;
            }
            pass.level += 1;
        }
        while let Some(domain) = domains.get(pass.level) {
            let level = pass.level;
            self.pull_next_balance(cpu, level);
            let longest = self.state.domain(cpu, level).max_newidle_lb_cost_ns;
            if self.state.cpu(cpu).scan.avg_idle_ns < pass.cost_ns + longest {
                return None;
            }
            let mut nothing = Pass { moved: 0, refused: false, work: Work::default() };
            if domain.flags().contains(SdFlags::BALANCE_NEWIDLE) {
                if let Some(weight) = self.dice(cpu, level) {
                    pass.weight = weight;
                    if self.newidle_may_look(cpu) {
                        let cpus = u32::try_from(domain.span().len()).unwrap_or(u32::MAX);
                        return Some(Work { cpus, ..Work::default() });
                    }
                    // No look any more; that it took no time is counted all the same.
                    self.refuse(cpu, level, IdleType::NewlyIdle);
                    nothing.refused = true;
                    self.newidle_took(cpu, pass, 0);
                } else {
                    pass.level += 1;
                    continue;
                }
            }
            pass.last = None;
            if self.newidle_stops(cpu, &nothing) {
                return None;
            }
            pass.level += 1;
        }
        None
    }

    /// Looks at the level that [`Balancer::newidle_next`] went to, and pulls. Returns what was done.
    ///
    /// Models: load_balance(), sched_balance_rq(), v5.5–v7.2. Whether the CPU may still look is asked before, as there: who is
    /// woken on it meanwhile does not keep it from pulling.
    pub fn newidle_look(&mut self, cpu: CpuId, pass: &mut NewIdlePass) -> Work {
        let mut done = self.newidle_pass(cpu, pass.level);
        done.work.refreshed = std::mem::take(&mut pass.refreshed);
        pass.moved += done.moved;
        pass.work.add(done.work);
        pass.last = Some(done);
        done.work
    }

    /// The look at the level took so long, ns.
    pub fn newidle_took(&mut self, cpu: CpuId, pass: &mut NewIdlePass, cost_ns: u64) {
        let hz = self.machine.tunables().hz;
        pass.cost_ns += cost_ns;
        let jiffies = self.view.jiffies();
        self.state.domain(cpu, pass.level).note_cost(self.policy, cost_ns, jiffies, hz);
        if self.policy.has(Feature::NiRandom) {
            let moved = pass.last.is_some_and(|last| last.moved > 0);
            self.count_newidle(cpu, pass.level, if moved { pass.weight } else { 0 });
        }
    }

    /// The pass is over: does the CPU have something to run?
    pub fn newidle_end(&mut self, cpu: CpuId, pass: &NewIdlePass) -> NewIdle {
        let state = self.state.cpu(cpu);
        state.max_idle_balance_cost_ns = state.max_idle_balance_cost_ns.max(pass.cost_ns);
        let has_work = pass.moved > 0 || self.view.nr_running(cpu) > 0;
        if has_work {
            self.state.cpu(cpu).idle_stamp_ns = 0;
        }
        NewIdle { moved: pass.moved, has_work, work: pass.work, cost_ns: pass.cost_ns }
    }

    /// Does the pass end with this level?
    fn newidle_stops(&mut self, cpu: CpuId, last: &Pass) -> bool {
        let kernel = self.policy.kernel();
        if kernel >= Kernel::V6_12 {
            return last.moved > 0 || last.refused;
        }
        last.moved > 0 || self.view.nr_running(cpu) > 0 || (kernel >= Kernel::V5_9 && self.view.pending(cpu))
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
