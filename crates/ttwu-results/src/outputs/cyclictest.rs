//! cyclictest: thread lines, histogram, verbose lines, JSON file.
//!
//! Source: rt-tests 2.4. Latencies are microseconds.

use super::scan::{Lines, Scan, fixed};
use super::{Better, ParseError, Samples};

/// `T: 0 (21590) P:80 I:1000 C:    200 Min:     11 Act:   13 Avg:   28 Max:    2188`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CyclicThread {
    /// Number.
    pub thread: u64,
    /// Thread id.
    pub tid: u64,
    /// Real-time priority.
    pub priority: u64,
    /// Interval, microseconds.
    pub interval_us: u64,
    /// Cycles done.
    pub cycles: u64,
    /// Smallest latency.
    pub min_us: i64,
    /// Last latency.
    pub actual_us: i64,
    /// Mean latency.
    pub average_us: i64,
    /// Largest latency.
    pub max_us: i64,
}

/// Cycles whose latency was beyond the histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CyclicOverflow {
    /// The first of them.
    pub cycles: Vec<u64>,
    /// How many more.
    pub others: Option<u64>,
}

/// `-h`: counts by latency, one column a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CyclicHistogram {
    /// Row: latency in microseconds, and its counts by thread.
    pub rows: Vec<(u64, Vec<u64>)>,
    /// Counts inside the histogram, by thread.
    pub totals: Vec<u64>,
    /// Smallest latencies.
    pub min_us: Vec<u64>,
    /// Mean latencies.
    pub average_us: Vec<u64>,
    /// Largest latencies.
    pub max_us: Vec<u64>,
    /// Counts beyond the histogram.
    pub overflows: Vec<u64>,
    /// Which cycles those were.
    pub overflow_cycles: Vec<CyclicOverflow>,
}

/// `-v`: every latency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CyclicVerbose {
    /// CPUs that could be.
    pub cpus_max: u64,
    /// CPUs there are.
    pub cpus_online: u64,
    /// Thread and interval in microseconds.
    pub intervals: Vec<(u64, u64)>,
    /// Thread, cycle, latency in microseconds.
    pub latencies: Vec<(u64, u64, i64)>,
}

/// A thread in the JSON file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CyclicJsonThread {
    /// Latency in microseconds, and its count.
    pub histogram: Vec<(u64, u64)>,
    /// Cycles done.
    pub cycles: u64,
    /// Smallest latency.
    pub min_us: i64,
    /// Largest latency.
    pub max_us: i64,
    /// Mean latency in hundredths of a microsecond.
    pub average_us_e2: u64,
    /// CPU.
    pub cpu: i64,
    /// NUMA node.
    pub node: i64,
}

/// The JSON file (`--json`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CyclicJson {
    /// The lines before `num_threads`, key and value as printed (the value without its comma).
    pub head: Vec<String>,
    /// Clock resolution in nanoseconds; 0: not measured.
    pub resolution_ns: u64,
    /// The threads.
    pub threads: Vec<CyclicJsonThread>,
}

/// What a run of cyclictest printed or wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cyclictest {
    /// One line a thread (`-q`).
    Threads {
        /// Set where `/dev/cpu_dma_latency` was opened: microseconds.
        dma_latency_us: Option<u64>,
        /// The threads.
        threads: Vec<CyclicThread>,
    },
    /// Histogram.
    Histogram {
        /// Set where `/dev/cpu_dma_latency` was opened: microseconds.
        dma_latency_us: Option<u64>,
        /// The counts.
        histogram: CyclicHistogram,
    },
    /// Every latency.
    Verbose {
        /// Set where `/dev/cpu_dma_latency` was opened: microseconds.
        dma_latency_us: Option<u64>,
        /// The latencies.
        verbose: CyclicVerbose,
    },
    /// The JSON file.
    Json(CyclicJson),
}

