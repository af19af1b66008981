//! `ttwu report sample`: a recording that is part of the program.

use crate::args;
use crate::exit::{Failure, Outcome};
use ttwu_trace::{Input, TraceStream};

/// `perf bench sched messaging -g 1 -l 20` on a virtual machine of two CPUs; fixtures/ORIGIN.md says more.
const SAMPLE: &[u8] = include_bytes!("../../fixtures/messaging.ttwu");
const NAME: &str = "embedded sample (perf bench sched messaging -g 1)";

/// Is it what was asked for? A file of that name comes first.
pub(crate) fn is_meant(args: &args::Report) -> bool {
    args.file.as_os_str() == "sample" && !args.file.exists()
}

/// Reports on the embedded sample.
pub(crate) fn run(args: &args::Report) -> Outcome {
    let stream = TraceStream::from_input(Input::from_bytes(SAMPLE.to_vec(), NAME)).map_err(Failure::input)?;
    super::report::report(args, stream, NAME)
}
