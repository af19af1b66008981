//! The machine: CPUs, tasks and objects, and the loop that lets one thing happen after another.
//!
//! What a CPU does is a chain of *stretches*: so much work, then something happens ([`task::Next`]), then the next stretch.
//! State changes only at the ends of stretches and at arrivals, in the total order of [`queue::EventQueue`]; what a kernel path
//! costs lies in the stretch before its effect, so that others see the effect when they would.

mod balance;
mod code;
mod cpu;
mod fork;
mod idle;
mod interpret;
mod irq;
mod objects;
mod queue;
mod schedule;
mod setup;
mod stream;
mod stretch;
mod stuck;
mod sync;
mod task;
mod tracer;
mod view;
mod wake;
mod work;

#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod newidle_tests;
#[cfg(test)]
mod object_tests;
#[cfg(test)]
mod stuck_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trace_tests;

use crate::rng::Rng;
use crate::{Control, Costs, Counters, End, MeterValue, Options, Outcome, Progress, Scenario, Starved};
use code::Code;
use cpu::{Arrival, Context, Cpu};
pub(crate) use idle::State as IdleState;
use objects::{InFlight, Object};
use queue::{Class, EventQueue};
use std::rc::Rc;
use task::{NOBODY, State, Task};
use ttwu_fair::{BalanceState, Fair, GroupId, Machine, Rule, ScanEnd};
use ttwu_model::{CpuId, CpuSet, Level};
use ttwu_workload::{ObjectId, TaskRef, Until};

/// The clock at the start of a run, ns: kernels do not boot at 0 either, and load tracking takes 0 for "never".
const BOOT: u64 = 1_000_000_000;

/// A machine at work.
struct Sim<'s> {
    scenario: &'s Scenario,
    costs: Costs,
    now: u64,
    tick_ns: u64,
    queue: EventQueue<Arrival>,
    code: Code,
    machine: Rc<Machine>,
    fair: Fair,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    /// By entity: whose it is.
    owner: Vec<u32>,
    /// The workload's task → task.
    by_ref: Vec<u32>,
    objects: Vec<Object>,
    links: Vec<ObjectId>,
    /// By workload task: its links in `links`.
    link_ranges: Vec<(u32, u32)>,
    masks: Vec<CpuSet>,
    groups: Vec<GroupId>,
    names: Vec<String>,
    name_counters: Vec<crate::TaskCounters>,
    pools: Vec<work::Pool>,
    in_flight: Vec<InFlight>,
    /// By CPU: memory of the socket messages that it wrote and nobody has read yet, bytes.
    queued_bytes: Vec<u64>,
    free_flights: Vec<u32>,
    /// What balancing keeps; out while a pass is made.
    balance: Option<Box<BalanceState>>,
    overloaded_in_pass: bool,
    /// Row by row: how near two CPUs are.
    levels: Vec<Level>,
    siblings: Vec<Vec<u16>>,
    /// Speed of a thread, in thousandths, by how many threads of its core are busy.
    smt_speed: Vec<u64>,
    idle_states: Vec<idle::State>,
    monitors: u8,
    rng: Rng,
    counters: Counters,
    meters: Vec<MeterValue>,
    /// By meter.
    samples_dropped: Vec<u64>,
    /// Which samples go; apart, so that it changes nothing else.
    sample_rng: Rng,
    trace: Option<tracer::Tracer>,
    decisions: Option<Vec<crate::Decision>>,
    decisions_made: u64,
    /// What the last placement looked at, where decisions are kept.
    checks: Vec<ttwu_fair::Check>,
    events: u64,
    digest: u64,
    alive: usize,
    /// Where what starts the tasks sits.
    shell: usize,
    /// Starts that are still to come.
    to_start: usize,
    end: Option<End>,
    starved: Vec<Starved>,
    /// Who released a lock that it did not hold, and which.
    unlocked: Option<(u32, u32)>,
    worker_code: u32,
    /// By device and kind of request: programs of the hard handler and of softirq.
    handlers: Vec<Vec<(u32, u32)>>,
    work_code: Vec<u32>,
    idle_exit_ns: Vec<u64>,
    /// Placements by rule, scans by end: counted here, named at the end.
    rules: [u64; Rule::NoBalanceDomain as usize + 1],
    scan_ends: [u64; 5],
    spins_without_time: u32,
}

