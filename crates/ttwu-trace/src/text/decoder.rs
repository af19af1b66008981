//! Lines to events in time order.
//!
//! Text is nearly always sorted, but not always: clocks of two CPUs disagree by microseconds, and people put files of single
//! CPUs one behind the other. A window of events is held back and sorted (stably: events of equal time keep their order),
//! which costs nothing while all is in order. Whether the file is disordered on a large scale is seen by samples before
//! the first event is handed out; then all of it is collected and sorted. What still comes too late is moved and said.

use super::event::{Reader, Said, Texts, tracepoint};
use super::header::Header;
use super::lines::{Line, Lines};
use super::prefix::{self, Prefix, Reject, Style};
use super::state::{Evidence, States};
use super::wrapper::Wrapper;
use crate::ReadError;
use crate::source::{Decoder, More, Source};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use ttwu_model::{ClockStep, CpuId, Event, EventFlags, EventKind, LossWindow, Pid, RawEvent, StrId, Time};

/// Events that are held back for sorting.
const WINDOW: usize = 1 << 16;
/// Events that are handed over at once.
const BATCH: usize = 1 << 16;
/// How far into the text evidence for the way states are printed is searched for.
const EVIDENCE_BYTES: u64 = 64 << 20;
/// Places in the file where time is sampled.
const SAMPLES: u64 = 64;
/// Linux's largest pid on 64-bit; a larger one is damage and gets no row in the tables by pid.
const PID_MAX_LIMIT: usize = 4_194_304;
/// Lines between two looks at whether there is a batch.
const FORMAT_FTRACE: &str = "ftrace text";
const FORMAT_PERF: &str = "perf script text";

/// A text format's reader.
pub(super) struct TextDecoder {
    lines: Lines,
    wrapper: Wrapper,
    parser: Parser,
    order: Order,
}

impl TextDecoder {
    /// Looks for evidence on how states are printed, and whether time is in order.
    pub(super) fn open(
        mut lines: Lines,
        wrapper: Wrapper,
        style: Style,
        source: &mut Source,
    ) -> Result<Self, ReadError> {
        let evidence = find_evidence(&mut lines)?;
        let mut notes = Vec::new();
        let states = States::new(&evidence, &mut notes);
        source.health.notes.extend(notes);
        source.meta.format = match (style, evidence.style()) {
            (Style::Ftrace, None) if wrapper.is_html() => "ftrace text in HTML".to_owned(),
            (Style::Ftrace, Some(how)) => format!("ftrace text (trace-cmd report, {how})"),
            (Style::Perf, Some(how)) => format!("perf script text ({how})"),
            (Style::Ftrace, None) => FORMAT_FTRACE.to_owned(),
            (Style::Perf, None) => FORMAT_PERF.to_owned(),
        };
        let in_order = !lines.is_encoded() && samples_in_order(&lines, style)?;
        let order = Order { collect: !in_order, ..Order::default() };
        Ok(Self { lines, wrapper, parser: Parser::new(style, states), order })
    }
}

impl Decoder for TextDecoder {
    fn decode(&mut self, source: &mut Source, out: &mut Vec<RawEvent>) -> Result<More, ReadError> {
        while !self.order.has_batch() {
            match self.lines.next()? {
                Some(Line::Text(line)) => {
                    if let Some(line) = self.wrapper.line(line) {
                        self.parser.line(&line, source, &mut self.order);
                    }
                }
                Some(Line::TooLong) if self.wrapper.is_html() => {}
                Some(Line::TooLong) => source.health.add_unknown("line longer than 1 MiB"),
                None => {
                    self.parser.finish(source, &mut self.order, &self.lines, &self.wrapper)?;
                    self.order.finish(source);
                    self.order.hand_out(out, true);
                    if self.wrapper.skipped > 0 {
                        let skipped = self.wrapper.skipped;
                        source.health.add_note(format!(
                            "{skipped} script elements with JSON or compressed data were not read"
                        ));
                    }
                    return Ok(More::No);
                }
            }
        }
        self.order.hand_out(out, false);
        Ok(More::Yes)
    }
}

