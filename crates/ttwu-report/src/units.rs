//! Lengths of time for people: three significant digits and a unit, seven characters at most.

use ttwu_model::Duration;

/// `999ns`, `1.23us`, `45.6ms`, `789s`. Rounds half up; never shows `1000us` where `1.00ms` is meant.
pub(crate) fn short(length: Duration) -> String {
    let ns = length.as_ns();
    if ns < 1000 {
        return format!("{ns}ns");
    }
    for (unit, scale) in [("us", 1_000_u64), ("ms", 1_000_000), ("s", 1_000_000_000)] {
        // In hundredths, tenths or wholes, whichever leaves three digits.
        for (decimals, parts) in [(2_usize, 100_u64), (1, 10), (0, 1)] {
            let step = scale / parts;
            let rounded = ns / step + u64::from(ns % step >= step.div_ceil(2));
            if rounded < 1000 || (unit == "s" && parts == 1) {
                let (whole, rest) = (rounded / parts, rounded % parts);
                let rest = if decimals == 0 { String::new() } else { format!(".{rest:0decimals$}") };
                return format!("{whole}{rest}{unit}");
            }
        }
    }
    unreachable!("whole seconds take any length")
}

/// The same for a count of nanoseconds.
pub(crate) fn short_ns(ns: u64) -> String {
    short(Duration::from_ns(ns))
}

/// Exactly, or at most, `width` characters of `text`; what is too long ends in `…`.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return format!("{text:<width$}");
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        for (ns, expected) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1.00us"),
            (9_994, "9.99us"),
            (9_995, "10.0us"),
            (99_949, "99.9us"),
            (99_950, "100us"),
            (999_499, "999us"),
            (999_500, "1.00ms"),
            (344_024_000, "344ms"),
            (1_142_659_000, "1.14s"),
            (123_456_000_000_000, "123456s"),
        ] {
            assert_eq!(short_ns(ns), expected, "{ns}");
        }
        short_ns(u64::MAX);
    }
}
