//! What every container of ring-buffer pages boils down to, and the decoder over it.

use super::PageLayout;
use super::merge::{Item, Merge};
use super::stream::{ClockMap, CpuStream, PageSource};
use crate::ReadError;
use crate::source::{Decoder, More, Source};
use crate::tracepoint::{Encoding, FormatError, Machine, RawRecord, Symbols, TracepointFormat, Tracepoints};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use ttwu_model::{CpuId, Event, EventFlags, EventKind, LossWindow, Pid, RawEvent, StrId, Time};

/// Events of one batch.
const BATCH: usize = 1 << 16;
/// What all streams together may hold in memory, whatever the file claims.
const MEMORY_MAX: u64 = 2 << 30;
/// What one stream reads at once, memory permitting.
const READ_LEN: u64 = 256 << 10;

/// One CPU's pages in one buffer.
pub(crate) struct CpuPages {
    pub(crate) cpu: CpuId,
    pub(crate) layout: PageLayout,
    pub(crate) source: Box<dyn PageSource>,
}

/// What the kernel counted for one CPU's buffer (`per_cpu/cpuN/stats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CpuStats {
    /// Events overwritten before they were read.
    pub(crate) overrun: u64,
    /// Events lost to nesting interrupts.
    pub(crate) commit_overrun: u64,
    /// Events refused by a full buffer.
    pub(crate) dropped: u64,
}

impl CpuStats {
    /// Reads the text of a `stats` file; absent counters are 0, as older kernels have fewer.
    pub(crate) fn parse(text: &str) -> Self {
        let mut stats = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let place = match name.trim() {
                "overrun" => &mut stats.overrun,
                "commit overrun" => &mut stats.commit_overrun,
                "dropped events" => &mut stats.dropped,
                _ => continue,
            };
            *place = value.trim().parse().unwrap_or(0);
        }
        stats
    }

    fn lost(self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }

    /// Both together, for CPUs with several buffers.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            overrun: self.overrun.saturating_add(other.overrun),
            commit_overrun: self.commit_overrun.saturating_add(other.commit_overrun),
            dropped: self.dropped.saturating_add(other.dropped),
        }
    }
}

/// A recording of ring-buffer pages, its container understood.
pub(crate) struct Recording {
    pub(crate) formats: Vec<TracepointFormat>,
    pub(crate) machine: Machine,
    pub(crate) symbols: Symbols,
    pub(crate) clock: ClockMap,
    pub(crate) pages: Vec<CpuPages>,
    pub(crate) stats: BTreeMap<CpuId, CpuStats>,
    /// Names noted at the end of the recording.
    pub(crate) names: Vec<(Pid, String)>,
    pub(crate) tgids: Vec<(Pid, Pid)>,
}

/// How much each of `streams` streams may hold.
pub(crate) fn memory_share(streams: usize) -> u64 {
    MEMORY_MAX / streams.max(1) as u64
}

impl Recording {
    fn into_parts(self, format: &'static str, source: &mut Source) -> Result<RecordingParts, ReadError> {
        let share = memory_share(self.pages.len());
        let largest = self.pages.iter().map(|pages| pages.layout.size() as u64).max().unwrap_or(0);
        if share < largest.saturating_mul(4) {
            let what = format!(
                "{} buffers with pages of {largest} bytes are more than {MEMORY_MAX} bytes to read side by side",
                self.pages.len()
            );
            return Err(ReadError::Unsupported { format, what });
        }
        let want = usize::try_from(READ_LEN.min(share / 2)).expect("small");
        let streams = self
            .pages
            .into_iter()
            .map(|pages| CpuStream::new(pages.cpu, pages.layout, self.clock, pages.source, want))
            .collect();
        let tracepoints = Tracepoints::new(self.formats, &self.machine, self.symbols, source);
        Ok(RecordingParts {
            merge: Merge::new(streams),
            tracepoints,
            stats: self.stats,
            names: self.names,
            tgids: self.tgids,
        })
    }

    /// The decoder of it.
    ///
    /// # Errors
    /// When the file claims so many or so large buffers that reading them side by side would fill the memory.
    pub(crate) fn decoder(
        self,
        format: &'static str,
        source: &mut Source,
    ) -> Result<Box<dyn Decoder>, ReadError> {
        let parts = self.into_parts(format, source)?;
        Ok(Box::new(RingDecoder { parts, unformatted: Unformatted::default(), counted: BTreeMap::new() }))
    }

