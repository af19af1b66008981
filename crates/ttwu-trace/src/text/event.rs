//! From an event's text to an event: the kernel's print formats, old and new, and libtraceevent's plugin text.
//!
//! Fields are matched in the order in which they are printed, each by its key, so that a task named `x pid=1` cannot
//! be mistaken. What follows the fields that are known (`state=W` of Android, `Latency: 8.371 usecs` of
//! `trace-cmd report -w`) is ignored.

use super::scan::Scan;
use super::state::States;
use ttwu_model::{CpuId, EventKind, Pid, Prio, StateLetter, StrId, Strings, TaskState};

/// What an event says, and the names that it gives to its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) kind: EventKind<Pid>,
    pub(super) names: [Option<StrId>; 2],
    /// The line ends before its last field.
    pub(super) is_cut: bool,
}

/// Interning at the speed of one comparison.
///
/// A direct-mapped cache before the tree of `Strings`: a trace names its few thousand tasks and call sites millions of
/// times. Hits are verified against the string itself.
#[derive(Debug)]
pub(super) struct Texts {
    lines: Box<[Option<StrId>]>,
}

const CACHE_LINES: usize = 4096;
/// How much of an event's text is looked at.
const PAYLOAD_MAX: usize = 4096;

impl Texts {
    pub(super) fn new() -> Self {
        Self { lines: vec![None; CACHE_LINES].into_boxed_slice() }
    }

    /// The id of `text`; bytes that are not UTF-8 become U+FFFD.
    pub(super) fn intern(&mut self, text: &[u8], strings: &mut Strings) -> StrId {
        let line = &mut self.lines[(hash(text) >> 40) as usize % CACHE_LINES];
        if let Some(id) = *line
            && strings.get(id).as_bytes() == text
        {
            return id;
        }
        let id = strings.intern(&String::from_utf8_lossy(text));
        *line = Some(id);
        id
    }

    /// The id of a task's name, unless it says that the name is not known: `<...>`, perf's `:1234`, atrace's `<1234>`.
    pub(super) fn name(&mut self, name: &[u8], strings: &mut Strings) -> Option<StrId> {
        let stands_for_unknown = match name {
            [] | b"<...>" => true,
            [b'<', number @ .., b'>'] => number.iter().all(u8::is_ascii_digit),
            [b':', number @ ..] => {
                !number.is_empty() && number.iter().all(|b| b.is_ascii_digit() || *b == b'-')
            }
            _ => false,
        };
        if stands_for_unknown { None } else { Some(self.intern(name, strings)) }
    }
}

fn hash(text: &[u8]) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = text.len() as u64;
    for chunk in text.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(SPREAD).rotate_left(23);
    }
    hash.wrapping_mul(SPREAD)
}

/// What reading an event's text needs.
pub(super) struct Reader<'a> {
    pub(super) strings: &'a mut Strings,
    pub(super) texts: &'a mut Texts,
    pub(super) states: &'a States,
}

/// The tracepoint's own name without perf's system (`sched:sched_switch`). A counter's modifiers (`cycles:u`) are no name.
pub(super) fn tracepoint(event: &[u8]) -> &[u8] {
    match memchr::memchr(b':', event) {
        Some(at) if event.len() - at > 4 => &event[at + 1..],
        Some(_) | None => event,
    }
}

