//! The switch view: why tasks left their CPUs.

use crate::layout::{bar, count, list, percent};
use crate::units::fit;
use std::fmt::Write;
use ttwu_analysis::{SwitchCause, SwitchEvidence, Switches};

/// The view, with at most `limit` tasks and pairs.
#[must_use]
pub fn switches(found: &Switches, limit: usize) -> String {
    let mut out = String::new();
    let caused = found.total - found.from_idle;
    let _ = writeln!(out, "{} switches, {} of them from idle", count(found.total), count(found.from_idle));
    out.push('\n');
    for cause in SwitchCause::ALL {
        let times = found.by_cause[cause as usize];
        let share = percent(times, caused);
        let line = format!("{:<22} {:>9} {share:>6} {}", cause.name(), count(times), bar(times, caused, 30));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let _ = writeln!(out);
    let evidence = SwitchEvidence::ALL.into_iter().filter(|&one| found.by_evidence[one as usize] > 0);
    let evidence = evidence.map(|one| {
        let mark = if one.inferred() { "~" } else { "" };
        format!("{mark}{} {}", one.name(), count(found.by_evidence[one as usize]))
    });
    list(&mut out, "evidence  ", evidence);
    let states = found.by_state.iter().map(|(state, times)| format!("{state} {}", count(*times)));
    list(&mut out, "states    ", states);
    if SwitchEvidence::ALL.into_iter().any(|one| one.inferred() && found.by_evidence[one as usize] > 0) {
        out.push_str("~ inferred from nearness in time\n");
    }
    if !found.flags_known {
        let _ = writeln!(out, "not measured: need-resched (this source carries no flags)");
    }
    if found.by_cause[SwitchCause::Unknown as usize] > 0 && !found.would_help.is_empty() {
        list(
            &mut out,
            "recording these too would tell more: ",
            found.would_help.iter().map(|&name| name.to_owned()),
        );
    }
    tasks(&mut out, found, limit);
    if !found.preemptions.is_empty() {
        let _ = writeln!(out, "\n{:<28} {:<28} {:>9}", "preempted by a wake-up", "by", "times");
    }
    for pair in found.preemptions.iter().take(limit) {
        let name = |who: &ttwu_analysis::Who| fit(&format!("{}:{}", who.name, who.pid), 28);
        let _ = writeln!(out, "{} {} {:>9}", name(&pair.preempted), name(&pair.by), count(pair.count));
    }
    out
}

fn tasks(out: &mut String, found: &Switches, limit: usize) {
    let _ = writeln!(
        out,
        "\n{:<20} {:>8} {:>9} {:>7} {:>6} {:>7} {:>5} {:>5} {:>5}",
        "task:pid", "switches", "voluntary", "wake-up", "migr.", "tick", "yield", "exit", "?"
    );
    for task in found.tasks.iter().take(limit) {
        let [voluntary, wakeup, migration, tick, yielded, exit, unknown] = task.by_cause;
        let total: u64 = task.by_cause.iter().sum();
        let _ = writeln!(
            out,
            "{} {total:>8} {voluntary:>9} {wakeup:>7} {migration:>6} {tick:>7} {yielded:>5} {exit:>5} {unknown:>5}",
            fit(&format!("{}:{}", task.who.name, task.who.pid), 20),
        );
    }
    if found.tasks.len() > limit {
        let _ = writeln!(out, "… {} more", found.tasks.len() - limit);
    }
}
