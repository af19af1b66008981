//! The placement view: where woken tasks were put.

use crate::layout::{count, list, percent};
use crate::perf_latency::seconds;
use crate::units::{fit, short};
use std::fmt::Write;
use ttwu_analysis::{ByRelation, Outcome, Placement, Relation, Stacked, StackedExample, WakeContext};

/// The view, with at most `limit` tasks.
#[must_use]
pub fn placement(found: &Placement, limit: usize) -> String {
    let mut out = String::new();
    let Outcome { kept, pulled, elsewhere, unknown } = found.outcome;
    let share = |part| percent(part, found.total);
    let _ = writeln!(out, "{} wake-ups placed", count(found.total));
    let _ = write!(
        out,
        "{} kept on the previous CPU, {} pulled to the waker's, {} elsewhere",
        share(kept),
        share(pulled),
        share(elsewhere)
    );
    let _ = writeln!(
        out,
        "{}",
        if unknown > 0 { format!(", {} not known", share(unknown)) } else { String::new() }
    );
    distances(&mut out, found);
    contexts(&mut out, found);
    let stacked = stacked_parts(&found.stacked);
    if !stacked.is_empty() {
        out.push('\n');
        list(&mut out, STACKED, stacked);
        let Stacked { behind_waker, bound_kthreads, onto_busy, machine, .. } = found.stacked;
        let all = format!("{} wake-ups onto a busy CPU;", count(onto_busy));
        let waker = format!("onto the waker's own {},", count(behind_waker));
        list(&mut out, "  of ", [all, waker, format!("of bound kernel threads {}", count(bound_kthreads))]);
        if machine > 0 {
            examples(&mut out, "longest waits", &found.stacked_worst);
            examples(&mut out, "first", &found.stacked_first);
        }
    }
    if found.new_tasks.total > 0 {
        let by = relations(&found.new_tasks.by_parent, found.topology_known);
        let by = by.iter().filter(|(_, part)| *part > 0);
        let by = by
            .map(|(relation, part)| format!("{} {}", relation.name(), percent(*part, found.new_tasks.total)));
        out.push('\n');
        list(&mut out, &format!("{} new tasks, from the parent's CPU: ", count(found.new_tasks.total)), by);
    }
    tasks(&mut out, found, limit);
    let _ = writeln!(out, "\nnot measured: sync wake-ups (plain events do not carry the wake flags)");
    if !found.waking_recorded {
        let _ =
            writeln!(out, "not measured: the waker's CPU where the wake list was used (needs sched_waking)");
    }
    if !found.topology_known {
        let _ = writeln!(out, "not measured: distances (no topology in the recording; --topology gives one)");
    }
    out
}

/// The relations that can occur, with their counts.
pub(crate) fn relations(by: &ByRelation, topology_known: bool) -> Vec<(Relation, u64)> {
    let shown = |relation: &Relation| match relation {
        Relation::At(level) => {
            topology_known || *level == ttwu_model::Level::SameCpu || by.get(*relation) > 0
        }
        Relation::OtherCpu => !topology_known || by.get(*relation) > 0,
        Relation::Unknown => by.get(*relation) > 0,
    };
    Relation::ALL.into_iter().filter(shown).map(|relation| (relation, by.get(relation))).collect()
}

fn distances(out: &mut String, found: &Placement) {
    let rows = [
        ("to previous CPU", &found.by_prev),
        ("to waker's CPU", &found.by_waker),
        ("previous to waker", &found.prev_to_waker),
    ];
    let mut all = ByRelation::default();
    for (_, by) in rows {
        for (relation, part) in by.iter() {
            all.add(relation, part);
        }
    }
    let columns: Vec<Relation> =
        relations(&all, found.topology_known).into_iter().map(|(relation, _)| relation).collect();
    let _ = write!(out, "\n{:<17}", "distance");
    for relation in &columns {
        let _ = write!(out, " {:>8}", fit(relation.name(), 9).trim_end());
    }
    out.push('\n');
    for (name, by) in rows {
        let _ = write!(out, "{name:<17}");
        for &relation in &columns {
            let width = fit(relation.name(), 9).trim_end().chars().count().max(8);
            let _ = write!(out, " {:>width$}", percent(by.get(relation), by.total()));
        }
        out.push('\n');
    }
}

fn contexts(out: &mut String, found: &Placement) {
    let _ = writeln!(
        out,
        "\n{:<12} {:>10} {:>8} {:>8} {:>8} {:>10}",
        "woken from", "wake-ups", "share", "kept", "pulled", "elsewhere"
    );
    for context in WakeContext::ALL {
        let total = found.context[context as usize];
        if total == 0 {
            continue;
        }
        let Outcome { kept, pulled, elsewhere, .. } = found.outcome_by_context[context as usize];
        let _ = writeln!(
            out,
            "{:<12} {:>10} {:>8} {:>8} {:>8} {:>10}",
            context.name(),
            count(total),
            percent(total, found.total),
            percent(kept, total),
            percent(pulled, total),
            percent(elsewhere, total)
        );
    }
}

/// What [`stacked_parts`] are about.
pub(crate) const STACKED: &str = "stacked on a busy CPU, an idle one in: ";

/// How many, within what; nothing if no wake-up went to a busy CPU.
pub(crate) fn stacked_parts(stacked: &Stacked) -> Vec<String> {
    if stacked.onto_busy == 0 {
        return Vec::new();
    }
    let within = |name: &str, part: Option<u64>| part.map(|part| format!("{name} {}", count(part)));
    [
        within("cluster", stacked.cluster),
        within("cache", stacked.llc),
        within("machine", Some(stacked.machine)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn examples(out: &mut String, title: &str, examples: &[StackedExample]) {
    let _ = writeln!(
        out,
        "  {:<16} {:>16}  {:<14} {:>4} {:>4} {:>9} {:>8}",
        title, "at", "from", "onto", "idle", "distance", "waited"
    );
    for example in examples {
        let wakee = format!("{}:{}", example.wakee.name, example.wakee.pid);
        let waker = match example.context {
            WakeContext::Task | WakeContext::Unknown => example.waker.name.clone(),
            WakeContext::Softirq | WakeContext::Hardirq | WakeContext::Idle | WakeContext::Nmi => {
                example.context.name().to_owned()
            }
        };
        let _ = writeln!(
            out,
            "  {} {:>16}  {} {:>4} {:>4} {:>9} {:>8}",
            fit(&wakee, 16),
            seconds(example.at),
            fit(&format!("{waker} #{}", example.waker_cpu), 14),
            example.cpu,
            example.idle_cpu,
            example.idle_relation.name(),
            format!("{}{}", if example.censored { ">" } else { "" }, short(example.waited)),
        );
    }
}

fn tasks(out: &mut String, found: &Placement, limit: usize) {
    let _ = writeln!(
        out,
        "\n{:<24} {:>10} {:>8} {:>8} {:>10} {:>9}",
        "task:pid", "wake-ups", "kept", "pulled", "elsewhere", "stacked"
    );
    for task in found.tasks.iter().take(limit) {
        let share = |part| percent(part, task.wakeups);
        let _ = writeln!(
            out,
            "{} {:>10} {:>8} {:>8} {:>10} {:>9}",
            fit(&format!("{}:{}", task.who.name, task.who.pid), 24),
            count(task.wakeups),
            share(task.outcome.kept),
            share(task.outcome.pulled),
            share(task.outcome.elsewhere),
            count(task.stacked)
        );
    }
    if found.tasks.len() > limit {
        let _ = writeln!(out, "… {} more", found.tasks.len() - limit);
    }
}
