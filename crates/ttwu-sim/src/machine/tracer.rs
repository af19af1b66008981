//! The trace of a run: what tracepoints of a kernel would have said, and no more.

use super::cpu::Arrival;
use super::schedule::Why;
use super::task::{NOBODY, Next, State, Task};
use super::{BOOT, Sim, cpu_id};
use crate::Scenario;
use ttwu_fair::{Kernel, Resched};
use ttwu_model::{
    Event, EventFlags, EventKind, Pid, Prio, StateLetter, StrId, Strings, TaskId, TaskInfo, TaskState,
    TaskTable, Time, Trace, TraceMeta, TraceParts,
};

/// The pid of the run's first task.
const PID_BASE: i32 = 1000;

/// A trace that grows.
#[derive(Debug)]
pub(super) struct Tracer {
    strings: Strings,
    events: Vec<Event>,
    reschedule: StrId,
    call: StrId,
    tick: StrId,
    timer: StrId,
    hrtick: StrId,
    stop: StrId,
    /// Call sites of interrupts sent.
    preempt_check: StrId,
    queue_wakelist: StrId,
    kick: StrId,
    /// By task: parent, fork time.
    forks: Vec<Option<(TaskId, Time)>>,
    exits: Vec<Option<Time>>,
}

impl Tracer {
    pub(super) fn new(kernel: Kernel) -> Self {
        let mut strings = Strings::new();
        let preempt_check = if kernel >= Kernel::V6_6 { "wakeup_preempt" } else { "check_preempt_curr" };
        Self {
            preempt_check: strings.intern(preempt_check),
            queue_wakelist: strings.intern("ttwu_queue_wakelist"),
            kick: strings.intern("kick_ilb"),
            reschedule: strings.intern("reschedule"),
            call: strings.intern("call_function_single"),
            tick: strings.intern("tick_nohz_handler"),
            timer: strings.intern("hrtimer_wakeup"),
            hrtick: strings.intern("hrtick"),
            stop: strings.intern("migration"),
            strings,
            events: Vec::new(),
            forks: Vec::new(),
            exits: Vec::new(),
        }
    }

    /// Index of the event put out last.
    pub(super) const fn last_event(&self) -> u64 {
        (self.events.len() as u64).saturating_sub(1)
    }

    pub(super) fn finish(self, tasks: &[Task], names: &[String], scenario: &Scenario) -> Trace {
        let mut strings = self.strings;
        let names: Vec<StrId> = names.iter().map(|name| strings.intern(name)).collect();
        let swapper = strings.intern("swapper");
        let mut rows = vec![TaskInfo {
            pid: Pid::IDLE,
            tgid: Some(Pid::IDLE),
            parent: None,
            names: vec![(Time::from_ns(BOOT), swapper)],
            forked_at: None,
            exited_at: None,
        }];
        // A process' number is that of its first thread.
        let leader = |process: u32| tasks.iter().position(|task| task.process == process);
        for (index, task) in tasks.iter().enumerate() {
            let fork = self.forks.get(index).copied().flatten();
            let tgid = if task.kthread { Some(index) } else { leader(task.process) };
            rows.push(TaskInfo {
                pid: Pid::new(PID_BASE + index as i32),
                tgid: tgid.map(|first| Pid::new(PID_BASE + first as i32)),
                parent: fork.map(|(parent, _)| parent).filter(|parent| !parent.is_idle()),
                names: vec![(Time::from_ns(BOOT), names[task.name as usize])],
                forked_at: fork.map(|(_, at)| at),
                exited_at: self.exits.get(index).copied().flatten(),
            });
        }
        let mut meta = TraceMeta {
            format: "simulated".to_owned(),
            recorder: Some(format!("ttwu-sim {}", env!("CARGO_PKG_VERSION"))),
            kernel_release: Some(scenario.policy.kernel().name().trim_start_matches("linux-").to_owned()),
            clock: Some("simulated".to_owned()),
            command: Some(scenario.workload.name.clone()),
            cpus_recorded: Some(scenario.topology.online().len() as u32),
            cpus_online: Some(scenario.topology.online().clone()),
            resolution_ns: 1,
            topology_text: Some(scenario.topology.to_string()),
            ..TraceMeta::default()
        };
        meta.facts.insert("policy".to_owned(), scenario.policy.to_string());
        meta.facts.insert("costs".to_owned(), scenario.costs.preset_name().to_owned());
        meta.facts.insert("seed".to_owned(), scenario.seed.to_string());
        let events = [
            "sched:sched_waking",
            "sched:sched_wakeup",
            "sched:sched_wakeup_new",
            "sched:sched_switch",
            "sched:sched_migrate_task",
            "sched:sched_process_fork",
            "sched:sched_process_exit",
            "power:cpu_idle",
            "power:cpu_frequency",
            "ipi:ipi_send_cpu",
            "irq:irq_handler_entry",
            "irq:irq_handler_exit",
            "irq:softirq_entry",
            "irq:softirq_exit",
            "timer:hrtimer_expire_entry",
            "workqueue:workqueue_execute_start",
            "workqueue:workqueue_execute_end",
            "syscalls:sys_enter_sched_yield",
        ];
        meta.events_recorded = Some(events.iter().map(|&name| name.to_owned()).collect());
        let parts = TraceParts { meta, strings, tasks: TaskTable::from_rows(rows), ..TraceParts::default() };
        Trace::from_parts(parts, self.events)
    }
}

