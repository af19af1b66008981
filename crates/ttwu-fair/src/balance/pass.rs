//! One pass of one CPU over one domain.

use super::detach::Walk;
use super::groups::Env;
use super::imbalance::{Imbalance, Unit};
use super::{ActiveBalance, Balancer, IdleType, Work};
use crate::Kernel;
use crate::mutation::{Mutation, broken};
use ttwu_model::{CpuId, SdFlags};

/// What a pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Pass {
    /// Tasks moved.
    pub(super) moved: u32,
    /// The CPU is not the one to balance here, nor further up.
    pub(super) refused: bool,
    pub(super) work: Work,
}

/// How a pass without moves ended.
enum Outcome {
    Balanced,
    AllPinned,
    OnePinned,
    Done,
}

impl<'m> Balancer<'m> {
    /// Balances `cpu`'s domain on `level` once.
    ///
    /// Models: load_balance(), sched_balance_rq(), v5.5–v7.2.
    pub(super) fn pass(&mut self, cpu: CpuId, level: usize, idle: IdleType) -> Pass {
        self.pass_of(cpu, level, idle, false)
    }

    /// The same for a newly idle CPU that was asked before its look took time.
    pub(super) fn newidle_pass(&mut self, cpu: CpuId, level: usize) -> Pass {
        self.pass_of(cpu, level, IdleType::NewlyIdle, true)
    }

    fn pass_of(&mut self, cpu: CpuId, level: usize, idle: IdleType, mut asked: bool) -> Pass {
        let mut env = Env::new(self.machine, cpu, level, idle);
        let mut pass = Pass { moved: 0, refused: false, work: Work::default() };
        let mut all_pinned = false;
        let outcome = loop {
            if !std::mem::take(&mut asked) && !self.should_balance(&env) {
                pass.refused = true;
                break Outcome::Balanced;
            }
            let Some((src, imbalance)) = self.find_busiest(&mut env) else { break Outcome::Balanced };
            let seen_max = self.machine.tunables().nr_migrate.min(u64::from(self.view.nr_running(src)));
            let mut walk = Walk::new(src, imbalance, seen_max);
            if self.view.nr_running(src) > 1 {
                pass.moved += self.move_all(&mut env, &mut walk);
                all_pinned = !walk.pinned.movable;
                self.note_pinned(&env, &walk);
                if all_pinned {
                    env.excluded.insert(src);
                    // Another queue may do better, unless none is left outside the local group.
                    if self.others_left(&env) {
                        continue;
                    }
                    break Outcome::AllPinned;
                }
            }
            break self.after_moves(&env, src, walk.imbalance, pass.moved);
        };
        self.settle(&env, &outcome, all_pinned);
        if matches!(outcome, Outcome::OnePinned) {
            pass.moved = 0;
        }
        pass.work = env.work;
        pass
    }

    /// A pass that ends before it begins, since the CPU has something to run by now.
    pub(super) fn refuse(&mut self, cpu: CpuId, level: usize, idle: IdleType) {
        let env = Env::new(self.machine, cpu, level, idle);
        self.settle(&env, &Outcome::Balanced, false);
    }

    /// The queue to pull from and how much.
    fn find_busiest(&mut self, env: &mut Env<'m>) -> Option<(CpuId, Imbalance)> {
        let mut groups = self.domain_stats(env)?;
        if !self.should_relieve(env, &mut groups) {
            return None;
        }
        let imbalance = self.imbalance(env, &mut groups);
        if imbalance.amount <= 0 {
            return None;
        }
        let src = self.busiest_queue(env, &groups.busiest?, imbalance)?;
        Some((src, imbalance))
    }

    /// Moves tasks, first to the CPU that balances, then to others of its group that the affinity of some tasks demands.
    fn move_all(&mut self, env: &mut Env<'_>, walk: &mut Walk) -> u32 {
        let mut total = 0;
        loop {
            let count = self.move_tasks(env, walk);
            total += u32::try_from(count).unwrap_or(u32::MAX);
            if count == super::detach::BREAK && walk.imbalance.amount > 0 {
                continue;
            }
            match walk.pinned.new_dst.take() {
                Some(other) if walk.imbalance.amount > 0 => {
                    env.excluded.insert(env.dst);
                    env.dst = other;
                    walk.seen = 0;
                }
                Some(_) | None => return total,
            }
        }
    }

    /// Tells the level above that affinity is in the way.
    fn note_pinned(&mut self, env: &Env<'_>, walk: &Walk) {
        if let Some(parent) = env.parent
            && walk.pinned.some
            && walk.imbalance.amount > 0
            && let Some(group) = self.machine.domains().groups_of(parent).next()
        {
            self.state.set_imbalanced(group.sgc(), true);
        }
    }

    /// Are there CPUs left to pull from?
    fn others_left(&self, env: &Env<'_>) -> bool {
        let local = self.machine.domains().groups_of(env.domain).next();
        let is_local = |cpu| local.is_some_and(|group| group.balance_mask().contains(cpu));
        env.domain.span().iter().any(|cpu| !env.excluded.contains(cpu) && !is_local(cpu))
    }

