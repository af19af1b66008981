//! Are two traces of one run equal?
//!
//! One run can be in several files: perf.data and what `perf script` printed of it, ring-buffer pages and ftrace's text.
//! Read by different code, they must give the same trace; that is the strongest test a reader has. What a format cannot
//! carry is named, one by one, in [`Lenience`]; whatever is not named there must be equal.
//!
//! Tasks are the same if pid and incarnation are, strings if their text is. Events are compared CPU by CPU: which of two
//! events of different CPUs at the same time comes first is up to the tool that merged them.
//!
//! What this does not do: compare what traces say of themselves ([`TraceMeta`](crate::TraceMeta),
//! [`TraceHealth`](crate::TraceHealth), notes): two formats rightly say different things there.

use crate::{
    CpuId, Event, EventFlags, EventKind, Pid, StateLetter, StrId, Strings, TaskId, TaskState, Time, Trace,
};
use std::collections::BTreeMap;
use std::fmt;

/// What counts as equal where one side does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhereUnknown {
    /// Both sides must know the same, or nothing.
    Differs,
    /// What one side does not know is not compared.
    Matches,
}

/// What two traces may differ in, since a format cannot carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lenience {
    /// Times up to this many ns apart are equal: half a step of the coarser clock where it was rounded, a step where it
    /// was cut off.
    pub time_ns: u64,
    /// Event flags.
    pub flags: WhereUnknown,
    /// Bits of the flags that are not compared, where a text column merges them.
    pub flags_ignored: u8,
    /// Letter and `+` of task states.
    pub states: WhereUnknown,
    /// In whose context an event was emitted.
    pub by: WhereUnknown,
    /// Strings (call sites, functions, reasons), and what hangs on them.
    pub strings: WhereUnknown,
    /// Whether losses are part of the comparison; some texts do not print them.
    pub lost: WhereUnknown,
}

impl Lenience {
    /// None at all.
    pub const NONE: Self = Self {
        time_ns: 0,
        flags: WhereUnknown::Differs,
        flags_ignored: 0,
        states: WhereUnknown::Differs,
        by: WhereUnknown::Differs,
        strings: WhereUnknown::Differs,
        lost: WhereUnknown::Differs,
    };
}

/// The first difference of two traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// When, by the first trace (by the second, where the first has no such event).
    pub at: Time,
    /// On which CPU.
    pub cpu: CpuId,
    /// What differs, as `first, second`.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu {} at {:?}: {}", self.cpu, self.at, self.what)
    }
}

/// A task independent of its trace: its pid, and which of the tasks with that pid.
type Who = (Pid, u32);

/// One trace, its tasks and strings made comparable.
struct Side<'a> {
    trace: &'a Trace,
    who: Vec<Who>,
    strings: Vec<StrId>,
    /// Indices of each CPU's events.
    by_cpu: BTreeMap<CpuId, Vec<usize>>,
}

impl Trace {
    /// The first difference from `other` that `lenience` does not allow, in time order; `None` if they are equal.
    #[must_use]
    pub fn difference(&self, other: &Self, lenience: Lenience) -> Option<Difference> {
        let mut strings = Strings::new();
        let left = Side::new(self, lenience, &mut strings);
        let right = Side::new(other, lenience, &mut strings);
        let cpus = left.by_cpu.keys().chain(right.by_cpu.keys());
        let mut cpus: Vec<CpuId> = cpus.copied().collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus.into_iter()
            .filter_map(|cpu| left.difference_on(&right, cpu, lenience, &strings))
            .min_by_key(|found| found.at)
    }
}

