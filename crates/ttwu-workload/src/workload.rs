//! Tasks, objects, programs and meters together.

use ttwu_model::CpuSet;

use crate::{Bench, ObjectId, ObjectKind, Op, Program};

/// A task of a workload, by its position in [`Workload::tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskRef(pub u32);

/// A task group, by its position in [`Workload::groups`]; the root group is none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupRef(pub u32);

/// A meter, by its position in [`Workload::meters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeterRef(pub u32);

/// When a task begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// So long after the start of the run, ns, forked by a shell that is no part of the workload.
    At(u64),
    /// When another task spawns it.
    Forked,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskSpec {
    /// `comm`, at most 15 bytes.
    pub name: String,
    /// Index of its program in [`Workload::programs`].
    pub program: u32,
    /// The objects that [`crate::Slot::Link`] means.
    pub links: Vec<ObjectId>,
    /// −20 … 19.
    pub nice: i8,
    /// SCHED_IDLE.
    pub idle_policy: bool,
    /// SCHED_BATCH.
    pub batch_policy: bool,
    /// Custom slice, ns (v6.12 and later).
    pub slice_ns: Option<u64>,
    /// Its task group; `None` is the root.
    pub group: Option<GroupRef>,
    /// CPUs on which it may run; `None` is all.
    pub allowed: Option<CpuSet>,
    /// A kernel thread.
    pub kernel_thread: bool,
    /// Tasks with the same number are threads of one process, and switch between each other more cheaply.
    pub process: u32,
    /// When it begins.
    pub start: Start,
    /// Bytes that it uses over and over, which must be fetched again after it has moved.
    pub working_set_bytes: u64,
}

/// A task group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The group above; `None` is the root.
    pub parent: Option<GroupRef>,
    /// `cpu.shares`: 1024 is the default, and what an autogroup has.
    pub shares: u64,
}

/// An object with its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectSpec {
    /// For messages and traces.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
}

/// What a meter keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeterKind {
    /// Every sample, ns.
    Samples,
    /// A sum.
    Count,
    /// A count a CPU.
    Cpus,
    /// A count for each whole second of simulated time since the start of the run.
    Seconds,
}

/// Something that the workload measures of itself, in its own terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meter {
    /// Its name, unique in the workload.
    pub name: String,
    /// What it keeps.
    pub kind: MeterKind,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// When this task has ended.
    Exit(TaskRef),
    /// When all tasks have.
    AllExit,
    /// After so much simulated time, ns.
    Time(u64),
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workload {
    /// As on the command line, such as `hackbench:groups=1,threads,pipe`.
    pub name: String,
    /// The tasks. Those that [`Start::At`] a time are started in this order.
    pub tasks: Vec<TaskSpec>,
    /// The programs.
    pub programs: Vec<Program>,
    /// The objects.
    pub objects: Vec<ObjectSpec>,
    /// The task groups, parents first.
    pub groups: Vec<Group>,
    /// The meters.
    pub meters: Vec<Meter>,
    /// When a run ends.
    pub until: Until,
    /// Which benchmark it is, with what its original output needs.
    pub bench: Bench,
}

/// Puts a workload together.
#[derive(Clone, Debug)]
pub struct Builder {
    workload: Workload,
    /// Stands before the names of meters and objects, so that those of joined workloads differ.
    scope: String,
    /// Processes by name, where tasks name theirs.
    processes: std::collections::BTreeMap<String, u32>,
}

impl Builder {
    /// An empty workload, which ends when all its tasks have.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let workload = Workload {
            name: name.into(),
            tasks: Vec::new(),
            programs: Vec::new(),
            objects: Vec::new(),
            groups: Vec::new(),
            meters: Vec::new(),
            until: Until::AllExit,
            bench: Bench::Own,
        };
        Self { workload, scope: String::new(), processes: std::collections::BTreeMap::new() }
    }

    /// Adds an object.
    pub fn object(&mut self, name: impl Into<String>, kind: ObjectKind) -> ObjectId {
        let name = format!("{}{}", self.scope, name.into());
        self.workload.objects.push(ObjectSpec { name, kind });
        ObjectId(self.workload.objects.len() as u32 - 1)
    }

    /// Adds a meter.
    pub fn meter(&mut self, name: impl Into<String>, kind: MeterKind) -> MeterRef {
        let name = format!("{}{}", self.scope, name.into());
        self.workload.meters.push(Meter { name, kind });
        MeterRef(self.workload.meters.len() as u32 - 1)
    }

    /// Adds a task group.
    pub fn group(&mut self, name: impl Into<String>, parent: Option<GroupRef>, shares: u64) -> GroupRef {
        self.workload.groups.push(Group { name: name.into(), parent, shares });
        GroupRef(self.workload.groups.len() as u32 - 1)
    }

    /// Adds a program, for tasks to share.
    pub fn program(&mut self, ops: Vec<Op>) -> u32 {
        self.workload.programs.push(Program { ops });
        self.workload.programs.len() as u32 - 1
    }

    /// Adds an ordinary task: nice 0, user mode, no affinity, the root group, a process of its own, no working set.
    pub fn task(&mut self, name: impl Into<String>, program: u32, start: Start) -> TaskRef {
        let number = self.workload.tasks.len() as u32;
        self.workload.tasks.push(TaskSpec {
            name: name.into(),
            program,
            links: Vec::new(),
            nice: 0,
            idle_policy: false,
            batch_policy: false,
            slice_ns: None,
            group: None,
            allowed: None,
            kernel_thread: false,
            process: number,
            start,
            working_set_bytes: 0,
        });
        TaskRef(number)
    }

    /// A task added before, to change it.
    pub fn task_mut(&mut self, task: TaskRef) -> &mut TaskSpec {
        &mut self.workload.tasks[task.0 as usize]
    }

    /// A program added before, to fill in what only later objects and tasks make known.
    pub fn program_mut(&mut self, program: u32) -> &mut Program {
        &mut self.workload.programs[program as usize]
    }

    /// When a run ends.
    pub const fn until(&mut self, until: Until) {
        self.workload.until = until;
    }

    /// What stands before the names of objects and meters from here on.
    pub(crate) fn scope(&mut self, scope: String) {
        self.scope = scope;
    }

    /// Gives the workload another name.
    pub(crate) fn rename(&mut self, name: String) {
        self.workload.name = name;
    }

    /// When a run ends, as set so far.
    pub(crate) const fn until_now(&self) -> Until {
        self.workload.until
    }

    /// Adds a task group as it is.
    pub(crate) fn add_group(&mut self, group: Group) {
        self.workload.groups.push(group);
    }

    /// Adds a task as it is.
    pub(crate) fn add_task(&mut self, task: TaskSpec) {
        self.workload.tasks.push(task);
    }

    /// The number of the process of this name: that of the first task that asked for it.
    pub(crate) fn process_named(&mut self, name: &str, asking: u32) -> u32 {
        *self.processes.entry(name.to_owned()).or_insert(asking)
    }

    /// How many tasks there are so far.
    pub(crate) const fn tasks(&self) -> u32 {
        self.workload.tasks.len() as u32
    }

    /// Which benchmark it is.
    pub fn bench(&mut self, bench: Bench) {
        self.workload.bench = bench;
    }

    /// The workload.
    #[must_use]
    pub fn finish(self) -> Workload {
        self.workload
    }
}
