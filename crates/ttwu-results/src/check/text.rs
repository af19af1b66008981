//! Lines of mails as tokens, and printed numbers as intervals.

/// A longer line is nobody's table; it is not looked at.
const LINE_BYTES_MAX: usize = 8192;

/// A printed number: the values that round to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    /// As printed, without the percent sign.
    pub(super) text: String,
    pub(super) value: f64,
    /// Half a unit of the last digit.
    pub(super) half: f64,
    pub(super) decimals: usize,
    /// Printed with `+` or `-`.
    pub(super) signed: bool,
    pub(super) percent: bool,
}

impl Number {
    pub(super) fn low(&self) -> f64 {
        self.value - self.half
    }

    pub(super) fn high(&self) -> f64 {
        self.value + self.half
    }

    /// A whole number as printed: digits only.
    pub(super) fn whole(&self) -> Option<u64> {
        if self.decimals > 0 || self.signed || self.percent || self.half > 0.5 {
            return None;
        }
        self.text.replace(',', "").parse().ok()
    }

    /// The text with the percent sign, as it was printed.
    pub(super) fn shown(&self) -> String {
        if self.percent { format!("{}%", self.text) } else { self.text.clone() }
    }

    /// Another value, printed as this one is.
    pub(super) fn alike(&self, value: f64) -> String {
        let value = if value == 0.0 { 0.0 } else { value };
        let decimals = self.decimals;
        let plus = if self.text.starts_with('+') && value > 0.0 { "+" } else { "" };
        format!("{plus}{value:.decimals$}{}", if self.percent { "%" } else { "" })
    }

    /// Whether an exact value between `low` and `high` is printed so; `truncated` also admits digits that were cut off.
    pub(super) fn admits(&self, low: f64, high: f64, truncated: bool) -> bool {
        let slack = 1e-9 * (1.0 + self.value.abs());
        let cut = if truncated { self.half } else { 0.0 };
        let (mut least, mut most) = (self.low(), self.high());
        if self.value >= 0.0 {
            most += cut;
        }
        if self.value <= 0.0 {
            least -= cut;
        }
        least <= high + slack && low <= most + slack
    }
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    Number(Number),
    Word(&'a str),
    /// A bracket, star, bar or equals sign.
    Mark(char),
}

impl<'a> Token<'a> {
    pub(super) const fn number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            Self::Word(_) | Self::Mark(_) => None,
        }
    }

    pub(super) const fn word(&self) -> Option<&'a str> {
        match self {
            Self::Word(word) => Some(*word),
            Self::Number(_) | Self::Mark(_) => None,
        }
    }

    pub(super) fn is_mark(&self, marks: &str) -> bool {
        matches!(self, Self::Mark(mark) if marks.contains(*mark))
    }
}

/// Undoes what mail programs do: quote marks, typographic signs, quoted-printable's `=3D`.
pub(super) fn normalise(raw: &str) -> String {
    if raw.len() > LINE_BYTES_MAX {
        return String::new();
    }
    let mut text = raw.trim_end();
    while let Some(rest) = text.trim_start().strip_prefix('>') {
        text = rest.strip_prefix(' ').unwrap_or(rest);
    }
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{2212}' | '\u{2013}' | '\u{2010}' | '\u{2011}' | '\u{ff0d}' => clean.push('-'),
            '\u{a0}' | '\u{202f}' | '\u{2009}' | '\u{2007}' => clean.push(' '),
            '\u{2192}' | '\u{21d2}' => clean.push_str(" -> "),
            '\u{2026}' => clean.push_str("..."),
            '\u{ff05}' => clean.push('%'),
            '\u{2502}' => clean.push('|'),
            '\u{feff}' | '\u{200b}' => {}
            _ => clean.push(c),
        }
    }
    if clean.contains("=3D") { clean.replace("=3D", "=") } else { clean }
}

/// Splits at white space and marks; joins a number and a percent sign that stands apart.
pub(super) fn tokens(line: &str) -> Vec<Token<'_>> {
    const MARKS: &str = "()[]{}*|=;";
    let mut found: Vec<Token<'_>> = Vec::new();
    let mut start = None;
    for (at, c) in line.char_indices().chain(std::iter::once((line.len(), ' '))) {
        let is_mark = MARKS.contains(c);
        if !(is_mark || c.is_whitespace()) {
            start.get_or_insert(at);
            continue;
        }
        if let Some(from) = start.take() {
            push_word(&line[from..at], &mut found);
        }
        if is_mark {
            found.push(Token::Mark(c));
        }
    }
    found
}

