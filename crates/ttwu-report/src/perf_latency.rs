//! `perf sched latency`'s table, byte for byte as perf 6.1 or perf 7.3 print it.
//!
//! The figures come from `ttwu-analysis`' emulation; here are only perf's widths and units.

use std::fmt::Write;
use ttwu_analysis::{LOG_BUCKETS, PerfLatencyRow, PerfLatencyTable, PerfVersion};
use ttwu_model::Time;

/// The table as that version of perf prints it.
#[must_use]
pub fn perf_latency(table: &PerfLatencyTable) -> String {
    let mut out = String::new();
    match table.version {
        PerfVersion::V6_1 => {
            heading(
                &mut out,
                139,
                "  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          |",
            );
            for row in &table.rows {
                row_6_1(&mut out, row);
            }
            rule(&mut out, 113);
            let runtime = ms(table.runtime_ns);
            let _ = writeln!(out, "  TOTAL:                |{runtime:>11} ms |{:>9} |", table.delays);
            rule(&mut out, 51);
        }
        PerfVersion::V7 => {
            heading(
                &mut out,
                138,
                "  Task                    |    Runtime     |  Count   |    Avg delay    |    Max delay    |      Max delay start  |     Max delay end     |",
            );
            for row in &table.rows {
                row_7(&mut out, row);
            }
            rule(&mut out, 138);
            let runtime = scaled(table.runtime_ns);
            let _ = writeln!(out, "  TOTAL:                  |{runtime:>15} |{:>9} |", table.delays);
            rule(&mut out, 54);
        }
    }
    bad_events(&mut out, table);
    out.push('\n');
    out
}

/// The table with a summed delay instead of the times of the largest, as Mike Galbraith's patched perf prints it; the last
/// line has the largest and the sum of all. The rules (what is a delay) are those of `table`'s version.
#[must_use]
pub fn perf_latency_sum(table: &PerfLatencyTable) -> String {
    let mut out = String::new();
    heading(
        &mut out,
        102,
        "  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Sum delay ms      |",
    );
    for row in &table.rows {
        let (runtime, avg, max) = (ms(row.runtime_ns), ms(row.delay_ns_avg()), ms(row.delay_ns_max));
        let (name, sum) = (label(row), ms(row.delay_ns_sum));
        let _ = write!(out, "{name:<24}|{runtime:>11} ms |{:>9} | avg:{avg:>8} ms", row.delays);
        let _ = writeln!(out, " | max:{max:>8} ms | sum:{sum:>10} ms |");
    }
    rule(&mut out, 102);
    let max = ms(table.rows.iter().map(|row| row.delay_ns_max).max().unwrap_or(0));
    let sum = ms(table.rows.iter().map(|row| row.delay_ns_sum).sum());
    let _ = write!(out, "  TOTAL:                |{:>11} ms |{:>9} |", ms(table.runtime_ns), table.delays);
    let _ = writeln!(out, "{:17}| max:{max:>8} ms | sum:{sum:>10} ms |", "");
    rule(&mut out, 102);
    bad_events(&mut out, table);
    out.push('\n');
    out
}

/// perf 7.3's `-H`: the table and its logarithmic histogram.
#[must_use]
pub fn perf_latency_histogram(table: &PerfLatencyTable) -> String {
    let mut out = perf_latency(table);
    if table.delays == 0 {
        return out;
    }
    let total = table.delays;
    let _ = writeln!(
        out,
        "\n CPU Wait Latency Distribution Histogram (between snapshots) (total samples: {total})"
    );
    rule(&mut out, 67);
    let _ = writeln!(out, "  {:<16} | {:>10} | {:>6} | Histogram Graph", "Latency Range", "Count", "Pct");
    rule(&mut out, 67);
    for (bucket, &count) in table.histogram.iter().enumerate().filter(|&(_, &count)| count != 0) {
        let percent = count as f64 * 100.0 / total as f64;
        let bar = "#".repeat(((count * 40 / total) as usize).max(1));
        let _ = writeln!(out, "  {:<16} | {count:>10} | {percent:>5.1}% | {bar}", bucket_name(bucket));
    }
    rule(&mut out, 67);
    out
}

fn bucket_name(bucket: usize) -> String {
    match bucket {
        0 => "< 1 us".to_owned(),
        1..=10 => format!("{} - {} us", 1 << (bucket - 1), 1 << bucket),
        _ if bucket < LOG_BUCKETS - 1 => format!("{} - {} ms", 1 << (bucket - 11), 1 << (bucket - 10)),
        _ => ">= 1.05 s".to_owned(),
    }
}

fn heading(out: &mut String, width: usize, columns: &str) {
    out.push('\n');
    rule(out, width);
    let _ = writeln!(out, "{columns}");
    rule(out, width);
}

fn rule(out: &mut String, width: usize) {
    let _ = writeln!(out, " {}", "-".repeat(width));
}

fn label(row: &PerfLatencyRow) -> String {
    if row.threads > 1 {
        format!("  {}:({})", row.name, row.threads)
    } else {
        format!("  {}:{}", row.name, row.tid)
    }
}

fn row_6_1(out: &mut String, row: &PerfLatencyRow) {
    let (runtime, avg, max) = (ms(row.runtime_ns), ms(row.delay_ns_avg()), ms(row.delay_ns_max));
    let _ = write!(
        out,
        "{:<24}|{runtime:>11} ms |{:>9} | avg:{avg:>8} ms | max:{max:>8} ms |",
        label(row),
        row.delays
    );
    let (from, to) = (seconds(row.max_from), seconds(row.max_to));
    let _ = writeln!(out, " max start: {from:>12} s | max end: {to:>12} s");
}

fn row_7(out: &mut String, row: &PerfLatencyRow) {
    let (runtime, avg, max) = (scaled(row.runtime_ns), scaled(row.delay_ns_avg()), scaled(row.delay_ns_max));
    let _ = write!(out, "{:<24}  |{runtime:>15} |{:>9} |{avg:>16} |{max:>16} |", label(row), row.delays);
    let _ = writeln!(out, "{:>20} s |{:>20} s |", seconds(row.max_from), seconds(row.max_to));
}

fn bad_events(out: &mut String, table: &PerfLatencyTable) {
    let percent = |part: u64, of: u64| part as f64 / of as f64 * 100.0;
    let lost = table.lost;
    if lost.events != 0 && lost.records != 0 {
        let share = percent(lost.events, lost.records);
        let _ = writeln!(
            out,
            "  INFO: {share:.3}% lost events ({} out of {}, in {} chunks)",
            lost.events, lost.records, lost.chunks
        );
    }
    if table.switch_bugs != 0 && table.wakeups != 0 {
        let share = percent(table.switch_bugs, table.wakeups);
        let why = if lost.events != 0 { " (due to lost events?)" } else { "" };
        let (bugs, wakeups) = (table.switch_bugs, table.wakeups);
        let _ = writeln!(out, "  INFO: {share:.3}% context switch bugs ({bugs} out of {wakeups}){why}");
    }
}

/// perf computes in double precision and lets printf round; so does this.
fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

fn scaled(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns:>6} ns"),
        1_000..1_000_000 => format!("{:>6.3} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:>6.3} ms", ns as f64 / 1e6),
        1_000_000_000.. => format!("{:>6.3} s ", ns as f64 / 1e9),
    }
}

/// Seconds with six decimals, cut off rather than rounded.
pub(crate) fn seconds(at: Time) -> String {
    let us = at.as_ns() / 1000;
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}
