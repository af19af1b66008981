//! Load balancing at work: the rules of `ttwu-fair` see this machine, move its tasks, and cost time.
//!
//! A newidle pass takes its time level by level: first the look, then, at one instant, what comes of it, then the moving.
//! Meanwhile the task that blocked is still current, interrupts wait, and others may queue tasks here or put them on the wake
//! list, which ends the pass before the next level.
//!
//! ```text
//! block ─ pick: nothing ─┬─ look at level 0 ─ pull? ─ move ─┬─ look at level 1 ─ ... ─ pick ─ switch
//! others see a busy CPU  └ woken here? avg_idle too short?  └ pulled? woken? pending?
//! ```
//!
//! A periodic pass, or one for all idle CPUs, is one instant, at which its effect shows; its time follows. DEVIATION: in reality
//! it takes its time first, and tasks wake meanwhile.

use super::cpu::{Arrival, Context, Looking};
use super::schedule::Why;
use super::task::{NOBODY, State};
use super::{Sim, cpu_id};
use crate::Cost;
use std::rc::Rc;
use ttwu_fair::{
    ActiveBalance, BalanceState, BalanceView, Balancer, CpuStats, EntityId, Kernel, Machine, TaskPolicy,
    TaskState, WakeupCheck, Work,
};
use ttwu_model::{CpuId, Level};

/// Why a pass is made, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Newidle,
    Periodic,
    Nohz,
    Active,
}

/// The machine as a pass sees it.
struct Pass<'a, 's> {
    sim: &'a mut Sim<'s>,
    /// Where it runs.
    this: usize,
    cause: Cause,
    from: usize,
    /// What notifying other CPUs cost, ns.
    notify_ns: u64,
}