const fn task_id(task: u32) -> TaskId {
    if task == NOBODY { TaskId::IDLE } else { TaskId::new(task + 1) }
}

impl Sim<'_> {
    fn prio(&self, task: u32) -> Prio {
        if task == NOBODY {
            return Prio::new(120);
        }
        Prio::new(120 + i32::from(self.tasks[task as usize].attributes.nice))
    }

    /// Interrupt context and pending reschedules of `cpu`, as `common_flags` has them.
    fn flags(&self, cpu: usize) -> EventFlags {
        let state = &self.cpus[cpu];
        let mut flags = 0x01;
        flags |= match state.need_resched {
            Some(Resched::Full) => 0x04,
            Some(Resched::Lazy) => 0x02,
            None => 0,
        };
        if state.context == super::Context::Irq {
            flags |= if state.soft { 0x10 } else { 0x08 };
        } else if state.curr != NOBODY {
            let exec = &self.tasks[state.curr as usize].exec;
            if exec.in_wakeup() && exec.wake.softirq {
                flags |= 0x10;
            }
        }
        EventFlags::from_common_flags(flags)
    }

    fn emit(&mut self, cpu: usize, kind: EventKind) {
        if self.trace.is_none() {
            return;
        }
        let event = Event {
            at: Time::from_ns(self.now),
            by: task_id(self.cpus[cpu].curr),
            cpu: cpu_id(cpu),
            flags: self.flags(cpu),
            kind,
        };
        if let Some(trace) = &mut self.trace {
            trace.events.push(event);
        }
    }

    /// Index of the trace's last event; 0 without a trace.
    pub(super) fn last_event(&self) -> u64 {
        self.trace.as_ref().map_or(0, Tracer::last_event)
    }

    pub(super) fn trace_waking(&mut self, cpu: usize, task: u32) {
        if self.trace.is_some() {
            let prev_cpu = cpu_id(usize::from(self.tasks[task as usize].cpu));
            self.emit(cpu, EventKind::Waking { wakee: task_id(task), prev_cpu, prio: self.prio(task) });
        }
    }

    pub(super) fn trace_wakeup(&mut self, by: usize, cpu: usize, task: u32, new: bool) {
        if self.trace.is_some() {
            let (wakee, cpu, prio) = (task_id(task), cpu_id(cpu), self.prio(task));
            let kind = if new {
                EventKind::WakeupNew { wakee, cpu, prio }
            } else {
                EventKind::Wakeup { wakee, cpu, prio }
            };
            self.emit(by, kind);
        }
    }

    pub(super) fn trace_switch(&mut self, cpu: usize, prev: u32, next: u32, why: Why) {
        if self.trace.is_none() {
            return;
        }
        let prev_state = match why {
            Why::Blocked if self.tasks[prev as usize].state == State::Dead => {
                TaskState::new(StateLetter::Dead, Some(false))
            }
            // Workers without work sleep in a state of their own.
            Why::Blocked if self.tasks[prev as usize].exec.next == Next::WorkerLook => {
                TaskState::new(StateLetter::Idle, Some(false))
            }
            Why::Blocked => TaskState::new(StateLetter::Sleeping, Some(false)),
            Why::Preempted => {
                let exec = &self.tasks[prev as usize].exec;
                let inside = exec.left > 0 && exec.mode != super::task::Mode::User;
                TaskState::new(StateLetter::Running, Some(inside))
            }
            Why::Yielded | Why::Idle => TaskState::new(StateLetter::Running, Some(false)),
        };
        let kind = EventKind::Switch {
            prev: task_id(prev),
            next: task_id(next),
            prev_state,
            prev_prio: self.prio(prev),
            next_prio: self.prio(next),
        };
        self.emit(cpu, kind);
    }

    pub(super) fn trace_migrate(&mut self, by: usize, task: u32, from: usize, to: usize) {
        if self.trace.is_some() {
            let kind = EventKind::Migrate {
                task: task_id(task),
                orig_cpu: cpu_id(from),
                dest_cpu: cpu_id(to),
                prio: self.prio(task),
            };
            self.emit(by, kind);
        }
    }

    pub(super) fn trace_fork(&mut self, cpu: usize, child: u32) {
        let parent = task_id(self.cpus[cpu].curr);
        let at = Time::from_ns(self.now);
        if let Some(trace) = &mut self.trace {
            if trace.forks.len() <= child as usize {
                trace.forks.resize(child as usize + 1, None);
            }
            trace.forks[child as usize] = Some((parent, at));
            self.emit(cpu, EventKind::Fork { parent, child: task_id(child) });
        }
    }

    pub(super) fn trace_exit(&mut self, cpu: usize, task: u32) {
        let at = Time::from_ns(self.now);
        if let Some(trace) = &mut self.trace {
            if trace.exits.len() <= task as usize {
                trace.exits.resize(task as usize + 1, None);
            }
            trace.exits[task as usize] = Some(at);
            self.emit(cpu, EventKind::Exit { task: task_id(task) });
        }
    }

    pub(super) fn trace_idle(&mut self, cpu: usize, state: Option<u32>) {
        let id = cpu_id(cpu);
        let kind = match state {
            Some(state) => EventKind::IdleEnter { cpu: id, state },
            None => EventKind::IdleExit { cpu: id },
        };
        self.emit(cpu, kind);
    }

    pub(super) fn trace_ipi(&mut self, from: usize, to: usize, how: Arrival) {
        if let Some(trace) = &self.trace {
            let callsite = match how {
                Arrival::Call => trace.queue_wakelist,
                Arrival::Nohz => trace.kick,
                Arrival::Reschedule
                | Arrival::Timer(_)
                | Arrival::Device(_)
                | Arrival::Tick
                | Arrival::Hrtick
                | Arrival::Stop { .. }
                | Arrival::Active { .. }
                | Arrival::Start(_)
                | Arrival::Served(_)
                | Arrival::Frequency
                | Arrival::End => trace.preempt_check,
            };
            self.emit(from, EventKind::IpiSend { target: cpu_id(to), callsite: Some(callsite) });
        }
    }

    pub(super) fn trace_frequency(&mut self, cpu: usize, permille: u64) {
        // The machine's greatest frequency is taken as 1 GHz: only shares are known.
        self.emit(cpu, EventKind::Frequency { cpu: cpu_id(cpu), khz: permille as u32 * 1000 });
    }

    pub(super) fn trace_yield(&mut self, cpu: usize) {
        self.emit(cpu, EventKind::Yield);
    }

    pub(super) fn trace_softirq(&mut self, cpu: usize, vec: u8, enters: bool) {
        let kind = if enters { EventKind::SoftirqEntry { vec } } else { EventKind::SoftirqExit { vec } };
        self.emit(cpu, kind);
    }

    pub(super) fn trace_work(&mut self, task: u32, object: u32, begins: bool) {
        let cpu = usize::from(self.tasks[task as usize].cpu);
        let name = &self.scenario.workload.objects[object as usize].name;
        if let Some(trace) = &mut self.trace {
            let function = trace.strings.intern(name);
            let kind = if begins {
                EventKind::WorkStart { function }
            } else {
                EventKind::WorkEnd { function: Some(function) }
            };
            self.emit(cpu, kind);
        }
    }

    /// Entry and exit of an interrupt, as far as tracepoints tell.
    pub(super) fn trace_irq(&mut self, cpu: usize, what: Arrival, enters: bool) {
        let Some(trace) = &mut self.trace else { return };
        let kind = match what {
            Arrival::Reschedule => vector(trace.reschedule, enters),
            Arrival::Call => vector(trace.call, enters),
            Arrival::Stop { .. } | Arrival::Active { .. } => vector(trace.stop, enters),
            Arrival::Nohz => vector(trace.reschedule, enters),
            Arrival::Tick | Arrival::Timer(_) | Arrival::Hrtick if !enters => return,
            Arrival::Tick => EventKind::TimerExpire { function: trace.tick },
            Arrival::Timer(_) => EventKind::TimerExpire { function: trace.timer },
            Arrival::Hrtick => EventKind::TimerExpire { function: trace.hrtick },
            Arrival::Device(flight) => {
                let device = self.in_flight[flight as usize].device;
                let name = &self.scenario.workload.objects[device as usize].name;
                let name = trace.strings.intern(name);
                let irq = 32 + device;
                if enters {
                    EventKind::IrqEntry { irq, name: Some(name) }
                } else {
                    EventKind::IrqExit { irq }
                }
            }
            Arrival::Start(_) | Arrival::Served(_) | Arrival::Frequency | Arrival::End => return,
        };
        self.emit(cpu, kind);
    }
}

const fn vector(name: StrId, enters: bool) -> EventKind {
    if enters { EventKind::VectorEntry { name } } else { EventKind::VectorExit { name } }
}
