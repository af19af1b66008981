//! Every recorded output: read, written back byte for byte, and what it holds for comparisons.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ttwu_results::outputs::{Better, Document, Item, Output};

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            files(&path, out);
        } else {
            out.push(path);
        }
    }
}

/// Name (folder/file) and text of every recorded output.
fn golden() -> Option<BTreeMap<String, String>> {
    let root = ttwu_testing::shared("golden")?;
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let outputs = paths.iter().filter(|path| !path.starts_with(root.join("mmtests")));
    Some(
        outputs
            .map(|path| {
                let name = path.strip_prefix(&root).expect("inside").display().to_string();
                (name, std::fs::read_to_string(path).expect("text"))
            })
            .collect(),
    )
}

/// Files that hold no result, and what has to be said of them.
const NO_RESULT: &[(&str, &str)] = &[
    ("README.md", "failed"),
    ("cyclictest/help.txt", "Usage:"),
    ("dbench/dbench400-t6-tiny-2.txt", "failed to create barrier semaphore"),
    ("dbench/mel-help.txt", "Usage: [OPTION...]"),
    ("dbench/mel-warmup-1.txt", "dbench without a measured value"),
    ("dbench/mel-warmup-2.txt", "dbench without a measured value"),
    ("hackbench/badgroups.txt", "hackbench: --groups|-g requires an integer > 0"),
    ("hackbench/badopt.txt", "hackbench: unrecognized option '--nope'"),
    ("hackbench/datasize0.txt", "hackbench: --datasize|-s requires an integer > 0"),
    ("hackbench/help.txt", "Usage:"),
    ("netperf/netserver.txt", "no known benchmark output"),
    ("perf-bench/bench-help.txt", "Usage: perf bench"),
    ("perf-bench/msg-help.txt", "Usage: perf bench sched messaging"),
    ("perf-bench/pipe-help.txt", "Usage: perf bench sched pipe"),
    ("perf-bench/sched-all-help.txt", "no known benchmark output"),
    ("rt-app/t1.json", "no known benchmark output"),
    ("rt-app/t1.txt", "no known benchmark output"),
    ("stress-ng/class-scheduler.txt", "no known benchmark output"),
];

#[test]
fn every_recorded_output_is_read_and_written_back() {
    let Some(golden) = golden() else { return };
    assert!(golden.len() == 90, "{} files: new ones want a line here", golden.len());
    for (name, text) in &golden {
        let document = Document::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(document.write(), *text, "{name}");
        let expected = NO_RESULT.iter().find(|(file, _)| file == name).map(|(_, said)| *said);
        match (document.no_result(), expected) {
            (None, None) => {}
            (Some(said), Some(expected)) if name == "README.md" || said.contains(expected) => {}
            (said, expected) => panic!("{name}: said {said:?}, expected {expected:?}"),
        }
        if expected.is_none() {
            assert!(!document.samples().is_empty(), "{name}: nothing to compare");
        }
    }
}

#[test]
fn results_are_data_not_kept_text() {
    // A line of a result that were kept as text would be written back just as well.
    let Some(golden) = golden() else { return };
    for (name, text) in &golden {
        let kept: Vec<String> = Document::parse(text)
            .expect("parsed above")
            .items
            .into_iter()
            .filter_map(|item| match item {
                Item::Text(line) if !line.is_empty() => Some(line),
                Item::Text(_) | Item::Command(_) | Item::Exit(_) | Item::Result(_) => None,
            })
            .collect();
        let limit = match name.as_str() {
            _ if NO_RESULT.iter().any(|(file, _)| file == name) => continue,
            "massive_intr/orig-4-4.txt" => 3,
            "perf-sched/record.txt" => 2,
            "unixbench/run-context1-i1.txt" => 77,
            "stress-ng/cyclic.txt" => 40,
            "stress-ng/switch.yaml" => 26,
            _ if name.starts_with("stress-ng/") => 3,
            _ => 0,
        };
        assert!(kept.len() <= limit, "{name}: {} lines are text: {kept:#?}", kept.len());
    }
}

#[track_caller]
fn check(name: &str, expected: &[(&str, &str, Better, &[f64])]) {
    let Some(golden) = golden() else { return };
    let found = Document::parse(&golden[name]).expect(name).samples();
    for (metric, unit, better, values) in expected {
        let samples = found
            .iter()
            .find(|samples| samples.metric == *metric)
            .unwrap_or_else(|| panic!("{name}: {found:#?}"));
        assert_eq!(
            (samples.unit, samples.better, samples.values.as_slice()),
            (*unit, *better, *values),
            "{metric}"
        );
    }
}

