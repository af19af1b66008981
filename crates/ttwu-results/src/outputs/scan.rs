//! Lines with numbers, and a scanner over one line, whose errors say line, expected and found.
//!
//! The formats are `printf` formats; a grammar tool would hide the widths that the writers must keep. No backtracking
//! inside a line: a format is chosen by how a line begins, after that every deviation is an error.

use super::ParseError;

/// The lines of a text, and which comes next.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        Self { lines, at: 0 }
    }

    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    pub(crate) const fn reset(&mut self, position: usize) {
        self.at = position;
    }

    pub(crate) fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// The line `ahead` lines after the next one.
    pub(crate) fn peek_at(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.at + ahead).copied()
    }

    /// The next line, or an error that says what was to come.
    pub(crate) fn next(&mut self, expected: &str) -> Result<Scan<'a>, ParseError> {
        let Some(line) = self.peek() else { return Err(self.fail(expected)) };
        self.at += 1;
        Ok(Scan { line: self.at, whole: line, rest: line })
    }

    /// The next line if it begins so.
    pub(crate) fn next_if(&mut self, begins: &str) -> Option<Scan<'a>> {
        let line = self.peek()?;
        let rest = line.strip_prefix(begins)?;
        self.at += 1;
        Some(Scan { line: self.at, whole: line, rest })
    }

    /// The rest of a line that two streams shared becomes the next line.
    pub(crate) fn put_back(&mut self, rest: &'a str) {
        self.at -= 1;
        self.lines[self.at] = rest;
    }

    /// The next line must be exactly this.
    pub(crate) fn exact(&mut self, text: &str) -> Result<(), ParseError> {
        let mut scan = self.next(text)?;
        scan.literal(text)?;
        scan.end()
    }

    /// An error at the next line.
    pub(crate) fn fail(&self, expected: &str) -> ParseError {
        ParseError {
            line: self.at + 1,
            expected: expected.to_owned(),
            found: self.peek().map_or_else(|| "the end of the text".to_owned(), shown),
        }
    }
}

/// What is left of one line.
#[derive(Debug, Clone)]
pub(crate) struct Scan<'a> {
    line: usize,
    whole: &'a str,
    rest: &'a str,
}

impl<'a> Scan<'a> {
    pub(crate) const fn rest(&self) -> &'a str {
        self.rest
    }

    pub(crate) fn fail(&self, expected: &str) -> ParseError {
        let found = if self.rest.is_empty() {
            format!("the end of {}", shown(self.whole))
        } else if self.rest.len() == self.whole.len() {
            shown(self.whole)
        } else {
            format!("{} in {}", shown(self.rest), shown(self.whole))
        };
        ParseError { line: self.line, expected: expected.to_owned(), found }
    }

    /// Takes a fixed text.
    pub(crate) fn literal(&mut self, text: &str) -> Result<(), ParseError> {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.fail(&format!("`{text}`"))),
        }
    }

    /// Whether a fixed text comes; takes it then.
    pub(crate) fn have(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes padding: spaces and tabs, none included.
    pub(crate) fn pad(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Takes padding, then everything up to a space or one of `stops`.
    pub(crate) fn word(&mut self, stops: &[char], expected: &str) -> Result<&'a str, ParseError> {
        self.pad();
        let end = self.rest.find(|c| c == ' ' || c == '\t' || stops.contains(&c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.fail(expected));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word)
    }

    /// Takes everything before `text`, and `text`.
    pub(crate) fn until(&mut self, text: &str) -> Result<&'a str, ParseError> {
        match self.rest.split_once(text) {
            Some((before, rest)) => {
                self.rest = rest;
                Ok(before)
            }
            None => Err(self.fail(&format!("`{text}`"))),
        }
    }

    /// Takes padding and a number of the characters that `admits`.
    fn number<T: std::str::FromStr>(
        &mut self,
        admits: impl Fn(char) -> bool,
        expected: &str,
    ) -> Result<T, ParseError> {
        self.pad();
        let end = self.rest.find(|c| !admits(c)).unwrap_or(self.rest.len());
        let value = self.rest[..end].parse().map_err(|_| self.fail(expected))?;
        self.rest = &self.rest[end..];
        Ok(value)
    }

    pub(crate) fn u64(&mut self, expected: &str) -> Result<u64, ParseError> {
        self.number(|c| c.is_ascii_digit(), expected)
    }

    pub(crate) fn u32(&mut self, expected: &str) -> Result<u32, ParseError> {
        self.number(|c| c.is_ascii_digit(), expected)
    }

    pub(crate) fn i64(&mut self, expected: &str) -> Result<i64, ParseError> {
        self.number(|c| c.is_ascii_digit() || c == '-', expected)
    }

    /// A finite number.
    pub(crate) fn f64(&mut self, expected: &str) -> Result<f64, ParseError> {
        let before = self.clone();
        let value: f64 =
            self.number(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'), expected)?;
        if value.is_finite() { Ok(value) } else { Err(before.fail(expected)) }
    }

    /// A number with exactly `decimals` digits after the point, in units of the last one.
    pub(crate) fn fixed(&mut self, decimals: u32, expected: &str) -> Result<u64, ParseError> {
        let before = self.clone();
        let whole = self.u64(expected)?;
        self.literal(".").map_err(|_| before.fail(expected))?;
        let digits = self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits != decimals as usize {
            return Err(before.fail(&format!("{expected} with {decimals} decimals")));
        }
        let fraction = self.u64(expected)?;
        let scale = 10u64.pow(decimals);
        whole
            .checked_mul(scale)
            .and_then(|whole| whole.checked_add(fraction))
            .ok_or_else(|| before.fail(expected))
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<(), ParseError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.fail("the end of the line")) }
    }
}

/// A line for an error message: quoted, not too long.
fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// `value` in units of the last of `decimals` digits, as text: the inverse of [`Scan::fixed`].
pub(crate) fn fixed(value: u64, decimals: u32) -> String {
    let scale = 10u64.pow(decimals);
    format!("{}.{:0width$}", value / scale, value % scale, width = decimals as usize)
}

/// C's `%.{digits}g`: as many significant digits, no trailing zeros, exponent form outside 1e-5 ≤ |x| < 10^digits.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("Rust prints an exponent");
    let exponent: i32 = exponent.parse().expect("Rust prints an exponent");
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    let digits_max = i32::try_from(digits).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= digits_max {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs())
    } else {
        let decimals = usize::try_from(digits_max - 1 - exponent).unwrap_or(0);
        trim(&format!("{value:.decimals$}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_is_what_c_prints() {
        for (value, digits, text) in [
            (76.53, 6, "76.53"),
            (0.0, 6, "0"),
            (50.205_44, 6, "50.2054"),
            (1_234_567.0, 6, "1.23457e+06"),
            (0.000_012_345, 6, "1.2345e-05"),
            (31_529.524_962_583_2, 15, "31529.5249625832"),
            (999_999.5, 6, "1e+06"),
            (100.0, 6, "100"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }

    #[test]
    fn errors_name_line_expected_and_found() {
        let mut lines = Lines::new("Time: 1.2\n");
        let mut scan = lines.next("time").expect("a line");
        scan.literal("Time: ").expect("begins so");
        let error = scan.fixed(3, "seconds").expect_err("one decimal");
        assert_eq!(error.to_string(), "line 1: expected seconds with 3 decimals, found `1.2` in `Time: 1.2`");
        assert_eq!(lines.fail("more").to_string(), "line 2: expected more, found the end of the text");
    }
}
