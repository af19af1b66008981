//! The queues of a recording, rebuilt record by record.
//!
//! A probe sits at a function's entry, so what the function did shows only in later records of the CPU that executed it: a
//! dequeue is carried out here when the next record of that CPU is neither the accounting of its running task nor the
//! request that follows from that. The queue's lock is held with interrupts off all the while, so nothing of that queue
//! comes between.
//!
//! What this does not do: follow the weights of group entities between two sights of them (their changes have no probe), or
//! lift a check between two groups to their siblings; both are set aside and counted.

use crate::Recording;
use crate::probe::{Check, EntityValues, Named, Probe, QueueValues, need_resched, probe};
use crate::queues::QueueReport;
use crate::score::{Cause, Miss, Score};
use std::collections::BTreeMap;
use ttwu_fair::{
    CfsRq, DequeueFlags, EnqueueFlags, Entities, EntityId, Feature, Kernel, LoadWeight, PreemptQuery,
    PreemptReason, Preemption, Protect, QueueRules, Resched, SchedEntity, SwitchIn, TaskPolicy, entity_tick,
    wakeup_preempt,
};
use ttwu_trace::RawRecord;

const GROUPS: &str = "task groups: the check or tick is between levels";
const BEGAN: &str = "queue not known yet: entities queued before the recording began";
const SUMS: &str = "rebuilt queue differs from the recorded sums";
const GROUP_VALUES: &str =
    "task groups: values of or beside a group entity, whose weight changes have no probe";
const IDLE: &str = "the idle task is current";
const CLASS: &str = "the wakee is of another class";

/// What is known of an entity beside its state.
#[derive(Clone, Copy, Debug, Default)]
struct Info {
    pid: i64,
    group: bool,
    cfs: Option<u64>,
    /// Its values have been seen.
    known: bool,
    /// The model changed it since it was last seen.
    touched: bool,
    /// CFS: its virtual time is relative to a queue's.
    relative: bool,
    /// CFS: it was taken off its queue to be moved.
    detached: bool,
    /// The model's answer whether its dequeue was delayed, until the record says so.
    delayed: Option<bool>,
    /// 7.2: the model's and the kernel's answer, until the switch says in which state it blocked.
    blocked: Option<(bool, bool)>,
}

#[derive(Debug)]
struct Queue {
    rq: CfsRq,
    /// The CPU, once it is known.
    cpu: Option<usize>,
    /// All queued entities are known: its sums were equal to the recorded ones once.
    complete: bool,
    /// They were, at the last sight.
    matched: bool,
    seen: bool,
    touched: bool,
    /// It has held a group's entity.
    grouped: bool,
}

/// An operation whose end has not been seen.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Dequeue { id: EntityId, flags: u64 },
    Yield { id: EntityId, accounted: bool },
}

/// A request that the model expects (or not) as the CPU's next record.
#[derive(Clone, Copy, Debug)]
struct Expected {
    cpu: usize,
    resched: Option<Resched>,
    seen: Option<Resched>,
    tick: bool,
    pid: i64,
}

/// A queue and its running entity before an accounting.
#[derive(Clone, Debug)]
struct Undo {
    cfs: u64,
    rq: CfsRq,
    id: EntityId,
    entity: SchedEntity,
    now: u64,
}

/// An open wake-up preemption check.
#[derive(Clone, Debug)]
struct Window {
    cpu: usize,
    cfs: Option<u64>,
    /// The model's answer, and the queue and running entity after it; `None`: set aside.
    answer: Option<(Preemption, CfsRq, EntityId, SchedEntity)>,
    short: bool,
    seen: Option<Resched>,
    text: [i64; 3],
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    root: Option<u64>,
    current: i64,
    need: Option<Resched>,
    pending: Option<Pending>,
    expected: Option<Expected>,
    window: Option<Window>,
    /// The open pick: its queue, the model's answer and whether that is scored.
    pick: Option<(u64, Option<EntityId>, bool)>,
    picked_last: bool,
    /// What the present schedule() picked on each level.
    chain: Vec<(u64, EntityId)>,
    /// CFS: tasks on their way to this CPU's root queue.
    arriving: Vec<EntityId>,
    /// The running task's accounting that the model has done already.
    accounted: Option<i64>,
    /// The last accounting, with the state before it: should the task prove to have been dequeued by then.
    undo: Option<Undo>,
}

/// See the module.
pub(crate) struct Replay {
    rules: QueueRules,
    e: Entities,
    info: Vec<Info>,
    tasks: BTreeMap<i64, EntityId>,
    addresses: BTreeMap<u64, EntityId>,
    queues: BTreeMap<u64, Queue>,
    cpus: Vec<Cpu>,
    report: QueueReport,
    line: usize,
    at: u64,
}

fn later(a: Option<Resched>, b: Resched) -> Option<Resched> {
    a.max(Some(b))
}

fn load_of(weight: u64, group: bool) -> LoadWeight {
    let idle = LoadWeight::of_idle_policy();
    let mut tasks = (-20..=19).map(LoadWeight::of_nice).chain([idle]);
    tasks.find(|load| !group && load.weight() == weight).unwrap_or_else(|| LoadWeight::of_sum(weight))
}

impl Replay {
    pub(crate) fn new(recording: &Recording) -> Self {
        let cpus = recording.machine().cpu_bound();
        let rules = QueueRules::new(recording.policy(), recording.topology().online().len());
        Self {
            rules,
            e: Entities::new(),
            info: Vec::new(),
            tasks: BTreeMap::new(),
            addresses: BTreeMap::new(),
            queues: BTreeMap::new(),
            cpus: vec![Cpu::default(); cpus],
            report: QueueReport::default(),
            line: 0,
            at: 0,
        }
    }

    pub(crate) fn finish(self) -> QueueReport {
        self.report
    }

    fn aside(&mut self, why: &'static str) {
        *self.report.set_aside.entry(why).or_default() += 1;
    }

