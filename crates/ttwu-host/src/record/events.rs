//! Which tracepoints to record: named sets, and explicit lists.
//!
//! The sets are tables, so that what a set costs and why a tracepoint is in it can be read here. Missing tracepoints
//! (older kernels, options off) are reported and left out; only without `sched_switch` is there nothing to say.

use super::error::RecordError;
use super::tracefs::{Tracefs, Tracepoint};

/// A wanted tracepoint.
#[derive(Clone, Copy, Debug)]
struct Want {
    system: &'static str,
    name: &'static str,
    only: Only,
}

/// Which of a tracepoint's occurrences are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Only {
    All,
    /// Those whose timer callback is the scheduler's tick.
    Ticks,
    /// The `sched_yield` system call.
    YieldCalls,
}

const fn all(system: &'static str, name: &'static str) -> Want {
    Want { system, name, only: Only::All }
}

/// Who was woken where and what ran: the least that placement and wake-up latency need.
const MINIMAL: &[Want] =
    &[all("sched", "sched_switch"), all("sched", "sched_waking"), all("sched", "sched_migrate_task")];

/// With the end of each wake-up (whose flags tell a wake-up preemption) and new tasks.
const WAKEUPS: &[Want] = &[
    all("sched", "sched_switch"),
    all("sched", "sched_waking"),
    all("sched", "sched_wakeup"),
    all("sched", "sched_wakeup_new"),
    all("sched", "sched_migrate_task"),
];

/// The default: what every analysis of ttwu can use, at no more than the price of `perf sched record`.
///
/// `sched_wakeup` is here and `sched_stat_runtime` is not, the other way round than perf has it: the first tells by its flags
/// what no other event does, the second, which is a third of all events under hackbench, repeats what switches say. With
/// both, a pipe ping-pong was slowed by 66 % where perf slowed it by 59 %; `sched,sched:sched_stat_runtime` records both.
///
/// `ipi_send_cpu` and the ticks tell who preempted; both are rare beside switches. `sched_yield` is *not* here: watching any
/// system call sends all system calls of all tasks through the kernel's slow entry path.
const SCHED: &[Want] = &[
    all("sched", "sched_switch"),
    all("sched", "sched_waking"),
    all("sched", "sched_wakeup"),
    all("sched", "sched_wakeup_new"),
    all("sched", "sched_migrate_task"),
    all("sched", "sched_process_fork"),
    all("sched", "sched_process_exec"),
    all("sched", "sched_process_exit"),
    Want { system: "timer", name: "hrtimer_expire_entry", only: Only::Ticks },
    // Last, so that switching the others on, which sends interrupts, is not in the recording.
    all("ipi", "ipi_send_cpu"),
];

/// What `full` adds to [`SCHED`]. Costs a multiple under interrupt load.
const FULL_ADDS: &[Want] = &[
    all("sched", "sched_stat_runtime"),
    all("sched", "sched_stat_wait"),
    all("sched", "sched_stat_sleep"),
    all("sched", "sched_stat_iowait"),
    all("sched", "sched_stat_blocked"),
    all("irq", "irq_handler_entry"),
    all("irq", "irq_handler_exit"),
    all("irq", "softirq_raise"),
    all("irq", "softirq_entry"),
    all("irq", "softirq_exit"),
    all("ipi", "ipi_send_cpumask"),
    all("ipi", "ipi_raise"),
    all("ipi", "ipi_entry"),
    all("ipi", "ipi_exit"),
    all("irq_vectors", "reschedule_entry"),
    all("irq_vectors", "reschedule_exit"),
    all("irq_vectors", "call_function_entry"),
    all("irq_vectors", "call_function_exit"),
    all("irq_vectors", "call_function_single_entry"),
    all("irq_vectors", "call_function_single_exit"),
    all("irq_vectors", "local_timer_entry"),
    all("irq_vectors", "local_timer_exit"),
    all("timer", "hrtimer_expire_entry"),
    all("timer", "timer_expire_entry"),
    all("power", "cpu_idle"),
    all("power", "cpu_frequency"),
    all("workqueue", "workqueue_execute_start"),
    all("workqueue", "workqueue_execute_end"),
    Want { system: "syscalls", name: "sys_enter_sched_yield", only: Only::YieldCalls },
];

/// The named sets, for messages and help: name, and what it is for.
pub const EVENT_SETS: [(&str, &str); 4] = [
    ("minimal", "sched_switch, sched_waking, sched_migrate_task"),
    ("wakeups", "minimal with sched_wakeup and sched_wakeup_new"),
    ("sched", "wakeups with fork, exec, exit, ticks and the interrupts that wake-ups send (default)"),
    (
        "full",
        "sched with run-time accounting, interrupts, softirqs, timers, idle states, frequency, workqueues and sched_yield",
    ),
];