impl Reader<'_> {
    /// The event that `tracepoint` says with `payload`; `None` if its fields cannot be read. An unknown tracepoint is
    /// [`EventKind::Other`].
    pub(super) fn read(&mut self, tracepoint: &[u8], payload: &[u8]) -> Option<Said> {
        // libtraceevent prints raw fields behind this where a print format is beyond it.
        let payload = match payload.strip_prefix(b"[FAILED TO PARSE]") {
            Some(rest) => super::scan::trim_start(rest),
            None => payload,
        };
        // No event is longer; searching for keys in a longer one could take quadratic time.
        let scan = Scan::new(&payload[..payload.len().min(PAYLOAD_MAX)]);
        // A probe's event, `(function+0x4/0x10) …`, may have a tracepoint's name; it must not count as one.
        if payload.starts_with(b"(") && memchr::memmem::find(scan.rest(), b"+0x").is_some() {
            let name = self.text(&[tracepoint, b" (probe)"].concat());
            return Some(one(EventKind::Other { name }, None));
        }
        match tracepoint {
            b"sched_switch" => self.switch(scan),
            b"sched_waking" => {
                self.wakeup(scan, |wakee, prev_cpu, prio| EventKind::Waking { wakee, prev_cpu, prio })
            }
            b"sched_wakeup" => self.wakeup(scan, |wakee, cpu, prio| EventKind::Wakeup { wakee, cpu, prio }),
            b"sched_wakeup_new" => {
                self.wakeup(scan, |wakee, cpu, prio| EventKind::WakeupNew { wakee, cpu, prio })
            }
            b"sched_migrate_task" => self.migrate(scan),
            b"sched_process_fork" => self.fork(scan),
            b"sched_process_exit" => {
                let (task, name, _) = self.task(scan, b" prio=")?;
                Some(one(EventKind::Exit { task }, name))
            }
            b"sched_process_exec" => self.exec(scan),
            b"sched_stat_runtime" => {
                let (task, name, mut scan) = self.task(scan, b" runtime=")?;
                let runtime_ns = positive(scan.keyed(b" runtime="))?;
                Some(one(EventKind::StatRuntime { task, runtime_ns }, name))
            }
            b"sched_stat_wait" => {
                let (task, name, delay_ns) = self.delay(scan)?;
                Some(one(EventKind::StatWait { task, delay_ns }, name))
            }
            b"sched_stat_sleep" | b"sched_stat_iowait" | b"sched_stat_blocked" => {
                let (task, name, delay_ns) = self.delay(scan)?;
                Some(one(EventKind::StatSleep { task, delay_ns }, name))
            }
            _ => self.machine(tracepoint, scan).map(|kind| one(kind, None)),
        }
    }

    /// Events that name no task.
    fn machine(&mut self, tracepoint: &[u8], mut scan: Scan<'_>) -> Option<EventKind<Pid>> {
        Some(match tracepoint {
            b"cpu_idle" => {
                if !scan.literal(b"state=") {
                    return None;
                }
                let state = scan.word();
                let cpu = cpu(scan.keyed(b" cpu_id="))?;
                match state {
                    // −1, "leaves idle", in an unsigned field of 32 or 64 bits.
                    b"4294967295" | b"18446744073709551615" | b"-1" => EventKind::IdleExit { cpu },
                    _ => EventKind::IdleEnter { cpu, state: irq(Scan::new(state).integer())? },
                }
            }
            b"cpu_frequency" => {
                let khz = u32::try_from(scan.keyed(b"state=")?).ok()?;
                EventKind::Frequency { cpu: cpu(scan.keyed(b" cpu_id="))?, khz }
            }
            b"ipi_send_cpu" => {
                let target = cpu(scan.keyed(b"cpu="))?;
                let callsite = scan.literal(b" callsite=").then(|| self.text(scan.word()));
                EventKind::IpiSend { target, callsite }
            }
            b"ipi_send_cpumask" => {
                let mask = scan.literal(b"cpumask=").then(|| self.text(scan.word()));
                let callsite = scan.literal(b" callsite=").then(|| self.text(scan.word()));
                EventKind::IpiSendMask { mask, callsite }
            }
            b"ipi_raise" => self.ipi_raise(scan)?,
            b"ipi_entry" => EventKind::VectorEntry { name: self.in_parentheses(scan)? },
            b"ipi_exit" => EventKind::VectorExit { name: self.in_parentheses(scan)? },
            b"irq_handler_entry" => {
                let irq = irq(scan.keyed(b"irq="))?;
                let name = scan.literal(b" name=").then(|| self.text(scan.rest()));
                EventKind::IrqEntry { irq, name }
            }
            b"irq_handler_exit" => EventKind::IrqExit { irq: irq(scan.keyed(b"irq="))? },
            b"softirq_raise" => EventKind::SoftirqRaise { vec: softirq(scan)? },
            b"softirq_entry" => EventKind::SoftirqEntry { vec: softirq(scan)? },
            b"softirq_exit" => EventKind::SoftirqExit { vec: softirq(scan)? },
            b"hrtimer_expire_entry" | b"timer_expire_entry" => {
                if !scan.skip_past(b" function=") {
                    return None;
                }
                EventKind::TimerExpire { function: self.text(scan.word()) }
            }
            b"workqueue_execute_start" => EventKind::WorkStart { function: self.function(scan)? },
            b"workqueue_execute_end" => EventKind::WorkEnd { function: self.function(scan) },
            b"sys_enter_sched_yield" => EventKind::Yield,
            _ => self.vector(tracepoint, scan),
        })
    }

    /// x86's `irq_vectors:NAME_entry`, which all print `vector=N`; anything else is not interpreted.
    fn vector(&mut self, tracepoint: &[u8], scan: Scan<'_>) -> EventKind<Pid> {
        if scan.rest().starts_with(b"vector=") {
            if let Some(name) = tracepoint.strip_suffix(b"_entry") {
                return EventKind::VectorEntry { name: self.text(name) };
            }
            if let Some(name) = tracepoint.strip_suffix(b"_exit") {
                return EventKind::VectorExit { name: self.text(name) };
            }
        }
        if let Some(call) = tracepoint.strip_prefix(b"sys_") {
            return self.system_call(call, scan);
        }
        EventKind::Other { name: self.text(tracepoint) }
    }

    /// `sys_NAME(…)` and `sys_NAME -> …`, by the names that their tracepoints have; and those tracepoints themselves.
    fn system_call(&mut self, call: &[u8], scan: Scan<'_>) -> EventKind<Pid> {
        let prefix: &[u8] = match scan.rest() {
            [b'(', ..] if call == b"sched_yield" => return EventKind::Yield,
            [b'(', ..] => b"sys_enter_",
            [b' ', b'-', b'>', ..] => b"sys_exit_",
            _ => b"sys_",
        };
        EventKind::Other { name: self.text(&[prefix, call].concat()) }
    }

    fn switch(&mut self, scan: Scan<'_>) -> Option<Said> {
        let mut fields = scan;
        if !fields.literal(b"prev_comm=") {
            return self.switch_plugin(scan);
        }
        let Some((prev_comm, prev)) = fields.text_then(b" prev_pid=", b" prev_prio=") else {
            return self.switch_cut(fields);
        };
        let prev_prio = prio(fields.keyed(b" prev_prio="));
        if !fields.literal(b" prev_state=") {
            return None;
        }
        let prev_state = self.states.field(fields.word());
        // `==>` stands in the kernel's text and not in raw fields.
        fields.literal(b" ==>");
        if !fields.literal(b" next_comm=") {
            return None;
        }
        let (next_comm, next) = fields.text_then(b" next_pid=", b" next_prio=")?;
        let next_prio = prio(fields.keyed(b" next_prio="));
        let (prev, next) = (pid(prev)?, pid(next)?);
        let names = [self.name(prev_comm), self.name(next_comm)];
        let kind = EventKind::Switch { prev, next, prev_state, prev_prio, next_prio };
        Some(Said { kind, names, is_cut: false })
    }

    /// A switch whose line ends behind `prev_pid`: that the task left the CPU is known, and no more.
    fn switch_cut(&mut self, mut fields: Scan<'_>) -> Option<Said> {
        let (prev_comm, prev) = fields.text_then(b" prev_pid=", b"")?;
        if !fields.rest().is_empty() {
            return None;
        }
        let kind = EventKind::Switch {
            prev: pid(prev)?,
            next: Pid::UNKNOWN,
            prev_state: TaskState::new(StateLetter::Unknown, None),
            prev_prio: Prio::UNKNOWN,
            next_prio: Prio::UNKNOWN,
        };
        Some(Said { kind, names: [self.name(prev_comm), None], is_cut: true })
    }

    /// `comm:pid [prio] S ==> comm:pid [prio]`; 2.6 kernels printed `task comm:pid [prio] (S) ==> …`.
    fn switch_plugin(&mut self, mut scan: Scan<'_>) -> Option<Said> {
        scan.literal(b"task ");
        let (prev_comm, prev, prev_prio) = plugin_task(&mut scan, Extent::Shortest, |after| {
            after.literal(b" ") && {
                after.word();
                after.literal(b" ==> ")
            }
        })?;
        scan.literal(b" ");
        let word = scan.word();
        let prev_state = match word.strip_prefix(b"(").and_then(|word| word.strip_suffix(b")")) {
            Some(letters) => self.states.field(letters),
            None => self.states.plugin(word),
        };
        scan.literal(b" ==> ");
        let (next_comm, next, next_prio) =
            plugin_task(&mut scan, Extent::Longest, |after| after.at_end_of_field())?;
        let names = [self.name(prev_comm), self.name(next_comm)];
        let kind = EventKind::Switch { prev, next, prev_state, prev_prio, next_prio };
        Some(Said { kind, names, is_cut: false })
    }

    fn wakeup(&mut self, scan: Scan<'_>, kind: fn(Pid, CpuId, Prio) -> EventKind<Pid>) -> Option<Said> {
        let mut fields = scan;
        if fields.literal(b"comm=") {
            let (comm, wakee) = fields.text_then(b" pid=", b" prio=")?;
            let prio = prio(fields.keyed(b" prio="));
            // Kernels before 4.x printed ` success=1` here.
            if !fields.skip_past(b" target_cpu=") {
                return None;
            }
            // 2.6 kernels: `target_cpu=[001]`.
            fields.literal(b"[");
            let cpu = cpu(fields.integer())?;
            return Some(one(kind(pid(wakee)?, cpu, prio), self.name(comm)));
        }
        let mut fields = scan;
        fields.literal(b"task ");
        let (comm, wakee, prio) = plugin_task(&mut fields, Extent::Longest, |after| {
            after.skip_past(b" CPU:") || after.rest().ends_with(b"]")
        })?;
        // The plugin prints `CPU:001`; 2.6 kernels ` success=1 [001]`.
        if !fields.skip_past(b" CPU:") && !fields.skip_past(b" [") {
            return None;
        }
        Some(one(kind(wakee, cpu(fields.integer())?, prio), self.name(comm)))
    }

    fn migrate(&mut self, scan: Scan<'_>) -> Option<Said> {
        let (task, name, mut scan) = self.task(scan, b" prio=")?;
        let prio = prio(scan.keyed(b" prio="));
        if !scan.skip_past(b" orig_cpu=") {
            return None;
        }
        let orig_cpu = cpu(scan.integer())?;
        let dest_cpu = cpu(scan.keyed(b" dest_cpu="))?;
        Some(one(EventKind::Migrate { task, orig_cpu, dest_cpu, prio }, name))
    }

    /// The kernel prints `comm=… pid=… child_comm=… child_pid=…`; raw fields have `parent_` before the first two.
    fn fork(&mut self, mut scan: Scan<'_>) -> Option<Said> {
        let (comm, parent) = if scan.literal(b"parent_comm=") {
            scan.text_then(b" parent_pid=", b" child_comm=")?
        } else if scan.literal(b"comm=") {
            scan.text_then(b" pid=", b" child_comm=")?
        } else {
            return None;
        };
        scan.literal(b" child_comm=");
        let (child_comm, child) = scan.text_then(b" child_pid=", b"")?;
        let kind = EventKind::Fork { parent: pid(parent)?, child: pid(child)? };
        Some(Said { kind, names: [self.name(comm), self.name(child_comm)], is_cut: false })
    }

    fn exec(&mut self, mut scan: Scan<'_>) -> Option<Said> {
        if !scan.literal(b"filename=") {
            return None;
        }
        let (file, task) = scan.text_then(b" pid=", b" old_pid=")?;
        let file = (!file.is_empty()).then(|| self.text(file));
        Some(one(EventKind::Exec { task: pid(task)?, file }, None))
    }

    /// `comm=… pid=…` before `next`.
    fn task<'a>(&mut self, mut scan: Scan<'a>, next: &[u8]) -> Option<(Pid, Option<StrId>, Scan<'a>)> {
        if !scan.literal(b"comm=") {
            return None;
        }
        let (comm, task) = scan.text_then(b" pid=", next)?;
        Some((pid(task)?, self.name(comm), scan))
    }

    fn delay(&mut self, scan: Scan<'_>) -> Option<(Pid, Option<StrId>, u64)> {
        let (task, name, mut scan) = self.task(scan, b" delay=")?;
        Some((task, name, positive(scan.keyed(b" delay="))?))
    }

    /// `target_mask=00000000,00000002 (Rescheduling interrupts)`.
    fn ipi_raise(&mut self, mut scan: Scan<'_>) -> Option<EventKind<Pid>> {
        if !scan.literal(b"target_mask=") {
            return None;
        }
        let mask = scan.word();
        scan.skip_spaces();
        let callsite = self.in_parentheses(scan);
        Some(match only_cpu(mask) {
            Some(target) => EventKind::IpiSend { target, callsite },
            None => EventKind::IpiSendMask { mask: Some(self.text(mask)), callsite },
        })
    }

    fn in_parentheses(&mut self, scan: Scan<'_>) -> Option<StrId> {
        let inner = scan.rest().strip_prefix(b"(")?.strip_suffix(b")")?;
        Some(self.text(inner))
    }

    /// `work struct 000000001b2c3d4e: function vmstat_update`, or raw `work=… function=…`.
    fn function(&mut self, mut scan: Scan<'_>) -> Option<StrId> {
        (scan.skip_past(b": function ") || scan.skip_past(b" function=")).then(|| self.text(scan.word()))
    }

    fn text(&mut self, text: &[u8]) -> StrId {
        self.texts.intern(text, self.strings)
    }

    fn name(&mut self, name: &[u8]) -> Option<StrId> {
        self.texts.name(name, self.strings)
    }
}

