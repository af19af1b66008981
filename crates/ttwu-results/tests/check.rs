//! Figures of mails against each other: what must be found, and what must pass.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use ttwu_results::check::{Kind, Report, check};

/// Expected findings: line, says, should be, kind; and at least so many checks.
#[track_caller]
fn expect(text: &str, checked: usize, findings: &[(usize, &str, &str, Kind)]) -> Report {
    let report = check(text);
    let found: Vec<(usize, &str, &str, Kind)> = report
        .findings
        .iter()
        .map(|finding| (finding.line, finding.says.as_str(), finding.should_be.as_str(), finding.kind))
        .collect();
    assert_eq!(found, findings, "{text}\n{report:#?}");
    assert_eq!(report.checked, checked, "{text}");
    report
}

/// The list style of the cluster thread, with its slip.
const CLUSTER: &str = "\
On 5.9, numactl -N 0 hackbench -p -T -l 100000 -g $1:

g=1
Running in threaded mode with 1 groups using 40 file descriptors
Each sender will pass 100000 messages of 100 bytes
w/o: 7.689 7.485 7.485 7.458 7.524 7.539 7.738 7.693 7.568 7.674=7.5853
w/ : 7.516 7.941 7.374 7.963 7.881 7.910 7.420 7.556 7.695 7.441=7.6697
performance improvement w/ patch: -1.01%

g=2
w/o: 10.1006
w/ : 9.6878
performance improvement w/ patch: 4.08%
";

#[test]
fn the_slip_of_the_cluster_thread_is_found() {
    let report = expect(CLUSTER, 4, &[(8, "-1.01%", "-1.11%", Kind::Percentage)]);
    assert!(report.findings[0].why.contains("off by 0.10"), "{report:#?}");
    // Quoted twice, with tabs, typographic minus signs and quoted-printable's equals signs.
    let quoted: String = CLUSTER.lines().fold(String::new(), |mut text, line| {
        let line = line.replace('=', "=3D").replace("-1.01", "\u{2212}1.01").replace(' ', "\t");
        let _ = writeln!(text, ">> > {line}");
        text
    });
    expect(&quoted, 4, &[(8, "-1.01%", "-1.11%", Kind::Percentage)]);
    // The same as a table, as a pair, and in mmtests' cells.
    for text in [
        "| G | without | with | |\n|---|---|---|---|\n| 1 | 7.5853 s | 7.6697 | \u{2212}1.01 % |\n",
        "time went from 7.5853 to 7.6697 (-1.01%)\n",
        "7.5853 -> 7.6697 ( -1.01%)\n",
        "7.5853 s \u{2192} 7.6697 s (\u{2212}1.01 %)\n",
        "Amean     1         7.5853 (   0.00%)      7.6697 (  -1.01%)\n",
        "1   7.5853   7.6697   -1.01%\n",
        "1   7.5853   7.6697 (  -1.01%)\n",
        "-1.01% (7.5853 vs 7.6697)\n",
    ] {
        let report = check(text);
        let found: Vec<&str> = report.findings.iter().map(|finding| finding.should_be.as_str()).collect();
        assert_eq!(found, ["-1.11%"], "{text}{report:#?}");
        let right = check(&text.replace("1.01", "1.11"));
        assert_eq!((right.findings.len(), right.checked), (0, report.checked), "{text}{right:#?}");
    }
}

/// Rows of the robot's mails on x86's frequency invariance and on pipes, with a count of runs.
const ROBOT: &str = "\
2a4b03ffc69f2ded 1567c3e3467cddeb019a7b53ec6
---------------- ---------------------------
       fail:runs  %reproduction    fail:runs
           |             |             |
           :4           25%           1:4     dmesg.WARNING
         %stddev     %change         %stddev
             \\          |                \\
    210443           -15.8%     177280        vm-scalability.median
      0.07 ±  6%     -64.9%       0.02 ± 16%  vm-scalability.median_stddev
 7.967e+09           -11.1%  7.082e+09        vm-scalability.workload
      0.20 ±153%  +2.1e+05%     418.07 ±103%  perf-sched.wait_time.max.ms.anon_pipe_read
      3.32 ± 46%      +1.5        4.82 ± 13%  perf-profile.calltrace.cycles-pp.perf_mmap__push
      0.36 ±  2%      -0.0        0.33        mpstat.cpu.all.irq%
      0.00            +0.1        0.08 ±  2%  perf-profile.self.x
  1.06e+08            -2.9%  1.029e+08        proc-vmstat.nr_free_pages
