//! From pids to tasks: which incarnation of a pid an event means.
//!
//! Only possible in time order, so it runs once over the merged stream, behind every reader. A pid starts a new task
//! when a fork names it as the child, or when `sched_wakeup_new` names a pid that has lived before: then the fork was lost
//! or not recorded. Events after `sched_process_exit` (the last switch-out) still belong to the task that exited.

use crate::{
    Event, EventKind, LossWindow, Pid, RawEvent, StrId, TaskId, TaskInfo, TaskTable, Time, TraceHealth,
};
use std::collections::BTreeMap;

/// Linux's largest pid on 64-bit; larger numbers in a file are damage or a foreign numbering and take a slower path.
const PID_MAX_LIMIT: usize = 4_194_304;

/// The task that a pid stands for just now.
#[derive(Clone, Copy, Debug)]
struct Slot {
    task: TaskId,
    name: Option<StrId>,
    life: Life,
}

/// How far the incarnation has come, as far as events show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Forked, and nothing since: a `sched_wakeup_new` belongs to it.
    Fresh,
    /// Seen doing something.
    Alive,
}

/// Finds what is missing in a time-ordered stream: switches that do not join, and the windows of [`EventKind::Lost`].
///
/// Generic over how tasks are named: the resolver checks pids, a reader of resolved events checks tasks.
#[derive(Debug)]
pub struct ContinuityCheck<T> {
    cpus: Vec<CpuSeen<T>>,
    first_event: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct CpuSeen<T> {
    current: Option<T>,
    last_event: Option<Time>,
}

impl<T> Default for ContinuityCheck<T> {
    fn default() -> Self {
        Self { cpus: Vec::new(), first_event: None }
    }
}

impl<T: Copy + PartialEq> ContinuityCheck<T> {
    /// Looks at the next event and says in `health` what is missing before it.
    pub fn check(&mut self, event: &Event<T>, health: &mut TraceHealth) {
        self.first_event.get_or_insert(event.at);
        let index = event.cpu.index();
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, CpuSeen { current: None, last_event: None });
        }
        let seen = &mut self.cpus[index];
        if let EventKind::Switch { prev, next, .. } = event.kind {
            if seen.current.is_some_and(|current| current != prev) {
                health.switch_mismatches += 1;
            }
            seen.current = Some(next);
        }
        if let EventKind::Lost { count } = event.kind {
            let from = seen.last_event.or(self.first_event).unwrap_or(event.at);
            let count = count.map(|count| u64::from(count.get()));
            health.add_loss(LossWindow { cpu: Some(event.cpu), from, to: event.at, count });
            // What runs after a gap is not a mismatch but simply unknown.
            seen.current = None;
        }
        seen.last_event = Some(event.at);
    }
}

/// Gives each pid in a time-ordered stream its task, and checks what can be checked on the way.
#[derive(Debug, Default)]
pub struct Resolver {
    tasks: TaskTable,
    by_pid: Vec<Option<Slot>>,
    by_odd_pid: BTreeMap<Pid, Option<Slot>>,
    continuity: ContinuityCheck<Pid>,
}

impl Resolver {
    /// Knows no task but the idle one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tasks met so far.
    #[must_use]
    pub fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    /// The tasks, at the end.
    #[must_use]
    pub fn into_tasks(self) -> TaskTable {
        self.tasks
    }

    /// Adds or updates a task's row as another resolver has left it (own format's reader): names are added to those it
    /// has, everything else replaces what was known.
    pub fn put_row(&mut self, task: TaskId, row: TaskInfo) {
        self.tasks.put_row(task, row);
    }

    /// Says which process a thread belongs to (from a side record or a text column). Applies to the pid's present task.
    pub fn set_tgid(&mut self, pid: Pid, tgid: Pid) {
        if pid != Pid::IDLE && pid != Pid::UNKNOWN {
            let task = self.slot_noted(pid).task;
            self.tasks.get_mut(task).tgid = Some(tgid);
        }
    }

    /// Says a task's name from a side record (perf's COMM, trace-cmd's cmdlines); an event's own name overrules it.
    pub fn set_name(&mut self, pid: Pid, at: Time, name: StrId) {
        if pid != Pid::IDLE && pid != Pid::UNKNOWN {
            let slot = *self.slot_noted(pid);
            if slot.name.is_none() {
                self.rename(pid, slot.task, at, name);
            }
        }
    }

