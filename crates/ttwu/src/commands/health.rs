//! What is wrong with a recording, on standard error in a line each.

use ttwu_model::TraceHealth;

/// Warns of everything that could falsify a number.
pub(crate) fn warn(health: &TraceHealth) {
    for line in lines(health) {
        crate::output::say(&format!("ttwu: warning: {line}"));
    }
}

/// The findings, most serious first; long lists are cut.
fn lines(health: &TraceHealth) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(offset) = health.truncated_at {
        lines.push(format!("the recording ends too early, at offset {offset:#x}"));
    }
    if health.lost_events > 0 || health.uncounted_gaps > 0 {
        let gaps = health.loss_windows.len();
        let uncounted = if health.uncounted_gaps > 0 {
            format!(", and an unknown number in {} more gaps", health.uncounted_gaps)
        } else {
            String::new()
        };
        lines.push(format!("{} events lost ({gaps} gaps){uncounted}", health.lost_events));
    }
    if health.switch_mismatches > 0 {
        let count = health.switch_mismatches;
        lines.push(format!("{count} switches do not join the one before: switch events are missing"));
    }
    if health.clock_steps_total > 0 {
        lines.push(format!("time goes back {} times", health.clock_steps_total));
    }
    if health.foreign_cpu_events > 0 {
        lines.push(format!("{} events on CPUs that the recording does not list", health.foreign_cpu_events));
    }
    if !health.unknown_records.is_empty() {
        let total: u64 = health.unknown_records.values().sum();
        let names: Vec<&str> = health.unknown_records.keys().map(String::as_str).take(4).collect();
        let more = if health.unknown_records.len() > 4 { ", …" } else { "" };
        lines.push(format!("{total} records not understood ({}{more})", names.join(", ")));
    }
    lines.extend(health.repairs.iter().take(4).cloned());
    if health.repairs.len() > 4 {
        lines.push(format!("and {} more repairs", health.repairs.len() - 4));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_recording_warns_of_nothing_and_each_finding_has_a_line() {
        assert!(lines(&TraceHealth::default()).is_empty());
        let mut health =
            TraceHealth { truncated_at: Some(16), switch_mismatches: 2, ..TraceHealth::default() };
        health.add_unknown("PERF_RECORD_99");
        health.clock_steps_total = 1;
        health.foreign_cpu_events = 1;
        health.lost_events = 7;
        assert_eq!(lines(&health).len(), 6);
    }
}
