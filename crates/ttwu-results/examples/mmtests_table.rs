//! Prints one of mmtests' tables, taking compare-mmtests.pl's own options: for checking against a real mmtests.
//!
//! `cargo run -p ttwu-results --example mmtests_table -- 2024 -d work -b hackbench-process-pipes -n base,new`

use std::process::ExitCode;
use ttwu_results::mmtests::{Options, R, Style, compare};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| {
        words.iter().position(|word| word == flag).and_then(|place| words.get(place + 1)).cloned()
    };
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let options = Options {
        directory: after("-d").unwrap_or_default().into(),
        benchmark: after("-b").unwrap_or_default(),
        alternative: after("-a"),
        arms: after("-n").unwrap_or_default().split(',').map(str::to_owned).collect(),
        style: if has("2020") { Style::Classic2020 } else { Style::Interval2024 },
        sub_heading: after("--sub-heading"),
        print_significance: has("--print-significance"),
        print_ratio: has("--print-ratio"),
        r: if has("--without-r") { R::Missing } else { R::Works },
    };
    match compare(&options) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
