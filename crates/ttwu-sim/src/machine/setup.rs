//! From a scenario to a machine at its first instant.

use super::code::Code;
use super::cpu::{Arrival, Cpu};
use super::objects::Object;
use super::queue::EventQueue;
use super::task::{Exec, NOBODY, Next, State, Task};
use super::tracer::Tracer;
use super::{BOOT, Sim, cpu_id, idle};
use crate::rng::Rng;
use crate::{Counters, MeterValue, Options, Scenario, Switch};
use ttwu_fair::{Fair, Flips, GroupId, Machine, Rule, TaskAttributes, TaskPolicy};
use ttwu_model::{CpuId, CpuSet, Level};
use ttwu_workload::{MeterKind, ObjectKind, Start, TaskSpec, Until};

/// What a task is made from.
pub(super) struct NewTask {
    pub(super) name: String,
    pub(super) attributes: TaskAttributes,
    pub(super) allowed: u32,
    pub(super) ip: u32,
    pub(super) kthread: bool,
    pub(super) pool: u32,
    pub(super) process: u32,
    pub(super) spec: u32,
    pub(super) working_kib: u32,
    pub(super) group: GroupId,
}

impl<'s> Sim<'s> {
    pub(super) fn new(scenario: &'s Scenario, options: &Options<'_>) -> Self {
        let workload = &scenario.workload;
        let topology = &scenario.topology;
        let count = topology.cpu_bound();
        let machine = std::rc::Rc::new(Machine::new(topology, &scenario.policy));
        let mut code = Code::default();
        let worker_code = code.add(&[]);
        let programs: Vec<u32> = workload.programs.iter().map(|program| code.add(&program.ops)).collect();
        let mut handlers = vec![Vec::new(); workload.objects.len()];
        let mut work_code = vec![NOBODY; workload.objects.len()];
        for (index, object) in workload.objects.iter().enumerate() {
            if let ObjectKind::Device(device) = &object.kind {
                let both = device.requests.iter().map(|request| {
                    let soft = if request.soft.is_empty() { NOBODY } else { code.add(&request.soft) };
                    (code.add(&request.hard), soft)
                });
                handlers[index] = both.collect();
            }
            if let ObjectKind::Work(work) = &object.kind {
                work_code[index] = code.add(&work.body);
            }
        }
        let mut masks = Vec::new();
        let objects = Object::all(workload, |set| intern(&mut masks, set));
        let mut fair = Fair::new(&scenario.policy, count);
        let mut groups: Vec<GroupId> = Vec::new();
        for group in &workload.groups {
            let parent = group.parent.map_or(GroupId::ROOT, |parent| groups[parent.0 as usize]);
            groups.push(fair.add_group(parent, group.shares));
        }
        let costs = scenario.costs.clone();
        let idle_states: Vec<idle::State> = costs.idle_states();
        let tick_ns = 1_000_000_000 / machine.tunables().hz;
        let depth = code.depth;
        let mut sim = Self {
            now: BOOT,
            tick_ns,
            queue: EventQueue::new(count + 1),
            cpus: (0..count).map(|_| Cpu::new(depth)).collect(),
            tasks: Vec::new(),
            owner: Vec::new(),
            by_ref: Vec::new(),
            objects,
            links: Vec::new(),
            link_ranges: Vec::new(),
            masks,
            groups,
            names: Vec::new(),
            name_counters: Vec::new(),
            pools: Vec::new(),
            in_flight: Vec::new(),
            queued_bytes: vec![0; count],
            free_flights: Vec::new(),
            balance: None,
            overloaded_in_pass: false,
            levels: levels(scenario, count),
            siblings: siblings(&machine, scenario, count),
            smt_speed: (0..=SMT_MAX).map(|busy| smt_speed(&costs, busy)).collect(),
            idle_exit_ns: idle_states.iter().map(|state| state.exit_ns).collect(),
            monitors: Self::monitored(&costs, scenario.settings.idle.polling),
            rng: Rng::new(scenario.seed, 1),
            counters: Counters { idle_exits: vec![0; idle_states.len()], ..Counters::default() },
            idle_states,
            meters: meters(scenario, count),
            samples_dropped: vec![0; scenario.workload.meters.len()],
            sample_rng: Rng::new(scenario.seed, 7),
            trace: (options.trace == Switch::On).then(|| Tracer::new(scenario.policy.kernel())),
            decisions: (options.decisions == Switch::On).then(Vec::new),
            decisions_made: 0,
            checks: Vec::new(),
            events: 0,
            digest: scenario.seed,
            alive: 0,
            to_start: 0,
            shell: 0,
            end: None,
            starved: Vec::new(),
            unlocked: None,
            worker_code,
            handlers,
            work_code,
            spins_without_time: 0,
            rules: [0; Rule::NoBalanceDomain as usize + 1],
            scan_ends: [0; 5],
            scenario,
            costs,
            code,
            machine,
            fair,
        };
        sim.add_cpus();
        sim.balance = Some(Box::new(sim.boot_balance()));
        sim.add_tasks(&programs);
        sim.add_noise();
        sim.add_world();
        sim
    }

