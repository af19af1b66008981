//! Benchmarks whose result is a distribution of latencies.

use super::{Run, pid, quantile, sorted, us};
use ttwu_results::outputs::{
    CyclicThread, Cyclictest, Generation, Histogram, Item, Output, PerfSchedDelay, PerfSchedLatency,
    PerfSchedRow, PerfSchedTotal, PerfSchedWho, Schbench, SchbenchEntry, SchbenchKind,
};
use ttwu_workload::{MeterRef, bench};

impl Run<'_> {
    fn histogram(&self, meter: MeterRef, generation: Generation) -> Histogram {
        let mut histogram = Histogram::new(generation);
        self.samples(meter).iter().for_each(|ns| histogram.record(ns / 1000));
        histogram
    }

    /// The block of 2019, which is what the mails quote.
    pub(super) fn schbench_a(&self, bench: &bench::SchbenchA) -> Vec<Item> {
        let latencies = self.histogram(bench.wakeup, Generation::A1);
        let block = latencies.block(SchbenchKind::Latency, bench.runtime_s);
        vec![schbench(vec![SchbenchEntry::Block(block)])]
    }

    /// The report at the end, without those of the intervals.
    pub(super) fn schbench_c(&self, bench: &bench::SchbenchC) -> Vec<Item> {
        let generation = if bench.pipe_bytes > 0 { Generation::CPipe } else { Generation::C };
        let mut entries = Vec::new();
        if bench.threads_auto {
            entries.push(SchbenchEntry::WorkerThreads(u64::from(bench.threads)));
        }
        let wakeup = self.histogram(bench.wakeup, generation);
        entries.push(SchbenchEntry::Block(wakeup.block(SchbenchKind::Wakeup, bench.runtime_s)));
        if bench.pipe_bytes == 0 {
            let request = self.histogram(bench.request, generation);
            entries.push(SchbenchEntry::Block(request.block(SchbenchKind::Request, bench.runtime_s)));
            let mut rates = Histogram::new(generation);
            self.counts(bench.rps_seconds).iter().for_each(|requests| rates.record_rate(*requests));
            entries.push(SchbenchEntry::Block(rates.block(SchbenchKind::Rps, bench.runtime_s)));
            let requests: u64 = self.counts(bench.rps_seconds).iter().sum();
            entries.push(SchbenchEntry::AverageRps(requests * 100 / bench.runtime_s));
        }
        vec![schbench(entries)]
    }

    pub(super) fn cyclictest(&self, bench: &bench::Cyclictest) -> Vec<Item> {
        let threads = bench.threads.iter().enumerate().filter_map(|(number, thread)| {
            let latencies = self.samples(thread.latency);
            let (min, max) = (latencies.iter().min()?, latencies.iter().max()?);
            let (sum, cycles) = (latencies.iter().sum::<u64>(), latencies.len() as u64);
            let last = latencies.last()?;
            let us = |ns: u64| (ns / 1000) as i64;
            Some(CyclicThread {
                thread: number as u64,
                tid: pid(thread.task),
                priority: 0,
                interval_us: thread.interval_us,
                cycles,
                min_us: us(*min),
                actual_us: us(*last),
                average_us: us(sum / cycles),
                max_us: us(*max),
            })
        });
        let threads: Vec<CyclicThread> = threads.collect();
        if threads.is_empty() {
            return Vec::new();
        }
        let dma_latency_us = (!bench.default_system).then_some(0);
        vec![Item::Result(Output::Cyclictest(Cyclictest::Threads { dma_latency_us, threads }))]
    }

    pub(super) fn rpc(&self, bench: &bench::Rpc) -> Vec<Item> {
        let responses = sorted(self.samples(bench.response));
        let mut lines = vec![format!(
            "rpc: {} workers, {} requests/s offered, {} s",
            bench.workers, bench.rate, bench.runtime_s
        )];
        if let Some(done) = self.count(bench.done) {
            let per_s = done as f64 / bench.runtime_s as f64;
            lines.push(format!("requests {done} ({per_s:.1}/s)"));
        }
        if let Some(max) = responses.last() {
            lines.push("response time (us)".to_owned());
            for (label, permille) in
                [("50.0", 500), ("90.0", 900), ("95.0", 950), ("99.0", 990), ("99.9", 999)]
            {
                lines.push(format!("  {label}th: {:>12}", us(quantile(&responses, permille))));
            }
            lines.push(format!("     max: {:>12}", us(*max)));
        }
        lines.into_iter().map(Item::Text).collect()
    }

    /// perf's table by name, with the sums of delays as the mails' patched perf has them.
    pub(super) fn desktop(&self, bench: &bench::Desktop) -> Vec<Item> {
        let mut names: Vec<&str> = Vec::new();
        for task in bench.hogs.iter().chain(&bench.pipeline) {
            if !names.contains(&self.name(*task)) {
                names.push(self.name(*task));
            }
        }
        let mut rows: Vec<PerfSchedRow> = names.into_iter().filter_map(|name| self.perf_row(name)).collect();
        rows.sort_by(|a, b| b.delay_us_avg.cmp(&a.delay_us_avg).then_with(|| a.name.cmp(&b.name)));
        let sum = |row: &PerfSchedRow| match row.delay {
            PerfSchedDelay::Sum(us) => us,
            PerfSchedDelay::Span { start_us, end_us } => end_us - start_us,
        };
        let total = PerfSchedTotal {
            runtime_us: rows.iter().map(|row| row.runtime_us).sum(),
            switches: rows.iter().map(|row| row.switches).sum(),
            delays: Some((
                rows.iter().map(|row| row.delay_us_max).max().unwrap_or(0),
                rows.iter().map(sum).sum(),
            )),
        };
        let table = PerfSchedLatency { rows, total: Some(total), infos: Vec::new() };
        vec![Item::Result(Output::PerfSchedLatency(table))]
    }

    fn perf_row(&self, name: &str) -> Option<PerfSchedRow> {
        let tasks = self.outcome.counters.tasks.get(name).filter(|tasks| tasks.switches > 0)?;
        Some(PerfSchedRow {
            name: name.to_owned(),
            who: PerfSchedWho::Merged(tasks.tasks),
            runtime_us: tasks.runtime_ns / 1000,
            switches: tasks.switches,
            delay_us_avg: tasks.delay_ns_sum / tasks.switches / 1000,
            delay_us_max: tasks.delay_ns_max / 1000,
            delay: PerfSchedDelay::Sum(tasks.delay_ns_sum / 1000),
        })
    }
}

fn schbench(entries: Vec<SchbenchEntry>) -> Item {
    Item::Result(Output::Schbench(Schbench { entries }))
}