    /// Shows every described record to `visit`; losses go to the health.
    ///
    /// # Errors
    /// As [`Recording::decoder`], and the operating system's.
    pub(crate) fn walk(
        self,
        format: &'static str,
        source: &mut Source,
        visit: &mut dyn FnMut(&RawRecord<'_>),
    ) -> Result<(), ReadError> {
        let RecordingParts { mut merge, tracepoints, .. } = self.into_parts(format, source)?;
        let mut last = BTreeMap::new();
        while let Some(item) = merge.advance(&mut source.health)? {
            match item {
                Item::Record { at, cpu, payload } => {
                    match tracepoints.index_of_record(payload) {
                        Some(index) => {
                            let format = &tracepoints.formats()[index];
                            visit(&RawRecord { at, cpu, format, payload });
                        }
                        None => source.health.add_unknown("record of a tracepoint without a format"),
                    }
                    last.insert(cpu, at);
                }
                Item::Lost { at, cpu, count } => {
                    let from = last.get(&cpu).copied().unwrap_or(at);
                    source.health.add_loss(LossWindow { cpu: Some(cpu), from, to: at, count });
                }
            }
        }
        Ok(())
    }
}

/// A [`Recording`] ready to be read.
struct RecordingParts {
    merge: Merge,
    tracepoints: Tracepoints,
    stats: BTreeMap<CpuId, CpuStats>,
    names: Vec<(Pid, String)>,
    tgids: Vec<(Pid, Pid)>,
}

/// Losses of one CPU that have an event in the trace.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    events: u64,
    uncounted_gaps: u64,
}

struct RingDecoder {
    parts: RecordingParts,
    unformatted: Unformatted,
    counted: BTreeMap<CpuId, Counted>,
}

impl Decoder for RingDecoder {
    fn decode(&mut self, source: &mut Source, out: &mut Vec<RawEvent>) -> Result<More, ReadError> {
        out.reserve(BATCH);
        let RecordingParts { merge, tracepoints, .. } = &mut self.parts;
        while out.len() < BATCH {
            match merge.advance(&mut source.health)? {
                Some(Item::Record { at, cpu, payload }) => match tracepoints.index_of_record(payload) {
                    Some(index) => out.push(tracepoints.event(index, payload, at, cpu, source)),
                    None => out.push(self.unformatted.event(tracepoints.formats(), payload, at, cpu, source)),
                },
                Some(Item::Lost { at, cpu, count }) => {
                    let counted = self.counted.entry(cpu).or_default();
                    match count {
                        Some(count) => counted.events = counted.events.saturating_add(count),
                        None => counted.uncounted_gaps += 1,
                    }
                    let count =
                        count.and_then(|count| NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX)));
                    let kind = EventKind::Lost { count };
                    let event = Event { at, by: Pid::UNKNOWN, cpu, flags: EventFlags::UNKNOWN, kind };
                    out.push(RawEvent { event, names: [None; 2] });
                }
                None => {
                    self.end(source);
                    return Ok(More::No);
                }
            }
        }
        Ok(More::Yes)
    }
}

/// Records of tracepoints that the recording does not describe: damage, an event whose module was unloaded, or a copy
/// without all of the format files. They are events all the same, of an unknown kind.
#[derive(Debug, Default)]
struct Unformatted {
    names: BTreeMap<u16, StrId>,
}

impl Unformatted {
    /// What all tracepoints have in common is read as the described ones have it.
    #[cold]
    fn event(
        &mut self,
        formats: &[TracepointFormat],
        payload: &[u8],
        at: Time,
        cpu: CpuId,
        source: &mut Source,
    ) -> RawEvent {
        let common = |name: &str| formats.first()?.field(name)?.read(payload)?.as_i64();
        let id = common("common_type").and_then(|id| u16::try_from(id).ok());
        let by = common("common_pid").and_then(|pid| i32::try_from(pid).ok()).map_or(Pid::UNKNOWN, Pid::new);
        let flags = common("common_flags").and_then(|flags| u8::try_from(flags).ok());
        let text = match id {
            Some(id) => format!("tracepoint {id} (no format)"),
            None => "record without a type".to_owned(),
        };
        source.health.add_unknown(&text);
        let name = *self.names.entry(id.unwrap_or(u16::MAX)).or_insert_with(|| source.strings.intern(&text));
        let flags = flags.map_or(EventFlags::UNKNOWN, EventFlags::from_common_flags);
        let event = Event { at, by, cpu, flags, kind: EventKind::Other { name } };
        RawEvent { event, names: [None; 2] }
    }
}

