//! The `ttwu` command: flags → calls of the libraries below; progress; exit codes.
//!
//! Exit codes: 0 done, 1 the answer is "no", 2 usage or bad input, 3 the machine forbids it, 130 interrupted with what
//! there was. Results go to standard output, everything else to standard error.
#![forbid(unsafe_code)]

mod args;
mod clock;
mod commands;
mod decisions;
mod exit;
mod output;
mod place;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::parse();
    let done = commands::run(args);
    exit::code(done)
}
