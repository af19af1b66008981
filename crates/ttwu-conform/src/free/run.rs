//! The machine that runs by itself.

use super::script::{Act, Outside, Script, Wake};
use super::view::FreeView;
use super::{Divergence, FreeReport};
use crate::plain::{NoSlowPath, Place};
use std::collections::BTreeMap;
use ttwu_fair::{
    DequeueFlags, EnqueueFlags, EntityId, Fair, Flips, GroupId, Kind, Machine, Memory, Placement, Policy,
    Resched, ScanCost, TaskAttributes, Wakeup, WakeupCheck, place,
};
use ttwu_model::{CpuId, CpuSet, TaskId, Trace};

/// What happens at a time.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Outside(usize),
    /// The running task of a CPU reaches the end of its stretch, if it is still the run of that number.
    Act(CpuId, u64),
    Tick(CpuId),
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    current: Option<TaskId>,
    since: u64,
    run: u64,
    lazy: bool,
    idle_flips: Flips,
}

#[derive(Clone, Debug)]
struct Task {
    entity: EntityId,
    step: usize,
    left_ns: u64,
    blocks: usize,
    /// Woken before it blocked: it will not.
    credit: u32,
    awake: bool,
    began: bool,
    flips: Flips,
    recent: Option<CpuId>,
}

