//! The CPU view: CPUs hit, occupation, queue lengths, work conservation.

use crate::layout::{bar, count, list, milli, percent};
use crate::perf_latency::seconds;
use crate::units::{fit, short};
use std::fmt::Write;
use ttwu_analysis::{CpuUse, Cpus, TaskCpus, VIOLATION_BOUNDS_NS, Violations};
use ttwu_model::Duration;

/// The view, with at most `limit` tasks.
#[must_use]
pub fn cpus(found: &Cpus, limit: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{:<4} {:<8} {:>6} {:>6} {:>7} {:>8} {:>6}  {:>6} {:>6} {:>6} {:>6}",
        "CPU", "", "busy", "idle", "unknown", "switches", "queue", "at 0", "1", "2", "3+"
    );
    for cpu in &found.cpus {
        line(&mut out, cpu, found.span);
    }
    out.push('\n');
    for task in found.tasks.iter().take(limit) {
        hits(&mut out, task, found.wakeups_recorded);
    }
    if found.tasks.len() > limit {
        let _ = writeln!(out, "… {} more", found.tasks.len() - limit);
    }
    if found.wakeups_recorded {
        let _ =
            writeln!(out, "CPUs hit: wake-ups by the CPU they chose; queue: runnable tasks, time at 0, 1 …");
    } else {
        let _ = writeln!(out, "not measured: CPUs hit (needs sched_waking or sched_wakeup); shown are runs");
    }
    out.push('\n');
    violations(&mut out, "machine", &found.violations);
    match &found.violations_in_llc {
        Some(within) => violations(&mut out, "one cache", within),
        None => out.push_str("not measured: the same within one cache (no topology)\n"),
    }
    out
}

fn line(out: &mut String, cpu: &CpuUse, span: Duration) {
    let (busy, span) = (cpu.busy.as_ns(), span.as_ns());
    let mean = cpu.queue_mean_milli().map_or_else(|| "-".to_owned(), milli);
    let known: Duration = cpu.queue.iter().copied().sum();
    let rest: Duration = cpu.queue[3..].iter().copied().sum();
    let at = [cpu.queue[0], cpu.queue[1], cpu.queue[2], rest];
    let at: Vec<String> =
        at.iter().map(|time| format!("{:>6}", percent(time.as_ns(), known.as_ns()))).collect();
    let _ = writeln!(
        out,
        "#{:<3} {:<8} {:>6} {:>6} {:>7} {:>8} {mean:>6}  {}",
        cpu.cpu,
        bar(busy, span, 8),
        percent(busy, span),
        percent(cpu.idle.as_ns(), span),
        percent(cpu.unknown.as_ns(), span),
        cpu.switches_in,
        at.join(" ")
    );
}

/// `name:pid  CPUs hit: #52:417 #63:583  (times)`, as the DMA thread's patch to dmatest printed it.
fn hits(out: &mut String, task: &TaskCpus, wakeups_recorded: bool) {
    let name = fit(&format!("{}:{}", task.who.name, task.who.pid), 20);
    let number = |hits: u64, runs: u64| if wakeups_recorded { hits } else { runs };
    let counts: Vec<String> = task
        .cpus
        .iter()
        .filter(|cell| number(cell.hits, cell.runs) > 0)
        .map(|cell| format!("#{}:{}", cell.cpu, number(cell.hits, cell.runs)))
        .collect();
    let what = if wakeups_recorded { "CPUs hit:" } else { "CPUs run:" };
    let label = format!("{name} {what} ");
    let end = if counts.is_empty() { "none" } else { "(times)" };
    list(out, &label, counts.into_iter().chain([end.to_owned()]));
    let run = task.run();
    let busiest = task.cpus.iter().max_by_key(|cell| cell.run);
    if let Some(busiest) = busiest.filter(|cell| cell.run > Duration::ZERO) {
        let runs: u64 = task.cpus.iter().map(|cell| cell.runs).sum();
        let _ = writeln!(
            out,
            "{:21}ran {} in {} runs, {} of it on #{}",
            "",
            short(run),
            count(runs),
            percent(busiest.run.as_ns(), run.as_ns()),
            busiest.cpu
        );
    }
}

fn violations(out: &mut String, name: &str, found: &Violations) {
    let _ = writeln!(
        out,
        "work waiting while a CPU idles ({name}): {} times, {} in all",
        count(found.count),
        short(found.total)
    );
    if found.count == 0 {
        return;
    }
    let bounds = VIOLATION_BOUNDS_NS.map(|ns| format!("<{}", short(Duration::from_ns(ns))));
    let classes = bounds.into_iter().chain(["longer".to_owned()]).zip(found.by_length);
    let classes = classes
        .filter(|(_, (times, _))| *times > 0)
        .map(|(bound, (times, total))| format!("{bound}: {} ({})", count(times), short(total)));
    list(out, "  by length  ", classes);
    let longest = found.longest.iter().take(5).map(|one| {
        let open = if one.censored { ">" } else { "" };
        format!("{open}{} at {}", short(one.length), seconds(one.at))
    });
    list(out, "  longest    ", longest);
}