impl Cyclictest {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        if lines.peek() == Some("{") {
            return if lines.peek_at(1).is_some_and(|line| line.starts_with("  \"file_version\": ")) {
                Ok(Some(Self::Json(json(lines)?)))
            } else {
                Ok(None)
            };
        }
        if let Some(scan) = lines.next_if("Max CPUs = ") {
            return verbose(scan, lines).map(Some);
        }
        let dma_latency_us = dma_latency(lines)?;
        if lines.next_if("# Histogram").is_some() {
            return Ok(Some(Self::Histogram { dma_latency_us, histogram: histogram(lines)? }));
        }
        let mut threads = Vec::new();
        while lines.peek().is_some_and(|line| line.starts_with("T:") && line.contains(" Min:")) {
            threads.push(thread(lines.next("a thread")?)?);
        }
        Ok((!threads.is_empty()).then_some(Self::Threads { dma_latency_us, threads }))
    }

    /// Appends the output.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Threads { dma_latency_us, threads } => {
                write_dma_latency(*dma_latency_us, out);
                for t in threads {
                    out.push_str(&format!(
                        "T:{:2} ({:5}) P:{:2} I:{} C:{:7} Min:{:7} Act:{:5} Avg:{:5} Max:{:8}\n",
                        t.thread,
                        t.tid,
                        t.priority,
                        t.interval_us,
                        t.cycles,
                        t.min_us,
                        t.actual_us,
                        t.average_us,
                        t.max_us
                    ));
                }
            }
            Self::Histogram { dma_latency_us, histogram } => {
                write_dma_latency(*dma_latency_us, out);
                write_histogram(histogram, out);
            }
            Self::Verbose { dma_latency_us, verbose } => {
                out.push_str(&format!(
                    "Max CPUs = {}\nOnline CPUs = {}\n",
                    verbose.cpus_max, verbose.cpus_online
                ));
                write_dma_latency(*dma_latency_us, out);
                for (thread, interval) in &verbose.intervals {
                    out.push_str(&format!("Thread {thread} Interval: {interval}\n"));
                }
                for (thread, cycle, latency) in &verbose.latencies {
                    out.push_str(&format!("{thread:8}:{cycle:8}:{latency:8}\n"));
                }
            }
            Self::Json(json) => write_json(json, out),
        }
    }

    /// Mean and largest latency of each thread that did a cycle; every latency where they are listed.
    pub(crate) fn samples(&self) -> Vec<Samples> {
        let lower = |metric: &str, values: Vec<f64>| {
            (!values.is_empty()).then(|| Samples {
                metric: metric.to_owned(),
                unit: "us",
                better: Better::Lower,
                values,
            })
        };
        let pairs: Vec<(f64, f64)> = match self {
            Self::Verbose { verbose, .. } => {
                let all = verbose.latencies.iter().map(|(_, _, latency)| *latency as f64).collect();
                return lower("latency", all).into_iter().collect();
            }
            Self::Threads { threads, .. } => {
                let ran = threads.iter().filter(|thread| thread.cycles > 0);
                ran.map(|thread| (thread.average_us as f64, thread.max_us as f64)).collect()
            }
            Self::Histogram { histogram, .. } => {
                let counts =
                    histogram.totals.iter().zip(&histogram.overflows).map(|(inside, beyond)| inside + beyond);
                let latencies = histogram.average_us.iter().zip(&histogram.max_us);
                counts
                    .zip(latencies)
                    .filter(|(count, _)| *count > 0)
                    .map(|(_, (average, max))| (*average as f64, *max as f64))
                    .collect()
            }
            Self::Json(json) => {
                let ran = json.threads.iter().filter(|thread| thread.cycles > 0);
                ran.map(|thread| (thread.average_us_e2 as f64 / 100.0, thread.max_us as f64)).collect()
            }
        };
        let (average, max) = pairs.into_iter().unzip();
        [lower("latency_avg", average), lower("latency_max", max)].into_iter().flatten().collect()
    }
}

fn dma_latency(lines: &mut Lines<'_>) -> Result<Option<u64>, ParseError> {
    let Some(mut scan) = lines.next_if("# /dev/cpu_dma_latency set to ") else { return Ok(None) };
    let us = scan.u64("microseconds")?;
    scan.literal("us")?;
    scan.end()?;
    Ok(Some(us))
}

fn write_dma_latency(us: Option<u64>, out: &mut String) {
    if let Some(us) = us {
        out.push_str(&format!("# /dev/cpu_dma_latency set to {us}us\n"));
    }
}

