//! What the threads measure, read off a run.

use ttwu_model::Level;
use ttwu_sim::{Counters, MeterValue, Outcome};
use ttwu_workload::Workload;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Mean of all samples of the meter, ns.
    MeterMean(&'static str),
    /// Mean over the samples of all meters whose names begin so, ns.
    MetersMean(&'static str),
    /// 10⁹ / the mean over the samples of all meters whose names begin so: operations a second of one thread.
    MetersPerSecond(&'static str),
    /// Percentile (in thousandths) of the samples of the meter, ns.
    MeterPercentile(&'static str, u32),
    /// Sum of the meter a second of simulated time.
    MeterRate(&'static str),
    /// Sum of all meters whose names begin so, a second.
    MetersRate(&'static str),
    /// Samples of the meter a second.
    SampleRate(&'static str),
    /// CPUs that the meter counted at all.
    CpusHit(&'static str),
    /// Switches a second.
    Switches,
    /// Wake-up preemptions a second.
    PreemptWake,
    /// Tick preemptions a second.
    PreemptTick,
    /// Migrations a second.
    Migrations,
    /// Migrations to another LLC or farther, a second.
    MigrationsAcrossLlc,
    /// IPIs a wake-up.
    IpisPerWakeup,
    /// Share of scans that found nothing.
    ScansFailed,
    /// Wake-ups a message or operation is not known to a kernel; wake-ups a second.
    Wakeups,
    /// Mean delay from wake-up to running of the tasks of this name, ns.
    TaskDelay(&'static str),
    /// Run time of the tasks of this name, share of the span.
    TaskShare(&'static str),
    /// Simulated time of the run, ns.
    SimTime,
}

fn per_second(count: u64, outcome: &Outcome) -> Option<f64> {
    (outcome.sim_ns > 0).then(|| count as f64 * 1e9 / outcome.sim_ns as f64)
}

fn meter<'a>(workload: &Workload, outcome: &'a Outcome, name: &str) -> Option<&'a MeterValue> {
    let at = workload.meters.iter().position(|meter| meter.name == name)?;
    outcome.meters.get(at)
}

fn samples<'a>(workload: &Workload, outcome: &'a Outcome, name: &str) -> Option<&'a [u64]> {
    match meter(workload, outcome, name)? {
        MeterValue::Samples(samples) if !samples.is_empty() => Some(samples),
        MeterValue::Samples(_) | MeterValue::Count(_) | MeterValue::Cpus(_) | MeterValue::Seconds(_) => None,
    }
}

/// Mean over the samples of all meters whose names begin so.
fn prefix_mean(workload: &Workload, outcome: &Outcome, prefix: &str) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for (meter, value) in workload.meters.iter().zip(&outcome.meters) {
        if !meter.name.starts_with(prefix) {
            continue;
        }
        if let MeterValue::Samples(samples) = value {
            sum += samples.iter().map(|&ns| ns as f64).sum::<f64>();
            count += samples.len() as f64;
        }
    }
    (count > 0.0 && sum > 0.0).then(|| sum / count)
}

fn total(value: &MeterValue) -> u64 {
    match value {
        MeterValue::Samples(samples) => samples.len() as u64,
        MeterValue::Count(count) => *count,
        MeterValue::Cpus(counts) | MeterValue::Seconds(counts) => counts.iter().sum(),
    }
}

/// CPUs that the meter counted at all.
pub(super) fn cpus_of(workload: &Workload, outcome: &Outcome, name: &str) -> Option<f64> {
    match meter(workload, outcome, name)? {
        MeterValue::Cpus(counts) => Some(counts.iter().filter(|&&count| count > 0).count() as f64),
        MeterValue::Samples(_) | MeterValue::Count(_) | MeterValue::Seconds(_) => None,
    }
}

fn percentile(samples: &[u64], permille: u32) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() as u64 * u64::from(permille)).div_ceil(1000).max(1);
    sorted[rank as usize - 1] as f64
}

fn far_migrations(counters: &Counters) -> u64 {
    let pairs = Level::ALL.iter().zip(counters.migrations);
    pairs.filter(|&(&level, _)| is_beyond_llc(level)).map(|(_, count)| count).sum()
}

fn is_beyond_llc(level: Level) -> bool {
    match level {
        Level::SameCpu | Level::Smt | Level::Cluster | Level::Llc => false,
        Level::Die | Level::Node | Level::Remote => true,
    }
}

impl Quantity {
    /// The figure; `None` where the run has none.
    #[must_use]
    pub fn of(self, workload: &Workload, outcome: &Outcome) -> Option<f64> {
        let counters = &outcome.counters;
        match self {
            Self::MeterMean(name) => {
                let samples = samples(workload, outcome, name)?;
                Some(samples.iter().map(|&ns| ns as f64).sum::<f64>() / samples.len() as f64)
            }
            Self::MetersMean(prefix) => prefix_mean(workload, outcome, prefix),
            Self::MetersPerSecond(prefix) => prefix_mean(workload, outcome, prefix).map(|ns| 1e9 / ns),
            Self::MeterPercentile(name, permille) => {
                Some(percentile(samples(workload, outcome, name)?, permille))
            }
            Self::MeterRate(name) | Self::SampleRate(name) => {
                per_second(total(meter(workload, outcome, name)?), outcome)
            }
            Self::MetersRate(prefix) => {
                let named = workload.meters.iter().zip(&outcome.meters);
                per_second(
                    named
                        .filter(|(meter, _)| meter.name.starts_with(prefix))
                        .map(|(_, value)| total(value))
                        .sum(),
                    outcome,
                )
            }
            Self::CpusHit(name) => cpus_of(workload, outcome, name),
            Self::Switches => per_second(counters.switches(), outcome),
            Self::PreemptWake => per_second(counters.preempt_wake, outcome),
            Self::PreemptTick => per_second(counters.preempt_tick, outcome),
            Self::Migrations => per_second(counters.migrations(), outcome),
            Self::MigrationsAcrossLlc => per_second(far_migrations(counters), outcome),
            Self::IpisPerWakeup => {
                (counters.wakeups > 0).then(|| counters.ipis as f64 / counters.wakeups as f64)
            }
            Self::ScansFailed => {
                use ttwu_fair::ScanEnd as End;
                let scans = |end| counters.scans.get(&end).copied().unwrap_or(0);
                let failed = scans(End::Budget) + scans(End::Exhausted) + scans(End::Forbidden);
                let all = failed + scans(End::Hit);
                (all > 0).then(|| failed as f64 / all as f64)
            }
            Self::Wakeups => per_second(counters.wakeups, outcome),
            Self::TaskDelay(name) => {
                let task = counters.tasks.get(name)?;
                task.wake_latency_ns.mean().map(|ns| ns as f64)
            }
            Self::TaskShare(name) => {
                let task = counters.tasks.get(name)?;
                (outcome.sim_ns > 0).then(|| task.runtime_ns as f64 / outcome.sim_ns as f64)
            }
            Self::SimTime => Some(outcome.sim_ns as f64),
        }
    }
}
