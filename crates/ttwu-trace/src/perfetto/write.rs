//! Writing Perfetto traces: ftrace bundles by CPU, as Perfetto's own recorder would.
//!
//! The viewer makes everything of them itself: slices per CPU and thread from `sched_switch`, wake-up arrows from
//! `sched_waking`, per-CPU tracks. So nothing is drawn here; events are handed on as what they are. Events for which
//! Perfetto has no message go as generic ones, which [`super::events`] reads back.
//!
//! No `ftrace_clock` is written, whatever the source's clock was: without it times are taken as they are, and with it the
//! viewer wants snapshots that relate the clock to its own (and refuses `local`).
//!
//! What this does not do: compact_sched. It saves space but leaves out who woke and most fields.

use super::proto::Message;
use super::schema::{bundle, event, packet};
use super::state::States;
use crate::Chunk;
use crate::convert::{Counted, TraceWriter, WRITER, Written, recorder};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use ttwu_model::{CpuId, Event, EventKind, Pid, Prio, StrId, TaskId, TraceHealth, TraceMeta, TraceParts};

/// Any non-zero number: all our packets are of one sequence.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`, then `SEQ_NEEDS_INCREMENTAL_STATE`.
const CLEARED: u64 = 1;
const NEEDS: u64 = 2;
/// Events over all CPUs before bundles are written: the viewer sorts, but need not sort the whole file.
const FLUSH_EVENTS: u64 = 16_384;
const INTERNED_KERNEL_SYMBOLS: u32 = 26;

/// Writes a Perfetto trace.
pub struct PerfettoWriter<W: Write> {
    out: Counted<W>,
    states: States,
    cpus: Vec<Bundle>,
    pending: u64,
    events: u64,
    /// Kernel functions that events refer to: already told, and to be told in the next packet.
    symbols: BTreeSet<StrId>,
    new_symbols: Message,
    packet: Message,
}

/// One CPU's events since the last flush.
#[derive(Default)]
struct Bundle {
    events: Message,
    lost: bool,
}

impl<W: Write> PerfettoWriter<W> {
    /// Begins a trace with what is known about the source.
    ///
    /// # Errors
    /// From `out`.
    pub fn new(out: W, meta: &TraceMeta) -> io::Result<Self> {
        let mut writer = Self {
            out: Counted::new(out),
            states: States::of_release(meta.kernel_release.as_deref()),
            cpus: Vec::new(),
            pending: 0,
            events: 0,
            symbols: BTreeSet::new(),
            new_symbols: Message::default(),
            packet: Message::default(),
        };
        writer.packet.number(packet::SEQUENCE_FLAGS, CLEARED).number(packet::PREVIOUS_PACKET_DROPPED, 1);
        writer.packet.message(packet::SYSTEM_INFO, |info| put_system_info(info, meta));
        writer.put_packet()?;
        if let Some(recorded) = &meta.events_recorded {
            writer.packet.message(packet::TRACE_CONFIG, |config| {
                config.message(2, |source| {
                    source.message(1, |config| {
                        config.text(1, "linux.ftrace").message(100, |ftrace| {
                            for event in recorded {
                                ftrace.text(1, &event.replacen(':', "/", 1));
                            }
                        });
                    });
                });
            });
            writer.put_packet()?;
        }
        Ok(writer)
    }