";

#[test]
fn the_robots_tables_are_checked() {
    // 8 changes, and 8 deviations of 4 runs, at most 173 %.
    expect(ROBOT, 16, &[]);
    // Quoted, and with no-break spaces.
    let quoted: String = ROBOT.lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "> > {}", line.replace(' ', "\u{a0}"));
        text
    });
    expect(&quoted, 16, &[]);
    expect(&ROBOT.replace("-15.8%", "-18.5%"), 16, &[(8, "-18.5%", "-15.8%", Kind::Percentage)]);
    expect(&ROBOT.replace("-11.1%", "+11.1%"), 16, &[(10, "+11.1%", "-11.1%", Kind::Sign)]);
    expect(&ROBOT.replace(" +1.5 ", " +1.6 "), 16, &[(12, "+1.6", "+1.5", Kind::Percentage)]);
    expect(&ROBOT.replace("±153%", "±223%"), 16, &[(11, "223%", "at most 173%", Kind::Variation)]);
    let three = "%stddev %change %stddev %change %stddev\n 100 ± 2% +10.0% 110 -50.0% 50.00 ±3% a.b\n";
    expect(three, 2, &[]);
    expect(&three.replace("-50.0%", "-54.5%"), 2, &[(2, "-54.5%", "-50.0%", Kind::Percentage)]);
}

/// The load-file table of the XFS thread: means, and deviations where the thread shows them.
const DBENCH: &str = "\
                           5.5.0-rc7              5.5.0-rc7              5.5.0-rc7
                    tipsched-20200124           kworkerstack   revert-XFS-wq-v1r1
Amean     1         58.69 (   0.00%)       30.21 *  48.53%*       47.48 *  19.10%*
Amean     2         60.90 (   0.00%)       35.29 *  42.05%*       51.13 *  16.04%*
Amean     4         66.77 (   0.00%)       46.55 *  30.28%*       59.54 *  10.82%*
Amean     8         81.41 (   0.00%)       68.46 *  15.91%*       77.25 *   5.11%*
Amean     16       113.29 (   0.00%)      107.79 *   4.85%*      112.33 *   0.85%*
Amean     32       199.10 (   0.00%)      198.22 *   0.44%*      200.31 *  -0.61%*
Amean     64       478.99 (   0.00%)      477.06 *   0.40%*      482.17 *  -0.66%*
Amean     128     1345.26 (   0.00%)     1372.64 *  -2.04%*     1368.94 *  -1.76%*
Stddev    1          2.64 (   0.00%)        4.17 ( -58.08%)        5.20 ( -97.0%)
Stddev    8         11.61 (   0.00%)       10.91 (   6.03%)
";

#[test]
fn the_dbench_table_passes_and_its_changes_do_not() {
    expect(DBENCH, 19, &[]);
    // Outside the range that the printed deviations leave.
    expect(&DBENCH.replace("-58.08", "-58.50"), 19, &[(11, "-58.50%", "-57.95%", Kind::Percentage)]);
    expect(
        &DBENCH.replace("( 19.10", "(19.10").replace("19.10", "19.01"),
        19,
        &[(3, "19.01%", "19.10%", Kind::Percentage)],
    );
    expect(&DBENCH.replace("-2.04", " 2.04"), 19, &[(10, "2.04%", "-2.04%", Kind::Sign)]);
    // Without percentages there is nothing to check, and that is said by the count.
    let bare = "| clients | tip | kworkerstack | revert |\n| --- | --- | --- | --- |\n| 1 | 58.69 | 30.21 | 47.48 |\n";
    expect(bare, 0, &[]);
}