impl<'a> Side<'a> {
    fn new(trace: &'a Trace, lenience: Lenience, joint: &mut Strings) -> Self {
        let strings = trace.strings().iter().map(|(_, text)| joint.intern(text)).collect();
        let mut by_cpu: BTreeMap<CpuId, Vec<usize>> = BTreeMap::new();
        let mut has_events = vec![false; trace.tasks().len()];
        for (index, event) in trace.events().iter().enumerate() {
            if lenience.lost == WhereUnknown::Matches && matches!(event.kind, EventKind::Lost { .. }) {
                continue;
            }
            by_cpu.entry(event.cpu).or_default().push(index);
            for task in event.kind.tasks().into_iter().flatten().chain([event.by]) {
                has_events[task.index()] = true;
            }
        }
        // Tasks that only side records name have no incarnation to count.
        let mut incarnations: BTreeMap<Pid, u32> = BTreeMap::new();
        let who = trace.tasks().iter().map(|(task, info)| {
            let next = incarnations.entry(info.pid).or_default();
            let who = (info.pid, *next);
            *next += u32::from(has_events[task.index()]);
            who
        });
        let who = who.collect();
        Self { trace, who, strings, by_cpu }
    }

    fn difference_on(
        &self,
        other: &Self,
        cpu: CpuId,
        lenience: Lenience,
        strings: &Strings,
    ) -> Option<Difference> {
        let none = Vec::new();
        let (left, right) = (self.by_cpu.get(&cpu).unwrap_or(&none), other.by_cpu.get(&cpu).unwrap_or(&none));
        for (nth, (&a, &b)) in left.iter().zip(right).enumerate() {
            if let Some(what) = self.event_difference(a, other, b, lenience, strings) {
                let at = self.trace.events()[a].at;
                return Some(Difference { at, cpu, what: format!("event {nth} of this CPU: {what}") });
            }
        }
        let (longer, index, which) = match left.len().cmp(&right.len()) {
            std::cmp::Ordering::Equal => return None,
            std::cmp::Ordering::Greater => (self, left[right.len()], "first"),
            std::cmp::Ordering::Less => (other, right[left.len()], "second"),
        };
        let event = longer.event(index);
        let counts = format!("{} events, {} events", left.len(), right.len());
        let what = format!("{counts}; only in the {which}: {}", show_kind(event.kind, strings));
        Some(Difference { at: event.at, cpu, what })
    }

    /// An event with comparable tasks and strings.
    fn event(&self, index: usize) -> Event<Who> {
        let event = self.trace.events()[index];
        let mut event = event.map_tasks(|task| self.who[task.index()]);
        event.kind = event.kind.map_strings(|id| self.strings[id.index()]);
        event
    }

    /// The text of a task's name at an event, by the joint strings.
    fn name(&self, task: TaskId, at: Time) -> Option<StrId> {
        self.trace.tasks().name_at(task, at).map(|name| self.strings[name.index()])
    }

    fn event_difference(
        &self,
        index: usize,
        other: &Self,
        other_index: usize,
        lenience: Lenience,
        strings: &Strings,
    ) -> Option<String> {
        let (mut a, mut b) = (self.event(index), other.event(other_index));
        soften(&mut a, &mut b, lenience);
        if a.kind != b.kind {
            return Some(format!("{}, {}", show_kind(a.kind, strings), show_kind(b.kind, strings)));
        }
        let name = a.kind.tracepoint().unwrap_or("event");
        if a.at.as_ns().abs_diff(b.at.as_ns()) > lenience.time_ns {
            return Some(format!("time of {name}: {:?}, {:?}", a.at, b.at));
        }
        if a.by != b.by {
            return Some(format!("context of {name}: {:?}, {:?}", a.by, b.by));
        }
        if a.flags != b.flags {
            let (a, b) = (a.flags.common_flags(), b.flags.common_flags());
            return Some(format!("flags of {name}: {a:02x?}, {b:02x?}"));
        }
        let (left, right) = (&self.trace.events()[index], &other.trace.events()[other_index]);
        for (a, b) in left.kind.tasks().into_iter().zip(right.kind.tasks()) {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let (name_a, name_b) = (self.name(a, left.at), other.name(b, right.at));
            if name_a != name_b {
                let text = |name: Option<StrId>| name.map_or("(none)", |name| strings.get(name));
                let who = self.who[a.index()].0;
                return Some(format!("name of pid {who} in {name}: {:?}, {:?}", text(name_a), text(name_b)));
            }
        }
        None
    }
}