impl<'s> Sim<'s> {
    fn balance<R>(
        &mut self,
        this: usize,
        cause: Cause,
        pass: impl FnOnce(&mut Balancer<'_>) -> R,
    ) -> (R, u64) {
        let mut state = self.balance.take().expect("passes do not nest");
        let machine: Rc<Machine> = Rc::clone(&self.machine);
        let scenario = self.scenario;
        let mut view = Pass { sim: self, this, cause, from: this, notify_ns: 0 };
        let mut balancer =
            Balancer { policy: &scenario.policy, machine: &machine, state: &mut state, view: &mut view };
        let result = pass(&mut balancer);
        let notify_ns = view.notify_ns;
        if std::mem::take(&mut self.overloaded_in_pass) {
            state.overloaded = true;
        }
        self.balance = Some(state);
        (result, notify_ns)
    }

    fn work_cost(&self, work: Work) -> u64 {
        u64::from(work.cpus) * self.costs.get(Cost::NewidleCpu)
            + u64::from(work.tasks_moved) * self.costs.get(Cost::MoveTask)
    }

    /// `cpu` has nothing left to run: does it look elsewhere? Then it chooses again at the end of its pass.
    pub(super) fn looks_for_work(&mut self, cpu: usize, why: Why) -> bool {
        let (pass, _) = self.balance(cpu, Cause::Newidle, |balancer| balancer.newidle_begin(cpu_id(cpu)));
        let Some(pass) = pass else { return false };
        self.counters.newidle_passes += 1;
        let now = self.now;
        self.cpus[cpu].looking = Looking { pass, why, since: now, level_since: now, looked: false };
        if self.looks_further(cpu) {
            return true;
        }
        let has_work = self.newidle_ends(cpu);
        debug_assert!(!has_work, "CPU {cpu} had nothing to run a moment ago");
        false
    }

    /// On to the next level, if there is one.
    fn looks_further(&mut self, cpu: usize) -> bool {
        let mut pass = self.cpus[cpu].looking.pass;
        let (work, _) =
            self.balance(cpu, Cause::Newidle, |balancer| balancer.newidle_next(cpu_id(cpu), &mut pass));
        let now = self.now;
        let state = &mut self.cpus[cpu];
        state.looking = Looking { pass, level_since: now, looked: false, ..state.looking };
        let Some(work) = work else { return false };
        state.enter(Context::NewIdle, now);
        self.begin(cpu, self.work_cost(work) * 1000, true);
        true
    }

    fn newidle_ends(&mut self, cpu: usize) -> bool {
        let pass = self.cpus[cpu].looking.pass;
        let (answer, _) =
            self.balance(cpu, Cause::Newidle, |balancer| balancer.newidle_end(cpu_id(cpu), &pass));
        answer.has_work
    }

    /// A stretch of a newidle pass is over: the look, or the moving.
    pub(super) fn looked(&mut self, cpu: usize) {
        let mut pass = self.cpus[cpu].looking.pass;
        if !std::mem::replace(&mut self.cpus[cpu].looking.looked, true) {
            let (work, notify_ns) =
                self.balance(cpu, Cause::Newidle, |balancer| balancer.newidle_look(cpu_id(cpu), &mut pass));
            self.cpus[cpu].looking.pass = pass;
            let ns = u64::from(work.tasks_moved) * self.costs.get(Cost::MoveTask) + notify_ns;
            if ns > 0 {
                self.begin(cpu, ns * 1000, true);
                return;
            }
        }
        let Looking { why, since, level_since, .. } = self.cpus[cpu].looking;
        let took_ns = self.now - level_since;
        let _ = self.balance(cpu, Cause::Newidle, |balancer| {
            balancer.newidle_took(cpu_id(cpu), &mut pass, took_ns);
        });
        self.cpus[cpu].looking.pass = pass;
        if self.looks_further(cpu) {
            return;
        }
        let has_work = self.newidle_ends(cpu);
        let next = if has_work { self.fair.pick_next(cpu_id(cpu), self.now) } else { None };
        self.chosen(cpu, why, since, next);
    }

    /// A tick's balancing. Its time, ns.
    pub(super) fn tick_balance(&mut self, cpu: usize) -> u64 {
        let id = cpu_id(cpu);
        let (asked, _) = self.balance(cpu, Cause::Periodic, |balancer| balancer.tick(id));
        let mut ns = 0;
        // Kicked once, it is not kicked again before it came.
        if let Some((idle, _)) = asked.kick
            && !std::mem::replace(&mut self.cpus[idle.index()].kicked, true)
        {
            self.counters.ipis += 1;
            let delivery = match self.level(cpu, idle.index()) {
                Level::Remote => Cost::IpiDeliveryNode,
                Level::SameCpu | Level::Smt | Level::Cluster | Level::Llc | Level::Die | Level::Node => {
                    Cost::IpiDelivery
                }
            };
            let send = self.costs.get(Cost::IpiSend);
            self.trace_ipi(cpu, idle.index(), Arrival::Nohz);
            let at = self.now + send + self.costs.get(delivery);
            self.queue.post(idle.index(), at, Arrival::Nohz);
            ns += send;
        }
        if asked.balance {
            self.counters.balance_passes += 1;
            let (work, notify_ns) = self.balance(cpu, Cause::Periodic, |balancer| balancer.softirq(id));
            ns += self.work_cost(work) + notify_ns;
        }
        ns
    }

    /// A kicked CPU balances for all idle ones. Its time, ns.
    pub(super) fn nohz_balance(&mut self, cpu: usize) -> u64 {
        self.counters.balance_passes += 1;
        self.cpus[cpu].kicked = false;
        let (work, notify_ns) = self.balance(cpu, Cause::Nohz, |balancer| balancer.nohz_pass(cpu_id(cpu)));
        self.work_cost(work) + notify_ns
    }

    /// The stopper runs on `cpu`, to push away the task that ran there.
    pub(super) fn active_balance(&mut self, cpu: usize, to: usize) {
        let task = self.cpus[cpu].curr;
        let request = ActiveBalance { src: cpu_id(cpu), dst: cpu_id(to) };
        if task != NOBODY && self.tasks[task as usize].state == State::Runnable {
            self.stop_running(cpu, task);
        } else if task != NOBODY {
            // About to sleep: nothing to push. The request is over.
            self.balance.as_mut().expect("no pass is under way").cpu(request.src).active_balance = false;
            return;
        }
        let _ = self.balance(cpu, Cause::Active, |balancer| balancer.active_balance(request));
        self.cpus[cpu].need_resched = Some(ttwu_fair::Resched::Full);
    }

    /// The stopper takes the place of the running task for an instant: the CPU then chooses among the others.
    pub(super) fn stop_running(&mut self, cpu: usize, task: u32) {
        self.fair.switch(cpu_id(cpu), None, self.now);
        self.trace_switch(cpu, task, NOBODY, Why::Preempted);
        self.account_out(cpu, task, Why::Preempted, self.now);
        self.cpus[cpu].curr = NOBODY;
        self.tasks[task as usize].on_cpu = false;
        self.event(3, cpu, NOBODY);
    }

    /// A task was queued on `cpu`: is it more than it can run?
    pub(super) fn queue_grew(&mut self, cpu: usize) {
        if self.fair.nr_running(cpu_id(cpu)) < 2 {
            return;
        }
        match &mut self.balance {
            Some(state) => state.overloaded = true,
            None => self.overloaded_in_pass = true,
        }
    }

    /// `cpu` has stopped its tick.
    pub(super) fn nohz_enters(&mut self, cpu: usize) {
        let _ = self.balance(cpu, Cause::Nohz, |balancer| balancer.nohz_enter(cpu_id(cpu)));
    }

    /// `cpu` was woken from idle, or work was queued on it.
    pub(super) fn idle_ends(&mut self, cpu: usize) {
        let (now, jiffies) = (self.now, self.jiffies());
        if let Some(state) = &mut self.balance {
            state.end_idle(&self.scenario.policy, cpu_id(cpu), now, jiffies);
        }
    }

    /// `cpu` switches to its idle task.
    pub(super) fn idle_begins(&mut self, cpu: usize) {
        let Some(mut state) = self.balance.take() else { return };
        let machine: Rc<Machine> = Rc::clone(&self.machine);
        state.begin_idle(&machine, cpu_id(cpu), |other| self.available_idle(other));
        self.balance = Some(state);
    }

    pub(super) fn available_idle(&self, cpu: CpuId) -> bool {
        let state = &self.cpus[cpu.index()];
        state.curr == NOBODY && state.wake_list.is_empty() && self.fair.nr_running(cpu) == 0
    }

    /// As after boot.
    pub(super) fn boot_balance(&mut self) -> BalanceState {
        let preemptible = match self.scenario.settings.preemption {
            crate::PreemptionModel::None | crate::PreemptionModel::Voluntary => ttwu_fair::Preemptible::No,
            crate::PreemptionModel::Full | crate::PreemptionModel::Lazy => ttwu_fair::Preemptible::Yes,
        };
        let seed = crate::rng::Rng::new(self.scenario.seed, 2).next();
        let jiffies = self.jiffies();
        let policy = &self.scenario.policy;
        let mut state = BalanceState::new(policy, &self.machine, preemptible, jiffies, seed);
        // An idle machine: every core is.
        for cpu in 0..self.cpus.len() {
            state.begin_idle(&self.machine, cpu_id(cpu), |_| true);
            let size = self.machine.domains().llc_size(cpu_id(cpu));
            state.llc(&self.machine, cpu_id(cpu)).nr_idle_scan = size;
        }
        state
    }
}

impl Pass<'_, '_> {
    fn owner(&self, entity: EntityId) -> u32 {
        self.sim.owner[entity.index()]
    }
}

impl BalanceView for Pass<'_, '_> {
    fn jiffies(&mut self) -> u64 {
        self.sim.jiffies()
    }

