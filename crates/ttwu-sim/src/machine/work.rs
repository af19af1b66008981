//! Workqueues and devices.
//!
//! A pool of workers a CPU (bound, for each priority) or a cache or node (unbound). Of a bound pool's workers one runs at a
//! time, others step in when it blocks; of an unbound one a worker is woken for every item. The idle worker that became idle
//! last is woken first.

use super::cpu::Arrival;
use super::objects::{InFlight, Object};
use super::setup::NewTask;
use super::stretch::Flow;
use super::task::{Mode, NOBODY, Next, State, Who};
use super::{Sim, cpu_id};
use crate::Cost;
use std::collections::VecDeque;
use ttwu_fair::{Kernel, TaskAttributes};
use ttwu_model::{CpuSet, Unit};
use ttwu_workload::{Bound, Device, InterruptCpu, ObjectKind, Work, WorkQueue};

/// A worker pool.
#[derive(Debug)]
pub(super) struct Pool {
    bound: bool,
    high: bool,
    /// The CPU (bound), or a mask's index.
    cpu: u16,
    mask: u32,
    items: VecDeque<u32>,
    idle: Vec<u32>,
    /// Workers that are neither idle nor blocked in an item.
    running: u32,
    workers: u32,
    /// Its number among pools of its kind, for names.
    number: u32,
}

