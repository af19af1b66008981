//! `ttwu reproduce`: the five mailing-list threads, published beside simulated.

use crate::args;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print};
use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use ttwu_lab::reproduce::{
    EXPERIMENTS, Effort, Experiment, Reproduced, Verdict, render_headlines, render_json, render_text,
};

/// Reproduces the threads that were named.
pub(crate) fn run(args: &args::Reproduce) -> Outcome {
    let experiments = chosen(&args.threads)?;
    let effort = Effort {
        seeds: args.seeds,
        sensitivity_seeds: args.sensitivity,
        threads: args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
    };
    let done: Vec<Reproduced> =
        experiments.into_iter().map(|experiment| reproduce(experiment, effort, args.quiet)).collect();
    match args.format {
        OutputFormat::Text => print(&done.iter().map(render_text).collect::<Vec<_>>().join("\n"))?,
        OutputFormat::Json => print(&format!("{:#}", render_json(&done)))?,
    };
    let fails = |verdict| matches!(verdict, Verdict::Fails | Verdict::Missing);
    let any = done.iter().flat_map(|one| &one.claims).any(|judged| fails(judged.verdict));
    Ok(if any { Done::No } else { Done::Ok })
}

/// `ttwu` without a command: the one-screen version.
pub(crate) fn headlines() -> Outcome {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let effort = Effort { seeds: 4, sensitivity_seeds: 0, threads };
    let done: Vec<Reproduced> =
        EXPERIMENTS.iter().map(|experiment| experiment.headlines(effort, &|_, _| {})).collect();
    print(&render_headlines(&done))?;
    crate::output::say("");
    crate::output::say(
        "`ttwu reproduce` has all claims with counters and sensitivity, `ttwu --help` the rest.",
    );
    Ok(Done::Ok)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    if names.is_empty() || names.iter().any(|name| name == "all") {
        return Ok(EXPERIMENTS.to_vec());
    }
    names
        .iter()
        .map(|name| {
            // Abbreviations, as everywhere in the command.
            let mut found =
                EXPERIMENTS.into_iter().filter(|experiment| experiment.name.starts_with(name.as_str()));
            match (found.next(), found.next()) {
                (Some(one), None) => Ok(one),
                (Some(_), Some(_)) | (None, _) => {
                    let known = EXPERIMENTS.map(|experiment| experiment.name).join(", ");
                    Err(Failure::input(anyhow!("no thread is called `{name}`; threads: {known}, all")))
                }
            }
        })
        .collect()
}

fn reproduce(experiment: &'static Experiment, effort: Effort, quiet: bool) -> Reproduced {
    let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
    let template = format!("{:<9} {{wide_bar}} {{pos}}/{{len}} runs, {{eta}} left", experiment.name);
    bar.set_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let reproduced = experiment.reproduce(effort, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    reproduced
}
