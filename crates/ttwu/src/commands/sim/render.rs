//! A run as text and as JSON.

use super::Finished;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use ttwu_lab::{Metric, counters, printed, printed_text, rows};
use ttwu_model::MACHINES;
use ttwu_sim::{End, MeterValue, WaitsFor};

const COLUMNS: usize = 80;

/// The original's output, then what the scheduler did, in lines that begin with `#`.
pub(super) fn as_text(run: &Finished) -> String {
    let outcome = &run.outcome;
    let mut out = printed_text(&printed(&run.scenario.workload, outcome));
    let machine = machine(run);
    let (workload, policy, seed) = (&run.scenario.workload.name, &run.scenario.policy, run.scenario.seed);
    let _ = writeln!(out, "#");
    wrapped(
        &mut out,
        &[format!("{workload} ·"), format!("{machine} ·"), format!("{policy} ·"), format!("seed {seed}")],
    );
    let wall = run.wall.as_secs_f64();
    let rate =
        if wall > 0.0 { format!(" ({:.1} M/s)", outcome.events as f64 / wall / 1e6) } else { String::new() };
    let _ = writeln!(
        out,
        "# {}simulated {:.6} s, {} events, in {wall:.2} s{rate}",
        match outcome.end {
            End::Completed => "",
            End::TimeLimit => "cut off: ",
            End::Stuck => "stuck: ",
            End::Cancelled => "interrupted: ",
        },
        outcome.sim_ns as f64 / 1e9,
        grouped(outcome.events)
    );
    let c = &outcome.counters;
    let _ = writeln!(
        out,
        "# switches {} ({} voluntary), migrations {} ({} on wake-up), wake-ups {}",
        grouped(c.switches()),
        grouped(c.switches_voluntary),
        grouped(c.migrations()),
        grouped(c.migrations_wake),
        grouped(c.wakeups)
    );
    let all = counters(outcome);
    for (title, prefix) in [("decisions:", "rule_"), ("scans:", "scans_")] {
        let mut counts = family(&all, prefix);
        counts.retain(|(_, count)| *count > 0);
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        if counts.is_empty() {
            let _ = writeln!(out, "# {title} none");
            continue;
        }
        let last = counts.len() - 1;
        let mut words = vec![title.to_owned()];
        words.extend(counts.iter().enumerate().map(|(index, (name, count))| {
            format!("{name} {}{}", grouped(*count), if index == last { "" } else { "," })
        }));
        wrapped(&mut out, &words);
    }
    if let Some(trace) = &run.trace {
        let _ = writeln!(
            out,
            "# trace: {}, {} events, {} KiB",
            trace.path.display(),
            grouped(trace.events),
            trace.bytes.div_ceil(1024)
        );
    }
    out
}

/// `ttwu/sim/1`.
pub(super) fn as_json(run: &Finished) -> Value {
    let outcome = &run.outcome;
    let all = counters(outcome);
    let rules = family(&all, "rule_").into_iter().filter(|(_, count)| *count > 0);
    let decisions: Map<String, Value> = rules.map(|(rule, count)| (rule.to_owned(), json!(count))).collect();
    let scans: Map<String, Value> =
        family(&all, "scans_").into_iter().map(|(end, count)| (end.to_owned(), json!(count))).collect();
    let metrics: Map<String, Value> = rows(&run.scenario.workload, outcome)
        .into_iter()
        .map(|row| (row.name, json!({ "value": row.value, "unit": row.unit })))
        .collect();
    let meters: Map<String, Value> = run
        .scenario
        .workload
        .meters
        .iter()
        .zip(&outcome.meters)
        .map(|(meter, value)| (meter.name.clone(), meter_json(value)))
        .collect();
    let starved: Vec<Value> = outcome
        .starved
        .iter()
        .map(|starved| json!({ "task": task_name(run, starved), "pid": 1000 + starved.index, "waited_ns": starved.waited_ns }))
        .collect();
    let c = &outcome.counters;
    json!({
        "schema": "ttwu/sim/1",
        "scenario_id": run.scenario.id().to_string(),
        "workload": run.scenario.workload.name,
        "machine": machine(run),
        "policy": run.scenario.policy.to_string(),
        "seed": run.scenario.seed,
        "outcome": match outcome.end {
            End::Completed => "completed",
            End::TimeLimit => "time_limit",
            End::Stuck => "stuck",
            End::Cancelled => "interrupted",
        },
        "digest": format!("{:016x}", outcome.digest),
        "sim_ns": outcome.sim_ns,
        "events": outcome.events,
        "wall_ns": u64::try_from(run.wall.as_nanos()).unwrap_or(u64::MAX),
        "result": {
            "metrics": metrics,
            "meters": meters,
            "printed": printed_text(&printed(&run.scenario.workload, outcome)),
        },
        "decisions": decisions,
        "scans": scans,
        "switches": c.switches(),
        "switches_voluntary": c.switches_voluntary,
        "migrations": c.migrations(),
        "wakeups": c.wakeups,
        "starved": starved,
        "trace": run.trace.as_ref().map(|trace| json!({
            "file": trace.path.display().to_string(),
            "events": trace.events,
            "bytes": trace.bytes,
        })),
    })
}