    fn now_ns(&mut self) -> u64 {
        self.sim.now
    }

    fn clock_task_ns(&mut self, _cpu: CpuId) -> u64 {
        self.sim.now
    }

    fn stats(&mut self, cpu: CpuId) -> CpuStats {
        let fair = &self.sim.fair;
        let nr_running = fair.nr_running(cpu);
        let runnable_counts = self.sim.scenario.policy.kernel() >= Kernel::V7_2;
        CpuStats {
            load: fair.load_avg(cpu),
            util: fair.cpu_util(cpu),
            runnable: fair.runnable_avg(cpu),
            nr_running,
            h_nr: if runnable_counts { fair.h_nr_runnable(cpu) } else { nr_running },
            idle: self.sim.available_idle(cpu),
            capacity: self.sim.machine.capacity_orig(cpu),
        }
    }

    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        self.sim.fair.nr_running(cpu)
    }

    fn idle(&mut self, cpu: CpuId) -> bool {
        self.sim.available_idle(cpu)
    }

    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.sim.fair.sched_idle(cpu)
    }

    fn pending(&mut self, cpu: CpuId) -> bool {
        !self.sim.cpus[cpu.index()].wake_list.is_empty()
    }

    fn refresh(&mut self, cpu: CpuId) {
        let now = self.sim.now;
        self.sim.fair.update_blocked_averages(cpu, now);
    }

    fn last_task(&mut self, cpu: CpuId) -> Option<EntityId> {
        self.sim.fair.cfs_tasks_from_back(cpu).next()
    }

    fn running_task(&mut self, cpu: CpuId) -> Option<EntityId> {
        self.sim.fair.curr(cpu)
    }

    fn to_front(&mut self, _cpu: CpuId, task: EntityId) {
        self.sim.fair.rotate_to_front(task);
    }

    fn task(&mut self, cpu: CpuId, task: EntityId) -> TaskState {
        let owner = &self.sim.tasks[self.owner(task) as usize];
        let fair = &self.sim.fair;
        let root = fair.root(cpu);
        TaskState {
            running: owner.on_cpu,
            exec_start: fair.entities()[task].exec_start,
            per_cpu_kthread: owner.kthread && owner.pinned,
            idle_policy: owner.attributes.policy == TaskPolicy::Idle,
            buddy: root.next == Some(task) || root.last == Some(task),
            delayed: fair.is_delayed(task),
        }
    }

    fn allows(&mut self, task: EntityId, cpu: CpuId) -> bool {
        let owner = self.owner(task);
        self.sim.allowed(owner).contains(cpu)
    }

    fn task_h_load(&mut self, task: EntityId) -> u64 {
        let now = self.sim.now;
        self.sim.fair.task_h_load(task, now)
    }

    fn task_util(&mut self, task: EntityId) -> u64 {
        self.sim.fair.task_util_est(task)
    }

    fn detach(&mut self, src: CpuId, task: EntityId) {
        let now = self.sim.now;
        self.from = src.index();
        self.sim.fair.detach_task(task, now);
    }

    fn attach(&mut self, dst: CpuId, task: EntityId) {
        let (owner, now, from, to) = (self.owner(task), self.sim.now, self.from, dst.index());
        let from = if usize::from(self.sim.tasks[owner as usize].cpu) == from {
            from
        } else {
            usize::from(self.sim.tasks[owner as usize].cpu)
        };
        self.sim.trace_migrate(self.this, owner, from, to);
        self.sim.event(6, to, owner);
        let distance = self.sim.level(from, to) as usize;
        let counters = &mut self.sim.counters;
        counters.migrations[distance] += 1;
        match self.cause {
            Cause::Newidle => counters.migrations_newidle += 1,
            Cause::Periodic => counters.migrations_periodic += 1,
            Cause::Nohz => counters.migrations_nohz += 1,
            Cause::Active => counters.migrations_active += 1,
        }
        self.sim.tasks[owner as usize].cpu = to as u16;
        self.sim.fair.attach_task(dst, task, now);
        self.sim.queue_grew(to);
        // A CPU that chooses anyway need not be asked to.
        if self.cause != Cause::Newidle || to != self.this {
            let check = WakeupCheck::default();
            self.notify_ns += self.sim.check_preempt_row(to, owner, self.this, check, NOBODY);
        }
    }

    fn work_ns(&mut self, work: Work) -> u64 {
        self.sim.work_cost(work)
    }

    fn start_active(&mut self, request: ActiveBalance) {
        let to = request.dst.number();
        let at = self.sim.now + self.sim.costs.get(Cost::IpiDelivery);
        self.sim.queue.post(request.src.index(), at, Arrival::Active { to });
    }
}
