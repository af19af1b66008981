//! All tracepoints of one file.

use super::extract::{Extractor, Lookup};
use super::{Symbols, TracepointFormat};
use crate::source::Source;
use ttwu_model::{CpuId, RawEvent, Time};

/// What of the recording machine changes the meaning of records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    /// Its architecture as `uname -m` says (`x86_64`), where known.
    pub(crate) arch: Option<String>,
    /// Its kernel's release (`6.18.44-fc`), where known.
    pub(crate) kernel_release: Option<String>,
}

impl Machine {
    /// The number of the `sched_yield` system call; 32-bit programs on a 64-bit kernel have others and are not seen.
    pub(super) fn yield_number(&self) -> Option<i64> {
        match self.arch.as_deref()? {
            "x86_64" => Some(24),
            "aarch64" | "arm64" | "riscv64" | "riscv" | "loongarch64" => Some(124),
            "i386" | "i486" | "i586" | "i686" | "arm" | "armv6l" | "armv7l" | "ppc" | "ppc64" | "ppc64le"
            | "s390x" => Some(158),
            _ => None,
        }
    }

    /// Bits of `common_flags` with their present meaning: before 6.13, 0x02 said that the architecture does not trace
    /// the interrupt flag, and must not be taken for a lazy reschedule request.
    pub(super) fn common_flags_mask(&self) -> u8 {
        let Some(release) = &self.kernel_release else { return u8::MAX };
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) if (major, minor) < (6, 13) => !0x02,
            (_, _) => u8::MAX,
        }
    }
}

/// No extractor for this id.
const NONE: u16 = u16::MAX;

/// The tracepoints of one file, each with its compiled extractor.
#[derive(Debug, Clone)]
pub(crate) struct Tracepoints {
    formats: Vec<TracepointFormat>,
    extractors: Vec<Extractor>,
    /// Index by id; [`NONE`] where there is no such tracepoint.
    by_id: Vec<u16>,
    lookup: Lookup,
}

impl Tracepoints {
    /// Compiles formats. Of two with one id the later is dropped and said in the health.
    pub(crate) fn new(
        formats: Vec<TracepointFormat>,
        machine: &Machine,
        symbols: Symbols,
        source: &mut Source,
    ) -> Self {
        let mut table = Self {
            formats: Vec::new(),
            extractors: Vec::new(),
            by_id: Vec::new(),
            lookup: Lookup::new(symbols),
        };
        for format in formats {
            let id = usize::from(format.id());
            if id >= table.by_id.len() {
                table.by_id.resize(id + 1, NONE);
            }
            if table.by_id[id] != NONE {
                let kept = &table.formats[usize::from(table.by_id[id])];
                if *kept != format {
                    let text =
                        format!("two formats with id {id}: kept {}, dropped {}", kept.name(), format.name());
                    source.health.add_repair(text);
                }
                continue;
            }
            let next = u16::try_from(table.formats.len()).ok().filter(|&index| index != NONE);
            let Some(index) = next else { continue };
            let mut extractor = Extractor::new(&format, machine);
            extractor.prepare(&mut source.strings);
            if format.system() == "sched" && format.name() == "sched_switch" && !extractor.is_interpreted() {
                source.health.add_note(
                    "sched_switch lacks fields that ttwu needs; its events are not used".to_owned(),
                );
            }
            table.by_id[id] = index;
            table.extractors.push(extractor);
            table.formats.push(format);
        }
        table
    }

    /// The descriptions, in the order that indices count.
    pub(crate) fn formats(&self) -> &[TracepointFormat] {
        &self.formats
    }

    /// The index of a tracepoint by its id in records.
    #[inline]
    pub(crate) fn index(&self, id: u64) -> Option<usize> {
        let index = *self.by_id.get(usize::try_from(id).ok()?)?;
        (index != NONE).then_some(usize::from(index))
    }

    /// The index of the tracepoint that a record names in its first two bytes (`common_type`).
    #[inline]
    pub(crate) fn index_of_record(&self, payload: &[u8]) -> Option<usize> {
        let bytes = *payload.first_chunk::<2>()?;
        let id = match self.formats.first()?.encoding().endian {
            super::Endian::Little => u16::from_le_bytes(bytes),
            super::Endian::Big => u16::from_be_bytes(bytes),
        };
        self.index(u64::from(id))
    }

    /// The event that a record of tracepoint `index` means. `at` and `cpu` come from around the record.
    ///
    /// # Panics
    /// If `index` did not come from this table.
    #[inline]
    pub(crate) fn event(
        &mut self,
        index: usize,
        payload: &[u8],
        at: Time,
        cpu: CpuId,
        source: &mut Source,
    ) -> RawEvent {
        self.extractors[index].extract(payload, at, cpu, &mut self.lookup, source)
    }
}
