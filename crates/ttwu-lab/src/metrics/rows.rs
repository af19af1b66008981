//! A workload's own results in its benchmark's units, named as the parsers of the original outputs name them.
//!
//! One number a run, as the run is the unit of analysis: where the original lists several (passes of clients, iops of threads),
//! it is their mean. Percentiles are exact, by nearest rank; schbench itself prints middles of histogram buckets and drops
//! what is below a microsecond.

use super::Metric;
use ttwu_sim::{End, MeterValue, Outcome};
use ttwu_stats::Better::{Higher, Lower};
use ttwu_workload::bench::{
    Context1, Cyclictest, Dbench, Desktop, Dmatest, Duty, MassiveIntr, Netperf, PerfPipe, Rpc, SchbenchA,
    SchbenchC, Tbench,
};
use ttwu_workload::{Bench, MeterKind, MeterRef, TaskRef, Workload};

/// The results of a run that ended as its workload says; none of one that was cut off, as its times and counts are not those
/// of the benchmark.
#[must_use]
pub fn rows(workload: &Workload, outcome: &Outcome) -> Vec<Metric> {
    if outcome.end != End::Completed {
        return Vec::new();
    }
    let run = Run { workload, outcome };
    match &workload.bench {
        Bench::Own | Bench::RtApp(_) => run.own(),
        Bench::Hackbench(bench) => run.seconds(bench.time),
        Bench::PerfMessaging(bench) => run.seconds(bench.time),
        Bench::PerfPipe(bench) => run.pipe(bench),
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
    }
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

    /// The sum of a meter that counts; none of one that keeps samples.
    fn count(&self, meter: MeterRef) -> Option<f64> {
        match self.outcome.meters.get(meter.0 as usize)? {
            MeterValue::Count(count) => Some(*count as f64),
            MeterValue::Cpus(counts) | MeterValue::Seconds(counts) => Some(counts.iter().sum::<u64>() as f64),
            MeterValue::Samples(_) => None,
        }
    }

    fn name(&self, task: TaskRef) -> &str {
        self.workload.tasks.get(task.0 as usize).map_or("", |task| &task.name)
    }

    fn seconds(&self, time: MeterRef) -> Vec<Metric> {
        mean(self.samples(time)).map(|ns| Metric::row("time", "s", Lower, ns / 1e9)).into_iter().collect()
    }

    fn pipe(&self, bench: &PerfPipe) -> Vec<Metric> {
        let per_loop = mean(self.samples(bench.time)).map(|ns| ns / 1e3 / bench.loops as f64);
        per_loop.map(|us| Metric::row("pipe", "us/op", Lower, us)).into_iter().collect()
    }

    /// Percentiles, in tenths, and the greatest of a meter, µs.
    fn percentiles(&self, meter: MeterRef, name: &str, tenths: &[u32], rows: &mut Vec<Metric>) {
        let mut sorted = self.samples(meter).to_vec();
        sorted.sort_unstable();
        let Some(&max) = sorted.last() else { return };
        for &tenth in tenths {
            let rank = (sorted.len() as u64 * u64::from(tenth)).div_ceil(1000).max(1) as usize;
            let label = if tenth % 10 == 0 {
                (tenth / 10).to_string()
            } else {
                format!("{}.{}", tenth / 10, tenth % 10)
            };
            rows.push(Metric::row(format!("{name}_p{label}"), "us", Lower, sorted[rank - 1] as f64 / 1e3));
        }
        rows.push(Metric::row(format!("{name}_max"), "us", Lower, max as f64 / 1e3));
    }

    fn schbench_a(&self, bench: &SchbenchA) -> Vec<Metric> {
        let mut rows = Vec::new();
        self.percentiles(bench.wakeup, "latency", &[500, 750, 900, 950, 990, 995, 999], &mut rows);
        rows
    }

    fn schbench_c(&self, bench: &SchbenchC) -> Vec<Metric> {
        let mut rows = Vec::new();
        self.percentiles(bench.wakeup, "wakeup_latency", &[500, 900, 990, 999], &mut rows);
        self.percentiles(bench.request, "request_latency", &[500, 900, 990, 999], &mut rows);
        if let Some(requests) = self.count(bench.rps_seconds) {
            let per_second = requests / bench.runtime_s as f64;
            rows.push(Metric::row("rps_average", "1/s", Higher, per_second));
        }
        rows
    }

    fn massive_intr(&self, bench: &MassiveIntr) -> Vec<Metric> {
        let loops: Vec<f64> = bench.loops.iter().filter_map(|(_, meter)| self.count(*meter)).collect();
        let Some(average) = ttwu_stats::describe::mean(&loops) else { return Vec::new() };
        let (min, max) =
            loops.iter().fold((f64::MAX, f64::MIN), |(min, max), loops| (min.min(*loops), max.max(*loops)));
        let mut rows = vec![Metric::row("loops", "loops", Higher, average)];
        if average > 0.0 {
            rows.push(Metric::row("loops_spread", "%", Lower, 100.0 * (max - min) / average));
        }
        rows
    }

    fn duty(&self, bench: &Duty) -> Vec<Metric> {
        let runtime = |task| {
            let tasks = self.outcome.counters.tasks.get(self.name(task))?;
            Some(tasks.runtime_ns as f64)
        };
        let (Some(always), Some(half)) = (runtime(bench.always), runtime(bench.half)) else {
            return Vec::new();
        };
        if always + half == 0.0 {
            return Vec::new();
        }
        // Fair is half: what the sleeper gets beyond its half of the CPU is credit for having slept.
        vec![Metric::row("half_share", "%", Higher, 100.0 * half / (always + half))]
    }

    fn dbench(&self, bench: &Dbench) -> Vec<Metric> {
        let passes: Vec<u64> = bench.passes.iter().flat_map(|meter| self.samples(*meter)).copied().collect();
        mean(&passes).map(|ns| Metric::row("loadfile", "ms", Lower, ns / 1e6)).into_iter().collect()
    }

    fn dmatest(&self, bench: &Dmatest) -> Vec<Metric> {
        let iops = bench.threads.iter().filter_map(|thread| {
            let samples = self.samples(thread.iteration);
            let sum: u64 = samples.iter().sum();
            (sum > 0).then(|| samples.len() as f64 * 1e9 / sum as f64)
        });
        let iops: Vec<f64> = iops.collect();
        let Some(average) = ttwu_stats::describe::mean(&iops) else { return Vec::new() };
        let mut rows = vec![Metric::row("iops", "1/s", Higher, average)];
        if let Some(bytes) = bench.transfer_bytes {
            rows.push(Metric::row("throughput", "KiB/s", Higher, average * bytes as f64 / 1024.0));
        }
        rows
    }

    fn context1(&self, bench: &Context1) -> Vec<Metric> {
        let counts: Vec<f64> = bench.counts.iter().filter_map(|meter| self.count(*meter)).collect();
        let average = ttwu_stats::describe::mean(&counts);
        average.map(|count| Metric::row("count", "loops", Higher, count)).into_iter().collect()
    }

    fn tbench(&self, bench: &Tbench) -> Vec<Metric> {
        let mut rows = Vec::new();
        if let Some(bytes) = self.count(bench.bytes) {
            let mb_per_s = bytes / 1e6 / bench.timelimit_s as f64;
            rows.push(Metric::row("throughput", "MB/s", Higher, mb_per_s));
        }
        if let Some(ns) = self.samples(bench.latency).iter().max() {
            rows.push(Metric::row("latency_max", "ms", Lower, *ns as f64 / 1e6));
        }
        rows
    }

    fn netperf(&self, bench: &Netperf) -> Vec<Metric> {
        let samples = self.samples(bench.transaction);
        let Some(ns) = mean(samples) else { return Vec::new() };
        let per_second = samples.len() as f64 / bench.testlen_s as f64 / f64::from(bench.clients);
        vec![
            Metric::row("transactions", "1/s", Higher, per_second),
            Metric::row("latency_mean", "us", Lower, ns / 1e3),
        ]
    }

    fn cyclictest(&self, bench: &Cyclictest) -> Vec<Metric> {
        let latencies: Vec<u64> =
            bench.threads.iter().flat_map(|thread| self.samples(thread.latency)).copied().collect();
        let (Some(average), Some(max)) = (mean(&latencies), latencies.iter().max()) else {
            return Vec::new();
        };
        vec![
            Metric::row("latency_avg", "us", Lower, average / 1e3),
            Metric::row("latency_max", "us", Lower, *max as f64 / 1e3),
        ]
    }

    fn rpc(&self, bench: &Rpc) -> Vec<Metric> {
        let mut rows = Vec::new();
        self.percentiles(bench.response, "response", &[500, 950, 990], &mut rows);
        if let Some(done) = self.count(bench.done) {
            rows.push(Metric::row("requests", "1/s", Higher, done / bench.runtime_s as f64));
        }
        rows
    }

    fn desktop(&self, bench: &Desktop) -> Vec<Metric> {
        let mut names: Vec<&str> = Vec::new();
        for task in bench.hogs.iter().chain(&bench.pipeline) {
            if !names.contains(&self.name(*task)) {
                names.push(self.name(*task));
            }
        }
        let mut rows = Vec::new();
        for name in names {
            let Some(tasks) = self.outcome.counters.tasks.get(name).filter(|tasks| tasks.switches > 0) else {
                continue;
            };
            let ms = tasks.delay_ns_sum as f64 / tasks.switches as f64 / 1e6;
            rows.push(Metric::row(format!("{name} delay_avg"), "ms", Lower, ms));
            let ms = tasks.delay_ns_max as f64 / 1e6;
            rows.push(Metric::row(format!("{name} delay_max"), "ms", Lower, ms));
        }
        let switches: u64 = self.outcome.counters.tasks.values().map(|tasks| tasks.switches).sum();
        rows.push(Metric::row("switches", "switches", Lower, switches as f64));
        rows
    }

    /// One's own workload: how long it took, and each of its meters; times are better short, counts are better high.
    fn own(&self) -> Vec<Metric> {
        let mut rows = vec![Metric::row("time", "s", Lower, self.outcome.sim_ns as f64 / 1e9)];
        for (index, meter) in self.workload.meters.iter().enumerate() {
            let reference = MeterRef(index as u32);
            match meter.kind {
                MeterKind::Samples => {
                    if let Some(ns) = mean(self.samples(reference)) {
                        rows.push(Metric::row(format!("{}_mean", meter.name), "us", Lower, ns / 1e3));
                    }
                    self.percentiles(reference, &meter.name, &[500, 990], &mut rows);
                }
                MeterKind::Count | MeterKind::Seconds => {
                    if let Some(count) = self.count(reference) {
                        rows.push(Metric::row(&meter.name, "count", Higher, count));
                    }
                }
                // Which CPUs were hit is a distribution, not better or worse.
                MeterKind::Cpus => {}
            }
        }
        rows
    }
}

fn mean(samples: &[u64]) -> Option<f64> {
    let sum: u128 = samples.iter().map(|sample| u128::from(*sample)).sum();
    (!samples.is_empty()).then(|| sum as f64 / samples.len() as f64)
}
