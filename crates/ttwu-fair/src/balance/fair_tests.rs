//! Balancing on the real run queues: hogs spread over a machine and stay spread.

use super::*;
use crate::{EnqueueFlags, Fair, GroupId, Kernel, TaskAttributes, WakeupCheck};
use ttwu_model::{CpuSet, Topology};

const MS: u64 = 1_000_000;

/// A machine with one clock whose CPUs schedule, tick and balance.
struct World {
    policy: Policy,
    machine: Machine,
    state: BalanceState,
    on: OnFair,
}

/// Run queues as balancing sees them.
struct OnFair {
    fair: Fair,
    kernel: Kernel,
    now: u64,
    allowed: Vec<Option<CpuSet>>,
    /// CPUs that got a task.
    kicked: CpuSet,
    moves: usize,
    stoppers: Vec<ActiveBalance>,
}

impl BalanceView for OnFair {
    fn jiffies(&mut self) -> u64 {
        self.now / MS
    }
    fn now_ns(&mut self) -> u64 {
        self.now
    }
    fn clock_task_ns(&mut self, _: CpuId) -> u64 {
        self.now
    }
    fn stats(&mut self, cpu: CpuId) -> CpuStats {
        let (queued, runnable) = (self.fair.nr_running(cpu), self.fair.h_nr_runnable(cpu));
        CpuStats {
            load: self.fair.load_avg(cpu),
            util: self.fair.cpu_util(cpu),
            runnable: self.fair.runnable_avg(cpu),
            nr_running: queued,
            h_nr: if self.kernel >= Kernel::V7_2 { runnable } else { queued },
            idle: self.idle(cpu),
            capacity: 1024,
        }
    }
    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        self.fair.nr_running(cpu)
    }
    fn idle(&mut self, cpu: CpuId) -> bool {
        self.fair.curr(cpu).is_none() && self.fair.nr_running(cpu) == 0
    }
    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.fair.sched_idle(cpu)
    }
    fn pending(&mut self, _: CpuId) -> bool {
        false
    }
    fn refresh(&mut self, cpu: CpuId) {
        self.fair.update_blocked_averages(cpu, self.now);
    }
    fn last_task(&mut self, cpu: CpuId) -> Option<EntityId> {
        self.fair.cfs_tasks_from_back(cpu).next()
    }
    fn running_task(&mut self, cpu: CpuId) -> Option<EntityId> {
        self.fair.curr(cpu)
    }
    fn to_front(&mut self, _: CpuId, task: EntityId) {
        self.fair.rotate_to_front(task);
    }
    fn task(&mut self, cpu: CpuId, task: EntityId) -> TaskState {
        TaskState {
            running: self.fair.curr(cpu) == Some(task),
            exec_start: self.fair.entities()[task].exec_start,
            delayed: self.fair.is_delayed(task),
            ..TaskState::default()
        }
    }
    fn allows(&mut self, task: EntityId, cpu: CpuId) -> bool {
        let allowed = self.allowed.get(task.index()).and_then(Option::as_ref);
        allowed.is_none_or(|allowed| allowed.contains(cpu))
    }
    fn task_h_load(&mut self, task: EntityId) -> u64 {
        self.fair.task_h_load(task, self.now)
    }
    fn task_util(&mut self, task: EntityId) -> u64 {
        self.fair.task_util_est(task)
    }
    fn detach(&mut self, _: CpuId, task: EntityId) {
        self.fair.detach_task(task, self.now);
    }
    fn attach(&mut self, dst: CpuId, task: EntityId) {
        self.fair.attach_task(dst, task, self.now);
        if self.fair.curr(dst).is_some() {
            self.fair.wakeup_preempt(dst, task, self.now, WakeupCheck::default());
        }
        self.kicked.insert(dst);
        self.moves += 1;
    }
    fn work_ns(&mut self, work: Work) -> u64 {
        u64::from(work.cpus) * 60 + u64::from(work.tasks_moved) * 1500
    }
    fn start_active(&mut self, request: ActiveBalance) {
        self.stoppers.push(request);
    }
}

impl World {
    fn new(topology: &str, policy: &str) -> Self {
        let topology = Topology::parse(topology).expect(topology);
        let policy = Policy::parse(&format!("{policy} hz=1000")).expect(policy);
        let machine = Machine::new(&topology, &policy);
        let state = BalanceState::new(&policy, &machine, Preemptible::No, 1000, 1);
        let on = OnFair {
            fair: Fair::new(&policy, machine.cpu_bound()),
            kernel: policy.kernel(),
            now: 1000 * MS,
            allowed: Vec::new(),
            kicked: CpuSet::new(),
            moves: 0,
            stoppers: Vec::new(),
        };
        let mut world = Self { policy, machine, state, on };
        for cpu in world.cpus() {
            world.balancer().nohz_enter(cpu);
        }
        world
    }

    fn cpus(&self) -> Vec<CpuId> {
        (0..self.machine.cpu_bound() as u16).map(CpuId::new).collect()
    }