#[test]
fn samples_have_the_recorded_values() {
    use Better::{Higher, Lower};
    check("hackbench/default.txt", &[("time", "s", Lower, &[1.928])]);
    check(
        "hackbench/ten-runs-pT-g1-l1000.txt",
        &[("time", "s", Lower, &[1.607, 1.649, 1.574, 0.941, 1.260, 1.411, 1.327, 1.343, 1.377, 1.413])],
    );
    check("perf-bench/pipe-l20000.txt", &[("pipe", "us/op", Lower, &[11.3179])]);
    check("perf-bench/msg-simple.txt", &[("time", "s", Lower, &[0.080])]);
    // The last block, not the interval reports before it.
    check(
        "schbench-new/default-m1-t2-r6-i2.txt",
        &[("request_latency_p50", "us", Lower, &[10352.0]), ("rps_average", "1/s", Higher, &[141.17])],
    );
    check("schbench-old/e7de637-m2-t2-r5.txt", &[("latency_p99.9", "us", Lower, &[278_016.0])]);
    check("schbench-new/json-pipe.txt", &[("transfer", "1/s", Higher, &[71705.11])]);
    check("dbench/mel-run-1.txt", &[("throughput", "MB/s", Higher, &[57.437])]);
    check("tbench/t6-2.txt", &[("throughput", "MB/s", Higher, &[254.753])]);
    check("netperf/tcp_rr_lat.txt", &[("transactions", "1/s", Higher, &[43856.50])]);
    check("cyclictest/q-t2-l200.txt", &[("latency_max", "us", Lower, &[2188.0, 46.0])]);
    check("massive_intr/n4-r4.txt", &[("loops", "loops", Higher, &[91.0, 89.0, 89.0, 92.0])]);
    // The child's COUNT line comes after the exit and is not a second sample.
    check("unixbench/context1-2s.txt", &[("count", "loops", Higher, &[132_539.0])]);
    check(
        "unixbench/run-context1-i1.txt",
        &[("Pipe-based Context Switching × 2", "1/s", Higher, &[100_074.4])],
    );
    check("perf-sched/latency.txt", &[("switches", "switches", Lower, &[7537.0])]);
}

#[test]
fn several_runs_in_one_file_are_several_samples() {
    let one = "Running in threaded mode with 1 groups using 40 file descriptors each (== 40 tasks)\n\
               Each sender will pass 100 messages of 100 bytes\nTime: ";
    let text = format!("{one}0.201\n{one}0.199\n");
    let document = Document::parse(&text).expect("two runs");
    assert_eq!(document.samples()[0].values, [0.201, 0.199]);
    assert_eq!(document.write(), text);
    let windows = Document::parse(&text.replace('\n', "\r\n")).expect("line ends of mails");
    assert_eq!(windows.samples()[0].values, [0.201, 0.199]);
}

#[test]
fn damage_is_an_error_with_line_expected_and_found() {
    for (text, error) in [
        (
            "Running in threaded mode with 1 groups using 40 file descriptors each (== 40 tasks)\n",
            "line 2: expected `Each sender will pass … messages`, found the end of the text",
        ),
        (
            "Running in threaded mode with 1 groups using 40 file descriptors each (== 40 tasks)\n\
             Each sender will pass 100 messages of 100 bytes\nTime: 1.2\n",
            "line 3: expected seconds with 3 decimals, found `1.2` in `Time: 1.2`",
        ),
        (
            "\nLatency percentiles (usec)\n\t50.0th: 29\n\t75.0000th: 8008\n",
            "line 4: expected a row laid out as the ones above, found the end of `\t75.0000th: 8008`",
        ),
        (
            "T: 0 (2) P:80 I:1000 C:    200 Min:  1e400 Act:   13 Avg:   28 Max:    2188\n",
            "line 1: expected ` Act:`, found `e400 Act:   13 Avg:   28 Max:    2188` in \
             `T: 0 (2) P:80 I:1000 C:    200 Min:  1e400 Act:   13 Avg:   …`",
        ),
    ] {
        assert_eq!(Document::parse(text).expect_err(text).to_string(), error);
    }
}

#[test]
fn damaged_outputs_never_panic() {
    let Some(golden) = golden() else { return };
    for (name, text) in &golden {
        for seed in 0..40 {
            let damaged = ttwu_testing::damage(text.as_bytes(), seed);
            let damaged = String::from_utf8_lossy(&damaged);
            if let Ok(document) = Document::parse(&damaged) {
                for samples in document.samples() {
                    assert!(samples.values.iter().all(|value| value.is_finite()), "{name}, seed {seed}");
                }
                let _ = (document.write(), document.no_result());
            }
        }
    }
}

#[test]
fn a_patched_perf_s_table_is_read_and_written() {
    let text = concat!(
        " -----------------------------------------------------------------------------------------------------------\n",
        "  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Sum delay ms     |\n",
        " -----------------------------------------------------------------------------------------------------------\n",
        "  massive_intr:(8)      |1665786.092 ms |   529819 | avg:   1.046 ms | max:  33.639 ms | sum:554226.960 ms |\n",
        " -----------------------------------------------------------------------------------------------------------\n",
        "  TOTAL:                |2317066.000 ms |  2221889 |                 |       46.477 ms |   1629736.500 ms |\n",
        " -----------------------------------------------------------------------------------------------------------\n",
    );
    let document = Document::parse(text).expect("table");
    assert!(matches!(document.results().next(), Some(Output::PerfSchedLatency(_))));
    assert_eq!(document.write(), text);
}