/// How much of a line a name may take, where several ends are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Up to the first place where the rest fits.
    Shortest,
    /// Up to the last one: nothing of that form can follow.
    Longest,
}

/// `comm:pid [prio]`, behind which `fits` must hold.
fn plugin_task<'a>(
    scan: &mut Scan<'a>,
    extent: Extent,
    fits: impl Fn(&mut Scan<'a>) -> bool,
) -> Option<(&'a [u8], Pid, Prio)> {
    let text = scan.rest();
    let mut best = None;
    for at in memchr::memchr_iter(b':', text) {
        let mut after = Scan::new(&text[at + 1..]);
        let Some(found) = after.integer() else { continue };
        let Some(priority) = after.keyed(b" [") else { continue };
        if after.literal(b"]")
            && fits(&mut Scan::new(after.rest()))
            && let Some(pid) = pid(found)
        {
            *scan = after;
            best = Some((&text[..at], pid, prio(Some(priority))));
            if extent == Extent::Shortest {
                break;
            }
        }
    }
    best
}

fn one(kind: EventKind<Pid>, name: Option<StrId>) -> Said {
    Said { kind, names: [name, None], is_cut: false }
}

fn pid(number: i64) -> Option<Pid> {
    i32::try_from(number).ok().map(Pid::new)
}