    fn balancer(&mut self) -> Balancer<'_> {
        Balancer { policy: &self.policy, machine: &self.machine, state: &mut self.state, view: &mut self.on }
    }

    /// A hog that begins on `cpu`.
    fn spawn(&mut self, cpu: u16, group: GroupId) -> EntityId {
        let id = self.on.fair.add_task(TaskAttributes::NORMAL, group);
        let cpu = CpuId::new(cpu);
        self.on.fair.fork(cpu, id, self.on.now);
        let new = EnqueueFlags { initial: true, ..EnqueueFlags::default() };
        self.on.fair.enqueue_task(cpu, id, self.on.now, new);
        self.on.kicked.insert(cpu);
        self.state.overloaded = true;
        id
    }

    fn schedule(&mut self) {
        for cpu in std::mem::take(&mut self.on.kicked).iter() {
            let mut next = self.on.fair.pick_next(cpu, self.on.now);
            if next.is_none() && self.balancer().newidle(cpu).has_work {
                next = self.on.fair.pick_next(cpu, self.on.now);
            }
            self.on.fair.switch(cpu, next, self.on.now);
            if next.is_none() {
                self.balancer().nohz_enter(cpu);
            }
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.schedule();
            self.on.now += MS;
            for cpu in self.cpus() {
                if self.on.fair.nr_running(cpu) == 0 {
                    continue;
                }
                if self.on.fair.tick(cpu, self.on.now).is_some_and(|tick| tick.resched.is_some()) {
                    self.on.kicked.insert(cpu);
                }
                let work = self.balancer().tick(cpu);
                if work.balance {
                    self.balancer().softirq(cpu);
                }
                if let Some((idle, _)) = work.kick {
                    self.balancer().nohz_pass(idle);
                }
                for request in std::mem::take(&mut self.on.stoppers) {
                    // The stopper takes the CPU, and gives it back to whom the fair class then picks.
                    self.on.fair.switch(request.src, None, self.on.now);
                    self.balancer().active_balance(request);
                    self.on.kicked.insert(request.src);
                }
            }
        }
    }

    fn counts(&self) -> Vec<u32> {
        self.cpus().into_iter().map(|cpu| self.on.fair.nr_running(cpu)).collect()
    }
}

#[test]
fn hogs_spread_over_idle_cpus_and_stay() {
    for kernel in Kernel::ALL {
        let mut world = World::new("1 socket x 8 cores", kernel.name());
        for _ in 0..8 {
            world.spawn(0, GroupId::ROOT);
        }
        world.run(500);
        assert_eq!(world.counts(), [1; 8], "{kernel}");
        let moves = world.on.moves;
        assert!((7..=28).contains(&moves), "{kernel}: {moves} moves for 7 tasks");
        world.run(500);
        assert_eq!(world.on.moves, moves, "{kernel}: a machine in balance is left alone");
    }
}

#[test]
fn hogs_spread_over_nodes_and_cores() {
    let topology = "2 sockets x 1 node x 4 cores x 2 threads; threads adjacent; distances 21";
    for kernel in Kernel::ALL {
        let mut world = World::new(topology, kernel.name());
        for _ in 0..8 {
            world.spawn(0, GroupId::ROOT);
        }
        world.run(2000);
        // A core to each, and as many cores of each node; this needs active balance, since single tasks run by then.
        let counts = world.counts();
        let cores: Vec<u32> = counts.chunks(2).map(|threads| threads.iter().sum()).collect();
        assert_eq!(cores, [1; 8], "{kernel}: {counts:?}");
        let moves = world.on.moves;
        // v6.6 and later look for whole idle cores first, and so move less.
        let expected = if kernel >= Kernel::V6_6 { 8..=15 } else { 16..=28 };
        assert!(expected.contains(&moves), "{kernel}: {moves} moves");
        world.run(1000);
        assert_eq!(world.counts(), counts, "{kernel}: a machine in balance is left alone");
    }
}

#[test]
fn pinned_hogs_stay_where_they_may_be() {
    for kernel in Kernel::ALL {
        let mut world = World::new("2 sockets x 1 node x 4 cores; distances 21", kernel.name());
        for n in 0..8 {
            let id = world.spawn(0, GroupId::ROOT);
            world.on.allowed.resize(id.index() + 1, None);
            // Every other one may run on CPUs 0 and 1 only.
            world.on.allowed[id.index()] = (n % 2 == 0).then(|| CpuSet::first(2));
        }
        world.run(2000);
        let counts = world.counts();
        assert_eq!(counts[0] + counts[1], 4, "{kernel}: {counts:?}");
        assert!(counts[2..].iter().all(|&count| count <= 1), "{kernel}: {counts:?}");
    }
}

#[test]
fn a_group_of_hogs_spreads_too() {
    for kernel in Kernel::ALL {
        let mut world = World::new("1 socket x 4 cores", kernel.name());
        let group = world.on.fair.add_group(GroupId::ROOT, 1024);
        for n in 0..8 {
            world.spawn(0, if n % 2 == 0 { group } else { GroupId::ROOT });
        }
        world.run(3000);
        let counts = world.counts();
        assert!(counts.iter().all(|&count| (1..=3).contains(&count)), "{kernel}: {counts:?}");
        assert_eq!(counts.iter().sum::<u32>(), 8, "{kernel}");
    }
}
