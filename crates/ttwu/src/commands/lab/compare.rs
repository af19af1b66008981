//! `ttwu compare`: arms into a verdict.

use super::{Outside, defaults, threads, watched};
use crate::args::lab::{Compare, CompareStyle};
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print, say};
use anyhow::anyhow;
use std::path::Path;
use ttwu_lab::arm::{Arm, KeptArm, parse_arms};
use ttwu_lab::compare::{Plan, Style, compare, render};
use ttwu_lab::executor;
use ttwu_results::mmtests;

/// Compares.
pub(crate) fn run(args: &Compare) -> Outcome {
    let arms = match &args.mmtests {
        Some(directory) => match tables_of_mmtests(args) {
            Some(style) => return mmtests_tables(args, directory, style),
            None => tree_arms(args, directory)?,
        },
        None => parse_arms(&args.arms, &defaults(&args.common), &Outside).map_err(Failure::input)?,
    };
    for arm in &arms {
        if let Arm::Kept(KeptArm { label, left_out: Some(left_out), .. }) = arm {
            say(&format!("ttwu: note: {label}: {left_out}"));
        }
    }
    let executor = executor(&args.common.on).map_err(Failure::input)?;
    let exact = args.seeds.map(|seeds| seeds as usize);
    let plan = Plan {
        precision_pct: args.precision,
        pilot: exact.unwrap_or(args.pilot as usize),
        seeds_max: exact.unwrap_or(args.seeds_max as usize),
        margin_pct: args.margin,
        seed: args.common.seed,
        threads: threads(args.common.threads),
    };
    let (comparison, interrupted) =
        watched(args.common.quiet, |cancel, progress| compare(&arms, &plan, executor, cancel, progress))?;
    let comparison = match comparison {
        Ok(comparison) => comparison,
        Err(error) if interrupted => {
            say(&format!("ttwu: {error}"));
            return Ok(Done::Interrupted);
        }
        Err(error) => return Err(Failure::input(error)),
    };
    print(&render(&comparison, style(args)))?;
    Ok(if comparison.interrupted { Done::Interrupted } else { Done::Ok })
}

const fn style(args: &Compare) -> Style {
    match (args.format, args.style) {
        (Some(OutputFormat::Json), _) | (_, CompareStyle::Json) => Style::Json,
        (_, CompareStyle::Text) => Style::Text,
        (_, CompareStyle::Mmtests2020) => Style::Mmtests2020,
        (_, CompareStyle::Mmtests2024) => Style::Mmtests2024,
        (_, CompareStyle::Strict) => Style::Strict,
        (_, CompareStyle::Lkml) => Style::Lkml,
        (_, CompareStyle::Csv) => Style::Csv,
    }
}

/// The style of mmtests' own tables, where they are wanted: by their name, or by what only they have.
fn tables_of_mmtests(args: &Compare) -> Option<mmtests::Style> {
    let own = args.print_significance || args.print_ratio || args.altreport.is_some();
    if args.format == Some(OutputFormat::Json) {
        return None;
    }
    match args.style {
        CompareStyle::Mmtests2020 => Some(mmtests::Style::Classic2020),
        CompareStyle::Mmtests2024 => Some(mmtests::Style::Interval2024),
        CompareStyle::Text => own.then_some(mmtests::Style::Interval2024),
        CompareStyle::Strict | CompareStyle::Lkml | CompareStyle::Json | CompareStyle::Csv => None,
    }
}

/// Arms of a result tree, and files beside them, for comparisons of our own.
fn tree_arms(args: &Compare, directory: &Path) -> Result<Vec<Arm>, Failure> {
    let refuse = |why: String| Err(Failure::input(anyhow!(why)));
    if args.print_significance || args.print_ratio || args.altreport.is_some() {
        let why = "--print-significance, --print-ratio and --altreport are of mmtests' own tables: \
                   --style mmtests-2020 or mmtests-2024";
        return refuse(why.to_owned());
    }
    let benchmark = args.benchmark.as_deref().unwrap_or_default();
    let mut arms = Vec::new();
    for name in &args.arms {
        let below = directory.join(name);
        let arm = if below.is_dir() {
            KeptArm::from_tree(&below, benchmark, name).map_err(Failure::input)?
        } else if Path::new(name).exists() {
            KeptArm::open(name).map_err(Failure::input)?
        } else {
            let error = mmtests::unknown_arm(directory, name).map_err(Failure::input)?;
            return Err(Failure::input(error));
        };
        arms.push(arm);
    }
    if arms.len() < 2 {
        return refuse(format!("expected two arms or more; found {}", arms.len()));
    }
    if let Some(start) = args.sub_heading.as_deref().filter(|start| !start.is_empty()) {
        for arm in &mut arms {
            let known: Vec<String> = arm.series.iter().map(|series| series.name.clone()).collect();
            arm.series.retain(|series| series.name.starts_with(start));
            if arm.series.is_empty() {
                let known = known.join(", ");
                return refuse(format!(
                    "no result of `{}` begins with `{start}`: there are {known}",
                    arm.label
                ));
            }
        }
    }
    Ok(arms.into_iter().map(Arm::Kept).collect())
}

fn mmtests_tables(args: &Compare, directory: &Path, style: mmtests::Style) -> Outcome {
    let options = mmtests::Options {
        directory: directory.to_owned(),
        benchmark: args.benchmark.clone().unwrap_or_default(),
        alternative: args.altreport.clone(),
        arms: args.arms.clone(),
        style,
        sub_heading: args.sub_heading.clone(),
        print_significance: args.print_significance,
        print_ratio: args.print_ratio,
        r: mmtests::R::Works,
    };
    let table = mmtests::compare(&options).map_err(Failure::input)?;
    for missing in mmtests::missing(&options).map_err(Failure::input)? {
        let operations = missing.operations.join(", ");
        say(&format!("ttwu: warning: {} lacks {operations}; the table shows them as 0", missing.arm));
    }
    print(&format!("{}\n{table}", mmtests::header(&options)))
}