#[test]
fn rows_of_before_and_after_are_checked() {
    let unixbench = "\
                                          before        after
    Dhrystone 2 using register variables  3011862938    3009935994  -0.06%
    Double-Precision Whetstone              617119.3      617298.5   0.03%
    File Copy 1024 bufsize 2000 maxblocks   785871.4      784906.2  -0.12%
    Pipe-based Context Switching           3192192.9     3571238.1  11.87%
    Process Creation                         50690.8       52602.5   3.77%
    Shell Scripts (1 concurrent)             96104.9       96119.9   0.02%
";
    expect(unixbench, 6, &[]);
    expect(&unixbench.replace("11.87", "11.78"), 6, &[(5, "11.78%", "11.87%", Kind::Percentage)]);
    // A percentage of two of several columns: the table itself says which.
    let idle_cluster = "\
| G | without | with | with domain | effect |
| --- | --- | --- | --- | --- |
| 1 | 7.5853 s | 7.6697 | 7.611 | \u{2212}0.8 % |
| 2 | 10.1006 | 9.6878 | 9.9047 | +2.2 % |
| 3 | 15.7727 | 14.9005 | 15.3591 | +3 % |
| 4 | 20.8187 | 20.5647 | 20.2306 | \u{2212}1.7 % |
";
    expect(idle_cluster, 4, &[]);
    expect(&idle_cluster.replace("+2.2", "+2.9"), 4, &[(4, "+2.9%", "+2.2%", Kind::Percentage)]);
    expect("tbench: 325.97 -> 378.91 (+16.24%), netperf 77303 \u{2192} 92172 (+19.24 %)\n", 2, &[]);
    expect(" 1-groups:   4.35 (0.00 pct)   4.31 (0.92 pct)\n", 1, &[]);
    expect("   4:   1320.5933   1479.8833 (   12.60%)\n", 1, &[(1, "12.60%", "12.06%", Kind::Percentage)]);
    expect("hackbench 3.246 -> 2.251 s (30.65%)\n", 1, &[]);
    // mmtests with a base column without cells, as patches quote it.
    expect("TBENCH  1   325.97   378.91 (  16.24%)\n", 1, &[]);
}

#[test]
fn means_are_the_listed_runs() {
    let list = "1.607 1.649 1.574 0.941 1.260 1.411 1.327 1.343 1.377 1.413";
    for ending in [
        "=1.3902",
        " = 1.3902",
        " mean 1.3902",
        " mean: 1.3902",
        " (avg 1.3902)",
        "\nmean: 1.3902\n",
        ", avg=1.390",
    ] {
        expect(&format!("{list}{ending}"), 1, &[]);
    }
    expect(&format!("{list}=1.3912"), 1, &[(1, "1.3912", "1.3902", Kind::Mean)]);
    expect(&format!("{list}\nmean: 1.3912"), 1, &[(2, "1.3912", "1.3902", Kind::Mean)]);
    // Runs left out: nothing to check. Runs with commas are runs.
    expect("7.374 7.401 ... 7.963=7.6697", 0, &[]);
    expect("w/: 7.374, 7.40 \u{2026} 7.963 mean 7.6697", 0, &[]);
    expect("runs: 1.0, 2.0, 3.0; mean: 2.3", 1, &[(1, "2.3", "2.0", Kind::Mean)]);
    let times = "Time: 1.0\nTime: 3.0\nAverage: 2.5\n";
    expect(times, 1, &[(3, "2.5", "2.0", Kind::Mean)]);
}

#[test]
fn dmatest_s_rates_come_from_one_run_time() {
    let good = "\
[ 7181.5] dmatest: dma0chan0-copy0: summary 1000 tests, 0 failures 65291.19 iops 4178636 KB/s (0)
[ 7181.5] CPUs hit: #52:417 #63:583  (times)
> [ 7181.6] dmatest: dma0chan0-copy0: summary 1000 tests, 0 failures 76173.06 iops 4875076 KB/s (0)
> [ 7181.6] CPUs hit: #49:1000  (times)
";
    expect(good, 6, &[]);
    expect(&good.replace("4178636", "4178646"), 6, &[(1, "4178646 KB/s", "4178636 KB/s", Kind::Dmatest)]);
    expect(&good.replace("#63:583", "#63:593"), 6, &[(2, "1010", "1000", Kind::CpusHit)]);
    expect(
        &good.replace("#52:417 #63:583", "#63:583 #52:417"),
        7,
        &[(2, "#63 before #52", "CPUs ascending", Kind::CpusHit)],
    );
    let report = check(&good.replace("76173.06", "67173.06"));
    assert_eq!(report.findings.len(), 1, "{report:#?}");
}

