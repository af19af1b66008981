//! Rows from made-up readings, in the units of the benchmarks.

use super::{counters, find, rows};
use std::collections::BTreeMap;
use ttwu_fair::ScanEnd;
use ttwu_sim::{Counters, End, MeterValue, Outcome};
use ttwu_workload::{MachineInfo, MeterKind, Workload};

fn outcome(end: End, meters: Vec<MeterValue>) -> Outcome {
    Outcome {
        end,
        sim_ns: 2_000_000_000,
        events: 0,
        counters: Counters::default(),
        meters,
        trace: None,
        decisions: Vec::new(),
        starved: Vec::new(),
        stuck: Vec::new(),
        digest: 0,
    }
}

fn workload(name: &str) -> Workload {
    Workload::parse(name, &MachineInfo { cpus: 8 }).expect(name)
}

/// Rows of a workload all of whose sample meters read `samples` and whose counters read `count`.
fn readings(name: &str, samples: &[u64], count: u64) -> Vec<(String, String, f64)> {
    let workload = workload(name);
    let meters = workload.meters.iter().map(|meter| match meter.kind {
        MeterKind::Samples => MeterValue::Samples(samples.to_vec()),
        MeterKind::Count => MeterValue::Count(count),
        MeterKind::Cpus => MeterValue::Cpus(vec![count, 0]),
        MeterKind::Seconds => MeterValue::Seconds(vec![count, 0]),
    });
    let outcome = outcome(End::Completed, meters.collect());
    rows(&workload, &outcome).into_iter().map(|row| (row.name, row.unit, row.value)).collect()
}

#[track_caller]
fn check(name: &str, samples: &[u64], count: u64, expect: &[(&str, &str, f64)]) {
    let expect: Vec<_> =
        expect.iter().map(|(name, unit, value)| ((*name).to_owned(), (*unit).to_owned(), *value)).collect();
    assert_eq!(readings(name, samples, count), expect, "{name}");
}

#[test]
fn rows_are_in_the_units_of_the_benchmark() {
    check("hackbench", &[2_500_000_000], 0, &[("time", "s", 2.5)]);
    check("messaging", &[2_500_000_000], 0, &[("time", "s", 2.5)]);
    check("pipe:loop=1000", &[7_000_000], 0, &[("pipe", "us/op", 7.0)]);
    check("dbench", &[30_000_000, 40_000_000], 0, &[("loadfile", "ms", 35.0)]);
    check("massive_intr:runtime=1", &[], 90, &[("loops", "loops", 90.0), ("loops_spread", "%", 0.0)]);
    check("context1:copies=3", &[], 90, &[("count", "loops", 90.0)]);
    check("cyclictest", &[3_000, 5_000], 0, &[("latency_avg", "us", 4.0), ("latency_max", "us", 5.0)]);
}

/// 1000 transfers of 64 KiB in 15316 µs are 65291 iops and 4178636 KB/s (the seed mail of the DMA thread).
#[test]
fn dmatest_computes_as_the_kernel_does() {
    let found = readings("dmatest:noverify,polled=off", &vec![15_316; 1000], 1000);
    let value = |name: &str| found.iter().find(|(found, _, _)| found == name).map(|(_, _, value)| *value);
    assert_eq!(value("iops").map(f64::floor), Some(65_291.0), "{found:?}");
}

#[test]
fn schbench_has_its_percentiles_by_nearest_rank() {
    let samples: Vec<u64> = (1..=1000).map(|us| us * 1000).collect();
    let found = readings("schbench:runtime=1", &samples, 50);
    let names: Vec<&str> = found.iter().map(|(name, _, _)| name.as_str()).collect();
    assert_eq!(
        &names[..5],
        [
            "wakeup_latency_p50",
            "wakeup_latency_p90",
            "wakeup_latency_p99",
            "wakeup_latency_p99.9",
            "wakeup_latency_max"
        ]
    );
    assert_eq!(
        found[..5].iter().map(|(_, _, us)| *us).collect::<Vec<_>>(),
        [500.0, 900.0, 990.0, 999.0, 1000.0]
    );
    assert_eq!(
        found.last().map(|(name, unit, value)| (name.as_str(), unit.as_str(), *value)),
        Some(("rps_average", "1/s", 50.0))
    );
}

#[test]
fn a_run_that_was_cut_off_has_no_result_and_a_silent_meter_no_row() {
    let workload = workload("hackbench");
    let meters = || vec![MeterValue::Samples(vec![1])];
    assert_eq!(rows(&workload, &outcome(End::TimeLimit, meters())), []);
    assert_eq!(rows(&workload, &outcome(End::Completed, meters())).len(), 1);
    assert_eq!(rows(&workload, &outcome(End::Completed, vec![MeterValue::Samples(Vec::new())])), []);
}

#[test]
fn counters_have_names_of_their_own_and_no_mean_of_nothing() {
    let mut outcome = outcome(End::Completed, Vec::new());
    outcome.counters.ipis = 7;
    outcome.counters.scans = BTreeMap::from([(ScanEnd::Budget, 3)]);
    outcome.counters.idle_exits = vec![0, 5];
    let all = counters(&outcome);
    assert_eq!(
        ["ipis", "scans_budget", "scans_hit", "idle_exits_1", "queue_length_mean"]
            .map(|name| find(&all, name)),
        [Some(7.0), Some(3.0), Some(0.0), Some(5.0), None]
    );
    let mut names: Vec<&str> = all.iter().map(|metric| metric.name.as_str()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