    /// Writes the packet being made, with the sequence it belongs to.
    fn put_packet(&mut self) -> io::Result<()> {
        self.packet.number(packet::SEQUENCE_ID, SEQUENCE);
        let mut head = Message::default();
        head.raw(1, self.packet.as_bytes());
        self.packet.clear();
        self.out.write_all(head.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pending = 0;
        for index in 0..self.cpus.len() {
            let Bundle { events, lost } = &mut self.cpus[index];
            if events.as_bytes().is_empty() {
                continue;
            }
            if !self.new_symbols.as_bytes().is_empty() {
                self.packet.raw(packet::INTERNED_DATA, self.new_symbols.as_bytes());
                self.new_symbols.clear();
            }
            self.packet.number(packet::SEQUENCE_FLAGS, NEEDS).message(packet::FTRACE_EVENTS, |message| {
                message.number(bundle::CPU, index as u64);
                if std::mem::take(lost) {
                    message.number(bundle::LOST_EVENTS, 1);
                }
                message.append(events);
            });
            events.clear();
            self.put_packet()?;
        }
        Ok(())
    }

    /// The bundle of a CPU.
    fn bundle(&mut self, cpu: CpuId) -> &mut Bundle {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, Bundle::default);
        }
        &mut self.cpus[cpu.index()]
    }

    fn put_event(&mut self, event: &Event, chunk: &Chunk<'_>) -> io::Result<()> {
        if let EventKind::Lost { .. } = event.kind {
            // The mark belongs to a bundle as a whole and means "before it".
            self.flush()?;
            self.bundle(event.cpu).lost = true;
            return Ok(());
        }
        if let EventKind::TimerExpire { function: symbol }
        | EventKind::WorkStart { function: symbol }
        | EventKind::WorkEnd { function: Some(symbol) } = event.kind
            && self.symbols.insert(symbol)
        {
            self.new_symbols.message(INTERNED_KERNEL_SYMBOLS, |interned| {
                interned.number(1, symbol_id(symbol)).text(2, chunk.strings.get(symbol));
            });
        }
        let names = Names { chunk, at: event };
        self.bundle(event.cpu);
        let Self { states, cpus, .. } = self;
        cpus[event.cpu.index()].events.message(bundle::EVENT, |message| {
            message.number(event::TIMESTAMP, event.at.as_ns()).int(event::PID, names.pid(event.by).number());
            if let Some(flags) = event.flags.common_flags() {
                message.number(event::COMMON_FLAGS, flags.into());
            }
            if !put_sched(message, &event.kind, names, states) {
                put_other(message, &event.kind, names);
            }
        });
        self.pending += 1;
        self.events += 1;
        if self.pending >= FLUSH_EVENTS { self.flush() } else { Ok(()) }
    }

    /// Which thread belongs to which process, as far as known.
    fn put_process_tree(&mut self, parts: &TraceParts) -> io::Result<()> {
        let mut threads = BTreeMap::new();
        for (task, info) in parts.tasks.iter().skip(1) {
            if let Some(tgid) = info.tgid.filter(|_| info.pid != Pid::UNKNOWN) {
                // Of several lives of a pid the last one counts: the tree is told at the end.
                threads.insert(info.pid, (tgid, parts.tasks.last_name(task)));
            }
        }
        if threads.is_empty() {
            return Ok(());
        }
        self.packet.message(packet::PROCESS_TREE, |tree| {
            for (&pid, &(tgid, name)) in &threads {
                let name = name.map_or("", |name| parts.strings.get(name));
                if pid == tgid {
                    tree.message(1, |process| {
                        process.int(1, pid.number()).text(3, name).number(9, 1);
                    });
                }
                tree.message(2, |thread| {
                    thread.int(1, pid.number()).text(2, name).int(3, tgid.number());
                });
            }
        });
        self.put_packet()
    }

    /// What was lost, where the viewer looks for it.
    fn put_ftrace_stats(&mut self, health: &TraceHealth) -> io::Result<()> {
        let mut lost = BTreeMap::new();
        for window in &health.loss_windows {
            let cpu = window.cpu.map_or(0, CpuId::number);
            *lost.entry(cpu).or_insert(0u64) += window.count.unwrap_or(0);
        }
        let windows: u64 = lost.values().fold(0, |sum: u64, &count| sum.saturating_add(count));
        *lost.entry(0).or_default() += health.lost_events.saturating_sub(windows);
        for phase in [1, 2] {
            self.packet.message(packet::FTRACE_STATS, |stats| {
                stats.number(1, phase);
                for (&cpu, &count) in &lost {
                    let overrun = if phase == 1 { 0 } else { count };
                    stats.message(2, |cpu_stats| {
                        cpu_stats.number(1, cpu.into()).number(3, overrun);
                    });
                }
            });
            self.put_packet()?;
        }
        Ok(())
    }
}

impl<W: Write> TraceWriter for PerfettoWriter<W> {
    fn write(&mut self, chunk: Chunk<'_>) -> io::Result<()> {
        for event in chunk.events {
            self.put_event(event, &chunk)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, parts: &TraceParts) -> io::Result<Written> {
        self.flush()?;
        self.put_process_tree(parts)?;
        self.put_ftrace_stats(&parts.health)?;
        self.out.flush()?;
        Ok(Written { events: self.events, bytes: self.out.bytes })
    }
}

fn put_system_info(info: &mut Message, meta: &TraceMeta) {
    info.message(1, |utsname| {
        utsname.text(1, "Linux");
        for (field, text) in [
            (2, meta.facts.get("kernel_version")),
            (3, meta.kernel_release.as_ref()),
            (4, meta.arch.as_ref()),
        ] {
            if let Some(text) = text {
                utsname.text(field, text);
            }
        }
    });
    if let Some(hz) = meta.facts.get("hz").and_then(|hz| hz.parse().ok()) {
        info.number(3, hz);
    }
    let recorder = recorder(meta);
    if recorder == WRITER {
        info.text(4, WRITER);
    } else {
        info.text(4, &format!("{recorder}, converted by {WRITER}"));
    }
    if let Some(cpus) = meta.cpus_recorded {
        info.number(8, cpus.into());
    }
}

fn symbol_id(symbol: StrId) -> u64 {
    symbol.index() as u64 + 1
}

/// What tasks and strings of an event are called.
#[derive(Clone, Copy)]
struct Names<'a> {
    chunk: &'a Chunk<'a>,
    at: &'a Event,
}

