//! Scores as text and as JSON.

use super::{Kernel, Scores};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use ttwu_conform::{Aside, Cause, FreeReport, PlacementReport, QueueReport, ReconstructReport, Score, Share};

type Kernels = BTreeMap<&'static str, Kernel>;

/// Placement scores with their names, in the order in which they are printed, and whether the model is given the kernel's
/// own answers.
fn placement_scores(report: &PlacementReport) -> [(&'static str, &Score, bool); 9] {
    [
        ("placement_given", &report.given, true),
        ("given_with_target", &report.given_target, true),
        ("placement_snapshot", &report.snapshot, false),
        ("checks", &report.checks, true),
        ("target", &report.target, true),
        ("wakelist_same_llc", &report.wake_list_same_llc, true),
        ("wakelist_other_llc", &report.wake_list_other_llc, true),
        ("wakelist_self", &report.wake_list_self, true),
        ("slowpath", &report.slow_path, true),
    ]
}

/// All scores of a block that have causes.
fn scores(of: &Scores, live: bool) -> Vec<(&'static str, &Score)> {
    let mut all = Vec::new();
    if let Some(report) = &of.placement {
        let rows = placement_scores(report).into_iter().filter(|row| row.2 || !live);
        all.extend(rows.map(|(name, score, _)| (name, score)));
    }
    if let Some(report) = of.plain.as_ref().filter(|_| !live) {
        all.push(("placement_reconstructed", &report.model));
    }
    if let Some(report) = &of.queues {
        all.extend(report.scores());
    }
    all
}

pub(super) fn text(kernels: &Kernels, examples: bool, live: bool) -> String {
    let mut out = String::new();
    let mut total = Scores::default();
    for (name, kernel) in kernels {
        let _ = writeln!(out, "{name}, {} recordings", kernel.recordings.len());
        block(&mut out, &kernel.total, examples, live);
        if kernel.without_trace > 0 {
            let count = kernel.without_trace;
            let _ =
                writeln!(out, "  note: {count} recordings without a trace: no queues, nothing reconstructed");
        }
        if kernel.without_probes > 0 {
            let count = kernel.without_probes;
            let _ = writeln!(out, "  note: {count} recordings without probes: only what plain events give");
        }
        for note in &kernel.notes {
            let _ = writeln!(out, "  note: {note}");
        }
        for (name, of) in &kernel.recordings {
            if let Some(followed) = &of.followed {
                let _ = writeln!(out, "  followed {name}: {}", followed_text(followed));
            }
            if let Some(free) = &of.free {
                let _ = writeln!(out, "  free {name}: {}", free_text(free));
            }
        }
        total.merge(&kernel.total);
    }
    if kernels.len() > 1 {
        out.push_str("all kernels\n");
        block(&mut out, &total, false, live);
    }
    out
}

fn block(out: &mut String, of: &Scores, examples: bool, live: bool) {
    for (name, score) in scores(of, live) {
        row(out, name, score);
        if name == "placement_reconstructed"
            && let Some(report) = &of.plain
        {
            reconstructed(out, report);
        }
        for found in score.examples().filter(|_| examples) {
            let miss = &found.example;
            let cause = miss.cause.name();
            let _ = writeln!(
                out,
                "    {} by {cause}: {}, {}; line {} at {}",
                found.count, miss.test, miss.rule, miss.line, miss.ts
            );
            let _ = writeln!(out, "      {}", miss.text);
        }
    }
    if let Some(queues) = &of.queues {
        for (test, aside) in &queues.set_aside {
            set_aside(out, "set aside", test, aside);
        }
    }
}

/// The values of queues and entities that are followed.
fn followed_values(report: &QueueReport) -> [(&'static str, &Score); 5] {
    [
        ("vruntime", &report.vruntime),
        ("deadline", &report.deadline),
        ("vlag", &report.vlag),
        ("vprot", &report.vprot),
        ("zero", &report.zero),
    ]
}

fn followed_text(report: &QueueReport) -> String {
    let values = followed_values(report).into_iter().filter(|(_, score)| score.total > 0);
    let mut parts: Vec<String> = values
        .map(|(name, score)| format!("{name} {} of {} wrong", score.total - score.agree, score.total))
        .collect();
    let misses = followed_values(report).into_iter().flat_map(|(_, score)| score.examples());
    if let Some(first) = misses.map(|found| &found.example).min_by_key(|miss| miss.line) {
        parts.push(format!("the first at {}: {}", first.ts, first.text));
    }
    if report.resynchronised > 0 {
        parts.push(format!(
            "{} values set right where an event or a weight is missing",
            report.resynchronised
        ));
    }
    parts.join(", ")
}

fn free_text(report: &FreeReport) -> String {
    let share = |share: Share| format!("{} of {}", share.equal, share.total);
    let first = report.first.as_ref().map_or_else(
        || "no divergence".to_owned(),
        |first| {
            let (at, after) = (first.at_ns, first.after);
            format!(
                "diverges after {after} equal decisions at {}.{:09}: {}",
                at / 1_000_000_000,
                at % 1_000_000_000,
                first.text
            )
        },
    );
    format!(
        "placements {}, preemptions {}, picks {}, {} wake-ups before the task had blocked; {first}",
        share(report.placements),
        share(report.preemptions),
        share(report.picks),
        report.early
    )
}

fn free_json(report: &FreeReport) -> Value {
    let share = |share: Share| json!({ "equal": share.equal, "total": share.total });
    let first = report
        .first
        .as_ref()
        .map(|first| json!({ "after_count": first.after, "at_ns": first.at_ns, "text": first.text }));
    json!({
        "placements": share(report.placements),
        "preemptions": share(report.preemptions),
        "picks": share(report.picks),
        "early_count": report.early,
        "first": first,
    })
}

fn row(out: &mut String, name: &str, score: &Score) {
    if score.total == 0 {
        let _ = writeln!(out, "  {name:23} no decisions");
        return;
    }
    let mut misses = Vec::new();
    for cause in Cause::ALL {
        let count = score.count(cause);
        if count > 0 {
            misses.push(format!("{} {count}", cause.name()));
        }
    }
    let misses = if misses.is_empty() { String::new() } else { format!("  misses: {}", misses.join(", ")) };
    let _ = writeln!(out, "  {name:23} {score}{misses}");
}

fn reconstructed(out: &mut String, report: &ReconstructReport) {
    row(out, "  always the previous CPU", &plain(&report.always_prev));
    row(out, "  always the waker's CPU", &plain(&report.always_this));
    row(out, "  certain", &report.certain);
    for (what, count) in &report.hangs_on {
        let _ = writeln!(out, "    in {count} the answer hangs on {what}");
    }
    for (test, aside) in &report.unreconstructible {
        set_aside(out, "  unreconstructible", test, aside);
    }
    for (test, count) in &report.without_placement {
        let _ = writeln!(out, "    no placement: {count} {test}");
    }
}

/// A baseline's misses have no causes.
fn plain(score: &Score) -> Score {
    Score { misses: BTreeMap::new(), ..score.clone() }
}

fn set_aside(out: &mut String, what: &str, test: &str, aside: &Aside) {
    let _ = write!(out, "  {what}: {} {test}", aside.count);
    if aside.answered > 0 {
        let _ = write!(out, " (of {} answered all the same {} agree)", aside.answered, aside.would_agree);
    }
    out.push('\n');
}

fn aside_json(asides: &BTreeMap<&'static str, Aside>) -> Value {
    let row = |aside: &Aside| json!({ "count": aside.count, "answered": aside.answered, "would_agree": aside.would_agree });
    asides.iter().map(|(test, aside)| ((*test).to_owned(), row(aside))).collect::<Map<_, _>>().into()
}

fn score_json(score: &Score) -> Value {
    let mut object = Map::new();
    object.insert("agree".to_owned(), json!(score.agree));
    object.insert("total".to_owned(), json!(score.total));
    for cause in Cause::ALL {
        object.insert(cause.name().to_owned(), json!(score.count(cause)));
    }
    Value::Object(object)
}

fn baseline_json(score: &Score) -> Value {
    json!({ "agree": score.agree, "total": score.total })
}

fn reconstructed_json(report: &ReconstructReport) -> Value {
    let mut object = score_json(&report.model);
    object["unreconstructible"] = json!(report.unreconstructible_count());
    object["unreconstructible_by_test"] = aside_json(&report.unreconstructible);
    object["without_placement"] = json!(report.without_placement);
    object["always_prev"] = baseline_json(&report.always_prev);
    object["always_this"] = baseline_json(&report.always_this);
    object["certain"] = score_json(&report.certain);
    object["hangs_on"] = json!(report.hangs_on);
    object
}

/// A block's scores. What the recordings do not have is there with no decisions, so that a script finds every name.
fn scores_json(of: &Scores) -> Map<String, Value> {
    let (placement, queues) =
        (of.placement.clone().unwrap_or_default(), of.queues.clone().unwrap_or_default());
    let mut row = Map::new();
    for (name, score, _) in placement_scores(&placement) {
        row.insert(name.to_owned(), score_json(score));
    }
    for (name, score) in queues.scores() {
        row.insert(name.to_owned(), score_json(score));
    }
    let plain = of.plain.clone().unwrap_or_default();
    row.insert("placement_reconstructed".to_owned(), reconstructed_json(&plain));
    let picks = [&queues.pick_schedule, &queues.pick_wakeup];
    let (agree, total) =
        picks.iter().fold((0, 0), |(agree, total), score| (agree + score.agree, total + score.total));
    row.insert("pick".to_owned(), json!({ "agree": agree, "total": total }));
    row.insert("set_aside".to_owned(), aside_json(&queues.set_aside));
    if let Some(free) = &of.free {
        row.insert("free".to_owned(), free_json(free));
    }
    if let Some(followed) = &of.followed {
        let mut values: Map<String, Value> = followed_values(followed)
            .into_iter()
            .map(|(name, score)| (name.to_owned(), json!({ "agree": score.agree, "total": score.total })))
            .collect();
        values.insert("resynchronised_count".to_owned(), json!(followed.resynchronised));
        row.insert("followed".to_owned(), Value::Object(values));
    }
    row
}

fn examples_json(of: &Scores) -> Vec<Value> {
    let named = scores(of, false).into_iter();
    named
        .flat_map(|(name, score)| {
            score.examples().map(move |found| {
                let miss = &found.example;
                json!({
                    "score": name,
                    "cause": miss.cause.name(),
                    "rule": miss.rule,
                    "test": miss.test,
                    "count": found.count,
                    "line": miss.line,
                    "ts": miss.ts,
                    "text": miss.text,
                })
            })
        })
        .collect()
}

pub(super) fn json(kernels: &Kernels) -> Value {
    let rows: Map<String, Value> = kernels
        .iter()
        .map(|(name, kernel)| {
            let mut row = scores_json(&kernel.total);
            let recordings = kernel.recordings.iter();
            let recordings: Map<String, Value> =
                recordings.map(|(name, of)| (name.clone(), Value::Object(scores_json(of)))).collect();
            row.insert("recordings".to_owned(), Value::Object(recordings));
            row.insert("examples".to_owned(), Value::Array(examples_json(&kernel.total)));
            row.insert("notes".to_owned(), json!(kernel.notes));
            ((*name).to_owned(), Value::Object(row))
        })
        .collect();
    json!({ "schema": "ttwu/conform/1", "kernels": rows })
}
