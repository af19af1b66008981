//! Scores placements from plain events of the recordings named on the command line (a trial).
use std::path::Path;
use ttwu_conform::{ReconstructReport, Recording, reconstruct};

fn main() {
    let mut total = ReconstructReport::default();
    for path in std::env::args().skip(1) {
        let recording = Recording::open(Path::new(&path)).expect("opens");
        let trace = ttwu_trace::read(recording.trace().expect("has a trace")).expect("reads");
        let report = reconstruct(&trace, recording.policy(), recording.machine());
        print(recording.name(), &report);
        total.merge(&report);
    }
    print("total", &total);
    for found in total.model.examples() {
        let miss = &found.example;
        println!(
            "  {} x {:?} ({}): event {} at {} {}",
            found.count, miss.cause, miss.test, miss.line, miss.ts, miss.text
        );
    }
}

fn print(name: &str, report: &ReconstructReport) {
    println!(
        "{name}\n  model {}\n  prev {}\n  this {}\n  certain {}",
        report.model, report.always_prev, report.always_this, report.certain
    );
    println!("  set aside {:?}", report.unreconstructible);
    println!("  no placement {:?}\n  hangs on {:?}", report.without_placement, report.hangs_on);
}
