//! The flag column: `dNh2.` and the like, back into `common_flags` bits.
//!
//! Which character means what follows from its place, and the places follow from the comment header that ftrace prints
//! above them (`_-----=> irqs-off`, one line per place): preempt-rt kernels have more of them. Without a header the first
//! three places are what every kernel has had there.
//!
//! The column does not hold all bits: `D` needs two, and older tools print `N` for `n`. What is not printed is taken as 0.

use ttwu_model::EventFlags;

/// Bits of `common_flags`, as [`EventFlags`] documents them.
const IRQS_OFF: u8 = 0x01;
const NEED_RESCHED_LAZY: u8 = 0x02;
const NEED_RESCHED: u8 = 0x04;
const HARDIRQ: u8 = 0x08;
const SOFTIRQ: u8 = 0x10;
const PREEMPT_RESCHED: u8 = 0x20;
const NMI: u8 = 0x40;
const BH_OFF: u8 = 0x80;

/// The most places that a column has had (preempt-rt: seven).
const PLACES_MAX: usize = 8;

/// What one place of the column says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    IrqsOff,
    NeedResched,
    NeedReschedLazy,
    Interrupt,
    /// Preemption or migration depth, and whatever else is no flag.
    Other,
}

/// The places of a file's flag column.
#[derive(Debug, Clone)]
pub(super) struct FlagColumn {
    places: Vec<Place>,
    from_header: bool,
}

impl FlagColumn {
    /// What every kernel's column begins with.
    pub(super) fn new() -> Self {
        let places = vec![Place::IrqsOff, Place::NeedResched, Place::Interrupt, Place::Other, Place::Other];
        Self { places, from_header: false }
    }

    /// Takes one line of the header's legend (`#  / _----=> need-resched`).
    pub(super) fn legend(&mut self, line: &[u8]) {
        let Some(at) = memchr::memmem::find(line, b"=> ") else { return };
        let place = match line[at + 3..].trim_ascii() {
            b"irqs-off" | b"irqs-off/BH-disabled" => Place::IrqsOff,
            b"need-resched" => Place::NeedResched,
            b"need-resched_lazy" | b"need-resched-lazy" => Place::NeedReschedLazy,
            b"hardirq/softirq" => Place::Interrupt,
            _ => Place::Other,
        };
        // A file may hold several headers (one per buffer): each begins with the first place.
        if place == Place::IrqsOff {
            self.places.clear();
            self.from_header = true;
        }
        if self.from_header && self.places.len() < PLACES_MAX {
            self.places.push(place);
        }
    }

    /// The flags of a column; `None` if it is none.
    pub(super) fn parse(&self, column: &[u8]) -> Option<EventFlags> {
        if !(3..=PLACES_MAX).contains(&column.len()) {
            return None;
        }
        let mut bits = 0;
        for (index, &letter) in column.iter().enumerate() {
            let place = self.places.get(index).copied().unwrap_or(Place::Other);
            bits |= match place {
                Place::IrqsOff => irqs_off(letter)?,
                Place::NeedResched => need_resched(letter)?,
                Place::NeedReschedLazy if letter == b'.' => 0,
                Place::NeedReschedLazy => NEED_RESCHED_LAZY,
                Place::Interrupt => interrupt(letter)?,
                Place::Other if letter == b'.' || letter == b'#' || letter.is_ascii_hexdigit() => 0,
                Place::Other => return None,
            };
        }
        Some(EventFlags::from_common_flags(bits))
    }
}

/// `X` says that the architecture does not support the flag, which is not the same as a lazy reschedule although old
/// kernels used that bit for it.
const fn irqs_off(letter: u8) -> Option<u8> {
    Some(match letter {
        b'.' | b'X' => 0,
        b'd' => IRQS_OFF,
        b'b' => BH_OFF,
        b'D' => IRQS_OFF | BH_OFF,
        _ => return None,
    })
}

const fn need_resched(letter: u8) -> Option<u8> {
    Some(match letter {
        b'.' => 0,
        b'N' => NEED_RESCHED | PREEMPT_RESCHED,
        b'n' => NEED_RESCHED,
        b'p' => PREEMPT_RESCHED,
        b'l' => NEED_RESCHED_LAZY,
        b'b' => NEED_RESCHED | NEED_RESCHED_LAZY,
        b'L' => NEED_RESCHED_LAZY | PREEMPT_RESCHED,
        b'B' => NEED_RESCHED | NEED_RESCHED_LAZY | PREEMPT_RESCHED,
        _ => return None,
    })
}

const fn interrupt(letter: u8) -> Option<u8> {
    Some(match letter {
        b'.' => 0,
        b'h' => HARDIRQ,
        b's' => SOFTIRQ,
        b'H' => HARDIRQ | SOFTIRQ,
        b'z' => NMI,
        b'Z' => NMI | HARDIRQ,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(column: &FlagColumn, text: &str, expect: Option<u8>) {
        let found = column.parse(text.as_bytes()).map(|flags| flags.common_flags().unwrap());
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn four_and_five_characters() {
        let column = FlagColumn::new();
        for (text, bits) in [
            ("d..2", 0x01),
            (".....", 0x00),
            ("dNh1.", 0x2d),
            ("dn.4", 0x05),
            ("d.s3", 0x11),
            ("d.H5", 0x19),
            ("D.s31", 0x91),
            ("b...1", 0x80),
            (".l...", 0x02),
            ("dL.2.", 0x23),
            ("dB.2.", 0x27),
            ("db.2.", 0x07),
            ("dpZa.", 0x69),
            ("X...", 0x00),
        ] {
            check(&column, text, Some(bits));
        }
        for text in ["", "d.", "dx.2", "hello", "d..2.....", "[001]"] {
            check(&column, text, None);
        }
    }

    #[test]
    fn the_header_says_what_the_places_are() {
        let mut column = FlagColumn::new();
        for name in
            ["irqs-off", "need-resched", "need-resched_lazy", "hardirq/softirq", "preempt-depth", "x", "y"]
        {
            column.legend(format!("#   / _----=> {name}").as_bytes());
        }
        check(&column, "d.Lh2..", Some(0x0b));
        check(&column, "dN.s1..", Some(0x35));
    }
}
