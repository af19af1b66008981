//! What mmtests prints at the edges: no spread, one sample, zeros, an operation that an arm lacks, odd names, more arms than
//! operations.
//!
//! The expected texts are the output of mmtests 638401e0 (June 2026) and f8bb2480 (January 2020) with R 4.2.2 and Perl
//! 5.36 on the trees that these tests write.

use std::io::Write;
use std::path::Path;
use ttwu_results::mmtests::{Error, Missing, Options, R, Style, compare, header, missing};

fn write(root: &Path, arm: &str, benchmark: &str, file: &str, text: &str) {
    let logs = root.join(arm).join("iter-0").join(benchmark).join("logs");
    std::fs::create_dir_all(&logs).expect("directories");
    std::fs::write(logs.join(file), text).expect("a log");
}

fn hackbench(root: &Path, arm: &str, groups: &str, times: &[&str]) {
    let text: String = times.iter().map(|time| format!("Total time: {time} [sec]\n")).collect();
    write(root, arm, "hackbench-process-pipes", &format!("hackbench-{groups}"), &text);
    write(root, arm, "hackbench-thread-pipes", &format!("hackbench-{groups}-1"), &text);
}

/// As xz and gzip would leave them, but for the packing: a reader that knows the names finds the plain files too.
fn tbench(root: &Path, arm: &str, clients: &str, rates: &[&str]) {
    let line = |(second, rate): (usize, &&str)| {
        format!("   1 {} {rate} MB/sec  execute {second} sec  latency 0.100 ms\n", second * 100)
    };
    let text: String = rates.iter().enumerate().map(line).collect();
    write(root, arm, "tbench", &format!("benchlog-tput-{clients}"), &text);
    write(root, arm, "tbench4", &format!("tbench-{clients}.log"), &text);
}

const LONG: &str = "a-long-name-that-overflows-the-column-by-far";

fn tree() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    hackbench(root, "vanilla", "1", &["2.0", "2.0", "2.0"]);
    hackbench(root, "vanilla", "2", &["5"]);
    hackbench(root, "6.1-rc3-fix", "1", &["1.9", "1.9", "1.9"]);
    hackbench(root, "6.1-rc3-fix", "2", &["9", "9.1"]);
    hackbench(root, "6.1-rc3-fix", "4", &["1"]);
    hackbench(root, LONG, "1", &["0", "0"]);
    tbench(root, "b-1", "1", &["5", "6", "7"]);
    tbench(root, "b-1", "2", &["5", "0", "7"]);
    tbench(root, "b-1", "3", &["4", "4"]);
    tbench(root, "b-1", "4", &["4"]);
    tbench(root, "n-1", "1", &["5", "0", "6"]);
    tbench(root, "n-1", "2", &["5", "5", "6"]);
    tbench(root, "n-1", "3", &["6.5", "6.5"]);
    tbench(root, "n-1", "4", &["40", "40.1"]);
    directory
}

fn options(root: &Path, style: Style, benchmark: &str, arms: &[&str]) -> Options {
    Options {
        directory: root.to_owned(),
        benchmark: benchmark.to_owned(),
        alternative: None,
        arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
        style,
        sub_heading: None,
        print_significance: true,
        print_ratio: false,
        r: R::Works,
    }
}

#[track_caller]
fn check(options: &Options, expected: &str) {
    let printed = compare(options).expect("a table");
    for (mine, theirs) in printed.lines().zip(expected.lines()) {
        assert_eq!(mine, theirs);
    }
    assert_eq!(printed, expected);
}

#[test]
fn no_spread_one_sample_and_missing_operations_in_2024() {
    let tree = tree();
    check(
        &options(
            tree.path(),
            Style::Interval2024,
            "hackbench-process-pipes",
            &["vanilla", "6.1-rc3-fix", LONG],
        ),
        HACKBENCH_2024,
    );
}

#[test]
fn no_spread_one_sample_and_missing_operations_in_2020() {
    let tree = tree();
    check(
        &options(
            tree.path(),
            Style::Classic2020,
            "hackbench-thread-pipes",
            &["vanilla", "6.1-rc3-fix", LONG],
        ),
        HACKBENCH_2020,
    );
}

#[test]
fn a_harmonic_mean_with_a_zero_in_2020() {
    let tree = tree();
    check(&options(tree.path(), Style::Classic2020, "tbench4", &["b-1", "n-1"]), TBENCH_2020);
}