/// Runs a scenario to its end.
///
/// # Panics
/// On a fault of this crate; and for a workload that names what it does not have, or blocks where it must not.
#[must_use]
pub fn run(scenario: &Scenario, options: &mut Options<'_>) -> Outcome {
    let mut sim = Sim::new(scenario, options);
    let end = sim.run(options);
    sim.finish(end)
}

impl Sim<'_> {
    fn run(&mut self, options: &mut Options<'_>) -> End {
        let mut steps = 0u32;
        loop {
            let Some((at, line, class)) = self.queue.next() else { return End::Stuck };
            debug_assert!(at >= self.now, "time goes back");
            let before = self.now;
            self.now = at;
            self.happen(line, class);
            if let Some(end) = self.end {
                if end == End::Stuck && self.unlocked.is_none() {
                    self.now = before;
                }
                return end;
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(1 << 16)
                && let Some(progress) = &mut options.progress
            {
                let report = Progress {
                    now_ns: self.now - BOOT,
                    until_ns: self.scenario.until_ns,
                    events: self.events,
                };
                if progress(report) == Control::Cancel {
                    return End::Cancelled;
                }
            }
        }
    }

    fn happen(&mut self, line: usize, class: Class) {
        if line == self.cpus.len() {
            let what = self.queue.take(line);
            self.world(what);
            return;
        }
        match class {
            Class::Arrival => {
                let what = self.queue.take(line);
                self.arrive(line, what);
            }
            Class::Tick => {
                self.queue.set(line, Class::Tick, self.now + self.tick_ns);
                self.arrive(line, Arrival::Tick);
            }
            Class::Hrtick => {
                self.queue.clear(line, Class::Hrtick);
                self.arrive(line, Arrival::Hrtick);
            }
            Class::Step => {
                self.queue.clear(line, Class::Step);
                self.stretch_ends(line);
            }
        }
    }

    fn world(&mut self, what: Arrival) {
        match what {
            Arrival::Start(task) => self.start(task),
            Arrival::Served(flight) => self.served(flight),
            Arrival::Frequency => self.sample_frequency(),
            Arrival::End => {
                let by_time =
                    matches!(self.scenario.workload.until, Until::Time(ns) if BOOT + ns == self.now);
                self.end = Some(if self.is_stuck() || (!by_time && self.queue.next().is_none()) {
                    // The limit was all that was still to come.
                    End::Stuck
                } else if by_time {
                    End::Completed
                } else {
                    End::TimeLimit
                });
            }
            Arrival::Reschedule
            | Arrival::Call
            | Arrival::Timer(_)
            | Arrival::Device(_)
            | Arrival::Tick
            | Arrival::Hrtick
            | Arrival::Nohz
            | Arrival::Stop { .. }
            | Arrival::Active { .. } => unreachable!("{what:?} is for a CPU"),
        }
    }

    /// Counts a state-changing event. Everything that makes up a run's course goes into the digest.
    fn event(&mut self, kind: u64, cpu: usize, task: u32) {
        self.events += 1;
        let word = self.now ^ (kind << 56) ^ ((cpu as u64) << 40) ^ (u64::from(task) << 20);
        self.digest = (self.digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn jiffies(&self) -> u64 {
        self.now / self.tick_ns
    }

    fn level(&self, a: usize, b: usize) -> Level {
        self.levels[a * self.cpus.len() + b]
    }

    fn allowed(&self, task: u32) -> &CpuSet {
        &self.masks[self.tasks[task as usize].allowed as usize]
    }

    fn finish(mut self, end: End) -> Outcome {
        self.check_end();
        let stuck = self.stuck(end);
        let sim_ns = self.now - BOOT;
        self.conserve_time(sim_ns);
        let bound = self.scenario.settings.starved_ns;
        for index in 0..self.tasks.len() {
            let task = &self.tasks[index];
            let waits = task.state == State::Runnable && !task.on_cpu;
            let waited = if waits { self.now - task.runnable_at } else { 0 }.max(task.waited_max);
            if waited > bound {
                let spec = (task.spec != NOBODY).then_some(TaskRef(task.spec));
                self.starved.push(Starved { task: spec, index: index as u32, waited_ns: waited });
            }
        }
        for (rule, &count) in Rule::ALL.iter().zip(&self.rules).filter(|(_, count)| **count > 0) {
            self.counters.by_rule.insert(*rule, count);
        }
        for (end, &count) in ScanEnd::ALL.iter().zip(&self.scan_ends).filter(|(_, count)| **count > 0) {
            self.counters.scans.insert(*end, count);
        }
        self.counters.samples_dropped = self.samples_dropped.iter().sum();
        let names = std::mem::take(&mut self.names);
        for (name, counters) in names.iter().zip(std::mem::take(&mut self.name_counters)) {
            self.counters.tasks.insert(name.clone(), counters);
        }
        let trace = self.trace.take().map(|tracer| tracer.finish(&self.tasks, &names, self.scenario));
        Outcome {
            end,
            sim_ns,
            events: self.events,
            counters: self.counters,
            meters: self.meters,
            trace,
            decisions: self.decisions.unwrap_or_default(),
            starved: self.starved,
            stuck,
            digest: self.digest,
        }
    }

    /// Time is conserved: what a CPU spent in each way adds up to the run, and what it spent idle is what it was not busy, which
    /// is accounted apart. Fills in the counters.
    fn conserve_time(&mut self, sim_ns: u64) {
        for cpu in 0..self.cpus.len() {
            if !self.cpus[cpu].present {
                continue;
            }
            self.account_busy(cpu);
            let state = &mut self.cpus[cpu];
            state.enter(state.context, self.now);
            let (spent, busy, seed) = (state.spent, state.busy_ns, self.scenario.seed);
            let sum = spent.idle + spent.irq + spent.task + spent.between;
            assert_eq!(sum, sim_ns, "time of CPU {cpu}: {spent:?}; seed {seed}");
            assert_eq!(spent.idle + busy, sim_ns, "idle and busy time of CPU {cpu}: {spent:?}; seed {seed}");
            self.counters.busy_ns += busy;
            self.counters.idle_ns += spent.idle;
            self.counters.irq_ns += spent.irq;
        }
        let (tasks, busy) = (self.counters.task_ns, self.counters.busy_ns);
        assert!(tasks <= busy, "tasks ran for {tasks} of {busy} ns; seed {}", self.scenario.seed);
    }

    /// What must hold whenever a run ends, whatever happened in it.
    fn check_end(&mut self) {
        for cpu in 0..self.cpus.len() {
            if !self.cpus[cpu].present {
                continue;
            }
            let id = cpu_id(cpu);
            let curr = self.cpus[cpu].curr;
            let fair_curr = self.fair.curr(id).map_or(NOBODY, |entity| self.owner[entity.index()]);
            assert_eq!(curr, fair_curr, "CPU {cpu} runs what its queue says; seed {}", self.scenario.seed);
            let queued = self.tasks.iter().filter(|task| {
                usize::from(task.cpu) == cpu && task.state != State::New && self.fair.is_queued(task.id)
            });
            let counted = queued.count() as u32;
            assert_eq!(counted, self.fair.nr_running(id), "queue of CPU {cpu}; seed {}", self.scenario.seed);
        }
        for (index, task) in self.tasks.iter().enumerate() {
            if task.state == State::Runnable {
                let queued = self.fair.is_queued(task.id);
                assert!(queued, "task {index} is runnable and nowhere queued; seed {}", self.scenario.seed);
            }
        }
    }
}

fn cpu_id(cpu: usize) -> CpuId {
    CpuId::new(cpu as u16)
}

/// Does the CPU execute nothing that takes time?
const fn is_quiet(context: Context) -> bool {
    matches!(context, Context::Idle)
}