/// Reads switches until they show how states are printed; then back to the beginning.
fn find_evidence(lines: &mut Lines) -> Result<Evidence, ReadError> {
    let mut evidence = Evidence::default();
    let finder = memchr::memmem::Finder::new(b"sched_switch: ");
    while let Some(line) = lines.next()? {
        if let Line::Text(line) = line
            && let Some(at) = finder.find(line)
        {
            evidence.add(super::scan::trim_start(&line[at + finder.needle().len()..]));
            if evidence.is_complete() {
                break;
            }
        }
        if lines.offset() > EVIDENCE_BYTES {
            break;
        }
    }
    lines.rewind();
    Ok(evidence)
}

/// Are the times at places all over the file in order? Small files fit the sorting window and need no samples.
fn samples_in_order(lines: &Lines, style: Style) -> Result<bool, ReadError> {
    let input = lines.input();
    let header = Header::new();
    let mut last = Time::ZERO;
    for sample in 0..SAMPLES {
        let block = input.bytes(input.len() / SAMPLES * sample, 8 << 10)?;
        let found = block
            .split(|&byte| byte == b'\n')
            .skip(1)
            .find_map(|line| prefix::parse(line, style, &header.flags).ok());
        if let Some(found) = found {
            if found.at < last {
                return Ok(false);
            }
            last = found.at;
        }
    }
    Ok(true)
}

/// Events on their way into time order.
#[derive(Debug, Default)]
struct Order {
    pending: Vec<RawEvent>,
    /// Does `pending` have to be sorted?
    disordered: bool,
    /// Time of the last event in `pending`, and the largest so far.
    last: Time,
    /// Everything before this time has been handed out.
    handed_out: Time,
    /// Sort all of it at the end.
    collect: bool,
    /// Events that came before one printed earlier.
    misplaced: u64,
    /// Events that came after later ones had been handed out.
    late: u64,
}

impl Order {
    fn push(&mut self, mut event: RawEvent) {
        if event.event.at < self.last {
            self.misplaced += 1;
            self.disordered = true;
            if event.event.at < self.handed_out {
                self.late += 1;
                event.event.at = self.handed_out;
            }
        } else {
            self.last = event.event.at;
        }
        self.pending.push(event);
    }

    fn has_batch(&self) -> bool {
        !self.collect && self.pending.len() >= WINDOW + BATCH
    }

    fn hand_out(&mut self, out: &mut Vec<RawEvent>, all: bool) {
        if std::mem::take(&mut self.disordered) {
            self.pending.sort_by_key(|raw| raw.event.at);
        }
        let len = if all { self.pending.len() } else { self.pending.len() - WINDOW };
        if let Some(last) = self.pending[..len].last() {
            self.handed_out = last.event.at;
        }
        out.extend(self.pending.drain(..len));
    }

    fn finish(&self, source: &mut Source) {
        if self.misplaced > 0 {
            let misplaced = self.misplaced;
            source
                .health
                .add_repair(format!("{misplaced} lines were out of time order and have been sorted in"));
        }
        if self.late > 0 {
            let late = self.late;
            source.health.add_repair(format!(
                "{late} of them came more than {WINDOW} events late and have been moved forward in time"
            ));
        }
    }
}

/// What is known of one CPU.
#[derive(Debug, Clone, Copy)]
struct CpuSeen {
    last: Time,
    /// The task on whose behalf the last event was, to notice names only when they can have changed.
    by: Pid,
    /// Events lost before the next event of this CPU.
    lost: Option<Option<NonZeroU32>>,
}

/// Lines to events.
struct Parser {
    style: Style,
    header: Header,
    states: States,
    texts: Texts,
    cpus: Vec<CpuSeen>,
    /// The last name that the task column showed, by pid, and the process column's.
    names: Vec<Option<StrId>>,
    tgids: Vec<Option<Pid>>,
    events: u64,
    first: Option<Time>,
    decimals: u8,
    rejects: BTreeMap<Reject, u64>,
    first_reject: Option<u64>,
    line: u64,
    /// Inside a call stack, which ends with an empty line.
    in_stack: bool,
    stacks: u64,
    /// Whether the last line that was no event was the file's last, and cut off.
    last_was_rejected: bool,
}

