//! A report as JSON, schema `ttwu/report/1`. `docs/json-report.md` says what each key means; a test holds the two together.
//!
//! Whole numbers in the unit that the key names. What was not measured is `null`, or an object with `not_measured`; nothing
//! is 0 for want of a tracepoint.

use crate::report::Report;
use crate::{RowsBy, latency_json};
use serde_json::{Map, Value, json};
use ttwu_analysis::{
    ByRelation, Cpus, IrqUse, Irqs, Measured, MigrationCause, MigrationEvidence, Migrations, Outcome,
    Placement, Stacked, StackedExample, SwitchCause, SwitchEvidence, Switches, Violations, WakeContext,
    Wakers, Who,
};
use ttwu_model::TraceHealth;

/// The report's JSON; analyses that did not run have no key.
#[must_use]
pub fn report_json(report: &Report, by: RowsBy) -> Value {
    let results = &report.results;
    let meta = &report.meta;
    let mut out = json!({
        "schema": "ttwu/report/1",
        "file": report.file,
        "format": meta.format,
        "recorder": meta.recorder,
        "kernel": meta.kernel_release,
        "arch": meta.arch,
        "clock": meta.clock,
        "topology": report.topology,
        "health": health(&report.health),
        "events": results.recorded.counts(),
        "events_count": report.events_count(),
        "cpus": report.cpus_count(),
        "tasks_count": report.tasks_count,
        "from_ns": results.span.map(|(from, _)| from.as_ns()),
        "span_ns": results.span.map(|_| report.span().as_ns()),
    });
    let Value::Object(map) = &mut out else { unreachable!("made as an object") };
    if let Some(found) = &results.latency {
        map.insert("latency".to_owned(), latency_json(found, by));
    }
    add(map, "placement", results.placement.as_ref(), placement);
    add(map, "cpu_use", results.cpus.as_ref(), cpus);
    add(map, "migrations", results.migrations.as_ref(), migrations);
    add(map, "switches", results.switches.as_ref(), switches);
    add(map, "irqs", results.irqs.as_ref(), irqs);
    add(map, "wakers", results.wakers.as_ref(), wakers);
    out
}

fn add<T>(
    map: &mut Map<String, Value>,
    key: &str,
    found: Option<&Measured<T>>,
    show: impl FnOnce(&T) -> Value,
) {
    let value = match found {
        None => return,
        Some(Measured::NotMeasured { missing }) => json!({ "not_measured": missing }),
        Some(Measured::Measured(found)) => show(found),
    };
    map.insert(key.to_owned(), value);
}

fn health(health: &TraceHealth) -> Value {
    let windows = health.loss_windows.iter().take(100).map(|window| {
        json!({
            "cpu": window.cpu.map(ttwu_model::CpuId::number),
            "from_ns": window.from.as_ns(),
            "to_ns": window.to.as_ns(),
            "events_count": window.count,
        })
    });
    json!({
        "clean": health.is_clean(),
        "lost_events": health.lost_events,
        "lost_windows": health.loss_windows.len(),
        "uncounted_gaps": health.uncounted_gaps,
        "windows": windows.collect::<Vec<_>>(),
        "unknown_events": health.unknown_records.values().sum::<u64>(),
        "unknown": health.unknown_records,
        "switch_mismatches": health.switch_mismatches,
        "clock_steps": health.clock_steps_total,
        "foreign_cpu_events": health.foreign_cpu_events,
        "truncated_at_bytes": health.truncated_at,
        "repairs": health.repairs,
        "notes": health.notes,
    })
}

fn who(who: &Who) -> Value {
    json!({ "name": who.name, "pid": who.pid.number() })
}

/// Levels that cannot occur have no key: without a topology there are only `same_cpu` and `other_cpu`.
fn by_relation(by: &ByRelation, topology_known: bool) -> Value {
    let shown = crate::placement::relations(by, topology_known);
    shown
        .into_iter()
        .map(|(relation, times)| (relation.name().to_owned(), json!(times)))
        .collect::<Map<_, _>>()
        .into()
}

fn named<'a>(names: impl IntoIterator<Item = &'a str>, counts: &[u64]) -> Value {
    names
        .into_iter()
        .zip(counts)
        .map(|(name, times)| (name.to_owned(), json!(times)))
        .collect::<Map<_, _>>()
        .into()
}

fn outcome(outcome: &Outcome) -> Value {
    json!({
        "kept": outcome.kept, "pulled": outcome.pulled, "elsewhere": outcome.elsewhere, "unknown": outcome.unknown,
    })
}

fn stacked(stacked: &Stacked, topology_known: bool) -> Value {
    json!({
        "cluster": stacked.cluster,
        "llc": stacked.llc,
        "machine": stacked.machine,
        "nearest_idle": by_relation(&stacked.nearest_idle, topology_known),
        "behind_waker": stacked.behind_waker,
        "bound_kthreads": stacked.bound_kthreads,
        "onto_busy": stacked.onto_busy,
    })
}

