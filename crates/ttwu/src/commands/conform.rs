//! `ttwu conform`: recorded kernel decisions against the model.

use crate::args;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print};
use anyhow::anyhow;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use ttwu_conform::{Cause, PlacementReport, QueueReport, Recording, Score, placements, queues};

/// Scores recordings; prints one block a kernel.
pub(crate) fn run(args: &args::Conform) -> Outcome {
    let mut kernels: BTreeMap<&'static str, Kernel> = BTreeMap::new();
    for path in &args.recordings {
        let recording = Recording::open(path).map_err(Failure::input)?;
        let name = recording.policy().kernel().name();
        if args.kernel.as_ref().is_some_and(|wanted| !name.ends_with(wanted.as_str())) {
            continue;
        }
        let report = placements(&recording).map_err(Failure::input)?;
        let kernel = kernels.entry(name).or_default();
        kernel.placement.merge(&report);
        let mut queue = None;
        if recording.trace().is_file() {
            let report = queues(&recording).map_err(Failure::input)?;
            kernel.queues.merge(&report);
            queue = Some(report);
        } else {
            kernel.without_trace += 1;
        }
        kernel.recordings.push((recording.name().to_owned(), report, queue));
        kernel.notes.extend(recording.notes().iter().map(|note| format!("{}: {note}", recording.name())));
    }
    if kernels.is_empty() {
        return Err(Failure::input(anyhow!("no recording of such a kernel")));
    }
    match args.format {
        OutputFormat::Text => print(&text(&kernels, args.examples)),
        OutputFormat::Json => print(&format!("{:#}", as_json(&kernels))),
    }?;
    Ok(Done::Ok)
}

#[derive(Default)]
struct Kernel {
    placement: PlacementReport,
    queues: QueueReport,
    /// Recordings whose trace is not there: queues cannot be rebuilt.
    without_trace: usize,
    recordings: Vec<(String, PlacementReport, Option<QueueReport>)>,
    notes: Vec<String>,
}

/// The scores of a report with their names, in the order in which they are printed.
fn scores<'a>(report: &'a PlacementReport, queues: &'a QueueReport) -> Vec<(&'static str, &'a Score)> {
    let mut scores = vec![
        ("placement_given", &report.given),
        ("given_with_target", &report.given_target),
        ("placement_snapshot", &report.snapshot),
        ("checks", &report.checks),
        ("target", &report.target),
        ("wakelist_same_llc", &report.wake_list_same_llc),
        ("wakelist_other_llc", &report.wake_list_other_llc),
        ("wakelist_self", &report.wake_list_self),
        ("slowpath", &report.slow_path),
    ];
    scores.extend(queues.scores());
    scores
}

fn text(kernels: &BTreeMap<&'static str, Kernel>, examples: bool) -> String {
    let mut out = String::new();
    let (mut total, mut total_queues) = (PlacementReport::default(), QueueReport::default());
    for (name, kernel) in kernels {
        let _ = writeln!(out, "{name}, {} recordings", kernel.recordings.len());
        block(&mut out, &kernel.placement, &kernel.queues, examples);
        if kernel.without_trace > 0 {
            let _ = writeln!(out, "  note: {} recordings without a trace: no queues", kernel.without_trace);
        }
        for (test, count) in &kernel.queues.set_aside {
            let _ = writeln!(out, "  set aside: {count} {test}");
        }
        for note in &kernel.notes {
            let _ = writeln!(out, "  note: {note}");
        }
        total.merge(&kernel.placement);
        total_queues.merge(&kernel.queues);
    }
    if kernels.len() > 1 {
        out.push_str("all kernels\n");
        block(&mut out, &total, &total_queues, false);
    }
    out
}

fn block(out: &mut String, report: &PlacementReport, queues: &QueueReport, examples: bool) {
    for (name, score) in scores(report, queues) {
        if score.total == 0 {
            let _ = writeln!(out, "  {name:20} no decisions");
            continue;
        }
        let count = |cause| score.causes.get(&cause).copied().unwrap_or(0);
        let misses = if score.agree == score.total {
            String::new()
        } else {
            let (race, model, open) = (count(Cause::Race), count(Cause::Model), count(Cause::Unexamined));
            match open {
                0 => format!("  race {race}, unexplained {model}"),
                _ => format!("  race {race}, unexplained {model}, not examined {open}"),
            }
        };
        let _ = writeln!(out, "  {name:20} {score}{misses}");
        for miss in score.examples.iter().filter(|_| examples) {
            let _ = writeln!(out, "    line {} at {}: {:?}: {}", miss.line, miss.ts, miss.cause, miss.text);
        }
    }
}

fn as_json(kernels: &BTreeMap<&'static str, Kernel>) -> Value {
    let score_json = |score: &Score| {
        let count = |cause| score.causes.get(&cause).copied().unwrap_or(0);
        json!({
            "agree": score.agree,
            "total": score.total,
            "race": count(Cause::Race),
            "unexplained": count(Cause::Model),
            "not_examined": count(Cause::Unexamined),
        })
    };
    let report_json = |report: &PlacementReport, queues: &QueueReport| -> Map<String, Value> {
        scores(report, queues).into_iter().map(|(name, score)| (name.to_owned(), score_json(score))).collect()
    };
    let rows: Map<String, Value> = kernels
        .iter()
        .map(|(name, kernel)| {
            let mut row = report_json(&kernel.placement, &kernel.queues);
            let (agree, total) = [&kernel.queues.pick_schedule, &kernel.queues.pick_wakeup]
                .iter()
                .fold((0, 0), |(agree, total), score| (agree + score.agree, total + score.total));
            row.insert("pick".to_owned(), json!({ "agree": agree, "total": total }));
            row.insert("set_aside".to_owned(), json!(kernel.queues.set_aside));
            let recordings: Map<String, Value> = kernel
                .recordings
                .iter()
                .map(|(name, report, queues)| {
                    let queues = queues.clone().unwrap_or_default();
                    (name.clone(), Value::Object(report_json(report, &queues)))
                })
                .collect();
            row.insert("recordings".to_owned(), Value::Object(recordings));
            let examples: Vec<Value> = scores(&kernel.placement, &kernel.queues)
                .into_iter()
                .flat_map(|(score_name, score)| {
                    score.examples.iter().map(move |miss| {
                        json!({
                            "score": score_name,
                            "line": miss.line,
                            "ts": miss.ts,
                            "cause": format!("{:?}", miss.cause).to_lowercase(),
                            "text": miss.text,
                        })
                    })
                })
                .collect();
            row.insert("examples".to_owned(), Value::Array(examples));
            ((*name).to_owned(), Value::Object(row))
        })
        .collect();
    json!({ "schema": "ttwu/conform/1", "kernels": rows })
}
