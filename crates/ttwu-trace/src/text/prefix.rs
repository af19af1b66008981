//! The part of a line that all events share: who, where, when, which event.
//!
//! ```text
//! ftrace      my task-1234  ( 1200) [001] d..2.  1974.329586: sched_wakeup: comm=…
//! trace-cmd   my task-1234  [001]   541.520317256: sched_waking:   comm=…
//!   -l        my task-1234    1dN.4.   541.520330257: sched_wakeup: …
//! perf        my task  1234/1234 [001]  1949.037662812:   sched:sched_switch: prev_comm=…
//!   -L        my task  1234   1  1949.037662812:   sched:sched_switch: …
//! ```
//!
//! A task's name may hold anything, so the line is read from its time stamp to the *left*: flags, CPU, process, pid, and
//! what remains is the name. The time stamp is the first `digits.digits:` for which all of that fits.

use super::flags::FlagColumn;
use super::scan::{Scan, last_word, trim_end, trim_start};
use memchr::memchr;
use ttwu_model::{CpuId, EventFlags, Pid, Time};

/// Whose text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `comm-pid`: the kernel's `trace` file and what was made from it, `trace-cmd report`.
    Ftrace,
    /// `comm pid`: `perf script`.
    Perf,
}

/// The longest event name. Behind each of a line's many time stamps a name is looked for, which must not take time in
/// proportion to the line.
const NAME_MAX: usize = 256;

/// The common part of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    /// The task's name as the tool knew it; may be empty, `<...>`, or cut short.
    pub(super) comm: &'a [u8],
    pub(super) pid: Pid,
    pub(super) tgid: Option<Pid>,
    pub(super) cpu: CpuId,
    pub(super) flags: EventFlags,
    pub(super) at: Time,
    /// Digits behind the decimal point; 0 for a clock that counts something else than time.
    pub(super) decimals: u8,
    /// The event's name, with perf's `system:` if there is one.
    pub(super) event: &'a [u8],
    /// What the event says.
    pub(super) payload: &'a [u8],
    /// A format that cuts names short (to 8 characters).
    pub(super) comm_is_cut: bool,
}

/// Why a line is not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reject {
    Time,
    Cpu,
    CpuTooLarge,
    Task,
    Event,
}

impl Reject {
    /// The name under which such lines are counted.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Time => "line without a time stamp",
            Self::Cpu => "line without a CPU",
            Self::CpuTooLarge => "line with a CPU number above 65535",
            Self::Task => "line without a task",
            Self::Event => "line without an event name",
        }
    }
}

/// Reads the common part of a line.
pub(super) fn parse<'a>(line: &'a [u8], style: Style, flags: &FlagColumn) -> Result<Prefix<'a>, Reject> {
    let mut reject = Reject::Time;
    let mut from = 0;
    while let Some(colon) = memchr(b':', &line[from..]) {
        let colon = from + colon;
        from = colon + 1;
        let Some((start, at, decimals)) = time_before(line, colon) else { continue };
        let found = before_time(&line[..start], style, flags).and_then(|place| {
            let text = trim_start(&line[colon + 1..]);
            let (event, payload) =
                event_after(text, style).or_else(|| nameless(text, style)).ok_or(Reject::Event)?;
            Ok((place, event, payload))
        });
        match found {
            Ok((place, event, payload)) => {
                return Ok(Prefix {
                    comm: trim_start(place.comm),
                    pid: place.pid,
                    tgid: place.tgid,
                    cpu: place.cpu,
                    flags: place.flags,
                    at,
                    decimals,
                    event,
                    payload,
                    comm_is_cut: place.comm_is_cut,
                });
            }
            Err(why) => reject = reject.max(why),
        }
    }
    Err(reject)
}