impl Sim<'_> {
    fn device(&self, object: u32) -> &Device {
        match &self.scenario.workload.objects[object as usize].kind {
            ObjectKind::Device(device) => device,
            _ => self.wrong(object, "device"),
        }
    }

    /// A request reaches the device.
    pub(super) fn submitted(&mut self, who: Who) -> Flow {
        let cpu = self.cpu_of(who);
        let exec = self.exec(who);
        exec.next = Next::Fetch;
        let (object, request, behalf) = (exec.object, exec.object2, exec.behalf);
        let flight = InFlight { device: object, request, behalf, from: cpu as u16 };
        let index = match self.free_flights.pop() {
            Some(index) => {
                self.in_flight[index as usize] = flight;
                index
            }
            None => {
                self.in_flight.push(flight);
                self.in_flight.len() as u32 - 1
            }
        };
        let channels = self.device(object).channels.max(1);
        let Object::Device { busy, waiting } = &mut self.objects[object as usize] else {
            self.wrong(object, "device")
        };
        if *busy < channels {
            *busy += 1;
            self.serve(index);
        } else {
            waiting.push_back(index);
        }
        Flow::Go
    }

    fn serve(&mut self, index: u32) {
        let flight = self.in_flight[index as usize];
        let draw = self.rng.next();
        let request = &self.device(flight.device).requests[flight.request as usize];
        let mut ns = request.service.at(draw);
        let queued = u64::from(request.service_queued_permille);
        if let Object::Device { waiting, .. } = &self.objects[flight.device as usize]
            && !waiting.is_empty()
        {
            ns = ns * queued / 1000;
        }
        self.queue.post(self.cpus.len(), self.now + ns, Arrival::Served(index));
    }

    /// A request leaves the device; the next one enters, and after its latency the interrupt comes.
    pub(super) fn served(&mut self, index: u32) {
        let flight = self.in_flight[index as usize];
        let draw = self.rng.next();
        let device = self.device(flight.device);
        let latency = device.requests[flight.request as usize].latency.at(draw);
        let cpu = match device.interrupt {
            InterruptCpu::Fixed(cpu) => cpu.index(),
            InterruptCpu::Submitter => flight.from as usize,
        };
        self.queue.post(cpu, self.now + latency, Arrival::Device(index));
        let Object::Device { busy, waiting } = &mut self.objects[flight.device as usize] else {
            self.wrong(flight.device, "device")
        };
        match waiting.pop_front() {
            Some(next) => self.serve(next),
            None => *busy -= 1,
        }
    }

    pub(super) fn device_interrupt(&mut self, who: Who, index: u32) -> Flow {
        self.counters.interrupts += 1;
        let flight = self.in_flight[index as usize];
        let (hard, _) = self.handlers[flight.device as usize][flight.request as usize];
        self.begin_handler(who, hard, flight.behalf);
        let cpu = self.cpu_of(who);
        self.cpus[cpu].soft = false;
        Flow::Go
    }

    fn begin_handler(&mut self, who: Who, ip: u32, behalf: u32) {
        let exec = self.exec(who);
        exec.ip = ip;
        exec.behalf = behalf;
        exec.item = behalf;
        exec.next = Next::Fetch;
    }

    pub(super) fn device_softirq(&mut self, who: Who, index: u32) -> Flow {
        let flight = self.in_flight[index as usize];
        let cpu = self.cpu_of(who);
        let (_, soft) = self.handlers[flight.device as usize][flight.request as usize];
        if soft == NOBODY {
            self.exec(who).next = Next::IrqOut;
            return Flow::Go;
        }
        self.cpus[cpu].soft = true;
        self.trace_softirq(cpu, 6, true);
        self.begin_handler(who, soft, flight.behalf);
        self.work(who, self.costs.get(Cost::Softirq), Mode::Atomic)
    }

    pub(super) fn in_softirq(&self, who: Who) -> bool {
        self.cpus[self.cpu_of(who)].soft
    }

    pub(super) fn device_done(&mut self, cpu: usize, index: u32) {
        if std::mem::take(&mut self.cpus[cpu].soft) {
            self.trace_softirq(cpu, 6, false);
        }
        self.free_flights.push(index);
    }

    fn work_spec(&self, object: u32) -> (&Work, WorkQueue) {
        let ObjectKind::Work(work) = &self.scenario.workload.objects[object as usize].kind else {
            self.wrong(object, "work item")
        };
        match self.scenario.workload.objects[work.queue.0 as usize].kind {
            ObjectKind::WorkQueue(queue) => (work, queue),
            _ => self.wrong(work.queue.0, "workqueue"),
        }
    }

    /// A work item is queued, unless it is pending.
    pub(super) fn queued(&mut self, who: Who) -> Flow {
        let cpu = self.cpu_of(who);
        let exec = self.exec(who);
        exec.next = Next::Fetch;
        let (object, for_whom) = (exec.object, exec.behalf);
        let (_, queue) = self.work_spec(object);
        let Object::Work { pending, behalf, .. } = &mut self.objects[object as usize] else {
            self.wrong(object, "work item")
        };
        if std::mem::replace(pending, true) {
            return Flow::Go;
        }
        *behalf = for_whom;
        let pool = self.pool_for(queue, cpu);
        self.pools[pool as usize].items.push_back(object);
        let needs = {
            let pool = &self.pools[pool as usize];
            !pool.bound || pool.running == 0
        };
        if needs && let Some(worker) = self.idle_worker(pool) {
            self.exec(who).wake.list.push(worker);
            return self.wake_listed(who, Next::Fetch);
        }
        Flow::Go
    }

    /// Are there items that no worker has taken?
    pub(super) fn has_work_items(&self) -> bool {
        self.pools.iter().any(|pool| !pool.items.is_empty())
    }

    /// Is it a worker without work?
    pub(super) fn is_idle_worker(&self, task: u32) -> bool {
        let pool = self.pools.get(self.tasks[task as usize].pool as usize);
        pool.is_some_and(|pool| pool.idle.contains(&task))
    }

    /// The pool that serves a queue on `cpu`, made if it is not there.
    fn pool_for(&mut self, queue: WorkQueue, cpu: usize) -> u32 {
        let bound = match queue.bound {
            Bound::PerCpu => true,
            Bound::Unbound => false,
        };
        let home = if bound { cpu } else { self.pod(cpu) };
        let known = self.pools.iter().position(|pool| {
            pool.bound == bound && pool.high == queue.high_priority && usize::from(pool.cpu) == home
        });
        if let Some(known) = known {
            return known as u32;
        }
        let mask = if bound { std::iter::once(cpu_id(cpu)).collect() } else { self.pod_span(cpu) };
        let mask = self.kernel_mask(&mask);
        let number = self.pools.iter().filter(|pool| pool.bound == bound).count() as u32;
        self.pools.push(Pool {
            bound,
            high: queue.high_priority,
            cpu: home as u16,
            mask,
            items: VecDeque::new(),
            idle: Vec::new(),
            running: 0,
            workers: 0,
            number,
        });
        self.pools.len() as u32 - 1
    }

    /// The CPUs that an unbound pool serves: the node's; from v6.6 on the LLC's.
    fn pod_span(&self, cpu: usize) -> CpuSet {
        let topology = &self.scenario.topology;
        let llc = topology.siblings(Unit::Llc, cpu_id(cpu));
        let node = topology.node(cpu_id(cpu)).map(|node| &node.cpus);
        let span = if self.scenario.policy.kernel() >= Kernel::V6_6 { llc.or(node) } else { node };
        let span = span.cloned().unwrap_or_else(|| topology.online().clone());
        span.intersection(topology.online())
    }

    fn pod(&self, cpu: usize) -> usize {
        self.pod_span(cpu).lowest().map_or(cpu, ttwu_model::CpuId::index)
    }

    /// An idle worker of the pool, the last one to become idle; a new one if there is none.
    ///
    /// DEVIATION: a new worker is there at once; in reality the manager forks it.
    fn idle_worker(&mut self, pool: u32) -> Option<u32> {
        if let Some(worker) = self.pools[pool as usize].idle.pop() {
            self.pools[pool as usize].running += 1;
            return Some(worker);
        }
        let state = &mut self.pools[pool as usize];
        if state.workers >= 512 {
            return None;
        }
        let number = state.workers;
        state.workers += 1;
        state.running += 1;
        let nice = if state.high { -20 } else { 0 };
        let suffix = if state.high { "H" } else { "" };
        let name = if state.bound {
            format!("kworker/{}:{number}{suffix}", state.cpu)
        } else {
            format!("kworker/u{}:{number}{suffix}", state.number)
        };
        let (mask, cpu) = (state.mask, state.cpu);
        let new = NewTask {
            name,
            attributes: TaskAttributes::nice(nice),
            allowed: mask,
            ip: self.worker_code,
            kthread: true,
            pool,
            process: NOBODY - 1,
            spec: NOBODY,
            working_kib: 0,
            group: ttwu_fair::GroupId::ROOT,
        };
        let worker = self.add_task(new);
        // As if it had been there, asleep, all along.
        let task = &mut self.tasks[worker as usize];
        task.cpu = cpu;
        task.recent = cpu_id(usize::from(cpu));
        task.state = State::Sleeping;
        task.exec.next = Next::WorkerLook;
        let id = task.id;
        self.fair.fork(cpu_id(usize::from(cpu)), id, self.now);
        Some(worker)
    }

    /// A worker looks for an item, or becomes idle.
    pub(super) fn worker_look(&mut self, who: Who) -> Flow {
        let Who::Task(me) = who else { unreachable!("workers are tasks") };
        let pool = self.tasks[me as usize].pool as usize;
        let Some(object) = self.pools[pool].items.pop_front() else {
            self.pools[pool].running -= 1;
            self.pools[pool].idle.push(me);
            self.tasks[me as usize].exec.was = true;
            return self.prepare_sleep(who, Next::WorkerLook);
        };
        let Object::Work { pending, running, flushers, again, behalf } = &mut self.objects[object as usize]
        else {
            self.wrong(object, "work item")
        };
        *pending = false;
        *running = true;
        // Those who flush from now on wait for the next round.
        again.append(flushers);
        let behalf = *behalf;
        let ip = self.work_code[object as usize];
        let exec = self.exec(who);
        exec.ip = ip;
        exec.behalf = behalf;
        exec.item = behalf;
        exec.object2 = object;
        exec.held = object;
        exec.was = false;
        exec.next = Next::Fetch;
        self.trace_work(me, object, true);
        self.work(who, self.costs.get(Cost::WorkItem), Mode::Kernel)
    }

    /// The item is done; who waited for it is woken.
    pub(super) fn work_done(&mut self, who: Who) -> Flow {
        let Who::Task(me) = who else { unreachable!("workers are tasks") };
        let object = self.exec(who).held;
        self.trace_work(me, object, false);
        let Object::Work { running, again, .. } = &mut self.objects[object as usize] else {
            self.wrong(object, "work item")
        };
        *running = false;
        let list = std::mem::take(again);
        let exec = self.exec(who);
        exec.behalf = me;
        exec.wake.list = list;
        self.wake_listed(who, Next::WorkerLook)
    }

    /// Waits for a work item that is pending or runs.
    pub(super) fn flush_check(&mut self, who: Who) -> Flow {
        let Who::Task(me) = who else {
            panic!("a handler of workload `{}` flushes", self.scenario.workload.name)
        };
        let object = self.exec(who).object;
        let Object::Work { pending, running, flushers, again, .. } = &mut self.objects[object as usize]
        else {
            self.wrong(object, "work item")
        };
        if *pending {
            flushers.push(me);
        } else if *running {
            again.push(me);
        } else {
            self.exec(who).next = Next::Fetch;
            return Flow::Go;
        }
        self.prepare_sleep(who, Next::Fetch)
    }

    /// A bound worker blocks in an item: another takes over what is left.
    ///
    /// Models: wq_worker_sleeping(), v5.5–v7.2. DEVIATION: the other one is woken without a waker's costs.
    pub(super) fn worker_blocks(&mut self, task: u32) {
        let pool = self.tasks[task as usize].pool;
        if pool == NOBODY || self.tasks[task as usize].exec.was {
            return;
        }
        let state = &mut self.pools[pool as usize];
        state.running -= 1;
        self.tasks[task as usize].blocked_in_item = true;
        if state.bound
            && state.running == 0
            && !state.items.is_empty()
            && let Some(other) = self.idle_worker(pool)
        {
            let cpu = usize::from(self.tasks[task as usize].cpu);
            self.tasks[other as usize].state = State::Waking;
            self.tasks[other as usize].waking_at = self.now;
            self.counters.wakeups += 1;
            self.counters.wakeups_pinned += 1;
            self.trace_waking(cpu, other);
            self.activate(cpu, other, cpu, ttwu_fair::WakeupCheck::default(), NOBODY);
        }
    }

    /// A worker that had blocked in an item runs again.
    pub(super) fn worker_runs(&mut self, task: u32) {
        if std::mem::take(&mut self.tasks[task as usize].blocked_in_item) {
            let pool = self.tasks[task as usize].pool as usize;
            self.pools[pool].running += 1;
        }
    }
}
