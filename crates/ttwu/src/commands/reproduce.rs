//! `ttwu reproduce`: the five mailing-list threads, published beside simulated.

use super::lab::watched_by;
use crate::args;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print};
use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use ttwu_lab::reproduce::{
    EXPERIMENTS, Effort, Experiment, Reproduced, ScenarioFile, Verdict, render_headlines, render_json,
    render_text, scenario_files,
};
use ttwu_workload::nearest_name;

/// Reproduces the threads that were named.
pub(crate) fn run(args: &args::Reproduce) -> Outcome {
    let experiments = chosen(&args.threads)?;
    if args.list || args.write.is_some() {
        return files(&experiments, args.write.as_deref());
    }
    let effort = Effort {
        seeds: args.seeds,
        sensitivity_seeds: args.sensitivity,
        threads: args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
    };
    let mut done = Vec::new();
    for experiment in experiments {
        let (reproduced, interrupted) = reproduce(experiment, effort, args.quiet)?;
        done.push(reproduced);
        if interrupted {
            break;
        }
    }
    let interrupted = done.iter().any(|one| one.interrupted);
    match args.format {
        OutputFormat::Text => print(&done.iter().map(render_text).collect::<Vec<_>>().join("\n"))?,
        OutputFormat::Json => print(&format!("{:#}", render_json(&done)))?,
    };
    let fails = |verdict| matches!(verdict, Verdict::Fails | Verdict::Missing);
    let any = done.iter().flat_map(|one| &one.claims).any(|judged| fails(judged.verdict));
    Ok(match (interrupted, any) {
        (true, _) => Done::Interrupted,
        (false, true) => Done::No,
        (false, false) => Done::Ok,
    })
}

/// Names the cells' scenario files, or writes them.
fn files(experiments: &[&'static Experiment], folder: Option<&Path>) -> Outcome {
    let wanted =
        |file: &ScenarioFile| experiments.iter().any(|experiment| experiment.name == file.experiment);
    let files: Vec<ScenarioFile> = scenario_files().into_iter().filter(wanted).collect();
    let Some(folder) = folder else {
        let width = files.iter().map(|file| file.experiment.len() + file.cell.len() + 1).max().unwrap_or(0);
        let line = |file: &ScenarioFile| {
            let cell = format!("{}/{}", file.experiment, file.cell);
            format!("{cell:width$}  scenarios/reproduce/{}\n", file.path)
        };
        return print(&files.iter().map(line).collect::<String>());
    };
    for file in &files {
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, &file.text))
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Failure::input)?;
    }
    print(&format!("{} scenarios written to {}\n", files.len(), folder.display()))
}

/// `ttwu` without a command: the one-screen version.
pub(crate) fn headlines() -> Outcome {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let effort = Effort { seeds: 6, sensitivity_seeds: 0, threads };
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
                    let known = EXPERIMENTS.map(|experiment| experiment.name);
                    let hint = nearest_name(name, known);
                    let known = known.join(", ");
                    Err(Failure::input(anyhow!("no thread is called `{name}`{hint}; threads: {known}, all")))
                }
            }
        })
        .collect()
}

fn reproduce(
    experiment: &'static Experiment,
    effort: Effort,
    quiet: bool,
) -> Result<(Reproduced, bool), Failure> {
    let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
    let template = format!("{:<9} {{wide_bar}} {{pos}}/{{len}} runs, {{eta}} left {{msg}}", experiment.name);
    bar.set_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    watched_by(&bar, |cancel| {
        experiment.reproduce_until(effort, cancel, &|done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        })
    })
}