impl<'a> Names<'a> {
    fn pid(self, task: TaskId) -> Pid {
        self.chunk.tasks.get(task).pid
    }

    fn comm(self, task: TaskId) -> &'a str {
        if task.is_idle() {
            return "swapper";
        }
        self.chunk.tasks.name_at(task, self.at.at).map_or("", |name| self.chunk.strings.get(name))
    }

    fn text(self, string: StrId) -> &'a str {
        self.chunk.strings.get(string)
    }
}

/// Appends a `comm`, `pid`, `prio` message as most scheduler events begin.
fn put_task(message: &mut Message, task: TaskId, prio: Prio, names: Names<'_>) {
    message.text(1, names.comm(task)).int(2, names.pid(task).number());
    if let Some(prio) = prio.get() {
        message.int(3, prio);
    }
}

/// Appends an event about tasks; is it one?
fn put_sched(message: &mut Message, kind: &EventKind, names: Names<'_>, states: &States) -> bool {
    let mut wake = |number, wakee, cpu: CpuId, prio| {
        message.message(number, |wake| {
            put_task(wake, wakee, prio, names);
            wake.int(4, 1).int(5, cpu.number().into());
        });
    };
    match *kind {
        EventKind::Waking { wakee, prev_cpu, prio } => wake(event::SCHED_WAKING, wakee, prev_cpu, prio),
        EventKind::Wakeup { wakee, cpu, prio } => wake(event::SCHED_WAKEUP, wakee, cpu, prio),
        EventKind::WakeupNew { wakee, cpu, prio } => wake(event::SCHED_WAKEUP_NEW, wakee, cpu, prio),
        EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } => {
            message.message(event::SCHED_SWITCH, |switch| {
                put_task(switch, prev, prev_prio, names);
                switch.number(4, states.encode(prev_state));
                switch.text(5, names.comm(next)).int(6, names.pid(next).number());
                if let Some(prio) = next_prio.get() {
                    switch.int(7, prio);
                }
            });
        }
        EventKind::Migrate { task, orig_cpu, dest_cpu, prio } => {
            message.message(event::SCHED_MIGRATE_TASK, |migrate| {
                put_task(migrate, task, prio, names);
                migrate.int(4, orig_cpu.number().into()).int(5, dest_cpu.number().into());
            });
        }
        EventKind::Fork { parent, child } => {
            message.message(event::SCHED_PROCESS_FORK, |fork| {
                fork.text(1, names.comm(parent)).int(2, names.pid(parent).number());
                fork.text(3, names.comm(child)).int(4, names.pid(child).number());
            });
        }
        EventKind::Exit { task } => {
            message.message(event::SCHED_PROCESS_EXIT, |exit| put_task(exit, task, Prio::UNKNOWN, names));
        }
        EventKind::Exec { task, file } => {
            message.message(event::SCHED_PROCESS_EXEC, |exec| {
                if let Some(file) = file {
                    exec.text(1, names.text(file));
                }
                exec.int(2, names.pid(task).number());
            });
        }
        EventKind::StatRuntime { task, runtime_ns } => {
            put_stat(message, "sched_stat_runtime", "runtime", task, runtime_ns, names);
        }
        EventKind::StatWait { task, delay_ns } => {
            put_stat(message, "sched_stat_wait", "delay", task, delay_ns, names);
        }
        EventKind::StatSleep { task, delay_ns } => {
            put_stat(message, "sched_stat_sleep", "delay", task, delay_ns, names);
        }
        EventKind::IdleEnter { .. }
        | EventKind::IdleExit { .. }
        | EventKind::Frequency { .. }
        | EventKind::IpiSend { .. }
        | EventKind::IpiSendMask { .. }
        | EventKind::VectorEntry { .. }
        | EventKind::VectorExit { .. }
        | EventKind::IrqEntry { .. }
        | EventKind::IrqExit { .. }
        | EventKind::SoftirqRaise { .. }
        | EventKind::SoftirqEntry { .. }
        | EventKind::SoftirqExit { .. }
        | EventKind::TimerExpire { .. }
        | EventKind::WorkStart { .. }
        | EventKind::WorkEnd { .. }
        | EventKind::Yield
        | EventKind::Lost { .. }
        | EventKind::Other { .. } => return false,
    }
    true
}