    /// Counts success or failure, and asks the stopper when the running task is to go.
    fn after_moves(&mut self, env: &Env<'_>, src: CpuId, left: Imbalance, moved: u32) -> Outcome {
        let mut active = false;
        if moved > 0 {
            self.state.domain(env.owner, env.level).nr_balance_failed = 0;
        } else {
            if env.idle != IdleType::NewlyIdle {
                self.state.domain(env.owner, env.level).nr_balance_failed += 1;
            }
            if self.needs_active(env, src, left.unit) {
                if !self.active_is_allowed(env.owner, src) {
                    return Outcome::OnePinned;
                }
                active = !std::mem::replace(&mut self.state.cpu(src).active_balance, true);
                if active {
                    if self.policy.kernel() <= Kernel::V5_9 {
                        // The stopper's own walk then takes a cache-hot task too.
                        self.state.domain(env.owner, env.level).nr_balance_failed =
                            env.domain.cache_nice_tries() + 1;
                    }
                    self.view.start_active(ActiveBalance { src, dst: env.owner });
                }
            }
        }
        let again = self.policy.kernel() >= Kernel::V5_15 && self.needs_active(env, src, left.unit);
        let state = self.state.domain(env.owner, env.level);
        if !active || again {
            state.balance_interval_ms = env.domain.min_interval_ms();
        } else if self.policy.kernel() <= Kernel::V5_9
            && state.balance_interval_ms < env.domain.max_interval_ms()
        {
            state.balance_interval_ms *= 2;
        }
        Outcome::Done
    }

    /// Is the task that runs on `src` to be pushed here?
    ///
    /// Models: need_active_balance(), v5.5–v7.2.
    fn needs_active(&mut self, env: &Env<'_>, src: CpuId, unit: Unit) -> bool {
        let failed = self.state.domain(env.owner, env.level).nr_balance_failed;
        let stubborn = failed > env.domain.cache_nice_tries() + 2;
        if stubborn && (self.policy.kernel() <= Kernel::V5_9 || unit == Unit::Task) {
            return true;
        }
        if !env.is_idle() || self.view.stats(src).h_nr != 1 || !self.capacity_is_reduced(env, src) {
            return false;
        }
        let pct = u64::from(env.domain.imbalance_pct());
        self.view.stats(src).capacity * pct < self.view.stats(env.owner).capacity * 100
    }

    /// The balancing intervals after a pass that found nothing to do or nothing that could be done.
    fn settle(&mut self, env: &Env<'_>, outcome: &Outcome, all_pinned: bool) {
        match outcome {
            Outcome::Done => return,
            Outcome::Balanced => {
                if let Some(parent) = env.parent
                    && !all_pinned
                    && let Some(group) = self.machine.domains().groups_of(parent).next()
                {
                    self.state.set_imbalanced(group.sgc(), false);
                }
                self.state.domain(env.owner, env.level).nr_balance_failed = 0;
            }
            Outcome::AllPinned => self.state.domain(env.owner, env.level).nr_balance_failed = 0,
            Outcome::OnePinned => {}
        }
        // A CPU that passes through idle often would stretch its interval by that alone.
        if env.idle == IdleType::NewlyIdle {
            return;
        }
        let state = self.state.domain(env.owner, env.level);
        let max = env.domain.max_interval_ms();
        if (all_pinned && state.balance_interval_ms < 512) || state.balance_interval_ms < max {
            state.balance_interval_ms *= 2;
        }
    }

    /// Has a newly idle CPU still nothing to run?
    pub(super) fn newidle_may_look(&mut self, cpu: CpuId) -> bool {
        self.policy.kernel() < Kernel::V6_1 || (self.view.nr_running(cpu) == 0 && !self.view.pending(cpu))
    }

    /// Is this CPU the one that balances for its group?
    ///
    /// Models: should_we_balance(), v5.5–v7.2.
    pub(super) fn should_balance(&mut self, env: &Env<'_>) -> bool {
        if env.excluded.contains(env.dst) {
            return false;
        }
        let kernel = self.policy.kernel();
        if env.idle == IdleType::NewlyIdle {
            return self.newidle_may_look(env.dst);
        }
        let machine = self.machine;
        let Some(local) = machine.domains().groups_of(env.domain).next() else { return false };
        let whole_cores = kernel >= Kernel::V6_6 && !env.has(SdFlags::SHARE_CPUCAPACITY);
        let mut idle_thread = None;
        for cpu in local.balance_mask().iter() {
            if env.excluded.contains(cpu) || !self.view.idle(cpu) {
                continue;
            }
            if whole_cores
                && !machine.smt(cpu).iter().all(|sibling| sibling == cpu || self.view.idle(sibling))
            {
                idle_thread = idle_thread.or(Some(cpu));
                continue;
            }
            return cpu == env.dst || broken(Mutation::EveryIdleBalances);
        }
        idle_thread.unwrap_or_else(|| local.balance_cpu()) == env.dst
    }
}