impl RingDecoder {
    /// What is only known at the end.
    fn end(&mut self, source: &mut Source) {
        for (pid, name) in std::mem::take(&mut self.parts.names) {
            let name = source.strings.intern(&name);
            source.names.push((pid, name));
        }
        source.tgids.append(&mut self.parts.tgids);
        for (&cpu, &stats) in &self.parts.stats {
            let counted = self.counted.get(&cpu).copied().unwrap_or_default();
            let elsewhere = stats.lost().saturating_sub(counted.events);
            if elsewhere == 0 {
                continue;
            }
            source.health.lost_events = source.health.lost_events.saturating_add(elsewhere);
            let place = match counted.uncounted_gaps {
                0 => "at no known place".to_owned(),
                gaps => format!("in gaps without a count ({gaps}) or at no known place"),
            };
            source.health.add_note(format!(
                "cpu {cpu}: the kernel counted {} lost events (overrun {}, commit overrun {}, dropped {}), {elsewhere} \
                 of them {place}",
                stats.lost(),
                stats.overrun,
                stats.commit_overrun,
                stats.dropped
            ));
        }
    }
}

/// Parses format texts, given as (system, text). One that cannot be read is said in the health and left out.
pub(crate) fn parse_formats<'a>(
    texts: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    layout: &PageLayout,
    source: &mut Source,
) -> Vec<TracepointFormat> {
    let long_bytes = u8::try_from(layout.long_len()).expect("4 or 8");
    let encoding = Encoding { endian: layout.order(), long_bytes };
    let parse = |(system, text): (&str, &[u8])| match TracepointFormat::parse(system, text, encoding) {
        Ok(format) => Some(format),
        Err(error) => {
            note_bad_format(system, &error, source);
            None
        }
    };
    texts.into_iter().filter_map(parse).collect()
}

fn note_bad_format(system: &str, error: &FormatError, source: &mut Source) {
    source.health.add_repair(format!("a format of system `{system}` is left out: {error}"));
}

/// Reads `saved_cmdlines`: a line has a pid and the task's name, which may contain spaces.
pub(crate) fn parse_names(text: &[u8]) -> Vec<(Pid, String)> {
    let text = String::from_utf8_lossy(text);
    let line = |line: &str| {
        let (pid, name) = line.trim_start().split_once(' ')?;
        Some((Pid::new(pid.parse().ok()?), name.to_owned()))
    };
    text.lines().filter_map(line).filter(|(_, name)| !name.is_empty() && name != "<...>").collect()
}

/// Reads `saved_tgids`: a line has a thread and its process.
pub(crate) fn parse_tgids(text: &[u8]) -> Vec<(Pid, Pid)> {
    let text = String::from_utf8_lossy(text);
    let line = |line: &str| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<i32>);
        Some((Pid::new(numbers.next()?.ok()?), Pid::new(numbers.next()?.ok()?)))
    };
    text.lines().filter_map(line).collect()
}

/// The clock in brackets in the text of `trace_clock`: `[local] global counter …`.
pub(crate) fn chosen_clock(trace_clock: &str) -> Option<&str> {
    let (_, rest) = trace_clock.split_once('[')?;
    Some(rest.split_once(']')?.0.trim())
}

/// Says in the metadata which clock it is, and in the health if it does not count nanoseconds.
pub(crate) fn note_clock(clock: Option<&str>, scaled: bool, source: &mut Source) {
    let Some(clock) = clock.filter(|clock| !clock.is_empty()) else { return };
    source.meta.clock = Some(clock.to_owned());
    let nanoseconds = ["local", "global", "uptime", "perf", "boot", "tai", "tsc2nsec"].contains(&clock)
        || clock.starts_with("mono");
    if !nanoseconds && !scaled {
        source.health.add_repair(format!(
            "clock `{clock}` does not count nanoseconds: times and lengths are in its own ticks; record with `-C mono`"
        ));
    }
}