#[test]
fn task_arithmetic_of_hackbench_and_perf() {
    let good = "\
Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)
> Running in threaded mode with 2 groups using 40 file descriptors each
> (== 80 tasks)
# 10 groups == 400 processes run
";
    expect(good, 3, &[]);
    expect(
        &good.replace("== 400 tasks", "== 440 tasks"),
        3,
        &[(1, "440 tasks", "400 tasks", Kind::TaskArithmetic)],
    );
    expect(&good.replace("== 80", "== 40"), 3, &[(3, "40 tasks", "80 tasks", Kind::TaskArithmetic)]);
    expect(&good.replace("400 proc", "200 proc"), 3, &[(4, "200 tasks", "400 tasks", Kind::TaskArithmetic)]);
}

#[test]
fn percentiles_are_in_order_and_in_buckets() {
    let one = "\
Latency percentiles (usec)
\t50.0000th: 34
\t75.0000th: 8008
\t90.0000th: 15248
\t*99.0000th: 61760
\t99.9000th: 278016
\tmin=0, max=277822
";
    expect(one, 10, &[]);
    expect(&one.replace("61760", "61761"), 10, &[(5, "61761", "61760", Kind::Bucket)]);
    expect(&one.replace("15248", "1234"), 10, &[(4, "1234", "at least 8008", Kind::PercentileOrder)]);
    let expected = [(7, "278016", "at most 199936", Kind::PercentileOrder)];
    expect(&one.replace("277822", "200000"), 10, &expected);
    // Side by side, as the wake-list thread has them.
    let two = "\
schbench -m 2 -t 8
Latency percentiles (usec)                before        after
    50.0000th:                             8               6
    75.0000th:                            10               7
    *99.0000th:                           13              10
    99.9000th:                            18              14
";
    expect(two, 14, &[]);
    expect(
        &two.replace("18              14", "18               9"),
        14,
        &[(6, "9", "at least 10", Kind::PercentileOrder)],
    );
    let counted = "\
Wakeup Latencies percentiles (usec) runtime 2 (s) (284 total samples)
\t  50.0th: 16         (86 samples)
\t* 99.0th: 4312       (226 samples)
\t  min=4, max=4911
";
    expect(counted, 6, &[(3, "312 samples up to here", "at most 284", Kind::SampleCount)]);
}

#[test]
fn hostile_texts_are_passed_over() {
    let huge = "1.5 2.5 3.5 4.5% ".repeat(200_000);
    let many = "Amean 1 58.69 (0.00%) 30.21 (48.53%)\n".repeat(50_000);
    for (text, checked) in [
        ("", 0),
        ("\n\n\n", 0),
        ("Hello,\n\nthe patch is fine by me.\n", 0),
        ("Amean 1 1e400 (0.00%) 1e400 (-1e400%)\n1e-400 -> 1e400 (5%)\n", 0),
        ("w/o: 1e400 1e400=1e400\nNaN inf -nan% (nan%)\n", 0),
        ("Amean 1 0.00 (0.00%) 0.00 (0.00%)\nAmean 2 -5.00 (0.00%) 3.00 (-nan%)\n", 0),
        ("((((((****||||====%%%%\n= = = % % %\n%\n|%|%|\n", 0),
        ("\u{0}\u{1}\u{7f}\u{202e}\n> > > >>>>>>\n>\n", 0),
        ("dmatest: x: summary 99999999999999999999 tests, 0 failures 1.00 iops 1 KB/s (0)\n", 0),
        ("dmatest: x: summary 0 tests, 0 failures 0.00 iops 0 KB/s (0)\n", 1),
        (huge.as_str(), 0),
        (many.as_str(), 50_000),
    ] {
        let report = check(text);
        assert!(report.findings.is_empty(), "{:?}: {report:#?}", &text[..text.len().min(80)]);
        assert_eq!(report.checked, checked, "{:?}", &text[..text.len().min(80)]);
    }
    for text in [
        "dmatest: x: summary 18446744073709551615 tests, 18446744073709551615 failures 184467440737095516.15 iops 18446744073709551615 KB/s (-9223372036854775808)\n",
        "dmatest: x: summary 18446744073709551615 tests, 0 failures 0.01 iops 1 KB/s (0)\n",
        "CPUs hit: #1:18446744073709551615 #2:18446744073709551615  (times)\n",
        "Running in process mode with 18446744073709551615 groups using 40 file descriptors each (== 1 tasks)\n",
    ] {
        let _ = check(text);
    }
}