/// Makes equal what the lenience allows to differ.
fn soften(a: &mut Event<Who>, b: &mut Event<Who>, lenience: Lenience) {
    let matches = |aspect: WhereUnknown| aspect == WhereUnknown::Matches;
    if matches(lenience.by) && (a.by.0 == Pid::UNKNOWN || b.by.0 == Pid::UNKNOWN) {
        b.by = a.by;
    }
    match (a.flags.common_flags(), b.flags.common_flags()) {
        (Some(left), Some(right)) => {
            a.flags = EventFlags::from_common_flags(left & !lenience.flags_ignored);
            b.flags = EventFlags::from_common_flags(right & !lenience.flags_ignored);
        }
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) if matches(lenience.flags) => b.flags = a.flags,
        (Some(_), None) | (None, Some(_)) => {}
    }
    if matches(lenience.states)
        && let (EventKind::Switch { prev_state: left, .. }, EventKind::Switch { prev_state: right, .. }) =
            (&mut a.kind, &mut b.kind)
    {
        let either_unknown = left.letter() == StateLetter::Unknown || right.letter() == StateLetter::Unknown;
        let letters =
            if either_unknown { [StateLetter::Unknown; 2] } else { [left.letter(), right.letter()] };
        let either_unknown = left.preempted().is_none() || right.preempted().is_none();
        let preempted = if either_unknown { [None; 2] } else { [left.preempted(), right.preempted()] };
        *left = TaskState::new(letters[0], preempted[0]);
        *right = TaskState::new(letters[1], preempted[1]);
    }
    if matches(lenience.strings) {
        soften_strings(&mut a.kind, &mut b.kind);
    }
}

/// A string that one side does not have is not compared.
fn soften_strings(a: &mut EventKind<Who>, b: &mut EventKind<Who>) {
    fn both(a: &mut Option<StrId>, b: &mut Option<StrId>) {
        if a.is_none() || b.is_none() {
            (*a, *b) = (None, None);
        }
    }
    if let (EventKind::IpiSendMask { mask, .. }, EventKind::IpiSendMask { mask: other, .. }) =
        (&mut *a, &mut *b)
    {
        both(mask, other);
    }
    if let (EventKind::Exec { file: a, .. }, EventKind::Exec { file: b, .. })
    | (EventKind::IpiSend { callsite: a, .. }, EventKind::IpiSend { callsite: b, .. })
    | (EventKind::IpiSendMask { callsite: a, .. }, EventKind::IpiSendMask { callsite: b, .. })
    | (EventKind::IrqEntry { name: a, .. }, EventKind::IrqEntry { name: b, .. })
    | (EventKind::WorkEnd { function: a }, EventKind::WorkEnd { function: b }) = (a, b)
    {
        both(a, b);
    }
}

