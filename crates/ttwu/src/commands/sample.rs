//! `ttwu` without a command: the overview of a recording that is part of the program.

use crate::args::{Cli, Command};
use crate::exit::{Failure, Outcome};
use clap::Parser;
use ttwu_trace::{Input, TraceStream};

/// `perf bench sched messaging -g 1 -l 20` on a virtual machine of two CPUs; fixtures/ORIGIN.md says more.
const SAMPLE: &[u8] = include_bytes!("../../fixtures/messaging.ttwu");
const NAME: &str = "embedded sample (perf bench sched messaging -g 1)";

/// Reports on the embedded sample.
pub(crate) fn run() -> Outcome {
    let cli = Cli::parse_from(["ttwu", "report", NAME]);
    let Some(Command::Report(args)) = cli.command else { unreachable!("the line above asks for a report") };
    let stream = TraceStream::from_input(Input::from_bytes(SAMPLE.to_vec(), NAME)).map_err(Failure::input)?;
    super::report::report(&args, stream, NAME)?;
    crate::output::say("");
    crate::output::say(
        "This was a sample; `ttwu record -- CMD` makes a recording of this machine, `ttwu --help` says more.",
    );
    Ok(crate::exit::Done::Ok)
}
