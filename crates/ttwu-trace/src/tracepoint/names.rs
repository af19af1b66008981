//! Interning at the speed of one comparison.
//!
//! A trace names its few thousand tasks millions of times. The tree in `Strings` would cost more than all the rest of an
//! event, so a direct-mapped cache keyed by the 16 bytes of `comm` itself stands before it. It is keyed by name and not by
//! pid because threads of one program share a name: fewer lines stay hotter. Collisions only cost time.

use super::format::until_nul;
use ttwu_model::{StrId, Strings};

const LINES: usize = 1024;
/// 2^64 divided by the golden ratio: spreads the few bits in which names differ.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Caches in front of `Strings` for names and for numbers that stand for names.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    comms: Box<[(u128, Option<StrId>)]>,
    addresses: Box<[(u64, Option<StrId>)]>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self {
            comms: vec![(0, None); LINES].into_boxed_slice(),
            addresses: vec![(0, None); LINES].into_boxed_slice(),
        }
    }

    /// The id of a `char[16]`; bytes behind its NUL do not matter.
    #[inline]
    pub(super) fn comm(&mut self, comm: &[u8; 16], strings: &mut Strings) -> StrId {
        let key = u128::from_le_bytes(*comm);
        #[expect(clippy::cast_possible_truncation, reason = "folding to a hash")]
        let hash = ((key as u64) ^ ((key >> 64) as u64)).wrapping_mul(SPREAD);
        let line = &mut self.comms[(hash >> 54) as usize % LINES];
        match *line {
            (found, Some(id)) if found == key => id,
            _ => {
                let id = strings.intern(&String::from_utf8_lossy(until_nul(comm)));
                *line = (key, Some(id));
                id
            }
        }
    }

    /// The id of a text of any length, not NUL-terminated.
    pub(crate) fn text(&mut self, text: &[u8], strings: &mut Strings) -> StrId {
        let mut comm = [0; 16];
        match comm.get_mut(..text.len()) {
            Some(start) => {
                start.copy_from_slice(text);
                self.comm(&comm, strings)
            }
            None => strings.intern(&String::from_utf8_lossy(text)),
        }
    }

    /// The id of what `name` makes of a number (an address, an interrupt number).
    pub(super) fn number(
        &mut self,
        number: u64,
        strings: &mut Strings,
        name: impl FnOnce(u64) -> String,
    ) -> StrId {
        let line = &mut self.addresses[(number.wrapping_mul(SPREAD) >> 54) as usize % LINES];
        match *line {
            (found, Some(id)) if found == number => id,
            _ => {
                let id = strings.intern(&name(number));
                *line = (number, Some(id));
                id
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_one_id_whatever_follows_their_nul() {
        let (mut names, mut strings) = (Names::new(), Strings::new());
        let a = names.comm(b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0", &mut strings);
        let b = names.comm(b"sh\0left over\0\0\0\0", &mut strings);
        let c = names.text(b"sh", &mut strings);
        assert_eq!((a, a), (b, c));
        let long = names.text(b"/usr/bin/a-long-path", &mut strings);
        assert_eq!(strings.get(long), "/usr/bin/a-long-path");
        let bad = names.text(b"\xff", &mut strings);
        assert_eq!(strings.get(bad), "\u{fffd}");
    }
}