    fn add_cpus(&mut self) {
        for cpu in 0..self.cpus.len() {
            let id = cpu_id(cpu);
            self.cpus[cpu].present = self.scenario.topology.online().contains(id);
            self.cpus[cpu].busy_from = BOOT;
            self.cpus[cpu].idle_from = BOOT;
            self.cpus[cpu].irq.regs = [0; 8];
            if let Some(span) = self.scenario.settings.idle.history_ns {
                // Eight equal spans would be dropped as outliers all at once by a single short one; real ones differ.
                self.cpus[cpu].spans =
                    std::array::from_fn(|at| (span - span / 16 + span * at as u64 / 56) / 1000);
                self.cpus[cpu].span_count = 8;
            }
        }
    }

    /// The index of a mask as the kernel's threads have it: `numactl` does not reach them.
    pub(super) fn kernel_mask(&mut self, set: &CpuSet) -> u32 {
        let set = set.intersection(self.scenario.topology.online());
        intern(&mut self.masks, &set)
    }

    /// The index of a mask, with the scenario's own applied.
    fn mask(&mut self, set: &CpuSet) -> u32 {
        let mut set = set.intersection(self.scenario.topology.online());
        if let Some(allowed) = &self.scenario.settings.allowed {
            let both = set.intersection(allowed);
            // A task that is bound outside by its workload stays bound there.
            if !both.is_empty() {
                set = both;
            }
        }
        intern(&mut self.masks, &set)
    }

    fn add_tasks(&mut self, programs: &[u32]) {
        let workload = &self.scenario.workload;
        let mut starts = Vec::new();
        for (index, spec) in workload.tasks.iter().enumerate() {
            let from = self.links.len() as u32;
            self.links.extend(&spec.links);
            self.link_ranges.push((from, spec.links.len() as u32));
            let all = self.scenario.topology.online().clone();
            let wanted = spec.allowed.as_ref().unwrap_or(&all);
            let allowed = if spec.kernel_thread { self.kernel_mask(wanted) } else { self.mask(wanted) };
            let new = NewTask {
                name: spec.name.clone(),
                attributes: attributes(spec),
                allowed,
                ip: programs[spec.program as usize],
                kthread: spec.kernel_thread,
                pool: NOBODY,
                process: spec.process,
                spec: index as u32,
                working_kib: spec.working_set_bytes.div_ceil(1024) as u32,
                group: spec.group.map_or(GroupId::ROOT, |group| self.groups[group.0 as usize]),
            };
            let task = self.add_task(new);
            self.by_ref.push(task);
            if let Start::At(ns) = spec.start {
                self.to_start += 1;
                starts.push((ns, task));
            }
        }
        // A shell forks one task after another: those that start together find the earlier ones at work.
        starts.sort_by_key(|&(ns, _)| ns);
        let mut free = 0;
        for (ns, task) in starts {
            let at = ns.max(free);
            free = at + self.costs.get(crate::Cost::Fork);
            self.queue.post(self.cpus.len(), BOOT + at, Arrival::Start(task));
        }
    }

    pub(super) fn add_task(&mut self, new: NewTask) -> u32 {
        let task = self.tasks.len() as u32;
        let id = self.fair.add_task(new.attributes, new.group);
        // Entities of groups lie between those of tasks.
        self.owner.resize(id.index(), NOBODY);
        self.owner.push(task);
        let name = match self.names.iter().position(|name| *name == new.name) {
            Some(known) => known as u32,
            None => {
                self.names.push(new.name);
                self.name_counters.push(crate::TaskCounters::default());
                self.names.len() as u32 - 1
            }
        };
        self.name_counters[name as usize].tasks += 1;
        let mut exec = Exec::new(new.ip, task, self.code.depth);
        exec.next = Next::Fetch;
        self.tasks.push(Task {
            exec,
            id,
            state: State::New,
            cpu: 0,
            on_cpu: false,
            kthread: new.kthread,
            pinned: self.masks[new.allowed as usize].len() == 1,
            attributes: new.attributes,
            allowed: new.allowed,
            flips: Flips::default(),
            recent: CpuId::new(0),
            waking_at: 0,
            woken: false,
            listed_by: 0,
            queued_by: 0,
            runnable_at: 0,
            running_from: 0,
            cache_cpu: 0,
            ran_until: 0,
            working_kib: new.working_kib,
            name,
            spec: new.spec,
            process: new.process,
            pool: new.pool,
            blocked_in_item: false,
            waited_max: 0,
            ended: false,
            joiners: Vec::new(),
        });
        task
    }

