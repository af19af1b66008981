//! The interrupt view: who handled what, and what it woke.

use crate::layout::{count, list};
use crate::perf_latency::seconds;
use crate::units::{fit, short};
use std::fmt::Write;
use ttwu_analysis::{IrqUse, Irqs};
use ttwu_model::Duration;

/// The view, with at most `limit` rows a kind.
#[must_use]
pub fn irqs(found: &Irqs, limit: usize) -> String {
    let mut out = String::new();
    kind(&mut out, "device interrupt", found.irqs.as_deref(), "irq:irq_handler_entry", limit);
    if found.irqs.is_some() {
        let _ = writeln!(out, "{} moves of a device interrupt to another CPU", count(found.moves_total));
        for moved in found.moves.iter().take(limit) {
            let _ = writeln!(
                out,
                "  {} {} #{} → #{} at {}",
                moved.irq,
                moved.name,
                moved.from,
                moved.to,
                seconds(moved.at)
            );
        }
    }
    kind(&mut out, "softirq", found.softirqs.as_deref(), "irq:softirq_entry", limit);
    kind(&mut out, "timer callback", found.timers.as_deref(), "timer:hrtimer_expire_entry", limit);
    kind(&mut out, "vector", found.vectors.as_deref(), "irq_vectors:* or ipi:ipi_entry", limit);
    out.push('\n');
    match &found.ipis_sent {
        None => out.push_str("not measured: IPIs sent (needs ipi:ipi_send_cpu)\n"),
        Some(sent) => {
            let senders = sent.iter().take(limit).map(|one| format!("{} {}", one.function, count(one.count)));
            list(&mut out, "IPIs sent  ", senders);
        }
    }
    let [hardirq, softirq] = found.wakeups_unattributed;
    if hardirq + softirq > 0 {
        let _ = writeln!(
            out,
            "wake-ups from interrupts that were not recorded: hardirq {}, softirq {}",
            count(hardirq),
            count(softirq)
        );
    }
    out
}

fn kind(out: &mut String, title: &str, uses: Option<&[IrqUse]>, needs: &str, limit: usize) {
    let Some(uses) = uses else {
        let _ = writeln!(out, "not measured: {title}s (needs {needs})");
        return;
    };
    let _ = writeln!(out, "\n{title:<30} {:>9} {:>8} {:>8}  by CPU", "count", "time", "wakes");
    for one in uses.iter().take(limit) {
        let number = one.number.map_or(String::new(), |number| format!("{number} "));
        let total: Duration = one.cpus.iter().map(|on| on.time).sum();
        let time = if total == Duration::ZERO { "-".to_owned() } else { short(total) };
        let label = format!(
            "{} {:>9} {time:>8} {:>8}  ",
            fit(&format!("{number}{}", one.name), 30),
            count(one.count),
            count(one.wakeups)
        );
        let cpus = one.cpus.iter().take(8).map(|on| format!("#{}:{}", on.cpu, on.count));
        let more = (one.cpus.len() > 8).then(|| format!("… {} more", one.cpus.len() - 8));
        list(out, &label, cpus.chain(more));
    }
    if uses.len() > limit {
        let _ = writeln!(out, "… {} more", uses.len() - limit);
    }
}
