//! Numbers as the tools of that tree read and print them: Perl's formats and number syntax, `sort -n`'s prefix.

/// `%*.*f` in Perl: as C prints it, but `NaN` and `Inf`.
pub(super) fn fixed(value: f64, width: usize, decimals: usize) -> String {
    format!("{:>width$}", bare(value, decimals))
}

/// `%.*f`.
pub(super) fn bare(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Inf" } else { "-Inf" }.to_owned()
    } else {
        format!("{value:.decimals$}")
    }
}

/// `%+.*f`.
pub(super) fn signed(value: f64, decimals: usize) -> String {
    let text = bare(value, decimals);
    if text.starts_with('-') || value.is_nan() { text } else { format!("+{text}") }
}

/// The number after it has been made text and read again, as Perl does where it joins a number to a string: 15 digits, but
/// all of a whole number.
pub(super) fn through_text(value: f64) -> f64 {
    if value.is_finite() && value.fract() != 0.0 {
        format!("{value:.14e}").parse().expect("a printed number is a number")
    } else {
        value
    }
}

/// A number in Perl's syntax with nothing around it but white space; what mmtests keeps as a sample.
pub(super) fn number(text: &str) -> Option<f64> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let word = unsigned.to_ascii_lowercase();
    if ["nan", "inf", "infinity"].contains(&word.as_str()) {
        return trimmed.parse().ok();
    }
    // Rust's own syntax is Perl's, apart from the words.
    unsigned
        .starts_with(|first: char| first.is_ascii_digit() || first == '.')
        .then(|| trimmed.parse().ok())?
}

/// The number that text begins with, 0 where it begins with none, as Perl's and awk's arithmetic takes text.
pub(super) fn leading(text: &str) -> f64 {
    let text = text.trim_start();
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(end);
    end += whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return 0.0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    text[..end].parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_perl_prints_them() {
        assert_eq!(fixed(0.0625, 8, 3), "   0.062", "half to even, as C");
        assert_eq!(fixed(f64::NAN, 6, 2), "   NaN");
        assert_eq!(fixed(-0.001, 6, 2), " -0.00");
        assert_eq!(signed(0.0, 2), "+0.00");
        assert_eq!(signed(-3.111, 2), "-3.11");
        assert_eq!(through_text(0.1 + 0.2), 0.3);
    }

    #[test]
    fn samples_are_numbers_and_nothing_else() {
        assert_eq!(number(" 12.50\n"), Some(12.5));
        assert_eq!(number("1e3"), Some(1000.0));
        assert_eq!((number(""), number("12ms"), number("-"), number("0x10")), (None, None, None, None));
        assert_eq!((leading("12ms"), leading("x"), leading("1e"), leading("-.5e1z")), (12.0, 0.0, 1.0, -5.0));
    }
}
