//! dmatest's two rates against one run time.
//!
//! Both come from one whole number of microseconds. The transfers a second leave a range of run times; the KB a second must
//! be possible inside it: for transfers of one length, or, with random lengths, for some whole number of KiB in all.

use super::super::{Finding, Kind, Report};
use crate::outputs::DmatestSummary;

/// Run times that are tried one by one, for random lengths.
const TIMES_MAX: u64 = 100_000;

pub(super) fn check(line: usize, summary: &DmatestSummary, report: &mut Report) {
    let finding = |says: String, should_be: String, why: String| Finding {
        line,
        says,
        should_be,
        kind: Kind::Dmatest,
        why,
    };
    report.check(summary.failures <= summary.tests, || {
        finding(
            format!("{} failures", summary.failures),
            format!("at most {}", summary.tests),
            format!("of {} tests", summary.tests),
        )
    });
    if summary.tests == 0 || summary.iops_e2 == 0 {
        return;
    }
    let Some((shortest, longest)) = times(summary) else {
        report.check(false, || {
            finding(
                format!("{}.{:02} iops", summary.iops_e2 / 100, summary.iops_e2 % 100),
                "another figure".to_owned(),
                format!("no whole number of microseconds gives it for {} tests", summary.tests),
            )
        });
        return;
    };
    // From 71 minutes on the kernel's own arithmetic is wrong; and without KB there is nothing to compare.
    if longest > u64::from(u32::MAX) || summary.kb_per_s == 0 {
        return;
    }
    let one_length =
        lengths(summary).into_iter().any(|kib| time_for(summary, kib, shortest, longest).is_some());
    report.check(one_length || any_length(summary, shortest, longest), || {
        let kib = lengths(summary)[1];
        let total = u128::from(kib) * u128::from(summary.tests) * 1_000_000;
        let (least, most) = (total / u128::from(longest), total / u128::from(shortest));
        let off = if u128::from(summary.kb_per_s) < least {
            least - u128::from(summary.kb_per_s)
        } else {
            u128::from(summary.kb_per_s).saturating_sub(most)
        };
        let range =
            |least: String, most: String| if least == most { least } else { format!("{least} to {most}") };
        let time = range(shortest.to_string(), longest.to_string());
        finding(
            format!("{} KB/s", summary.kb_per_s),
            format!("{} KB/s", range(least.to_string(), most.to_string())),
            format!(
                "{} tests at {}.{:02} iops took {time} us; with {kib} KiB a test off by {off}",
                summary.tests,
                summary.iops_e2 / 100,
                summary.iops_e2 % 100
            ),
        )
    });
}

/// The shortest and longest run time that print these transfers a second.
fn times(summary: &DmatestSummary) -> Option<(u64, u64)> {
    let whole = u128::from(summary.iops_e2 / 100) << 8;
    let fraction = u128::from(summary.iops_e2 % 100);
    // 8-bit fractions whose two digits, cut off, are these.
    let mut eighths = (0u128..256).filter(|eighth| (eighth * 100) >> 8 == fraction);
    let lowest = whole + eighths.next()?;
    let highest = eighths.next_back().map_or(lowest, |eighth| whole + eighth);
    let scaled = (u128::from(summary.tests) * 1_000_000) << 8;
    // rate = scaled / time, cut off: time in (scaled / (rate + 1), scaled / rate].
    let longest = scaled / lowest.max(1);
    let shortest = scaled / (highest + 1) + 1;
    if shortest > longest {
        return None;
    }
    let clamp = |time: u128| u64::try_from(time).unwrap_or(u64::MAX);
    Some((clamp(shortest), clamp(longest)))
}

/// KiB a transfer that the ratio of the rates is near to.
fn lengths(summary: &DmatestSummary) -> [u64; 3] {
    let near = (summary.kb_per_s as f64 * 100.0 / summary.iops_e2 as f64).round().max(1.0) as u64;
    [near.saturating_sub(1).max(1), near, near.saturating_add(1)]
}

/// A run time that gives the KB a second with transfers of one length.
fn time_for(summary: &DmatestSummary, kib: u64, shortest: u64, longest: u64) -> Option<u64> {
    let total = u128::from(kib) * u128::from(summary.tests) * 1_000_000;
    let most = total / u128::from(summary.kb_per_s);
    let least = total / (u128::from(summary.kb_per_s) + 1) + 1;
    let time = least.max(u128::from(shortest));
    (time <= most.min(u128::from(longest))).then(|| u64::try_from(time).unwrap_or(u64::MAX))
}

/// Whether some run time and some whole number of KiB in all give the KB a second.
fn any_length(summary: &DmatestSummary, shortest: u64, longest: u64) -> bool {
    // From a second on every rate is possible.
    if longest >= 1_000_000 || longest - shortest > TIMES_MAX {
        return true;
    }
    (shortest..=longest).any(|time| {
        let least = (u128::from(summary.kb_per_s) * u128::from(time)).div_ceil(1_000_000);
        least * 1_000_000 < (u128::from(summary.kb_per_s) + 1) * u128::from(time)
    })
}