fn stacked_example(example: &StackedExample) -> Value {
    json!({
        "at_ns": example.at.as_ns(),
        "wakee": who(&example.wakee),
        "waker": who(&example.waker),
        "context": example.context.name(),
        "waker_cpu": example.waker_cpu.number(),
        "prev_cpu": example.prev_cpu.map(ttwu_model::CpuId::number),
        "cpu": example.cpu.number(),
        "idle_cpu": example.idle_cpu.number(),
        "idle_relation": example.idle_relation.name(),
        "waited_ns": example.waited.as_ns(),
        "censored": example.censored,
    })
}

fn placement(found: &Placement) -> Value {
    let known = found.topology_known;
    let by_context = WakeContext::ALL.into_iter().filter(|context| found.context[*context as usize] > 0);
    let by_context: Map<String, Value> = by_context
        .map(|context| (context.name().to_owned(), outcome(&found.outcome_by_context[context as usize])))
        .collect();
    let tasks = found.tasks.iter().map(|task| {
        json!({
            "name": task.who.name,
            "pid": task.who.pid.number(),
            "wakeups": task.wakeups,
            "outcome": outcome(&task.outcome),
            "stacked": task.stacked,
        })
    });
    json!({
        "total": found.total,
        "by_prev": by_relation(&found.by_prev, known),
        "by_waker": by_relation(&found.by_waker, known),
        "prev_to_waker": by_relation(&found.prev_to_waker, known),
        "context": named(WakeContext::ALL.map(WakeContext::name), &found.context),
        "outcome": outcome(&found.outcome),
        "outcome_by_context": by_context,
        "sync": Value::Null,
        "stacked_while_idle": stacked(&found.stacked, known),
        "stacked_first": found.stacked_first.iter().map(stacked_example).collect::<Vec<_>>(),
        "stacked_worst": found.stacked_worst.iter().map(stacked_example).collect::<Vec<_>>(),
        "new_tasks": {
            "total": found.new_tasks.total,
            "by_parent": by_relation(&found.new_tasks.by_parent, known),
            "stacked_while_idle": stacked(&found.new_tasks.stacked, known),
        },
        "tasks": tasks.collect::<Vec<_>>(),
        "topology_known": known,
        "waking_recorded": found.waking_recorded,
    })
}

fn cpus(found: &Cpus) -> Value {
    let cpus = found.cpus.iter().map(|cpu| {
        json!({
            "cpu": cpu.cpu.number(),
            "busy_ns": cpu.busy.as_ns(),
            "idle_ns": cpu.idle.as_ns(),
            "unknown_ns": cpu.unknown.as_ns(),
            "switches_in": cpu.switches_in,
            "hits": found.wakeups_recorded.then_some(cpu.hits),
            "queue_ns": cpu.queue.iter().map(|time| time.as_ns()).collect::<Vec<_>>(),
            "queue_mean_milli": cpu.queue_mean_milli(),
        })
    });
    let tasks = found.tasks.iter().map(|task| {
        let cells = task.cpus.iter().map(|cell| {
            json!({
                "cpu": cell.cpu.number(),
                "hits": found.wakeups_recorded.then_some(cell.hits),
                "runs": cell.runs,
                "run_ns": cell.run.as_ns(),
            })
        });
        json!({ "name": task.who.name, "pid": task.who.pid.number(), "cpus": cells.collect::<Vec<_>>() })
    });
    json!({
        "cpus": cpus.collect::<Vec<_>>(),
        "tasks": tasks.collect::<Vec<_>>(),
        "violations": violations(&found.violations),
        "violations_in_llc": found.violations_in_llc.as_ref().map(violations),
        "occupancy": {
            "from_ns": found.occupancy.from.as_ns(),
            "bin_ns": found.occupancy.bin.as_ns(),
            "queue_mean_milli": found.occupancy.cpus,
        },
    })
}

fn violations(found: &Violations) -> Value {
    let longest = found.longest.iter().map(
        |one| json!({ "at_ns": one.at.as_ns(), "length_ns": one.length.as_ns(), "censored": one.censored }),
    );
    let bounds = ttwu_analysis::VIOLATION_BOUNDS_NS.iter().map(|&bound| Some(bound)).chain([None]);
    let by_length = bounds.zip(found.by_length).map(
        |(below, (times, total))| json!({ "below_ns": below, "count": times, "total_ns": total.as_ns() }),
    );
    json!({
        "count": found.count,
        "total_ns": found.total.as_ns(),
        "by_length": by_length.collect::<Vec<_>>(),
        "longest": longest.collect::<Vec<_>>(),
    })
}

