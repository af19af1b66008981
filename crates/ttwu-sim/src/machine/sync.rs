//! Futexes and what is built on them: semaphores, mutexes, conditions, barriers, queues; and locks that are spun on.
//!
//! Nothing is handed over: whoever is woken looks again, and somebody else may have been quicker, as with the C library's.
//! Wake-ups happen after the bucket's lock is released (`wake_up_q()`), so that, unlike a stream's wait queue, no lock is held.

use super::Sim;
use super::objects::Object;
use super::stretch::Flow;
use super::task::{Mode, NOBODY, Next, Who};
use crate::Cost;
use ttwu_workload::{Reg, Slot};

impl Sim<'_> {
    fn wake_call(&self) -> u64 {
        self.costs.get(Cost::Syscall) + self.costs.get(Cost::FutexWake)
    }

    fn wait_call(&self) -> u64 {
        self.costs.get(Cost::Syscall) + self.costs.get(Cost::FutexWait)
    }

    fn me(&self, who: Who) -> u32 {
        match who {
            Who::Task(task) => task,
            Who::Irq(_) => panic!("a handler of workload `{}` waits", self.scenario.workload.name),
        }
    }

    /// Would waiting at it, or reading from it, not sleep?
    pub(super) fn is_ready(&self, object: u32) -> bool {
        match &self.objects[object as usize] {
            Object::Stream(stream) => !stream.is_empty(),
            Object::Futex { set, .. } => *set,
            Object::Semaphore { count, .. } => *count > 0,
            Object::Queue { values, .. } => !values.is_empty(),
            _ => self.wrong(object, "futex, semaphore, stream or queue"),
        }
    }

    /// A post begins; what is posted becomes visible when the system call's work is done.
    pub(super) fn post(&mut self, who: Who, slot: Slot) -> Flow {
        let object = self.object(who, slot);
        self.exec(who).object = object;
        self.exec(who).was = false;
        let in_handler = matches!(who, Who::Irq(_));
        let quiet = match &self.objects[object as usize] {
            // Set already: nobody is told.
            Object::Futex { set, .. } => *set,
            Object::Semaphore { sleepers, .. } => sleepers.is_empty(),
            Object::Condition { sleepers } => sleepers.is_empty(),
            _ => self.wrong(object, "futex, semaphore or condition"),
        };
        let ns = if quiet {
            self.costs.get(Cost::LockFree)
        } else if in_handler || self.in_kernel(who) {
            self.costs.get(Cost::FutexWake)
        } else {
            self.wake_call()
        };
        self.work_then(who, ns, Mode::Kernel, Next::Posted)
    }

    /// Kernel threads and workers call nothing: they are in the kernel.
    fn in_kernel(&self, who: Who) -> bool {
        match who {
            Who::Task(task) => self.tasks[task as usize].kthread,
            Who::Irq(_) => true,
        }
    }

    /// The post takes effect. `Exec::was`: all are woken.
    pub(super) fn posted(&mut self, who: Who) -> Flow {
        let object = self.exec(who).object;
        let all = std::mem::take(&mut self.exec(who).was);
        let mut list = std::mem::take(&mut self.exec(who).wake.list);
        let mut spinner = None;
        match &mut self.objects[object as usize] {
            Object::Futex { set, sleepers, spinners } => {
                if !std::mem::replace(set, true) || all {
                    list.extend(sleepers.pop_front());
                    spinner = spinners.first().copied();
                }
            }
            Object::Semaphore { count, sleepers, spinners } => {
                let reach = if all { sleepers.len().max(1) } else { 1 };
                *count += reach as u64;
                list.extend(sleepers.drain(..reach.min(sleepers.len())));
                spinner = spinners.first().copied();
            }
            Object::Condition { sleepers } => {
                let reach = if all { sleepers.len() } else { 1 };
                list.extend(sleepers.drain(..reach.min(sleepers.len())));
            }
            Object::Barrier { arrived, sleepers, .. } => {
                *arrived = 0;
                list.extend(sleepers.drain(..));
            }
            _ => self.wrong(object, "thing to post"),
        }
        self.exec(who).wake.list = list;
        if let Some(task) = spinner {
            self.poke(Who::Task(task));
        }
        self.wake_listed(who, Next::Fetch)
    }

    pub(super) fn post_all(&mut self, who: Who, slot: Slot) -> Flow {
        let object = self.object(who, slot);
        self.exec(who).object = object;
        self.exec(who).was = true;
        let ns = if self.in_kernel(who) { self.costs.get(Cost::FutexWake) } else { self.wake_call() };
        self.work_then(who, ns, Mode::Kernel, Next::Posted)
    }

    pub(super) fn reset(&mut self, who: Who, slot: Slot) -> Flow {
        let object = self.object(who, slot);
        let Object::Futex { set, .. } = &mut self.objects[object as usize] else {
            self.wrong(object, "futex")
        };
        *set = false;
        self.work(who, self.costs.get(Cost::LockFree), Mode::User)
    }

    pub(super) fn wait(&mut self, who: Who, slot: Slot) -> Flow {
        let object = self.object(who, slot);
        self.exec(who).object = object;
        self.exec(who).slept = false;
        let lock = self.costs.get(Cost::LockFree);
        match &self.objects[object as usize] {
            Object::Futex { set, .. } => {
                let ns = if *set { lock } else { self.wait_call() };
                self.work_then(who, ns, Mode::Kernel, Next::FutexWait)
            }
            Object::Semaphore { count, .. } => {
                let ns = if *count > 0 { lock } else { self.wait_call() };
                self.work_then(who, ns, Mode::Kernel, Next::SemaphoreWait)
            }
            Object::Condition { .. } => self.sleep_here(who, object, Next::Fetch),
            Object::Barrier { .. } => self.barrier_wait(who, object),
            _ => self.wrong(object, "thing to wait at"),
        }
    }

    /// Joins the sleepers of an object.
    fn sleep_here(&mut self, who: Who, object: u32, after: Next) -> Flow {
        let me = self.me(who);
        match &mut self.objects[object as usize] {
            Object::Futex { sleepers, .. }
            | Object::Semaphore { sleepers, .. }
            | Object::Mutex { sleepers, .. }
            | Object::Condition { sleepers }
            | Object::Barrier { sleepers, .. }
            | Object::Queue { sleepers, .. } => sleepers.push_back(me),
            _ => self.wrong(object, "thing to wait at"),
        }
        self.exec(who).slept = true;
        self.prepare_sleep(who, after)
    }

    fn barrier_wait(&mut self, who: Who, object: u32) -> Flow {
        let Object::Barrier { parties, arrived, sleepers } = &mut self.objects[object as usize] else {
            self.wrong(object, "barrier")
        };
        *arrived += 1;
        // One of nobody, which pthread_barrier_init() refuses, holds everybody.
        if *parties == 0 || *arrived < *parties {
            return self.sleep_here(who, object, Next::Fetch);
        }
        *arrived = 0;
        let list = sleepers.drain(..).collect();
        self.exec(who).wake.list = list;
        self.exec(who).wake.then = Next::Fetch;
        self.wake_listed(who, Next::Fetch)
    }

    pub(super) fn futex_wait(&mut self, who: Who) -> Flow {
        let object = self.exec(who).object;
        let Object::Futex { set, .. } = &mut self.objects[object as usize] else {
            self.wrong(object, "futex")
        };
        if std::mem::take(set) {
            self.exec(who).next = Next::Fetch;
            return Flow::Go;
        }
        self.sleep_here(who, object, Next::FutexWait)
    }

    pub(super) fn semaphore_wait(&mut self, who: Who) -> Flow {
        let object = self.exec(who).object;
        let Object::Semaphore { count, .. } = &mut self.objects[object as usize] else {
            self.wrong(object, "semaphore")
        };
        if *count > 0 {
            *count -= 1;
            self.exec(who).next = Next::Fetch;
            return Flow::Go;
        }
        self.sleep_here(who, object, Next::SemaphoreWait)
    }

    /// Looks at a futex or semaphore in user mode, again and again.
    pub(super) fn spin_look(&mut self, who: Who) -> Flow {
        let object = self.exec(who).object;
        let me = self.me(who);
        let ready = match &mut self.objects[object as usize] {
            Object::Futex { set, spinners, .. } => {
                let ready = std::mem::take(set);
                watch(spinners, me, ready);
                ready
            }
            Object::Semaphore { count, spinners, .. } => {
                let ready = *count > 0;
                *count -= u64::from(ready);
                watch(spinners, me, ready);
                ready
            }
            _ => self.wrong(object, "futex or semaphore"),
        };
        if ready {
            self.exec(who).next = Next::Fetch;
            return Flow::Go;
        }
        self.spin(who, Mode::User)
    }

    pub(super) fn send(&mut self, who: Who, to: Slot, value: Reg) -> Flow {
        let object = self.object(who, to);
        let value = self.exec(who).regs[usize::from(value.0)];
        let Object::Queue { values, sleepers } = &mut self.objects[object as usize] else {
            self.wrong(object, "queue")
        };
        values.push_back(value);
        let Some(sleeper) = sleepers.pop_front() else {
            return self.work(who, self.costs.get(Cost::LockFree), Mode::User);
        };
        self.exec(who).wake.list.push(sleeper);
        let ns = if self.in_kernel(who) { self.costs.get(Cost::FutexWake) } else { self.wake_call() };
        let flow = self.wake_listed(who, Next::Fetch);
        debug_assert_eq!(flow, Flow::Go);
        self.work(who, ns, Mode::Kernel)
    }

    pub(super) fn queue_take(&mut self, who: Who) -> Flow {
        let (object, reg) = (self.exec(who).object, self.exec(who).object2);
        let Object::Queue { values, .. } = &mut self.objects[object as usize] else {
            self.wrong(object, "queue")
        };
        if let Some(value) = values.pop_front() {
            let exec = self.exec(who);
            exec.regs[reg as usize] = value;
            exec.next = Next::Fetch;
            return Flow::Go;
        }
        self.sleep_here(who, object, Next::QueueTake)
    }

    pub(super) fn lock(&mut self, who: Who, slot: Slot) -> Flow {
        let object = self.object(who, slot);
        let exec = self.exec(who);
        exec.object = object;
        exec.slept = false;
        let by_cpu = match slot {
            Slot::ByCpu { base } => base,
            Slot::Fixed(_) | Slot::Link(_) | Slot::Indexed { .. } | Slot::Item(_) => NOBODY,
        };
        exec.object2 = by_cpu;
        let next = match &self.objects[object as usize] {
            Object::Mutex { .. } => Next::MutexTry,
            Object::Spin { .. } => Next::SpinTry,
            _ => self.wrong(object, "lock"),
        };
        self.work_then(who, self.costs.get(Cost::LockFree), Mode::User, next)
    }

    /// A lock was taken. Is it still that of the CPU on which the task is? Else it is given back, and the other one tried.
    fn took(&mut self, who: Who) -> Flow {
        let base = self.exec(who).object2;
        let object = self.exec(who).object;
        if base != NOBODY {
            self.exec(who).held = object;
            let here = self.object(who, Slot::ByCpu { base });
            if here != object {
                let next = self.exec(who).next;
                debug_assert!(next == Next::MutexTry || next == Next::SpinTry);
                self.exec(who).object = here;
                return self.give_back(who, object, next);
            }
        }
        self.exec(who).next = Next::Fetch;
        Flow::Go
    }

    pub(super) fn mutex_try(&mut self, who: Who) -> Flow {
        let (object, me) = (self.exec(who).object, self.me(who));
        let Object::Mutex { owner, .. } = &mut self.objects[object as usize] else {
            self.wrong(object, "mutex")
        };
        if *owner == NOBODY {
            *owner = me;
            return self.took(who);
        }
        self.sleep_here(who, object, Next::MutexTry)
    }

    pub(super) fn spin_try(&mut self, who: Who) -> Flow {
        let (object, me) = (self.exec(who).object, self.me(who));
        let Object::Spin { owner, spinners } = &mut self.objects[object as usize] else {
            self.wrong(object, "spin lock")
        };
        let free = *owner == NOBODY;
        watch(spinners, me, free);
        if free {
            *owner = me;
            return self.took(who);
        }
        self.spin(who, Mode::User)
    }

    pub(super) fn unlock(&mut self, who: Who, slot: Slot) -> Flow {
        let object = match slot {
            Slot::ByCpu { .. } => std::mem::replace(&mut self.exec(who).held, NOBODY),
            Slot::Fixed(_) | Slot::Link(_) | Slot::Indexed { .. } | Slot::Item(_) => self.object(who, slot),
        };
        assert!(object != NOBODY, "workload `{}` unlocks what it did not lock", self.scenario.workload.name);
        self.give_back(who, object, Next::Fetch)
    }

    /// Releases a lock, then `then`.
    fn give_back(&mut self, who: Who, object: u32, then: Next) -> Flow {
        let lock = self.costs.get(Cost::LockFree);
        if let (Who::Task(me), Object::Mutex { owner, .. } | Object::Spin { owner, .. }) =
            (who, &self.objects[object as usize])
            && *owner != me
        {
            // What then happens is anybody's guess; the run ends here.
            self.unlocked = Some((me, object));
            self.end = Some(crate::End::Stuck);
            return Flow::Rest;
        }
        match &mut self.objects[object as usize] {
            Object::Mutex { owner, sleepers } => {
                *owner = NOBODY;
                let Some(first) = sleepers.pop_front() else {
                    return self.work_then(who, lock, Mode::User, then);
                };
                self.exec(who).wake.list.push(first);
                let ns = self.wake_call();
                let flow = self.wake_listed(who, then);
                debug_assert_eq!(flow, Flow::Go);
                self.work(who, ns, Mode::Kernel)
            }
            Object::Spin { owner, spinners } => {
                *owner = NOBODY;
                let waiting = std::mem::take(spinners);
                let first = waiting.iter().copied().find(|&task| self.spins_now(task));
                if let Object::Spin { spinners, .. } = &mut self.objects[object as usize] {
                    *spinners = waiting;
                }
                if let Some(task) = first {
                    self.poke(Who::Task(task));
                }
                self.work_then(who, lock, Mode::User, then)
            }
            _ => self.wrong(object, "lock"),
        }
    }

    /// At a condition: joins the sleepers and gives up the mutex, in one; when woken, takes the mutex again.
    pub(super) fn cond_unlock(&mut self, who: Who) -> Flow {
        let (object, mutex, me) = (self.exec(who).object, self.exec(who).object2, self.me(who));
        let Object::Condition { sleepers } = &mut self.objects[object as usize] else {
            self.wrong(object, "condition")
        };
        sleepers.push_back(me);
        self.tasks[me as usize].state = super::task::State::Sleeping;
        let exec = self.exec(who);
        exec.object = mutex;
        exec.object2 = NOBODY;
        exec.after = Next::MutexTry;
        self.give_back(who, mutex, Next::Sleep)
    }
}

/// Is `task` among the spinners? Not any more once it has what it wants.
fn watch(spinners: &mut Vec<u32>, task: u32, done: bool) {
    let at = spinners.iter().position(|&other| other == task);
    match (at, done) {
        (Some(at), true) => drop(spinners.remove(at)),
        (None, false) => spinners.push(task),
        (Some(_), false) | (None, true) => {}
    }
}