    /// The event with tasks for pids. Events must come in time order.
    ///
    /// Counts switch mismatches and records loss windows in `health`.
    pub fn resolve(&mut self, raw: &RawEvent, health: &mut TraceHealth) -> Event {
        let event = &raw.event;
        self.continuity.check(event, health);
        let tasks = event.kind.tasks();
        if let Some(resolved) = self.resolve_known(raw, tasks) {
            return resolved;
        }
        if let EventKind::Fork { child, .. } = event.kind {
            self.begin(child, Some(event.at));
        }
        if let EventKind::WakeupNew { wakee, .. } = event.kind
            && self.has_lived(wakee)
        {
            self.begin(wakee, None);
        }
        for (pid, name) in tasks.into_iter().zip(raw.names) {
            if let (Some(pid), Some(name)) = (pid, name) {
                self.observe_name(pid, event.at, name);
            }
        }
        let resolved = event.map_tasks(|pid| self.task_of(pid));
        match resolved.kind {
            EventKind::Fork { parent, child } => {
                let child = self.tasks.get_mut(child);
                child.parent = Some(parent);
            }
            EventKind::Exit { task } if !task.is_idle() => {
                self.tasks.get_mut(task).exited_at = Some(event.at);
            }
            _ => {}
        }
        if let (EventKind::WakeupNew { .. } | EventKind::Switch { .. }, pids) = (event.kind, tasks) {
            for pid in pids.into_iter().flatten().filter(|&pid| pid != Pid::IDLE) {
                self.slot(pid).life = Life::Alive;
            }
        }
        resolved
    }

    /// The common case, which is nearly all of a recording: every task is known, alive and named as before, and the event
    /// begins or ends none, so that each pid is looked up once and nothing is written down.
    #[inline]
    fn resolve_known(&self, raw: &RawEvent, tasks: [Option<Pid>; 2]) -> Option<Event> {
        let event = &raw.event;
        if matches!(event.kind, EventKind::Fork { .. } | EventKind::WakeupNew { .. } | EventKind::Exit { .. })
        {
            return None;
        }
        let by = self.known(event.by, None)?;
        // In the order in which `map_tasks` asks: the emitting task first.
        let mut found = [by; 3];
        for (index, pid) in tasks.into_iter().enumerate() {
            if let Some(pid) = pid {
                found[index + 1] = self.known(pid, raw.names[index])?;
            }
        }
        let mut next = 0;
        Some(event.map_tasks(|_| {
            next += 1;
            found[next - 1]
        }))
    }

    #[inline]
    fn known(&self, pid: Pid, name: Option<StrId>) -> Option<TaskId> {
        if pid == Pid::IDLE {
            return Some(TaskId::IDLE);
        }
        let slot = self.by_pid.get(usize::try_from(pid.number()).ok()?)?.as_ref()?;
        let same_name = name.is_none() || slot.name == name;
        (slot.life == Life::Alive && same_name).then_some(slot.task)
    }

    fn has_lived(&mut self, pid: Pid) -> bool {
        self.entry(pid).is_some_and(|slot| slot.life == Life::Alive)
    }

    /// Starts a new incarnation of `pid`.
    fn begin(&mut self, pid: Pid, forked_at: Option<Time>) {
        if pid == Pid::IDLE || pid == Pid::UNKNOWN {
            return;
        }
        let task = self.tasks.push(TaskInfo {
            pid,
            tgid: None,
            parent: None,
            names: Vec::new(),
            forked_at,
            exited_at: None,
        });
        *self.entry(pid) = Some(Slot { task, name: None, life: Life::Fresh });
    }

    /// Where the pid's slot is kept, empty or not.
    fn entry(&mut self, pid: Pid) -> &mut Option<Slot> {
        match usize::try_from(pid.number()) {
            Ok(index) if index <= PID_MAX_LIMIT => {
                if index >= self.by_pid.len() {
                    self.by_pid.resize(index + 1, None);
                }
                &mut self.by_pid[index]
            }
            Ok(_) | Err(_) => self.by_odd_pid.entry(pid).or_default(),
        }
    }

    /// The pid's slot; a pid never seen gets a task, which must have lived before this event.
    fn slot(&mut self, pid: Pid) -> &mut Slot {
        self.slot_or(pid, Life::Alive)
    }

    /// The pid's slot for a side record; a pid never seen gets a task of which no event has told yet, so that a
    /// `sched_wakeup_new` to come is its beginning and not a second life.
    fn slot_noted(&mut self, pid: Pid) -> &mut Slot {
        self.slot_or(pid, Life::Fresh)
    }

    fn slot_or(&mut self, pid: Pid, life: Life) -> &mut Slot {
        if self.entry(pid).is_none() {
            let row = TaskInfo {
                pid,
                tgid: None,
                parent: None,
                names: Vec::new(),
                forked_at: None,
                exited_at: None,
            };
            let task = self.tasks.push(row);
            *self.entry(pid) = Some(Slot { task, name: None, life });
        }
        self.entry(pid).as_mut().expect("filled above")
    }

