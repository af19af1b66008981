//! Bare ring-buffer pages, as `trace_pipe_raw` gives them, without a container: one CPU's, which one unknown.
//!
//! Records mean nothing without format files, so [`RawPages::open`] takes a directory of them. Without one there is only one
//! tracepoint that can be told by its looks: `sched_switch`, whose layout is the same on every 64-bit kernel from 2.6.36 on
//! (two names of 16 bytes with pid and priority behind each, in 64 bytes). That is assumed and said; everything else stays
//! an event of an unknown kind.
//!
//! What this does not do: guess the wake-up tracepoints, which differ from each other in nothing but their numbers.

use crate::detect::Head;
use crate::ring::{
    self, ClockMap, CpuPages, PageCursor, PageHead, PageLayout, PlainPages, Recording, Step, Tree,
};
use crate::source::{Decoder, Source};
use crate::tracepoint::{Endian, Machine, Symbols};
use crate::{Format, Input, ReadError, TraceStream, TracepointFormat};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use ttwu_model::CpuId;

/// The format's name in messages.
const FORMAT: &str = "raw ring-buffer pages";

/// How far into the pages `sched_switch` is looked for.
const SEARCH_LEN: u64 = 1 << 20;

/// Opens bare ring-buffer pages with format files from elsewhere.
#[derive(Debug)]
pub struct RawPages;

impl RawPages {
    /// Reads `input` with the formats below `formats`: a tracefs `events` directory (`SYSTEM/NAME/format` and
    /// `header_page`) or a directory that has it as `events` or `formats`.
    ///
    /// # Errors
    /// When the directory cannot be read or holds no formats.
    pub fn open(input: Input, formats: &Path) -> Result<TraceStream, ReadError> {
        let mut source = Source::default();
        let tree = Tree::of_directory(formats, &mut source.health)?;
        let head = input.bytes(0, 16)?;
        let layout = ring::described_layout(&tree, &head, &mut source)?;
        let found = ring::formats(&tree, &layout, &mut source)?;
        if found.is_empty() {
            let what = format!(
                "{} holds no formats (SYSTEM/NAME/format); give a tracefs `events` directory",
                formats.display()
            );
            return Err(ReadError::Unsupported { format: FORMAT, what });
        }
        let decoder = recording(input, layout, found, &mut source).decoder(FORMAT, &mut source)?;
        Ok(TraceStream::start(Format::RawPages, decoder, source))
    }
}

/// Is it a page of entries that end exactly where the page says? Only then; this is the last of all probes.
pub(crate) fn probe(head: &Head<'_>) -> bool {
    layout_by_looks(head.bytes).is_some_and(|layout| {
        let page = &head.bytes[..head.bytes.len().min(layout.size())];
        let Ok(page_head) = PageHead::parse(page, &layout) else { return false };
        let mut cursor = PageCursor::new(&page_head, &layout);
        let mut entries = 0;
        loop {
            match cursor.next(page) {
                // A record has at least the common fields.
                Step::Entry(entry) if entry.end - entry.start >= 8 => entries += 1,
                Step::Entry(_) | Step::Damaged { .. } => return false,
                Step::End => return entries > 0 && page_head.time > 0,
            }
        }
    })
}

/// A layout of 4096-byte pages in which `commit` has no bits set that a kernel does not set.
fn layout_by_looks(page: &[u8]) -> Option<PageLayout> {
    let layout = PageLayout::LITTLE_64.with_order_of(page);
    (1..=4096).contains(&layout.committed(page)).then_some(layout)
}

/// A decoder of its events, with what can be assumed without formats.
pub(crate) fn open(input: Input, source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    let layout = layout_by_looks(&input.bytes(0, 16)?).unwrap_or(PageLayout::LITTLE_64);
    let Some(found) = find_switch(&input.bytes(0, SEARCH_LEN)?, &layout) else {
        let what = format!(
            "{} has no format files with it, and no record that can be told by its looks; copy the machine's tracefs \
             `events` directory beside the pages and read both as a directory",
            input.name()
        );
        return Err(ReadError::Unsupported { format: FORMAT, what });
    };
    let text = SWITCH.replace("ID: 0", &format!("ID: {}", found.id)) + &found.print();
    let formats = ring::parse_formats([("sched", text.as_bytes())], &layout, source);
    source.health.add_repair(format!(
        "no format files: tracepoint {} is taken for sched_switch by its looks, {}",
        found.id,
        if found.is_old() {
            "with task states as before Linux 4.14"
        } else {
            "with task states as since Linux 4.14"
        }
    ));
    recording(input, layout, formats, source).decoder(FORMAT, source)
}

