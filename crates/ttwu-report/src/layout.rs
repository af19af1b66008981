//! Shares, bars and wrapped lists, for the text views: 80 columns, integers only.

use std::fmt::Write;

/// No line is longer, unless a single word is.
pub(crate) const WIDTH: usize = 80;

/// `part` of `whole` as `12.3%`; `-` of nothing. Halves are rounded up, but a part that is not all is never `100.0%`, and
/// one that is not nothing never `0.0%`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let tenths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole);
    let tenths = match tenths {
        0 if part > 0 => return "<0.1%".to_owned(),
        1000 if part < whole => 999,
        tenths => tenths,
    };
    format!("{}.{}%", tenths / 10, tenths % 10)
}

/// Thousandths as `1.23`.
pub(crate) fn milli(value: u64) -> String {
    format!("{}.{:02}", value / 1000, value % 1000 / 10)
}

/// A count with thousands apart: `1 234 567`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `label` and then `items`, two spaces apart, wrapped and indented under the first one.
pub(crate) fn list(out: &mut String, label: &str, items: impl IntoIterator<Item = String>) {
    let indent = label.chars().count();
    let mut column = indent;
    let _ = write!(out, "{label}");
    let mut first = true;
    for item in items {
        let width = item.chars().count();
        if !first && column + 2 + width > WIDTH {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
            first = true;
        }
        let gap = if first { "" } else { "  " };
        let _ = write!(out, "{gap}{item}");
        column += width + gap.len();
        first = false;
    }
    out.push('\n');
}

/// A bar of eighths, `width` columns for `whole`.
pub(crate) fn bar(part: u64, whole: u64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if whole == 0 {
        return String::new();
    }
    let eighths = u128::from(part.min(whole)) * width as u128 * 8 / u128::from(whole);
    let (full, rest) = ((eighths / 8) as usize, (eighths % 8) as usize);
    let mut out = "█".repeat(full);
    if rest > 0 {
        out.push(EIGHTHS[rest]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_do_not_pretend() {
        let shares: Vec<String> = [(0, 10), (1, 3), (1, 100_000), (99_999, 100_000), (10, 10), (0, 0)]
            .map(|(a, b)| percent(a, b))
            .into();
        assert_eq!(shares, ["0.0%", "33.3%", "<0.1%", "99.9%", "100.0%", "-"]);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(1_234_567)],
            ["0", "999", "1 000", "1 234 567"]
        );
        assert_eq!([milli(0), milli(1_999), milli(12_345)], ["0.00", "1.99", "12.34"]);
        assert_eq!([bar(1, 2, 4), bar(1, 16, 2), bar(0, 5, 9)], ["██", "▏", ""]);
    }

    #[test]
    fn lists_wrap_under_their_label() {
        let mut out = String::new();
        list(&mut out, "ab  ", (0..12).map(|item| format!("item number {item}")));
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines.len() == 3 && lines.iter().all(|line| line.chars().count() <= WIDTH), "{out}");
        assert!(lines[1].starts_with("    item"), "{out}");
    }
}
