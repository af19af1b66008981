//! The latency analysis as JSON, in the keys that scripts rely on.
//!
//! `tasks` holds a row a name or a row a task, as asked for. Lengths are whole nanoseconds. A key is `null` where the
//! recording does not show it; nothing is 0 for want of a tracepoint.

use crate::RowsBy;
use serde_json::{Map, Value, json};
use ttwu_analysis::{LatencyReport, LatencyRow, Measured, Summary};

/// The value of the key `latency`.
#[must_use]
pub fn latency_json(latency: &Measured<LatencyReport>, by: RowsBy) -> Value {
    match latency {
        Measured::NotMeasured { missing } => json!({ "not_measured": missing }),
        Measured::Measured(report) => {
            let rows = match by {
                RowsBy::Name => &report.by_name,
                RowsBy::Task => &report.by_task,
            };
            let tasks: Vec<Value> = rows.iter().map(row).collect();
            json!({ "tasks": tasks, "total": row(&report.total), "not_measured": report.not_measured })
        }
    }
}

fn row(row: &LatencyRow) -> Value {
    let pids: Vec<i32> = row.pids.iter().map(|pid| pid.number()).collect();
    let mut out = Map::new();
    out.insert("name".to_owned(), json!(row.name));
    out.insert("pids".to_owned(), json!(pids));
    out.insert("runtime_ns".to_owned(), json!(row.runtime_ns));
    out.insert("switches".to_owned(), json!(row.switches));
    let delay = &row.delay;
    out.insert("delays".to_owned(), json!(delay.count));
    out.insert("delay_ns_sum".to_owned(), json!(delay.ns_sum));
    out.insert("delay_ns_avg".to_owned(), json!(delay.ns_avg()));
    out.insert("delay_ns_max".to_owned(), json!((delay.count != 0).then_some(delay.ns_max)));
    let when = |at: ttwu_model::Time| (delay.count != 0).then_some(at.as_ns());
    out.insert("delay_max_from_ns".to_owned(), json!(when(delay.max_from)));
    out.insert("delay_max_to_ns".to_owned(), json!(when(delay.max_to)));
    out.insert("delay_ns".to_owned(), quantiles(delay));
    out.insert("wakeup".to_owned(), part(row.wakeup.as_ref()));
    out.insert("waking_to_wakeup".to_owned(), part(row.waking_to_wakeup.as_ref()));
    out.insert("wakeup_to_switch".to_owned(), part(row.wakeup_to_switch.as_ref()));
    out.insert("new".to_owned(), part(row.new.as_ref()));
    out.insert("preempted".to_owned(), part(Some(&row.preempted)));
    let cut = row.censored;
    out.insert("censored".to_owned(), json!(cut.total()));
    out.insert(
        "censored_by".to_owned(),
        json!({ "start": cut.by_start, "gap": cut.by_gap, "race": cut.by_race, "end": cut.by_end }),
    );
    Value::Object(out)
}

fn part(summary: Option<&Summary>) -> Value {
    let Some(summary) = summary else { return Value::Null };
    json!({
        "count": summary.count,
        "ns_sum": summary.ns_sum,
        "ns_avg": summary.ns_avg(),
        "ns_max": (summary.count != 0).then_some(summary.ns_max),
        "ns": quantiles(summary),
    })
}

fn quantiles(summary: &Summary) -> Value {
    let Some(ns) = summary.ns else { return Value::Null };
    json!({
        "p50": ns.p50, "p75": ns.p75, "p90": ns.p90, "p95": ns.p95,
        "p99": ns.p99, "p99_5": ns.p99_5, "p99_9": ns.p99_9,
    })
}
