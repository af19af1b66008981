//! Scores the recordings named on the command line (a trial; `ttwu conform` is the product's form).
use std::path::Path;
use ttwu_conform::{PlacementReport, Recording, placements};

fn main() {
    let mut total = PlacementReport::default();
    for path in std::env::args().skip(1) {
        let recording = Recording::open(Path::new(&path)).expect("opens");
        let report = placements(&recording).expect("reads");
        print(recording.name(), &report);
        total.merge(&report);
    }
    print("total", &total);
    for score in [&total.given, &total.checks, &total.target, &total.slow_path] {
        for found in score.examples() {
            let miss = &found.example;
            println!(
                "  {} x line {} {:?} ({}): {}",
                found.count, miss.line, miss.cause, miss.test, miss.text
            );
        }
        println!();
    }
}

fn print(name: &str, report: &PlacementReport) {
    println!(
        "{name}\n  given {}\n  snapshot {}\n  checks {}\n  target {}\n  wake list: same LLC {}  other {}  self {}\n  slow {}",
        report.given,
        report.snapshot,
        report.checks,
        report.target,
        report.wake_list_same_llc,
        report.wake_list_other_llc,
        report.wake_list_self,
        report.slow_path
    );
}