impl Parser {
    fn new(style: Style, states: States) -> Self {
        Self {
            style,
            header: Header::new(),
            states,
            texts: Texts::new(),
            cpus: Vec::new(),
            names: Vec::new(),
            tgids: Vec::new(),
            events: 0,
            first: None,
            decimals: 0,
            rejects: BTreeMap::new(),
            first_reject: None,
            line: 0,
            in_stack: false,
            stacks: 0,
            last_was_rejected: false,
        }
    }

    fn line(&mut self, line: &[u8], source: &mut Source, order: &mut Order) {
        self.line += 1;
        self.last_was_rejected = false;
        if line.starts_with(b"#") || line.is_empty() {
            self.in_stack = false;
            self.header.line(line, source);
            return;
        }
        match prefix::parse(line, self.style, &self.header.flags) {
            // perf's side records (`--show-task-events` …) say nothing of what the scheduler did.
            Ok(found) if found.event.starts_with(b"PERF_RECORD_") => {}
            Ok(found) => {
                self.in_stack = false;
                self.event(&found, source, order);
            }
            Err(reject) => self.other_line(line, reject, source, order),
        }
    }

    fn event(&mut self, found: &Prefix<'_>, source: &mut Source, order: &mut Order) {
        let name = tracepoint(found.event);
        let mut reader =
            Reader { strings: &mut source.strings, texts: &mut self.texts, states: &self.states };
        let Some(Said { kind, names, is_cut }) = reader.read(name, found.payload) else {
            let name = String::from_utf8_lossy(name);
            source.health.add_unknown(&format!("{name} with unreadable fields"));
            return;
        };
        if is_cut || found.payload.starts_with(b"[FAILED TO PARSE]") {
            let why = if is_cut { "cut short" } else { "[FAILED TO PARSE]" };
            source.health.add_unknown(&format!("{} {why}", String::from_utf8_lossy(name)));
        }
        self.events += 1;
        self.first.get_or_insert(found.at);
        self.decimals = self.decimals.max(found.decimals);
        let by = match kind {
            // The task column is a name's and a sampler's view; the event itself says who was running.
            EventKind::Switch { prev, .. } => prev,
            _ => found.pid,
        };
        let event = Event { at: found.at, by, cpu: found.cpu, flags: found.flags, kind };
        self.note_cpu(&event, found, source, order);
        order.push(RawEvent { event, names });
    }

    /// Keeps what the columns say of CPU and task, and puts a loss before the event that follows it.
    fn note_cpu(&mut self, event: &Event<Pid>, found: &Prefix<'_>, source: &mut Source, order: &mut Order) {
        let cpu = event.cpu;
        if self.header.cpu_buffers.is_some_and(|count| cpu.index() as u64 >= count) {
            source.health.foreign_cpu_events += 1;
        }
        let seen = self.seen(cpu);
        let CpuSeen { last, by, lost } = *seen;
        *seen = CpuSeen { last: event.at, by: found.pid, lost: None };
        if event.at < last {
            source.health.add_clock_step(ClockStep { cpu, at: last, back: last.saturating_since(event.at) });
        }
        if let Some(count) = lost {
            order.push(lost_event(event.at, cpu, count));
        }
        if by != found.pid || found.tgid.is_some() {
            self.note_task(found, source);
        }
    }

    fn seen(&mut self, cpu: CpuId) -> &mut CpuSeen {
        let index = cpu.index();
        if index >= self.cpus.len() {
            let none = CpuSeen { last: Time::ZERO, by: Pid::UNKNOWN, lost: None };
            self.cpus.resize(index + 1, none);
        }
        &mut self.cpus[index]
    }

