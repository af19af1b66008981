//! mmtests' own tables (shared/golden/mmtests) from the trees that they were made from, character for character.

use std::path::Path;
use ttwu_results::mmtests::{Options, R, Style, compare};

/// A case's options from the command on its first line, and the text that it printed.
fn case(directory: &Path, name: &str) -> (Options, String) {
    let text = std::fs::read_to_string(directory.join(name)).expect(name);
    let (command, rest) = text.split_once('\n').expect("a command line");
    let printed = rest.split("[exit ").next().unwrap_or(rest).to_owned();
    let words: Vec<&str> = command.split_whitespace().collect();
    let after = |flag: &str| words.iter().position(|word| *word == flag).map(|place| words[place + 1]);
    let options = Options {
        directory: directory.join(after("-d").expect("-d")),
        benchmark: after("-b").expect("-b").to_owned(),
        alternative: None,
        arms: after("-n").expect("-n").split(',').map(str::to_owned).collect(),
        style: if command.contains("2020)") { Style::Classic2020 } else { Style::Interval2024 },
        sub_heading: after("--sub-heading").map(str::to_owned),
        print_significance: words.contains(&"--print-significance"),
        print_ratio: words.contains(&"--print-ratio"),
        r: if command.contains("R not runnable") { R::Missing } else { R::Works },
    };
    (options, printed)
}

/// Compares line by line, so that a failure can be read. `unseeded` lines are those whose figures mmtests draws at random.
fn check(name: &str, unseeded: &[&str]) {
    let Some(directory) = ttwu_testing::shared("golden/mmtests") else { return };
    let (options, expected) = case(&directory, name);
    let printed = compare(&options).expect(name);
    assert_eq!(printed.lines().count(), expected.lines().count(), "{name}: lines");
    for (mine, theirs) in printed.lines().zip(expected.lines()) {
        if unseeded.iter().any(|start| theirs.starts_with(start)) {
            assert_eq!(mine.len(), theirs.len(), "{name}: width of `{mine}`");
        } else {
            assert_eq!(mine, theirs, "{name}");
        }
    }
    if unseeded.is_empty() {
        assert_eq!(printed, expected, "{name}");
    }
}

#[test]
fn c1_hackbench() {
    check("c1-hackbench.out", &[]);
}

#[test]
fn c1_hackbench_significance() {
    check("c1-hackbench-sig.out", &[]);
}

#[test]
fn c1_hackbench_ratio() {
    check("c1-hackbench-ratio.out", &[]);
}

#[test]
fn c2_dbench_loadfile() {
    check("c2-dbench-loadfile.out", &[]);
}

#[test]
fn c3_tbench_tput() {
    check("c3-tbench-tput.out", &[]);
}

#[test]
fn c5_pooled() {
    check("c5-pooled.out", &[]);
}

#[test]
fn c6_schbench_wakeup() {
    check("c6-schbench-wakeup.out", &[]);
}

#[test]
fn c6_schbench_rps() {
    check("c6-schbench-rps.out", &[]);
}

#[test]
fn c9_without_r() {
    check("c9-no-R.out", &[]);
}

#[test]
fn d1_2020_dbench4() {
    check("d1-2020-dbench4-sig.out", &["SubAmean", "SubmeanCI"]);
}
