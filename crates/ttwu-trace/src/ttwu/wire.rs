//! Numbers and byte strings as `.ttwu` stores them: LEB128, and tagged fields of which a reader may skip the unknown.
//!
//! [`Bytes`] never panics and never reads past its end; it remembers that it was asked to, so that the loops above it need
//! one check at their end instead of one per value.

/// Appends `value` as LEB128.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a tagged field.
pub(super) fn put_field(out: &mut Vec<u8>, tag: u64, bytes: &[u8]) {
    put(out, tag);
    put_bytes(out, bytes);
}

/// Appends a tagged field made of numbers.
pub(super) fn put_numbers(out: &mut Vec<u8>, tag: u64, numbers: &[u64]) {
    let mut bytes = Vec::new();
    for &number in numbers {
        put(&mut bytes, number);
    }
    put_field(out, tag, &bytes);
}

/// Bytes being read: numbers and texts as [`put`] and [`put_bytes`] wrote them.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    rest: &'a [u8],
    overrun: bool,
}

impl<'a> Bytes<'a> {
    /// From their first.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, overrun: false }
    }

    /// What has not been read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Was everything read?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Was nothing asked for that was not there?
    #[must_use]
    pub const fn sound(&self) -> bool {
        !self.overrun
    }

    /// Was exactly everything read?
    #[must_use]
    pub const fn finished(&self) -> bool {
        self.rest.is_empty() && !self.overrun
    }

    /// The next number; 0 past the end.
    #[inline]
    pub fn get(&mut self) -> u64 {
        // One and two bytes are nearly everything; the general loop costs a third of the reading speed.
        match *self.rest {
            [a, ref rest @ ..] if a < 0x80 => {
                self.rest = rest;
                u64::from(a)
            }
            [a, b, ref rest @ ..] if b < 0x80 => {
                self.rest = rest;
                u64::from(a & 0x7f) | u64::from(b) << 7
            }
            _ => self.get_long(),
        }
    }

    fn get_long(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else { break };
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
        }
        self.overrun = true;
        self.rest = &[];
        0
    }

    /// The next byte; 0 past the end.
    #[inline]
    pub(super) fn byte(&mut self) -> u8 {
        match *self.rest {
            [byte, ref rest @ ..] => {
                self.rest = rest;
                byte
            }
            [] => {
                self.overrun = true;
                0
            }
        }
    }

    /// The next number, if it fits; past its range counts as an overrun.
    pub fn get_u32(&mut self) -> u32 {
        u32::try_from(self.get()).unwrap_or_else(|_| {
            self.overrun = true;
            0
        })
    }

    /// The next `len` bytes; none past the end.
    pub(super) fn take(&mut self, len: u64) -> &'a [u8] {
        match usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len)) {
            Some((taken, rest)) => {
                self.rest = rest;
                taken
            }
            None => {
                self.overrun = true;
                self.rest = &[];
                &[]
            }
        }
    }

    /// The next length and its bytes.
    pub fn get_bytes(&mut self) -> &'a [u8] {
        let len = self.get();
        self.take(len)
    }

    /// The next length and its text; bytes that are not UTF-8 are replaced.
    pub fn get_text(&mut self) -> String {
        String::from_utf8_lossy(self.get_bytes()).into_owned()
    }

    /// The next tagged field; `None` at the end.
    pub(super) fn get_field(&mut self) -> Option<(u64, &'a [u8])> {
        if self.rest.is_empty() {
            return None;
        }
        let tag = self.get();
        let bytes = self.get_bytes();
        self.sound().then_some((tag, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        let mut out = Vec::new();
        for number in numbers {
            put(&mut out, number);
        }
        let mut bytes = Bytes::new(&out);
        assert_eq!(numbers.map(|_| bytes.get()), numbers);
        assert!(bytes.finished());
        assert_eq!(bytes.get(), 0);
        assert!(!bytes.sound());
    }

    #[test]
    fn endless_numbers_and_huge_lengths_end() {
        let mut endless = Bytes::new(&[0xff; 40]);
        assert_eq!(endless.get(), 0);
        assert!(!endless.sound() && endless.is_empty());
        let mut huge = Bytes::new(&[0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2]);
        assert_eq!(huge.get_bytes(), b"");
        assert!(!huge.sound());
    }
}
