//! Which counters moved, by how much more than they move between runs.
//!
//! `z` is the change of a counter's mean over the noise of a single run: the standard deviation of the differences between the
//! runs of one seed, by the root of 2 as a difference has the noise of two runs; but at least what counting independent events
//! would have, the square root of the count, so that a deterministic run does not make everything infinitely significant. It
//! says where to look, and proves no cause.

use crate::metrics::{Metric, find};
use ttwu_stats::describe;

/// A counter of two arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Its name.
    pub counter: String,
    /// Its unit.
    pub unit: String,
    /// Mean in the baseline.
    pub base: f64,
    /// Mean in the other arm.
    pub new: f64,
    /// Change of the mean in standard deviations of a run; positive where it grew.
    pub z: f64,
}

/// Counters that restate the time of the run.
const RESTATEMENTS: [&str; 3] = ["busy_time", "task_time", "ticks"];

/// All counters that moved, the most moved first. Arguments: counters by seed.
pub(super) fn moved(base: &[Vec<Metric>], new: &[Vec<Metric>]) -> Vec<Moved> {
    let mut all: Vec<Moved> = Vec::new();
    let Some(first) = base.first() else { return all };
    for metric in first.iter().filter(|metric| !RESTATEMENTS.contains(&metric.name.as_str())) {
        let series = |arm: &[Vec<Metric>]| -> Option<Vec<f64>> {
            arm.iter().map(|counters| find(counters, &metric.name)).collect()
        };
        // A mean of nothing is missing in some runs, and cannot be said to have moved.
        let (Some(a), Some(b)) = (series(base), series(new)) else { continue };
        let (Some(base), Some(new)) = (describe::mean(&a), describe::mean(&b)) else { continue };
        if base == new {
            continue;
        }
        let differences: Vec<f64> = b.iter().zip(&a).map(|(b, a)| b - a).collect();
        let between_runs = describe::variance(&differences).unwrap_or(0.0) / 2.0;
        let least = match metric.unit.as_str() {
            "count" => base.max(new),
            _ => (0.001 * base.max(new)).powi(2),
        };
        let z = (new - base) / between_runs.max(least).sqrt();
        all.push(Moved { counter: metric.name.clone(), unit: metric.unit.clone(), base, new, z });
    }
    all.sort_by(|a, b| b.z.abs().total_cmp(&a.z.abs()));
    all
}

impl Moved {
    /// The counter in words.
    #[must_use]
    pub fn words(&self) -> String {
        let name = self.counter.as_str();
        let families = [
            ("migrations_", "migrations, "),
            ("wakes_", "wake-ups to a CPU at distance "),
            ("scans_", "idle scans ended by "),
            ("rule_", "placements by the rule "),
            ("idle_exits_", "exits from idle state "),
        ];
        let known = [
            ("wakeups", "wake-ups"),
            ("wide", "wake-ups that were too wide for affinity"),
            ("cpus_scanned", "CPUs looked at by idle scans"),
            ("kept_prev", "wake-ups kept on the previous CPU"),
            ("pulled_this", "wake-ups pulled to the waker's CPU"),
            ("stacked", "wake-ups onto a CPU that was busy"),
            ("migrations", "migrations"),
            ("wake_list", "wake-ups through a wake list"),
            ("ipis", "interrupts sent between CPUs"),
            ("polled_wakes", "idle CPUs woken without an interrupt"),
            ("preempt_wake", "preemptions by a wake-up"),
            ("preempt_tick", "preemptions by the tick"),
            ("switches", "context switches"),
            ("switches_voluntary", "switches of tasks that went to sleep"),
            ("switches_involuntary", "switches of tasks that could have gone on"),
            ("rq_lock_wait", "waiting for run-queue locks"),
            ("wait_queue_lock_wait", "waiting for wait-queue locks"),
            ("wait_queue_lock_waits", "waits for wait-queue locks"),
            ("waker_time", "time of wakers in wake-ups"),
            ("refill_time", "time refilling caches"),
            ("run_delay", "waiting to run"),
            ("queue_length_mean", "mean queue length at enqueue"),
            ("wake_latency_mean", "mean time from wake-up to running"),
            ("wake_latency_p99", "99th percentile of wake-up to running"),
        ];
        if let Some((_, words)) = known.iter().find(|(known, _)| *known == name) {
            return (*words).to_owned();
        }
        let family = families.iter().find_map(|(start, words)| Some((words, name.strip_prefix(start)?)));
        family.map_or_else(
            || name.replace('_', " "),
            |(words, rest)| format!("{words}{}", rest.replace('_', " ")),
        )
    }

    /// How the value moved, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let verb = if self.z > 0.0 { "rose" } else { "fell" };
        let share = if self.base > 0.0 {
            format!(" ({:+.0} %)", 100.0 * (self.new / self.base - 1.0))
        } else {
            String::new()
        };
        let [base, new] = [self.base, self.new].map(|value| amount(value, &self.unit));
        let words = self.words();
        format!(
            "{words} {verb} from {base} to {new} a run{share}, {:.0} times the noise of a run",
            self.z.abs()
        )
    }
}

/// A count or a time for people.
pub(super) fn amount(value: f64, unit: &str) -> String {
    match unit {
        "ns" if value.abs() >= 1e9 => format!("{:.3} s", value / 1e9),
        "ns" if value.abs() >= 1e6 => format!("{:.2} ms", value / 1e6),
        "ns" if value.abs() >= 1e3 => format!("{:.2} us", value / 1e3),
        "ns" => format!("{value:.0} ns"),
        "count" if value.abs() >= 100.0 => thousands(value.round() as i64),
        "count" => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn thousands(value: i64) -> String {
    let digits = value.abs().to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    if value < 0 { format!("-{out}") } else { out }
}
