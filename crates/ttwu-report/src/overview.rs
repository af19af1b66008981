//! The overview: one screen (80 × 40) that says whether the recording can be believed, what it is, and the main figures.
//!
//! Health first, since a number from a recording with holes is read differently.

use crate::layout::{bar, count, list, milli, percent};
use crate::perf_latency::seconds;
use crate::placement::{STACKED, relations, stacked_parts};
use crate::report::{Report, health_faults};
use crate::units::{fit, short, short_ns};
use std::fmt::Write;
use ttwu_analysis::{
    ByRelation, Cpus, LatencyReport, LatencyRow, Measured, MigrationCause, Migrations, Placement,
    SwitchCause, Switches, WakeContext, Wakers,
};

/// Rows of the latency table.
const LATENCY_ROWS: usize = 6;
/// Tracepoints named.
const EVENTS_NAMED: usize = 6;
/// CPUs with a line of their own, two a line; more are drawn as a strip.
const CPUS_NAMED: usize = 8;

/// The overview of a report in which the analyses ran; one that did not is left out.
#[must_use]
pub fn overview(report: &Report) -> String {
    let mut out = String::new();
    source(&mut out, report);
    let results = &report.results;
    section(&mut out, "latency", results.latency.as_ref(), latency);
    section(&mut out, "placement", results.placement.as_ref(), placement);
    section(&mut out, "switches", results.switches.as_ref(), switches);
    section(&mut out, "migrations", results.migrations.as_ref(), migrations);
    section(&mut out, "CPUs", results.cpus.as_ref(), |out, found| cpus(out, found, report));
    section(&mut out, "wakers", results.wakers.as_ref(), wakers);
    out
}

fn section<T>(out: &mut String, name: &str, found: Option<&Measured<T>>, show: impl FnOnce(&mut String, &T)) {
    match found {
        None => {}
        Some(Measured::NotMeasured { missing }) => {
            let _ = writeln!(out, "{name:<11}not measured: the recording lacks {}", missing.join(", "));
        }
        Some(Measured::Measured(found)) => show(out, found),
    }
}

fn source(out: &mut String, report: &Report) {
    let faults = health_faults(&report.health);
    if faults.is_empty() {
        let _ = writeln!(out, "health     clean");
    } else {
        list(out, "health     CHECK BEFORE YOU TRUST: ", faults);
    }
    if let Some(note) = report.health.notes.first() {
        let more = report.health.notes.len() - 1;
        let more = if more > 0 { format!(" (and {more} more notes)") } else { String::new() };
        let _ = writeln!(out, "           {}{more}", fit(note, 69 - more.chars().count()).trim_end());
    }
    let meta = &report.meta;
    let kernel = meta.kernel_release.as_ref().map(|release| format!("Linux {release}"));
    let parts = [Some(meta.format.clone()), meta.recorder.clone(), kernel, meta.arch.clone()];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    list(out, "recording  ", std::iter::once(report.file.clone()).chain(parts));
    let mut facts = vec![short(report.span())];
    if let Some((first, _)) = report.results.span {
        let clock = meta.clock.as_ref().map_or(String::new(), |clock| format!(" ({clock} clock)"));
        facts.push(format!("from {}{clock}", seconds(first)));
    }
    facts.extend(report.cpus_count().map(|cpus| format!("{} CPUs", count(cpus))));
    facts.push(format!("{} tasks", count(report.tasks_count)));
    facts.push(format!("topology: {}", report.topology.as_deref().unwrap_or("not known")));
    list(out, "span       ", facts);
    let mut events: Vec<(&String, &u64)> = report.results.recorded.counts().iter().collect();
    events.sort_by_key(|&(name, times)| (std::cmp::Reverse(times), name));
    let others: u64 = events.iter().skip(EVENTS_NAMED).map(|&(_, times)| times).sum();
    let named = events.iter().take(EVENTS_NAMED).map(|(name, times)| format!("{name} {}", count(**times)));
    let others = (others > 0).then(|| format!("others {}", count(others)));
    list(out, "events     ", named.chain(others));
    out.push('\n');
}

fn latency(out: &mut String, found: &LatencyReport) {
    let _ = writeln!(
        out,
        "{:<24} {:>5} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7}",
        "latency    (waits)", "tasks", "run", "waits", "avg", "p50", "p99", "max"
    );
    for row in found.by_name.iter().take(LATENCY_ROWS) {
        latency_row(out, row.name.as_deref().unwrap_or("(no name)"), row);
    }
    latency_row(out, "(all)", &found.total);
}

fn latency_row(out: &mut String, name: &str, row: &LatencyRow) {
    let delay = &row.delay;
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), short_ns);
    let _ = writeln!(
        out,
        "  {} {:>5} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7}",
        fit(name, 22),
        row.tasks.len(),
        short_ns(row.runtime_ns),
        delay.count,
        time(delay.ns_avg()),
        time(delay.ns.map(|ns| ns.p50)),
        time(delay.ns.map(|ns| ns.p99)),
        time((delay.count > 0).then_some(delay.ns_max)),
    );
}

