//! The latency table of `ttwu report … latency`: 80 columns, what the waits are made of, then a row a name or a task.

use crate::units::{fit, short_ns};
use std::fmt::Write;
use ttwu_analysis::{Censored, LatencyReport, LatencyRow, Summary};

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsBy {
    /// All tasks of a name.
    Name,
    /// One task.
    Task,
}

/// The table. `limit` rows at most; what is left out is said.
#[must_use]
pub fn latency(report: &LatencyReport, by: RowsBy, limit: usize) -> String {
    let mut out = String::new();
    kinds(&mut out, &report.total);
    out.push('\n');
    let rows = match by {
        RowsBy::Name => &report.by_name,
        RowsBy::Task => &report.by_task,
    };
    let first = match by {
        RowsBy::Name => format!("{:<19} {:>5}", "name", "tasks"),
        RowsBy::Task => format!("{:<25}", "task:pid"),
    };
    let _ = writeln!(
        out,
        "{first} {:>7} {:>7} {:>6} {:>7} {:>7} {:>7} {:>7}",
        "run", "waits", "cut", "avg", "p50", "p99", "max"
    );
    for row in rows.iter().take(limit) {
        line(&mut out, row, by);
    }
    if rows.len() > limit {
        let _ = writeln!(out, "… {} more", rows.len() - limit);
    }
    line(&mut out, &LatencyRow { name: Some("(all)".to_owned()), ..report.total.clone() }, by);
    for missing in &report.not_measured {
        let _ = writeln!(out, "not measured: {missing}");
    }
    let cut = report.total.censored;
    if cut.total() != 0 {
        let Censored { by_start, by_gap, by_race, by_end } = cut;
        let _ = writeln!(out, "cut: {} waits not seen whole, which are in no figure:", cut.total());
        let _ = write!(out, "     at the start {by_start}, at the end {by_end}, by gaps {by_gap}");
        let _ = writeln!(out, ", woken before asleep {by_race}");
    }
    out
}

fn label(row: &LatencyRow) -> String {
    match (&row.name, row.pids.as_slice()) {
        (Some(name), [pid]) => format!("{name}:{pid}"),
        (Some(name), _) => name.clone(),
        (None, [pid, ..]) => format!("<{pid}>"),
        (None, []) => String::new(),
    }
}

fn line(out: &mut String, row: &LatencyRow, by: RowsBy) {
    let delay = &row.delay;
    let first = match by {
        RowsBy::Name => format!("{} {:>5}", fit(&label(row), 19), row.tasks.len()),
        RowsBy::Task => fit(&label(row), 25),
    };
    let quantile = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), short_ns);
    let _ = writeln!(
        out,
        "{first} {:>7} {:>7} {:>6} {:>7} {:>7} {:>7} {:>7}",
        short_ns(row.runtime_ns),
        delay.count,
        row.censored.total(),
        quantile(delay.ns_avg()),
        quantile(delay.ns.map(|ns| ns.p50)),
        quantile(delay.ns.map(|ns| ns.p99)),
        quantile((delay.count != 0).then_some(delay.ns_max)),
    );
}

fn kinds(out: &mut String, total: &LatencyRow) {
    let _ = writeln!(
        out,
        "{:<22} {:>7} {:>7} {:>7} {:>7} {:>7} {:>16}",
        "waits of all tasks", "count", "avg", "p50", "p99", "max", "max from, s"
    );
    let mut kind = |name: &str, summary: Option<&Summary>| {
        let Some(summary) = summary else {
            let _ = writeln!(out, "{name:<22} {:>15}", "not measured");
            return;
        };
        let Some(ns) = summary.ns else {
            let _ = writeln!(out, "{name:<22} {:>7}", 0);
            return;
        };
        let avg = short_ns(summary.ns_avg().unwrap_or(0));
        let (p50, p99, max) = (short_ns(ns.p50), short_ns(ns.p99), short_ns(summary.ns_max));
        let from = crate::perf_latency::seconds(summary.max_from);
        let _ =
            writeln!(out, "{name:<22} {:>7} {avg:>7} {p50:>7} {p99:>7} {max:>7} {from:>16}", summary.count);
    };
    kind("after a wake-up", total.wakeup.as_ref());
    kind("  waking to queued", total.waking_to_wakeup.as_ref());
    kind("  queued to running", total.wakeup_to_switch.as_ref());
    kind("of a new task", total.new.as_ref());
    kind("after a preemption", Some(&total.preempted));
    kind("all", Some(&total.delay));
}