/// One item of an event list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Set(&'static str),
    One { system: String, name: String },
    System(String),
}

/// Which events to record: `sched`, `full`, `sched:sched_switch,irq:*`, …
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSet {
    items: Vec<Item>,
}

/// Why a text is not an event set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown event set `{item}`{}; expected minimal, wakeups, sched, full, `system:name` or `system:*`", did_you_mean(.nearest.as_deref()))]
pub struct EventSetError {
    item: String,
    nearest: Option<String>,
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

impl EventSet {
    /// The default set.
    #[must_use]
    pub fn sched() -> Self {
        Self { items: vec![Item::Set("sched")] }
    }

    /// Reads a comma-separated list of set names (which may be abbreviated where that is unambiguous), `system:name` and
    /// `system:*`.
    ///
    /// # Errors
    /// When an item is none of these, with the nearest set name. Whether a tracepoint exists shows only on the machine.
    pub fn parse(text: &str) -> Result<Self, EventSetError> {
        let mut items = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            items.push(match item.split_once(':') {
                Some((system, "*")) if is_name(system) => Item::System(system.to_owned()),
                Some((system, name)) if is_name(system) && is_name(name) => {
                    Item::One { system: system.to_owned(), name: name.to_owned() }
                }
                Some(_) => return Err(EventSetError { item: item.to_owned(), nearest: None }),
                None => Item::Set(set_name(item)?),
            });
        }
        if items.is_empty() {
            return Err(EventSetError { item: text.to_owned(), nearest: None });
        }
        Ok(Self { items })
    }
}

fn is_name(text: &str) -> bool {
    // Names become paths: nothing that could leave the events directory.
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn set_name(item: &str) -> Result<&'static str, EventSetError> {
    let names = EVENT_SETS.map(|(name, _)| name);
    if let Some(&name) = names.iter().find(|&&name| name == item) {
        return Ok(name);
    }
    let mut matching = names.iter().filter(|name| name.starts_with(item));
    match (matching.next(), matching.next()) {
        (Some(&name), None) => Ok(name),
        (Some(_) | None, _) => {
            let nearest = nearest(item, names.iter().copied());
            Err(EventSetError { item: item.to_owned(), nearest })
        }
    }
}

/// The name with the smallest edit distance, if at most half of the letters differ.
fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    names
        .map(|name| (strsim::levenshtein(wanted, name), name))
        .min()
        .filter(|&(distance, name)| distance * 2 <= name.len().max(wanted.len()))
        .map(|(_, name)| name.to_owned())
}

/// The tracepoints of this machine that a set stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// What to record, without repetition, `sched_switch` first: its file descriptors carry the ring buffers.
    pub(crate) tracepoints: Vec<Tracepoint>,
    /// What is not recorded, and why, in words.
    pub(crate) missing: Vec<String>,
    /// /proc/kallsyms, once it was needed: the kernel takes tens of milliseconds to write it.
    symbols: Option<String>,
}

impl Selection {
    /// Looks the set up on this machine.
    ///
    /// # Errors
    /// When tracefs refuses, or `sched_switch` does not exist.
    pub(crate) fn of(set: &EventSet, tracefs: &Tracefs) -> Result<Self, RecordError> {
        let mut selection = Self::default();
        // Without switches nothing can be said about any task, so they are in every selection.
        selection.add(tracefs, &MINIMAL[0])?;
        if selection.tracepoints.is_empty() {
            let what = "this kernel has no tracepoint sched:sched_switch; \
                        it needs CONFIG_EVENT_TRACING and CONFIG_PERF_EVENTS";
            return Err(RecordError::Unsupported { what: what.to_owned() });
        }
        for item in &set.items {
            match item {
                Item::Set(name) => {
                    for want in wants(name) {
                        selection.add(tracefs, want)?;
                    }
                }
                Item::One { system, name } => {
                    if !selection.add_named(tracefs, system, name)? {
                        let near = nearest(name, tracefs.names(Some(system)).iter().map(String::as_str));
                        selection.missing.push(format!("{system}:{name}{}", did_you_mean(near.as_deref())));
                    }
                }
                Item::System(system) => {
                    let names = tracefs.names(Some(system));
                    if names.is_empty() {
                        let near = nearest(system, tracefs.names(None).iter().map(String::as_str));
                        selection.missing.push(format!("{system}:*{}", did_you_mean(near.as_deref())));
                    }
                    for name in names {
                        selection.add_named(tracefs, system, &name)?;
                    }
                }
            }
        }
        Ok(selection)
    }