    /// Short tasks pinned to every CPU, out of step with each other.
    fn add_noise(&mut self) {
        let Some(noise) = self.scenario.settings.noise else { return };
        let sleep = ttwu_workload::Dist::uniform(noise.sleep_ns_min, noise.sleep_ns_max);
        let body = vec![
            ttwu_workload::Op::Sleep(sleep),
            ttwu_workload::Op::RunKernel(ttwu_workload::Dist::constant(noise.run_ns)),
        ];
        let times = ttwu_workload::Times::Forever;
        let ip = self.code.add(&[ttwu_workload::Op::Repeat { times, counter: None, body }]);
        let depth = self.code.depth;
        for cpu in 0..self.cpus.len() {
            if !self.cpus[cpu].present {
                continue;
            }
            let mask: CpuSet = std::iter::once(cpu_id(cpu)).collect();
            let allowed = intern(&mut self.masks, &mask);
            let task = self.add_task(NewTask {
                name: format!("noise/{cpu}"),
                attributes: TaskAttributes::NORMAL,
                allowed,
                ip,
                kthread: true,
                pool: NOBODY,
                process: NOBODY - 1,
                spec: NOBODY,
                working_kib: 0,
                group: GroupId::ROOT,
            });
            self.tasks[task as usize].exec.loops.resize(depth as usize, 0);
            let at = BOOT + self.rng.below(noise.sleep_ns_max.max(1));
            self.queue.post(self.cpus.len(), at, Arrival::Start(task));
        }
    }

    fn add_world(&mut self) {
        let world = self.cpus.len();
        let mut end = self.scenario.until_ns;
        if let Until::Time(ns) = self.scenario.workload.until {
            end = end.min(ns);
        }
        self.queue.post(world, BOOT.saturating_add(end), Arrival::End);
        if let Some(frequency) = self.scenario.settings.frequency {
            self.queue.post(world, BOOT + frequency.sample_ns, Arrival::Frequency);
            for cpu in &mut self.cpus {
                cpu.frequency = u64::from(frequency.min_permille);
            }
        }
        self.shell = {
            let all = self.scenario.topology.online().clone();
            let mask = self.mask(&all);
            let cpus: Vec<CpuId> = self.masks[mask as usize].iter().collect();
            cpus[self.rng.below(cpus.len() as u64) as usize].index()
        };
        for cpu in 0..world {
            // CPUs went idle one after another some time ago: which was last is for the seed to say.
            self.cpus[cpu].idle_from = BOOT - 1 - self.rng.below(10_000_000);
            self.cpus[cpu].idle_state = self.choose_state(cpu).state;
        }
    }
}

fn intern(masks: &mut Vec<CpuSet>, set: &CpuSet) -> u32 {
    assert!(!set.is_empty(), "a task must be allowed somewhere");
    if let Some(known) = masks.iter().position(|known| known == set) {
        return known as u32;
    }
    masks.push(set.clone());
    masks.len() as u32 - 1
}

fn attributes(spec: &TaskSpec) -> TaskAttributes {
    let policy = if spec.idle_policy {
        TaskPolicy::Idle
    } else if spec.batch_policy {
        TaskPolicy::Batch
    } else {
        TaskPolicy::Normal
    };
    TaskAttributes { nice: spec.nice, policy, slice_ns: spec.slice_ns }
}

fn levels(scenario: &Scenario, count: usize) -> Vec<Level> {
    let mut levels = Vec::with_capacity(count * count);
    for a in 0..count {
        for b in 0..count {
            levels.push(scenario.topology.level(cpu_id(a), cpu_id(b)).unwrap_or(Level::Node));
        }
    }
    levels
}

fn siblings(machine: &Machine, scenario: &Scenario, count: usize) -> Vec<Vec<u16>> {
    let online = scenario.topology.online();
    let of = |cpu: usize| {
        let smt = machine.smt(cpu_id(cpu)).iter();
        smt.filter(|&other| other.index() != cpu && online.contains(other)).map(CpuId::number).collect()
    };
    (0..count).map(of).collect()
}

/// Threads of a core that there can be.
const SMT_MAX: u64 = 255;

/// A core's throughput is shared evenly by its busy threads.
fn smt_speed(costs: &crate::Costs, busy: u64) -> u64 {
    if busy <= 1 { 1000 } else { (costs.get(crate::Cost::SmtThroughput) / busy).clamp(1, 1000) }
}

fn meters(scenario: &Scenario, count: usize) -> Vec<MeterValue> {
    let each = scenario.workload.meters.iter().map(|meter| match meter.kind {
        MeterKind::Samples => MeterValue::Samples(Vec::new()),
        MeterKind::Count => MeterValue::Count(0),
        MeterKind::Cpus => MeterValue::Cpus(vec![0; count]),
        MeterKind::Seconds => MeterValue::Seconds(Vec::new()),
    });
    each.collect()
}
