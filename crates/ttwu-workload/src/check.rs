//! Is a workload sound: does every operation name what exists and fits, and does no loop stand still?
//!
//! Executors may take what passes here for granted. What only a run can show (a deadlock, a reader of more than is written) is not
//! looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::{
    MeterKind, MeterRef, ObjectId, ObjectKind, Op, Reg, Slot, Start, TaskRef, TaskSpec, Times, Until,
    Workload,
};

/// Why a workload is not sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsound {
    /// The task, by name and number; `None` when it is about the whole.
    pub task: Option<(String, TaskRef)>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.task {
            Some((name, number)) => write!(f, "task {name} ({}): {}", number.0, self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Unsound {}

impl Workload {
    /// Checks that all references exist and fit, that handlers do not block and that no loop takes no time for ever.
    ///
    /// # Errors
    /// The first fault, in the order of tasks.
    pub fn check(&self) -> Result<(), Unsound> {
        self.check_whole().map_err(|message| Unsound { task: None, message })?;
        let pushers = self.pushers();
        let mut spawned = BTreeSet::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let number = TaskRef(number as u32);
            let mut check = Check {
                workload: self,
                task,
                pushers: &pushers,
                spawned: &mut spawned,
                handlers: BTreeSet::new(),
            };
            check.task().map_err(|message| Unsound { task: Some((task.name.clone(), number)), message })?;
        }
        let orphan = self.tasks.iter().enumerate().find(|(number, task)| {
            task.start == Start::Forked && !spawned.contains(&TaskRef(*number as u32))
        });
        match orphan {
            Some((number, task)) => Err(Unsound {
                task: Some((task.name.clone(), TaskRef(number as u32))),
                message: "is forked by nobody".to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn check_whole(&self) -> Result<(), String> {
        if self.tasks.is_empty() {
            return Err("expected at least one task".to_owned());
        }
        for (number, group) in self.groups.iter().enumerate() {
            if group.parent.is_some_and(|parent| parent.0 as usize >= number) {
                return Err(format!("group {}: its parent must come before it", group.name));
            }
            if !(2..=262_144).contains(&group.shares) {
                return Err(format!(
                    "group {}: expected shares from 2 to 262144, found {}",
                    group.name, group.shares
                ));
            }
        }
        let mut names = BTreeSet::new();
        if let Some(meter) = self.meters.iter().find(|meter| !names.insert(&meter.name)) {
            return Err(format!("two meters are named {}", meter.name));
        }
        for object in &self.objects {
            if let ObjectKind::Device(device) = &object.kind {
                let scales = device.requests.iter().map(|request| request.service_queued_permille);
                if device.channels == 0 || scales.into_iter().any(|scale| scale > 1_000) {
                    return Err(format!(
                        "device {}: expected a channel, and no more than 1000 permille",
                        object.name
                    ));
                }
            }
        }
        match self.until {
            Until::Exit(task) if task.0 as usize >= self.tasks.len() => {
                Err(format!("the run ends with task {}, which does not exist", task.0))
            }
            Until::Exit(_) | Until::AllExit | Until::Time(_) => Ok(()),
        }
    }

    /// The tasks that push themselves on each list.
    fn pushers(&self) -> BTreeMap<ObjectId, Vec<&TaskSpec>> {
        let mut pushers: BTreeMap<ObjectId, Vec<&TaskSpec>> = BTreeMap::new();
        for task in &self.tasks {
            let Some(program) = self.programs.get(task.program as usize) else { continue };
            visit(&program.ops, &mut |op| {
                let list = match op {
                    Op::Push(Slot::Fixed(list)) => Some(*list),
                    Op::Push(Slot::Link(number)) => task.links.get(*number as usize).copied(),
                    _ => None,
                };
                if let Some(list) = list {
                    pushers.entry(list).or_default().push(task);
                }
            });
        }
        pushers
    }
}

/// Every operation, outer before inner.
fn visit<'a>(ops: &'a [Op], each: &mut impl FnMut(&'a Op)) {
    for op in ops {
        each(op);
        for body in bodies(op) {
            visit(body, each);
        }
    }
}

/// The operations inside an operation.
pub(crate) fn bodies(op: &Op) -> Vec<&[Op]> {
    match op {
        Op::Repeat { body, .. } | Op::TakeAll { body, .. } => vec![body],
        Op::Choose { then, otherwise, .. } | Op::IfReady { then, otherwise, .. } => vec![then, otherwise],
        // Named one by one in `slots` and `passes_time`: an operation that is added stops the build there.
        _ => Vec::new(),
    }
}

/// Where operations are done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// In the task itself.
    Task,
    /// In a worker, on the task's behalf.
    Worker,
    /// In an interrupt or tasklet, on the task's behalf.
    Handler,
}

struct Check<'a> {
    workload: &'a Workload,
    task: &'a TaskSpec,
    pushers: &'a BTreeMap<ObjectId, Vec<&'a TaskSpec>>,
    spawned: &'a mut BTreeSet<TaskRef>,
    /// Work items and requests that were followed already.
    handlers: BTreeSet<(ObjectId, u32)>,
}

type Checked = Result<(), String>;

impl<'a> Check<'a> {
    fn task(&mut self) -> Checked {
        let task = self.task;
        if task.name.is_empty() || task.name.len() > 15 {
            return Err("expected a name of 1 to 15 bytes".to_owned());
        }
        if !(-20..=19).contains(&task.nice) {
            return Err(format!("expected a nice value from -20 to 19, found {}", task.nice));
        }
        if task.idle_policy && task.batch_policy {
            return Err("expected one of SCHED_IDLE and SCHED_BATCH".to_owned());
        }
        if task.group.is_some_and(|group| group.0 as usize >= self.workload.groups.len()) {
            return Err("its group does not exist".to_owned());
        }
        if task.allowed.as_ref().is_some_and(ttwu_model::CpuSet::is_empty) {
            return Err("may run on no CPU".to_owned());
        }
        if task.links.iter().any(|link| link.0 as usize >= self.workload.objects.len()) {
            return Err("a link does not exist".to_owned());
        }
        let program =
            self.workload.programs.get(task.program as usize).ok_or("its program does not exist")?;
        self.ops(&program.ops, Place::Task, &[])
    }

    /// `items`: the tasks of which one is the current item.
    fn ops(&mut self, ops: &'a [Op], place: Place, items: &[&TaskSpec]) -> Checked {
        for op in ops {
            self.op(op, place, items)?;
        }
        Ok(())
    }

    fn op(&mut self, op: &'a Op, place: Place, items: &[&TaskSpec]) -> Checked {
        if place == Place::Handler && may_block(op) {
            return Err(format!("a handler must not block: {op:?}"));
        }
        if place != Place::Task && only_tasks(op) {
            return Err(format!("only a task may do this, not a worker or a handler: {op:?}"));
        }
        self.references(op, items)?;
        match op {
            Op::Queue(slot) => self.work(slot),
            Op::Submit { to, request } => self.request(to, *request),
            Op::TakeAll { list, body } => {
                let lists = self.objects(list, items)?;
                let pushers: Vec<&TaskSpec> = lists
                    .iter()
                    .flat_map(|list| self.pushers.get(list).into_iter().flatten().copied())
                    .collect();
                self.ops(body, place, &pushers)
            }
            Op::Repeat { times, body, counter } => {
                if counter.is_some_and(|reg| reg.0 as usize >= Reg::COUNT) {
                    return Err("a loop's counter is no register".to_owned());
                }
                if *times != Times::Count(0) && !matches!(times, Times::Count(_)) && !passes_time(body) {
                    return Err("a loop without end in which no time passes".to_owned());
                }
                self.ops(body, place, items)
            }
            Op::Choose { permille, then, otherwise } => {
                if *permille > 1_000 {
                    return Err(format!("expected at most 1000 permille, found {permille}"));
                }
                self.ops(then, place, items)?;
                self.ops(otherwise, place, items)
            }
            Op::IfReady { then, otherwise, .. } => {
                self.ops(then, place, items)?;
                self.ops(otherwise, place, items)
            }
            Op::Spawn(task) => self.spawn(*task),
            // The others have neither bodies nor followers; what they name was checked above.
            _ => Ok(()),
        }
    }

    fn spawn(&mut self, task: TaskRef) -> Checked {
        let spec = self.workload.tasks.get(task.0 as usize).ok_or("forks a task that does not exist")?;
        if spec.start != Start::Forked {
            return Err(format!("forks {}, which starts by itself", spec.name));
        }
        if !self.spawned.insert(task) {
            return Err(format!("{} is forked twice", spec.name));
        }
        Ok(())
    }

    /// Follows a work item.
    fn work(&mut self, slot: &Slot) -> Checked {
        for object in self.objects(slot, &[])? {
            if !self.handlers.insert((object, 0)) {
                continue;
            }
            if let ObjectKind::Work(work) = &self.workload.objects[object.0 as usize].kind {
                let queue = self.workload.objects.get(work.queue.0 as usize);
                if !queue.is_some_and(|queue| matches!(queue.kind, ObjectKind::WorkQueue(_))) {
                    return Err("a work item's queue is no workqueue".to_owned());
                }
                self.ops(&work.body, Place::Worker, &[])?;
            }
        }
        Ok(())
    }

    /// Follows a request to its handlers.
    fn request(&mut self, slot: &Slot, request: u32) -> Checked {
        for object in self.objects(slot, &[])? {
            if !self.handlers.insert((object, request)) {
                continue;
            }
            if let ObjectKind::Device(device) = &self.workload.objects[object.0 as usize].kind {
                let request = device
                    .requests
                    .get(request as usize)
                    .ok_or_else(|| format!("the device has no request {request}"))?;
                self.ops(&request.hard, Place::Handler, &[])?;
                self.ops(&request.soft, Place::Handler, &[])?;
            }
        }
        Ok(())
    }

    /// The objects that a slot may mean.
    fn objects(&self, slot: &Slot, items: &[&TaskSpec]) -> Result<Vec<ObjectId>, String> {
        let link = |task: &TaskSpec, number: u32| {
            task.links
                .get(number as usize)
                .copied()
                .ok_or_else(|| format!("{} has {} links, and no link {number}", task.name, task.links.len()))
        };
        match slot {
            Slot::Fixed(object) if (object.0 as usize) < self.workload.objects.len() => Ok(vec![*object]),
            Slot::Fixed(object) => Err(format!("object {} does not exist", object.0)),
            Slot::Link(number) => Ok(vec![link(self.task, *number)?]),
            Slot::Indexed { base, by } => {
                if by.0 as usize >= Reg::COUNT {
                    return Err(format!("there is no register {}", by.0));
                }
                link(self.task, *base)?;
                Ok(self.task.links[*base as usize..].to_vec())
            }
            Slot::ByCpu { base } => {
                link(self.task, *base)?;
                Ok(self.task.links[*base as usize..].to_vec())
            }
            Slot::Item(number) => items.iter().map(|task| link(task, *number)).collect(),
        }
    }

    fn references(&self, op: &Op, items: &[&TaskSpec]) -> Checked {
        for (slot, what, fits) in slots(op) {
            for object in self.objects(slot, items)? {
                let object = &self.workload.objects[object.0 as usize];
                if !fits(&object.kind) {
                    return Err(format!("expected {what}, found {}: {op:?}", object.name));
                }
            }
        }
        if let Some(reg) = registers(op).into_iter().find(|reg| reg.0 as usize >= Reg::COUNT) {
            return Err(format!("there is no register {}", reg.0));
        }
        match op {
            Op::Sample { meter, .. } => self.meter(*meter, &[MeterKind::Samples]),
            Op::Count { meter, .. } => self.meter(*meter, &[MeterKind::Count, MeterKind::Seconds]),
            Op::CountCpu(meter) => self.meter(*meter, &[MeterKind::Cpus]),
            Op::Join(task) if task.0 as usize >= self.workload.tasks.len() => {
                Err("waits for the end of a task that does not exist".to_owned())
            }
            Op::SetGroup(group) if group.0 as usize >= self.workload.groups.len() => {
                Err("moves to a group that does not exist".to_owned())
            }
            Op::SetNice(nice) if !(-20..=19).contains(nice) => Err(format!("there is no nice value {nice}")),
            _ => Ok(()),
        }
    }

    fn meter(&self, meter: MeterRef, kinds: &[MeterKind]) -> Checked {
        let spec = self.workload.meters.get(meter.0 as usize).ok_or("a meter does not exist")?;
        if kinds.contains(&spec.kind) {
            Ok(())
        } else {
            Err(format!("meter {} keeps {:?}, not {:?}", spec.name, spec.kind, kinds[0]))
        }
    }
}

type Fits = fn(&ObjectKind) -> bool;

/// The slots of an operation, with what they may mean.
fn slots(op: &Op) -> Vec<(&Slot, &'static str, Fits)> {
    const STREAM: (&str, Fits) = ("a stream", |kind| matches!(kind, ObjectKind::Stream(_)));
    const MUTEX: (&str, Fits) = ("a mutex", |kind| matches!(kind, ObjectKind::Mutex));
    const LOCK: (&str, Fits) = ("a lock", |kind| matches!(kind, ObjectKind::Mutex | ObjectKind::SpinLock));
    const CONDITION: (&str, Fits) = ("a condition", |kind| matches!(kind, ObjectKind::Condition));
    const POSTED: (&str, Fits) = ("a futex, semaphore or condition", |kind| {
        matches!(kind, ObjectKind::Futex | ObjectKind::Semaphore { .. } | ObjectKind::Condition)
    });
    const POSTED_ALL: (&str, Fits) = ("a futex, semaphore, condition or barrier", |kind| {
        matches!(
            kind,
            ObjectKind::Futex
                | ObjectKind::Semaphore { .. }
                | ObjectKind::Condition
                | ObjectKind::Barrier { .. }
        )
    });
    const STATE: (&str, Fits) =
        ("a futex or semaphore", |kind| matches!(kind, ObjectKind::Futex | ObjectKind::Semaphore { .. }));
    const READY: (&str, Fits) = ("a futex, semaphore, stream or queue", |kind| {
        matches!(
            kind,
            ObjectKind::Futex | ObjectKind::Semaphore { .. } | ObjectKind::Stream(_) | ObjectKind::Queue
        )
    });
    const FUTEX: (&str, Fits) = ("a futex", |kind| matches!(kind, ObjectKind::Futex));
    const LIST: (&str, Fits) = ("a list", |kind| matches!(kind, ObjectKind::List));
    const QUEUE: (&str, Fits) = ("a queue", |kind| matches!(kind, ObjectKind::Queue));
    const DEVICE: (&str, Fits) = ("a device", |kind| matches!(kind, ObjectKind::Device(_)));
    const WORK: (&str, Fits) = ("a work item", |kind| matches!(kind, ObjectKind::Work(_)));
    const DATA: (&str, Fits) = ("data", |kind| matches!(kind, ObjectKind::Data { .. }));
    const CPUS: (&str, Fits) = ("a set of CPUs", |kind| matches!(kind, ObjectKind::Cpus(_)));
    const CELL: (&str, Fits) = ("a cell", |kind| matches!(kind, ObjectKind::Cell));
    let with = |slot, (what, fits): (&'static str, Fits)| vec![(slot, what, fits)];
    match op {
        Op::Write { to: slot, .. } | Op::Read { from: slot, .. } | Op::Poll { on: slot } => {
            with(slot, STREAM)
        }
        Op::Post(slot) => with(slot, POSTED),
        Op::PostAll(slot) | Op::Wait(slot) => with(slot, POSTED_ALL),
        Op::SpinWait(slot) => with(slot, STATE),
        Op::Reset(slot) => with(slot, FUTEX),
        Op::IfReady { on, .. } => with(on, READY),
        Op::Send { to: slot, .. } | Op::Receive { from: slot, .. } => with(slot, QUEUE),
        Op::WaitUnlock { on, mutex } => [with(on, CONDITION), with(mutex, MUTEX)].concat(),
        Op::Lock(slot) | Op::Unlock(slot) => with(slot, LOCK),
        Op::Push(slot) | Op::TakeAll { list: slot, .. } => with(slot, LIST),
        Op::Submit { to, .. } => with(to, DEVICE),
        Op::Queue(slot) | Op::Flush(slot) => with(slot, WORK),
        Op::Touch(slot) => with(slot, DATA),
        Op::SetAffinity(slot) => with(slot, CPUS),
        Op::Store { to: slot, .. } | Op::Load { from: slot, .. } => with(slot, CELL),
        Op::Run(_)
        | Op::RunKernel(_)
        | Op::Spin(_)
        | Op::Sleep(_)
        | Op::Periodic { .. }
        | Op::Yield
        | Op::Spawn(_)
        | Op::Join(_)
        | Op::Exit
        | Op::SetNice(_)
        | Op::SetGroup(_)
        | Op::Repeat { .. }
        | Op::Choose { .. }
        | Op::Stamp(_)
        | Op::Sample { .. }
        | Op::Count { .. }
        | Op::CountCpu(_) => Vec::new(),
    }
}

fn registers(op: &Op) -> Vec<Reg> {
    match op {
        Op::Periodic { timer: reg, .. }
        | Op::Send { value: reg, .. }
        | Op::Receive { into: reg, .. }
        | Op::Stamp(reg)
        | Op::Store { from: reg, .. }
        | Op::Load { to: reg, .. }
        | Op::Sample { since: reg, .. } => vec![*reg],
        _ => Vec::new(),
    }
}

/// Could the operation put whoever does it to sleep?
const fn may_block(op: &Op) -> bool {
    matches!(
        op,
        Op::Sleep(_)
            | Op::Periodic { .. }
            | Op::Write { .. }
            | Op::Read { .. }
            | Op::Poll { .. }
            | Op::Wait(_)
            | Op::WaitUnlock { .. }
            | Op::Lock(_)
            | Op::Receive { .. }
            | Op::Flush(_)
            | Op::Join(_)
            | Op::Yield
    )
}

/// Does the operation change a task, so that a worker or handler cannot do it for another?
const fn only_tasks(op: &Op) -> bool {
    matches!(
        op,
        Op::Push(_)
            | Op::Spawn(_)
            | Op::Exit
            | Op::SetAffinity(_)
            | Op::SetNice(_)
            | Op::SetGroup(_)
            | Op::Yield
    )
}

/// Is there, on every way through, an operation that takes time or may sleep? Locks and yields alone do not count: nobody need
/// contend.
fn passes_time(ops: &[Op]) -> bool {
    let positive = |dist: &crate::Dist| dist.mean() > 0;
    ops.iter().any(|op| match op {
        Op::Run(dist) | Op::RunKernel(dist) | Op::Spin(dist) | Op::Sleep(dist) => positive(dist),
        Op::Periodic { period, .. } => positive(period),
        Op::Write { .. }
        | Op::Read { .. }
        | Op::Wait(_)
        | Op::WaitUnlock { .. }
        | Op::Receive { .. }
        | Op::Flush(_)
        | Op::Join(_)
        | Op::Exit => true,
        Op::Repeat { times: Times::Count(0), .. } => false,
        Op::Repeat { body, .. } => passes_time(body),
        Op::Choose { then, otherwise, .. } | Op::IfReady { then, otherwise, .. } => {
            passes_time(then) && passes_time(otherwise)
        }
        // A list may be empty, a stream be ready, a futex be set each time.
        Op::TakeAll { .. }
        | Op::Poll { .. }
        | Op::SpinWait(_)
        | Op::Post(_)
        | Op::PostAll(_)
        | Op::Reset(_)
        | Op::Send { .. }
        | Op::Lock(_)
        | Op::Unlock(_)
        | Op::Push(_)
        | Op::Submit { .. }
        | Op::Queue(_)
        | Op::Touch(_)
        | Op::Yield
        | Op::Spawn(_)
        | Op::SetAffinity(_)
        | Op::SetNice(_)
        | Op::SetGroup(_)
        | Op::Stamp(_)
        | Op::Store { .. }
        | Op::Load { .. }
        | Op::Sample { .. }
        | Op::Count { .. }
        | Op::CountCpu(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use crate::{Builder, Dist, MeterKind, ObjectKind, Op, Reg, Slot, Start, Times, Workload};

    fn one(ops: Vec<Op>, objects: &[ObjectKind]) -> Workload {
        let mut builder = Builder::new("t");
        for (number, kind) in objects.iter().enumerate() {
            builder.object(format!("o{number}"), kind.clone());
        }
        builder.meter("m", MeterKind::Count);
        let program = builder.program(ops);
        builder.task("t", program, Start::At(0));
        builder.finish()
    }

    fn fault(ops: Vec<Op>, objects: &[ObjectKind]) -> String {
        one(ops, objects).check().expect_err("unsound").to_string()
    }

    #[test]
    fn an_operation_must_fit_its_object() {
        let write = Op::Write { to: Slot::Fixed(crate::ObjectId(0)), bytes: 1 };
        assert_eq!(
            fault(vec![write.clone()], &[ObjectKind::Futex]),
            format!("task t (0): expected a stream, found o0: {write:?}")
        );
        assert_eq!(fault(vec![Op::Post(Slot::Link(0))], &[]), "task t (0): t has 0 links, and no link 0");
        assert_eq!(
            fault(vec![Op::Sample { meter: crate::MeterRef(0), since: Reg(0) }], &[]),
            "task t (0): meter m keeps Count, not Samples"
        );
        assert_eq!(fault(vec![Op::Stamp(Reg(8))], &[]), "task t (0): there is no register 8");
    }

    #[test]
    fn a_loop_without_end_must_take_time() {
        let forever = |body| vec![Op::Repeat { times: Times::Forever, counter: None, body }];
        assert_eq!(
            fault(forever(vec![Op::Run(Dist::constant(0)), Op::Yield]), &[]),
            "task t (0): a loop without end in which no time passes"
        );
        assert_eq!(one(forever(vec![Op::Run(Dist::constant(1))]), &[]).check(), Ok(()));
    }

    #[test]
    fn a_handler_must_not_block_and_a_fork_has_one_parent() {
        let device = crate::Device {
            channels: 1,
            interrupt: crate::InterruptCpu::Submitter,
            requests: vec![crate::Request {
                service: Dist::constant(1),
                service_queued_permille: 1000,
                latency: Dist::constant(1),
                hard: vec![Op::Sleep(Dist::constant(1))],
                soft: vec![],
            }],
        };
        let submit = Op::Submit { to: Slot::Fixed(crate::ObjectId(0)), request: 0 };
        assert!(fault(vec![submit], &[ObjectKind::Device(device)]).contains("a handler must not block"));
        let mut builder = Builder::new("t");
        let program = builder.program(vec![]);
        builder.task("child", program, Start::Forked);
        assert_eq!(
            builder.finish().check().expect_err("orphan").to_string(),
            "task child (0): is forked by nobody"
        );
    }
}
