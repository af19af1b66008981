//! Benchmarks whose result is a time or a rate.

use super::{Run, pid};
use ttwu_results::outputs::{
    CpusHit, DbenchCompleted, DbenchLine, DmatestSummary, Hackbench, Item, MassiveIntr, Netperf, NetperfBody,
    Output, PerfMessaging, PerfPipe, UnixbenchCount,
};
use ttwu_workload::bench;

impl Run<'_> {
    pub(super) fn hackbench(&self, bench: &bench::Hackbench) -> Vec<Item> {
        let time = self.sample(bench.time);
        let (groups, fds, bytes) = (u64::from(bench.groups), u64::from(bench.fds), u64::from(bench.datasize));
        let run = time.map(|ns| Hackbench::of_run(bench.threads, groups, fds, bench.loops, bytes, ns));
        run.map(|run| Item::Result(Output::Hackbench(run))).into_iter().collect()
    }

    pub(super) fn perf_messaging(&self, bench: &bench::PerfMessaging) -> Vec<Item> {
        let time = self.sample(bench.time);
        let run = time.map(|ns| PerfMessaging::of_run(bench.threads, u64::from(bench.groups), ns));
        run.map(|run| Item::Result(Output::PerfMessaging(run))).into_iter().collect()
    }

    pub(super) fn perf_pipe(&self, bench: &bench::PerfPipe) -> Vec<Item> {
        // The original would divide by no time.
        let time = self.sample(bench.time).map(|ns| ns / 1000).filter(|us| *us > 0);
        let run = time.map(|us| PerfPipe::of_run(bench.threaded, bench.loops, us));
        run.map(|run| Item::Result(Output::PerfPipe(run))).into_iter().collect()
    }

    /// The original prints in the order of finishing; here it is the order of creation.
    pub(super) fn massive_intr(&self, bench: &bench::MassiveIntr) -> Vec<Item> {
        let loops: Vec<(u64, u64)> =
            bench.loops.iter().filter_map(|(task, meter)| Some((pid(*task), self.count(*meter)?))).collect();
        vec![Item::Result(Output::MassiveIntr(MassiveIntr { config: None, loops }))]
    }

    /// The lines of completed passes. Megabytes a second are not modelled.
    pub(super) fn dbench(&self, bench: &bench::Dbench) -> Vec<Item> {
        let mut completed = Vec::new();
        for (client, meter) in bench.passes.iter().enumerate() {
            let mut at_ns = 0;
            for &ns in self.samples(*meter) {
                at_ns += ns;
                completed.push((at_ns, client as u64, ns));
            }
        }
        completed.sort_unstable();
        let lines = completed.into_iter().map(|(at_ns, client, ns)| {
            DbenchLine::Completed(DbenchCompleted {
                client,
                duration_ms: ns / 1_000_000,
                at_ms: at_ns / 1_000_000,
            })
        });
        let prepared = DbenchLine::Prepared {
            ready: u64::from(bench.clients),
            clients: u64::from(bench.clients),
            at_s: 0,
        };
        [prepared, DbenchLine::Releasing].into_iter().chain(lines).map(|line| line_of(&line)).collect()
    }

    pub(super) fn dmatest(&self, bench: &bench::Dmatest) -> Vec<Item> {
        let mut items = Vec::new();
        for thread in &bench.threads {
            let prefix = format!("dmatest: {}:", self.name(thread.task));
            let iterations = self.samples(thread.iteration);
            let (tests, time_us) = (iterations.len() as u64, iterations.iter().sum::<u64>() / 1000);
            let kib = bench.transfer_bytes.map(|bytes| tests * (bytes >> 10));
            let summary = DmatestSummary::of_run(&prefix, tests, 0, kib.unwrap_or(0), time_us, 0);
            if kib.is_some() {
                items.push(Item::Result(Output::Dmatest(summary)));
            } else {
                // Lengths are drawn, and their sum is not kept.
                let iops = format!("{}.{:02}", summary.iops_e2 / 100, summary.iops_e2 % 100);
                let line = format!("{prefix} {tests} tests, 0 failures, {iops} iops; KB/s not measured");
                items.push(Item::Text(line));
            }
            let hits = self.counts(thread.cpus).iter().enumerate();
            let hits = hits.filter(|(_, count)| **count > 0).map(|(cpu, count)| (cpu as u32, *count));
            let hits: Vec<(u32, u64)> = hits.collect();
            if !hits.is_empty() {
                let hit = CpusHit { prefix: format!("{prefix} "), hits };
                items.push(Item::Result(Output::DmatestCpusHit(hit)));
            }
        }
        items
    }

    pub(super) fn context1(&self, bench: &bench::Context1) -> Vec<Item> {
        let counts = bench.counts.iter().filter_map(|meter| self.count(*meter));
        let count = |count| UnixbenchCount { count, time_base: 1, unit: "lps".to_owned() };
        counts.map(|loops| Item::Result(Output::UnixbenchCount(count(loops)))).collect()
    }

    /// The last line of the original; its table of operations is not modelled.
    pub(super) fn tbench(&self, bench: &bench::Tbench) -> Vec<Item> {
        let Some(bytes) = self.count(bench.bytes) else { return Vec::new() };
        let mb_per_s = bytes as f64 / 1e6 / bench.timelimit_s as f64;
        let clients = bench.clients;
        let latency = self.samples(bench.latency).iter().max();
        let latency =
            latency.map_or_else(String::new, |ns| format!("  max_latency={:.3} ms", *ns as f64 / 1e6));
        vec![Item::Text(format!(
            "Throughput {mb_per_s:.2} MB/sec  {clients} clients  {clients} procs{latency}"
        ))]
    }

    /// The table of one instance: the mean of all, if there are several. Buffers are those of loopback's defaults.
    pub(super) fn netperf(&self, bench: &bench::Netperf) -> Vec<Item> {
        let transactions = self.samples(bench.transaction).len() as f64;
        let protocol = if bench.udp { "UDP" } else { "TCP" };
        let buffers = if bench.udp { [212_992, 212_992] } else { [16_384, 131_072] };
        let result = Netperf {
            title: format!(
                "MIGRATED {protocol} REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_INET : first burst 0"
            ),
            warning: None,
            body: NetperfBody::Table {
                local_bytes: buffers,
                remote_bytes: buffers,
                request_bytes: u64::from(bench.request_bytes),
                response_bytes: u64::from(bench.response_bytes),
                elapsed_s: bench.testlen_s as f64,
                rate: transactions / bench.testlen_s as f64 / f64::from(bench.clients),
            },
        };
        let mut items = vec![Item::Result(Output::Netperf(result))];
        if bench.clients > 1 {
            items.push(Item::Text(format!("(mean of {} instances)", bench.clients)));
        }
        items
    }
}

fn line_of(line: &DbenchLine) -> Item {
    let mut text = String::new();
    line.write(&mut text);
    Item::Text(text.trim_end_matches('\n').to_owned())
}
