//! One file a command: flags → calls → text.

pub(crate) mod calibrate;
mod check;
mod conform;
mod convert;
pub(crate) mod explain;
pub(crate) mod fuzz;
mod health;
mod lab;
mod policy;
mod record;
mod report;
mod reproduce;
mod sample;
pub(crate) mod sim;
mod topology;

use crate::args::{Cli, Command, definition};
use crate::exit::{Done, Failure, Outcome};

/// Does what the flags ask.
pub(crate) fn run(cli: Cli) -> Outcome {
    match cli.command {
        None => reproduce::headlines(),
        Some(Command::Calibrate(args)) => calibrate::run(&args),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Attribute(args)) => lab::attribute::run(&args),
        Some(Command::Sweep(args)) => lab::sweep::run(&args),
        Some(Command::Compare(args)) => lab::compare::run(&args),
        Some(Command::Conform(args)) => conform::run(&args),
        Some(Command::Convert(args)) => convert::run(&args),
        Some(Command::Policy(args)) => policy::run(&args),
        Some(Command::Record(args)) => record::run(&args),
        Some(Command::Report(args)) if sample::is_meant(&args) => sample::run(&args),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Explain(args)) => explain::run(&args),
        Some(Command::Fuzz(args)) => fuzz::run(&args),
        Some(Command::Sim(args)) => sim::run(&args),
        Some(Command::Reproduce(args)) => reproduce::run(&args),
        Some(Command::Topology(args)) => topology::run(&args),
        Some(Command::Completions { shell }) => {
            // Into memory first: the generator panics when it cannot write.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut definition(), "ttwu", &mut script);
            crate::output::print(&String::from_utf8_lossy(&script))
        }
        Some(Command::Man { folder }) => {
            clap_mangen::generate_to(definition(), &folder).map_err(Failure::input)?;
            Ok(Done::Ok)
        }
    }
}