/// A kind with its strings spelled out.
fn show_kind(kind: EventKind<Who>, strings: &Strings) -> String {
    let mut texts = Vec::new();
    let _ = kind.map_strings(|id| {
        texts.push(strings.get(id));
        id
    });
    let texts = if texts.is_empty() { String::new() } else { format!(" {texts:?}") };
    format!("{kind:?}{texts}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prio, RawEvent, TraceBuilder};

    fn trace(events: &[(u64, u16, EventKind<Pid>)], flags: EventFlags, name: &str) -> Trace {
        let mut builder = TraceBuilder::new();
        // Ids differ between traces.
        builder.strings.intern(&format!("only here: {name} {flags:?}"));
        let id = builder.strings.intern(name);
        for &(at, cpu, kind) in events {
            let event = Event { at: Time::from_ns(at), by: Pid::new(1), cpu: CpuId::new(cpu), flags, kind };
            builder.push(&RawEvent { event, names: [Some(id), None] });
        }
        builder.finish()
    }

    fn waking(pid: i32) -> EventKind<Pid> {
        EventKind::Waking { wakee: Pid::new(pid), prev_cpu: CpuId::new(0), prio: Prio::UNKNOWN }
    }

    fn switch(letter: StateLetter, preempted: Option<bool>) -> EventKind<Pid> {
        let state = TaskState::new(letter, preempted);
        let (prio, prev, next) = (Prio::UNKNOWN, Pid::new(5), Pid::IDLE);
        EventKind::Switch { prev, next, prev_state: state, prev_prio: prio, next_prio: prio }
    }

    /// Two traces, what differs without lenience, and a lenience under which nothing does.
    fn check(a: &Trace, b: &Trace, strict: &str, lenience: Lenience) {
        let found = a.difference(b, Lenience::NONE).map_or_else(String::new, |found| found.to_string());
        assert_eq!(found, strict);
        let found = a.difference(b, lenience).map(|found| found.to_string());
        assert_eq!(found, None);
    }

    #[test]
    fn equal_traces_with_other_ids_and_another_order_of_cpus() {
        let flags = EventFlags::from_common_flags(1);
        let a = trace(&[(5, 0, waking(7)), (5, 1, waking(8))], flags, "x");
        let b = trace(&[(5, 1, waking(8)), (5, 0, waking(7))], flags, "x");
        check(&a, &b, "", Lenience::NONE);
    }

    #[test]
    fn each_lenience_allows_its_own_difference() {
        let known = EventFlags::from_common_flags(0x25);
        let base = trace(&[(1004, 3, waking(7))], known, "x");
        let by_time = trace(&[(1000, 3, waking(7))], known, "x");
        let time =
            "cpu 3 at 0.000001004s: event 0 of this CPU: time of sched_waking: 0.000001004s, 0.000001000s";
        check(&base, &by_time, time, Lenience { time_ns: 4, ..Lenience::NONE });

        let by_flags = trace(&[(1004, 3, waking(7))], EventFlags::UNKNOWN, "x");
        let flags = "cpu 3 at 0.000001004s: event 0 of this CPU: flags of sched_waking: Some(25), None";
        check(&base, &by_flags, flags, Lenience { flags: WhereUnknown::Matches, ..Lenience::NONE });

        let by_bit = trace(&[(1004, 3, waking(7))], EventFlags::from_common_flags(0x05), "x");
        let bit = "cpu 3 at 0.000001004s: event 0 of this CPU: flags of sched_waking: Some(25), Some(05)";
        check(&base, &by_bit, bit, Lenience { flags_ignored: 0x20, ..Lenience::NONE });

        let exact = trace(&[(9, 0, switch(StateLetter::Running, Some(true)))], known, "x");
        let vague = trace(&[(9, 0, switch(StateLetter::Running, None))], known, "x");
        let found = exact.difference(&vague, Lenience::NONE).unwrap();
        assert!(found.what.contains("prev_state: R+") && found.what.contains("prev_state: R,"), "{found}");
        let states = Lenience { states: WhereUnknown::Matches, ..Lenience::NONE };
        assert_eq!(exact.difference(&vague, states), None);
        let other = trace(&[(9, 0, switch(StateLetter::Sleeping, None))], known, "x");
        assert!(exact.difference(&other, states).is_some());
    }

    #[test]
    fn names_and_missing_events_are_differences() {
        let flags = EventFlags::UNKNOWN;
        let a = trace(&[(5, 0, waking(7)), (6, 0, waking(7))], flags, "x");
        let renamed = trace(&[(5, 0, waking(7)), (6, 0, waking(7))], flags, "y");
        let name = "cpu 0 at 0.000000005s: event 0 of this CPU: name of pid 7 in sched_waking: \"x\", \"y\"";
        assert_eq!(a.difference(&renamed, Lenience::NONE).unwrap().to_string(), name);
        let short = trace(&[(5, 0, waking(7))], flags, "x");
        let missing = a.difference(&short, Lenience::NONE).unwrap();
        assert_eq!(missing.at, Time::from_ns(6));
        assert!(missing.what.starts_with("2 events, 1 events; only in the first: Waking"), "{missing}");
    }

    #[test]
    fn losses_can_be_left_out() {
        let a =
            trace(&[(5, 0, waking(7)), (6, 0, EventKind::Lost { count: None })], EventFlags::UNKNOWN, "x");
        let b = trace(&[(5, 0, waking(7))], EventFlags::UNKNOWN, "x");
        let lost = "cpu 0 at 0.000000006s: 2 events, 1 events; only in the first: Lost { count: None }";
        check(&a, &b, lost, Lenience { lost: WhereUnknown::Matches, ..Lenience::NONE });
    }
}