#[test]
fn ratios_without_spread_and_with_a_missing_operation() {
    let tree = tree();
    let options =
        options(tree.path(), Style::Interval2024, "hackbench-process-pipes", &["6.1-rc3-fix", "vanilla"]);
    check(&Options { print_ratio: true, ..options }, HACKBENCH_RATIO);
}

#[test]
fn ratios_of_more_arms_than_operations_print_bare_numbers() {
    let tree = tree();
    let options = options(tree.path(), Style::Interval2024, "tbench", &["b-1", "n-1", "b-1", "n-1"]);
    check(&Options { print_ratio: true, sub_heading: Some("tput-1".to_owned()), ..options }, TBENCH_RATIO);
}

#[test]
fn either_style_reads_either_layout() {
    let tree = tree();
    let arms = ["vanilla", "6.1-rc3-fix", LONG];
    let newer = options(tree.path(), Style::Classic2020, "hackbench-process-pipes", &arms);
    check(&newer, HACKBENCH_2020);
    let older = options(tree.path(), Style::Interval2024, "hackbench-thread-pipes", &arms);
    check(&older, HACKBENCH_2024);
}

#[test]
fn what_prints_as_0_although_it_is_missing_is_told() {
    let tree = tree();
    let arms = ["vanilla", LONG, "b-1"];
    let options = options(tree.path(), Style::Interval2024, "hackbench-process-pipes", &arms);
    let lacking = |arm: &str, operations: &[&str]| Missing {
        arm: arm.to_owned(),
        operations: operations.iter().map(|operation| (*operation).to_owned()).collect(),
    };
    let expected = [lacking(LONG, &["time-2"]), lacking("b-1", &["time-1", "time-2"])];
    assert_eq!(missing(&options).expect("a tree"), expected);
}

/// Times of time(1) as in the newer state's tables, with an hour, a minute and neither.
#[test]
fn kernbench_and_sysbench_are_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    for (arm, minutes) in [("a-1", "12:34.56"), ("b-1", "1:02:03.45")] {
        let text = format!("100.25user 20.50system {minutes}elapsed 99%CPU (0avgtext)\n0inputs+0outputs\n");
        write(root, arm, "kernbench", "time-8-1", &text);
        write(root, arm, "kernbench", "time-16-1", &text.replace(minutes, "59.50"));
        write(root, arm, "sysbench", "sysbench-raw-8-1", "    transactions:    900   (75.25 per sec.)\n");
    }
    let rows = |benchmark: &str, name: &str| -> Vec<String> {
        let options = options(root, Style::Interval2024, benchmark, &["a-1", "b-1"]);
        let text = compare(&options).expect("a table");
        text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    };
    assert_eq!(
        rows("kernbench", "Amean"),
        [
            "Amean     Elapsed-8             754.56 (   0.00%)           3723.45 (-393.46%)",
            "Amean     Elapsed-16             59.50 (   0.00%)             59.50 (   0.00%)",
            "Amean     System-8               20.50 (   0.00%)             20.50 (   0.00%)",
            "Amean     System-16              20.50 (   0.00%)             20.50 (   0.00%)",
            "Amean     User-8                100.25 (   0.00%)            100.25 (   0.00%)",
            "Amean     User-16               100.25 (   0.00%)            100.25 (   0.00%)",
        ]
    );
    assert_eq!(
        rows("sysbench", "Hmean"),
        ["Hmean     txn/sec-8             75.25 (   0.00%)             75.25 (   0.00%)"]
    );
}

#[test]
fn errors_say_what_is_there() {
    let tree = tree();
    let told = |benchmark: &str, arm: &str| {
        compare(&options(tree.path(), Style::Interval2024, benchmark, &[arm]))
            .expect_err("an error")
            .to_string()
    };
    assert!(told("tbench", "vanila").contains(": did you mean `vanilla`? There are 6.1-rc3-fix, "));
    assert!(told("tbench", "x").contains(": there are 6.1-rc3-fix, "));
    assert!(
        told("schbench", "vanilla")
            .ends_with("it has results of: hackbench-process-pipes, hackbench-thread-pipes")
    );
    assert!(
        told("hackbnech", "vanilla")
            .starts_with("unknown benchmark `hackbnech` in style mmtests-2024: expected one of")
    );
    let no_arm = compare(&options(tree.path(), Style::Interval2024, "tbench", &[]));
    assert!(matches!(no_arm, Err(Error::NoArms { .. })), "{no_arm:?}");
    let options = options(tree.path(), Style::Interval2024, "tbench", &["b-1"]);
    let bad = compare(&Options { sub_heading: Some("(".to_owned()), ..options });
    assert!(matches!(bad, Err(Error::SubHeading { .. })), "{bad:?}");
}

