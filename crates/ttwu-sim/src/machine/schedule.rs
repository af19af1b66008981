//! Who runs next on a CPU, and when it is asked.

use super::cpu::{Arrival, Context};
use super::queue::Class;
use super::task::{Mode, NOBODY, Next, State};
use super::{Sim, cpu_id};
use crate::{Cost, PreemptionModel};
use ttwu_fair::{DequeueFlags, EntityId, Resched};
use ttwu_model::Level;

/// Why a CPU chooses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The running task goes to sleep or ends.
    Blocked,
    /// It is to give way.
    Preempted,
    /// It asked for it.
    Yielded,
    /// It is the idle task.
    Idle,
}

impl Sim<'_> {
    /// Does a pending request take effect now, between two stretches or at the end of an interrupt?
    ///
    /// Models: exit_to_user_mode_loop(), preempt_schedule_irq(), __cond_resched(), v5.5–v7.2.
    pub(super) fn gives_way(&self, cpu: usize, task: u32) -> bool {
        let Some(request) = self.cpus[cpu].need_resched else { return false };
        let exec = &self.tasks[task as usize].exec;
        // About to sleep, it will choose again anyway.
        if exec.in_wakeup() || (exec.next == Next::Sleep && exec.left == 0) {
            return false;
        }
        // Kernel threads give way between the steps of their work, too.
        let to_user = exec.next == Next::Fetch && exec.left == 0;
        if to_user || (exec.mode == Mode::User && exec.left > 0) {
            return true;
        }
        match self.scenario.settings.preemption {
            PreemptionModel::None => false,
            // Between the steps of a system call, but not out of an interrupt.
            PreemptionModel::Voluntary => exec.left == 0,
            PreemptionModel::Full => exec.mode != Mode::Atomic || exec.left == 0,
            PreemptionModel::Lazy => {
                request == Resched::Full && (exec.mode != Mode::Atomic || exec.left == 0)
            }
        }
    }

    /// Waits for a CPU's run-queue lock and holds it for so long: how long the wait is.
    pub(super) fn lock_queue(&mut self, cpu: usize, hold: u64) -> u64 {
        let state = &mut self.cpus[cpu];
        let wait = state.lock_free_at.saturating_sub(self.now);
        state.lock_free_at = self.now + wait + hold;
        self.counters.rq_lock_wait_ns += wait;
        wait
    }

    /// Asks `cpu` to choose again. Returns what sending that costs the CPU `from`.
    ///
    /// Models: resched_curr(), v5.5–v7.2.
    pub(super) fn resched(&mut self, cpu: usize, request: Resched, from: usize) -> u64 {
        let lazy = self.scenario.settings.preemption == PreemptionModel::Lazy;
        let idle = self.cpus[cpu].curr == NOBODY;
        let request = if lazy && !idle { request } else { Resched::Full };
        let state = &mut self.cpus[cpu];
        if state.need_resched.is_some_and(|already| already >= request) {
            return 0;
        }
        state.need_resched = Some(request);
        if cpu == from || request == Resched::Lazy {
            return 0;
        }
        self.notify(cpu, from, Arrival::Reschedule)
    }

    /// Tells `cpu` that there is something for it: by the flag if it polls, else by interrupt. What that costs the sender.
    pub(super) fn notify(&mut self, cpu: usize, from: usize, how: Arrival) -> u64 {
        if self.cpus[cpu].context == Context::Idle && self.polls(cpu) {
            self.counters.polled_wakes += 1;
            self.cpus[cpu].need_resched = Some(Resched::Full);
            self.wake_idle(cpu, self.costs.get(Cost::MonitorWake));
            return 0;
        }
        let send = self.costs.get(Cost::IpiSend);
        let delivery = match self.level(from, cpu) {
            Level::Remote => Cost::IpiDeliveryNode,
            Level::SameCpu | Level::Smt | Level::Cluster | Level::Llc | Level::Die | Level::Node => {
                Cost::IpiDelivery
            }
        };
        self.counters.ipis += 1;
        self.event(1, cpu, from as u32);
        self.trace_ipi(from, cpu, how);
        self.queue.post(cpu, self.now + send + self.costs.get(delivery), how);
        send
    }

    /// `cpu` chooses who runs next, and switches.
    ///
    /// Models: __schedule(), v5.5–v7.2.
    pub(super) fn schedule(&mut self, cpu: usize, why: Why) {
        if why == Why::Blocked {
            self.block(self.cpus[cpu].curr);
        }
        let since = self.now;
        let next = self.fair.pick_next(cpu_id(cpu), since);
        if next.is_none() && self.looks_for_work(cpu, why) {
            return;
        }
        self.chosen(cpu, why, since, next);
    }

    /// The choice is made. The CPU ran out of what its previous task had to do at `since`.
    pub(super) fn chosen(&mut self, cpu: usize, why: Why, since: u64, next: Option<EntityId>) {
        let (id, now) = (cpu_id(cpu), self.now);
        let prev = self.cpus[cpu].curr;
        self.cpus[cpu].need_resched = None;
        let task = next.map_or(NOBODY, |entity| self.owner[entity.index()]);
        self.fair.switch(id, next, now);
        self.arm_hrtick(cpu);
        let pick = self.costs.get(Cost::Schedule);
        let ns = self.lock_queue(cpu, pick) + pick;
        if task == prev {
            self.cpus[cpu].enter(Context::Switch, self.now);
            self.begin(cpu, ns * 1000, true);
            return;
        }
        self.switch_to(cpu, (prev, task), why, since, ns);
    }

    fn block(&mut self, task: u32) {
        let now = self.now;
        let state = &self.tasks[task as usize];
        let dead = state.state == State::Dead;
        let flags = DequeueFlags { sleep: true, special: dead, ..DequeueFlags::default() };
        let dequeued = self.fair.dequeue_task(state.id, now, flags);
        let _ = dequeued.resched;
        self.event(2, state.cpu as usize, task);
        self.worker_blocks(task);
    }

    fn switch_to(&mut self, cpu: usize, (prev, next): (u32, u32), why: Why, since: u64, mut ns: u64) {
        let now = self.now;
        self.event(3, cpu, next);
        self.trace_switch(cpu, prev, next, why);
        self.cpus[cpu].curr = next;
        let mut same = true;
        if prev != NOBODY {
            self.account_out(cpu, prev, why, since);
            self.cpus[cpu].leaving = prev;
        }
        if next == NOBODY {
            self.idle_begins(cpu);
        }
        if prev == NOBODY && self.scenario.policy.kernel() >= ttwu_fair::Kernel::V7_2 {
            self.idle_ends(cpu);
        }
        if next != NOBODY {
            same = prev == NOBODY
                || self.tasks[prev as usize].process == self.tasks[next as usize].process
                || self.tasks[next as usize].kthread;
            ns += self.lines_back(cpu, next);
            self.account_in(cpu, next);
            if self.queue.time(cpu, Class::Tick).is_none() {
                let at = self.next_tick(cpu);
                self.queue.set(cpu, Class::Tick, at);
            }
        }
        self.cpus[cpu].enter(Context::Switch, self.now);
        ns += self.costs.get(if same { Cost::SwitchSame } else { Cost::SwitchOther });
        debug_assert!(now >= self.cpus[cpu].from);
        self.begin(cpu, ns * 1000, true);
    }

    /// `prev` gives up its CPU, having done nothing for itself since `since`.
    pub(super) fn account_out(&mut self, cpu: usize, prev: u32, why: Why, since: u64) {
        let now = self.now;
        let task = &mut self.tasks[prev as usize];
        let ran = since - task.running_from;
        task.ran_until = now;
        task.cache_cpu = cpu as u16;
        let name = &mut self.name_counters[task.name as usize];
        name.runtime_ns += ran;
        self.counters.task_ns += ran;
        match why {
            Why::Blocked => self.counters.switches_voluntary += 1,
            Why::Yielded => {
                self.counters.switches_voluntary += 1;
                task.runnable_at = now;
            }
            Why::Preempted | Why::Idle => {
                self.counters.switches_involuntary += 1;
                name.preempted += 1;
                task.runnable_at = now;
            }
        }
    }

    fn account_in(&mut self, cpu: usize, next: u32) {
        let now = self.now;
        self.worker_runs(next);
        let refill = self.refill(cpu, next);
        let task = &mut self.tasks[next as usize];
        assert!(!task.on_cpu, "task {next} runs twice; seed {}", self.scenario.seed);
        assert_eq!(task.cpu as usize, cpu, "task {next} runs elsewhere; seed {}", self.scenario.seed);
        task.on_cpu = true;
        task.running_from = now;
        let waited = now - task.runnable_at;
        task.waited_max = task.waited_max.max(waited);
        let name = &mut self.name_counters[task.name as usize];
        name.switches += 1;
        name.delay_ns_sum += waited;
        name.delay_ns_max = name.delay_ns_max.max(waited);
        if std::mem::take(&mut task.woken) {
            let latency = now - task.waking_at;
            name.wake_latency_ns.add(latency);
            self.counters.wake_latency_ns.add(latency);
        }
        if refill > 0 {
            self.counters.refill_ns += refill;
            if task.exec.left == 0 {
                task.exec.mode = Mode::Kernel;
            }
            task.exec.left += refill * 1000;
        }
    }

    /// What a task's lines cost it that are not where it now runs, ns.
    fn refill(&self, cpu: usize, next: u32) -> u64 {
        let task = &self.tasks[next as usize];
        if task.working_kib == 0 || task.ran_until == 0 {
            return 0;
        }
        let kib = u64::from(task.working_kib);
        let near = kib.min(self.costs.get(Cost::RefillKibMax));
        match self.level(task.cache_cpu as usize, cpu) {
            Level::SameCpu => {
                let flushed = self.cpus[cpu].flushed_at > task.ran_until;
                if flushed { near * self.costs.get(Cost::RefillFlushed) } else { 0 }
            }
            Level::Smt => 0,
            Level::Cluster => near * self.costs.get(Cost::RefillCluster),
            Level::Llc => near * self.costs.get(Cost::RefillLlc),
            Level::Die | Level::Node => kib * self.costs.get(Cost::RefillNode),
            Level::Remote => kib * self.costs.get(Cost::RefillRemote),
        }
    }

    /// The switch is done: the previous task has left, the next one goes on.
    pub(super) fn switched(&mut self, cpu: usize) {
        let left = std::mem::replace(&mut self.cpus[cpu].leaving, NOBODY);
        if left != NOBODY {
            self.tasks[left as usize].on_cpu = false;
            if self.tasks[left as usize].state == State::Dead {
                self.fair.exit_task(self.tasks[left as usize].id);
            }
        }
        self.cpus[cpu].enter(Context::Task, self.now);
        self.resume(cpu);
    }

    /// The next tick of `cpu`.
    pub(super) fn next_tick(&self, cpu: usize) -> u64 {
        let skew = match self.scenario.settings.tick_skew {
            crate::TickSkew::Coincide => 0,
            crate::TickSkew::Spread => self.tick_ns * cpu as u64 / self.cpus.len() as u64,
        };
        (self.now - skew) / self.tick_ns * self.tick_ns + self.tick_ns + skew
    }

    /// Sets the slice timer, where the policy has one.
    fn arm_hrtick(&mut self, cpu: usize) {
        match self.fair.hrtick(cpu_id(cpu)) {
            // The kernel's own floor.
            Some(ns) => self.queue.set(cpu, Class::Hrtick, self.now + ns.max(10_000)),
            None => self.queue.clear(cpu, Class::Hrtick),
        }
    }
}