    fn note_task(&mut self, found: &Prefix<'_>, source: &mut Source) {
        let Some(index) = usize::try_from(found.pid.number()).ok().filter(|&pid| pid <= PID_MAX_LIMIT) else {
            return;
        };
        if index >= self.names.len() {
            self.names.resize(index + 1, None);
            self.tgids.resize(index + 1, None);
        }
        if !(found.comm_is_cut && found.comm.len() >= 8)
            && let Some(name) = self.texts.name(found.comm, &mut source.strings)
        {
            self.names[index] = Some(name);
        }
        if let Some(tgid) = found.tgid
            && self.tgids[index] != Some(tgid)
        {
            self.tgids[index] = Some(tgid);
            source.tgids.push((found.pid, tgid));
        }
    }

    /// A line that is no event: a loss, a call stack, a preamble, or something unknown.
    fn other_line(&mut self, line: &[u8], reject: Reject, source: &mut Source, order: &mut Order) {
        let text = line.trim_ascii();
        if text.is_empty() {
            self.in_stack = false;
        } else if let Some((cpu, count)) = lost_line(text) {
            self.seen(cpu).lost = Some(count);
        } else if let Some((cpu, at, count)) = self.lost_record(line) {
            order.push(lost_event(at, cpu, count));
        } else if self.in_stack || is_stack_line(text) {
            self.stacks += u64::from(!std::mem::replace(&mut self.in_stack, true));
        } else if !self.header.line(line, source) && !is_harmless(text) {
            *self.rejects.entry(reject).or_default() += 1;
            self.first_reject.get_or_insert(self.line);
            self.last_was_rejected = true;
        }
    }

    /// `perf script --show-lost-events`: `… [001] 12.345678: PERF_RECORD_LOST lost 23`.
    fn lost_record(&self, line: &[u8]) -> Option<(CpuId, Time, Option<NonZeroU32>)> {
        let at = memchr::memmem::find(line, b": PERF_RECORD_LOST")?;
        // The rest of the line is what an event's would be, if it had a colon.
        let mut event = line[..at + 1].to_vec();
        event.extend_from_slice(b" lost:");
        let found = prefix::parse(&event, self.style, &self.header.flags).ok()?;
        let mut scan = super::scan::Scan::new(&line[at..]);
        let count = if scan.skip_past(b" lost ") { scan.unsigned() } else { None };
        Some((found.cpu, found.at, count.and_then(to_count)))
    }

    /// The end of the text: what is still to be said.
    fn finish(
        &mut self,
        source: &mut Source,
        order: &mut Order,
        lines: &Lines,
        wrapper: &Wrapper,
    ) -> Result<(), ReadError> {
        for index in 0..self.cpus.len() {
            if let (Some(count), Ok(cpu)) = (self.cpus[index].lost, CpuId::try_from(index as u64)) {
                order.push(lost_event(order.last, cpu, count));
            }
        }
        self.refuse_nothing(lines, wrapper)?;
        let health = &mut source.health;
        if self.last_was_rejected && ends_inside_a_line(lines)? {
            health.truncated_at = Some(lines.input().len());
        }
        for (reject, count) in std::mem::take(&mut self.rejects) {
            health.add_unknown(reject.name());
            *health.unknown_records.entry(reject.name().to_owned()).or_default() += count - 1;
        }
        if self.stacks > 0 {
            health.add_note(format!("{} call stacks were skipped", self.stacks));
        }
        self.finish_entries(source);
        if self.events > 0 && self.decimals == 0 {
            source
                .health
                .add_note("time stamps have no decimal point: they count the trace clock's ticks".to_owned());
        }
        // Decimals that were not printed are not known.
        source.meta.resolution_ns = 10_u32.pow(9 - u32::from(self.decimals.min(9)));
        if self.decimals == 0 {
            source.meta.resolution_ns = 1;
        }
        let names = self.names.iter().enumerate();
        source
            .names
            .extend(names.filter_map(|(pid, &name)| Some((Pid::new(i32::try_from(pid).ok()?), name?))));
        Ok(())
    }