fn recording(
    input: Input,
    layout: PageLayout,
    formats: Vec<TracepointFormat>,
    source: &mut Source,
) -> Recording {
    source.meta.format = FORMAT.to_owned();
    source.meta.resolution_ns = 1;
    source.health.add_note("bare pages do not say which CPU's they are; it is called 0".to_owned());
    let end = input.len();
    let pages =
        CpuPages { cpu: CpuId::new(0), layout, source: Box::new(PlainPages::new(Arc::new(input), 0, end)) };
    Recording {
        formats,
        machine: Machine::default(),
        symbols: Symbols::new(),
        clock: ClockMap::IDENTITY,
        pages: vec![pages],
        stats: BTreeMap::new(),
        names: Vec::new(),
        tgids: Vec::new(),
    }
}

/// `sched_switch` of 64-bit kernels, in a `format` file's own words as far as ttwu reads them.
const SWITCH: &str = "name: sched_switch
ID: 0
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
	field:int next_prio;	offset:60;	size:4;	signed:1;

";

const STATES_OLD: &str = r#"print fmt: REC->prev_state & (PLUS-1) ? __print_flags(REC->prev_state & (PLUS-1), "|", { 1, "S" }, { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }) : "R", REC->prev_state & PLUS ? "+" : """#;
const STATES_NEW: &str = r#"print fmt: REC->prev_state & 255 ? __print_flags(REC->prev_state & 255, "|", { 1, "S" }, { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "X" }, { 32, "Z" }, { 64, "P" }, { 128, "I" }) : "R", REC->prev_state & 256 ? "+" : """#;

/// A tracepoint that looks like `sched_switch`.
struct Switch {
    id: u16,
    /// All state bits that occur.
    states: u64,
}

impl Switch {
    /// Before 4.14 the `+` of `R+` was a bit above 256 (which one moved with every new state).
    fn is_old(&self) -> bool {
        self.states > 511
    }

    /// How `prev_state` is printed, from the era of its highest bit.
    fn print(&self) -> String {
        if self.is_old() {
            let plus = 1u64 << self.states.ilog2();
            return STATES_OLD.replace("PLUS", &plus.to_string());
        }
        STATES_NEW.to_owned()
    }
}

/// The tracepoint all of whose records look like `sched_switch`, if there is exactly one.
fn find_switch(pages: &[u8], layout: &PageLayout) -> Option<Switch> {
    let mut looks: BTreeMap<u16, Option<u64>> = BTreeMap::new();
    for page in pages.chunks(layout.size()) {
        let Ok(head) = PageHead::parse(page, layout) else { continue };
        let mut cursor = PageCursor::new(&head, layout);
        while let Step::Entry(entry) = cursor.next(page) {
            let payload = &page[entry.start..entry.end];
            let Some(id) = layout.order().u16(payload, 0) else { continue };
            let states = looks.entry(id).or_insert(Some(0));
            *states = match *states {
                Some(states) if looks_like_switch(payload, layout.order()) => {
                    Some(states | layout.order().u64(payload, 32)?)
                }
                Some(_) | None => None,
            };
        }
    }
    let mut found = looks.into_iter().filter_map(|(id, states)| Some(Switch { id, states: states? }));
    let switch = found.next()?;
    found.next().is_none().then_some(switch)
}

