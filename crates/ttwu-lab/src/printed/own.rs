//! Workloads without an original's output: their meters, line by line.

use super::{Run, quantile, sorted, us};
use ttwu_results::outputs::Item;
use ttwu_sim::MeterValue;
use ttwu_workload::rtapp::RtApp;
use ttwu_workload::{MeterRef, TaskRef, bench};

impl Run<'_> {
    /// Every meter, in the workload's order.
    pub(super) fn own(&self) -> Vec<Item> {
        let meters = self.workload.meters.iter().zip(&self.outcome.meters);
        let width = self.workload.meters.iter().map(|meter| meter.name.chars().count()).max().unwrap_or(0);
        meters
            .map(|(meter, value)| Item::Text(format!("{:width$}  {}", meter.name, summary(value))))
            .collect()
    }

    pub(super) fn duty(&self, bench: &bench::Duty) -> Vec<Item> {
        let tasks = &self.outcome.counters.tasks;
        let runtime = |task: TaskRef| tasks.get(self.name(task)).map_or(0, |task| task.runtime_ns);
        let sum = runtime(bench.always) + runtime(bench.half);
        let line = |task: TaskRef, rounds: MeterRef| {
            let share = runtime(task) as f64 * 100.0 / sum.max(1) as f64;
            let rounds = self.count(rounds).unwrap_or(0);
            Item::Text(format!(
                "{:<8} {share:6.2} %  {:>12} us  {rounds} rounds",
                self.name(task),
                us(runtime(task))
            ))
        };
        vec![line(bench.always, bench.always_rounds), line(bench.half, bench.half_rounds)]
    }

    /// A line a thread: rt-app's logs have a row a round, of which the model keeps period and wake-up latency.
    pub(super) fn rt_app(&self, bench: &RtApp) -> Vec<Item> {
        let width = bench.threads.iter().map(|thread| self.name(thread.task).len()).max().unwrap_or(0).max(6);
        let head = format!(
            "{:width$} {:>8} {:>14} {:>14} {:>14} {:>14}",
            "thread", "rounds", "period avg us", "period max us", "wu_lat avg us", "wu_lat max us"
        );
        let lines = bench.threads.iter().map(|thread| {
            let (period, wakeup) = (self.samples(thread.period), self.samples(thread.wakeup));
            format!(
                "{:width$} {:>8} {:>14} {:>14} {:>14} {:>14}",
                self.name(thread.task),
                self.count(thread.rounds).map_or_else(|| "-".to_owned(), |rounds| rounds.to_string()),
                mean(period),
                max(period),
                mean(wakeup),
                max(wakeup)
            )
        });
        [head].into_iter().chain(lines).map(Item::Text).collect()
    }
}

fn summary(value: &MeterValue) -> String {
    match value {
        MeterValue::Samples(samples) if samples.is_empty() => "no samples".to_owned(),
        MeterValue::Samples(samples) => {
            let sorted = sorted(samples);
            format!(
                "{} samples, mean {} us, p50 {}, p99 {}, max {}",
                sorted.len(),
                mean(samples),
                us(quantile(&sorted, 500)),
                us(quantile(&sorted, 990)),
                us(quantile(&sorted, 1000))
            )
        }
        MeterValue::Count(count) => count.to_string(),
        MeterValue::Cpus(counts) => {
            let hit = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            let hit: Vec<String> = hit.map(|(cpu, count)| format!("#{cpu}:{count}")).collect();
            if hit.is_empty() { "none".to_owned() } else { hit.join(" ") }
        }
        MeterValue::Seconds(counts) => {
            let each: Vec<String> = counts.iter().map(ToString::to_string).collect();
            format!("{} ({} by second)", counts.iter().sum::<u64>(), each.join(" "))
        }
    }
}

fn mean(samples: &[u64]) -> String {
    match samples.len() as u64 {
        0 => "-".to_owned(),
        count => us(samples.iter().sum::<u64>() / count),
    }
}

fn max(samples: &[u64]) -> String {
    samples.iter().max().map_or_else(|| "-".to_owned(), |ns| us(*ns))
}