/// What falsifies a result, or is one that nobody asked for.
pub(super) fn warnings(run: &Finished) -> Vec<String> {
    let outcome = &run.outcome;
    let at_s = outcome.sim_ns as f64 / 1e9;
    let mut lines = Vec::new();
    match outcome.end {
        End::Completed => {}
        End::TimeLimit => lines.push(format!(
            "cut off at the scenario's limit of {at_s} s, before the workload ended; `--set duration=…` moves it"
        )),
        End::Stuck => lines.push(format!("stuck after {at_s} s: {}", stuck(run))),
        End::Cancelled => lines.push(format!("interrupted after {at_s} s of simulated time")),
    }
    if outcome.end != End::Stuck && !outcome.stuck.is_empty() {
        lines.push(format!("some tasks can never go on: {}", who_waits(run)));
    }
    if outcome.counters.samples_dropped > 0 {
        lines.push(format!(
            "meters keep {} samples each; {} more were taken, and percentiles are those of a random choice",
            grouped(ttwu_sim::SAMPLES_MAX as u64),
            grouped(outcome.counters.samples_dropped)
        ));
    }
    if let Some(longest) = outcome.starved.iter().max_by_key(|starved| starved.waited_ns) {
        lines.push(format!(
            "{} tasks waited longer than {} s to run; the longest: {} (pid {}), {:.3} s",
            outcome.starved.len(),
            run.scenario.settings.starved_ns as f64 / 1e9,
            task_name(run, longest),
            1000 + longest.index,
            longest.waited_ns as f64 / 1e9
        ));
    }
    lines
}

/// Tasks named one by one when a run is stuck.
const STUCK_SHOWN: usize = 5;

/// Why a run is stuck.
fn stuck(run: &Finished) -> String {
    match run.outcome.stuck.first().map(|first| first.what) {
        Some(WaitsFor::Unlocks(_)) => who_waits(run),
        Some(WaitsFor::Object(_) | WaitsFor::Spins(_) | WaitsFor::End(_)) => {
            format!("all tasks wait for each other: {}", who_waits(run))
        }
        None => "no task is left that could end it".to_owned(),
    }
}

/// Which tasks wait for what.
fn who_waits(run: &Finished) -> String {
    let stuck = &run.outcome.stuck;
    let object = |id: ttwu_workload::ObjectId| {
        run.scenario.workload.objects.get(id.0 as usize).map_or("?", |object| &object.name)
    };
    let each = stuck.iter().take(STUCK_SHOWN).map(|waiting| {
        let what = match waiting.what {
            WaitsFor::Object(id) => format!("waits at `{}`", object(id)),
            WaitsFor::Spins(id) => format!("spins at `{}`", object(id)),
            WaitsFor::End(index) if index == waiting.index => "waits for its own end".to_owned(),
            WaitsFor::End(index) => format!("waits for the end of pid {}", 1000 + index),
            WaitsFor::Unlocks(id) => format!("releases `{}`, which it does not hold", object(id)),
        };
        format!("{} (pid {}) {what}", name_of(run, waiting.task), 1000 + waiting.index)
    });
    let mut words: Vec<String> = each.collect();
    if stuck.len() > STUCK_SHOWN {
        words.push(format!("and {} more", stuck.len() - STUCK_SHOWN));
    }
    words.join("; ")
}

fn task_name<'a>(run: &'a Finished, starved: &ttwu_sim::Starved) -> &'a str {
    name_of(run, starved.task)
}

fn name_of(run: &Finished, task: Option<ttwu_workload::TaskRef>) -> &str {
    let task = task.and_then(|task| run.scenario.workload.tasks.get(task.0 as usize));
    task.map_or("a kernel thread", |task| &task.name)
}

fn machine(run: &Finished) -> String {
    let topology = &run.scenario.topology;
    let named = MACHINES.iter().find(|machine| machine.topology() == *topology);
    named.map_or_else(|| format!("{} CPUs", topology.online().len()), |machine| machine.name.to_owned())
}

fn meter_json(value: &MeterValue) -> Value {
    match value {
        MeterValue::Samples(samples) => json!({
            "count": samples.len(),
            "sum_ns": samples.iter().map(|ns| u128::from(*ns)).sum::<u128>().min(u128::from(u64::MAX)) as u64,
            "min_ns": samples.iter().min(),
            "max_ns": samples.iter().max(),
        }),
        MeterValue::Count(count) => json!({ "count": count }),
        MeterValue::Cpus(counts) => json!({ "count_by_cpu": counts }),
        MeterValue::Seconds(counts) => json!({ "count_by_second": counts }),
    }
}

/// Counters whose names begin so, without that.
fn family<'a>(all: &'a [Metric], prefix: &str) -> Vec<(&'a str, u64)> {
    all.iter().filter_map(|metric| Some((metric.name.strip_prefix(prefix)?, metric.value as u64))).collect()
}

/// Words on lines of 80 columns that begin with `#`.
fn wrapped(out: &mut String, words: &[String]) {
    let mut line = String::from("#");
    for word in words {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS && line.len() > 3 {
            let _ = writeln!(out, "{line}");
            line = "#  ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

/// A count with thin groups of three digits, for people.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}