fn placement(out: &mut String, found: &Placement) {
    let share = |part| percent(part, found.total);
    let outcome = &found.outcome;
    let mut parts = vec![
        format!("kept on the previous CPU {}", share(outcome.kept)),
        format!("pulled to the waker's {}", share(outcome.pulled)),
        format!("elsewhere {}", share(outcome.elsewhere)),
    ];
    if outcome.unknown > 0 {
        parts.push(format!("not known {}", share(outcome.unknown)));
    }
    list(
        out,
        &format!("{:<11}", "placement"),
        std::iter::once(format!("{} wake-ups", count(found.total))).chain(parts),
    );
    let by = |by: &ByRelation| -> Vec<String> {
        let shown = relations(by, found.topology_known).into_iter().filter(|&(_, part)| part > 0);
        shown.map(|(relation, part)| format!("{} {}", relation.name(), percent(part, by.total()))).collect()
    };
    list(out, "  from previous CPU  ", by(&found.by_prev));
    list(out, "  from waker's CPU   ", by(&found.by_waker));
    let contexts = WakeContext::ALL.into_iter().zip(found.context).filter(|&(_, times)| times > 0);
    list(
        out,
        "  woken from         ",
        contexts.map(|(context, times)| format!("{} {}", context.name(), share(times))),
    );
    let stacked = stacked_parts(&found.stacked);
    if !stacked.is_empty() {
        list(out, &format!("  {STACKED}"), stacked);
    }
    if let Some(worst) = found.stacked_worst.first() {
        let task = format!("{}:{}", worst.wakee.name, worst.wakee.pid);
        let label = format!("    the longest waited {}: ", short(worst.waited));
        let onto = format!("{} onto #{}, #{} idle", fit(&task, 22).trim_end(), worst.cpu, worst.idle_cpu);
        list(out, &label, [onto, format!("at {}", seconds(worst.at))]);
    }
}

fn switches(out: &mut String, found: &Switches) {
    let caused = found.total - found.from_idle;
    let causes = SwitchCause::ALL.into_iter().filter(|&cause| found.by_cause[cause as usize] > 0);
    let causes = causes.map(|cause| {
        format!("{} {}", cause.name().replace('_', " "), percent(found.by_cause[cause as usize], caused))
    });
    let all = format!("{} from tasks", count(caused));
    list(out, "switches   ", std::iter::once(all).chain(causes));
    let unknown = found.by_cause[SwitchCause::Unknown as usize];
    if unknown * 100 > caused && !found.would_help.is_empty() {
        list(out, "  to know more, record  ", found.would_help.iter().map(|&name| name.to_owned()));
    }
}

fn migrations(out: &mut String, found: &Migrations) {
    let causes = MigrationCause::ALL.into_iter().filter(|&cause| found.by_cause[cause as usize] > 0);
    let causes = causes
        .map(|cause| format!("{} {}", cause.name().replace('_', " "), count(found.by_cause[cause as usize])));
    list(out, "migrations ", std::iter::once(count(found.total)).chain(causes));
    if found.topology_known && found.total > 0 {
        let by = relations(&found.by_level, true).into_iter().filter(|&(_, part)| part > 0);
        list(out, "  distance ", by.map(|(relation, part)| format!("{} {}", relation.name(), count(part))));
    }
}

fn cpus(out: &mut String, found: &Cpus, report: &Report) {
    let span = report.span().as_ns();
    let busy: u64 = found.cpus.iter().map(|cpu| cpu.busy.as_ns()).sum();
    let known: u64 = found.cpus.iter().map(|cpu| (cpu.busy + cpu.idle).as_ns()).sum();
    let work = &found.violations;
    let waited = format!("{} times, {} in all", count(work.count), short(work.total));
    let busy = format!("busy {}", percent(busy, known));
    list(out, "CPUs       ", [busy, "work waited while a CPU idled:".to_owned(), waited]);
    if found.cpus.len() > CPUS_NAMED {
        strip(out, found, span);
        return;
    }
    for pair in found.cpus.chunks(2) {
        let mut line = String::from("  ");
        for cpu in pair {
            let mean = cpu.queue_mean_milli().map_or_else(|| "-".to_owned(), milli);
            let busy = cpu.busy.as_ns();
            let label = format!(
                "#{:<3} {:<10} {:>6} queue {mean:>5}",
                cpu.cpu,
                bar(busy, span, 10),
                percent(busy, span)
            );
            let _ = write!(line, "{label:<40}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// One character a CPU, from idle to busy, 64 a line.
fn strip(out: &mut String, found: &Cpus, span: u64) {
    const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    for (row, cpus) in found.cpus.chunks(64).enumerate().take(4) {
        let level = |busy: u64| (u128::from(busy) * 8).div_ceil(u128::from(span.max(1))).min(8) as usize;
        let cells: String = cpus.iter().map(|cpu| LEVELS[level(cpu.busy.as_ns())]).collect();
        let _ = writeln!(out, "  #{:<7} {cells}", row * 64);
    }
}

fn wakers(out: &mut String, found: &Wakers) {
    let name = |who: &ttwu_analysis::Who| fit(&format!("{}:{}", who.name, who.pid), 20).trim_end().to_owned();
    let pair = found.pairs.first().map(|pair| {
        format!("most often {} → {} ({})", name(&pair.waker), name(&pair.wakee), count(pair.count))
    });
    let wide =
        found.wide.first().map(|wide| format!("widest {} ({} tasks)", name(&wide.who), count(wide.wakees)));
    list(out, "wakers     ", pair.into_iter().chain(wide));
}