/// The time stamp that ends at `colon`: where it begins, its value, its decimals.
fn time_before(line: &[u8], colon: usize) -> Option<(usize, Time, u8)> {
    if !line.get(colon + 1).is_none_or(u8::is_ascii_whitespace) {
        return None;
    }
    let digits =
        |end: usize| line[..end].iter().rev().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let last = digits(colon);
    let number = |from: usize, to: usize| Scan::new(&line[from..to]).unsigned();
    let begins = |at: usize| at == 0 || matches!(line[at - 1], b' ' | b'\t');
    let start = colon - last;
    if last == 0 {
        return None;
    }
    if start == 0 || line[start - 1] != b'.' {
        // `trace_clock` counter or a cycle counter: no decimal point.
        let at = Time::from_ns(number(start, colon)?);
        return begins(start).then_some((start, at, 0));
    }
    let whole = digits(start - 1);
    let from = start - 1 - whole;
    if whole == 0 || last > 9 || !begins(from) {
        return None;
    }
    let scale = 10_u64.pow(9 - last as u32);
    let seconds = number(from, start - 1)?.checked_mul(1_000_000_000)?;
    let ns = seconds.checked_add(number(start, colon)? * scale)?;
    Some((from, Time::from_ns(ns), last as u8))
}

/// What stands left of the time stamp.
struct Place<'a> {
    comm: &'a [u8],
    pid: Pid,
    tgid: Option<Pid>,
    cpu: CpuId,
    flags: EventFlags,
    comm_is_cut: bool,
}

fn before_time<'a>(head: &'a [u8], style: Style, flags: &FlagColumn) -> Result<Place<'a>, Reject> {
    match style {
        Style::Ftrace => before_time_ftrace(trim_end(head), flags),
        Style::Perf => before_time_perf(trim_end(head), flags),
    }
}

fn before_time_ftrace<'a>(head: &'a [u8], column: &FlagColumn) -> Result<Place<'a>, Reject> {
    let (before, word) = last_word(head);
    let mut comm_is_cut = false;
    let (before, cpu, flags) = if word.ends_with(b"]") {
        (before, bracketed(word)?, EventFlags::UNKNOWN)
    } else if let Some(at) = memchr::memmem::find(word, b"]-0x") {
        // trace-cmd ≥ 3.2 with raw fields: `[001]-0x2d`, the flag byte itself.
        (before, bracketed(&word[..=at])?, raw_flags(&word[at + 1..]).ok_or(Reject::Cpu)?)
    } else if word.first().is_some_and(u8::is_ascii_digit) {
        comm_is_cut = true;
        let mut scan = Scan::new(word);
        let cpu = scan.unsigned().ok_or(Reject::CpuTooLarge)?;
        let flags = match scan.rest() {
            b"" => EventFlags::UNKNOWN,
            rest => raw_flags(rest).or_else(|| column.parse(rest)).ok_or(Reject::Cpu)?,
        };
        (before, CpuId::try_from(cpu).map_err(|_| Reject::CpuTooLarge)?, flags)
    } else {
        let flags = column.parse(word).ok_or(Reject::Cpu)?;
        let (before, word) = last_word(before);
        (before, bracketed(word)?, flags)
    };
    let (before, tgid) = take_tgid(before)?;
    let digits = before.iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    let dash = before.len() - digits;
    if digits == 0 || dash == 0 || before[dash - 1] != b'-' {
        return Err(Reject::Task);
    }
    let pid = pid(&before[dash..]).ok_or(Reject::Task)?;
    Ok(Place { comm: &before[..dash - 1], pid, tgid, cpu, flags, comm_is_cut })
}

fn before_time_perf<'a>(head: &'a [u8], column: &FlagColumn) -> Result<Place<'a>, Reject> {
    let (mut before, mut word) = last_word(head);
    let mut flags = EventFlags::UNKNOWN;
    if !word.ends_with(b"]")
        && word.iter().any(|byte| !byte.is_ascii_digit())
        && let Some(found) = column.parse(word)
    {
        flags = found;
        (before, word) = last_word(before);
    }
    let (left, left_word) = last_word(before);
    let mut comm_is_cut = false;
    let cpu = if word.ends_with(b"]") {
        bracketed(word)?
    } else if !word.is_empty() && word.iter().all(u8::is_ascii_digit) && perf_task(left_word).is_some() {
        comm_is_cut = true;
        let cpu = Scan::new(word).unsigned().ok_or(Reject::CpuTooLarge)?;
        CpuId::try_from(cpu).map_err(|_| Reject::CpuTooLarge)?
    } else {
        return Err(Reject::Cpu);
    };
    // `-F` may leave out the pid, or all of the task.
    let (comm, (tgid, pid)) = match perf_task(left_word) {
        Some(task) => (left, task),
        None => (before, (None, Pid::UNKNOWN)),
    };
    Ok(Place { comm, pid, tgid, cpu, flags, comm_is_cut })
}

