//! The fair class of a whole machine: what stands above single queues.
//!
//! [`Fair`] owns every entity, one root queue a CPU and one queue a (group, CPU), and calls the levels of a hierarchy in the
//! kernel's order, so that whoever drives it (a simulator, a replay) speaks of tasks and CPUs only. Everything lies in
//! vectors with dense numbers, and a queue's place in them is its CPU's number, so that a machine without groups pays for
//! none: no pointer is followed that a flat queue would not need. Queues of groups are made when a task first comes to them.
//!
//! What this does not do: decide where a task runs (placement and balancing read this state through their own traits), keep
//! need-resched flags, or know other classes. CPU bandwidth limits and `cpu.idle` groups are not modelled.
//!
//! DEVIATION: load tracking runs on the time that callers pass, the task clock: clock_pelt's scaling by frequency and
//! capacity and lost idle time are left out, as is time stolen by interrupts.

mod balance_list;
mod group;
mod load;
mod preempt;
mod task;

#[cfg(test)]
mod tests;

use crate::{
    CfsRq, Entities, EntityId, Kernel, LoadWeight, Policy, QueueRules, SchedAvg, SchedEntity, TaskPolicy,
};
pub use balance_list::FromBack;
pub use group::GroupId;
pub use preempt::WakeupCheck;
use ttwu_model::CpuId;

/// No entity, no queue.
const NONE: u32 = u32::MAX;

/// How a task is to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskAttributes {
    /// Nice value, −20..=19; without meaning for [`TaskPolicy::Idle`].
    pub nice: i8,
    /// Policy.
    pub policy: TaskPolicy,
    /// Request length of its own, ns of wall time (v6.12: `sched_runtime`; EEVDF-2023-04: from latency-nice); `None`: the
    /// default. CFS has no use for it.
    pub slice_ns: Option<u64>,
}

impl TaskAttributes {
    /// SCHED_NORMAL, nice 0.
    pub const NORMAL: Self = Self { nice: 0, policy: TaskPolicy::Normal, slice_ns: None };

    /// SCHED_NORMAL at this nice value.
    #[must_use]
    pub const fn nice(nice: i8) -> Self {
        Self { nice, ..Self::NORMAL }
    }

    fn load(self) -> LoadWeight {
        match self.policy {
            TaskPolicy::Normal | TaskPolicy::Batch => LoadWeight::of_nice(i32::from(self.nice)),
            TaskPolicy::Idle => LoadWeight::of_idle_policy(),
        }
    }
}

/// The fair class of a machine.
///
/// CPUs are those below the count given to [`Fair::new`]. Times are task clocks in ns, from 1024 up, and do not go back on a
/// CPU. Methods panic on ids of another machine and on calls that no kernel makes (a task enqueued twice); these are faults
/// of the caller.
#[derive(Clone, Debug)]
pub struct Fair {
    rules: QueueRules,
    e: Entities,
    /// Beside each entity.
    x: Vec<Extra>,
    /// Root queues at their CPU's number, queues of groups behind.
    q: Vec<Queue>,
    cpus: Vec<Cpu>,
    groups: Vec<group::Group>,
}

/// What an entity has beside its place in the order.
#[derive(Clone, Debug)]
struct Extra {
    avg: SchedAvg,
    /// The queue that it is on, or would be.
    queue: u32,
    /// The queue that a group's entity stands for; `NONE`: a task.
    own: u32,
    /// The group that it is in.
    group: u32,
    /// Runnable tasks below a group's entity when that was last looked at.
    runnable: u32,
    /// Neighbours in the balancer's list of the CPU.
    newer: u32,
    older: u32,
    est: load::UtilEst,
    /// CFS: `vruntime` is relative to no queue.
    relative: bool,
    /// It was moved while it slept and has not been queued since.
    migrated: bool,
    /// It was never queued.
    fresh: bool,
}

/// A queue with what a single level does not know.
#[derive(Clone, Debug)]
struct Queue {
    cfs: CfsRq,
    avg: SchedAvg,
    h_nr_queued: u32,
    h_nr_runnable: u32,
    h_nr_idle: u32,
    /// The group's entity on this CPU; `NONE`: a root queue.
    entity: u32,
    cpu: u32,
    group: u32,
    depth: u32,
    removed: load::Removed,
    propagate: bool,
    on_leaf_list: bool,
    prop_runnable_sum: i64,
    tg_contribution: u64,
    tg_updated: u64,
    h_load: u64,
    /// Jiffy of `h_load`, plus 1; 0: never.
    h_load_stamp: u64,
}

#[derive(Clone, Debug)]
struct Cpu {
    /// The running fair task.
    curr: u32,
    newest: u32,
    oldest: u32,
    /// Σ util_est of the queued tasks.
    util_est: u64,
    /// Queues of groups with load, deepest first.
    leaves: Vec<u32>,
}

impl Fair {
    /// An idle machine of `cpus` CPUs.
    #[must_use]
    pub fn new(policy: &Policy, cpus: usize) -> Self {
        let rules = QueueRules::new(policy, cpus);
        let queue = |cpu| Queue::new(rules.kernel, NONE, u32::try_from(cpu).expect("CPU numbers are small"));
        let cpu = Cpu { curr: NONE, newest: NONE, oldest: NONE, util_est: 0, leaves: Vec::new() };
        Self {
            rules,
            e: Entities::new(),
            x: Vec::new(),
            q: (0..cpus).map(queue).collect(),
            cpus: vec![cpu; cpus],
            groups: vec![group::Group::root()],
        }
    }