fn migrations(found: &Migrations) -> Value {
    let causes = || MigrationCause::ALL.map(MigrationCause::name);
    let matrix = found.matrix.iter().map(|route| {
        json!({
            "orig": route.orig.number(),
            "dest": route.dest.number(),
            "count": route.count(),
            "by_cause": named(causes(), &route.by_cause),
        })
    });
    let by_cause_and_level: Map<String, Value> = MigrationCause::ALL
        .into_iter()
        .zip(&found.by_cause_and_level)
        .map(|(cause, by)| (cause.name().to_owned(), by_relation(by, found.topology_known)))
        .collect();
    let tasks = found.tasks.iter().map(
        |(task, by)| json!({ "name": task.name, "pid": task.pid.number(), "by_cause": named(causes(), by) }),
    );
    json!({
        "total": found.total,
        "by_level": by_relation(&found.by_level, found.topology_known),
        "by_cause": named(causes(), &found.by_cause),
        "by_cause_and_level": by_cause_and_level,
        "by_evidence": named(MigrationEvidence::ALL.map(MigrationEvidence::name), &found.by_evidence),
        "matrix": matrix.collect::<Vec<_>>(),
        "tasks_moved": found.tasks_moved,
        "tasks": tasks.collect::<Vec<_>>(),
        "exec_recorded": found.exec_recorded,
    })
}

fn switches(found: &Switches) -> Value {
    let causes = || SwitchCause::ALL.map(SwitchCause::name);
    let mut out = named(causes(), &found.by_cause);
    let Value::Object(map) = &mut out else { unreachable!("made as an object") };
    let tasks = found.tasks.iter().map(|task| {
        json!({ "name": task.who.name, "pid": task.who.pid.number(), "by_cause": named(causes(), &task.by_cause) })
    });
    let pairs = found
        .preemptions
        .iter()
        .map(|pair| json!({ "preempted": who(&pair.preempted), "by": who(&pair.by), "count": pair.count }));
    let more = [
        ("total", json!(found.total)),
        ("from_idle", json!(found.from_idle)),
        ("by_evidence", named(SwitchEvidence::ALL.map(SwitchEvidence::name), &found.by_evidence)),
        ("by_state", json!(found.by_state)),
        ("tasks", tasks.collect()),
        ("preemptions", pairs.collect()),
        ("would_help", json!(found.would_help)),
        ("flags_known", json!(found.flags_known)),
    ];
    map.extend(more.map(|(key, value)| (key.to_owned(), value)));
    out
}

fn irqs(found: &Irqs) -> Value {
    let uses = |uses: &Option<Vec<IrqUse>>| -> Value {
        let Some(uses) = uses else { return Value::Null };
        let one = |one: &IrqUse| {
            let cpus = one
                .cpus
                .iter()
                .map(|on| json!({ "cpu": on.cpu.number(), "count": on.count, "time_ns": on.time.as_ns() }));
            json!({
                "number": one.number,
                "name": one.name,
                "count": one.count,
                "wakeups": found.wakeups_recorded.then_some(one.wakeups),
                "cpus": cpus.collect::<Vec<_>>(),
            })
        };
        uses.iter().map(one).collect()
    };
    let moves = found.moves.iter().map(|moved| {
        json!({
            "at_ns": moved.at.as_ns(),
            "irq": moved.irq,
            "name": moved.name,
            "from_cpu": moved.from.number(),
            "to_cpu": moved.to.number(),
        })
    });
    let ipis = found.ipis_sent.as_ref().map(|sent| {
        sent.iter()
            .map(|one| json!({ "function": one.function, "count": one.count, "to_self": one.to_self }))
            .collect::<Vec<_>>()
    });
    json!({
        "irqs": uses(&found.irqs),
        "moves_total": found.irqs.as_ref().map(|_| found.moves_total),
        "moves": moves.collect::<Vec<_>>(),
        "softirqs": uses(&found.softirqs),
        "timers": uses(&found.timers),
        "vectors": uses(&found.vectors),
        "ipis_sent": ipis,
        "wakeups_unattributed": { "hardirq": found.wakeups_unattributed[0], "softirq": found.wakeups_unattributed[1] },
    })
}

fn wakers(found: &Wakers) -> Value {
    let pairs = found.pairs.iter().map(|pair| {
        json!({
            "waker": who(&pair.waker),
            "wakee": who(&pair.wakee),
            "count": pair.count,
            "same_cpu": pair.same_cpu,
            "same_llc": pair.same_llc,
        })
    });
    let wide = found.wide.iter().map(|wide| {
        json!({
            "waker": who(&wide.who),
            "wakeups": wide.wakeups,
            "wakees": wide.wakees,
            "flips": wide.flips,
            "flips_max": wide.flips_max,
        })
    });
    let ping_pong = found.ping_pong.iter().map(
        |pair| json!({ "a": who(&pair.a), "b": who(&pair.b), "returns": pair.returns, "wakeups": pair.wakeups }),
    );
    let chains = found.chains.iter().map(|chain| {
        json!({
            "at_ns": chain.at.as_ns(),
            "length_ns": chain.length.as_ns(),
            "root": chain.root.name(),
            "tasks": chain.tasks.iter().map(who).collect::<Vec<_>>(),
        })
    });
    json!({
        "context": named(WakeContext::ALL.map(WakeContext::name), &found.by_context),
        "pairs_total": found.pairs_total,
        "pairs": pairs.collect::<Vec<_>>(),
        "wide": wide.collect::<Vec<_>>(),
        "ping_pong": ping_pong.collect::<Vec<_>>(),
        "chains": chains.collect::<Vec<_>>(),
        "waking_recorded": found.waking_recorded,
    })
}