    fn task_of(&mut self, pid: Pid) -> TaskId {
        if pid == Pid::IDLE {
            return TaskId::IDLE;
        }
        self.slot(pid).task
    }

    fn observe_name(&mut self, pid: Pid, at: Time, name: StrId) {
        if pid == Pid::IDLE {
            return;
        }
        let slot = *self.slot(pid);
        if slot.name != Some(name) {
            self.rename(pid, slot.task, at, name);
        }
    }

    fn rename(&mut self, pid: Pid, task: TaskId, at: Time, name: StrId) {
        self.slot(pid).name = Some(name);
        self.tasks.get_mut(task).names.push((at, name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuId, EventFlags, Prio, StateLetter, TaskState, TraceBuilder};

    fn event(at: u64, cpu: u16, kind: EventKind<Pid>) -> RawEvent {
        let event = Event {
            at: Time::from_ns(at),
            by: Pid::IDLE,
            cpu: CpuId::new(cpu),
            flags: EventFlags::UNKNOWN,
            kind,
        };
        RawEvent { event, names: [None; 2] }
    }

    fn switch(prev: i32, next: i32, letter: StateLetter) -> EventKind<Pid> {
        EventKind::Switch {
            prev: Pid::new(prev),
            next: Pid::new(next),
            prev_state: TaskState::new(letter, Some(false)),
            prev_prio: Prio::UNKNOWN,
            next_prio: Prio::UNKNOWN,
        }
    }

    fn new(pid: i32) -> EventKind<Pid> {
        EventKind::WakeupNew { wakee: Pid::new(pid), cpu: CpuId::new(0), prio: Prio::UNKNOWN }
    }

    #[test]
    fn a_forked_pid_is_one_task_until_the_next_fork() {
        let mut builder = TraceBuilder::new();
        let fork = EventKind::Fork { parent: Pid::new(1), child: Pid::new(7) };
        for (at, kind) in
            [fork, new(7), switch(0, 7, StateLetter::Running), switch(7, 0, StateLetter::Dead), fork, new(7)]
                .into_iter()
                .enumerate()
        {
            builder.push(&event(at as u64, 0, kind));
        }
        let trace = builder.finish();
        let sevens: Vec<_> = trace.tasks().iter().filter(|(_, task)| task.pid == Pid::new(7)).collect();
        assert_eq!(sevens.len(), 2);
        assert_eq!(sevens[1].1.forked_at, Some(Time::from_ns(4)));
    }

    #[test]
    fn without_forks_a_second_wakeup_new_is_a_new_task() {
        let mut builder = TraceBuilder::new();
        for (at, kind) in [new(7), switch(0, 7, StateLetter::Running), new(7)].into_iter().enumerate() {
            builder.push(&event(at as u64, 0, kind));
        }
        assert_eq!(builder.finish().tasks().len(), 3);
    }

    #[test]
    fn a_task_that_was_only_noted_begins_with_its_wakeup_new() {
        let mut resolver = Resolver::new();
        let mut health = TraceHealth::default();
        resolver.set_tgid(Pid::new(7), Pid::new(5));
        for (at, kind) in [new(7), switch(0, 7, StateLetter::Running)].into_iter().enumerate() {
            resolver.resolve(&event(at as u64, 0, kind), &mut health);
        }
        assert_eq!(resolver.tasks().len(), 2);
        assert_eq!(resolver.tasks().get(TaskId::new(1)).tgid, Some(Pid::new(5)));
    }

    #[test]
    fn switches_that_do_not_join_are_counted_but_not_across_a_gap() {
        let mut builder = TraceBuilder::new();
        builder.push(&event(1, 0, switch(0, 5, StateLetter::Running)));
        builder.push(&event(2, 0, switch(6, 0, StateLetter::Sleeping)));
        builder.push(&event(3, 0, EventKind::Lost { count: std::num::NonZeroU32::new(4) }));
        builder.push(&event(4, 0, switch(9, 0, StateLetter::Sleeping)));
        let trace = builder.finish();
        assert_eq!(trace.health().switch_mismatches, 1);
        assert_eq!(trace.health().lost_events, 4);
        let window = trace.health().loss_windows[0];
        assert_eq!((window.from, window.to), (Time::from_ns(2), Time::from_ns(3)));
    }

    #[test]
    fn pids_outside_linux_limits_do_not_grow_the_table() {
        let mut resolver = Resolver::new();
        let mut health = TraceHealth::default();
        resolver.resolve(&event(1, 0, switch(i32::MAX, -5, StateLetter::Running)), &mut health);
        assert_eq!(resolver.tasks().len(), 3);
        assert!(resolver.by_pid.is_empty());
    }
}
