//! An arm of a result tree as measurements: what each operation is, its unit and direction, and which of its numbers are runs.
//!
//! mmtests' own tables take every number of a log for a sample. Here the run is the unit: hackbench's lines are runs of their
//! own, a line of dbench's throughput is the mean of all seconds before it, schbench's reports count from the start. What
//! is dependent gives one value an iteration. Directions are those of the metric, not those of the modules (`stressng` is
//! lower-is-better there, dbench's throughput too without a sub-heading).

use super::benchmarks::{self, Sample};
use super::printed::number;
use super::tree::{self, Logs};
use super::{Error, logs_2020 as old};
use crate::outputs::Better;
use std::path::Path;

/// How the values of one iteration belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Each is a run of the benchmark.
    Runs,
    /// They are of one run: its passes, threads or CPUs; their mean is the run's value.
    Parts,
    /// Each contains those before it; the last is the run's value.
    Cumulative,
}

/// One metric of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredSeries {
    /// As the parsers of the benchmark's own output call it (`time`, `wakeup_latency_p99`).
    pub metric: String,
    /// What it was measured with: groups, clients, message size; empty where there is nothing to tell.
    pub factor: String,
    /// As mmtests names the operation.
    pub operation: String,
    /// Unit of the values.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// How the values came about.
    pub sampling: Sampling,
    /// One value a run, by iteration; no iteration is empty.
    pub iterations: Vec<Vec<f64>>,
}

/// The results of one benchmark in one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredTree {
    /// The benchmark's family: `hackbench`, `dbench`, `schbench`…
    pub family: &'static str,
    /// Its metrics, in the order of its logs; none has no value.
    pub series: Vec<MeasuredSeries>,
}

/// The metric, factor, unit and direction of an operation.
struct Meaning {
    metric: String,
    factor: String,
    unit: &'static str,
    better: Better,
    sampling: Sampling,
}

/// The benchmarks that the arm in `directory` has results of.
///
/// # Errors
///
/// A directory that cannot be read.
pub fn measured_benchmarks(directory: &Path) -> Result<Vec<String>, Error> {
    tree::benchmarks(directory)
}

/// The results of `benchmark` in the arm whose iterations are below `directory`.
///
/// # Errors
///
/// An unknown benchmark, a log that cannot be read, an arm without results of it.
pub fn measured(directory: &Path, benchmark: &str) -> Result<MeasuredTree, Error> {
    let family = benchmarks::family(benchmark)?;
    let mut series: Vec<MeasuredSeries> = Vec::new();
    for iteration in tree::directories(directory, "iter-")? {
        let logs = Logs::open(directory.join(iteration).join(benchmark).join("logs"))?;
        let mut found: Vec<(Meaning, String, Vec<f64>)> = Vec::new();
        for sample in samples(family, &logs)? {
            let (Some(value), Some(meaning)) = (number(&sample.value), meaning(family, &sample.label)) else {
                continue;
            };
            if !value.is_finite() {
                continue;
            }
            let same = |(have, ..): &&mut (Meaning, String, Vec<f64>)| {
                have.metric == meaning.metric && have.factor == meaning.factor
            };
            match found.iter_mut().find(same) {
                Some((.., values)) => values.push(value),
                None => found.push((meaning, sample.label, vec![value])),
            }
        }
        for (meaning, operation, values) in found {
            add(&mut series, meaning, operation, &values);
        }
    }
    if series.is_empty() {
        let there = tree::benchmarks(directory)?;
        let listed = if there.is_empty() { "nothing".to_owned() } else { there.join(", ") };
        return Err(Error::NoBaseline {
            benchmark: benchmark.to_owned(),
            arm: directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            directory: directory.parent().unwrap_or(directory).to_owned(),
            remedy: format!("it has results of: {listed}"),
        });
    }
    Ok(MeasuredTree { family, series })
}

fn add(series: &mut Vec<MeasuredSeries>, meaning: Meaning, operation: String, values: &[f64]) {
    let runs = match meaning.sampling {
        Sampling::Runs => values.to_vec(),
        Sampling::Parts => vec![values.iter().sum::<f64>() / values.len() as f64],
        Sampling::Cumulative => values.last().copied().into_iter().collect(),
    };
    let same = |have: &&mut MeasuredSeries| have.metric == meaning.metric && have.factor == meaning.factor;
    if let Some(have) = series.iter_mut().find(same) {
        have.iterations.push(runs);
        return;
    }
    let Meaning { metric, factor, unit, better, sampling } = meaning;
    series.push(MeasuredSeries { metric, factor, operation, unit, better, sampling, iterations: vec![runs] });
}

/// The samples of either layout.
fn samples(family: &'static str, logs: &Logs) -> Result<Vec<Sample>, Error> {
    // The newer state prints what was sent for what was received.
    if family == "netperf" {
        let protocol = super::logs_2024::protocol(logs)?.to_lowercase().replace('_', "");
        let mut found = old::netperf(logs)?;
        for sample in &mut found {
            let bare = !sample.label.contains('-');
            sample.label = format!("{protocol}-{}{}", if bare { "send-" } else { "" }, sample.label);
        }
        return Ok(found);
    }
    let newer = benchmarks::reader_2024(family).map_or_else(|| Ok(Vec::new()), |reader| reader(logs))?;
    if !newer.is_empty() {
        return Ok(newer);
    }
    match family {
        "perfpipe" => old::perfpipe(logs),
        "pipetest" => old::pipetest(logs),
        "schbench" => old::schbench(logs),
        "cyclictest" => {
            let found = old::cyclictest(logs)?;
            if found.is_empty() { old::cyclictest_fine(logs) } else { Ok(found) }
        }
        _ => Ok(newer),
    }
}