    /// What the kernel says of its buffer against what is here.
    fn finish_entries(&self, source: &mut Source) {
        let Some((kept, written)) = self.header.entries else { return };
        if written > kept {
            let at = self.first.unwrap_or(Time::ZERO);
            let overwritten = written - kept;
            source.health.add_loss(LossWindow { cpu: None, from: at, to: at, count: Some(overwritten) });
            source.health.add_note(format!(
                "{overwritten} of {written} events had been overwritten before the first one that is here"
            ));
        }
        if kept > self.events {
            let events = self.events;
            source.health.add_note(format!("the header counts {kept} events, {events} are here: an excerpt"));
        }
    }

    /// Without any event there must be a header, else it was no trace, or one that lacks what is needed.
    fn refuse_nothing(&self, lines: &Lines, wrapper: &Wrapper) -> Result<(), ReadError> {
        if wrapper.is_html() && wrapper.found == 0 {
            let name = lines.input().name();
            let what = match wrapper.skipped {
                0 => "no script element of class trace-data",
                _ => "its trace is JSON or compressed, which ttwu does not read",
            };
            return Err(ReadError::UnknownFormat {
                hint: format!("{name} is HTML without ftrace text: {what}"),
            });
        }
        let Some(line) = self.first_reject else { return Ok(()) };
        if self.events > 0 {
            return Ok(());
        }
        let format = match self.style {
            Style::Ftrace => FORMAT_FTRACE,
            Style::Perf => FORMAT_PERF,
        };
        let most = self.rejects.iter().max_by_key(|&(_, count)| count).map(|(&reject, _)| reject);
        let remedy = match (self.style, most) {
            (Style::Perf, _) => "perf script -F comm,tid,cpu,time,event,trace prints all that is needed",
            (Style::Ftrace, _) => "expected lines like `task-12 [001] d..2. 3.456789: sched_switch: …`",
        };
        let what = format!(
            "none of {} lines is an event (first: {} {line}); {remedy}",
            lines.number(),
            most.map_or("line", Reject::name),
        );
        Err(ReadError::Unsupported { format, what })
    }
}

fn lost_event(at: Time, cpu: CpuId, count: Option<NonZeroU32>) -> RawEvent {
    let kind = EventKind::Lost { count };
    let event = Event { at, by: Pid::UNKNOWN, cpu, flags: EventFlags::UNKNOWN, kind };
    RawEvent { event, names: [None; 2] }
}

fn to_count(count: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX))
}

/// `CPU:1 [LOST 23 EVENTS]` of ftrace, `CPU:1 [23 EVENTS DROPPED]` of trace-cmd, both also without a number.
fn lost_line(text: &[u8]) -> Option<(CpuId, Option<NonZeroU32>)> {
    let mut scan = super::scan::Scan::new(text.strip_prefix(b"CPU:")?);
    let cpu = CpuId::try_from(scan.unsigned()?).ok()?;
    if !scan.literal(b" [") {
        return None;
    }
    let lost = scan.literal(b"LOST ");
    let count = scan.unsigned();
    scan.skip_spaces();
    let known = scan.literal(if lost { b"EVENTS]" } else { b"EVENTS DROPPED]" });
    known.then(|| (cpu, count.and_then(to_count)))
}

/// A frame of a call stack: perf's `ffffffff8100 symbol+0x1 (object)` and `function (inlined)`, ftrace's ` => function`.
fn is_stack_line(text: &[u8]) -> bool {
    if text.starts_with(b"=> ") || text.ends_with(b"(inlined)") {
        return true;
    }
    let hex = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    (4..=16).contains(&hex) && text.get(hex).is_none_or(|&byte| byte == b' ')
}

/// perf's side records that have no colon behind their name.
fn is_harmless(text: &[u8]) -> bool {
    text.starts_with(b"PERF_RECORD_") || memchr::memmem::find(text, b": PERF_RECORD_").is_some()
}

fn ends_inside_a_line(lines: &Lines) -> Result<bool, ReadError> {
    let input = lines.input();
    let last = input.bytes(input.len().saturating_sub(1), 1)?;
    Ok(!lines.is_encoded() && last != b"\n")
}