#[test]
fn an_arm_that_is_none_is_an_error_wherever_it_stands() {
    let tree = tree();
    let wrong = compare(&options(tree.path(), Style::Interval2024, "tbench", &["b-1", "n-2"]));
    let text = wrong.expect_err("an error").to_string();
    assert!(text.starts_with("no arm `n-2` below ") && text.contains("did you mean `n-1`?"), "{text}");
}

#[test]
fn sub_headings_and_reports_that_are_none_list_what_there_is() {
    let tree = tree();
    let told = |options: Options| compare(&options).expect_err("an error").to_string();
    let tbench = options(tree.path(), Style::Interval2024, "tbench", &["b-1", "n-1"]);
    assert_eq!(
        told(Options { sub_heading: Some("nope".to_owned()), ..tbench.clone() }),
        "no operation of `b-1` begins with `nope`: there are tput-1, tput-2, tput-3, tput-4"
    );
    assert_eq!(
        told(Options { alternative: Some("nope".to_owned()), ..tbench }),
        "`tbench` has no report `nope` in style mmtests-2024: there is the main report only; `--sub-heading` selects \
         operations of it"
    );
    let dbench = options(tree.path(), Style::Classic2020, "dbench4", &["b-1", "n-1"]);
    assert_eq!(
        told(Options { alternative: Some("nope".to_owned()), ..dbench }),
        "`dbench4` has no report `nope` in style mmtests-2020: there are the main one and `latency`, `opslatency`, `tput`"
    );
    let tbench = options(tree.path(), Style::Classic2020, "tbench4", &["b-1", "n-1"]);
    let whole = told(Options { sub_heading: Some("9".to_owned()), ..tbench });
    assert_eq!(whole, "no operation of `b-1` is `9`: there are 1, 2, 3, 4");
}

#[test]
fn a_ratio_table_of_2020s_schbench_shows_what_the_last_iteration_has() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    for (arm, value) in [("b-1", 40), ("n-1", 50)] {
        let text = format!("Latency percentiles (usec)\n\t*99.0000th: {value}\n");
        write(root, arm, "schbench", "schbench-1.log", &text);
    }
    let options = options(root, Style::Classic2020, "schbench", &["b-1", "n-1"]);
    let options = Options { print_ratio: true, ..options };
    let row = |text: String| text.lines().nth(2).expect("a row").to_owned();
    let before = row(compare(&options).expect("a table"));
    assert!(before.ends_with("        1.25 (-25.00%) (NaNs)"), "{before}");
    std::fs::create_dir_all(root.join("n-1/iter-1")).expect("a directory");
    let after = row(compare(&options).expect("a table"));
    assert!(after.ends_with("        1.00 (0.00%) (NaNs)"), "{after}");
}

#[test]
fn the_header_names_style_and_rule_in_one_line() {
    let line = header(&options(Path::new("x"), Style::Classic2020, "tbench4", &["a"]));
    assert!(line.starts_with("# style mmtests-2020; a star: p < 0.10"), "{line}");
    assert!(!line.contains('\n'));
}

#[test]
fn damaged_packed_logs_are_errors_or_tables_and_never_a_panic() {
    let tree = tree();
    let text = std::fs::read(tree.path().join("b-1/iter-0/tbench/logs/benchlog-tput-1")).expect("a log");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&text).expect("memory");
    let packed = packed.finish().expect("memory");
    let (mut errors, mut tables) = (0, 0);
    for seed in 0..200 {
        let logs = tree.path().join("b-1/iter-0/tbench/logs");
        std::fs::write(logs.join("benchlog-tput-9.gz"), ttwu_testing::damage(&packed, seed)).expect("a log");
        match compare(&options(tree.path(), Style::Interval2024, "tbench", &["b-1", "n-1"])) {
            Ok(_) => tables += 1,
            Err(Error::Read { .. }) => errors += 1,
            Err(other) => panic!("seed {seed}: {other}"),
        }
    }
    assert!(errors > 100, "{errors} errors, {tables} tables");
}

