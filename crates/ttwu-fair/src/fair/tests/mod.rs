//! The hierarchy: laws under random operations, worked examples, and what the threads say of groups.

mod examples;
mod flat;
mod laws;

use super::*;
use crate::{DequeueFlags, EnqueueFlags, Preemption, SwitchIn};

pub(super) const SLEEP: DequeueFlags =
    DequeueFlags { sleep: true, special: false, delayed: false, save: false };
pub(super) const WOKEN: EnqueueFlags = EnqueueFlags { wakeup: true, migrated: false, initial: false };
pub(super) const NEW: EnqueueFlags = EnqueueFlags { wakeup: false, migrated: false, initial: true };
pub(super) const MS: u64 = 1_000_000;

/// A machine with one clock, driven as a scheduler drives it.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) fair: Fair,
    pub(super) now: u64,
}

impl World {
    pub(super) fn new(policy: &str, cpus: usize) -> Self {
        let policy = Policy::parse(policy).expect(policy);
        Self { fair: Fair::new(&policy, cpus), now: 1_000 * MS }
    }

    /// A new task, queued on `cpu`.
    pub(super) fn spawn(&mut self, cpu: CpuId, nice: i8, group: GroupId) -> EntityId {
        let id = self.fair.add_task(TaskAttributes::nice(nice), group);
        self.fair.fork(cpu, id, self.now);
        self.fair.enqueue_task(cpu, id, self.now, NEW);
        id
    }

    pub(super) fn wake(&mut self, cpu: CpuId, id: EntityId) -> Option<Preemption> {
        let delayed = self.fair.is_delayed(id);
        if !delayed {
            self.fair.migrate(id, cpu, self.now);
        }
        self.fair.enqueue_task(cpu, id, self.now, WOKEN);
        let check = WakeupCheck { delayed, ..WakeupCheck::default() };
        self.fair.curr(cpu)?;
        Some(self.fair.wakeup_preempt(cpu, id, self.now, check))
    }

    /// Picks and switches.
    pub(super) fn schedule(&mut self, cpu: CpuId) -> Option<EntityId> {
        let next = self.fair.pick_next(cpu, self.now);
        self.fair.switch(cpu, next, self.now);
        next
    }

    pub(super) fn block(&mut self, cpu: CpuId) -> EntityId {
        let id = self.fair.curr(cpu).expect("a task runs");
        self.fair.dequeue_task(id, self.now, SLEEP);
        self.schedule(cpu);
        id
    }

    pub(super) fn run_time(&self, id: EntityId) -> u64 {
        self.fair.entities()[id].sum_exec_runtime
    }
}

pub(super) const CPU0: CpuId = CpuId::new(0);
