//! What is printed is read back by the parsers of the originals' output, with the run's own numbers.

use super::{printed, printed_text};
use ttwu_results::outputs::{Document, Output};
use ttwu_sim::{Nothing, Options, Scenario, run};

/// Runs a workload; gives the text and what the parsers read from it.
fn check(workload: &str, duration: &str) -> (String, Vec<Output>) {
    let text = format!(
        "workload = \"{workload}\"\nmachine = \"oracle-d\"\npolicy = \"linux-6.6\"\nduration = \"{duration}\"\n"
    );
    let scenario = Scenario::parse(&text, &Nothing).expect("a scenario");
    let outcome = run(&scenario, &mut Options::quiet());
    let text = printed_text(&printed(&scenario.workload, &outcome));
    let document = Document::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (text, document.results().cloned().collect())
}

#[test]
fn hackbench_has_its_three_lines() {
    let (text, results) = check("hackbench:groups=1,fds=2,loops=10,pipe,threads", "5s");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("1 groups using 4 file descriptors each (== 4 tasks)"), "{text}");
    let [Output::Hackbench(run)] = &results[..] else { panic!("{results:?}") };
    assert_eq!((run.groups, run.fds, run.tasks, run.loops, run.bytes), (1, 4, 4, 10, 100));
}

#[test]
fn a_run_that_was_cut_off_has_no_time() {
    let (text, _) = check("hackbench:groups=4,loops=1000", "1ms");
    assert_eq!(text, "");
}

#[test]
fn perf_bench_prints_its_own_lines() {
    let (_, results) = check("pipe:loop=100", "5s");
    let [Output::PerfPipe(run)] = &results[..] else { panic!("{results:?}") };
    assert_eq!((run.loops, run.threads), (100, false));
    let (_, results) = check("messaging:nr_loops=2", "5s");
    assert!(matches!(&results[..], [Output::PerfMessaging(run)] if run.tasks == 400), "{results:?}");
}

#[test]
fn schbench_has_the_blocks_of_its_generation() {
    let (text, _) = check("schbench-a:runtime=1,threads=2", "2s");
    assert!(text.starts_with("Latency percentiles (usec)\n\t50.0th: "), "{text}");
    let (text, _) = check("schbench:runtime=1", "2s");
    for title in [
        "setting worker threads to",
        "Wakeup Latencies",
        "Request Latencies",
        "RPS percentiles",
        "average rps: ",
    ] {
        assert!(text.contains(title), "{title}: {text}");
    }
}

#[test]
fn dmatest_counts_every_iteration_on_some_cpu() {
    let (text, results) =
        check("dmatest:norandom,noverify,iterations=50,threads_per_chan=2,timeout=2000", "5s");
    let tests: Vec<u64> = results
        .iter()
        .filter_map(|result| if let Output::Dmatest(summary) = result { Some(summary.tests) } else { None })
        .collect();
    assert_eq!(tests, [50, 50], "{text}");
    let hits: Vec<u64> = results
        .iter()
        .filter_map(|result| {
            if let Output::DmatestCpusHit(hit) = result {
                Some(hit.hits.iter().map(|(_, count)| count).sum())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(hits, [50, 50], "{text}");
    let (text, _) = check("dmatest:iterations=5", "5s");
    assert!(text.contains(" iops; KB/s not measured"), "{text}");
}

#[test]
fn the_others_have_their_lines() {
    for (workload, has) in [
        ("dbench:timelimit=1", "0 completed in "),
        ("context1:seconds=1", "COUNT|"),
        ("tbench:clients=1,timelimit=1", "Throughput "),
        ("netperf:testlen=1", "MIGRATED TCP REQUEST/RESPONSE TEST"),
        ("cyclictest:loops=20", "T: 0 ("),
        ("massive_intr:nproc=2,runtime=1", "001000\t"),
        ("rpc:runtime=1,load=20", "99.0th:"),
        ("desktop:runtime=1", "dav1d-worker:(8)"),
        ("duty:runtime=1", " %  "),
    ] {
        let (text, _) = check(workload, "3s");
        assert!(text.contains(has), "{workload}: no `{has}` in\n{text}");
    }
}
