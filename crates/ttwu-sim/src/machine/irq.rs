//! Interrupts: when they are taken, what they do, what follows.

use super::cpu::{Arrival, Context};
use super::stretch::Flow;
use super::task::{Mode, NOBODY, Next, Who};
use super::{Sim, cpu_id};
use crate::{Cost, PreemptionModel};
use ttwu_fair::Resched;

impl Sim<'_> {
    /// Something arrives at a CPU: it is taken at once, or when interrupts are on again.
    pub(super) fn arrive(&mut self, cpu: usize, what: Arrival) {
        self.cpus[cpu].pending.push(what);
        match self.cpus[cpu].context {
            Context::Idle => {
                self.wake_idle(cpu, 0);
                if what == Arrival::Tick {
                    self.tick_ended_idle(cpu);
                }
            }
            Context::Task => {
                let task = self.cpus[cpu].curr;
                let exec = &self.tasks[task as usize].exec;
                let open = exec.mode != Mode::Atomic && !exec.in_wakeup();
                // Nothing is begun yet: whoever begins looks at what is pending.
                if open && (self.cpus[cpu].timed || exec.spinning) {
                    self.pause(cpu);
                    self.take_interrupt(cpu);
                }
            }
            Context::IdleExit | Context::IdleLoop | Context::Irq | Context::NewIdle | Context::Switch => {}
        }
    }

    /// The first pending interrupt is taken.
    pub(super) fn take_interrupt(&mut self, cpu: usize) {
        let what = self.cpus[cpu].pending.remove(0);
        self.cpus[cpu].enter(Context::Irq, self.now);
        self.cpus[cpu].taking = what;
        self.event(9, cpu, irq_number(what));
        let who = Who::Irq(cpu as u16);
        let entry = self.costs.get(Cost::IrqEntry);
        let handler = match what {
            Arrival::Reschedule | Arrival::Call | Arrival::Hrtick | Arrival::Nohz => 0,
            Arrival::Timer(_) => self.costs.get(Cost::TimerHandler),
            Arrival::Device(_) => self.costs.get(Cost::DeviceHandler),
            Arrival::Tick => self.costs.get(Cost::Tick),
            Arrival::Stop { .. } | Arrival::Active { .. } => self.costs.get(Cost::AffinityMove),
            Arrival::Start(_) | Arrival::Served(_) | Arrival::Frequency | Arrival::End => {
                unreachable!("{what:?} is for the world")
            }
        };
        self.trace_irq(cpu, what, true);
        let exec = self.exec(who);
        exec.spinning = false;
        if self.work_then(who, entry + handler, Mode::Atomic, Next::IrqBody) == Flow::Go {
            self.go_on(who);
        }
    }

    pub(super) fn irq_body(&mut self, who: Who) -> Flow {
        let cpu = self.cpu_of(who);
        match self.cpus[cpu].taking {
            Arrival::Reschedule => {
                self.exec(who).next = Next::IrqOut;
                Flow::Go
            }
            Arrival::Call => {
                let ns = self.drain_wake_list(cpu);
                self.work_then(who, ns, Mode::Atomic, Next::IrqOut)
            }
            Arrival::Timer(task) => {
                self.exec(who).wake.list.push(task);
                self.wake_listed(who, Next::IrqOut)
            }
            Arrival::Device(flight) => self.device_interrupt(who, flight),
            Arrival::Tick => self.tick(who, cpu),
            Arrival::Hrtick => {
                // Expiry always reschedules, wanted or not.
                if let Some(verdict) = self.fair.tick(cpu_id(cpu), self.now) {
                    let _ = verdict;
                    self.resched(cpu, Resched::Full, cpu);
                }
                self.exec(who).next = Next::IrqOut;
                Flow::Go
            }
            Arrival::Nohz => {
                let ns = self.nohz_balance(cpu);
                self.work_then(who, ns, Mode::Atomic, Next::IrqOut)
            }
            Arrival::Stop { to } => {
                self.push_running(cpu, usize::from(to));
                self.exec(who).next = Next::IrqOut;
                Flow::Go
            }
            Arrival::Active { to } => {
                self.active_balance(cpu, usize::from(to));
                self.exec(who).next = Next::IrqOut;
                Flow::Go
            }
            Arrival::Start(_) | Arrival::Served(_) | Arrival::Frequency | Arrival::End => {
                unreachable!("for the world")
            }
        }
    }

    /// Models: scheduler_tick(), sched_tick(), v5.5–v7.2.
    fn tick(&mut self, who: Who, cpu: usize) -> Flow {
        self.counters.ticks += 1;
        let mut ns = 0;
        if self.cpus[cpu].curr != NOBODY {
            let hold = self.costs.get(Cost::Schedule) / 2;
            ns += self.lock_queue(cpu, hold);
            if self.scenario.settings.preemption == PreemptionModel::Lazy
                && self.cpus[cpu].need_resched == Some(Resched::Lazy)
            {
                self.cpus[cpu].need_resched = Some(Resched::Full);
            }
            if let Some(request) = self.fair.tick(cpu_id(cpu), self.now).and_then(|verdict| verdict.resched) {
                self.counters.preempt_tick += 1;
                self.resched(cpu, request, cpu);
            }
        }
        ns += self.tick_balance(cpu);
        self.work_then(who, ns, Mode::Atomic, Next::IrqOut)
    }

    /// The hard handler's program is done: is there something left for softirq?
    pub(super) fn irq_soft(&mut self, who: Who) -> Flow {
        let cpu = self.cpu_of(who);
        match self.cpus[cpu].taking {
            Arrival::Device(flight) => self.device_softirq(who, flight),
            Arrival::Reschedule
            | Arrival::Call
            | Arrival::Timer(_)
            | Arrival::Tick
            | Arrival::Hrtick
            | Arrival::Nohz
            | Arrival::Stop { .. }
            | Arrival::Active { .. }
            | Arrival::Start(_)
            | Arrival::Served(_)
            | Arrival::Frequency
            | Arrival::End => unreachable!("only devices have programs"),
        }
    }

    pub(super) fn irq_out(&mut self, who: Who) -> Flow {
        let cpu = self.cpu_of(who);
        if let Arrival::Device(flight) = self.cpus[cpu].taking {
            self.device_done(cpu, flight);
        }
        self.work_then(who, self.costs.get(Cost::IrqExit), Mode::Atomic, Next::IrqEnd)
    }

    pub(super) fn irq_end(&mut self, who: Who) -> Flow {
        let cpu = self.cpu_of(who);
        let what = self.cpus[cpu].taking;
        self.trace_irq(cpu, what, false);
        // Where an interrupt hit the idle task, the idle loop looks; a task goes on or gives way.
        self.cpus[cpu].enter(Context::IdleLoop, self.now);
        self.resume(cpu);
        Flow::Rest
    }
}

/// For the digest.
const fn irq_number(what: Arrival) -> u32 {
    match what {
        Arrival::Reschedule => 1,
        Arrival::Call => 2,
        Arrival::Timer(task) => 0x100 + task,
        Arrival::Device(flight) => 0x200 + flight,
        Arrival::Tick => 3,
        Arrival::Hrtick => 4,
        Arrival::Nohz => 5,
        Arrival::Stop { .. } | Arrival::Active { .. } => 6,
        Arrival::Start(_) | Arrival::Served(_) | Arrival::Frequency | Arrival::End => 7,
    }
}