/// Lines with a percent sign that look like rows, and are not.
#[test]
fn other_tools_tables_raise_no_alarm() {
    for text in [
        "/dev/sda1        100  50  50  50% /\nFilesystem  Size  Used Avail Use%\n",
        "     3,723,554      context-switches          #    0.123 M/sec                    ( +-  0.12% )\n",
        "       12,345      cache-misses              #   12.345 % of all cache refs      (62.34%)\n",
        "hit 417 of 1000 (41.7%)\n",
        "  PID USER   PR  NI   VIRT   RES   SHR S  %CPU %MEM\n 1234 root   20   0  12345  2345  1234 R  99.7  0.1\n",
        "96.4% util, 27.7% GUI\n",
        "throughput -0.5...-2.5 %, p95 +1...5 %\n",
        "stream: copy 29929 -> 32933, add +19.85 %; mcf +13.6 % Kunpeng\n",
        "cpu0 12 345 7.5%\n",
        "memory with base pages\nused 12.3 45.6 21.2%\n",
        "1  7.58 (1.1%)  7.66 (0.9%)\n2  100 (1.1%)  101 (0.9%)\n",
        "mean and deviation after a change\n| 1 | 7.5853 | 0.0836 | 1.10% |\n",
        "grew from 2 to 4 (50% of the CPUs)\n",
        "After 10 minutes\nbefore 3 patches\nthe performance gain is 20%\n",
        "1.5 2.5 = 4.0\n",
        "T: 0 (1) P:80 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n",
        "      3.25 \u{b1}  5%     +12.3%       3.65 \u{b1}  2%  will-it-scale\n",
    ] {
        let report = check(text);
        assert!(report.findings.is_empty(), "{text}{report:#?}");
    }
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() { files(&path, out) } else { out.push(path) }
    }
}

#[test]
fn no_false_alarm_on_any_recorded_output() {
    let Some(root) = ttwu_testing::shared("golden") else { return };
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let mut checked = std::collections::BTreeMap::new();
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let mut report = check(&text);
        if path.starts_with(root.join("mmtests").join("work").join("sb")) {
            // Made from seeded values, not by schbench: its buckets could not have printed them.
            let made_up = report.findings.len();
            report.findings.retain(|finding| finding.kind != Kind::Bucket);
            assert!(made_up > report.findings.len(), "{}", path.display());
        }
        assert!(report.findings.is_empty(), "{}: {:#?}", path.display(), report.findings);
        checked.insert(path.strip_prefix(&root).expect("inside").display().to_string(), report.checked);
    }
    // What there is to check is checked.
    for (name, count) in [
        ("mmtests/c1-hackbench.out", 54),
        ("mmtests/d1-2020-dbench4-sig.out", 44),
        ("perf-sched/latency.txt", 40),
        ("hackbench/ten-runs-pT-g1-l1000.txt", 1),
        ("unixbench/run-context1-i1.txt", 4),
        ("schbench-new/json-stdout.txt", 40),
        ("perf-bench/pipe-l20000.txt", 2),
        ("cyclictest/q-t2-l200.txt", 2),
    ] {
        assert!(checked[name] >= count, "{name}: only {} checked", checked[name]);
    }
}

#[test]
fn the_threads_chapter_raises_no_alarm() {
    let Some(chapter) = ttwu_testing::shared("spec/12-threads-and-experiments.md") else { return };
    let report = check(&std::fs::read_to_string(chapter).expect("text"));
    assert!(report.checked >= 7, "{report:#?}");
    assert!(report.findings.is_empty(), "{report:#?}");
}

#[test]
fn damaged_texts_never_panic() {
    let Some(root) = ttwu_testing::shared("golden") else { return };
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let own = [CLUSTER.as_bytes(), DBENCH.as_bytes()].map(<[u8]>::to_vec);
    for bytes in paths.iter().map(|path| std::fs::read(path).expect("file")).chain(own) {
        for seed in 0..12 {
            let damaged = ttwu_testing::damage(&bytes, seed);
            let report = check(&String::from_utf8_lossy(&damaged));
            assert!(report.findings.len() <= report.checked);
        }
    }
}
