//! What is queued: a task or a group, with the kernel's field names, and the arena that holds them all.
//!
//! Entities live in one arena and name each other by [`EntityId`]: tree links are indices, so that a queue is plain state
//! that can be copied and compared, without `unsafe` and without a lookup table beside it.
//!
//! What this does not do: PELT (see [`SchedAvg`](crate::SchedAvg)); callers keep the averages.

use crate::queue::Node;
use crate::{LoadWeight, QueueRules};

/// An entity's place in [`Entities`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub(crate) u32);

impl EntityId {
    /// The number of the slot: dense, from 0 in the order of [`Entities::add`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The scheduling policy of a task, as far as the fair class tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskPolicy {
    /// SCHED_NORMAL, or a group.
    Normal,
    /// SCHED_BATCH: does not preempt at wake-up.
    Batch,
    /// SCHED_IDLE, or a group with `cpu.idle`: preempted by every other wakee.
    Idle,
}

/// A schedulable entity.
///
/// Models: struct sched_entity, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEntity {
    /// Weight, scaled up.
    pub load: LoadWeight,
    /// Virtual run time, ns at nice 0; wraps.
    pub vruntime: u64,
    /// Virtual deadline, ns; relative to `vruntime` while `rel_deadline` is set.
    pub deadline: u64,
    /// Lag when it left the queue, ns. From v6.6 to v6.12 the running entity keeps its protection mark here, as the kernel does.
    pub vlag: i64,
    /// End of the protected window of the running entity, ns of virtual time (v7.2).
    pub vprot: u64,
    /// Request length, ns of wall time.
    pub slice: u64,
    /// Was `slice` set by the user (or derived from a group's content)?
    pub custom_slice: bool,
    /// Task clock up to which run time is accounted, ns.
    pub exec_start: u64,
    /// Run time, ns.
    pub sum_exec_runtime: u64,
    /// `sum_exec_runtime` when it was switched in, ns.
    pub prev_sum_exec_runtime: u64,
    /// Is it queued (running counts, delayed counts)?
    pub on_rq: bool,
    /// Has it blocked, and is queued only until it is eligible (v6.12 and later)?
    pub sched_delayed: bool,
    /// Is `deadline` relative (v6.12 and later)?
    pub rel_deadline: bool,
    /// Its policy.
    pub policy: TaskPolicy,
    pub(crate) node: Node,
}

impl SchedEntity {
    /// A fresh entity with the default slice.
    #[must_use]
    pub fn new(load: LoadWeight, policy: TaskPolicy, rules: &QueueRules) -> Self {
        Self {
            load,
            vruntime: 0,
            deadline: 0,
            vlag: 0,
            vprot: 0,
            slice: rules.tunables.base_slice_ns,
            custom_slice: false,
            exec_start: 0,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
            on_rq: false,
            sched_delayed: false,
            rel_deadline: false,
            policy,
            node: Node::DETACHED,
        }
    }

    /// Is it of the idle policy?
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.policy == TaskPolicy::Idle
    }
}

/// All entities of a machine.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    slots: Vec<SchedEntity>,
}

impl Entities {
    /// An empty arena.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Adds an entity. Slots are not reused: an id names one entity for good.
    ///
    /// # Panics
    /// After 2³² − 1 entities.
    pub fn add(&mut self, entity: SchedEntity) -> EntityId {
        let id = u32::try_from(self.slots.len()).ok().filter(|&id| id != u32::MAX);
        self.slots.push(entity);
        EntityId(id.expect("fewer than 2^32 - 1 entities"))
    }

    /// Number of entities ever added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Was none added?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn node(&self, id: u32) -> &Node {
        &self.slots[id as usize].node
    }

    pub(crate) fn node_mut(&mut self, id: u32) -> &mut Node {
        &mut self.slots[id as usize].node
    }

    pub(crate) fn at_mut(&mut self, id: u32) -> &mut SchedEntity {
        &mut self.slots[id as usize]
    }

    pub(crate) fn at(&self, id: u32) -> &SchedEntity {
        &self.slots[id as usize]
    }
}

impl std::ops::Index<EntityId> for Entities {
    type Output = SchedEntity;

    fn index(&self, id: EntityId) -> &SchedEntity {
        &self.slots[id.0 as usize]
    }
}

impl std::ops::IndexMut<EntityId> for Entities {
    fn index_mut(&mut self, id: EntityId) -> &mut SchedEntity {
        &mut self.slots[id.0 as usize]
    }
}
