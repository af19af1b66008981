//! A cursor over the bytes of one line: literals, integers, and texts that may contain anything.
//!
//! Bytes, not `str`: task names are whatever a process set, and a line is looked at once.

use memchr::memchr_iter;

/// What is left of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) const fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn skip_spaces(&mut self) {
        self.rest = trim_start(self.rest);
    }

    /// Steps over `text` if it comes next.
    pub(super) fn literal(&mut self, text: &[u8]) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A decimal number with an optional sign, or a hexadecimal one behind `0x`. Too large is no number.
    pub(super) fn integer(&mut self) -> Option<i64> {
        let negative = self.rest.first() == Some(&b'-');
        let mut digits = Self::new(&self.rest[usize::from(negative)..]);
        let number = i64::try_from(digits.unsigned()?).ok()?;
        self.rest = digits.rest;
        Some(if negative { -number } else { number })
    }

    /// The same without a sign.
    #[inline]
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        if let Some(hex) = self.rest.strip_prefix(b"0x") {
            let len = hex.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let text = std::str::from_utf8(&hex[..len]).ok()?;
            self.rest = &hex[len..];
            return u64::from_str_radix(text, 16).ok();
        }
        // Numbers of up to 18 digits, that is nearly all, cannot overflow.
        let (mut number, mut len) = (0_u64, 0);
        while let Some(&byte) = self.rest.get(len) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            if len >= 18 {
                number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
            } else {
                number = number * 10 + u64::from(digit);
            }
            len += 1;
        }
        self.rest = &self.rest[len..];
        (len > 0).then_some(number)
    }

    /// The number behind `key`, which must come next.
    pub(super) fn keyed(&mut self, key: &[u8]) -> Option<i64> {
        if self.literal(key) { self.integer() } else { None }
    }

    /// Does a field end here?
    pub(super) fn at_end_of_field(self) -> bool {
        self.rest.first().is_none_or(u8::is_ascii_whitespace)
    }

    /// Any text, then `key` and a number, then `next`. The text is as short as the rest of the line allows: it may itself
    /// contain `key`, since a task may call itself anything.
    pub(super) fn text_then(&mut self, key: &[u8], next: &[u8]) -> Option<(&'a [u8], i64)> {
        for at in memchr_iter(key[0], self.rest) {
            let mut after = Self::new(&self.rest[at..]);
            if let Some(number) = after.keyed(key)
                && (after.rest.starts_with(next) && (!next.is_empty() || after.at_end_of_field()))
            {
                let text = &self.rest[..at];
                self.rest = after.rest;
                return Some((text, number));
            }
        }
        None
    }

    /// Steps over everything before the first `key` and the key itself.
    pub(super) fn skip_past(&mut self, key: &[u8]) -> bool {
        match memchr::memmem::find(self.rest, key) {
            Some(at) => {
                self.rest = &self.rest[at + key.len()..];
                true
            }
            None => false,
        }
    }

    /// The bytes up to the next white space.
    pub(super) fn word(&mut self) -> &'a [u8] {
        let len = self.rest.iter().position(u8::is_ascii_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        word
    }
}

/// `text` without spaces and tabs at its beginning.
pub(super) fn trim_start(text: &[u8]) -> &[u8] {
    let len = text.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    &text[len..]
}

/// `text` without spaces and tabs at its end.
pub(super) fn trim_end(text: &[u8]) -> &[u8] {
    let len = text.iter().rev().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    &text[..text.len() - len]
}

/// The last word of `text` (which has no spaces at its end) and what stands before it.
pub(super) fn last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let at = text.iter().rposition(|&byte| byte == b' ' || byte == b'\t').map_or(0, |at| at + 1);
    let (before, word) = text.split_at(at);
    (trim_end(before), word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_the_kernel_prints_them() {
        for (text, expect) in [
            ("12 ", Some(12)),
            ("-1", Some(-1)),
            ("003", Some(3)),
            ("0x1f", Some(31)),
            ("4294967295", Some(4_294_967_295)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("99999999999999999999", None),
            ("x", None),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(Scan::new(text.as_bytes()).integer(), expect, "{text:?}");
        }
    }

    #[test]
    fn a_text_may_contain_the_key_behind_it() {
        let mut scan = Scan::new(b"a pid=1 b pid=23 prio=120");
        let found = scan.text_then(b" pid=", b" prio=");
        assert_eq!(found, Some((&b"a pid=1 b"[..], 23)));
        assert_eq!(scan.keyed(b" prio="), Some(120));
    }

    #[test]
    fn words_from_the_right() {
        assert_eq!(last_word(b"  my task-12   [001]"), (&b"  my task-12"[..], &b"[001]"[..]));
        assert_eq!(last_word(b"one"), (&b""[..], &b"one"[..]));
        assert_eq!(last_word(b""), (&b""[..], &b""[..]));
    }
}
