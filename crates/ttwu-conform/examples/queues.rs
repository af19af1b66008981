//! Scores the queues of the recordings named on the command line (a trial; `ttwu conform` is the product's form).
use std::path::Path;
use ttwu_conform::{QueueReport, Recording, queues, queues_followed};

fn main() {
    let mut total = QueueReport::default();
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let examples = paths.first().is_some_and(|first| first == "-v");
    if examples {
        paths.remove(0);
    }
    let follow = paths.first().is_some_and(|first| first == "-f");
    if follow {
        paths.remove(0);
    }
    for path in paths {
        let recording = Recording::open(Path::new(&path)).expect("opens");
        let report = if follow { queues_followed(&recording) } else { queues(&recording) }.expect("reads");
        print(recording.name(), &report, examples);
        total.merge(&report);
    }
    print("total", &total, false);
}

fn print(name: &str, report: &QueueReport, examples: bool) {
    println!("{name}");
    for (what, score) in report.scores() {
        println!("  {what:16} {score}");
        for miss in score.examples().map(|found| &found.example).filter(|_| examples) {
            println!("      {} {}", miss.ts, miss.text);
        }
    }
    println!(
        "  set aside {:?}\n  resynchronised {}\n  lost probes {:?}",
        report.set_aside, report.resynchronised, report.lost_probes
    );
}