fn push_word<'a>(raw: &'a str, found: &mut Vec<Token<'a>>) {
    if matches!(raw.trim_end_matches([',', '.', ':']), "%" | "pct")
        && let Some(Token::Number(number)) = found.last_mut()
        && !number.percent
    {
        number.percent = true;
        return;
    }
    // An ellipsis among runs: what it left out cannot be checked.
    if let Some(at) = raw.find("..") {
        let after = raw[at..].trim_start_matches('.');
        for (piece, is_gap) in [(&raw[..at], false), (&raw[at..at + 2], true), (after, false)] {
            if is_gap {
                found.push(Token::Word(piece));
            } else if !piece.is_empty() {
                push_word(piece, found);
            }
        }
        return;
    }
    let bare = raw.trim_matches(['"', '\'', '`']).trim_end_matches([',', ':', '!', '?', '.']);
    match number(bare) {
        // A trailing colon makes a label of it (`50.0th:` is one anyway; `4:` is a group's number).
        Some(_) if raw.ends_with(':') => found.push(Token::Word(raw)),
        Some(number) => found.push(Token::Number(number)),
        None => found.push(Token::Word(raw)),
    }
}

/// Units that may be glued to a number.
const GLUED: [&str; 6] = ["ms", "us", "ns", "sec", "secs", "s"];

fn number(text: &str) -> Option<Number> {
    let (body, percent) = match text.strip_suffix('%') {
        Some(body) => (body, true),
        None => (GLUED.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text), false),
    };
    let unsigned = body.strip_prefix(['-', '+']).unwrap_or(body);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], unsigned[at + 1..].parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let groups: Vec<&str> = whole.split(',').collect();
    let grouped = groups.len() == 1
        || (groups[1..].iter().all(|group| group.len() == 3) && (1..=3).contains(&groups[0].len()));
    if whole.is_empty() || !grouped || !groups.iter().all(|group| digits(group)) || !digits(fraction) {
        return None;
    }
    let value: f64 = body.replace(',', "").parse().ok()?;
    let half = 0.5 * 10f64.powi(exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?);
    if !value.is_finite() || !half.is_finite() || half == 0.0 {
        return None;
    }
    Some(Number {
        text: body.to_owned(),
        value,
        half,
        decimals: fraction.len(),
        signed: unsigned.len() < body.len(),
        percent,
    })
}

/// 100 × (new − base) / base: least, most, and from the printed values. `None` where the base may be 0.
pub(super) fn increase(base: &Number, new: &Number) -> Option<(f64, f64, f64)> {
    if base.low() <= 0.0 || new.value < 0.0 {
        return None;
    }
    let percent = |new: f64, base: f64| 100.0 * (new - base) / base;
    let least = percent(new.low().max(0.0), base.high());
    let most = percent(new.high(), base.low());
    (least.is_finite() && most.is_finite()).then(|| (least, most, percent(new.value, base.value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(line: &str) -> Vec<String> {
        tokens(&normalise(line)).iter().filter_map(Token::number).map(Number::shown).collect()
    }

    #[test]
    fn numbers_of_mails_are_found() {
        for (line, found) in [
            (
                "> > Amean 1   58.69 (   0.00%)  30.21 *  48.53%*",
                vec!["1", "58.69", "0.00%", "30.21", "48.53%"],
            ),
            ("w/o:\t7.689 7.485=7.5853", vec!["7.689", "7.485", "7.5853"]),
            ("7.674=3D7.5853", vec!["7.674", "7.5853"]),
            ("\u{2212}1.01 %, 3,723,554 and 4.45E+09", vec!["-1.01%", "3,723,554", "4.45E+09"]),
            ("1e400 5.5.0-rc7 127.0.0.1 #52:417 0-23 v5.9 1e-400 1,2 --5", vec![]),
            ("", vec![]),
            ("9.6878s 3.246 s.", vec!["9.6878", "3.246"]),
        ] {
            assert_eq!(numbers(line), found, "{line}");
        }
    }

    #[test]
    fn a_printed_number_is_an_interval() {
        let number = |text| match &tokens(text)[0] {
            Token::Number(number) => number.clone(),
            other => panic!("{other:?}"),
        };
        let (base, new) = (number("2.64"), number("4.17"));
        let (least, most, _) = increase(&base, &new).expect("a base");
        // The range that the printed -58.08 of the document's table lies in.
        assert!((least - 57.466).abs() < 0.01 && (most - 58.444).abs() < 0.01, "{least} {most}");
        assert!(number("58.08%").admits(least, most, false));
        assert!(!number("57.45%").admits(least, most, false));
        assert!(
            number("4.08%").admits(4.0868, 4.0869, true) && !number("4.08%").admits(4.0868, 4.0869, false)
        );
        assert!(increase(&number("0.00"), &new).is_none());
    }
}