const HACKBENCH_2024: &str = concat!(
    "                                       vanill                      6.1-rc3                            a\n",
    "                                      vanilla                          fixlong-name-that-overflows-the-column-by-far\n",
    "Min       time-1            2.0000 (   0.00%)            1.9000 (   5.00%)            0.0000 ( 100.00%)\n",
    "Min       time-2            5.0000 (   0.00%)            9.0000 ( -80.00%)            0.0000 (   0.00%)\n",
    "Amean     time-1            2.0000 (   0.00%)            1.9000 *   5.00%*            0.0000 * 100.00%*\n",
    "Amean     time-2            5.0000 (   0.00%)            9.0500 ( -81.00%)            0.0000 (   0.00%)\n",
    "Stddev    time-1            0.0000 (   0.00%)            0.0000 ( -99.00%)            0.0000 (   0.00%)\n",
    "Stddev    time-2            0.0000 (   0.00%)            0.0707 (    NaN%)            0.0000 (   0.00%)\n",
    "CoeffVar  time-1            0.0000 (   0.00%)            0.0000 ( -99.00%)            0.0000 (   0.00%)\n",
    "CoeffVar  time-2            0.0000 (   0.00%)            0.7813 ( -99.00%)            0.0000 (   0.00%)\n",
    "Max       time-1            2.0000 (   0.00%)            1.9000 (   5.00%)            0.0000 ( 100.00%)\n",
    "Max       time-2            5.0000 (   0.00%)            9.1000 ( -82.00%)            0.0000 (   0.00%)\n",
    "BAmean.95 time-1            2.0000 (   0.00%)            1.9000 (   5.00%)            0.0000 ( 100.00%)\n",
    "BAmean.95 time-2            5.0000 (   0.00%)            9.0000 ( -80.00%)            0.0000 (   0.00%)\n",
    "Significant time-1            0.0000 (   0.00%)            1.0000 (225179981368525.50%)            1.0000 (   2.00%)                  \n",
    "Significant time-2            0.0000 (   0.00%)            0.0000 (   0.83%)            0.0000 (   0.00%)                  \n",
);

const HACKBENCH_2020: &str = concat!(
    "                            vanill                6.1-rc3                      a\n",
    "                           vanilla                    fixlong-name-that-overflows-the-column-by-far\n",
    "Min       1      2.0000 (   0.00%)      1.9000 (   5.00%)      0.0000 ( 100.00%)\n",
    "Min       2      5.0000 (   0.00%)      9.0000 ( -80.00%)      0.0000 (   0.00%)\n",
    "Amean     1      2.0000 (   0.00%)      1.9000 *   5.00%*      0.0000 * 100.00%*\n",
    "Amean     2      5.0000 (   0.00%)      9.0500 * -81.00%*      0.0000 *   0.00%*\n",
    "Stddev    1      0.0000 (   0.00%)      0.0000 ( -99.00%)      0.0000 (   0.00%)\n",
    "Stddev    2      0.0000 (   0.00%)      0.0707 (    NaN%)      0.0000 (   0.00%)\n",
    "CoeffVar  1      0.0000 (   0.00%)      0.0000 ( -99.00%)      0.0000 (   0.00%)\n",
    "CoeffVar  2      0.0000 (   0.00%)      0.7813 ( -99.00%)      0.0000 (   0.00%)\n",
    "Max       1      2.0000 (   0.00%)      1.9000 (   5.00%)      0.0000 ( 100.00%)\n",
    "Max       2      5.0000 (   0.00%)      9.1000 ( -82.00%)      0.0000 (   0.00%)\n",
    "BAmean-50 1      2.0000 (   0.00%)      1.9000 (   5.00%)      0.0000 ( 100.00%)\n",
    "BAmean-50 2      5.0000 (   0.00%)      9.0000 ( -80.00%)      0.0000 (   0.00%)\n",
    "BAmean-95 1      2.0000 (   0.00%)      1.9000 (   5.00%)      0.0000 ( 100.00%)\n",
    "BAmean-95 2      5.0000 (   0.00%)      9.0000 ( -80.00%)      0.0000 (   0.00%)\n",
    "BAmean-99 1      2.0000 (   0.00%)      1.9000 (   5.00%)      0.0000 ( 100.00%)\n",
    "BAmean-99 2      5.0000 (   0.00%)      9.0000 ( -80.00%)      0.0000 (   0.00%)\n",
    "Significant 1      0.0000 (   0.00%)      1.0000 (   0.00%)      1.0000 (   0.00%)            \n",
    "Significant 2      0.0000 (   0.00%)      1.0000 (   0.79%)      1.0000 (   0.00%)            \n",
);

