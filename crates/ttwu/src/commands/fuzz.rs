//! `ttwu fuzz`: random scenarios with all checkers, for so long.

use crate::clock::Stopwatch;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;
use ttwu_host::record::{SignalGuard, StopHandle};
use ttwu_lab::fuzz::{Campaign, all_checkers, fuzz};

/// `ttwu fuzz`
#[derive(Debug, Args)]
#[command(
    after_help = "Checked are the simulator's own assertions, equal runs from equal files, runs that a trace does\n\
not change, one CPU a task, affinity, and conserved time. Exit code 1: something failed; the\n\
smallest scenario found that does is printed.\n\nExample:\n  ttwu fuzz --time 60 --seed 1"
)]
pub(crate) struct Fuzz {
    /// Seed of the scenarios
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    time: u64,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

/// Fuzzes; the answer is "no" when something failed.
pub(crate) fn run(args: &Fuzz) -> Outcome {
    let stop = StopHandle::new().map_err(Failure::input)?;
    let signals = SignalGuard::install(&stop).map_err(Failure::input)?;
    let bar = bar(args.quiet);
    let (start, limit) = (Stopwatch::start(), Duration::from_secs(args.time));
    // Panics are findings here, and are printed as such.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let campaign = fuzz(args.seed, &all_checkers, &mut |so_far| {
        bar.set_message(format!("{} runs, {} failures", so_far.runs, so_far.failures.len()));
        bar.tick();
        start.elapsed() < limit && signals.arrived().is_none()
    });
    std::panic::set_hook(hook);
    bar.finish_and_clear();
    print(&match args.format {
        OutputFormat::Text => as_text(args.seed, &campaign),
        OutputFormat::Json => format!("{:#}", as_json(args.seed, &campaign)),
    })?;
    Ok(match (campaign.failures.is_empty(), signals.arrived().is_some()) {
        (_, true) => Done::Interrupted,
        (true, false) => Done::Ok,
        (false, false) => Done::No,
    })
}

fn as_text(seed: u64, campaign: &Campaign) -> String {
    let mut out = String::new();
    for failure in &campaign.failures {
        let message = failure.message.replace('\n', "\n# ");
        let _ = writeln!(
            out,
            "# {}: {message}\n# run {} of seed {seed}, minimised",
            failure.checker, failure.run
        );
        let _ = writeln!(out, "{}", failure.scenario);
    }
    let _ = writeln!(
        out,
        "# {} scenarios run with all checkers, {} kinds of failure",
        campaign.runs,
        campaign.failures.len()
    );
    out
}

fn as_json(seed: u64, campaign: &Campaign) -> Value {
    let failures: Vec<Value> = campaign
        .failures
        .iter()
        .map(|failure| {
            json!({
                "scenario": failure.scenario,
                "checker": failure.checker,
                "message": failure.message,
                "run": failure.run,
            })
        })
        .collect();
    json!({
        "schema": "ttwu/fuzz/1",
        "seed": seed,
        "runs": campaign.runs,
        "refused": campaign.refused,
        "failures": failures,
    })
}

fn bar(quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a constant template");
    ProgressBar::new_spinner().with_style(style)
}
