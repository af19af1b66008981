//! Times, sizes and distributions as text: `10us`, `64KiB`, `uniform(20ms..100ms)`, `exponential(30us)`, `quantiles(1us, 2us, 9us)`.
//!
//! What is printed reads back as the same value. Numbers may have a fraction as long as the result is whole; nothing is rounded.

use crate::Dist;

const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];
const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("K", 1 << 10),
    ("KiB", 1 << 10),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
];

/// Reads a time in ns; a number without a unit is in units of `bare_ns`.
///
/// # Errors
/// A fragment saying what was expected.
pub fn parse_time(text: &str, bare_ns: u64) -> Result<u64, String> {
    parse_quantity(text, TIME_UNITS, bare_ns)
        .ok_or_else(|| format!("expected a time such as `10us`, `8ms` or `2s`, found `{}`", text.trim()))
}

/// Reads a size in bytes; a number without a unit is in units of `bare_bytes`.
///
/// # Errors
/// A fragment saying what was expected.
pub fn parse_size(text: &str, bare_bytes: u64) -> Result<u64, String> {
    parse_quantity(text, SIZE_UNITS, bare_bytes)
        .ok_or_else(|| format!("expected a size such as `100`, `64KiB` or `1MiB`, found `{}`", text.trim()))
}

/// Reads a distribution of times, in ns; numbers without a unit are in units of `bare_ns`.
///
/// # Errors
/// A fragment saying what was expected.
pub fn parse_dist(text: &str, bare_ns: u64) -> Result<Dist, String> {
    let text = text.trim();
    let dist = parse_any_dist(text, bare_ns)?;
    match dist.points().last() {
        Some(greatest) if *greatest > DRAWN_NS_MAX => {
            Err(format!("expected times of at most {}, found `{text}`", time_text(DRAWN_NS_MAX)))
        }
        _ => Ok(dist),
    }
}

/// The longest time that a program may draw, ns: eleven days. Sums of what fits cannot overflow in practice.
const DRAWN_NS_MAX: u64 = 1_000_000_000_000_000;

fn parse_any_dist(text: &str, bare_ns: u64) -> Result<Dist, String> {
    let Some((shape, rest)) = text.split_once('(') else {
        return parse_time(text, bare_ns).map(Dist::constant).map_err(|_| {
            format!(
                "expected a time such as `10us`, or `uniform(A..B)`, `exponential(MEAN)` or `quantiles(A, B, …)`, found `{text}`"
            )
        });
    };
    let inner = rest.strip_suffix(')').ok_or_else(|| format!("expected `)` at the end of `{text}`"))?;
    let times = |separator: &str| -> Result<Vec<u64>, String> {
        inner.split(separator).map(|item| parse_time(item, bare_ns)).collect()
    };
    match shape.trim() {
        "constant" => parse_time(inner, bare_ns).map(Dist::constant),
        "uniform" => match times(if inner.contains("..") { ".." } else { "," })?[..] {
            [low, high] if low <= high => Ok(Dist::uniform(low, high)),
            [_, _] => Err(format!("expected the lower bound first in `{text}`")),
            _ => Err(format!("expected two bounds, `uniform(A..B)`, found `{text}`")),
        },
        // Checked before, since the greatest quantile is seven times the mean.
        "exponential" | "exp" => match parse_time(inner, bare_ns)? {
            mean if mean > DRAWN_NS_MAX => Err(format!("expected a mean of at most {}, found `{text}`", time_text(DRAWN_NS_MAX))),
            mean => Ok(Dist::exponential(mean)),
        },
        "quantiles" => Dist::quantiles(&times(",")?)
            .ok_or_else(|| format!("expected quantiles that do not fall, equally spaced from the least value to the greatest, in `{text}`")),
        other => Err(format!(
            "unknown distribution `{other}`: expected `constant`, `uniform`, `exponential` or `quantiles`"
        )),
    }
}