fn thread(mut scan: Scan<'_>) -> Result<CyclicThread, ParseError> {
    scan.literal("T:")?;
    let thread = scan.u64("a thread's number")?;
    scan.literal(" (")?;
    let tid = scan.u64("a thread id")?;
    scan.literal(") P:")?;
    let priority = scan.u64("a priority")?;
    scan.literal(" I:")?;
    let interval_us = scan.u64("an interval")?;
    scan.literal(" C:")?;
    let cycles = scan.u64("cycles")?;
    scan.literal(" Min:")?;
    let min_us = scan.i64("a latency")?;
    scan.literal(" Act:")?;
    let actual_us = scan.i64("a latency")?;
    scan.literal(" Avg:")?;
    let average_us = scan.i64("a latency")?;
    scan.literal(" Max:")?;
    let max_us = scan.i64("a latency")?;
    scan.end()?;
    Ok(CyclicThread { thread, tid, priority, interval_us, cycles, min_us, actual_us, average_us, max_us })
}

/// All numbers up to the end of the line.
fn numbers(mut scan: Scan<'_>) -> Result<Vec<u64>, ParseError> {
    let mut numbers = Vec::new();
    loop {
        scan.pad();
        if scan.rest().is_empty() {
            return Ok(numbers);
        }
        numbers.push(scan.u64("a number")?);
    }
}

fn histogram(lines: &mut Lines<'_>) -> Result<CyclicHistogram, ParseError> {
    let mut rows = Vec::new();
    while lines.peek().is_some_and(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let mut scan = lines.next("a row")?;
        let latency = scan.u64("a latency")?;
        rows.push((latency, numbers(scan)?));
    }
    let mut after = |title: &str| {
        let mut scan = lines.next(title)?;
        scan.literal(title)?;
        numbers(scan)
    };
    let totals = after("# Total:")?;
    let min_us = after("# Min Latencies:")?;
    let average_us = after("# Avg Latencies:")?;
    let max_us = after("# Max Latencies:")?;
    let overflows = after("# Histogram Overflows:")?;
    lines.exact("# Histogram Overflow at cycle number:")?;
    let mut overflow_cycles = Vec::new();
    while let Some(mut scan) = lines.next_if("# Thread ") {
        scan.u64("a thread's number")?;
        scan.literal(":")?;
        let mut overflow = CyclicOverflow { cycles: Vec::new(), others: None };
        loop {
            scan.pad();
            if scan.have("# ") {
                overflow.others = Some(scan.u64("a count")?);
                scan.literal(" others")?;
            }
            if scan.rest().is_empty() {
                break;
            }
            overflow.cycles.push(scan.u64("a cycle")?);
        }
        overflow_cycles.push(overflow);
    }
    lines.exact("")?;
    Ok(CyclicHistogram { rows, totals, min_us, average_us, max_us, overflows, overflow_cycles })
}

fn write_histogram(histogram: &CyclicHistogram, out: &mut String) {
    let join = |numbers: &[u64], width: usize, separator: &str| {
        numbers.iter().map(|number| format!("{number:0width$}")).collect::<Vec<_>>().join(separator)
    };
    out.push_str("# Histogram\n");
    for (latency, counts) in &histogram.rows {
        out.push_str(&format!("{latency:06} {}\n", join(counts, 6, "\t")));
    }
    out.push_str(&format!("# Total: {}\n", join(&histogram.totals, 9, " ")));
    out.push_str(&format!("# Min Latencies: {}\n", join(&histogram.min_us, 5, " ")));
    out.push_str(&format!("# Avg Latencies: {}\n", join(&histogram.average_us, 5, " ")));
    out.push_str(&format!("# Max Latencies: {}\n", join(&histogram.max_us, 5, " ")));
    out.push_str(&format!("# Histogram Overflows: {}\n", join(&histogram.overflows, 5, " ")));
    out.push_str("# Histogram Overflow at cycle number:\n");
    for (thread, overflow) in histogram.overflow_cycles.iter().enumerate() {
        out.push_str(&format!("# Thread {thread}:"));
        for cycle in &overflow.cycles {
            out.push_str(&format!(" {cycle:05}"));
        }
        if let Some(others) = overflow.others {
            out.push_str(&format!(" # {others:05} others"));
        }
        out.push('\n');
    }
    out.push('\n');
}