/// What an operation's name means in a family; none of what is no measurement (counts of operations, losses as text).
fn meaning(family: &str, label: &str) -> Option<Meaning> {
    use Better::{Higher, Lower};
    use Sampling::{Cumulative, Parts, Runs};
    let meaning = |metric: &str, factor: &str, unit, better, sampling| {
        Some(Meaning { metric: metric.to_owned(), factor: factor.to_owned(), unit, better, sampling })
    };
    let (head, tail) = label.split_once('-').unwrap_or((label, ""));
    match family {
        "hackbench" => meaning("time", tail, "s", Lower, Runs),
        "dbench" | "tbench" => match head {
            "loadfile" => meaning("loadfile", tail, "ms", Lower, Parts),
            "tput" => meaning("throughput", tail, "MB/s", Higher, Cumulative),
            "op" => {
                let (operation, clients) = tail.rsplit_once('-')?;
                meaning(&format!("latency_avg {operation}"), clients, "ms", Lower, Cumulative)
            }
            _ => None,
        },
        "schbench" => {
            // `Wakeup-99.0th-8`, or of 2020 `99.00th-qrtle-8`.
            let (percentile, workers) = match tail.strip_prefix("qrtle-") {
                Some(workers) => (head, workers),
                None => tail.rsplit_once('-')?,
            };
            let percent: f64 = percentile.strip_suffix("th")?.parse().ok()?;
            match head {
                "Wakeup" => meaning(&format!("wakeup_latency_p{percent}"), workers, "us", Lower, Cumulative),
                "Request" => {
                    meaning(&format!("request_latency_p{percent}"), workers, "us", Lower, Cumulative)
                }
                "RPS" => meaning(&format!("rps_p{percent}"), workers, "1/s", Higher, Cumulative),
                _ if tail.starts_with("qrtle-") => {
                    meaning(&format!("latency_p{percent}"), workers, "us", Lower, Cumulative)
                }
                _ => None,
            }
        }
        "perfpipe" => match head {
            "usecs" => meaning("pipe", tail.strip_prefix("op-").unwrap_or(tail), "us/op", Lower, Runs),
            _ => meaning("pipe", "", "us/op", Lower, Runs),
        },
        "pipetest" => meaning("pipe", "", "us/op", Lower, Parts),
        "netperf" => {
            let (direction, size) = tail.split_once('-')?;
            match (head.ends_with("rr"), direction) {
                (true, _) => meaning("transactions", size, "1/s", Higher, Runs),
                (false, "send") => meaning("throughput_sent", size, "Mbit/s", Higher, Runs),
                (false, "recv") => meaning("throughput_received", size, "Mbit/s", Higher, Runs),
                (false, _) => meaning("throughput_lost", size, "Mbit/s", Lower, Runs),
            }
        }
        "kernbench" => {
            let metric = format!("time_{}", head.to_lowercase());
            meaning(&metric, tail, "s", Lower, Runs)
        }
        "unixbench" => meaning("count", "", "loops", Higher, Runs),
        "cyclictest" => match head {
            "AvgLat" | "Avg" => meaning("latency_avg", "", "us", Lower, Parts),
            "MaxLat" | "Max" => meaning("latency_max", "", "us", Lower, Parts),
            "sample" => meaning("latency", "", "us", Lower, Parts),
            _ => None,
        },
        "stress-ng" => {
            let (stressor, clients) = tail.rsplit_once('-')?;
            meaning(&format!("{stressor} ops"), clients, "1/s", Higher, Runs)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(family: &str, label: &str, expected: Option<(&str, &str, &str, Better)>) {
        let found = meaning(family, label);
        let found = found
            .as_ref()
            .map(|found| (found.metric.as_str(), found.factor.as_str(), found.unit, found.better));
        assert_eq!(found, expected, "{family} {label}");
    }

    #[test]
    fn operations_are_named_as_the_parsers_of_the_outputs_name_them() {
        check("hackbench", "time-12", Some(("time", "12", "s", Better::Lower)));
        check("dbench", "loadfile-8", Some(("loadfile", "8", "ms", Better::Lower)));
        check("tbench", "tput-1", Some(("throughput", "1", "MB/s", Better::Higher)));
        check("dbench", "op-Flush-64", Some(("latency_avg Flush", "64", "ms", Better::Lower)));
        check("schbench", "Wakeup-99.0th-4", Some(("wakeup_latency_p99", "4", "us", Better::Lower)));
        check("schbench", "Request-99.9th-4", Some(("request_latency_p99.9", "4", "us", Better::Lower)));
        check("schbench", "RPS-50.0th-4", Some(("rps_p50", "4", "1/s", Better::Higher)));
        check("schbench", "99.00th-qrtle-2", Some(("latency_p99", "2", "us", Better::Lower)));
        check("netperf", "tcprr-send-64", Some(("transactions", "64", "1/s", Better::Higher)));
        check("netperf", "udpstream-recv-64", Some(("throughput_received", "64", "Mbit/s", Better::Higher)));
        check("perfpipe", "usecs-op-default-1", Some(("pipe", "default-1", "us/op", Better::Lower)));
        check("stress-ng", "bops-switch-2", Some(("switch ops", "2", "1/s", Better::Higher)));
        check("cyclictest", "MinLat-0", None);
    }
}
