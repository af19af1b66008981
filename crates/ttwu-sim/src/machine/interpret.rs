//! Programs at work: one step after another, each with its time.

use super::code::{Amount, Rounds, Step};
use super::objects::Object;
use super::stretch::Flow;
use super::task::{Mode, NOBODY, Next, State, Who};
use super::{BOOT, Sim, cpu_id};
use crate::{Cost, MeterValue, SAMPLES_MAX};
use ttwu_model::Level;
use ttwu_workload::{ObjectId, Slot};

/// Steps at one instant after which a program that takes no time is charged some, so that the clock moves.
const STEPS_WITHOUT_TIME: u32 = 10_000;

impl Sim<'_> {
    /// One step of `who`: `Exec::next`, or the next of its program.
    pub(super) fn step(&mut self, who: Who) -> Flow {
        match self.exec(who).next {
            Next::Fetch => self.fetch(who),
            Next::Sleep => self.sleep(who),
            Next::Reschedule => {
                let Who::Task(task) = who else { unreachable!("a handler chooses no task") };
                let exec = self.exec(who);
                exec.next = exec.after;
                let cpu = self.tasks[task as usize].cpu as usize;
                self.schedule(cpu, super::schedule::Why::Yielded);
                Flow::Rest
            }
            Next::WriteCall => self.write_call(who),
            Next::WriteDone => self.write_done(who),
            Next::WriteSleep => self.write_sleep(who),
            Next::ReadCall => self.read_call(who),
            Next::ReadDone => self.read_done(who),
            Next::ReadAgain => self.read_again(who),
            Next::PollCheck => self.poll_check(who),
            Next::FutexWait => self.futex_wait(who),
            Next::SemaphoreWait => self.semaphore_wait(who),
            Next::QueueTake => self.queue_take(who),
            Next::MutexTry => self.mutex_try(who),
            Next::SpinTry => self.spin_try(who),
            Next::SpinLook => self.spin_look(who),
            Next::Posted => self.posted(who),
            Next::CondUnlock => self.cond_unlock(who),
            Next::SleepTimer => self.sleep_timer(who),
            Next::SpinUntil => self.spin_until(who),
            Next::Forked => self.forked(who),
            Next::JoinCheck => self.join_check(who),
            Next::Exiting => self.exiting(who),
            Next::Submitted => self.submitted(who),
            Next::Queued => self.queued(who),
            Next::FlushCheck => self.flush_check(who),
            Next::WorkerLook => self.worker_look(who),
            Next::WorkDone => self.work_done(who),
            Next::Yielded => self.yielded(who),
            Next::WakeLock => self.wake_lock(who),
            Next::WakeBegin => self.wake_next(who),
            Next::WakePlace | Next::WakeRetry => self.wake_place(who),
            Next::WakeEnqueue => self.wake_enqueue(who),
            Next::WakeSent => {
                self.exec(who).next = Next::WakeBegin;
                Flow::Go
            }
            Next::IrqBody => self.irq_body(who),
            Next::IrqSoft => self.irq_soft(who),
            Next::IrqOut => self.irq_out(who),
            Next::IrqEnd => self.irq_end(who),
        }
    }

    /// The task goes to sleep, unless it was woken since it decided to.
    fn sleep(&mut self, who: Who) -> Flow {
        let Who::Task(task) = who else {
            panic!("a handler of workload `{}` blocks", self.scenario.workload.name)
        };
        let exec = self.exec(who);
        exec.next = exec.after;
        let state = &self.tasks[task as usize];
        if state.state != State::Sleeping {
            return Flow::Go;
        }
        let cpu = state.cpu as usize;
        self.schedule(cpu, super::schedule::Why::Blocked);
        Flow::Rest
    }

    /// The task will sleep: from now on it can be woken. After that, `after` follows.
    pub(super) fn prepare_sleep(&mut self, who: Who, after: Next) -> Flow {
        let Who::Task(task) = who else {
            panic!("a handler of workload `{}` blocks", self.scenario.workload.name)
        };
        self.tasks[task as usize].state = State::Sleeping;
        let exec = self.exec(who);
        exec.after = after;
        exec.next = Next::Sleep;
        self.work(who, self.costs.get(Cost::Block), Mode::Kernel)
    }

    fn draw(&mut self, amount: Amount) -> u64 {
        match amount {
            Amount::Fixed(value) => value,
            Amount::Drawn(dist) => self.code.dists[dist as usize].at(self.rng.next()),
        }
    }

    /// The object that a slot means for `who`.
    pub(super) fn object(&mut self, who: Who, slot: Slot) -> u32 {
        let cpu = self.cpu_of(who) as u32;
        let exec = self.exec(who);
        let (task, link) = match slot {
            Slot::Fixed(ObjectId(id)) => return id,
            Slot::Link(link) => (exec.behalf, link),
            Slot::Indexed { base, by } => (exec.behalf, base + exec.regs[usize::from(by.0)] as u32),
            Slot::ByCpu { base } => (exec.behalf, base + cpu),
            Slot::Item(link) => (exec.item, link),
        };
        let spec = self.tasks[task as usize].spec;
        let (from, count) = self.link_ranges[spec as usize];
        assert!(
            link < count,
            "task {spec} of workload `{}` has {count} links, not {link}",
            self.scenario.workload.name
        );
        self.links[(from + link) as usize].0
    }

    /// `work`, then `next`.
    pub(super) fn work_then(&mut self, who: Who, ns: u64, mode: Mode, next: Next) -> Flow {
        self.exec(who).next = next;
        self.work(who, ns, mode)
    }

    /// An operation on an object begins: so much work in the kernel, then `next`.
    fn operate(&mut self, who: Who, slot: Slot, ns: u64, next: Next) -> Flow {
        let object = self.object(who, slot);
        let exec = self.exec(who);
        exec.object = object;
        exec.slept = false;
        self.work_then(who, ns, Mode::Kernel, next)
    }

    fn call(&self, cost: Cost) -> u64 {
        self.costs.get(Cost::Syscall) + self.costs.get(cost)
    }

    fn fetch(&mut self, who: Who) -> Flow {
        self.spins_without_time += 1;
        if self.spins_without_time > STEPS_WITHOUT_TIME {
            self.spins_without_time = 0;
            return self.work(who, 1000, Mode::User);
        }
        let exec = self.exec(who);
        let ip = exec.ip;
        exec.ip += 1;
        let step = self.code.steps[ip as usize];
        let flow = self.execute(who, step);
        if flow == Flow::Rest {
            self.spins_without_time = 0;
        }
        flow
    }

    fn execute(&mut self, who: Who, step: Step) -> Flow {
        match step {
            Step::Run(amount) => {
                let ns = self.draw(amount);
                self.work(who, ns, Mode::User)
            }
            Step::RunKernel(amount) => {
                let ns = self.draw(amount);
                self.work(who, ns, Mode::Kernel)
            }
            Step::Spin(amount) => {
                let ns = self.draw(amount);
                let until = self.now + ns;
                let exec = self.exec(who);
                exec.deadline = until;
                exec.next = Next::SpinUntil;
                self.spin_until(who)
            }
            Step::Sleep(amount) => {
                let ns = self.draw(amount);
                self.sleep_until(who, self.now + ns)
            }
            Step::Periodic { timer, period, rebase } => {
                let period = self.draw(period);
                let now = self.now;
                let planned = &mut self.exec(who).regs[usize::from(timer.0)];
                let base = if *planned == 0 { now } else { *planned };
                *planned = base + period;
                let at = *planned;
                if at <= now {
                    if rebase {
                        *planned = now;
                    }
                    return Flow::Go;
                }
                self.sleep_until(who, at)
            }
            Step::Write { to, bytes } => {
                self.exec(who).bytes = bytes;
                self.operate(who, to, self.costs.get(Cost::Syscall), Next::WriteCall)
            }
            Step::Read { from, bytes } => {
                self.exec(who).bytes = bytes;
                self.operate(who, from, self.costs.get(Cost::Syscall), Next::ReadCall)
            }
            Step::Poll(slot) => self.operate(who, slot, self.call(Cost::FutexWait), Next::PollCheck),
            Step::Post(slot) => self.post(who, slot),
            Step::PostAll(slot) => self.post_all(who, slot),
            Step::Wait(slot) => self.wait(who, slot),
            Step::SpinWait(slot) => self.operate(who, slot, 0, Next::SpinLook),
            Step::Reset(slot) => self.reset(who, slot),
            Step::UnlessReady { on, target } => {
                let object = self.object(who, on);
                if !self.is_ready(object) {
                    self.exec(who).ip = target;
                }
                Flow::Go
            }
            Step::Send { to, value } => self.send(who, to, value),
            Step::Receive { from, into } => {
                self.exec(who).object2 = u32::from(into.0);
                self.operate(who, from, self.costs.get(Cost::LockFree), Next::QueueTake)
            }
            Step::WaitUnlock { on, mutex } => {
                let mutex = self.object(who, mutex);
                self.exec(who).object2 = mutex;
                self.operate(who, on, self.call(Cost::FutexWait), Next::CondUnlock)
            }
            Step::Lock(slot) => self.lock(who, slot),
            Step::Unlock(slot) => self.unlock(who, slot),
            Step::Push(slot) => {
                let object = self.object(who, slot);
                let task = self.exec(who).behalf;
                let Object::List(list) = &mut self.objects[object as usize] else {
                    self.wrong(object, "list")
                };
                list.push(task);
                self.work(who, self.costs.get(Cost::LockFree), Mode::User)
            }
            Step::TakeAll(slot) => {
                let object = self.object(who, slot);
                let Object::List(list) = &mut self.objects[object as usize] else {
                    self.wrong(object, "list")
                };
                let taken = std::mem::take(list);
                self.exec(who).taken = taken;
                self.work(who, self.costs.get(Cost::LockFree), Mode::User)
            }
            Step::NextItem { target } => {
                let exec = self.exec(who);
                match exec.taken.pop() {
                    Some(item) => exec.item = item,
                    None => exec.ip = target,
                }
                Flow::Go
            }
            Step::Submit { to, request } => {
                self.exec(who).object2 = request;
                self.operate(who, to, self.costs.get(Cost::Submit), Next::Submitted)
            }
            Step::Queue(slot) => self.operate(who, slot, self.costs.get(Cost::QueueWork), Next::Queued),
            Step::Flush(slot) => self.operate(who, slot, self.costs.get(Cost::QueueWork), Next::FlushCheck),
            Step::Touch(slot) => self.touch(who, slot),
            Step::Yield => self.work_then(who, self.call(Cost::Yield), Mode::Kernel, Next::Yielded),
            Step::Spawn(task) => {
                self.exec(who).object = self.by_ref[task.0 as usize];
                self.work_then(who, self.costs.get(Cost::Fork), Mode::Kernel, Next::Forked)
            }
            Step::Join(task) => {
                self.exec(who).object = self.by_ref[task.0 as usize];
                self.work_then(who, self.call(Cost::FutexWait), Mode::Kernel, Next::JoinCheck)
            }
            Step::Exit => self.end_of_program(who),
            Step::End => self.end_of_program(who),
            Step::SetAffinity(slot) => self.set_affinity(who, slot),
            Step::SetNice(nice) => self.set_nice(who, nice),
            Step::SetGroup(group) => self.set_group(who, group),
            Step::LoopStart { .. }
            | Step::LoopTest { .. }
            | Step::LoopEnd { .. }
            | Step::Unless { .. }
            | Step::Jump(_) => self.jump(who, step),
            Step::Stamp(_)
            | Step::Store { .. }
            | Step::Load { .. }
            | Step::Sample { .. }
            | Step::Count { .. }
            | Step::CountCpu(_) => self.measure(who, step),
        }
    }

    /// Models the end: a task exits, a worker's item or a handler is done.
    fn end_of_program(&mut self, who: Who) -> Flow {
        match who {
            Who::Irq(_) => {
                self.exec(who).next = if self.in_softirq(who) { Next::IrqOut } else { Next::IrqSoft };
                Flow::Go
            }
            Who::Task(task) if self.tasks[task as usize].pool != NOBODY => {
                self.exec(who).next = Next::WorkDone;
                Flow::Go
            }
            Who::Task(_) => self.work_then(who, self.costs.get(Cost::Exit), Mode::Kernel, Next::Exiting),
        }
    }

    fn jump(&mut self, who: Who, step: Step) -> Flow {
        let clock = self.now - BOOT;
        let drawn = if let Step::Unless { permille, .. } = step {
            self.rng.below(1000) < u64::from(permille)
        } else {
            false
        };
        let exec = self.exec(who);
        match step {
            Step::LoopStart { depth, counter } => {
                exec.loops[depth as usize] = 0;
                if let Some(reg) = counter {
                    exec.regs[usize::from(reg.0)] = 0;
                }
            }
            Step::LoopTest { depth, times, target } => {
                let goes_on = match times {
                    Rounds::Count(count) => exec.loops[depth as usize] < count,
                    Rounds::Forever => true,
                    Rounds::Before(at) => clock < at,
                };
                if !goes_on {
                    exec.ip = target;
                }
            }
            Step::LoopEnd { depth, counter, target } => {
                exec.loops[depth as usize] += 1;
                if let Some(reg) = counter {
                    exec.regs[usize::from(reg.0)] = exec.loops[depth as usize];
                }
                exec.ip = target;
            }
            Step::Unless { target, .. } => {
                if !drawn {
                    exec.ip = target;
                }
            }
            Step::Jump(target) => exec.ip = target,
            other => unreachable!("{other:?} is no jump"),
        }
        Flow::Go
    }

    fn measure(&mut self, who: Who, step: Step) -> Flow {
        let now = self.now;
        let cpu = self.cpu_of(who);
        match step {
            Step::Stamp(reg) => self.exec(who).regs[usize::from(reg.0)] = now,
            Step::Store { to, from } => {
                let object = self.object(who, to);
                let value = self.exec(who).regs[usize::from(from.0)];
                let Object::Cell(cell) = &mut self.objects[object as usize] else {
                    self.wrong(object, "cell")
                };
                *cell = value;
            }
            Step::Load { from, to } => {
                let object = self.object(who, from);
                let Object::Cell(cell) = self.objects[object as usize] else { self.wrong(object, "cell") };
                self.exec(who).regs[usize::from(to.0)] = cell;
            }
            Step::Sample { meter, since } => {
                let value = now.saturating_sub(self.exec(who).regs[usize::from(since.0)]);
                match &mut self.meters[meter.0 as usize] {
                    MeterValue::Samples(samples) if samples.len() < SAMPLES_MAX => samples.push(value),
                    MeterValue::Samples(samples) => {
                        // Every sample so far is kept with the same chance.
                        let dropped = &mut self.samples_dropped[meter.0 as usize];
                        *dropped += 1;
                        let at = self.sample_rng.below(SAMPLES_MAX as u64 + *dropped);
                        if let Some(kept) = samples.get_mut(at as usize) {
                            *kept = value;
                        }
                    }
                    MeterValue::Count(sum) => *sum = sum.saturating_add(value),
                    MeterValue::Cpus(_) | MeterValue::Seconds(_) => {
                        panic!("meter {} takes no samples", meter.0)
                    }
                }
            }
            Step::Count { meter, by } => match &mut self.meters[meter.0 as usize] {
                MeterValue::Count(sum) => *sum = sum.saturating_add(by),
                MeterValue::Seconds(counts) => {
                    let second = ((now - BOOT) / 1_000_000_000) as usize;
                    if counts.len() <= second {
                        counts.resize(second + 1, 0);
                    }
                    counts[second] = counts[second].saturating_add(by);
                }
                MeterValue::Samples(_) | MeterValue::Cpus(_) => panic!("meter {} is no counter", meter.0),
            },
            Step::CountCpu(meter) => match &mut self.meters[meter.0 as usize] {
                MeterValue::Cpus(counts) => counts[cpu] += 1,
                MeterValue::Count(_) | MeterValue::Samples(_) | MeterValue::Seconds(_) => {
                    panic!("meter {} does not count CPUs", meter.0)
                }
            },
            other => unreachable!("{other:?} measures nothing"),
        }
        Flow::Go
    }

    /// A workload uses an object as what it is not.
    #[cold]
    pub(super) fn wrong(&self, object: u32, wanted: &str) -> ! {
        let spec = &self.scenario.workload.objects[object as usize];
        panic!("`{}` of workload `{}` is no {wanted}", spec.name, self.scenario.workload.name)
    }

    fn touch(&mut self, who: Who, slot: Slot) -> Flow {
        let object = self.object(who, slot);
        let cpu = self.cpu_of(who);
        let Object::Data { cpu: lines } = &mut self.objects[object as usize] else {
            self.wrong(object, "data")
        };
        let from = lines.replace(cpu as u16);
        let ttwu_workload::ObjectKind::Data { bytes } = self.scenario.workload.objects[object as usize].kind
        else {
            self.wrong(object, "data")
        };
        let kib = bytes.div_ceil(1024);
        let near = kib.min(self.costs.get(Cost::RefillKibMax));
        let ns = match from.map(|from| self.level(usize::from(from), cpu)) {
            None | Some(Level::SameCpu | Level::Smt) => 0,
            Some(Level::Cluster) => near * self.costs.get(Cost::RefillCluster),
            Some(Level::Llc) => near * self.costs.get(Cost::RefillLlc),
            Some(Level::Die | Level::Node) => kib * self.costs.get(Cost::RefillNode),
            Some(Level::Remote) => kib * self.costs.get(Cost::RefillRemote),
        };
        self.counters.refill_ns += ns;
        self.work(who, ns, Mode::User)
    }

    fn sleep_until(&mut self, who: Who, at: u64) -> Flow {
        self.exec(who).deadline = at;
        let ns = self.call(Cost::TimerSet);
        self.work_then(who, ns, Mode::Kernel, Next::SleepTimer)
    }

    fn sleep_timer(&mut self, who: Who) -> Flow {
        let at = self.exec(who).deadline;
        self.exec(who).deadline = 0;
        if at <= self.now {
            self.exec(who).next = Next::Fetch;
            return Flow::Go;
        }
        let Who::Task(task) = who else {
            panic!("a handler of workload `{}` sleeps", self.scenario.workload.name)
        };
        let cpu = self.cpu_of(who);
        self.queue.post(cpu, at, super::cpu::Arrival::Timer(task));
        self.prepare_sleep(who, Next::Fetch)
    }

    fn spin_until(&mut self, who: Who) -> Flow {
        let until = self.exec(who).deadline;
        let left = until.saturating_sub(self.now);
        if left == 0 {
            let exec = self.exec(who);
            exec.deadline = 0;
            exec.next = Next::Fetch;
            return Flow::Go;
        }
        let cpu = self.cpu_of(who);
        let exec = self.exec(who);
        exec.mode = Mode::User;
        exec.left = left * 1000;
        self.begin(cpu, left * 1000, false);
        Flow::Rest
    }

    fn yielded(&mut self, who: Who) -> Flow {
        self.counters.yields += 1;
        let cpu = self.cpu_of(who);
        self.trace_yield(cpu);
        self.fair.yield_task(cpu_id(cpu), self.now);
        let exec = self.exec(who);
        exec.after = Next::Fetch;
        exec.next = Next::Reschedule;
        Flow::Go
    }
}