/// The flag byte as a number, `-0x2d`.
fn raw_flags(text: &[u8]) -> Option<EventFlags> {
    let mut scan = Scan::new(text.strip_prefix(b"-")?);
    let bits = scan.rest().starts_with(b"0x").then(|| scan.unsigned()).flatten()?;
    if scan.rest().is_empty() { Some(EventFlags::from_common_flags(u8::try_from(bits).ok()?)) } else { None }
}

/// `1234`, `1200/1234` (process, thread), or `-1` for a task that is gone.
fn perf_task(word: &[u8]) -> Option<(Option<Pid>, Pid)> {
    match memchr(b'/', word) {
        Some(at) => Some((Some(pid(&word[..at])?), pid(&word[at + 1..])?)),
        None => Some((None, pid(word)?)),
    }
}

/// `[001]`.
fn bracketed(word: &[u8]) -> Result<CpuId, Reject> {
    let inner = word.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).ok_or(Reject::Cpu)?;
    if inner.is_empty() || !inner.iter().all(u8::is_ascii_digit) {
        return Err(Reject::Cpu);
    }
    let number = Scan::new(inner).unsigned().ok_or(Reject::CpuTooLarge)?;
    CpuId::try_from(number).map_err(|_| Reject::CpuTooLarge)
}

/// The process column, `( 1234)` or `(-----)`, where there is one.
fn take_tgid(head: &[u8]) -> Result<(&[u8], Option<Pid>), Reject> {
    let Some(inner) = head.strip_suffix(b")") else { return Ok((head, None)) };
    let from = inner.len().saturating_sub(16);
    let open = inner[from..].iter().rposition(|&byte| byte == b'(').ok_or(Reject::Task)? + from;
    let inside = trim_start(&inner[open + 1..]);
    let tgid = if inside.iter().all(|&byte| byte == b'-') {
        None
    } else {
        Some(pid(trim_end(inside)).ok_or(Reject::Task)?)
    };
    Ok((trim_end(&head[..open]), tgid))
}

fn pid(text: &[u8]) -> Option<Pid> {
    let mut scan = Scan::new(text);
    let number = scan.integer().and_then(|number| i32::try_from(number).ok())?;
    scan.rest().is_empty().then_some(Pid::new(number))
}

/// The event's name and what follows it, behind the time stamp's colon.
fn event_after(mut text: &[u8], style: Style) -> Option<(&[u8], &[u8])> {
    if style == Style::Perf {
        // `-F period` puts a number before the event.
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && text.get(digits).is_some_and(|&byte| byte == b' ') {
            text = trim_start(&text[digits..]);
        }
    }
    // trace-cmd's `--ts-diff`: `(+2697)`.
    if text.starts_with(b"(+")
        && let Some(end) = memchr(b')', text)
    {
        text = trim_start(&text[end + 1..]);
    }
    let mut from = 0;
    while let Some(at) = memchr(b':', &text[from..text.len().min(NAME_MAX)]) {
        let at = from + at;
        if text.get(at + 1).is_none_or(u8::is_ascii_whitespace) {
            let name = &text[..at];
            if name.is_empty() || name.iter().any(|&byte| byte == b' ' || byte == b'\t' || byte == b'(') {
                return None;
            }
            return Some((name, trim_end(trim_start(&text[at + 1..]))));
        }
        from = at + 1;
    }
    None
}

/// What ftrace prints without an event's name: system calls (`sys_close(fd: 3)`, `sys_close -> 0x0`) and the function
/// tracer's `function <-caller`.
fn nameless(text: &[u8], style: Style) -> Option<(&[u8], &[u8])> {
    if style == Style::Perf {
        return None;
    }
    let len = text.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
    let (name, rest) = text.split_at(len);
    if name.starts_with(b"sys_") && (rest.starts_with(b"(") || rest.starts_with(b" -> ")) {
        return Some((name, rest));
    }
    let words = memchr::memmem::find(&text[..text.len().min(NAME_MAX)], b" <-")?;
    (!text[..words].contains(&b' ')).then_some((b"function", text))
}
