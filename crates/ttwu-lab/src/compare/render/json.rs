//! `ttwu/compare/1`.

use super::direction;
use crate::compare::{Comparison, Row, RowArm};
use serde_json::{Value, json};
use ttwu_stats::{Interval, Verdict, describe};

pub(super) fn render(comparison: &Comparison) -> String {
    let arms: Vec<Value> = comparison
        .arms
        .iter()
        .map(|arm| json!({"label": arm.label, "machine": arm.machine, "what": arm.what, "simulated": arm.simulated}))
        .collect();
    let rows: Vec<Value> = comparison.rows.iter().map(row).collect();
    let why: Vec<Value> = comparison.why.iter().map(|moved| why(moved)).collect();
    let value = json!({
        "schema": "ttwu/compare/1",
        "arms": arms,
        "seeds": comparison.seeds.map(|(first, count)| json!({"first": first, "count": count})),
        "seeds_wanted": comparison.seeds_wanted,
        "paired": comparison.pairing == ttwu_stats::Pairing::Paired,
        "precision_pct": comparison.plan.precision_pct,
        "margin_pct": comparison.plan.margin_pct,
        "correction": "holm",
        "interrupted": comparison.interrupted,
        "notes": comparison.notes,
        "rows": rows,
        // Of the first two arms; `why_by_arm` has all.
        "why": why.first().cloned().unwrap_or_else(|| json!([])),
        "why_by_arm": why,
    });
    format!("{value:#}\n")
}

fn row(row: &Row) -> Value {
    let arms: Vec<Value> = row.arms.iter().map(arm).collect();
    let first = row.arms.get(1);
    let estimate = first.map_or(Value::Null, |arm| json!(effect(arm).map(|change| change.estimate)));
    let interval =
        first.map_or(Value::Null, |arm| json!(effect(arm).map(|change| [change.low, change.high])));
    json!({
        "name": row.name,
        "unit": row.unit,
        "better": direction(row.better),
        "arms": arms,
        "effect_pct": estimate,
        "ci_pct": interval,
        "verdict": first.map_or("missing", verdict),
        "detectable_pct": first.and_then(detectable),
        "p": first.and_then(|arm| arm.judgement.as_ref()?.probability),
        "p_holm": first.and_then(|arm| arm.probability_holm),
    })
}

fn arm(arm: &RowArm) -> Value {
    json!({
        "mean": describe::mean(&arm.samples),
        "n": arm.samples.len(),
        "samples": arm.samples,
        "effect_pct": effect(arm).map(|change| change.estimate),
        "ci_pct": effect(arm).map(|change| [change.low, change.high]),
        "verdict": arm.judgement.as_ref().map(|_| verdict(arm)),
    })
}

fn effect(arm: &RowArm) -> Option<Interval> {
    arm.judgement.as_ref().and_then(|judgement| judgement.change_pct)
}

const fn verdict(arm: &RowArm) -> &'static str {
    match arm.verdict {
        None => "missing",
        Some(Verdict::Better) => "better",
        Some(Verdict::Worse) => "worse",
        Some(Verdict::Equivalent) => "equivalent",
        Some(Verdict::CannotTell { .. }) => "cannot tell",
    }
}

const fn detectable(arm: &RowArm) -> Option<f64> {
    match arm.verdict {
        Some(Verdict::CannotTell { detectable_pct }) => detectable_pct,
        Some(Verdict::Better | Verdict::Worse | Verdict::Equivalent) | None => None,
    }
}

fn why(moved: &[crate::compare::Moved]) -> Value {
    let each = moved.iter().map(|moved| {
        json!({
            "counter": moved.counter,
            "unit": moved.unit,
            "arms": [moved.base, moved.new],
            "z": moved.z,
            "text": moved.sentence(),
        })
    });
    each.collect()
}
