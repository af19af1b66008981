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
use std::collections::{BTreeMap, VecDeque};
use ttwu_fair::{
    CfsRq, DequeueFlags, EnqueueFlags, Entities, EntityId, Feature, Kernel, LoadWeight, PreemptQuery,
    PreemptReason, Preemption, Protect, QueueRules, Resched, SchedEntity, SwitchIn, TaskPolicy, entity_tick,
    wakeup_preempt,
};
use ttwu_trace::RawRecord;

mod decide;
mod moves;
mod observe;

const GROUPS: &str = "task groups: the check or tick is between levels";
const BEGAN: &str = "queue not known yet: entities queued before the recording began";
const SUMS: &str = "rebuilt queue differs from the recorded sums";
const GROUP_VALUES: &str =
    "task groups: values of or beside a group entity, whose weight changes have no probe";
const GROUP_SUMS: &str = "group entities: their weight changes have no probe";
const ORIGIN: &str =
    "the old queue's min_vruntime, read without its lock: another one that it had explains the value";
const SERVER: &str = "one entity is queued, so the request is not the fair class's: its deadline server's budget is not recorded";
const LOST: &str =
    "number or weight of the queued entities differ from the rebuilt ones: an event of that queue is missing";
const REWEIGHTED: &str = "the weight changed without a probe";
const BLIND: &str = "a timer interrupt during another probe: the kernel leaves out all probes in it";
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
    /// Why the values that the model gave it last do not count.
    untold: Option<&'static str>,
    /// The model changed it since it was last seen.
    touched: bool,
    /// CFS: its virtual time is relative to a queue's.
    relative: bool,
    /// CFS: the queue that it left waking, and the reference point that the model took from its virtual time.
    origin: Option<(u64, u64)>,
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
    /// At the last sight the number or weight of its entities was another: an event is missing.
    lost: bool,
    /// CFS: the last reference points.
    zeros: VecDeque<u64>,
}

/// An operation whose end has not been seen.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Dequeue { id: EntityId, flags: u64, accounted: bool },
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
    /// Entities queued.
    nr: u32,
    /// Why it does not count.
    aside: Option<&'static str>,
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

/// A pick whose answer has not been seen.
#[derive(Clone, Copy, Debug)]
struct OpenPick {
    cfs: u64,
    /// The model's answer.
    model: Option<EntityId>,
    /// Was there a choice?
    several: bool,
    /// Was an entity marked as buddy?
    buddy: bool,
    /// Why it does not count.
    aside: Option<&'static str>,
}

/// An open wake-up preemption check.
#[derive(Clone, Debug)]
struct Window {
    cpu: usize,
    cfs: Option<u64>,
    /// The model's answer, and the queue and running entity after it; `None`: it was not asked.
    answer: Option<(Preemption, CfsRq, EntityId, SchedEntity)>,
    /// Why the answer does not count.
    aside: Option<&'static str>,
    /// Between groups: the running task is to be rescheduled already, so the check ends before it looks at them.
    already: bool,
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
    pick: Option<OpenPick>,
    picked_last: bool,
    /// What the present schedule() picked on each level.
    chain: Vec<(u64, EntityId)>,
    /// CFS: tasks on their way to this CPU's root queue.
    arriving: Vec<EntityId>,
    /// In a timer interrupt that has shown no probe yet. Its tick has one, which is left out where the interrupt came while
    /// a probe was at work; then the requests of that tick are left out too.
    blind: bool,
    /// The running task's accounting that the model has done already.
    accounted: Option<i64>,
    /// The last accounting, with the state before it: should the task prove to have been dequeued by then.
    undo: Option<Undo>,
}

/// What becomes of the model's values when a record shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// They are compared and set to the recorded ones: one wrong step is one miss.
    Set,
    /// They are compared and kept: only decisions, clocks and attributes are taken from the recording.
    Kept,
}

/// See the module.
pub(crate) struct Replay {
    values: Values,
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
    /// Misses of the record at hand, whose causes are not told yet.
    missed: Vec<(ScoreOf, Miss)>,
    /// The record at hand shows, or its queue showed last, that an event is missing.
    lost_here: bool,
}

type ScoreOf = fn(&mut QueueReport) -> &mut Score;

fn later(a: Option<Resched>, b: Resched) -> Option<Resched> {
    a.max(Some(b))
}

fn load_of(weight: u64, group: bool) -> LoadWeight {
    let idle = LoadWeight::of_idle_policy();
    let mut tasks = (-20..=19).map(LoadWeight::of_nice).chain([idle]);
    tasks.find(|load| !group && load.weight() == weight).unwrap_or_else(|| LoadWeight::of_sum(weight))
}

impl Replay {
    pub(crate) fn new(recording: &Recording, values: Values) -> Self {
        let cpus = recording.machine().cpu_bound();
        let rules = QueueRules::new(recording.policy(), recording.topology().online().len());
        Self {
            values,
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
            missed: Vec::new(),
            lost_here: false,
        }
    }

    pub(crate) fn finish(self) -> QueueReport {
        self.report
    }

    /// Counts what is not put to the model; `agrees` where it answered all the same.
    fn aside_answered(&mut self, why: &'static str, agrees: Option<bool>) {
        self.report.set_aside.entry(why).or_default().add(agrees);
    }

    fn aside(&mut self, why: &'static str) {
        self.aside_answered(why, None);
    }

    /// Counts a decision; the cause of a miss is told when the record has been taken as a whole.
    fn add(&mut self, score: ScoreOf, agrees: bool, text: impl FnOnce() -> String) {
        self.add_told(score, agrees, None, text);
    }

