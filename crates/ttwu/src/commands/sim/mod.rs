//! `ttwu sim`: one run of a scenario, printed as the workload's original prints, and what the scheduler did below.

mod load;
mod render;
mod set;
mod shipped;
mod trace;

use crate::clock::Stopwatch;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print, say};
use anyhow::anyhow;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;
use ttwu_host::record::{SignalGuard, StopHandle};
use ttwu_sim::{Control, End, Options, Progress, Scenario, Switch};

/// `ttwu sim`
#[derive(Debug, Args)]
#[command(
    after_help = "A scenario is a file as docs/scenario.md describes, or an example by name (--list).\n\
--set takes the keys of a scenario (policy, machine, workload, duration, …), of its settings\n\
and costs, and changes of the policy (+FEATURE, -FEATURE, base_slice_ns=3000000).\n\n\
Examples:\n  ttwu sim hackbench\n  \
ttwu sim schbench --seed 7 --set policy=linux-6.6 -o run.ttwu\n  \
ttwu sim rpc --set machine=i7-4790 --set=-RUN_TO_PARITY --format json"
)]
pub(crate) struct Sim {
    /// Scenario: a file, - for standard input, or an example's name
    #[arg(value_name = "SCENARIO", default_value = "hackbench")]
    scenario: String,
    /// Seed of all draws; default: the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Change the scenario
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Write what tracepoints would have said (.ttwu, .pftrace, .json; .parquet where built in)
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,
    /// Print the scenario as a file that needs no other, and do not run it
    #[arg(long)]
    print_scenario: bool,
    /// Print the scenario's id, and do not run it
    #[arg(long, conflicts_with = "print_scenario")]
    scenario_id: bool,
    /// List the examples
    #[arg(long)]
    list: bool,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// No progress, no notes
    #[arg(short, long)]
    quiet: bool,
}

/// A run that has ended.
struct Finished {
    scenario: Scenario,
    outcome: ttwu_sim::Outcome,
    wall: Duration,
    trace: Option<trace::Written>,
    /// Why there is none though one was asked for.
    no_trace: Option<Failure>,
}

/// Runs.
pub(crate) fn run(args: &Sim) -> Outcome {
    if args.list {
        return print(&shipped::list());
    }
    let scenario = scenario(args)?;
    if args.print_scenario {
        return print(&scenario.to_toml());
    }
    if args.scenario_id {
        return print(&scenario.id().to_string());
    }
    let finished = simulate(args, scenario)?;
    print(&match args.format {
        OutputFormat::Text => render::as_text(&finished),
        OutputFormat::Json => format!("{:#}", render::as_json(&finished)),
    })?;
    if !args.quiet {
        for line in render::warnings(&finished) {
            say(&format!("ttwu: warning: {line}"));
        }
    }
    if let Some(failure) = finished.no_trace {
        return Err(failure);
    }
    Ok(match finished.outcome.end {
        End::Completed | End::TimeLimit => Done::Ok,
        End::Stuck => Done::No,
        End::Cancelled => Done::Interrupted,
    })
}

/// The scenario with what the flags change in it; what its reader should know goes to standard error.
fn scenario(args: &Sim) -> Result<Scenario, Failure> {
    let source = load::open(&args.scenario)?;
    let (mut scenario, notes) = Scenario::parse_with_notes(&source.text, &source.surroundings)
        .map_err(|error| Failure::input(anyhow!("{}:{error}", source.name)))?;
    if !args.set.is_empty() {
        scenario = set::apply(&source, scenario, &args.set).map_err(Failure::input)?;
    }
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    if !args.quiet {
        for note in notes {
            say(&format!("ttwu: note: {note}"));
        }
    }
    Ok(scenario)
}

fn simulate(args: &Sim, scenario: Scenario) -> Result<Finished, Failure> {
    // Before the run, so that a bad place for the trace costs no time.
    let file = args.output.as_deref().map(trace::Place::new).transpose().map_err(Failure::input)?;
    let stop = StopHandle::new().map_err(Failure::input)?;
    let signals = SignalGuard::install(&stop).map_err(Failure::input)?;
    let bar = bar(args.quiet);
    let mut watch = |progress: Progress| {
        bar.set_message(format!(
            "simulated {:.3} of at most {:.3} s, {:.1} M events",
            progress.now_ns as f64 / 1e9,
            progress.until_ns as f64 / 1e9,
            progress.events as f64 / 1e6
        ));
        bar.tick();
        if signals.arrived().is_some() { Control::Cancel } else { Control::Continue }
    };
    let kept = if file.is_some() { Switch::On } else { Switch::Off };
    let mut options = Options { trace: kept, decisions: kept, progress: Some(&mut watch) };
    let start = Stopwatch::start();
    let outcome = catch_unwind(AssertUnwindSafe(|| ttwu_sim::run(&scenario, &mut options)));
    let wall = start.elapsed();
    bar.finish_and_clear();
    let mut outcome = outcome.map_err(|_| {
        // The assertion has spoken on standard error.
        Failure::input(anyhow!(
            "the simulator found itself or the workload at fault; `--print-scenario` gives what reproduces it (id {})",
            scenario.id()
        ))
    })?;
    if file.as_ref().is_some_and(trace::Place::may_wait) {
        // A pipe without a reader: from here on a signal ends the program.
        drop(signals);
    }
    let written = match (file, outcome.trace.take()) {
        (Some(file), Some(trace)) => file.write(&trace, &outcome.decisions).map(Some),
        (Some(_), None) | (None, Some(_)) | (None, None) => Ok(None),
    };
    // A run may have taken an hour: its result is printed even if its trace has no room.
    let (trace, no_trace) = match written {
        Ok(trace) => (trace, None),
        Err(error) => (None, Some(Failure::input(error))),
    };
    Ok(Finished { scenario, outcome, wall, trace, no_trace })
}

fn bar(quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a constant template");
    ProgressBar::new_spinner().with_style(style)
}
