//! Stretches of work: begun, interrupted, made faster or slower, ended.

use super::cpu::Context;
use super::queue::Class;
use super::task::{Mode, NOBODY, Who};
use super::{Sim, is_quiet};
use crate::{Cost, MemoryPlacement};

/// Did an operation come to rest, or does the next one follow at once?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// On with `Exec::next`.
    Go,
    /// Time passes first, or the CPU does something else.
    Rest,
}

impl Sim<'_> {
    pub(super) fn exec(&mut self, who: Who) -> &mut super::task::Exec {
        match who {
            Who::Task(task) => &mut self.tasks[task as usize].exec,
            Who::Irq(cpu) => &mut self.cpus[cpu as usize].irq,
        }
    }

    pub(super) fn cpu_of(&self, who: Who) -> usize {
        match who {
            Who::Task(task) => self.tasks[task as usize].cpu as usize,
            Who::Irq(cpu) => cpu as usize,
        }
    }

    /// `who` works for so long at full speed; then `Exec::next`.
    pub(super) fn work(&mut self, who: Who, ns: u64, mode: Mode) -> Flow {
        if ns == 0 {
            return Flow::Go;
        }
        let exec = self.exec(who);
        exec.mode = mode;
        exec.left = ns * 1000;
        let cpu = self.cpu_of(who);
        self.begin(cpu, ns * 1000, true);
        Flow::Rest
    }

    /// A stretch of `left` ns · 1000 begins; `scaled`: it depends on the core's speed.
    pub(super) fn begin(&mut self, cpu: usize, left: u64, scaled: bool) {
        let now = self.now;
        let speed = if scaled { self.speed(cpu) } else { 1000 };
        let state = &mut self.cpus[cpu];
        state.left = left;
        state.from = now;
        state.scaled = scaled;
        state.timed = true;
        state.speed = speed;
        // Most stretches run at full speed, where the divisor is known to the compiler.
        let ns = if speed == 1000 { left.div_ceil(1000) } else { left.div_ceil(speed) };
        self.queue.set(cpu, Class::Step, now + ns);
    }

    /// `who` watches something, without a known end.
    pub(super) fn spin(&mut self, who: Who, mode: Mode) -> Flow {
        let now = self.now;
        let exec = self.exec(who);
        exec.mode = mode;
        exec.left = 0;
        exec.spinning = true;
        exec.spin_from = now;
        let cpu = self.cpu_of(who);
        self.cpus[cpu].timed = false;
        Flow::Rest
    }

    /// What a spinner watches has changed: it looks now, if it runs; else when it runs next.
    pub(super) fn poke(&mut self, who: Who) {
        let cpu = self.cpu_of(who);
        let runs = match who {
            Who::Task(task) => self.cpus[cpu].context == Context::Task && self.cpus[cpu].curr == task,
            Who::Irq(_) => self.cpus[cpu].context == Context::Irq,
        };
        if runs && self.exec(who).spinning {
            self.queue.set(cpu, Class::Step, self.now);
        }
    }

    /// Is a spinning task looking at this moment?
    pub(super) fn spins_now(&self, task: u32) -> bool {
        let state = &self.tasks[task as usize];
        let cpu = &self.cpus[state.cpu as usize];
        state.exec.spinning && cpu.context == Context::Task && cpu.curr == task
    }

    /// Work left of the stretch under way, ns · 1000.
    fn left(&self, cpu: usize) -> u64 {
        let state = &self.cpus[cpu];
        state.left.saturating_sub((self.now - state.from) * state.speed)
    }

    /// The current task's stretch is interrupted, to be gone on with later.
    pub(super) fn pause(&mut self, cpu: usize) {
        let task = self.cpus[cpu].curr as usize;
        if self.cpus[cpu].timed {
            self.tasks[task].exec.left = self.left(cpu);
        }
        self.cpus[cpu].timed = false;
        self.queue.clear(cpu, Class::Step);
    }

    /// How fast `cpu` works now, in thousandths.
    fn speed(&self, cpu: usize) -> u64 {
        let state = &self.cpus[cpu];
        let mut speed = 1000;
        let siblings = &self.siblings[cpu];
        if !siblings.is_empty() {
            let busy = siblings.iter().filter(|&&other| self.cpus[other as usize].busy).count() as u64;
            if busy > 0 {
                speed = self.smt_speed[(busy + 1) as usize];
            }
        }
        if state.frequency != 1000 {
            speed = speed * state.frequency / 1000;
        }
        if state.context == Context::Task
            && let MemoryPlacement::Node(node) = self.scenario.settings.memory
            && self.scenario.topology.node(super::cpu_id(cpu)).is_some_and(|here| here.id != node)
        {
            speed = speed * 1000 / self.costs.get(Cost::RemoteMemory).max(1000);
        }
        speed.max(1)
    }

    /// The core's speed may have changed: what is under way ends sooner or later.
    pub(super) fn retime(&mut self, cpu: usize) {
        let state = &self.cpus[cpu];
        if !state.timed || !state.scaled {
            return;
        }
        let speed = self.speed(cpu);
        if speed != state.speed {
            let left = self.left(cpu);
            self.begin(cpu, left, true);
        }
    }

    /// `cpu` begins or ceases to execute; its siblings feel it.
    pub(super) fn set_busy(&mut self, cpu: usize, busy: bool) {
        if self.cpus[cpu].busy == busy {
            return;
        }
        self.account_busy(cpu);
        self.cpus[cpu].busy = busy;
        for index in 0..self.siblings[cpu].len() {
            let sibling = self.siblings[cpu][index];
            self.retime(sibling as usize);
        }
    }

    pub(super) fn account_busy(&mut self, cpu: usize) {
        let state = &mut self.cpus[cpu];
        if state.busy {
            state.busy_ns += self.now - state.busy_from;
        }
        state.busy_from = self.now;
    }

    /// The stretch of `cpu` is over.
    pub(super) fn stretch_ends(&mut self, cpu: usize) {
        self.cpus[cpu].timed = false;
        match self.cpus[cpu].context {
            Context::Task => {
                let task = self.cpus[cpu].curr;
                let exec = &mut self.tasks[task as usize].exec;
                exec.left = 0;
                exec.spinning = false;
                self.go_on(Who::Task(task));
            }
            Context::Irq => {
                let exec = &mut self.cpus[cpu].irq;
                exec.left = 0;
                exec.spinning = false;
                self.go_on(Who::Irq(cpu as u16));
            }
            Context::NewIdle => self.looked(cpu),
            Context::Switch => self.switched(cpu),
            Context::IdleExit => self.left_idle(cpu),
            Context::IdleLoop => self.idle_loop(cpu),
            Context::Idle => unreachable!("nothing ends in an idle state"),
        }
    }

    /// `who` goes on until it has to wait for time or for others.
    pub(super) fn go_on(&mut self, who: Who) {
        loop {
            if let Who::Task(task) = who
                && self.interrupted(task)
            {
                return;
            }
            if self.step(who) == Flow::Rest {
                return;
            }
        }
    }

    /// Between two stretches of a task: are there interrupts to take, or is it to give way?
    fn interrupted(&mut self, task: u32) -> bool {
        let cpu = self.tasks[task as usize].cpu as usize;
        let state = &self.cpus[cpu];
        if state.pending.is_empty() && state.need_resched.is_none() {
            return false;
        }
        let exec = &self.tasks[task as usize].exec;
        if exec.in_wakeup() {
            return false;
        }
        if !state.pending.is_empty() {
            self.take_interrupt(cpu);
            return true;
        }
        if self.gives_way(cpu, task) {
            self.schedule(cpu, super::schedule::Why::Preempted);
            return true;
        }
        false
    }

    /// The CPU does nothing any more until something arrives, or goes on with its task.
    pub(super) fn resume(&mut self, cpu: usize) {
        debug_assert!(!is_quiet(self.cpus[cpu].context), "CPU {cpu} is in an idle state");
        if !self.cpus[cpu].pending.is_empty() {
            self.take_interrupt(cpu);
            return;
        }
        let task = self.cpus[cpu].curr;
        if task == NOBODY {
            self.idle_loop(cpu);
            return;
        }
        self.cpus[cpu].enter(Context::Task, self.now);
        if self.gives_way(cpu, task) {
            self.schedule(cpu, super::schedule::Why::Preempted);
            return;
        }
        let exec = &mut self.tasks[task as usize].exec;
        if exec.spinning {
            exec.spinning = false;
            exec.left = 0;
        }
        if exec.deadline != 0 && exec.next == super::task::Next::SpinUntil {
            exec.left = exec.deadline.saturating_sub(self.now) * 1000;
            if exec.left > 0 {
                let left = exec.left;
                self.begin(cpu, left, false);
                return;
            }
        }
        if exec.left > 0 {
            let left = exec.left;
            self.begin(cpu, left, true);
            return;
        }
        self.go_on(Who::Task(task));
    }
}