    /// A new task in `group`, not queued. Before it is first queued it is placed by [`Fair::fork`].
    pub fn add_task(&mut self, attributes: TaskAttributes, group: GroupId) -> EntityId {
        let entity = SchedEntity::new(attributes.load(), attributes.policy, &self.rules);
        let id = self.e.add(entity);
        self.set_slice(id, attributes.slice_ns);
        let load = self.e[id].load;
        let avg = SchedAvg { load_avg: load.scaled_down(), ..SchedAvg::default() };
        self.x.push(Extra::new(avg, NONE, NONE, group.0));
        id
    }

    fn set_slice(&mut self, id: EntityId, slice_ns: Option<u64>) {
        let entity = &mut self.e[id];
        entity.custom_slice = slice_ns.is_some();
        entity.slice = slice_ns.unwrap_or(self.rules.tunables.base_slice_ns);
    }

    /// Rules and tunables in force.
    #[must_use]
    pub const fn rules(&self) -> &QueueRules {
        &self.rules
    }

    /// All entities: tasks, and groups on each CPU.
    #[must_use]
    pub const fn entities(&self) -> &Entities {
        &self.e
    }

    /// A CPU's root queue.
    #[must_use]
    pub fn root(&self, cpu: CpuId) -> &CfsRq {
        &self.q[cpu.index()].cfs
    }

    /// The fair task that runs on `cpu`. It stays there, dequeued or not, until another is switched to.
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<EntityId> {
        some(self.cpus[cpu.index()].curr)
    }

    /// The CPU whose queue the task belongs to; `None` before it was queued or placed.
    #[must_use]
    pub fn cpu_of(&self, id: EntityId) -> Option<CpuId> {
        let queue = self.x[id.index()].queue;
        (queue != NONE).then(|| cpu_id(self.q[queue as usize].cpu))
    }

    /// The task's group.
    #[must_use]
    pub fn group_of(&self, id: EntityId) -> GroupId {
        GroupId(self.x[id.index()].group)
    }

    /// Is it queued (running and delayed count)?
    #[must_use]
    pub fn is_queued(&self, id: EntityId) -> bool {
        self.e[id].on_rq
    }

    /// Has it blocked and is still queued?
    #[must_use]
    pub fn is_delayed(&self, id: EntityId) -> bool {
        self.e[id].on_rq && self.e[id].sched_delayed
    }

    /// Fair tasks queued on `cpu`, delayed ones included: the fair part of `rq->nr_running`, and `h_nr_queued`.
    #[must_use]
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        self.q[cpu.index()].h_nr_queued
    }

    /// Fair tasks on `cpu` that want to run.
    #[must_use]
    pub fn h_nr_runnable(&self, cpu: CpuId) -> u32 {
        self.q[cpu.index()].h_nr_runnable
    }

    /// Tasks on `cpu` that have blocked and are still queued.
    #[must_use]
    pub fn h_nr_delayed(&self, cpu: CpuId) -> u32 {
        let queue = &self.q[cpu.index()];
        queue.h_nr_queued - queue.h_nr_runnable
    }

    /// Tasks of the idle policy on `cpu`.
    #[must_use]
    pub fn h_nr_idle(&self, cpu: CpuId) -> u32 {
        self.q[cpu.index()].h_nr_idle
    }

    /// Is something queued on `cpu`, and only tasks of the idle policy?
    ///
    /// Models: sched_idle_cpu(), v5.5–v7.2.
    #[must_use]
    pub fn sched_idle(&self, cpu: CpuId) -> bool {
        let queue = &self.q[cpu.index()];
        queue.h_nr_queued > 0 && queue.h_nr_idle == queue.h_nr_queued
    }

    /// The entity above `id`; `None` on the root level.
    fn parent(&self, id: EntityId) -> Option<EntityId> {
        some(self.q[self.x[id.index()].queue as usize].entity)
    }

    fn is_task(&self, id: EntityId) -> bool {
        self.x[id.index()].own == NONE
    }

    fn queue_of(&self, id: EntityId) -> usize {
        self.x[id.index()].queue as usize
    }
}

impl Extra {
    fn new(avg: SchedAvg, queue: u32, own: u32, group: u32) -> Self {
        Self {
            avg,
            queue,
            own,
            group,
            runnable: 0,
            newer: NONE,
            older: NONE,
            est: load::UtilEst::default(),
            relative: true,
            migrated: false,
            fresh: true,
        }
    }
}

impl Queue {
    fn new(kernel: Kernel, entity: u32, cpu: u32) -> Self {
        Self {
            cfs: CfsRq::new(kernel),
            avg: SchedAvg::default(),
            h_nr_queued: 0,
            h_nr_runnable: 0,
            h_nr_idle: 0,
            entity,
            cpu,
            group: 0,
            depth: 0,
            removed: load::Removed::default(),
            propagate: false,
            on_leaf_list: false,
            prop_runnable_sum: 0,
            tg_contribution: 0,
            tg_updated: 0,
            h_load: 0,
            h_load_stamp: 0,
        }
    }
}

const fn some(id: u32) -> Option<EntityId> {
    if id == NONE { None } else { Some(EntityId(id)) }
}

fn cpu_id(cpu: u32) -> CpuId {
    CpuId::new(u16::try_from(cpu).expect("CPU numbers are 16 bits"))
}