    fn add(
        &mut self,
        score: impl Fn(&mut QueueReport) -> &mut Score,
        agrees: bool,
        text: impl FnOnce() -> String,
    ) {
        let (line, at) = (self.line, self.at);
        score(&mut self.report).add(agrees, || Miss {
            line,
            ts: format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000),
            cause: Cause::Model,
            text: text(),
        });
    }

    /// Takes the next record.
    pub(crate) fn step(&mut self, record: &RawRecord<'_>) {
        self.line += 1;
        let exec = usize::from(record.cpu.number());
        let Some(seen) = probe(record) else { return };
        if exec >= self.cpus.len() {
            return;
        }
        self.at = record.at.as_ns();
        if self.settle(exec, &seen) {
            return;
        }
        self.release(exec, &seen);
        let picked_last = std::mem::take(&mut self.cpus[exec].picked_last);
        match seen {
            Probe::Runtime { pid, runtime } => self.runtime(exec, pid, runtime),
            Probe::Switch { prev, prev_blocked, prev_special, next } => {
                self.settle_delay(exec, prev, prev_special);
                self.switch(exec, prev, prev_blocked, next);
            }
            Probe::WakeupNew { pid, cpu } => self.wakeup_new(pid, usize::from(cpu)),
            Probe::Place { cfs, flags, entity, queue } => {
                if self.rules.kernel.is_eevdf() {
                    self.place_eevdf(cfs, flags, &entity, &queue);
                } else {
                    self.place_cfs(cfs, flags, &entity, &queue);
                }
            }
            Probe::Dequeue { flags, entity, queue } => self.dequeue(exec, flags, &entity, &queue),
            Probe::PickIn { cfs, curr, queue } => self.pick_in(exec, cfs, &curr, &queue, picked_last),
            Probe::Pick { entity } => self.pick(exec, &entity),
            Probe::CheckIn(check) => {
                self.check_in(exec, &check, need_resched(record));
            }
            Probe::CheckOut => self.check_out(exec),
            Probe::Tick { cpu, entity, clock, queue } => {
                self.tick(exec, usize::from(cpu), &entity, clock, &queue);
            }
            Probe::Yield { cpu, curr, queue } => self.yields(exec, usize::from(cpu), &curr, &queue),
            Probe::Resched { .. } | Probe::ReschedLazy { .. } | Probe::Wake => {}
            Probe::Migrate { to, from, entity } => {
                self.migrate(usize::from(to), usize::from(from), &entity);
            }
        }
    }

    /// Ends what the last record of this CPU left open, unless `seen` belongs to it. True: `seen` was all used up.
    fn settle(&mut self, exec: usize, seen: &Probe) -> bool {
        let request = match *seen {
            Probe::Resched { cpu, lazy: true } | Probe::ReschedLazy { cpu } => Some((cpu, Resched::Lazy)),
            Probe::Resched { cpu, lazy: false } => Some((cpu, Resched::Full)),
            _ => None,
        };
        if let Some((cpu, request)) = request {
            let target = usize::from(cpu);
            if let Some(cpu) = self.cpus.get_mut(target) {
                cpu.need = later(cpu.need, request);
            }
            let cpu = &mut self.cpus[exec];
            if let Some(window) = cpu.window.as_mut().filter(|window| window.cpu == target) {
                window.seen = later(window.seen, request);
            } else if let Some(expected) = cpu.expected.as_mut().filter(|expected| expected.cpu == target) {
                expected.seen = later(expected.seen, request);
            }
            return true;
        }
        // The tick's own accounting comes before its request.
        let accounted = self.cpus[exec].accounted;
        if matches!(*seen, Probe::Runtime { pid, .. } if accounted == Some(pid)) {
            return false;
        }
        let undo = self.cpus[exec].undo.take();
        // Its own placement follows its own dequeue: there the accounting was the dequeue's.
        if let (Some(undo), &Probe::Place { cfs, queue, entity, .. }) = (undo, seen)
            && undo.cfs == cfs
            && self.tasks.get(&entity.pid) != Some(&undo.id)
        {
            self.gone_before(exec, undo, &queue);
        }
        if let Some(expected) = self.cpus[exec].expected.take() {
            self.judge(&expected);
        }
        if let Probe::Runtime { pid, .. } = *seen
            && let Some(pending) = self.cpus[exec].pending
            && self.accounts(pending, pid)
        {
            match pending {
                Pending::Dequeue { .. } => return false,
                Pending::Yield { id, accounted: false } => {
                    self.cpus[exec].pending = Some(Pending::Yield { id, accounted: true });
                    return false;
                }
                // That is the next schedule's.
                Pending::Yield { accounted: true, .. } => {}
            }
        }
        if let Some(pending) = self.cpus[exec].pending.take() {
            self.complete(pending);
        }
        false
    }

    /// Where there is no dequeue probe: a queue that lacks just its running task shows that the task was dequeued before the
    /// accounting in between, which then asks otherwise.
    fn gone_before(&mut self, exec: usize, undo: Undo, values: &QueueValues) {
        let Some(queue) = self.queues.get_mut(&undo.cfs) else { return };
        if self.rules.kernel < Kernel::V7_2 || queue.rq.curr != Some(undo.id) || !undo.entity.on_rq {
            return;
        }
        let lacks = (
            queue.rq.nr_queued().saturating_sub(1),
            queue.rq.load().weight().saturating_sub(undo.entity.load.weight()),
        );
        if lacks != (values.nr, values.weight) || undo.entity.sched_delayed {
            return;
        }
        queue.rq = undo.rq;
        self.e[undo.id] = undo.entity;
        let flags = DequeueFlags { sleep: true, ..DequeueFlags::default() };
        let out = queue.rq.dequeue(&mut self.e, &self.rules, undo.id, 0, flags);
        self.info[undo.id.index()].blocked = Some((out.delayed, false));
        if out.delayed {
            queue.rq.forget(&mut self.e, &self.rules, undo.id);
            queue.rq.curr = Some(undo.id);
            self.e[undo.id].sched_delayed = false;
        }
        let resched = queue.rq.update_curr(&mut self.e, &self.rules, undo.now);
        if let Some(expected) = &mut self.cpus[exec].expected {
            expected.resched = resched;
        }
    }

    /// Ends what another CPU left open on `cfs`: it has let go of the queue's lock, or this CPU could not be here.
    fn release(&mut self, exec: usize, seen: &Probe) {
        let cfs = self.touches(seen);
        let moved = match *seen {
            // A sleeping task is moved without its old queue's lock, but not before its dequeue is over.
            Probe::Migrate { entity, .. } => self.tasks.get(&entity.pid).copied(),
            _ => None,
        };
        for other in (0..self.cpus.len()).filter(|&other| other != exec) {
            let Some(pending) = self.cpus[other].pending else { continue };
            let (Pending::Dequeue { id, .. } | Pending::Yield { id, .. }) = pending;
            if moved == Some(id) || cfs.is_some() && self.info[id.index()].cfs == cfs {
                self.cpus[other].pending = None;
                self.complete(pending);
            }
        }
    }

    /// The queue that a record touches, as far as it is known before the record is taken.
    fn touches(&self, seen: &Probe) -> Option<u64> {
        let of_task = |pid: i64| self.info[self.tasks.get(&pid)?.index()].cfs;
        let root = |cpu: u16| self.cpus.get(usize::from(cpu))?.root;
        match *seen {
            Probe::Place { cfs, .. } | Probe::PickIn { cfs, .. } => Some(cfs),
            Probe::Runtime { pid, .. } => of_task(pid),
            Probe::Dequeue { entity, .. } => of_task(entity.pid),
            Probe::CheckIn(check) => root(check.cpu),
            Probe::Tick { cpu, .. } | Probe::Yield { cpu, .. } => root(cpu),
            Probe::Switch { .. }
            | Probe::WakeupNew { .. }
            | Probe::Pick { .. }
            | Probe::Migrate { .. }
            | Probe::CheckOut
            | Probe::Resched { .. }
            | Probe::ReschedLazy { .. }
            | Probe::Wake => None,
        }
    }

    /// Is `pid` the running task of the queue that `pending` works on?
    fn accounts(&self, pending: Pending, pid: i64) -> bool {
        let (Pending::Dequeue { id, .. } | Pending::Yield { id, .. }) = pending;
        let queue = self.info[id.index()].cfs.and_then(|cfs| self.queues.get(&cfs));
        let curr = queue.and_then(|queue| queue.rq.curr);
        curr.is_some_and(|curr| self.tasks.get(&pid) == Some(&curr))
    }

    fn judge(&mut self, expected: &Expected) {
        let mut seen = expected.seen;
        // The slice timer of 7.2 requests in full whatever the tick found; it has no probe of its own.
        if expected.tick && self.rules.kernel >= Kernel::V7_2 && seen == Some(Resched::Full) {
            self.aside("full request of the slice timer");
            seen = expected.resched;
        }
        let text = || format!("pid {}: kernel {seen:?}, model {:?}", expected.pid, expected.resched);
        let agrees = seen == expected.resched;
        if expected.tick {
            self.add(|report| &mut report.tick, agrees, text);
        } else {
            self.add(|report| &mut report.slice_end, agrees, text);
        }
    }

    // --- entities and queues ---------------------------------------------------------------------------------------

    fn entity(&mut self, named: &Named) -> Option<EntityId> {
        let known = self.addresses.get(&named.se).copied();
        if let Some(id) = known
            && (self.info[id.index()].group || self.info[id.index()].pid == named.pid)
        {
            return Some(id);
        }
        if !named.group && named.pid <= 0 {
            return None;
        }
        let id = match self.tasks.get(&named.pid) {
            Some(&id) if !named.group => id,
            _ => self.create(named),
        };
        if named.se != 0 {
            self.addresses.insert(named.se, id);
        }
        Some(id)
    }

    fn create(&mut self, named: &Named) -> EntityId {
        let load = load_of(named.values.weight, named.group);
        let id = self.e.add(SchedEntity::new(load, TaskPolicy::Normal, &self.rules));
        self.info.push(Info { pid: named.pid, group: named.group, ..Info::default() });
        if !named.group {
            self.tasks.insert(named.pid, id);
        }
        id
    }

    fn queue(&mut self, cfs: u64) -> &mut Queue {
        let kernel = self.rules.kernel;
        self.queues.entry(cfs).or_insert_with(|| Queue {
            rq: CfsRq::new(kernel),
            cpu: None,
            complete: false,
            matched: false,
            seen: false,
            touched: false,
            grouped: false,
        })
    }

    /// Can `slice` be the default one? A task keeps the value of its last placement, and during boot that grows with the CPUs
    /// on line.
    fn is_base_slice(&self, slice: u64) -> bool {
        let tunables = &self.rules.tunables;
        let unscaled = tunables.base_slice_unscaled_ns;
        slice == tunables.base_slice_ns || (1..4).any(|factor| slice == factor * unscaled)
    }

    /// Compares what the model made of an entity with what is recorded, and takes the record's.
    fn observe(&mut self, id: EntityId, values: &EntityValues, place: &'static str) {
        let info = self.info[id.index()];
        let ours = self.e[id];
        let pid = info.pid;
        let grouped =
            info.group || info.cfs.and_then(|cfs| self.queues.get(&cfs)).is_some_and(|queue| queue.grouped);
        if info.known && info.touched && grouped {
            self.aside(GROUP_VALUES);
            self.info[id.index()].delayed = None;
        } else if info.known && info.touched {
            self.add(
                |report| &mut report.vruntime,
                ours.vruntime == values.vruntime,
                || format!("{place} pid {pid}: kernel {}, model {}", values.vruntime, ours.vruntime),
            );
            if self.rules.kernel.is_eevdf() {
                self.add(
                    |report| &mut report.deadline,
                    ours.deadline == values.deadline,
                    || format!("{place} pid {pid}: kernel {}, model {}", values.deadline, ours.deadline),
                );
                self.add(
                    |report| &mut report.vlag,
                    ours.vlag == values.vlag,
                    || format!("{place} pid {pid}: kernel {}, model {}", values.vlag, ours.vlag),
                );
            }
            if self.rules.kernel >= Kernel::V7_2 {
                self.add(
                    |report| &mut report.vprot,
                    ours.vprot == values.vprot,
                    || format!("{place} pid {pid}: kernel {}, model {}", values.vprot, ours.vprot),
                );
            }
        }
        if let Some(delayed) = self.info[id.index()].delayed.take() {
            self.add(
                |report| &mut report.delayed,
                delayed == values.delayed,
                || format!("{place} pid {pid}: kernel {}, model {delayed}", values.delayed),
            );
        }
        let load = load_of(values.weight, info.group);
        let policy = if values.weight == LoadWeight::of_idle_policy().weight() {
            TaskPolicy::Idle
        } else if ours.policy == TaskPolicy::Idle {
            TaskPolicy::Normal
        } else {
            ours.policy
        };
        let mut to = ours;
        to.load = load;
        to.vruntime = values.vruntime;
        to.deadline = values.deadline;
        to.vlag = values.vlag;
        to.vprot = values.vprot;
        to.slice = values.slice;
        to.custom_slice = info.group || !self.is_base_slice(values.slice);
        to.exec_start = values.exec_start;
        to.sum_exec_runtime = values.sum;
        to.prev_sum_exec_runtime = values.prev_sum;
        to.sched_delayed = values.delayed;
        to.rel_deadline = values.relative;
        to.policy = policy;
        let info = &mut self.info[id.index()];
        (info.known, info.touched) = (true, false);
        match info.cfs.and_then(|cfs| self.queues.get_mut(&cfs)) {
            Some(queue) => queue.rq.correct(&mut self.e, &self.rules, id, &to),
            None => self.e[id] = to,
        }
    }

    /// Compares a queue's reference point with the recorded one, and takes the record's.
    fn observe_zero(&mut self, cfs: u64, values: &QueueValues, place: &'static str) {
        let queue = self.queue(cfs);
        let zero = queue.rq.zero_vruntime();
        let scored = queue.seen && queue.touched && queue.complete && !queue.grouped;
        queue.rq.set_zero_vruntime(values.zero);
        (queue.seen, queue.touched) = (true, false);
        if scored {
            let text = || format!("{place}: kernel {}, model {zero}", values.zero);
            self.add(|report| &mut report.zero, zero == values.zero, text);
        }
    }

    /// Compares a queue's sums with the recorded ones.
    fn observe_queue(&mut self, cfs: u64, values: &QueueValues, place: &'static str) {
        self.observe_zero(cfs, values, place);
        let queue = self.queue(cfs);
        let (sum, sum_weight) = queue.rq.sums();
        let (nr, weight) = (queue.rq.nr_queued(), queue.rq.load().weight());
        let equal =
            (nr, weight, sum, sum_weight) == (values.nr, values.weight, values.sum, values.sum_weight);
        let was_complete = queue.complete;
        queue.matched = equal;
        queue.complete |= equal;
        let next = self.addresses.get(&values.next).copied();
        let queue = self.queue(cfs);
        queue.rq.next = next;
        let grouped = queue.grouped;
        if grouped {
            self.aside("group entities: their weight changes have no probe");
        } else if was_complete {
            self.add(
                |report| &mut report.rebuilt,
                equal,
                || {
                    format!(
                        "{place}: kernel {values:?}, model nr {nr} weight {weight} sums {sum} {sum_weight}"
                    )
                },
            );
        } else if !equal {
            self.aside(BEGAN);
        }
    }

    /// Makes the recorded running entity the model's, where a switch went unseen.
    fn align(&mut self, cfs: u64, address: u64, named: Option<&Named>) -> Option<EntityId> {
        let recorded = match named {
            Some(named) if address != 0 => self.entity(&Named { se: address, ..*named }),
            _ => self.addresses.get(&address).copied(),
        };
        if address != 0 && recorded.is_none() {
            return None;
        }
        self.queue(cfs);
        let queue = self.queues.get_mut(&cfs)?;
        if queue.rq.curr == recorded {
            return recorded;
        }
        if queue.rq.curr.is_some() {
            queue.rq.put_prev(&mut self.e, &self.rules, 0);
        }
        let id = recorded?;
        if self.e[id].on_rq && self.info[id.index()].cfs == Some(cfs) {
            let now = self.e[id].exec_start;
            queue.rq.set_next(&mut self.e, &self.rules, id, now, SwitchIn::PutBack);
        } else if let Some(named) = named
            && named.values.on_rq
        {
            self.take_from(id);
            self.info[id.index()].cfs = Some(cfs);
            self.observe(id, &named.values, "adopted");
            let queue = self.queues.get_mut(&cfs)?;
            queue.rq.adopt(&mut self.e, &self.rules, id, true);
        } else {
            self.take_from(id);
            self.info[id.index()].cfs = Some(cfs);
            let queue = self.queues.get_mut(&cfs)?;
            queue.rq.curr = Some(id);
        }
        self.info[id.index()].touched = false;
        Some(id)
    }

    /// Takes an entity out of the queue that the model has it on.
    fn take_from(&mut self, id: EntityId) {
        if let Some(queue) = self.info[id.index()].cfs.and_then(|cfs| self.queues.get_mut(&cfs)) {
            queue.rq.forget(&mut self.e, &self.rules, id);
        }
        self.info[id.index()].cfs = None;
    }

    /// An entity that is not queued goes to `cfs`: no other queue has it running any more.
    fn join(&mut self, id: EntityId, cfs: u64) {
        if self.info[id.index()].cfs != Some(cfs) {
            self.take_from(id);
            self.info[id.index()].cfs = Some(cfs);
        }
    }

    /// An entity that is queued on `cfs` without the model knowing.
    fn adopt(&mut self, id: EntityId, cfs: u64, values: &EntityValues) {
        self.take_from(id);
        self.info[id.index()].touched = false;
        self.observe(id, values, "adopted");
        self.info[id.index()].cfs = Some(cfs);
        self.queue(cfs);
        if let Some(queue) = self.queues.get_mut(&cfs) {
            queue.rq.adopt(&mut self.e, &self.rules, id, false);
        }
    }

    /// A blocked running task, where the kernel has no dequeue probe: the record says that it is gone, or delayed.
    fn blocked(&mut self, cfs: u64, id: EntityId, values: &EntityValues) {
        let queued = self.e[id].on_rq;
        if !queued || (values.on_rq && values.delayed == self.e[id].sched_delayed) {
            return;
        }
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if values.on_rq && !values.delayed {
            // The model delayed it, the kernel did not.
            return;
        }
        if self.e[id].sched_delayed {
            queue.rq.forget(&mut self.e, &self.rules, id);
            queue.rq.curr = Some(id);
            return;
        }
        let flags = DequeueFlags { sleep: true, ..DequeueFlags::default() };
        let out = queue.rq.dequeue(&mut self.e, &self.rules, id, 0, flags);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        self.info[id.index()].blocked = Some((out.delayed, values.delayed));
        if out.delayed && !values.on_rq {
            queue.rq.forget(&mut self.e, &self.rules, id);
            queue.rq.curr = Some(id);
            self.e[id].sched_delayed = false;
        }
    }

    // --- records ---------------------------------------------------------------------------------------------------

    fn runtime(&mut self, exec: usize, pid: i64, runtime: u64) {
        if self.cpus[exec].accounted.take() == Some(pid) {
            return;
        }
        let Some(&id) = self.tasks.get(&pid) else { return };
        let Some(cfs) = self.info[id.index()].cfs else { return };
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if queue.rq.curr != Some(id) {
            return;
        }
        let now = self.e[id].exec_start.wrapping_add(runtime);
        let undo = Undo { cfs, rq: queue.rq.clone(), id, entity: self.e[id], now };
        let resched = queue.rq.update_curr(&mut self.e, &self.rules, now);
        self.cpus[exec].undo = Some(undo);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        let (cpu, matched, complete) = (queue.cpu, queue.matched, queue.complete);
        let root = cpu.is_some_and(|cpu| self.cpus[cpu].root == Some(cfs));
        if self.cpus[exec].window.is_some() || self.rules.kernel < Kernel::V6_6 {
            return;
        }
        if !self.info[id.index()].known || !complete {
            self.aside(BEGAN);
        } else if !matched {
            self.aside(SUMS);
        } else if let Some(cpu) = cpu.filter(|_| root) {
            self.cpus[exec].expected = Some(Expected { cpu, resched, seen: None, tick: false, pid });
        } else {
            self.aside(GROUPS);
        }
    }

    /// Where there is no dequeue probe, the switch tells whether the blocked task's state forbids a delay.
    fn settle_delay(&mut self, exec: usize, prev: i64, special: bool) {
        let Some(&id) = self.tasks.get(&prev) else { return };
        let Some((model, kernel)) = self.info[id.index()].blocked.take() else { return };
        if !self.rules.has(Feature::DelayDequeue) {
            return;
        }
        let model = model && !special;
        let cfs = self.info[id.index()].cfs;
        if cfs.and_then(|cfs| self.queues.get(&cfs)).is_some_and(|queue| queue.grouped) {
            return;
        }
        let text = || format!("cpu {exec} pid {prev}: kernel {kernel}, model {model}");
        self.add(|report| &mut report.delayed, model == kernel, text);
    }

    fn switch(&mut self, exec: usize, prev: i64, prev_blocked: bool, next: i64) {
        self.arrive(exec);
        if prev_blocked
            && let Some(&id) = self.tasks.get(&prev)
            && let Some(cfs) = self.info[id.index()].cfs
            && self.queues.get(&cfs).is_some_and(|queue| queue.rq.curr == Some(id))
        {
            let gone = EntityValues {
                on_rq: self.e[id].sched_delayed,
                delayed: self.e[id].sched_delayed,
                ..EntityValues::default()
            };
            self.blocked(cfs, id, &gone);
        }
        let mut chain = std::mem::take(&mut self.cpus[exec].chain);
        if let Some(&id) = self.tasks.get(&next) {
            match (self.info[id.index()].cfs, chain.iter().any(|&(_, picked)| picked == id)) {
                // A buddy is taken without a pick.
                (Some(cfs), false) => {
                    chain.retain(|&(level, _)| level != cfs);
                    chain.push((cfs, id));
                }
                (_, true) => {}
                (None, false) => chain.clear(),
            }
        } else {
            chain.clear();
        }
        for (&cfs, queue) in &mut self.queues {
            let chosen = chain.iter().find(|&&(level, _)| level == cfs).map(|&(_, id)| id);
            if queue.cpu != Some(exec) && chosen.is_none() || queue.rq.curr == chosen {
                continue;
            }
            if queue.rq.curr.is_some() {
                queue.rq.put_prev(&mut self.e, &self.rules, 0);
            }
            let Some(id) = chosen.filter(|id| self.info[id.index()].cfs == Some(cfs)) else { continue };
            let now = self.e[id].exec_start;
            queue.cpu = Some(exec);
            queue.rq.set_next(&mut self.e, &self.rules, id, now, SwitchIn::Picked);
            self.info[id.index()].touched = true;
        }
        let cpu = &mut self.cpus[exec];
        (cpu.current, cpu.need) = (next, None);
    }

    fn wakeup_new(&mut self, pid: i64, cpu: usize) {
        if self.rules.kernel.is_eevdf() || cpu >= self.cpus.len() {
            return;
        }
        if let Some(&id) = self.tasks.get(&pid) {
            self.cpus[cpu].arriving.push(id);
            self.arrive(cpu);
        }
    }

    /// CFS: of a batch only the one whose check this is has been queued for certain.
    fn arrive_one(&mut self, cpu: usize, pid: i64) {
        let wakee = self.tasks.get(&pid).copied();
        let others: Vec<EntityId> = std::mem::take(&mut self.cpus[cpu].arriving);
        let (own, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|&id| Some(id) == wakee);
        self.cpus[cpu].arriving = own;
        let batch = !self.cpus[cpu].arriving.is_empty();
        if !batch {
            self.cpus[cpu].arriving = others;
            self.arrive(cpu);
            return;
        }
        self.arrive(cpu);
        self.cpus[cpu].arriving = others;
    }

    /// CFS: queues the tasks that have come to `cpu` without a probe of their own.
    fn arrive(&mut self, cpu: usize) {
        if cpu >= self.cpus.len() || self.cpus[cpu].arriving.is_empty() {
            return;
        }
        let Some(cfs) = self.cpus[cpu].root else { return };
        self.queue(cfs);
        // A batch is attached in the reverse of the order in which it was detached.
        let arriving = std::mem::take(&mut self.cpus[cpu].arriving);
        for id in arriving.into_iter().rev() {
            if self.e[id].on_rq {
                continue;
            }
            self.join(id, cfs);
            let Some(queue) = self.queues.get_mut(&cfs) else { return };
            queue.rq.enqueue(&mut self.e, &self.rules, id, 0, EnqueueFlags::default());
            queue.touched = true;
            let info = &mut self.info[id.index()];
            (info.relative, info.touched, info.known) = (false, true, info.known && queue.seen);
        }
    }

    fn place_eevdf(&mut self, cfs: u64, flags: u64, named: &Named, values: &QueueValues) {
        let initial = flags & if self.rules.kernel >= Kernel::V7_2 { 0x8_0000 } else { 0x80 } != 0;
        let migrated = flags & if self.rules.kernel >= Kernel::V7_2 { 0x4_0000 } else { 0x40 } != 0;
        if initial && !named.group {
            if let Some(id) = self.tasks.remove(&named.pid) {
                self.take_from(id);
            }
            self.addresses.remove(&named.se);
        }
        let Some(id) = self.entity(named) else { return };
        self.queue(cfs).grouped |= named.group;
        if self.e[id].on_rq && named.values.on_rq && self.e[id].sched_delayed {
            // A delayed task is woken and placed again.
            if let Some(queue) = self.queues.get_mut(&cfs) {
                queue.rq.requeue_delayed(&mut self.e, &self.rules, id, 0);
                (queue.touched, self.info[id.index()].touched) = (true, true);
            }
            return;
        }
        if self.e[id].on_rq {
            self.leave(id, DequeueFlags { save: true, ..DequeueFlags::default() });
        }
        let load = load_of(named.values.weight, named.group);
        if !self.e[id].on_rq && load != self.e[id].load {
            CfsRq::reweight_unqueued(&mut self.e, &self.rules, id, load);
            self.info[id.index()].touched = true;
        }
        self.observe(id, &named.values, "placed");
        self.align(cfs, values.curr, None);
        self.lacks_current(cfs, values);
        self.observe_queue(cfs, values, "place");
        self.join(id, cfs);
        let enqueue = EnqueueFlags { wakeup: flags & 1 != 0, migrated, initial };
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        // On a queue that is not known its place cannot be told.
        self.info[id.index()].known &= queue.complete && queue.matched;
        queue.rq.enqueue(&mut self.e, &self.rules, id, 0, enqueue);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        let running = queue.cpu.is_some_and(|cpu| self.cpus[cpu].current == named.pid) && !named.group;
        if running && queue.rq.curr.is_none() {
            let now = self.e[id].exec_start;
            queue.rq.set_next(&mut self.e, &self.rules, id, now, SwitchIn::PutBack);
        }
    }

    /// 7.2: the recorded queue lacks just its running task, so that was dequeued.
    fn lacks_current(&mut self, cfs: u64, values: &QueueValues) {
        let Some(queue) = self.queues.get(&cfs) else { return };
        let Some(curr) = queue.rq.curr.filter(|&id| self.e[id].on_rq) else { return };
        let lacks = (
            queue.rq.nr_queued().saturating_sub(1),
            queue.rq.load().weight().saturating_sub(self.e[curr].load.weight()),
        );
        if self.rules.kernel >= Kernel::V7_2 && lacks == (values.nr, values.weight) {
            self.blocked(cfs, curr, &EntityValues::default());
        }
    }

    /// A dequeue without a probe: before a migration, or while an attribute changes.
    fn leave(&mut self, id: EntityId, flags: DequeueFlags) {
        let Some(queue) = self.info[id.index()].cfs.and_then(|cfs| self.queues.get_mut(&cfs)) else { return };
        queue.rq.dequeue(&mut self.e, &self.rules, id, 0, flags);
        (queue.touched, self.info[id.index()].touched) = (true, true);
    }

    fn place_cfs(&mut self, cfs: u64, flags: u64, named: &Named, values: &QueueValues) {
        let initial = flags & 1 != 0;
        if initial && !named.group {
            if let Some(id) = self.tasks.remove(&named.pid) {
                self.take_from(id);
            }
            self.addresses.remove(&named.se);
        }
        let Some(id) = self.entity(named) else { return };
        self.queue(cfs).grouped |= named.group;
        if let Some(cpu) = self.queue(cfs).cpu {
            self.arrive(cpu);
        }
        if self.e[id].on_rq {
            self.take_from(id);
        }
        self.align(cfs, values.curr, None);
        if self.info[id.index()].relative && !initial {
            let zero = self.queue(cfs).rq.zero_vruntime();
            self.e[id].vruntime = self.e[id].vruntime.wrapping_add(zero);
            (self.info[id.index()].relative, self.info[id.index()].touched) = (false, true);
        }
        self.join(id, cfs);
        self.observe(id, &named.values, "placed");
        // The reference point that the placement starts from is recorded with it.
        self.observe_zero(cfs, values, "place");
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if initial {
            queue.rq.fork_cfs(&mut self.e, &self.rules, id, 0);
            self.info[id.index()].relative = true;
        } else {
            let woken = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            queue.rq.enqueue(&mut self.e, &self.rules, id, 0, woken);
        }
        (queue.touched, self.info[id.index()].touched) = (true, true);
        self.observe_queue(cfs, values, "place");
    }

    fn dequeue(&mut self, exec: usize, flags: u64, named: &Named, values: &QueueValues) {
        let Some(id) = self.entity(named) else { return };
        let Some(cfs) = self.info[id.index()].cfs else { return };
        if let Some(cpu) = self.queue(cfs).cpu {
            self.arrive(cpu);
        }
        if !self.e[id].on_rq {
            self.adopt(id, cfs, &named.values);
        }
        self.align(cfs, values.curr, None);
        self.observe(id, &named.values, "dequeued");
        self.observe_queue(cfs, values, "dequeue");
        self.cpus[exec].pending = Some(Pending::Dequeue { id, flags });
    }

    fn complete(&mut self, pending: Pending) {
        let (Pending::Dequeue { id, .. } | Pending::Yield { id, .. }) = pending;
        let Some(cfs) = self.info[id.index()].cfs else { return };
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if !self.e[id].on_rq {
            return;
        }
        (queue.touched, self.info[id.index()].touched) = (true, true);
        let Pending::Dequeue { flags, .. } = pending else {
            queue.rq.yield_task(&mut self.e, &self.rules, 0);
            return;
        };
        let flags = DequeueFlags {
            sleep: flags & 1 != 0,
            special: flags & 0x10 != 0,
            delayed: flags & 0x200 != 0,
            save: flags & 2 != 0,
        };
        let out = queue.rq.dequeue(&mut self.e, &self.rules, id, 0, flags);
        if self.rules.has(Feature::DelayDequeue) && flags.sleep && !flags.special && !flags.delayed {
            self.info[id.index()].delayed = Some(out.delayed);
        }
        if self.rules.kernel.is_eevdf() || !flags.save {
            self.info[id.index()].detached = !flags.sleep;
            return;
        }
        // CFS puts it back without a probe.
        let running = queue.rq.curr == Some(id);
        if running {
            queue.rq.put_prev(&mut self.e, &self.rules, 0);
        }
        queue.rq.enqueue(&mut self.e, &self.rules, id, 0, EnqueueFlags::default());
        if running {
            let now = self.e[id].exec_start;
            queue.rq.set_next(&mut self.e, &self.rules, id, now, SwitchIn::PutBack);
        }
    }

    fn pick_in(&mut self, exec: usize, cfs: u64, curr: &Named, values: &QueueValues, picked_last: bool) {
        let window = self.cpus[exec].window.as_ref().map(|window| (window.cpu, window.cfs, window.short));
        if window.is_none() {
            let cpu = &mut self.cpus[exec];
            if !picked_last && cpu.root.is_none() {
                cpu.root = Some(cfs);
            }
            if cpu.root == Some(cfs) {
                cpu.chain.clear();
            }
            self.queue(cfs).cpu = Some(exec);
            self.arrive(exec);
        }
        let short = window.is_some_and(|(_, of, short)| short && of == Some(cfs));
        if let Some(id) = self.align(cfs, values.curr, Some(curr)) {
            self.blocked(cfs, id, &curr.values);
            self.observe(id, &curr.values, "current");
        }
        self.observe_queue(cfs, values, "pick");
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        let model = if self.rules.kernel.is_eevdf() {
            let protect = if short { Protect::No } else { Protect::Yes };
            queue.rq.pick_eevdf(&self.e, &self.rules, protect)
        } else {
            queue.rq.pick(&self.e, &self.rules)
        };
        let several = values.nr > 1;
        let scored = several && queue.complete && queue.matched;
        let why = if queue.complete { SUMS } else { BEGAN };
        if several && !scored {
            self.aside(why);
        }
        self.cpus[exec].pick = Some((cfs, model, scored));
    }

    fn pick(&mut self, exec: usize, named: &Named) {
        let Some((cfs, model, scored)) = self.cpus[exec].pick.take() else { return };
        let Some(id) = self.entity(named) else { return };
        let window = self.cpus[exec].window.is_some();
        if scored {
            let describe = |id: EntityId, e: &Entities, info: &[Info]| {
                format!("{} v {} d {}", info[id.index()].pid, e[id].vruntime, e[id].deadline)
            };
            let text = match model {
                Some(ours) if ours != id => format!(
                    "kernel {}, model {}",
                    describe(id, &self.e, &self.info),
                    describe(ours, &self.e, &self.info)
                ),
                _ => format!("kernel {}, model {model:?}", describe(id, &self.e, &self.info)),
            };
            if window {
                self.add(|report| &mut report.pick_wakeup, model == Some(id), || text);
            } else {
                self.add(|report| &mut report.pick_schedule, model == Some(id), || text);
            }
        }
        self.queue(cfs).grouped |= named.group;
        if self.e[id].on_rq && self.info[id.index()].cfs == Some(cfs) {
            self.observe(id, &named.values, "picked");
        } else if named.values.on_rq {
            self.adopt(id, cfs, &named.values);
        }
        let cpu = &mut self.cpus[exec];
        cpu.picked_last = true;
        if named.values.delayed {
            if self.rules.kernel >= Kernel::V7_2 && self.e[id].on_rq {
                self.leave(id, DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() });
            }
            return;
        }
        if !window {
            cpu.chain.retain(|&(level, _)| level != cfs);
            cpu.chain.push((cfs, id));
            if !named.group {
                cpu.need = None;
            }
        }
    }

    fn check_in(&mut self, exec: usize, check: &Check, own: Option<Resched>) {
        let target = usize::from(check.cpu);
        if target >= self.cpus.len() {
            return;
        }
        self.arrive_one(target, check.wakee.pid);
        let need = if target == exec { own } else { self.cpus[target].need };
        let text = [i64::from(check.cpu), check.wakee.pid, check.curr.pid];
        let root = self.cpus[target].root;
        let mut window = Window { cpu: target, cfs: root, answer: None, short: false, seen: None, text };
        match root {
            _ if check.curr.pid == 0 => self.aside(IDLE),
            // SCHED_NORMAL, SCHED_BATCH, SCHED_IDLE, SCHED_EXT are 0, 3, 5, 7.
            _ if !matches!(check.wakee_policy, 0 | 3 | 5) => self.aside(CLASS),
            None => self.aside(BEGAN),
            Some(cfs) => self.check(cfs, check, need, &mut window),
        }
        self.cpus[exec].window = Some(window);
    }

    fn check(&mut self, cfs: u64, check: &Check, need: Option<Resched>, window: &mut Window) {
        let wakee = self.tasks.get(&check.wakee.pid).copied();
        let wakee_elsewhere = wakee.is_some_and(|id| self.info[id.index()].cfs.is_some_and(|of| of != cfs));
        let curr_known = self.tasks.get(&check.curr.pid).copied();
        let curr_elsewhere =
            curr_known.is_some_and(|id| self.info[id.index()].cfs.is_some_and(|of| of != cfs));
        let Some(wakee) = self.entity(&check.wakee).filter(|_| !wakee_elsewhere && !curr_elsewhere) else {
            self.observe_queue(cfs, &check.queue, "check");
            self.aside(GROUPS);
            return;
        };
        let Some(curr) = self.align(cfs, check.queue.curr, Some(&check.curr)) else {
            self.aside(BEGAN);
            return;
        };
        self.blocked(cfs, curr, &check.curr.values);
        if self.e[wakee].sched_delayed && !check.wakee.values.delayed && self.e[wakee].on_rq {
            if let Some(queue) = self.queues.get_mut(&cfs) {
                queue.rq.requeue_delayed(&mut self.e, &self.rules, wakee, 0);
                (queue.touched, self.info[wakee.index()].touched) = (true, true);
            }
        } else if !self.e[wakee].on_rq && check.wakee.values.on_rq {
            self.adopt(wakee, cfs, &check.wakee.values);
        }
        self.observe(wakee, &check.wakee.values, "wakee");
        if curr != wakee {
            self.observe(curr, &check.curr.values, "current");
        }
        self.observe_queue(cfs, &check.queue, "check");
        let policy = |number: u64| match number {
            3 => TaskPolicy::Batch,
            5 => TaskPolicy::Idle,
            _ => TaskPolicy::Normal,
        };
        let Some(queue) = self.queues.get(&cfs) else { return };
        if !queue.complete || !queue.matched {
            self.aside(if queue.complete { SUMS } else { BEGAN });
            return;
        }
        let query = PreemptQuery {
            wakee,
            policy: policy(check.wakee_policy),
            curr_policy: policy(check.curr_policy),
            fork: check.flags & 4 != 0,
            sync: check.flags & 0x10 != 0,
            rq_selected: check.flags & 0x80 != 0,
            delayed: check.wakee.values.delayed,
            need_resched: need,
            now: check.clock,
        };
        window.short = self.rules.has(Feature::PreemptShort) && self.e[wakee].slice < self.e[curr].slice;
        let (mut rq, mut e) = (queue.rq.clone(), self.e.clone());
        let answer = wakeup_preempt(&mut rq, &mut e, &self.rules, &query);
        window.answer = Some((answer, rq, curr, e[curr]));
    }

    fn check_out(&mut self, exec: usize) {
        let Some(window) = self.cpus[exec].window.take() else { return };
        let Some((answer, rq, curr, after)) = window.answer else { return };
        let [cpu, wakee, running] = window.text;
        let text = || {
            let reason = answer.reason;
            let (kernel, model) = (window.seen, answer.resched());
            format!(
                "cpu {cpu}: {wakee} woken, {running} running: kernel {kernel:?}, model {model:?} by {reason:?}"
            )
        };
        let agrees = window.seen == answer.resched();
        if answer.reason == PreemptReason::NeedsResched {
            self.add(|report| &mut report.preempt_already, agrees, text);
        } else {
            self.add(|report| &mut report.preempt, agrees, text);
        }
        // What the check leaves behind: marks and protection.
        let Some(queue) = window.cfs.and_then(|cfs| self.queues.get_mut(&cfs)) else { return };
        (queue.rq.next, queue.rq.last, queue.rq.skip) = (rq.next, rq.last, rq.skip);
        if queue.rq.curr == Some(curr) && self.e[curr].on_rq {
            self.e[curr].vprot = after.vprot;
            self.e[curr].vlag = after.vlag;
            self.info[curr.index()].touched = true;
        }
    }

    fn tick(&mut self, exec: usize, cpu: usize, named: &Named, clock: u64, values: &QueueValues) {
        if cpu >= self.cpus.len() {
            return;
        }
        self.arrive(cpu);
        let Some(cfs) = self.cpus[cpu].root else {
            self.aside(BEGAN);
            return;
        };
        let id = self.tasks.get(&named.pid).copied();
        let Some(id) = id.filter(|id| self.info[id.index()].cfs == Some(cfs)) else {
            self.observe_queue(cfs, values, "tick");
            self.aside(GROUPS);
            return;
        };
        self.align(cfs, values.curr, Some(named));
        self.observe(id, &named.values, "tick");
        self.observe_queue(cfs, values, "tick");
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if queue.rq.curr != Some(id) {
            return;
        }
        let scored = queue.complete && queue.matched && !queue.grouped;
        let why = if queue.complete { SUMS } else { BEGAN };
        let runs = clock.wrapping_sub(self.e[id].exec_start).cast_signed() > 0;
        let verdict = entity_tick(&mut queue.rq, &mut self.e, &self.rules, clock, values.h_nr);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        self.cpus[exec].accounted = runs.then_some(named.pid);
        if scored {
            let resched = verdict.resched;
            self.cpus[exec].expected =
                Some(Expected { cpu, resched, seen: None, tick: true, pid: named.pid });
        } else {
            self.aside(why);
        }
    }

    fn yields(&mut self, exec: usize, cpu: usize, curr: &Named, values: &QueueValues) {
        if cpu >= self.cpus.len() {
            return;
        }
        let Some(cfs) = self.cpus[cpu].root else { return };
        let Some(&id) = self.tasks.get(&curr.pid) else { return };
        if self.info[id.index()].cfs != Some(cfs) {
            return;
        }
        self.observe(id, &curr.values, "yield");
        self.observe_queue(cfs, values, "yield");
        self.cpus[exec].pending = Some(Pending::Yield { id, accounted: false });
    }

    fn migrate(&mut self, to: usize, from: usize, named: &Named) {
        let Some(id) = self.entity(named) else { return };
        self.arrive(from);
        let cfs = self.info[id.index()].cfs;
        if self.rules.kernel.is_eevdf() {
            if self.e[id].on_rq {
                self.leave(id, DequeueFlags::default());
            }
            self.observe(id, &named.values, "migrated");
            return;
        }
        if named.values.on_rq || self.e[id].on_rq || to >= self.cpus.len() {
            return;
        }
        let waking = !std::mem::take(&mut self.info[id.index()].detached) && !self.info[id.index()].relative;
        self.observe(id, &named.values, "migrated");
        if waking {
            if let Some(queue) = cfs.and_then(|cfs| self.queues.get(&cfs)).filter(|queue| queue.seen) {
                let zero = queue.rq.zero_vruntime();
                self.e[id].vruntime = self.e[id].vruntime.wrapping_sub(zero);
                self.info[id.index()].touched = true;
            } else {
                self.info[id.index()].known = false;
            }
            self.info[id.index()].relative = true;
        } else {
            self.cpus[to].arriving.push(id);
        }
        self.info[id.index()].cfs = None;
    }
}