    fn add(&mut self, tracefs: &Tracefs, want: &Want) -> Result<(), RecordError> {
        let restricted = match want.only {
            Only::All => {
                if !self.add_named(tracefs, want.system, want.name)? {
                    self.missing.push(format!("{}:{}", want.system, want.name));
                }
                return Ok(());
            }
            Only::Ticks => match tick_filter_from(self.symbols()) {
                Some(filter) => (want.system, want.name, filter),
                None => {
                    self.missing.push(format!(
                        "{}:{} (ticks): no tick handler in /proc/kallsyms; needs CAP_SYSLOG or kernel.kptr_restrict=0",
                        want.system, want.name
                    ));
                    return Ok(());
                }
            },
            Only::YieldCalls => {
                if self.add_named(tracefs, want.system, want.name)? {
                    return Ok(());
                }
                // Only with CONFIG_FTRACE_SYSCALLS are there events per system call.
                ("raw_syscalls", "sys_enter", format!("id == {}", libc::SYS_sched_yield))
            }
        };
        let (system, name, filter) = restricted;
        if self.has(system, name) {
            return Ok(());
        }
        match tracefs.tracepoint(system, name)? {
            Some(found) => self.tracepoints.push(Tracepoint { filter: Some(filter), ..found }),
            None => self.missing.push(format!("{system}:{name}")),
        }
        Ok(())
    }

    /// Adds all occurrences of a tracepoint; false when the kernel lacks it.
    fn add_named(&mut self, tracefs: &Tracefs, system: &str, name: &str) -> Result<bool, RecordError> {
        if let Some(known) =
            self.tracepoints.iter_mut().find(|have| have.system == system && have.name == name)
        {
            // A wish for all occurrences overrules a filter.
            known.filter = None;
            return Ok(true);
        }
        match tracefs.tracepoint(system, name)? {
            Some(found) => {
                self.tracepoints.push(found);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn has(&self, system: &str, name: &str) -> bool {
        self.tracepoints.iter().any(|have| have.system == system && have.name == name)
    }

    /// /proc/kallsyms; empty where it cannot be read.
    pub(crate) fn symbols(&mut self) -> &str {
        self.symbols.get_or_insert_with(|| std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// Are there events that count something else than themselves (`sched_stat_*`: nanoseconds)?
    pub(crate) fn counts(&self) -> bool {
        self.tracepoints.iter().any(|point| point.name.starts_with("sched_stat_"))
    }

    /// Do events carry kernel addresses that want names?
    pub(crate) fn wants_symbols(&self) -> bool {
        self.tracepoints.iter().any(|point| matches!(point.system.as_str(), "ipi" | "timer" | "workqueue"))
    }
}

fn wants(set: &str) -> impl Iterator<Item = &'static Want> {
    let (base, adds): (&'static [Want], &'static [Want]) = match set {
        "minimal" => (MINIMAL, &[]),
        "wakeups" => (WAKEUPS, &[]),
        "full" => (SCHED, FULL_ADDS),
        _ => (SCHED, &[]),
    };
    base.iter().chain(adds)
}

/// The tick's callback has had three names.
const TICK_HANDLERS: [&str; 3] = ["tick_nohz_handler", "tick_sched_timer", "tick_nohz_highres_handler"];

/// A filter for the timer callbacks that are the scheduler's tick, by address: filters by symbol name exist only on
/// recent kernels. `None` where addresses are hidden from us.
fn tick_filter_from(symbols: &str) -> Option<String> {
    let terms: Vec<String> = symbols
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (address, _, name) = (words.next()?, words.next()?, words.next()?);
            let shown = address.bytes().any(|byte| byte != b'0');
            (shown && TICK_HANDLERS.contains(&name)).then(|| format!("function == 0x{address}"))
        })
        .collect();
    (!terms.is_empty()).then(|| terms.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_faults_named() {
        let check = |text: &str, expect: &str| {
            let found = match EventSet::parse(text) {
                Ok(set) => format!("{:?}", set.items),
                Err(error) => error.to_string(),
            };
            assert!(
                found.starts_with(expect),
                "EventSet::parse({text:?}) gives `{found}`, expected `{expect}…`"
            );
        };
        check("sched", r#"[Set("sched")]"#);
        check("f", r#"[Set("full")]"#);
        check("min, irq:*", r#"[Set("minimal"), System("irq")]"#);
        check("sched:sched_switch", r#"[One { system: "sched", name: "sched_switch" }]"#);
        check("wakeup", r#"[Set("wakeups")]"#);
        check("shced", "unknown event set `shced`, did you mean `sched`?; expected");
        check("sched:../../x", "unknown event set `sched:../../x`; expected");
        check("", "unknown event set ``; expected");
    }

    #[test]
    fn ticks_are_filtered_by_shown_addresses_only() {
        let symbols = "ffffffff814352d0 t __pfx_tick_nohz_handler\nffffffff814352e0 t tick_nohz_handler\n";
        assert_eq!(tick_filter_from(symbols).as_deref(), Some("function == 0xffffffff814352e0"));
        assert_eq!(tick_filter_from("0000000000000000 t tick_nohz_handler\n"), None);
    }
}
