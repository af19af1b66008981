//! A machine of queues with nothing but what balancing asks for.

use super::{ActiveBalance, BalanceState, BalanceView, Balancer, Preemptible, TaskState, Work};
use crate::{CpuStats, EntityId, Machine, Policy};
use std::collections::VecDeque;
use ttwu_model::{CpuId, CpuSet, Topology};

/// A task of the harness.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) cpu: Option<CpuId>,
    pub(super) load: u64,
    pub(super) util: u64,
    pub(super) allowed: CpuSet,
    pub(super) state: TaskState,
}

/// Queues and clocks. A queue's front is the left end; the task marked as running is in it, as in the kernel's list.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    pub(super) tasks: Vec<Task>,
    pub(super) lists: Vec<VecDeque<EntityId>>,
    pub(super) jiffies: u64,
    pub(super) now_ns: u64,
    pub(super) capacity: Vec<u64>,
    pub(super) pending: CpuSet,
    pub(super) refreshed: Vec<u16>,
    pub(super) requests: Vec<ActiveBalance>,
    /// Tasks in the order in which they were attached.
    pub(super) attached: Vec<(u32, u16)>,
    /// Passes, as the CPUs read in each.
    pub(super) costs: Vec<Work>,
    pub(super) ns_per_cpu: u64,
}

impl BalanceView for Queues {
    fn jiffies(&mut self) -> u64 {
        self.jiffies
    }
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }
    fn clock_task_ns(&mut self, _: CpuId) -> u64 {
        self.now_ns
    }
    fn stats(&mut self, cpu: CpuId) -> CpuStats {
        let sum = |of: fn(&Task) -> u64| {
            self.lists[cpu.index()].iter().map(|&id| of(&self.tasks[id.index()])).sum::<u64>()
        };
        let nr = self.nr(cpu);
        let idle = nr == 0 && !self.pending.contains(cpu);
        CpuStats {
            load: sum(|task| task.load),
            util: sum(|task| task.util).min(1024),
            runnable: sum(|task| task.util),
            nr_running: nr,
            h_nr: nr,
            idle,
            capacity: self.capacity[cpu.index()],
        }
    }
    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        self.nr(cpu)
    }
    fn idle(&mut self, cpu: CpuId) -> bool {
        self.nr(cpu) == 0 && !self.pending.contains(cpu)
    }
    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        let list = &self.lists[cpu.index()];
        !list.is_empty() && list.iter().all(|id| self.tasks[id.index()].state.idle_policy)
    }
    fn pending(&mut self, cpu: CpuId) -> bool {
        self.pending.contains(cpu)
    }
    fn refresh(&mut self, cpu: CpuId) {
        self.refreshed.push(cpu.number());
    }
    fn last_task(&mut self, cpu: CpuId) -> Option<EntityId> {
        self.lists[cpu.index()].back().copied()
    }
    fn running_task(&mut self, cpu: CpuId) -> Option<EntityId> {
        self.lists[cpu.index()].iter().copied().find(|id| self.tasks[id.index()].state.running)
    }
    fn to_front(&mut self, cpu: CpuId, task: EntityId) {
        let list = &mut self.lists[cpu.index()];
        list.retain(|&id| id != task);
        list.push_front(task);
    }
    fn task(&mut self, cpu: CpuId, task: EntityId) -> TaskState {
        assert_eq!(self.tasks[task.index()].cpu, Some(cpu));
        self.tasks[task.index()].state
    }
    fn allows(&mut self, task: EntityId, cpu: CpuId) -> bool {
        self.tasks[task.index()].allowed.contains(cpu)
    }
    fn task_h_load(&mut self, task: EntityId) -> u64 {
        self.tasks[task.index()].load
    }
    fn task_util(&mut self, task: EntityId) -> u64 {
        self.tasks[task.index()].util
    }
    fn detach(&mut self, src: CpuId, task: EntityId) {
        let list = &mut self.lists[src.index()];
        let before = list.len();
        list.retain(|&id| id != task);
        assert_eq!(list.len() + 1, before, "{task:?} was not on {src}");
        self.tasks[task.index()].cpu = None;
    }
    fn attach(&mut self, dst: CpuId, task: EntityId) {
        assert_eq!(self.tasks[task.index()].cpu, None, "{task:?} was not detached");
        self.tasks[task.index()].cpu = Some(dst);
        self.lists[dst.index()].push_front(task);
        self.attached.push((task.0, dst.number()));
    }
    fn work_ns(&mut self, work: Work) -> u64 {
        self.costs.push(work);
        u64::from(work.cpus) * self.ns_per_cpu
    }
    fn start_active(&mut self, request: ActiveBalance) {
        self.requests.push(request);
    }
}

impl Queues {
    fn nr(&self, cpu: CpuId) -> u32 {
        self.lists[cpu.index()].len() as u32
    }
}

/// A machine with its balancing state.
#[derive(Clone, Debug)]
pub(super) struct Bench {
    pub(super) policy: Policy,
    pub(super) machine: Machine,
    pub(super) state: BalanceState,
    pub(super) queues: Queues,
}

impl Bench {
    pub(super) fn new(topology: &str, policy: &str) -> Self {
        Self::of(&Topology::parse(topology).expect(topology), policy)
    }

    pub(super) fn of(topology: &Topology, policy: &str) -> Self {
        let policy = Policy::parse(policy).expect(policy);
        let machine = Machine::new(topology, &policy);
        let cpus = machine.cpu_bound();
        // Long after boot, so that all stamps lie back.
        let state = BalanceState::new(&policy, &machine, Preemptible::No, 1000, 1);
        let queues = Queues {
            lists: vec![VecDeque::new(); cpus],
            capacity: vec![1024; cpus],
            jiffies: 1_000_000,
            now_ns: 4_000_000_000_000,
            ns_per_cpu: 50,
            ..Queues::default()
        };
        Self { policy, machine, state, queues }
    }

    /// `count` tasks of nice 0 on `cpu`, the first one running; each was enqueued after the one before.
    pub(super) fn put(&mut self, cpu: u16, count: usize) -> &mut Self {
        for _ in 0..count {
            let id = EntityId(self.queues.tasks.len() as u32);
            let running = self.queues.lists[usize::from(cpu)].is_empty();
            self.queues.tasks.push(Task {
                cpu: Some(CpuId::new(cpu)),
                load: 1024,
                util: 300,
                allowed: CpuSet::first(self.machine.cpu_bound()),
                state: TaskState { running, ..TaskState::default() },
            });
            self.queues.lists[usize::from(cpu)].push_front(id);
        }
        self
    }

    pub(super) fn balancer(&mut self) -> Balancer<'_> {
        Balancer {
            policy: &self.policy,
            machine: &self.machine,
            state: &mut self.state,
            view: &mut self.queues,
        }
    }

    /// A newidle pass that no estimate of time forbids; the tasks attached, in order.
    pub(super) fn newidle(&mut self, cpu: u16) -> Vec<(u32, u16)> {
        self.state.overloaded = true;
        self.queues.attached.clear();
        self.balancer().newidle(CpuId::new(cpu));
        self.queues.attached.clone()
    }

    pub(super) fn counts(&self) -> Vec<usize> {
        self.queues.lists.iter().map(VecDeque::len).collect()
    }
}
