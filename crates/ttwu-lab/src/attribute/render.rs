//! An attribution as text and as `ttwu/attribute/1`.

use super::{Attribution, Part};
use serde_json::{Value, json};
use std::fmt::Write;
use ttwu_stats::{Better, Interval};

/// In 80 columns.
#[must_use]
pub fn render_text(found: &Attribution) -> String {
    let [a, b] = &found.arms;
    let (name, unit, better) = &found.row;
    let direction = match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    let mut out = format!("{a} -> {b}\n{}, on {}\n", found.workload, found.machine);
    let Interval { estimate, low, high } = found.total_pct;
    let _ = writeln!(
        out,
        "{name}, {unit} ({direction}): {:.5} -> {:.5}, {estimate:+.2} % [{low:+.2}, {high:+.2}]",
        found.means[0], found.means[1]
    );
    let how = if found.exact { "all sets of factors" } else { "sampled orders" };
    let _ = writeln!(out, "{} seeds, {how}, {} runs; 95 % intervals over seeds", found.seeds, found.runs);
    if found.interrupted {
        out.push_str("INTERRUPTED: what follows is what there was.\n");
    }
    let _ = writeln!(
        out,
        "\n{:24}{:>8} {:>18} {:>8} {:>9} {:>9}",
        "factor", "effect", "interval", "share", "added", "taken"
    );
    let idle = |part: &&Part| {
        [part.effect_pct, part.added_pct, part.taken_pct]
            .iter()
            .all(|effect| effect.low == 0.0 && effect.high == 0.0)
    };
    for part in found.parts.iter().filter(|part| !idle(part)) {
        line(&mut out, part);
    }
    let names: Vec<&str> = found.parts.iter().filter(idle).map(|part| part.factor.name.as_str()).collect();
    if !names.is_empty() {
        crate::compare::wrap(&mut out, &format!("without any effect here: {}", names.join(", ")), 2);
    }
    out.push_str("\neffect: part of the difference, % of A; added: to A alone; taken: from B alone.\n");
    if found.total_pct.contains(0.0) {
        out.push_str("No shares: the difference itself cannot be told from nothing.\n");
    }
    if found.parts.iter().any(|part| part.factor.name == "generation") {
        out.push_str("generation: rules of the kernel that no setting changes.\n");
    }
    out
}

fn line(out: &mut String, part: &Part) {
    let Interval { estimate, low, high } = part.effect_pct;
    let share = part.share_pct.map_or("--".to_owned(), |share| format!("{:.0}%", share.estimate));
    let _ = writeln!(
        out,
        "{:24}{:>8} {:>18} {share:>8} {:>9} {:>9}",
        part.factor.name,
        format!("{estimate:+.2}%"),
        format!("[{low:+.2}, {high:+.2}]"),
        format!("{:+.2}%", part.added_pct.estimate),
        format!("{:+.2}%", part.taken_pct.estimate),
    );
}

/// `ttwu/attribute/1`.
#[must_use]
pub fn render_json(found: &Attribution) -> String {
    let (name, unit, better) = &found.row;
    let interval = |interval: Interval| json!([interval.low, interval.high]);
    let features: Vec<Value> = found
        .parts
        .iter()
        .map(|part| {
            json!({
                "name": part.factor.name,
                "from": part.factor.from,
                "to": part.factor.to,
                "share_pct": part.share_pct.map(|share| share.estimate),
                "ci_pct": part.share_pct.map(interval),
                "effect_pct": part.effect_pct.estimate,
                "effect_ci_pct": interval(part.effect_pct),
                "added_pct": part.added_pct.estimate,
                "added_ci_pct": interval(part.added_pct),
                "taken_pct": part.taken_pct.estimate,
                "taken_ci_pct": interval(part.taken_pct),
            })
        })
        .collect();
    let value = json!({
        "schema": "ttwu/attribute/1",
        "arms": found.arms,
        "machine": found.machine,
        "workload": found.workload,
        "row": {"name": name, "unit": unit, "better": match better { Better::Lower => "lower", Better::Higher => "higher" }},
        "means": found.means,
        "total_pct": found.total_pct.estimate,
        "total_ci_pct": interval(found.total_pct),
        "features": features,
        "method": if found.exact { "exact" } else { "sampled orders" },
        "seeds": found.seeds,
        "runs_count": found.runs,
        "interrupted": found.interrupted,
    });
    format!("{value:#}\n")
}