const TBENCH_2020: &str = concat!(
    "                                 b                      n\n",
    "                                 1                      1\n",
    "Min       1        5.00 (   0.00%)        0.00 (   0.00%)\n",
    "Min       2        0.00 (   0.00%)        5.00 ( 100.00%)\n",
    "Min       3        4.00 (   0.00%)        6.50 (  62.50%)\n",
    "Min       4        4.00 (   0.00%)       40.00 ( 900.00%)\n",
    "Hmean     1        5.89 (   0.00%)        0.00 *   0.00%*\n",
    "Hmean     2        0.00 (   0.00%)        0.00 *   0.00%*\n",
    "Hmean     3        4.00 (   0.00%)        6.50 *  62.50%*\n",
    "Hmean     4        4.00 (   0.00%)       40.05 * 901.25%*\n",
    "Stddev    1        1.00 (   0.00%)        3.21 (-221.46%)\n",
    "Stddev    2        3.61 (   0.00%)        0.58 (  83.99%)\n",
    "Stddev    3        0.00 (   0.00%)        0.00 (   0.00%)\n",
    "Stddev    4        0.00 (   0.00%)        0.07 (    NaN%)\n",
    "CoeffVar  1       16.67 (   0.00%)       87.67 (-426.02%)\n",
    "CoeffVar  2       90.14 (   0.00%)       10.83 (  87.99%)\n",
    "CoeffVar  3        0.00 (   0.00%)        0.00 (   0.00%)\n",
    "CoeffVar  4        0.00 (   0.00%)        0.18 ( -99.00%)\n",
    "Max       1        7.00 (   0.00%)        6.00 ( -14.29%)\n",
    "Max       2        7.00 (   0.00%)        6.00 ( -14.29%)\n",
    "Max       3        4.00 (   0.00%)        6.50 (  62.50%)\n",
    "Max       4        4.00 (   0.00%)       40.10 ( 902.50%)\n",
    "BHmean-50 1        7.00 (   0.00%)        6.00 ( -14.29%)\n",
    "BHmean-50 2        7.00 (   0.00%)        6.00 ( -14.29%)\n",
    "BHmean-50 3        4.00 (   0.00%)        6.50 (  62.50%)\n",
    "BHmean-50 4        4.00 (   0.00%)       40.10 ( 902.50%)\n",
    "BHmean-95 1        6.46 (   0.00%)        5.45 ( -15.58%)\n",
    "BHmean-95 2        5.83 (   0.00%)        5.45 (  -6.49%)\n",
    "BHmean-95 3        4.00 (   0.00%)        6.50 (  62.50%)\n",
    "BHmean-95 4        4.00 (   0.00%)       40.10 ( 902.50%)\n",
    "BHmean-99 1        6.46 (   0.00%)        5.45 ( -15.58%)\n",
    "BHmean-99 2        5.83 (   0.00%)        5.45 (  -6.49%)\n",
    "BHmean-99 3        4.00 (   0.00%)        6.50 (  62.50%)\n",
    "BHmean-99 4        4.00 (   0.00%)       40.10 ( 902.50%)\n",
    "Significant 1        0.00 (   0.00%)        1.00 (   2.39%)            \n",
    "Significant 2        0.00 (   0.00%)        1.00 (   4.05%)            \n",
    "Significant 3        0.00 (   0.00%)        1.00 (   0.00%)            \n",
    "Significant 4        0.00 (   0.00%)        1.00 (   0.09%)            \n",
);

const HACKBENCH_RATIO: &str = concat!(
    "                                  6.1-rc3                       vanill\n",
    "                                      fix                      vanilla\n",
    "Ratio time-1            1.0000 (0.00%) (+0.00s)            1.0526 (-5.26%) (+225179981368525.50s)\n",
    "Ratio time-2            1.0000 (0.00%) (+0.00s)            0.5525 (44.75%) (+0.83s)\n",
    "Ratio time-4            1.0000 (0.00%) (+0.00s)            1.0000 (0.00%) (+0.00s)\n",
    "Dmean Lower             0.0000                 75059993789508.7812                 \n",
    "Dmin  Lower             0.0000                             0.0000                 \n",
    "Dmax  Lower             0.0000                 225179981368525.5000                 \n",
    "Gmean Lower             1.0000                             0.8347                 \n",
);

const TBENCH_RATIO: &str = concat!(
    "                                        b                            n                            b                            n\n",
    "                                        1                            1                            1                            1\n",
    "Ratio tput-1            1.0000 (0.00%) (+0.00s)            0.6111 (38.89%) (-0.28s)              1.00              0.00              0.00              0.61             38.89             -0.28\n",
    "Dmean Lower             0.0000                            -0.2825                               0.00                                                 -0.28                                    \n",
    "Dmin  Lower             0.0000                            -0.2825                               0.00                                                 -0.28                                    \n",
    "Dmax  Lower             0.0000                            -0.2825                               0.00                                                 -0.28                                    \n",
    "Gmean Lower             1.0000                             0.6111                               1.00                                                  0.61                                    \n",
);
