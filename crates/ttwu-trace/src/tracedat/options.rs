//! trace.dat's options: small facts, each with an id, that versions 6 and 7 share.
//!
//! | id | what | here |
//! |---|---|---|
//! | 1 date, 7 offset, 14 TSC to ns | how stamps become times | applied as `trace-cmd report` applies them |
//! | 2 CPU statistics, 4 clocks, 5 uname, 8 CPU count, 9 recorder | facts | metadata and health |
//! | 3 buffer, 22 text buffer | where the data lies | the version's own reader |
//! | 12 time shift, 13 guest | virtual machines recorded together | said, not applied: only the peer's file gives it sense |
//! | 6 hooks, 10 memory maps, 11 session id | | nothing that ttwu uses |

use super::FORMAT;
use super::reader::Reader;
use crate::ring::{ClockMap, CpuStats, chosen_clock};
use crate::{Input, ReadError};
use std::collections::BTreeMap;
use ttwu_model::{CpuId, TraceHealth};

pub(super) const DONE: u16 = 0;
pub(super) const BUFFER: u16 = 3;
pub(super) const HEADER_INFO: u16 = 16;
pub(super) const FTRACE_EVENTS: u16 = 17;
pub(super) const EVENT_FORMATS: u16 = 18;
pub(super) const KALLSYMS: u16 = 19;
pub(super) const PRINTK: u16 = 20;
pub(super) const CMDLINES: u16 = 21;
pub(super) const BUFFER_TEXT: u16 = 22;

const DATE: u16 = 1;
const CPU_STATS: u16 = 2;
const TRACE_CLOCK: u16 = 4;
const UNAME: u16 = 5;
const HOOK: u16 = 6;
const OFFSET: u16 = 7;
const CPU_COUNT: u16 = 8;
const VERSION: u16 = 9;
const PROC_MAPS: u16 = 10;
const TRACE_ID: u16 = 11;
const TIME_SHIFT: u16 = 12;
const GUEST: u16 = 13;
const TSC_TO_NS: u16 = 14;

/// One option's bytes.
pub(super) struct RawOption {
    pub(super) id: u16,
    pub(super) data: Input,
}

impl RawOption {
    /// Reads the next option; version 6 ends its list with a bare id 0.
    pub(super) fn read(reader: &mut Reader<'_>, bare_end: bool) -> Result<Self, ReadError> {
        let id = reader.u16("an option's id")?;
        let name = reader.input().name();
        if bare_end && id == DONE {
            return Ok(Self { id, data: Input::from_bytes(Vec::new(), name) });
        }
        let len = reader.u32("an option's size")?;
        let data = reader.bytes(u64::from(len), &format!("option {id}"))?;
        Ok(Self { id, data: Input::from_bytes(data, name) })
    }

    fn text(&self) -> Result<String, ReadError> {
        let bytes = self.data.bytes(0, u64::MAX)?;
        let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..len]).trim().to_owned())
    }
}

/// What the options of a file say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Options {
    pub(super) clock: Option<String>,
    pub(super) uname: Option<String>,
    pub(super) recorder: Option<String>,
    pub(super) cpu_count: Option<u32>,
    pub(super) stats: BTreeMap<CpuId, CpuStats>,
    /// Nanoseconds added to all times.
    offset_ns: i64,
    tsc: Option<(u32, u32)>,
}

impl Options {
    /// Takes in an option that both versions have. Buffers and sections are the caller's.
    pub(super) fn take(
        &mut self,
        option: &RawOption,
        order: crate::tracepoint::Endian,
        health: &mut TraceHealth,
    ) -> Result<(), ReadError> {
        let mut reader = Reader::new(&option.data, 0, order, "option");
        match option.id {
            DATE => self.add_offset(&option.text()?, 1000, health),
            OFFSET => self.add_offset(&option.text()?, 1, health),
            CPU_STATS => {
                let text = option.text()?;
                let cpu = text.lines().find_map(|line| line.trim().strip_prefix("CPU:")?.trim().parse().ok());
                if let Some(cpu) = cpu {
                    let stats = self.stats.entry(CpuId::new(cpu)).or_default();
                    *stats = stats.and(CpuStats::parse(&text));
                }
            }
            TRACE_CLOCK => self.clock = chosen_clock(&option.text()?).map(str::to_owned),
            UNAME => self.uname = Some(option.text()?),
            VERSION => self.recorder = Some(option.text()?),
            CPU_COUNT => self.cpu_count = Some(reader.u32("the CPU count")?),
            TSC_TO_NS if option.data.len() >= 16 => {
                self.tsc = Some((reader.u32("the multiplier")?, reader.u32("the shift")?));
            }
            TIME_SHIFT => health.add_note(format!(
                "{FORMAT}: recorded in a virtual machine together with its host; times are the guest's own"
            )),
            GUEST => {
                let name = reader.string("the guest's name").unwrap_or_default();
                health.add_note(format!(
                    "{FORMAT}: virtual machine `{name}` was recorded too; its virtual CPUs are not matched to tasks"
                ));
            }
            HOOK | PROC_MAPS | TRACE_ID => {}
            unknown => {
                health.add_note(format!("{FORMAT}: option {unknown} is not known and was passed over"));
            }
        }
        Ok(())
    }