fn verbose(mut scan: Scan<'_>, lines: &mut Lines<'_>) -> Result<Cyclictest, ParseError> {
    let cpus_max = scan.u64("a number of CPUs")?;
    let mut scan = lines.next("`Online CPUs = `")?;
    scan.literal("Online CPUs = ")?;
    let cpus_online = scan.u64("a number of CPUs")?;
    let dma_latency_us = dma_latency(lines)?;
    let mut intervals = Vec::new();
    while let Some(mut scan) = lines.next_if("Thread ") {
        let thread = scan.u64("a thread's number")?;
        scan.literal(" Interval: ")?;
        intervals.push((thread, scan.u64("an interval")?));
    }
    let mut latencies = Vec::new();
    while lines.peek().is_some_and(|line| line.starts_with(' ') && line.matches(':').count() == 2) {
        let mut scan = lines.next("a latency")?;
        let thread = scan.u64("a thread's number")?;
        scan.literal(":")?;
        let cycle = scan.u64("a cycle")?;
        scan.literal(":")?;
        latencies.push((thread, cycle, scan.i64("a latency")?));
        scan.end()?;
    }
    let verbose = CyclicVerbose { cpus_max, cpus_online, intervals, latencies };
    Ok(Cyclictest::Verbose { dma_latency_us, verbose })
}

fn json(lines: &mut Lines<'_>) -> Result<CyclicJson, ParseError> {
    lines.exact("{")?;
    let mut head = Vec::new();
    let count = loop {
        let mut scan = lines.next("`num_threads`")?;
        if scan.have("  \"num_threads\": ") {
            break scan.u64("a number of threads")?;
        }
        head.push(scan.rest().to_owned());
    };
    let mut scan = lines.next("`resolution_in_ns`")?;
    scan.literal("  \"resolution_in_ns\": ")?;
    let resolution_ns = scan.u64("nanoseconds")?;
    scan.literal(",")?;
    lines.exact("  \"thread\": {")?;
    let mut threads = Vec::new();
    for index in 0..count {
        lines.exact(&format!("    \"{index}\": {{"))?;
        threads.push(json_thread(lines)?);
        lines.exact(if index + 1 < count { "    }," } else { "    }" })?;
    }
    lines.exact("  }")?;
    lines.exact("}")?;
    Ok(CyclicJson { head, resolution_ns, threads })
}

fn json_thread(lines: &mut Lines<'_>) -> Result<CyclicJsonThread, ParseError> {
    let mut scan = lines.next("`histogram`")?;
    scan.literal("      \"histogram\": {")?;
    let mut histogram = Vec::new();
    if !scan.have("      },") {
        scan.end()?;
        while let Some(mut scan) = lines.next_if("        \"") {
            let latency = scan.u64("a latency")?;
            scan.literal("\": ")?;
            histogram.push((latency, scan.u64("a count")?));
            scan.have(",");
            scan.end()?;
        }
        lines.exact("      },")?;
    }
    let mut value = |key: &str| -> Result<Scan<'_>, ParseError> {
        let mut scan = lines.next(key)?;
        scan.literal(&format!("      \"{key}\": "))?;
        Ok(scan)
    };
    Ok(CyclicJsonThread {
        histogram,
        cycles: value("cycles")?.u64("cycles")?,
        min_us: value("min")?.i64("a latency")?,
        max_us: value("max")?.i64("a latency")?,
        average_us_e2: value("avg")?.fixed(2, "a latency")?,
        cpu: value("cpu")?.i64("a CPU")?,
        node: value("node")?.i64("a node")?,
    })
}

fn write_json(json: &CyclicJson, out: &mut String) {
    out.push_str("{\n");
    for line in &json.head {
        out.push_str(&format!("{line}\n"));
    }
    out.push_str(&format!(
        "  \"num_threads\": {},\n  \"resolution_in_ns\": {},\n  \"thread\": {{\n",
        json.threads.len(),
        json.resolution_ns
    ));
    for (index, thread) in json.threads.iter().enumerate() {
        let rows: Vec<String> = thread
            .histogram
            .iter()
            .map(|(latency, count)| format!("\n        \"{latency}\": {count}"))
            .collect();
        let end = if rows.is_empty() { "" } else { "\n" };
        out.push_str(&format!(
            "    \"{index}\": {{\n      \"histogram\": {{{}{end}      }},\n      \"cycles\": {},\n      \"min\": {},\n      \"max\": {},\n      \"avg\": {},\n      \"cpu\": {},\n      \"node\": {}\n    }}{}\n",
            rows.join(","),
            thread.cycles,
            thread.min_us,
            thread.max_us,
            fixed(thread.average_us_e2, 2),
            thread.cpu,
            thread.node,
            if index + 1 < json.threads.len() { "," } else { "" }
        ));
    }
    out.push_str("  }\n}\n");
}
