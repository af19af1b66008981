//! Counters of a run as named metrics. Names are those of [`ttwu_sim::Counters`]' fields; families have a suffix.

use super::Metric;
use ttwu_fair::{Rule, ScanEnd};
use ttwu_model::Level;
use ttwu_sim::Outcome;

/// All counters of a run. What the model cannot count (a distribution without samples) is left out.
#[must_use]
pub fn counters(outcome: &Outcome) -> Vec<Metric> {
    let c = &outcome.counters;
    let mut all = Vec::new();
    let mut put = |name: String, unit: &str, value: f64| {
        all.push(Metric { name, unit: unit.to_owned(), better: None, value });
    };
    for (name, count) in [
        ("wakeups", c.wakeups),
        ("wakeups_still_queued", c.wakeups_still_queued),
        ("wakeups_pinned", c.wakeups_pinned),
        ("wide", c.wide),
        ("cpus_scanned", c.cpus_scanned),
        ("kept_prev", c.kept_prev),
        ("pulled_this", c.pulled_this),
        ("stacked", c.stacked),
        ("migrations", c.migrations()),
        ("migrations_wake", c.migrations_wake),
        ("migrations_fork", c.migrations_fork),
        ("migrations_newidle", c.migrations_newidle),
        ("migrations_periodic", c.migrations_periodic),
        ("migrations_nohz", c.migrations_nohz),
        ("migrations_active", c.migrations_active),
        ("migrations_forced", c.migrations_forced),
        ("wake_list", c.wake_list),
        ("on_cpu_spins", c.on_cpu_spins),
        ("ipis", c.ipis),
        ("polled_wakes", c.polled_wakes),
        ("preempt_wake", c.preempt_wake),
        ("preempt_tick", c.preempt_tick),
        ("switches", c.switches()),
        ("switches_voluntary", c.switches_voluntary),
        ("switches_involuntary", c.switches_involuntary),
        ("yields", c.yields),
        ("ticks", c.ticks),
        ("interrupts", c.interrupts),
        ("balance_passes", c.balance_passes),
        ("newidle_passes", c.newidle_passes),
        ("wait_queue_lock_waits", c.wait_queue_lock_waits),
    ] {
        put(name.to_owned(), "count", count as f64);
    }
    for level in Level::ALL {
        let index = Level::ALL.iter().position(|other| *other == level).expect("one of all");
        put(format!("migrations_{}", level.name()), "count", c.migrations[index] as f64);
        put(format!("wakes_{}", level.name()), "count", c.wake_distance[index] as f64);
    }
    for end in [ScanEnd::Hit, ScanEnd::Budget, ScanEnd::Exhausted, ScanEnd::Forbidden] {
        put(format!("scans_{}", end.name()), "count", c.scans.get(&end).copied().unwrap_or(0) as f64);
    }
    for &rule in Rule::ALL {
        put(format!("rule_{}", rule.name()), "count", c.by_rule.get(&rule).copied().unwrap_or(0) as f64);
    }
    for (state, &exits) in c.idle_exits.iter().enumerate() {
        put(format!("idle_exits_{state}"), "count", exits as f64);
    }
    for (name, ns) in [
        ("rq_lock_wait", c.rq_lock_wait_ns),
        ("wait_queue_lock_wait", c.wait_queue_lock_wait_ns),
        ("waker_time", c.waker_ns),
        ("refill_time", c.refill_ns),
        ("busy_time", c.busy_ns),
        ("task_time", c.task_ns),
        ("run_delay", c.tasks.values().map(|task| task.delay_ns_sum).sum()),
    ] {
        put(name.to_owned(), "ns", ns as f64);
    }
    for (name, unit, histogram) in
        [("queue_length", "tasks", &c.queue_length), ("wake_latency", "ns", &c.wake_latency_ns)]
    {
        if histogram.samples() > 0 {
            // Not Histogram::mean(), which rounds down: a queue is one or two tasks long.
            put(format!("{name}_mean"), unit, histogram.sum() as f64 / histogram.samples() as f64);
        }
    }
    if let Some(p99) = c.wake_latency_ns.quantile(990) {
        put("wake_latency_p99".to_owned(), "ns", p99 as f64);
    }
    all
}