/// Appends an event about CPUs and interrupts, or one that ttwu does not interpret.
fn put_other(message: &mut Message, kind: &EventKind, names: Names<'_>) {
    let mut numbers = |number, values: &[(u32, u64)]| {
        message.message(number, |content| {
            for &(field, value) in values {
                content.number(field, value);
            }
        });
    };
    match *kind {
        EventKind::IdleEnter { cpu, state } => {
            numbers(event::CPU_IDLE, &[(1, state.into()), (2, cpu.number().into())]);
        }
        EventKind::IdleExit { cpu } => {
            numbers(event::CPU_IDLE, &[(1, u32::MAX.into()), (2, cpu.number().into())]);
        }
        EventKind::Frequency { cpu, khz } => {
            numbers(event::CPU_FREQUENCY, &[(1, khz.into()), (2, cpu.number().into())]);
        }
        EventKind::SoftirqRaise { vec } => numbers(event::SOFTIRQ_RAISE, &[(1, vec.into())]),
        EventKind::SoftirqEntry { vec } => numbers(event::SOFTIRQ_ENTRY, &[(1, vec.into())]),
        EventKind::SoftirqExit { vec } => numbers(event::SOFTIRQ_EXIT, &[(1, vec.into())]),
        EventKind::IrqExit { irq } => numbers(event::IRQ_HANDLER_EXIT, &[(1, irq.into()), (2, 1)]),
        EventKind::TimerExpire { function } => {
            numbers(event::HRTIMER_EXPIRE_ENTRY, &[(3, symbol_id(function))]);
        }
        EventKind::WorkStart { function } => {
            numbers(event::WORKQUEUE_EXECUTE_START, &[(2, symbol_id(function))]);
        }
        EventKind::WorkEnd { function: Some(function) } => {
            numbers(event::WORKQUEUE_EXECUTE_END, &[(2, symbol_id(function))]);
        }
        EventKind::WorkEnd { function: None } => numbers(event::WORKQUEUE_EXECUTE_END, &[]),
        EventKind::VectorEntry { name } => {
            message.message(event::IPI_ENTRY, |entry| {
                entry.text(1, names.text(name));
            });
        }
        EventKind::VectorExit { name } => {
            message.message(event::IPI_EXIT, |exit| {
                exit.text(1, names.text(name));
            });
        }
        EventKind::IrqEntry { irq, name } => {
            message.message(event::IRQ_HANDLER_ENTRY, |entry| {
                entry.number(1, irq.into());
                if let Some(name) = name {
                    entry.text(2, names.text(name));
                }
            });
        }
        EventKind::IpiSend { target, callsite } => {
            put_generic(message, "ipi_send_cpu", |fields| {
                put_number(fields, "cpu", target.number().into());
                put_text(fields, "callsite", callsite, names);
            });
        }
        EventKind::IpiSendMask { mask, callsite } => {
            put_generic(message, "ipi_send_cpumask", |fields| {
                put_text(fields, "cpumask", mask, names);
                put_text(fields, "callsite", callsite, names);
            });
        }
        EventKind::Yield => put_generic(message, "sys_enter_sched_yield", |_| {}),
        EventKind::Other { name } => put_generic(message, names.text(name), |_| {}),
        EventKind::Waking { .. }
        | EventKind::Wakeup { .. }
        | EventKind::WakeupNew { .. }
        | EventKind::Switch { .. }
        | EventKind::Migrate { .. }
        | EventKind::Fork { .. }
        | EventKind::Exit { .. }
        | EventKind::Exec { .. }
        | EventKind::StatRuntime { .. }
        | EventKind::StatWait { .. }
        | EventKind::StatSleep { .. }
        | EventKind::Lost { .. } => unreachable!("written elsewhere"),
    }
}

/// Appends a `GenericFtraceEvent`.
fn put_generic(message: &mut Message, name: &str, fields: impl FnOnce(&mut Message)) {
    message.message(event::GENERIC, |generic| {
        generic.text(1, name);
        fields(generic);
    });
}

fn put_number(generic: &mut Message, name: &str, value: u64) {
    generic.message(2, |field| {
        field.text(1, name).number(5, value);
    });
}

fn put_text(generic: &mut Message, name: &str, value: Option<StrId>, names: Names<'_>) {
    if let Some(value) = value {
        generic.message(2, |field| {
            field.text(1, name).text(3, names.text(value));
        });
    }
}

fn put_stat(message: &mut Message, event: &str, field: &str, task: TaskId, ns: u64, names: Names<'_>) {
    put_generic(message, event, |fields| {
        fields.message(2, |comm| {
            comm.text(1, "comm").text(3, names.comm(task));
        });
        let pid = i64::from(names.pid(task).number()).cast_unsigned();
        fields.message(2, |field| {
            field.text(1, "pid").number(4, pid);
        });
        put_number(fields, field, ns);
    });
}
