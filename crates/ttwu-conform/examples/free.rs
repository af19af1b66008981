//! Runs the recordings named on the command line by themselves (a trial; `ttwu conform --free` is the product's form).
use std::path::Path;
use ttwu_conform::{Recording, free_run};

fn main() {
    for path in std::env::args().skip(1) {
        let recording = Recording::open(Path::new(&path)).expect("opens");
        let trace = ttwu_trace::read(recording.trace().expect("has a trace")).expect("reads");
        let report = free_run(&trace, recording.policy(), recording.machine());
        println!("{} {report:?}", recording.name());
    }
}