    /// A number in C's notation, decimal or hexadecimal, in units of `unit_ns`.
    fn add_offset(&mut self, text: &str, unit_ns: i64, health: &mut TraceHealth) {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(u64::cast_signed),
            None => digits.parse::<i64>().ok(),
        };
        match value {
            Some(value) => {
                let value = if negative { value.wrapping_neg() } else { value };
                self.offset_ns = self.offset_ns.wrapping_add(value.wrapping_mul(unit_ns));
            }
            None => {
                health.add_repair(format!("{FORMAT}: the time offset `{text}` is no number and was ignored"));
            }
        }
    }

    /// How stamps become times.
    pub(super) fn clock_map(&self) -> ClockMap {
        match self.tsc {
            Some((mult @ 1.., shift)) => ClockMap { mult, shift, offset: self.offset_ns },
            Some((0, _)) | None => ClockMap { offset: self.offset_ns, ..ClockMap::IDENTITY },
        }
    }

    /// Are stamps scaled to nanoseconds?
    pub(super) fn is_scaled(&self) -> bool {
        matches!(self.tsc, Some((1.., _)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracepoint::Endian;

    fn taken(options: &[(u16, &[u8])], order: Endian) -> (Options, TraceHealth) {
        let mut all = Options::default();
        let mut health = TraceHealth::default();
        for &(id, data) in options {
            let option = RawOption { id, data: Input::from_bytes(data.to_vec(), "option") };
            all.take(&option, order, &mut health).expect("sound");
        }
        (all, health)
    }

    #[test]
    fn dates_are_microseconds_and_offsets_nanoseconds() {
        let check = |options: &[(u16, &[u8])], expect: ClockMap| {
            let (all, health) = taken(options, Endian::Little);
            assert!(health.is_clean(), "{health:?}");
            assert_eq!(all.clock_map(), expect);
        };
        check(&[], ClockMap::IDENTITY);
        check(&[(DATE, b"0x10\0"), (OFFSET, b"-7\0")], ClockMap { offset: 15_993, ..ClockMap::IDENTITY });
        let tsc = [[3, 0, 0, 0], [2, 0, 0, 0], [9, 0, 0, 0], [0; 4]].concat();
        check(&[(TSC_TO_NS, &tsc), (OFFSET, b"5\0")], ClockMap { mult: 3, shift: 2, offset: 5 });
    }

    #[test]
    fn facts_are_kept_and_oddities_said() {
        let stats = b"CPU: 3\nentries: 5\noverrun: 7\ncommit overrun: 1\nbytes: 0\ndropped events: 2\n\0";
        let (all, health) = taken(
            &[
                (TRACE_CLOCK, b"local global [mono] boot\n\0"),
                (UNAME, b"Linux host 6.1.0 aarch64\0"),
                (CPU_COUNT, &[0, 0, 1, 0]),
                (CPU_STATS, stats),
                (OFFSET, b"soon\0"),
                (GUEST, b"vm1\0"),
                (4711, b""),
            ],
            Endian::Big,
        );
        assert_eq!(all.clock.as_deref(), Some("mono"));
        assert_eq!(all.cpu_count, Some(256));
        let expect = CpuStats { overrun: 7, commit_overrun: 1, dropped: 2 };
        assert_eq!(all.stats, BTreeMap::from([(CpuId::new(3), expect)]));
        assert_eq!(health.repairs, ["trace.dat: the time offset `soon` is no number and was ignored"]);
        assert_eq!(health.notes.len(), 2);
        assert!(health.notes[0].contains("`vm1`") && health.notes[1].contains("4711"), "{health:?}");
    }
}