/// Sixty-four bytes, the emitting task switching out, two printable names, pids and priorities in range.
fn looks_like_switch(payload: &[u8], order: Endian) -> bool {
    let number = |at| order.u32(payload, at).map_or(-1, u32::cast_signed);
    let printable = |at: usize| {
        let name = payload[at..at + 16].split(|&byte| byte == 0).next().unwrap_or_default();
        (1..16).contains(&name.len()) && name.iter().all(|byte| (b' '..=b'~').contains(byte))
    };
    payload.len() == 64
        && number(4) == number(24)
        && [24, 56].into_iter().all(|at| (0..=4_194_304).contains(&number(at)))
        && [28, 60].into_iter().all(|at| (-1..=140).contains(&number(at)))
        && printable(8)
        && printable(40)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::testing::PageWriter;
    use ttwu_model::Trace;
    use ttwu_testing::damage;

    /// A page of `sched_switch` records between two tasks, with another tracepoint's records between them.
    fn page(order: Endian) -> Vec<u8> {
        let number = |value: u32| match order {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        };
        let layout = PageLayout::usual(order, 8, 4096).expect("sound");
        let mut page = PageWriter::new(layout, 5000);
        let word = number(77 << if order == Endian::Big { 16 } else { 0 });
        for n in 0..8 {
            let (prev, next) = if n % 2 == 0 { (7, 9) } else { (9, 7) };
            let name =
                |pid: u32| *format!("task-{pid}\0xxxxxxxxxx").as_bytes().first_chunk::<16>().expect("long");
            let state =
                if order == Endian::Big { [number(0), number(256)] } else { [number(256), number(0)] };
            let switch = [
                &word[..],
                &number(prev),
                &name(prev),
                &number(prev),
                &number(120),
                &state.concat(),
                &name(next),
                &number(next),
                &number(100),
            ];
            let other = [number(3 << if order == Endian::Big { 16 } else { 0 }), number(prev), number(1)];
            page = page.short(10, &switch.concat()).short(1, &other.concat());
        }
        page.finish()
    }

    fn try_read(bytes: Vec<u8>) -> Result<Trace, ReadError> {
        TraceStream::from_input(Input::from_bytes(bytes, "pages")).and_then(TraceStream::collect)
    }

    #[test]
    fn switches_are_told_by_their_looks_and_that_is_said() {
        for order in [Endian::Little, Endian::Big] {
            let trace = try_read([page(order), page(order)].concat()).expect("pages");
            let counts = trace.event_counts();
            assert_eq!(counts["sched_switch"], 16, "{order:?}");
            assert_eq!(counts["tracepoint 3 (no format)"], 16, "{order:?}");
            assert!(
                trace.health().repairs[0].contains("tracepoint 77 is taken for sched_switch"),
                "{order:?}"
            );
        }
    }

    #[test]
    fn pages_without_anything_known_are_refused_with_a_remedy() {
        let page = PageWriter::new(PageLayout::LITTLE_64, 1).short(0, b"some record.").finish();
        let error = try_read(page).expect_err("nothing known");
        assert!(error.to_string().contains("copy the machine's tracefs `events` directory"), "{error}");
    }

    /// perfetto's page was recorded by a 4.4 kernel, whose formats lie beside it.
    #[test]
    fn a_real_page_is_read_with_formats_and_without() {
        let Some(directory) = ttwu_testing::shared("traces/public/google+perfetto") else { return };
        let input = || Input::open(&directory.join("one_page_sched_switch")).expect("readable");
        let formats = directory.join("formats/android_walleye_OPM5.171019.017.A1_4.4.88");
        let with = RawPages::open(input(), &formats).and_then(TraceStream::collect).expect("readable");
        let without = TraceStream::from_input(input()).and_then(TraceStream::collect).expect("readable");
        assert_eq!(with.event_counts(), BTreeMap::from([("sched_switch", 59)]));
        assert!(with.health().is_clean(), "{:?}", with.health());
        assert_eq!(without.event_counts(), with.event_counts());
        assert_eq!(with.difference(&without, ttwu_model::Lenience::NONE), None);
    }

    #[test]
    fn damaged_pages_never_panic() {
        for order in [Endian::Little, Endian::Big] {
            let whole = [page(order), page(order)].concat();
            for seed in 0..300 {
                let _ = try_read(damage(&whole, seed));
            }
        }
    }
}
