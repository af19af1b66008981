//! Tasks begin, end, and are changed.

use super::objects::Object;
use super::schedule::Why;
use super::stretch::Flow;
use super::task::{Mode, NOBODY, Next, State, Who};
use super::{Sim, cpu_id};
use crate::{Cost, End};
use ttwu_fair::{TaskAttributes, WakeupCheck};
use ttwu_workload::{GroupRef, Slot, Until};

impl Sim<'_> {
    /// A task starts, forked by a shell that is no part of the workload and takes no CPU from it. The shell sits on a CPU that the seed
    /// chose; where the task may not run there, it counts as forked on its first allowed CPU.
    pub(super) fn start(&mut self, task: u32) {
        let mut shell = self.shell;
        if !self.allowed(task).contains(cpu_id(shell)) {
            shell = self.allowed(task).lowest().expect("a task may run somewhere").index();
        }
        self.begin_fork(task, shell);
        self.to_start -= usize::from(self.tasks[task as usize].spec != NOBODY);
        let who = Who::Irq(shell as u16);
        let mut cpu = shell;
        if !self.tasks[task as usize].pinned {
            let fork = std::mem::replace(&mut self.exec(who).wake.fork, true);
            let answer = self.placement(who, shell, task);
            self.exec(who).wake.fork = fork;
            cpu = answer.map_or(shell, |answer| answer.cpu.index());
        }
        self.move_sleeping(task, shell, cpu, true);
        let check = WakeupCheck { fork: true, ..WakeupCheck::default() };
        self.activate(cpu, task, cpu, check, NOBODY);
        if self.cpus[cpu].context == super::Context::Idle {
            self.wake_idle(cpu, 0);
        } else if self.cpus[cpu].curr != NOBODY && self.cpus[cpu].need_resched.is_some() {
            // The shell's own return to user mode is not modelled; its interrupt is.
            self.queue.post(cpu, self.now, super::Arrival::Reschedule);
        }
    }

    /// A new task comes into being on `cpu`.
    fn begin_fork(&mut self, task: u32, cpu: usize) {
        let state = &mut self.tasks[task as usize];
        assert_eq!(state.state, State::New, "task {task} is started twice");
        state.cpu = cpu as u16;
        state.recent = cpu_id(cpu);
        state.state = State::Waking;
        state.waking_at = self.now;
        let id = state.id;
        self.alive += usize::from(self.tasks[task as usize].spec != NOBODY);
        self.fair.fork(cpu_id(cpu), id, self.now);
        self.event(10, cpu, task);
        self.trace_fork(cpu, task);
    }

    /// The parent's work is done; the child is placed and queued.
    pub(super) fn forked(&mut self, who: Who) -> Flow {
        let child = self.exec(who).object;
        let cpu = self.cpu_of(who);
        self.begin_fork(child, cpu);
        let now = self.now;
        let announced = self.last_event();
        let exec = self.exec(who);
        exec.wake.event = announced;
        exec.wake.list.clear();
        exec.wake.list.push(child);
        exec.wake.at = 0;
        exec.wake.lock = NOBODY;
        exec.wake.sync = false;
        exec.wake.softirq = false;
        exec.wake.fork = true;
        exec.wake.began = now;
        exec.wake.then = Next::Fetch;
        exec.next = Next::WakePlace;
        Flow::Go
    }

    pub(super) fn join_check(&mut self, who: Who) -> Flow {
        let Who::Task(me) = who else {
            panic!("a handler of workload `{}` joins", self.scenario.workload.name)
        };
        let other = self.exec(who).object as usize;
        if self.tasks[other].ended {
            self.exec(who).next = Next::Fetch;
            return Flow::Go;
        }
        self.tasks[other].joiners.push(me);
        self.prepare_sleep(who, Next::JoinCheck)
    }

    /// A task is done: who waits for it is woken, then it leaves for good.
    pub(super) fn exiting(&mut self, who: Who) -> Flow {
        let Who::Task(me) = who else { unreachable!("handlers do not exit") };
        let joiners = std::mem::take(&mut self.tasks[me as usize].joiners);
        self.tasks[me as usize].ended = true;
        if !joiners.is_empty() {
            self.exec(who).wake.list = joiners;
            return self.wake_listed(who, Next::Exiting);
        }
        let cpu = self.cpu_of(who);
        self.tasks[me as usize].state = State::Dead;
        self.event(11, cpu, me);
        self.trace_exit(cpu, me);
        self.alive -= 1;
        let spec = self.tasks[me as usize].spec;
        match self.scenario.workload.until {
            Until::Exit(task) if task.0 == spec => self.end = Some(End::Completed),
            Until::AllExit if self.alive == 0 && self.to_start == 0 => self.end = Some(End::Completed),
            Until::Exit(_) | Until::AllExit | Until::Time(_) => {}
        }
        self.schedule(cpu, Why::Blocked);
        Flow::Rest
    }

    pub(super) fn set_nice(&mut self, who: Who, nice: i8) -> Flow {
        let Who::Task(me) = who else {
            panic!("a handler of workload `{}` changes its nice value", self.scenario.workload.name)
        };
        let task = &mut self.tasks[me as usize];
        task.attributes = TaskAttributes { nice, ..task.attributes };
        let (id, attributes) = (task.id, task.attributes);
        self.fair.set_attributes(id, self.now, attributes);
        self.work(who, self.costs.get(Cost::Syscall), Mode::Kernel)
    }

    pub(super) fn set_group(&mut self, who: Who, group: GroupRef) -> Flow {
        let Who::Task(me) = who else {
            panic!("a handler of workload `{}` changes its group", self.scenario.workload.name)
        };
        let group = self.groups[group.0 as usize];
        let id = self.tasks[me as usize].id;
        self.fair.set_group(id, group, self.now);
        self.work(who, self.costs.get(Cost::Syscall), Mode::Kernel)
    }

    /// Models: __set_cpus_allowed_ptr(), v5.5–v7.2: a task on a CPU that it may not use any more is pushed off by the stopper.
    pub(super) fn set_affinity(&mut self, who: Who, slot: Slot) -> Flow {
        let Who::Task(me) = who else {
            panic!("a handler of workload `{}` changes its affinity", self.scenario.workload.name)
        };
        let object = self.object(who, slot);
        let Object::Cpus(mask) = self.objects[object as usize] else { self.wrong(object, "set of CPUs") };
        let task = &mut self.tasks[me as usize];
        task.allowed = mask;
        let cpu = task.cpu as usize;
        let set = &self.masks[mask as usize];
        task.pinned = set.len() == 1;
        if !set.contains(cpu_id(cpu)) {
            let to = set.lowest().expect("masks are not empty");
            self.cpus[cpu].pending.push(super::Arrival::Stop { to: to.number() });
        }
        self.work(who, self.costs.get(Cost::Syscall), Mode::Kernel)
    }

    /// The stopper of `cpu` pushes the task that ran there to another CPU.
    ///
    /// Models: migration_cpu_stop(), active_load_balance_cpu_stop(), v5.5–v7.2.
    pub(super) fn push_running(&mut self, cpu: usize, to: usize) {
        let task = self.cpus[cpu].curr;
        if task == NOBODY || cpu == to || !self.allowed(task).contains(cpu_id(to)) {
            return;
        }
        let state = &self.tasks[task as usize];
        if state.state != State::Runnable || self.fair.is_delayed(state.id) {
            return;
        }
        let (id, now) = (state.id, self.now);
        self.stop_running(cpu, task);
        self.fair.detach_task(id, now);
        self.trace_migrate(cpu, task, cpu, to);
        self.event(6, to, task);
        let distance = self.level(cpu, to) as usize;
        self.counters.migrations[distance] += 1;
        self.counters.migrations_forced += 1;
        self.tasks[task as usize].cpu = to as u16;
        self.fair.attach_task(cpu_id(to), id, now);
        self.check_preempt_row(to, task, cpu, WakeupCheck::default(), NOBODY);
        self.cpus[cpu].need_resched = Some(ttwu_fair::Resched::Full);
    }
}