    /// The same where a test tells that a miss hangs on what the recording lacks, or on a value read without a lock.
    fn add_told(
        &mut self,
        score: ScoreOf,
        agrees: bool,
        told: Option<(Cause, &'static str)>,
        text: impl FnOnce() -> String,
    ) {
        if agrees {
            score(&mut self.report)
                .add(true, || unreachable!("a miss is asked for only where the model disagrees"));
            return;
        }
        let (line, at) = (self.line, self.at);
        let miss = Miss {
            line,
            ts: format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000),
            cause: told.map_or(Cause::Model, |(cause, _)| cause),
            test: told.map_or("one step from recorded values gives other ones", |(_, test)| test),
            rule: String::new(),
            text: text(),
        };
        self.missed.push((score, miss));
    }

    /// Tells the causes of the misses of the record that was taken.
    fn tell_causes(&mut self) {
        for (score, mut miss) in std::mem::take(&mut self.missed) {
            if self.lost_here {
                (miss.cause, miss.test) = (Cause::State, LOST);
            }
            score(&mut self.report).add(false, || miss);
        }
    }

    /// Takes the next record.
    pub(crate) fn step(&mut self, record: &RawRecord<'_>) {
        self.lost_here = false;
        self.take(record);
        self.tell_causes();
    }

    fn take(&mut self, record: &RawRecord<'_>) {
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
        self.cpus[exec].blind = match seen {
            Probe::TimerIn => true,
            // These are tracepoints, which come all the same.
            Probe::Runtime { .. } | Probe::Switch { .. } | Probe::WakeupNew { .. } | Probe::Wakeup { .. } => {
                self.cpus[exec].blind
            }
            Probe::TimerOut
            | Probe::Place { .. }
            | Probe::Dequeue { .. }
            | Probe::PickIn { .. }
            | Probe::Pick { .. }
            | Probe::CheckIn(_)
            | Probe::CheckOut
            | Probe::Tick { .. }
            | Probe::Yield { .. }
            | Probe::Resched { .. }
            | Probe::ReschedLazy { .. }
            | Probe::Migrate { .. }
            | Probe::Wake => false,
        };
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
            Probe::Wakeup { pid } => self.woken(exec, pid),
            Probe::Resched { .. }
            | Probe::ReschedLazy { .. }
            | Probe::Wake
            | Probe::TimerIn
            | Probe::TimerOut => {}
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
                // The slice timer of 7.2 runs the tick and then requests in full whatever the tick found.
                if !(expected.tick && request == Resched::Full && self.rules.kernel >= Kernel::V7_2) {
                    expected.seen = later(expected.seen, request);
                }
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
                Pending::Dequeue { id, flags, accounted: false } => {
                    self.cpus[exec].pending = Some(Pending::Dequeue { id, flags, accounted: true });
                    return false;
                }
                Pending::Yield { id, accounted: false } => {
                    self.cpus[exec].pending = Some(Pending::Yield { id, accounted: true });
                    return false;
                }
                // That is a later one's: of the next schedule, or after the task was put back.
                Pending::Dequeue { accounted: true, .. } | Pending::Yield { accounted: true, .. } => {}
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
            | Probe::Wakeup { .. }
            | Probe::TimerIn
            | Probe::TimerOut
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
        let seen = expected.seen;
        let text = || format!("pid {}: kernel {seen:?}, model {:?}", expected.pid, expected.resched);
        let agrees = seen == expected.resched;
        let server = self.rules.kernel >= Kernel::V6_12 && expected.nr == 1 && expected.resched.is_none();
        let told = server.then_some((Cause::State, SERVER));
        let cfs = self.cpus[expected.cpu].root;
        self.lost_here |= cfs.and_then(|cfs| self.queues.get(&cfs)).is_some_and(|queue| queue.lost);
        if let Some(why) = expected.aside {
            self.aside_answered(why, Some(agrees));
        } else if expected.tick {
            self.add_told(|report| &mut report.tick, agrees, told, text);
        } else {
            self.add_told(|report| &mut report.slice_end, agrees, told, text);
        }
    }

    /// Keeps the reference points that a queue had of late: a waking task that leaves it reads one without its lock.
    fn remember_zero(&mut self, cfs: u64) {
        const KEPT: usize = 32;
        let Some(queue) = self.queues.get_mut(&cfs).filter(|_| !self.rules.kernel.is_eevdf()) else { return };
        let zero = queue.rq.zero_vruntime();
        if queue.zeros.back() != Some(&zero) {
            queue.zeros.push_back(zero);
            if queue.zeros.len() > KEPT {
                queue.zeros.pop_front();
            }
        }
    }

    /// CFS sums do not show virtual times: does the queue hold an entity whose own have not been seen?
    fn unseen_inside(&self, cfs: u64) -> bool {
        let unseen = |id: EntityId| {
            let info = &self.info[id.index()];
            info.cfs == Some(cfs) && !info.known && self.e[id].on_rq
        };
        let all = self.tasks.values().chain(self.addresses.values());
        !self.rules.kernel.is_eevdf() && all.copied().any(unseen)
    }

    /// A task leaves a queue of which not all is known: its lag cannot be told.
    fn untold_lag(&mut self, id: EntityId, cfs: u64) {
        let complete = self.queues.get(&cfs).is_some_and(|queue| queue.complete);
        let info = &mut self.info[id.index()];
        if self.rules.kernel.is_eevdf() && info.known && !complete {
            (info.untold, info.known) = (Some(BEGAN), false);
        }
    }
}
