//! What a workload's original would have printed after a run, as the data that `ttwu-results` writes and reads.
//!
//! The originals' own rounding applies here (whole milliseconds, dropped zeros, histogram buckets), other than in
//! [`rows`](crate::rows). What an original prints and the model does not know (dbench's megabytes, netperf's host names) is left
//! out or stands as the model has it; it is never made up. Workloads without an original have a few lines of text.

mod latencies;
mod own;
mod throughput;

#[cfg(test)]
mod tests;

use ttwu_results::outputs::Item;
use ttwu_sim::{MeterValue, Outcome};
use ttwu_workload::{Bench, MeterRef, TaskRef, Workload};

/// What the original prints. A run that was cut off has what there was up to then; results that need the end (hackbench's
/// time) are missing from it.
#[must_use]
pub fn printed(workload: &Workload, outcome: &Outcome) -> Vec<Item> {
    let run = Run { workload, outcome };
    match &workload.bench {
        Bench::Own => run.own(),
        Bench::Hackbench(bench) => run.hackbench(bench),
        Bench::PerfMessaging(bench) => run.perf_messaging(bench),
        Bench::PerfPipe(bench) => run.perf_pipe(bench),
        Bench::SchbenchA(bench) => run.schbench_a(bench),
        Bench::SchbenchC(bench) => run.schbench_c(bench),
        Bench::MassiveIntr(bench) => run.massive_intr(bench),
        Bench::Duty(bench) => run.duty(bench),
        Bench::Dbench(bench) => run.dbench(bench),
        Bench::Dmatest(bench) => run.dmatest(bench),
        Bench::Context1(bench) => run.context1(bench),
        Bench::Tbench(bench) => run.tbench(bench),
        Bench::Netperf(bench) => run.netperf(bench),
        Bench::Cyclictest(bench) => run.cyclictest(bench),
        Bench::Rpc(bench) => run.rpc(bench),
        Bench::Desktop(bench) => run.desktop(bench),
        Bench::RtApp(bench) => run.rt_app(bench),
    }
}

/// The text of [`printed`].
#[must_use]
pub fn printed_text(items: &[Item]) -> String {
    let mut out = String::new();
    for item in items {
        match item {
            Item::Command(command) => out.push_str(&format!("$ {command}\n")),
            Item::Exit(code) => out.push_str(&format!("[exit {code}]\n")),
            Item::Text(line) => out.push_str(&format!("{line}\n")),
            Item::Result(output) => output.write(&mut out),
        }
    }
    out
}

struct Run<'a> {
    workload: &'a Workload,
    outcome: &'a Outcome,
}

impl Run<'_> {
    fn samples(&self, meter: MeterRef) -> &[u64] {
        match self.outcome.meters.get(meter.0 as usize) {
            Some(MeterValue::Samples(samples)) => samples,
            Some(MeterValue::Count(_) | MeterValue::Cpus(_) | MeterValue::Seconds(_)) | None => &[],
        }
    }

    /// The one sample of a meter that has one; none before the workload took it.
    fn sample(&self, meter: MeterRef) -> Option<u64> {
        self.samples(meter).first().copied()
    }

    /// What a meter counted; none of one that keeps samples.
    fn count(&self, meter: MeterRef) -> Option<u64> {
        match self.outcome.meters.get(meter.0 as usize)? {
            MeterValue::Count(count) => Some(*count),
            MeterValue::Cpus(counts) | MeterValue::Seconds(counts) => Some(counts.iter().sum()),
            MeterValue::Samples(_) => None,
        }
    }

    /// Counts by CPU or second.
    fn counts(&self, meter: MeterRef) -> &[u64] {
        match self.outcome.meters.get(meter.0 as usize) {
            Some(MeterValue::Cpus(counts) | MeterValue::Seconds(counts)) => counts,
            Some(MeterValue::Count(_) | MeterValue::Samples(_)) | None => &[],
        }
    }

    fn name(&self, task: TaskRef) -> &str {
        self.workload.tasks.get(task.0 as usize).map_or("", |task| &task.name)
    }
}

/// The pid that a trace of the run gives a task: the workload's tasks come first, from 1000 on.
const fn pid(task: TaskRef) -> u64 {
    1000 + task.0 as u64
}

/// The value of a rank, by nearest rank; `sorted` is not empty.
fn quantile(sorted: &[u64], permille: u64) -> u64 {
    let rank = (sorted.len() as u64 * permille).div_ceil(1000).max(1);
    sorted[rank as usize - 1]
}

fn sorted(samples: &[u64]) -> Vec<u64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Nanoseconds as microseconds to three decimals.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