/// See the module.
pub(super) struct Run<'a> {
    trace: &'a Trace,
    script: &'a Script,
    policy: &'a Policy,
    machine: &'a Machine,
    online: CpuSet,
    fair: Fair,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    of_entity: BTreeMap<usize, TaskId>,
    queue: BTreeMap<(u64, u64), Happening>,
    order: u64,
    tick_ns: u64,
    pub(super) report: FreeReport,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        script: &'a Script,
        policy: &'a Policy,
        machine: &'a Machine,
        start: u64,
    ) -> Self {
        let mut fair = Fair::new(policy, machine.cpu_bound());
        let mut of_entity = BTreeMap::new();
        let mut tasks = Vec::new();
        for (index, plain) in script.before.tasks.iter().enumerate() {
            let attributes = TaskAttributes { nice: plain.nice(), ..TaskAttributes::NORMAL };
            let entity = fair.add_task(attributes, GroupId::ROOT);
            of_entity
                .insert(entity.index(), TaskId::new(u32::try_from(index).expect("task ids are 32 bits")));
            let left_ns = script.steps[index].first().map_or(0, |step| step.run_ns);
            tasks.push(Task {
                entity,
                step: 0,
                left_ns,
                blocks: 0,
                credit: 0,
                awake: false,
                began: false,
                flips: Flips::default(),
                recent: None,
            });
        }
        let tick_ns = 1_000_000_000 / machine.tunables().hz.max(1);
        let mut run = Self {
            trace,
            script,
            policy,
            machine,
            online: trace.meta().cpus_online.clone().unwrap_or_else(|| CpuSet::first(machine.cpu_bound())),
            fair,
            cpus: vec![Cpu::default(); machine.cpu_bound()],
            tasks,
            of_entity,
            queue: BTreeMap::new(),
            order: 0,
            tick_ns,
            report: FreeReport::default(),
        };
        run.begin(start);
        run
    }

    fn at(&mut self, time: u64, what: Happening) {
        self.order += 1;
        self.queue.insert((time, self.order), what);
    }

    /// Puts the tasks where they were before the first event.
    fn begin(&mut self, start: u64) {
        for index in 0..self.script.outside.len() {
            self.at(self.script.outside[index].0, Happening::Outside(index));
        }
        for index in 0..self.tasks.len() {
            let plain = &self.script.before.tasks[index];
            if index > 0
                && plain.fair
                && let Place::On(cpu) = plain.place
            {
                self.enqueue_new(
                    TaskId::new(u32::try_from(index).expect("task ids are 32 bits")),
                    cpu,
                    start,
                );
            }
            let row = &mut self.tasks[index];
            if !row.began
                && let Some(cpu) = plain.cpu.filter(|cpu| cpu.index() < self.cpus.len())
            {
                // It slept there when the recording began.
                self.fair.migrate(row.entity, cpu, start);
                row.began = true;
            }
        }
        let cpus: Vec<CpuId> = self.online.iter().filter(|cpu| cpu.index() < self.cpus.len()).collect();
        for cpu in cpus {
            self.schedule(cpu, start);
            self.at(start + self.tick_ns, Happening::Tick(cpu));
        }
    }

    fn enqueue_new(&mut self, task: TaskId, cpu: CpuId, now: u64) {
        let entity = self.tasks[task.index()].entity;
        if self.tasks[task.index()].began || cpu.index() >= self.cpus.len() {
            return;
        }
        self.fair.fork(cpu, entity, now);
        let flags = EnqueueFlags { initial: true, ..EnqueueFlags::default() };
        self.fair.enqueue_task(cpu, entity, now, flags);
        let row = &mut self.tasks[task.index()];
        (row.began, row.awake) = (true, true);
    }

    pub(super) fn until(&mut self, end: u64) {
        while let Some(((now, _), what)) = self.queue.pop_first() {
            if now > end {
                return;
            }
            match what {
                Happening::Outside(index) => match self.script.outside[index].1 {
                    Outside::Wake(cpu, wake) => self.wake(cpu, wake, now, None),
                    Outside::Move(task, to) => self.moved(task, to, now),
                },
                Happening::Act(cpu, run) => self.act(cpu, run, now),
                Happening::Tick(cpu) => self.tick(cpu, now),
            }
        }
    }

    /// Notes how much of its stretch the running task has left.
    fn stop(&mut self, cpu: CpuId, now: u64) {
        let of = &mut self.cpus[cpu.index()];
        if let Some(task) = of.current {
            let row = &mut self.tasks[task.index()];
            row.left_ns = row.left_ns.saturating_sub(now - of.since);
            of.since = now;
        }
    }

    /// Picks who runs on `cpu` from now on.
    fn schedule(&mut self, cpu: CpuId, now: u64) {
        self.stop(cpu, now);
        let next = self.fair.pick_next(cpu, now);
        self.fair.switch(cpu, next, now);
        let task = next.and_then(|entity| self.of_entity.get(&entity.index()).copied());
        let of = &mut self.cpus[cpu.index()];
        (of.current, of.since, of.lazy) = (task, now, false);
        of.run += 1;
        let run = of.run;
        if let Some(task) = task {
            self.arm(task, cpu, run, now);
        }
    }

    /// The end of the stretch, unless the recording ends before the task's next act.
    fn arm(&mut self, task: TaskId, cpu: CpuId, run: u64, now: u64) {
        let row = &self.tasks[task.index()];
        if row.step < self.script.steps[task.index()].len() {
            let then = now + row.left_ns;
            self.at(then, Happening::Act(cpu, run));
        }
    }

    fn act(&mut self, cpu: CpuId, run: u64, now: u64) {
        let Some(task) = self.cpus[cpu.index()].current.filter(|_| self.cpus[cpu.index()].run == run) else {
            return;
        };
        let steps = &self.script.steps[task.index()];
        let row = &mut self.tasks[task.index()];
        let Some(step) = steps.get(row.step) else { return };
        row.step += 1;
        row.left_ns = steps.get(row.step).map_or(0, |step| step.run_ns);
        self.cpus[cpu.index()].since = now;
        match step.act {
            Act::Wake(wake) => self.wake(cpu, wake, now, Some(task)),
            Act::Fork(child, to) => {
                self.enqueue_new(child, to, now);
                if self.cpus.get(to.index()).is_some_and(|of| of.current.is_none()) {
                    self.schedule(to, now);
                }
            }
            Act::Block if row.credit > 0 => {
                row.credit -= 1;
                row.blocks += 1;
            }
            Act::Block => self.leave(cpu, task, now, DequeueFlags { sleep: true, ..DequeueFlags::default() }),
            Act::Exit => {
                let flags = DequeueFlags { sleep: true, special: true, ..DequeueFlags::default() };
                self.leave(cpu, task, now, flags);
            }
        }
        let of = &self.cpus[cpu.index()];
        if of.current == Some(task) && of.run == run {
            self.arm(task, cpu, run, now);
        }
    }

    /// The running task blocks or ends; who comes next is compared.
    fn leave(&mut self, cpu: CpuId, task: TaskId, now: u64, flags: DequeueFlags) {
        let row = &mut self.tasks[task.index()];
        let (entity, block) = (row.entity, row.blocks);
        (row.awake, row.blocks) = (false, block + 1);
        self.fair.dequeue_task(entity, now, flags);
        self.schedule(cpu, now);
        let Some(&theirs) = self.script.next[task.index()].get(block) else { return };
        if !theirs.is_idle() && !self.script.before.tasks[theirs.index()].fair {
            return;
        }
        let ours = self.cpus[cpu.index()].current.unwrap_or(TaskId::IDLE);
        self.report.picks.add(ours == theirs);
        if ours != theirs {
            let text = format!(
                "after block {} of {} on CPU {cpu}: kernel runs {}, model {}",
                block + 1,
                self.name(task),
                self.name(theirs),
                self.name(ours)
            );
            self.diverged(now, text);
        }
    }

    fn name(&self, task: TaskId) -> String {
        if task.is_idle() {
            return "the idle task".to_owned();
        }
        let name = self.trace.tasks().last_name(task);
        name.map_or_else(
            || format!("task {}", task.index()),
            |name| self.trace.strings().get(name).to_owned(),
        )
    }

    fn diverged(&mut self, now: u64, text: String) {
        if self.report.first.is_none() {
            let report = &self.report;
            let after = report.placements.equal + report.preemptions.equal + report.picks.equal;
            self.report.first = Some(Divergence { after, at_ns: now, text });
        }
    }

    fn wake(&mut self, this: CpuId, index: usize, now: u64, waker: Option<TaskId>) {
        let wake = self.script.wakes[index];
        let wakee = wake.wakee;
        let row = &mut self.tasks[wakee.index()];
        if row.awake {
            row.credit += 1;
            self.report.early += 1;
            return;
        }
        row.awake = true;
        let (entity, began) = (row.entity, std::mem::replace(&mut row.began, true));
        // A task whose first event is this one was asleep; where is not known if the trace does not say.
        if !began {
            self.fair.migrate(entity, this, now);
        }
        let prev = self.fair.cpu_of(entity).unwrap_or(this);
        if self.fair.is_queued(entity) {
            // Delayed: it is woken where it is.
            self.fair.enqueue_task(
                prev,
                entity,
                now,
                EnqueueFlags { wakeup: true, ..EnqueueFlags::default() },
            );
            self.woken(prev, &wake, now, waker.is_some(), true);
            return;
        }
        let bound = self.script.bound[wakee.index()];
        let cpu = if bound { prev } else { self.placed(this, &wake, prev, now, waker) };
        if cpu != prev {
            self.fair.migrate(entity, cpu, now);
        }
        let flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
        self.fair.enqueue_task(cpu, entity, now, flags);
        self.woken(cpu, &wake, now, waker.is_some() && cpu == this, false);
    }

    /// Asks for a CPU and compares it.
    fn placed(&mut self, this: CpuId, wake: &Wake, prev: CpuId, now: u64, waker: Option<TaskId>) -> CpuId {
        let answer = self.ask(this, wake, prev, now, waker);
        if let Some(theirs) = wake.chosen {
            self.report.placements.add(answer.cpu == theirs);
            if answer.cpu != theirs {
                let text = format!(
                    "{} woken on CPU {this} (prev {prev}): kernel {theirs}, model {} by {:?} (target {}, {:?}); the model is {} ns {} the recording",
                    self.name(wake.wakee),
                    answer.cpu,
                    answer.rule,
                    answer.target,
                    answer.affine,
                    now.abs_diff(wake.at),
                    if now >= wake.at { "behind" } else { "ahead of" }
                );
                self.diverged(now, text);
            }
        }
        answer.cpu
    }

    fn ask(&mut self, this: CpuId, wake: &Wake, prev: CpuId, now: u64, waker: Option<TaskId>) -> Placement {
        // An interrupt is charged to whoever runs there.
        let current = waker.or(self.cpus[this.index()].current);
        let row = &self.tasks[wake.wakee.index()];
        let (wakee_flips, recent, entity) = (row.flips, row.recent, row.entity);
        let mut flips =
            current.map_or(self.cpus[this.index()].idle_flips, |task| self.tasks[task.index()].flips);
        let mut recent = recent.unwrap_or(prev);
        let mut waker_recent = this;
        let wakeup = Wakeup {
            kind: Kind::Wakeup,
            this_cpu: this,
            prev_cpu: prev,
            sync: false,
            current_cpu: false,
            allowed: &self.online,
            wakee_is_idle_policy: false,
            waker_is_per_cpu_kthread: current.is_some_and(|task| self.script.bound[task.index()]),
            waker_is_idle_task: current.is_none(),
            in_task: wake.in_task,
            util: 0,
        };
        let mut memory = Memory {
            waker: &mut flips,
            wakee: &wakee_flips,
            wakee_key: wake.wakee.index() as u64,
            recent_used_cpu: &mut recent,
            waker_recent_used_cpu: &mut waker_recent,
            jiffies: now / self.tick_ns,
        };
        let mut view = FreeView {
            waker: current.map(|task| self.tasks[task.index()].entity),
            fair: &mut self.fair,
            machine: self.machine,
            now,
            wakee: entity,
            cost: ScanCost::BOOT,
        };
        let answer =
            place(self.policy, self.machine, &wakeup, &mut memory, &mut view, &mut NoSlowPath, &mut |_| {});
        match current {
            Some(task) => self.tasks[task.index()].flips = flips,
            None => self.cpus[this.index()].idle_flips = flips,
        }
        self.tasks[wake.wakee.index()].recent = Some(recent);
        answer
    }

    /// A wakee is queued: an idle CPU takes it, a busy one is asked whether it is preempted.
    fn woken(&mut self, cpu: CpuId, wake: &Wake, now: u64, local: bool, delayed: bool) {
        let Some(current) = self.cpus[cpu.index()].current else {
            self.schedule(cpu, now);
            return;
        };
        let entity = self.tasks[wake.wakee.index()].entity;
        let check = WakeupCheck { rq_selected: !delayed, delayed, ..WakeupCheck::default() };
        let verdict = self.fair.wakeup_preempt(cpu, entity, now, check).resched();
        if let Some(theirs) = wake.preempted.filter(|_| wake.chosen == Some(cpu)) {
            let ours = verdict.is_some();
            self.report.preemptions.add(ours == theirs);
            if ours != theirs {
                let text = format!(
                    "{} woken on CPU {cpu} where {} runs: kernel preempts {theirs}, model {ours}; the model is {} ns {} the recording",
                    self.name(wake.wakee),
                    self.name(current),
                    now.abs_diff(wake.at),
                    if now >= wake.at { "behind" } else { "ahead of" }
                );
                self.diverged(now, text);
            }
        }
        match verdict {
            Some(Resched::Full) => self.schedule(cpu, now),
            // Taken up on the way out of the kernel: the waker is in it, another CPU's task enters it with the tick.
            Some(Resched::Lazy) if local => self.schedule(cpu, now),
            Some(Resched::Lazy) => self.cpus[cpu.index()].lazy = true,
            None => {}
        }
    }

    fn tick(&mut self, cpu: CpuId, now: u64) {
        self.at(now + self.tick_ns, Happening::Tick(cpu));
        let of = &self.cpus[cpu.index()];
        if of.current.is_none() {
            return;
        }
        let lazy = of.lazy;
        let verdict = self.fair.tick(cpu, now);
        if lazy || verdict.is_some_and(|verdict| verdict.resched.is_some()) {
            self.schedule(cpu, now);
        }
    }

    /// The balancer of the recording moved a task; here too if it waits.
    fn moved(&mut self, task: TaskId, to: CpuId, now: u64) {
        let entity = self.tasks[task.index()].entity;
        let Some(from) = self.fair.cpu_of(entity).filter(|&from| from != to) else { return };
        let waits = self.fair.is_queued(entity)
            && !self.fair.is_delayed(entity)
            && self.cpus[from.index()].current != Some(task);
        if waits {
            self.fair.detach_task(entity, now);
            self.fair.attach_task(to, entity, now);
            if self.cpus[to.index()].current.is_none() {
                self.schedule(to, now);
            }
        }
    }
}
