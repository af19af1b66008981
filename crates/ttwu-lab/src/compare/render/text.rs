//! The default: what a person reads first, in 80 columns.

use super::{direction, value};
use crate::compare::{Comparison, Row, RowArm};
use std::fmt::Write;
use ttwu_stats::{Interval, Judgement, Verdict, describe};

/// Counters shown under *why*.
const COUNTERS: usize = 8;

pub(super) fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    let width = comparison.arms.iter().map(|arm| arm.label.chars().count()).max().unwrap_or(0).min(38);
    for (index, arm) in comparison.arms.iter().enumerate() {
        let role = if index == 0 { "baseline" } else { "against it" };
        let machine = arm.machine.as_ref().map_or(String::new(), |machine| format!(" on {machine}"));
        wrap(&mut out, &format!("{:width$}  {role}: {}{machine}", arm.label, arm.what), width + 4);
    }
    wrap(&mut out, &format!("{}; 95 % intervals, Holm's correction.", sampling(comparison)), 0);
    if comparison.interrupted {
        out.push_str("INTERRUPTED: what follows is what there was.\n");
    }
    for index in 1..comparison.arms.len() {
        table(&mut out, comparison, index);
        why(&mut out, comparison, index);
    }
    for note in &comparison.notes {
        wrap(&mut out, &format!("note: {note}"), 6);
    }
    out
}

/// How the samples came about, for a line of its own or a `#` line.
pub(super) fn sampling(comparison: &Comparison) -> String {
    match comparison.seeds {
        Some((first, count)) => {
            let last = first + count as u64 - 1;
            format!("{count} runs of each arm with the same seeds ({first}-{last}), interleaved")
        }
        None if comparison.arms.iter().all(|arm| arm.simulated) => "kept runs, not paired".to_owned(),
        None => "runs as measured, not paired".to_owned(),
    }
}

fn table(out: &mut String, comparison: &Comparison, index: usize) {
    if comparison.arms.len() > 2 {
        let _ = write!(out, "\n{}:", comparison.arms[index].label);
    }
    let _ =
        writeln!(out, "\n{:22}{:>9} {:>9} {:>8} {:>16}  verdict", "row", "base", "new", "change", "interval");
    for row in &comparison.rows {
        line(out, row, &row.arms[0], &row.arms[index]);
    }
}

fn line(out: &mut String, row: &Row, base: &RowArm, new: &RowArm) {
    let arrow = if direction(row.better) == "lower" { "-" } else { "+" };
    let mut name = format!("{}, {} ({arrow})", row.name, row.unit);
    if name.chars().count() > 21 {
        let _ = writeln!(out, "{name}");
        name.clear();
    }
    let mean = |arm: &RowArm| describe::mean(&arm.samples).map_or("missing".to_owned(), value);
    let _ = write!(out, "{name:22}{:>9} {:>9} ", mean(base), mean(new));
    let Some(judgement) = &new.judgement else {
        out.push_str("      --               --  not in both\n");
        return;
    };
    match judgement.change_pct {
        Some(Interval { estimate, low, high }) => {
            let interval = format!("[{}, {}]", pct(low), pct(high));
            let _ = write!(out, "{:>8} {interval:>16}  ", format!("{}%", pct(estimate)));
        }
        None => out.push_str("      --               --  "),
    }
    match new.verdict {
        Some(Verdict::Better) => out.push_str("better"),
        Some(Verdict::Worse) => out.push_str("worse"),
        Some(Verdict::Equivalent) => out.push_str("equivalent"),
        Some(Verdict::CannotTell { .. }) | None => out.push_str("cannot tell"),
    }
    out.push('\n');
    if let Some(Verdict::CannotTell { detectable_pct: Some(pct) }) = new.verdict {
        let _ = writeln!(out, "    a change of {pct:.1} % would have shown four times in five");
    }
    let undecided = matches!(new.verdict, Some(Verdict::CannotTell { .. }));
    if undecided && judgement.change_pct.is_some_and(|change| !change.contains(0.0)) {
        out.push_str("    by itself it would be a difference; of this many rows it may be chance\n");
    }
    if judgement.agree == Some(false) && can_disagree(judgement) {
        out.push_str("    the permutation test disagrees: look at the samples (--style csv)\n");
    }
    let modes = match (judgement.base_modes.is_some(), judgement.new_modes.is_some()) {
        (true, true) => "base and new have",
        (true, false) => "base has",
        (false, true) => "new has",
        (false, false) => return,
    };
    let _ = writeln!(out, "    {modes} two modes: a mean says little");
}

/// A permutation test of few runs cannot come below 5 %, whatever they are: that is no disagreement.
fn can_disagree(judgement: &Judgement) -> bool {
    judgement.permutation.is_some_and(|test| !test.exact || 2.0 / (test.arrangements as f64) < 0.05)
}

fn pct(value: f64) -> String {
    if value.abs() >= 99.95 { format!("{value:+.0}") } else { format!("{value:+.2}") }
}

fn why(out: &mut String, comparison: &Comparison, index: usize) {
    let moved = &comparison.why[index - 1];
    let Some(first) = moved.first() else {
        if comparison.counted {
            out.push_str("\nwhy: no counter moved.\n");
        }
        return;
    };
    out.push('\n');
    if first.z.abs() < 2.0 {
        wrap(out, "why: no counter moved by more than the noise of two runs. The largest:", 5);
    } else {
        let _ = writeln!(
            out,
            "why: {:41}{:>11} {:>11} {:>8}",
            "counters by how far they moved", "base", "new", "z"
        );
    }
    for moved in moved.iter().take(COUNTERS) {
        let [base, new] =
            [moved.base, moved.new].map(|value| crate::compare::why::amount(value, &moved.unit));
        let mut words = moved.words();
        if words.chars().count() > 43 {
            words = moved.counter.clone();
        }
        let _ = writeln!(out, "  {words:44}{base:>11} {new:>11} {:>8}", format!("{:+.1}", moved.z));
    }
    if first.z.abs() >= 2.0 {
        let mut sentence = first.sentence();
        sentence[..1].make_ascii_uppercase();
        wrap(out, &format!("{sentence}. That is where to look, no proof of a cause."), 0);
    }
}

/// A paragraph of 80 columns; lines after the first are indented.
pub(crate) fn wrap(out: &mut String, text: &str, indent: usize) {
    let mut column = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > 80 {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}
