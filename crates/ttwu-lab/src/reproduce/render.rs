//! A reproduced thread as text for 80 columns and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use ttwu_stats::Interval;

use super::{CellCounters, Judged, Reproduced, Standing, Verdict};

/// A figure with four significant digits, or fewer where it is large.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.2}M", value / 1e6),
        size if size >= 1e4 => format!("{:.1}k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn interval(of: Option<Interval>) -> String {
    of.map_or_else(|| "missing".to_owned(), |i| format!("{}..{}", figure(i.low), figure(i.high)))
}

/// Lines no longer than 80 columns, indented.
fn wrapped(out: &mut String, indent: usize, text: &str) {
    let mut line = " ".repeat(indent);
    for word in text.split_whitespace() {
        if line.trim().len() + indent + word.len() + 1 > 79 && !line.trim().is_empty() {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
        }
        line.push_str(word);
        line.push(' ');
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

/// Counts of verdicts in words, such as `9 hold, 1 fails`.
fn tally(claims: &[Judged]) -> String {
    let count = |verdict| claims.iter().filter(|judged| judged.verdict == verdict).count();
    let mut parts = Vec::new();
    for (verdict, word) in [
        (Verdict::Holds, "hold"),
        (Verdict::Leans, "lean (part of the interval outside)"),
        (Verdict::Fails, "FAIL"),
        (Verdict::Missing, "missing"),
        (Verdict::NotClaimed, "shown without a verdict"),
    ] {
        if count(verdict) > 0 {
            parts.push(format!("{} {word}", count(verdict)));
        }
    }
    parts.join(", ")
}

/// The report of one experiment.
#[must_use]
pub fn render_text(reproduced: &Reproduced) -> String {
    let mut out = String::new();
    let experiment = reproduced.experiment;
    let _ = writeln!(out, "{}: {}", experiment.name, experiment.title);
    wrapped(&mut out, 2, experiment.thread);
    let _ = writeln!(out, "  {} seeds a cell; ratios of means over common seeds\n", reproduced.effort.seeds);
    if reproduced.interrupted {
        let seeds = reproduced.effort.seeds;
        let plural = if seeds == 1 { "" } else { "s" };
        wrapped(
            &mut out,
            2,
            &format!(
                "INTERRUPTED: what follows is of the {seeds} seed{plural} that all cells had run; costs that were not varied in all cells are left out."
            ),
        );
        out.push('\n');
    }
    for ((setup, variant), error) in &reproduced.failed {
        wrapped(&mut out, 2, &format!("FAILED: {setup}/{variant}: {error}"));
    }
    let _ = writeln!(
        out,
        "  {:<24}{:>10}{:>10}  {:<16}{:<9}",
        "claim", "published", "simulated", "95 % interval", "verdict"
    );
    for judged in &reproduced.claims {
        claim(&mut out, judged);
    }
    let _ = writeln!(out, "\n  {}: {}", experiment.name, tally(&reproduced.claims));
    if !experiment.fitted.is_empty() {
        let _ = writeln!(out, "\n  fitted, so no prediction:");
        for fitted in experiment.fitted {
            wrapped(&mut out, 4, &format!("{} (on {})", fitted.what, fitted.on));
        }
    }
    counters(&mut out, &reproduced.counters);
    out
}

/// One line a claim, for one screen.
#[must_use]
pub fn render_headlines(all: &[Reproduced]) -> String {
    let mut out = String::new();
    let seeds = all.first().map_or(0, |reproduced| reproduced.effort.seeds);
    let _ = writeln!(out, "Five threads of the kernel's mailing list, simulated ({seeds} seeds a cell)\n");
    for reproduced in all {
        let _ = writeln!(out, "{}: {}", reproduced.experiment.name, reproduced.experiment.title);
        for judged in &reproduced.claims {
            wrapped(&mut out, 2, judged.claim.text);
            let published = judged.claim.published_value.map_or_else(|| "in words".to_owned(), figure);
            let simulated = judged.simulated.map_or_else(|| "missing".to_owned(), |i| figure(i.estimate));
            let _ = writeln!(
                out,
                "    published {published}, simulated {simulated} (95 %: {}): {}",
                interval(judged.simulated),
                judged.verdict.name()
            );
        }
    }
    out
}

fn claim(out: &mut String, judged: &Judged) {
    let claim = judged.claim;
    let published = claim.published_value.map_or_else(|| "in words".to_owned(), figure);
    let simulated = judged.simulated.map_or_else(|| "missing".to_owned(), |i| figure(i.estimate));
    let _ = writeln!(
        out,
        "  {:<24}{published:>10}{simulated:>10}  {:<16}{:<9}",
        claim.id,
        interval(judged.simulated),
        judged.verdict.name()
    );
    wrapped(out, 4, claim.text);
    match claim.standing {
        Standing::Robust => {}
        Standing::Conditional(condition) => wrapped(out, 4, &format!("condition: {condition}")),
        Standing::NotClaimed(reason) => wrapped(out, 4, &format!("no claim: {reason}")),
    }
    if claim.without_condition.is_some() {
        let off = judged.without_condition;
        let estimate = off.map_or_else(|| "missing".to_owned(), |i| figure(i.estimate));
        let _ = writeln!(out, "    without the condition: {estimate} ({})", interval(off));
    }
    if judged.verdict == Verdict::Fails || judged.verdict == Verdict::Leans {
        let _ = writeln!(out, "    expected: {}", claim.bound);
        if let (Verdict::Fails, Some(why)) = (judged.verdict, claim.explanation()) {
            wrapped(out, 4, &format!("why: {why}"));
        }
    }
    for (cost, factor, estimate) in &judged.sensitive_to {
        let estimate = estimate.map_or_else(|| "missing".to_owned(), figure);
        let _ = writeln!(out, "    sensitive: {cost} {factor} gives {estimate}");
    }
}

fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", 100.0 * part / whole) } else { "none".to_owned() }
}

fn counters(out: &mut String, cells: &[CellCounters]) {
    let _ = writeln!(out, "\n  what was asked for and not posted, a run:");
    let _ = writeln!(
        out,
        "  {:<30}{:>9}{:>8}{:>8}{:>8}{:>7}{:>8}",
        "setup/variant", "scans -1", "budget", "x-LLC", "x-node", "IPIs", "preempt"
    );
    for c in cells {
        let failed = c.scans_budget + c.scans_exhausted + c.scans_forbidden;
        let mut name = format!("{}/{}", c.cell.0, c.cell.1);
        name.truncate(29);
        let _ = writeln!(
            out,
            "  {name:<30}{:>9}{:>8}{:>8}{:>8}{:>7}{:>8}",
            share(failed, failed + c.scans_hit),
            share(c.scans_budget, failed),
            figure(c.across_llc),
            figure(c.across_node),
            figure(c.ipis),
            format!("{}/{}", short(c.preempt_wake), short(c.preempt_tick)),
        );
    }
    wrapped(
        out,
        2,
        "scans -1: share of idle searches that found nothing; budget: of those, ended by the budget; preempt: by wake-up/by tick",
    );
}

fn short(value: f64) -> String {
    if value >= 1000.0 { format!("{:.0}k", value / 1000.0) } else { format!("{value:.0}") }
}

fn json_interval(of: Option<Interval>) -> Value {
    of.map_or(Value::Null, |i| json!({ "estimate": i.estimate, "ci": [i.low, i.high] }))
}

fn json_claim(judged: &Judged) -> Value {
    let claim = judged.claim;
    let (standing, note) = match claim.standing {
        Standing::Robust => ("robust", Value::Null),
        Standing::Conditional(condition) => ("conditional", Value::from(condition)),
        Standing::NotClaimed(reason) => ("not_claimed", Value::from(reason)),
    };
    let holds = match judged.verdict {
        Verdict::Holds | Verdict::Leans => Value::from(true),
        Verdict::Fails => Value::from(false),
        Verdict::NotClaimed | Verdict::Missing => Value::Null,
    };
    let sensitive: Vec<Value> = judged
        .sensitive_to
        .iter()
        .map(|(cost, factor, estimate)| json!({ "cost": cost, "factor": factor, "estimate": estimate }))
        .collect();
    json!({
        "id": claim.id,
        "text": claim.text,
        "published": claim.published,
        "published_value": claim.published_value,
        "simulated": json_interval(judged.simulated),
        "without_condition": json_interval(judged.without_condition),
        "bound": claim.bound.to_string(),
        "standing": standing,
        "note": note,
        "verdict": judged.verdict.name(),
        "holds": holds,
        "why_not": if judged.verdict == Verdict::Fails { claim.explanation() } else { None },
        "sensitivity_tried": judged.sensitivity_tried,
        "sensitive_to": sensitive,
    })
}

/// All experiments, `ttwu/reproduce/1`.
#[must_use]
pub fn render_json(all: &[Reproduced]) -> Value {
    let threads: Vec<Value> = all
        .iter()
        .map(|reproduced| {
            let fitted: Vec<Value> = reproduced
                .experiment
                .fitted
                .iter()
                .map(|fitted| json!({ "what": fitted.what, "on": fitted.on }))
                .collect();
            let counters: Vec<Value> = reproduced
                .counters
                .iter()
                .map(|c| {
                    json!({
                        "setup": c.cell.0,
                        "variant": c.cell.1,
                        "wakeups": c.wakeups,
                        "scans": { "hit": c.scans_hit, "budget": c.scans_budget, "exhausted": c.scans_exhausted, "forbidden": c.scans_forbidden },
                        "migrations": { "within_llc": c.across_cluster, "across_llc": c.across_llc, "across_node": c.across_node },
                        "preemptions": { "wakeup": c.preempt_wake, "tick": c.preempt_tick },
                        "ipis": c.ipis,
                        "cpus_hit": c.cpus_hit,
                    })
                })
                .collect();
            json!({
                "name": reproduced.experiment.name,
                "title": reproduced.experiment.title,
                "seeds": reproduced.effort.seeds,
                "sensitivity_seeds": reproduced.effort.sensitivity_seeds,
                "runs": reproduced.runs,
                "events": reproduced.events,
                "interrupted": reproduced.interrupted,
                "failed": reproduced.failed.iter().map(|((setup, variant), error)| {
                    json!({ "setup": setup, "variant": variant, "why": error.to_string() })
                }).collect::<Vec<_>>(),
                "claims": reproduced.claims.iter().map(json_claim).collect::<Vec<_>>(),
                "fitted": fitted,
                "counters": counters,
            })
        })
        .collect();
    let interrupted = all.iter().any(|reproduced| reproduced.interrupted);
    json!({ "schema": "ttwu/reproduce/1", "interrupted": interrupted, "threads": threads })
}
