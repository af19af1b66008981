//! A wake-up from the waker's side, step by step with its costs, and activation on the target's.
//!
//! ```text
//! waker   lock ─ base ─┬─ place ─ scan ─┬─ (list) push ──────── notify ─ next
//!                      │                └─ (direct) lock rq ─ enqueue ─ check ─ notify ─ next
//! target               still queued: no placement        └ interrupt or flag ─ exit idle ─ enqueue listed ─ switch
//! ```

use super::cpu::{Arrival, Context};
use super::objects::{KernelLock, Object, Side};
use super::stretch::Flow;
use super::task::{Mode, NOBODY, Next, State, Who};
use super::view::{Fast, Shared, Slow};
use super::{Sim, cpu_id};
use crate::{Cost, Decision, Switch};
use ttwu_fair::{
    Affine, EnqueueFlags, Kind, Memory, Placement, ScanEnd, TaskPolicy, WakeListQuery, WakeupCheck, place,
    queue_on_wake_list,
};
use ttwu_model::{CpuId, Level, SdFlags};

impl Sim<'_> {
    /// `who` wakes the tasks in its wake-up's list, then `then` follows.
    pub(super) fn wake_listed(&mut self, who: Who, then: Next) -> Flow {
        let now = self.now;
        let exec = self.exec(who);
        if exec.wake.list.is_empty() {
            exec.next = then;
            return Flow::Go;
        }
        exec.wake.at = 0;
        exec.wake.lock = NOBODY;
        exec.wake.sync = false;
        exec.wake.fork = false;
        exec.wake.softirq = false;
        exec.wake.began = now;
        exec.wake.then = then;
        exec.next = Next::WakeBegin;
        Flow::Go
    }

    /// `who` wakes those who sleep at one side of a stream, under the lock of that wait queue, then `then` follows.
    pub(super) fn wake_side(
        &mut self,
        who: Who,
        stream: u32,
        side: usize,
        softirq: bool,
        then: Next,
    ) -> Flow {
        let now = self.now;
        let idle = {
            let side = self.side(stream, side);
            side.sleepers.is_empty() && !side.lock.held
        };
        let exec = self.exec(who);
        if idle {
            exec.next = then;
            return Flow::Go;
        }
        exec.wake.list.clear();
        exec.wake.at = 0;
        exec.wake.lock = stream * 2 + side as u32;
        exec.wake.sync = true;
        exec.wake.fork = false;
        exec.wake.softirq = softirq;
        exec.wake.began = now;
        exec.wake.then = then;
        exec.next = Next::WakeLock;
        Flow::Go
    }

    pub(super) fn side(&mut self, stream: u32, side: usize) -> &mut Side {
        if !matches!(self.objects[stream as usize], Object::Stream(_)) {
            self.wrong(stream, "stream");
        }
        match &mut self.objects[stream as usize] {
            Object::Stream(stream) => &mut stream.sides[side],
            _ => unreachable!("checked above"),
        }
    }

    fn lock_of(&mut self, lock: u32) -> &mut KernelLock {
        &mut self.side(lock / 2, (lock % 2) as usize).lock
    }

    pub(super) fn wake_lock(&mut self, who: Who) -> Flow {
        let lock = self.exec(who).wake.lock;
        self.exec(who).next = Next::WakeBegin;
        self.exec(who).spin_from = 0;
        if self.scenario.settings.wait_queue_lock == Switch::Off {
            return Flow::Go;
        }
        let state = self.lock_of(lock);
        if state.held {
            state.spinners.push_back(who);
            self.counters.wait_queue_lock_waits += 1;
            return self.spin(who, Mode::Atomic);
        }
        state.held = true;
        Flow::Go
    }

    fn release(&mut self, lock: u32) {
        if lock == NOBODY || self.scenario.settings.wait_queue_lock == Switch::Off {
            return;
        }
        let state = self.lock_of(lock);
        match state.spinners.pop_front() {
            // Handed over: the lock stays held.
            Some(next) => self.poke(next),
            None => state.held = false,
        }
    }

    pub(super) fn wake_next(&mut self, who: Who) -> Flow {
        let now = self.now;
        let exec = self.exec(who);
        let lock = exec.wake.lock;
        if lock != NOBODY && exec.wake.at == 0 && exec.wake.list.is_empty() {
            if exec.spin_from != 0 {
                let waited = now - exec.spin_from;
                exec.spin_from = 0;
                self.counters.wait_queue_lock_wait_ns += waited;
            }
            let mut list = std::mem::take(&mut self.exec(who).wake.list);
            self.side(lock / 2, (lock % 2) as usize).take(&mut list);
            self.exec(who).wake.list = list;
        }
        let exec = self.exec(who);
        if exec.wake.at >= exec.wake.list.len() {
            exec.wake.list.clear();
            exec.next = exec.wake.then;
            let began = exec.wake.began;
            self.counters.waker_ns += now - began;
            self.release(lock);
            return Flow::Go;
        }
        self.work_then(who, self.costs.get(Cost::WakeBase), Mode::Atomic, Next::WakePlace)
    }

    /// The base is done: is there somebody to wake, and where is it to go?
    ///
    /// Models: try_to_wake_up(), wake_up_new_task(), v5.5–v7.2.
    pub(super) fn wake_place(&mut self, who: Who) -> Flow {
        let this = self.cpu_of(who);
        let exec = self.exec(who);
        let retry = exec.next == Next::WakeRetry;
        let task = exec.wake.list[exec.wake.at];
        let fork = exec.wake.fork;
        let state = &self.tasks[task as usize];
        if !retry && !fork {
            if state.state != State::Sleeping {
                return self.wake_done(who, 0);
            }
            if self.fair.is_queued(state.id) {
                return self.wake_queued(who, this, task);
            }
            self.tasks[task as usize].state = State::Waking;
            self.tasks[task as usize].waking_at = self.now;
            self.trace_waking(this, task);
            self.exec(who).wake.event = self.last_event();
            self.counters.wakeups += 1;
        }
        let home = self.tasks[task as usize].cpu as usize;
        if self.tasks[task as usize].on_cpu {
            if self.list_query(this, home, task, true) {
                self.decide(who, this, home, task, None);
                self.exec(who).wake.on_list = true;
                let ns = self.costs.get(Cost::ListPush);
                return self.work_then(who, ns, Mode::Atomic, Next::WakeEnqueue);
            }
            self.counters.on_cpu_spins += u64::from(!retry);
            let until = self.queue.time(home, super::queue::Class::Step).unwrap_or(self.now + 1);
            let left = (until + 1).saturating_sub(self.now).max(1) * 1000;
            let exec = self.exec(who);
            exec.next = Next::WakeRetry;
            exec.mode = Mode::Atomic;
            exec.left = left;
            self.begin(this, left, false);
            return Flow::Rest;
        }
        self.choose(who, this, home, task)
    }

    /// It has not left its queue: no placement.
    fn wake_queued(&mut self, who: Who, this: usize, task: u32) -> Flow {
        let cpu = self.tasks[task as usize].cpu as usize;
        self.counters.wakeups_still_queued += 1;
        self.tasks[task as usize].waking_at = self.now;
        self.trace_waking(this, task);
        let id = self.tasks[task as usize].id;
        let delayed = self.fair.is_delayed(id);
        let hold = self.costs.get(if cpu == this { Cost::EnqueueLocal } else { Cost::EnqueueRemote });
        let mut ns = 0;
        if delayed {
            ns = self.lock_queue(cpu, hold) + hold;
            self.fair.enqueue_task(
                cpu_id(cpu),
                id,
                self.now,
                EnqueueFlags { wakeup: true, ..EnqueueFlags::default() },
            );
            self.tasks[task as usize].runnable_at = self.now;
            self.tasks[task as usize].woken = true;
            self.tasks[task as usize].queued_by = this as u16;
        }
        self.tasks[task as usize].state = State::Runnable;
        self.event(5, cpu, task);
        if !self.tasks[task as usize].on_cpu || delayed {
            let sync = self.exec(who).wake.sync;
            ns +=
                self.check_preempt(cpu, task, this, WakeupCheck { sync, delayed, ..WakeupCheck::default() });
        }
        self.trace_wakeup(this, cpu, task, false);
        self.wake_done(who, ns)
    }

    /// On to the next, after so much more work.
    fn wake_done(&mut self, who: Who, ns: u64) -> Flow {
        self.exec(who).wake.at += 1;
        self.work_then(who, ns, Mode::Atomic, Next::WakeSent)
    }

    fn choose(&mut self, who: Who, this: usize, home: usize, task: u32) -> Flow {
        let answer = self.placement(who, this, task);
        let mut cpu = answer.map_or(home, |answer| answer.cpu.index());
        if !self.allowed(task).contains(cpu_id(cpu)) {
            cpu = self.allowed(task).lowest().expect("a task may run somewhere").index();
        }
        self.decide(who, this, cpu, task, answer.as_ref());
        let fork = self.exec(who).wake.fork;
        let distance = self.level(this, cpu);
        self.counters.wake_distance[distance as usize] += 1;
        if cpu == home {
            self.counters.kept_prev += 1;
        } else if cpu == this {
            self.counters.pulled_this += 1;
        }
        if cpu != home || fork {
            self.move_sleeping(task, this, cpu, fork);
        }
        let mut ns = answer.map_or(0, |answer| u64::from(answer.scanned)) * self.costs.get(Cost::ScanCpu);
        let listed = !fork && self.list_query(this, cpu, task, false);
        self.exec(who).wake.on_list = listed;
        if listed {
            ns += self.costs.get(Cost::ListPush);
        } else {
            let hold = self.costs.get(if cpu == this { Cost::EnqueueLocal } else { Cost::EnqueueRemote });
            ns += self.lock_queue(cpu, hold) + hold + self.lines(distance);
        }
        self.work_then(who, ns, Mode::Atomic, Next::WakeEnqueue)
    }

    /// What further lines of a wake-up cost over this distance.
    fn lines(&self, distance: Level) -> u64 {
        match distance {
            Level::SameCpu | Level::Smt | Level::Cluster => 0,
            Level::Llc => self.costs.get(Cost::LinesCluster),
            Level::Die | Level::Node => self.costs.get(Cost::LinesLlc),
            Level::Remote => self.costs.get(Cost::LinesNode),
        }
    }

    /// What `cpu` waits for when it switches to a task that another CPU woke, ns: lines of its queue and of the task, which that
    /// one took. Over the wake list nobody takes them.
    ///
    /// DEVIATION: the queue's lines are paid for at the switch to the task, not by whatever uses the queue first.
    pub(super) fn lines_back(&self, cpu: usize, task: u32) -> u64 {
        let task = &self.tasks[task as usize];
        let far = task.woken && self.level(usize::from(task.queued_by), cpu) >= Level::Llc;
        if far { self.costs.get(Cost::LinesBack) } else { 0 }
    }

    fn list_query(&mut self, this: usize, cpu: usize, task: u32, on_cpu: bool) -> bool {
        let query = WakeListQuery {
            this_cpu: cpu_id(this),
            cpu: cpu_id(cpu),
            on_cpu,
            allowed: self.allowed(task).contains(cpu_id(cpu)),
            active: true,
            stopper: false,
        };
        let wakee = self.tasks[task as usize].id;
        let Self { scenario, machine, fair, cpus, balance, now, .. } = self;
        let state = balance.as_deref_mut().expect("no pass is under way");
        let shared = Shared {
            fair: std::cell::RefCell::new(fair),
            cpus,
            machine,
            wakee,
            now: *now,
            idle_exit_ns: &[],
        };
        let mut view = Fast { shared: &shared, waker: None, state, scan_cpu_ns: 0 };
        queue_on_wake_list(&scenario.policy, machine, &query, &mut view)
    }

    /// Asks the rules; `None` for a task that may run on one CPU only.
    pub(super) fn placement(&mut self, who: Who, this: usize, task: u32) -> Option<Placement> {
        let fork = self.exec(who).wake.fork;
        if self.tasks[task as usize].pinned {
            self.counters.wakeups_pinned += u64::from(!fork);
            return None;
        }
        let wake = &self.exec(who).wake;
        let (sync, softirq) = (wake.sync, wake.softirq);
        let curr = self.cpus[this].curr;
        let (jiffies, waker_pinned) = (
            self.jiffies(),
            curr != NOBODY && {
                let waker = &self.tasks[curr as usize];
                waker.kthread && waker.pinned
            },
        );
        let (mut flips, mut waker_recent, waker) = match curr {
            NOBODY => (self.cpus[this].idle_flips, cpu_id(this), None),
            curr => {
                let waker = &self.tasks[curr as usize];
                (waker.flips, waker.recent, Some(waker.id))
            }
        };
        let scan_cpu_ns = self.costs.get(Cost::ScanCpu);
        let Self { scenario, machine, fair, cpus, tasks, balance, masks, checks, decisions, .. } = self;
        let state = balance.as_deref_mut().expect("no pass is under way");
        let copy = fork.then(|| state.clone());
        let wakee = &mut tasks[task as usize];
        let wakeup = ttwu_fair::Wakeup {
            kind: if fork { Kind::Fork } else { Kind::Wakeup },
            this_cpu: cpu_id(this),
            prev_cpu: cpu_id(usize::from(wakee.cpu)),
            sync,
            current_cpu: false,
            allowed: &masks[wakee.allowed as usize],
            wakee_is_idle_policy: wakee.attributes.policy == TaskPolicy::Idle,
            waker_is_per_cpu_kthread: waker_pinned,
            waker_is_idle_task: curr == NOBODY,
            in_task: matches!(who, Who::Task(_)) && !softirq,
            util: fair.task_util(wakee.id),
        };
        let mut recent = wakee.recent;
        let mut memory = Memory {
            waker: &mut flips,
            wakee: &wakee.flips,
            wakee_key: u64::from(task),
            recent_used_cpu: &mut recent,
            waker_recent_used_cpu: &mut waker_recent,
            jiffies,
        };
        let shared = Shared {
            fair: std::cell::RefCell::new(fair),
            cpus,
            machine,
            wakee: wakee.id,
            now: self.now,
            idle_exit_ns: &self.idle_exit_ns,
        };
        let mut view = Fast { shared: &shared, waker, state, scan_cpu_ns };
        let mut slow = Slow { shared: &shared, kernel: scenario.policy.kernel(), state: copy };
        checks.clear();
        let keep = decisions.is_some();
        let mut look = |check| {
            if keep {
                checks.push(check);
            }
        };
        let answer = place(&scenario.policy, machine, &wakeup, &mut memory, &mut view, &mut slow, &mut look);
        wakee.recent = recent;
        match curr {
            NOBODY => self.cpus[this].idle_flips = flips,
            curr => {
                self.tasks[curr as usize].flips = flips;
                self.tasks[curr as usize].recent = waker_recent;
            }
        }
        let prev = self.tasks[task as usize].cpu;
        if !fork && answer.affine == Affine::NotTried && self.would_be_affine(this, usize::from(prev), task) {
            self.counters.wide += 1;
        }
        self.count_placement(&answer, fork);
        Some(answer)
    }

    /// Would affinity have been asked, but for flips?
    fn would_be_affine(&self, this: usize, prev: usize, task: u32) -> bool {
        let mut domains = self.machine.domains().of(cpu_id(this)).iter();
        self.allowed(task).contains(cpu_id(this))
            && domains.any(|domain| {
                domain.flags().contains(SdFlags::WAKE_AFFINE) && domain.span().contains(cpu_id(prev))
            })
    }

    fn count_placement(&mut self, answer: &Placement, fork: bool) {
        if fork {
            return;
        }
        self.rules[answer.rule as usize] += 1;
        self.scan_ends[answer.scan as usize] += 1;
        self.counters.cpus_scanned += u64::from(answer.scanned);
    }

    /// Writes the decision down.
    fn decide(&mut self, who: Who, this: usize, cpu: usize, task: u32, answer: Option<&Placement>) {
        self.exec(who).wake.chosen = cpu as u16;
        self.exec(who).wake.selected = answer.is_some();
        let prev = CpuId::new(self.tasks[task as usize].cpu);
        // Not the last event: others may have come since the task was announced.
        let announced = self.exec(who).wake.event;
        let event = if self.trace.is_some() { announced } else { self.decisions_made };
        self.decisions_made += 1;
        if let Some(decisions) = &mut self.decisions {
            decisions.push(Decision {
                event,
                at_ns: self.now,
                this_cpu: cpu_id(this),
                prev_cpu: prev,
                cpu: cpu_id(cpu),
                rule: answer.map(|answer| answer.rule),
                affine: answer.map_or(Affine::NotTried, |answer| answer.affine),
                target: answer.map_or(prev, |answer| answer.target),
                checks: if answer.is_some() { std::mem::take(&mut self.checks) } else { Vec::new() },
                scanned: answer.map_or(0, |answer| answer.scanned),
                scan: answer.map_or(ScanEnd::None, |answer| answer.scan),
                wake_list: false,
                preempt: None,
            });
            let row = decisions.len() as u32 - 1;
            self.exec(who).wake.decision = row;
        }
    }

    /// A task that is on no queue changes CPU.
    ///
    /// Models: set_task_cpu(), v5.5–v7.2.
    pub(super) fn move_sleeping(&mut self, task: u32, this: usize, cpu: usize, fork: bool) {
        let home = self.tasks[task as usize].cpu as usize;
        let id = self.tasks[task as usize].id;
        self.fair.migrate(id, cpu_id(cpu), self.now);
        if home != cpu {
            self.trace_migrate(this, task, home, cpu);
            self.event(6, cpu, task);
            let distance = self.level(home, cpu) as usize;
            self.counters.migrations[distance] += 1;
            if fork {
                self.counters.migrations_fork += 1;
            } else {
                self.counters.migrations_wake += 1;
            }
            self.tasks[task as usize].cpu = cpu as u16;
        }
    }

    pub(super) fn wake_enqueue(&mut self, who: Who) -> Flow {
        let this = self.cpu_of(who);
        let wake = &self.exec(who).wake;
        let (cpu, task) = (wake.chosen as usize, wake.list[wake.at]);
        let row = wake.decision;
        let mut ns = 0;
        if wake.on_list {
            self.counters.wake_list += 1;
            let was_empty = self.cpus[cpu].wake_list.is_empty();
            self.cpus[cpu].wake_list.push(task);
            self.tasks[task as usize].listed_by = this as u16;
            if let Some(decisions) = &mut self.decisions {
                decisions[row as usize].wake_list = true;
            }
            if was_empty {
                ns = self.notify(cpu, this, Arrival::Call);
            }
        } else {
            let check = WakeupCheck {
                fork: wake.fork,
                sync: wake.sync,
                rq_selected: wake.selected,
                ..WakeupCheck::default()
            };
            ns += self.activate(cpu, task, this, check, row);
        }
        self.wake_done(who, ns)
    }

    /// Queues a woken task and asks whether it preempts. What notifying the CPU costs the CPU `by`.
    ///
    /// Models: ttwu_do_activate(), v5.5–v7.2.
    pub(super) fn activate(&mut self, cpu: usize, task: u32, by: usize, check: WakeupCheck, row: u32) -> u64 {
        let (id, now) = (cpu_id(cpu), self.now);
        let queued = self.fair.nr_running(id);
        self.counters.queue_length.add(u64::from(queued));
        self.counters.stacked += u64::from(queued > 0);
        let entity = self.tasks[task as usize].id;
        let flags = EnqueueFlags { wakeup: !check.fork, migrated: false, initial: check.fork };
        self.fair.enqueue_task(id, entity, now, flags);
        self.event(4, cpu, task);
        let state = &mut self.tasks[task as usize];
        state.state = State::Runnable;
        state.runnable_at = now;
        state.woken = true;
        state.queued_by = by as u16;
        // The kernel checks before it says so; of a new task it says so first.
        if check.fork {
            self.trace_wakeup(by, cpu, task, true);
        }
        let ns = self.check_preempt_row(cpu, task, by, check, row);
        if !check.fork {
            self.trace_wakeup(by, cpu, task, false);
        }
        self.queue_grew(cpu);
        if self.scenario.policy.kernel() < ttwu_fair::Kernel::V7_2 {
            self.idle_ends(cpu);
        }
        ns
    }

    fn check_preempt(&mut self, cpu: usize, task: u32, by: usize, check: WakeupCheck) -> u64 {
        self.check_preempt_row(cpu, task, by, check, NOBODY)
    }

    /// Models: wakeup_preempt(), check_preempt_curr(), v5.5–v7.2.
    pub(super) fn check_preempt_row(
        &mut self,
        cpu: usize,
        task: u32,
        by: usize,
        check: WakeupCheck,
        row: u32,
    ) -> u64 {
        if self.cpus[cpu].curr == NOBODY {
            return self.resched(cpu, ttwu_fair::Resched::Full, by);
        }
        let entity = self.tasks[task as usize].id;
        let need_resched = self.cpus[cpu].need_resched;
        let answer =
            self.fair.wakeup_preempt(cpu_id(cpu), entity, self.now, WakeupCheck { need_resched, ..check });
        if let Some(decisions) = &mut self.decisions
            && row != NOBODY
        {
            decisions[row as usize].preempt = Some(answer.reason);
        }
        self.counters.preempt_wake += u64::from(answer.verdict.is_some());
        match answer.resched() {
            Some(request) => self.resched(cpu, request, by),
            None => 0,
        }
    }

    /// The CPU's own wake list: everything on it is queued here. What that costs, ns.
    ///
    /// Models: sched_ttwu_pending(), v5.5–v7.2.
    pub(super) fn drain_wake_list(&mut self, cpu: usize) -> u64 {
        let mut list = std::mem::take(&mut self.cpus[cpu].wake_list);
        let each = self.costs.get(Cost::EnqueueLocal);
        let mut ns = self.lock_queue(cpu, each * list.len() as u64);
        for task in list.drain(..) {
            // Within an LLC the list spares everybody lines. From another one, the task's own have to come, and it is this CPU
            // that waits for them.
            let from = self.level(usize::from(self.tasks[task as usize].listed_by), cpu);
            let far = if from > Level::Llc { self.lines(from) } else { 0 };
            ns += each + far;
            self.activate(cpu, task, cpu, WakeupCheck::default(), NOBODY);
        }
        // The vector is used again.
        if self.cpus[cpu].wake_list.is_empty() {
            self.cpus[cpu].wake_list = list;
        }
        ns
    }

    /// Does an idle CPU see a wake-up without an interrupt?
    pub(super) fn polls(&self, cpu: usize) -> bool {
        let state = &self.cpus[cpu];
        debug_assert_eq!(state.context, Context::Idle);
        state.idle_state < self.monitors
    }
}