fn prio(number: Option<i64>) -> Prio {
    number.and_then(|number| i32::try_from(number).ok()).map_or(Prio::UNKNOWN, Prio::new)
}

fn positive(number: Option<i64>) -> Option<u64> {
    u64::try_from(number?).ok()
}

fn cpu(number: Option<i64>) -> Option<CpuId> {
    CpuId::try_from(positive(number)?).ok()
}

fn irq(number: Option<i64>) -> Option<u32> {
    u32::try_from(number?).ok()
}

/// `vec=3 [action=NET_RX]`.
fn softirq(mut scan: Scan<'_>) -> Option<u8> {
    u8::try_from(scan.keyed(b"vec=")?).ok()
}

/// The CPU of a mask in which only one bit is set: hexadecimal digits, highest first, with a comma after every eight.
fn only_cpu(mask: &[u8]) -> Option<CpuId> {
    let mut found = None;
    for (place, &digit) in mask.iter().rev().filter(|&&byte| byte != b',').enumerate() {
        let value = char::from(digit).to_digit(16)?;
        if value != 0 {
            if found.is_some() || !value.is_power_of_two() {
                return None;
            }
            found = CpuId::try_from(place as u64 * 4 + u64::from(value.trailing_zeros())).ok();
        }
    }
    found
}
