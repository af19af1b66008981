//! perf's idea of the threads of a machine: by pid, named by COMM records, replaced by FORK records.
//!
//! Not [`TaskTable`]: perf takes no notice of the names and forks that *events* show. Where a trace has no notes (it is no
//! perf.data), events have to stand in for them.

use std::collections::BTreeMap;
use ttwu_model::{NoteKind, Pid, StrId, Strings, TaskId, TaskNote, TaskTable};

/// A thread of perf's, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadId(u32);

impl ThreadId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What perf knows of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    /// perf's `pid_`, the process: −1 where never told, 0 where perf was told 0 and keeps that for good.
    pub(crate) pid: i32,
    /// The thread that forked it, −1 where not noted.
    pub(crate) parent: i32,
    name: Option<StrId>,
    /// The task of the last event that was about this thread, for its name in traces without notes.
    task: Option<TaskId>,
    /// An EXIT record was seen; a thread that a FORK record replaced is not dead to perf.
    pub(crate) dead: bool,
    /// How many threads were removed before this one was; for the order of lists.
    pub(crate) removed: Option<u32>,
}

/// All threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    threads: Vec<Thread>,
    by_tid: Vec<Option<ThreadId>>,
    by_odd_tid: BTreeMap<i32, ThreadId>,
    noted: bool,
    removals: u32,
    /// Additions and removals in order.
    history: Vec<Step>,
}

/// A thread came or went.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Added(ThreadId),
    Removed(ThreadId),
}

/// Linux's largest pid; a file may hold larger numbers, which must not size a table.
const PID_MAX_LIMIT: usize = 4_194_304;

impl Threads {
    pub(crate) fn get(&self, thread: ThreadId) -> &Thread {
        &self.threads[thread.index()]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ThreadId, &Thread)> {
        self.threads.iter().enumerate().map(|(index, thread)| (id(index), thread))
    }

    /// The thread of a task that an event names.
    pub(crate) fn of_task(&mut self, task: TaskId, tasks: &TaskTable, pid: i32) -> ThreadId {
        let tid = if task.is_idle() { 0 } else { tasks.get(task).pid.number() };
        let thread = self.find_or_add(pid, tid);
        self.threads[thread.index()].task = Some(task);
        thread
    }

    /// The thread with this tid; `pid` is what the caller knows of its process, or −1.
    pub(crate) fn find_or_add(&mut self, pid: i32, tid: i32) -> ThreadId {
        if let Some(thread) = self.find(tid) {
            let known = &mut self.threads[thread.index()].pid;
            if *known == -1 && pid != -1 {
                *known = pid;
                self.add_leader(pid, tid);
            }
            return thread;
        }
        let thread = self.add(pid, tid);
        self.add_leader(pid, tid);
        thread
    }

    /// A thread told of its process makes perf know the process' first thread too.
    fn add_leader(&mut self, pid: i32, tid: i32) {
        if pid != tid && pid != -1 && self.find(pid).is_none() {
            self.add(pid, pid);
        }
    }

    pub(crate) fn find(&self, tid: i32) -> Option<ThreadId> {
        match usize::try_from(tid) {
            Ok(index) if index <= PID_MAX_LIMIT => self.by_tid.get(index).copied().flatten(),
            Ok(_) | Err(_) => self.by_odd_tid.get(&tid).copied(),
        }
    }

    fn add(&mut self, pid: i32, tid: i32) -> ThreadId {
        let thread = id(self.threads.len());
        self.history.push(Step::Added(thread));
        self.threads.push(Thread {
            tid,
            pid,
            parent: -1,
            name: None,
            task: None,
            dead: false,
            removed: None,
        });
        match usize::try_from(tid) {
            Ok(index) if index <= PID_MAX_LIMIT => {
                if index >= self.by_tid.len() {
                    self.by_tid.resize(index + 1, None);
                }
                self.by_tid[index] = Some(thread);
            }
            Ok(_) | Err(_) => {
                self.by_odd_tid.insert(tid, thread);
            }
        }
        thread
    }

    /// Takes the thread off the machine; another one may follow under its tid.
    pub(crate) fn remove(&mut self, thread: ThreadId) {
        let tid = self.threads[thread.index()].tid;
        match usize::try_from(tid) {
            Ok(index) if index <= PID_MAX_LIMIT => self.by_tid[index] = None,
            Ok(_) | Err(_) => {
                self.by_odd_tid.remove(&tid);
            }
        }
        self.history.push(Step::Removed(thread));
        let row = &mut self.threads[thread.index()];
        row.removed = Some(self.removals);
        self.removals += 1;
    }

    /// Takes a note. The caller decides what an exit means: perf's commands differ in that.
    pub(crate) fn note(&mut self, note: &TaskNote) {
        self.noted = true;
        match note.kind {
            NoteKind::Name { pid, tgid, name } => {
                let thread = self.find_or_add(tgid.number(), pid.number());
                self.threads[thread.index()].name = Some(name);
            }
            NoteKind::Fork { pid, tgid, parent, parent_tgid } => self.fork(pid, tgid, parent, parent_tgid),
            NoteKind::Exit { .. } | NoteKind::Released { .. } => {}
        }
    }

    /// A `sched_process_fork` event, which stands in for FORK records where there are no notes.
    pub(crate) fn fork_event(&mut self, parent: TaskId, child: TaskId, tasks: &TaskTable) {
        if !self.noted {
            let row = |task| tasks.get(task);
            let tgid = |task| row(task).tgid.unwrap_or(row(task).pid);
            self.fork(row(child).pid, tgid(child), row(parent).pid, tgid(parent));
        }
    }

    fn fork(&mut self, pid: Pid, tgid: Pid, parent: Pid, parent_tgid: Pid) {
        let existing = self.find(pid.number());
        let mut forker = self.find_or_add(parent_tgid.number(), parent.number());
        if self.get(forker).pid != parent_tgid.number() {
            // perf concludes that the record which should have replaced this thread was lost.
            self.remove(forker);
            forker = self.find_or_add(parent_tgid.number(), parent.number());
        }
        if let Some(existing) = existing.filter(|&existing| self.get(existing).removed.is_none()) {
            self.remove(existing);
        }
        let child = self.find_or_add(tgid.number(), pid.number());
        let name = self.get(forker).name;
        let row = &mut self.threads[child.index()];
        row.name = name.or(row.name);
        row.parent = parent.number();
    }

    /// How the threads came and went.
    pub(crate) fn history(&self) -> &[Step] {
        &self.history
    }

    pub(crate) fn set_dead(&mut self, thread: ThreadId) {
        self.threads[thread.index()].dead = true;
    }

    /// Gives a thread a name unless it has one.
    pub(crate) fn name_if_unnamed(&mut self, thread: ThreadId, name: StrId) {
        self.threads[thread.index()].name.get_or_insert(name);
    }

    /// The thread's name as perf prints it now.
    pub(crate) fn name(&self, thread: ThreadId, strings: &Strings, tasks: &TaskTable) -> String {
        let row = self.get(thread);
        let by_events = || if self.noted { None } else { tasks.last_name(row.task?) };
        match row.name.or_else(by_events) {
            Some(name) => strings.get(name).to_owned(),
            None if row.tid == 0 => "swapper".to_owned(),
            None => format!(":{}", row.tid),
        }
    }
}

fn id(index: usize) -> ThreadId {
    ThreadId(u32::try_from(index).expect("threads come from tasks and notes, fewer than 2^32 of each"))
}