/// A time in the greatest unit that shows it whole.
#[must_use]
pub fn time_text(ns: u64) -> String {
    match ns {
        0 => "0ns".to_owned(),
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

/// A distribution of times, as [`parse_dist`] reads it.
#[must_use]
pub fn dist_text(dist: &Dist) -> String {
    match dist.points() {
        [one] => time_text(*one),
        [low, high] => format!("uniform({}..{})", time_text(*low), time_text(*high)),
        many => {
            let mean = dist.mean();
            // Rounding down at each of the 64 points leaves the mean of the table a little under the nominal one.
            let nominal = (mean..=mean.saturating_add(64)).find(|mean| Dist::exponential(*mean) == *dist);
            match nominal {
                Some(mean) => format!("exponential({})", time_text(mean)),
                None => {
                    let points: Vec<String> = many.iter().map(|point| time_text(*point)).collect();
                    format!("quantiles({})", points.join(", "))
                }
            }
        }
    }
}

/// `None` when it is not a number with one of the units, has more decimals than the unit has, or overflows.
fn parse_quantity(text: &str, units: &[(&str, u64)], bare: u64) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = (text[..end].replace('_', ""), text[end..].trim());
    let scale = if unit.is_empty() { bare } else { units.iter().find(|(name, _)| *name == unit)?.1 };
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 12 {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let part = match fraction {
        "" => 0,
        digits => {
            let scaled = u128::from(digits.parse::<u64>().ok()?) * u128::from(scale);
            let divisor = 10u128.pow(digits.len() as u32);
            scaled.is_multiple_of(divisor).then_some((scaled / divisor) as u64)?
        }
    };
    whole.checked_add(part)
}

/// The name among `known` that is nearest to `name`, if it is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1 + candidate.len() / 4 || (name.len() >= 3 && candidate.starts_with(name))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// `; did you mean `NAME`?` with the nearest of the known names, or nothing: for the end of a message.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |found| format!("; did you mean `{found}`?"))
}

#[cfg(test)]
mod tests {
    use super::{dist_text, nearest, parse_dist, parse_size, parse_time, time_text};
    use crate::Dist;

    #[test]
    fn times_and_sizes_read_as_written() {
        assert_eq!(parse_time("10us", 1), Ok(10_000));
        assert_eq!(parse_time(" 2.5 ms", 1), Ok(2_500_000));
        assert_eq!(parse_time("30000", 1_000), Ok(30_000_000));
        assert_eq!(
            parse_time("0.3ns", 1).expect_err("not whole"),
            "expected a time such as `10us`, `8ms` or `2s`, found `0.3ns`"
        );
        assert!(
            parse_time("-1us", 1).is_err()
                && parse_time("us", 1).is_err()
                && parse_time("1.2.3s", 1).is_err()
        );
        assert_eq!(parse_size("64KiB", 1), Ok(65_536));
        assert_eq!(parse_size("256", 1 << 10), Ok(262_144));
        assert_eq!(time_text(1_500), "1500ns");
    }

    #[test]
    fn distributions_read_back_as_printed() {
        for text in [
            "0ns",
            "10us",
            "uniform(20ms..100ms)",
            "exponential(30us)",
            "exponential(7ns)",
            "quantiles(1us, 2us, 9us)",
        ] {
            let dist = parse_dist(text, 1).expect(text);
            assert_eq!(dist_text(&dist), text);
            assert_eq!(parse_dist(&dist_text(&dist), 1), Ok(dist));
        }
        assert_eq!(parse_dist("uniform(1us,2us)", 1), Ok(Dist::uniform(1_000, 2_000)));
        assert_eq!(
            parse_dist("uniform(2us..1us)", 1).expect_err("order"),
            "expected the lower bound first in `uniform(2us..1us)`"
        );
        for text in ["exponential(18446744073s)", "uniform(1s..9999999s)", "9999999s"] {
            assert!(parse_dist(text, 1).expect_err(text).contains("at most 1000000s"), "{text}");
        }
        assert!(parse_dist("normal(1us)", 1).expect_err("name").starts_with("unknown distribution `normal`"));
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("hackbnech", ["schbench", "hackbench"]), Some("hackbench"));
        assert_eq!(nearest("loop", ["loops", "fds"]), Some("loops"));
        assert_eq!(nearest("quux", ["loops", "fds"]), None);
    }
}
