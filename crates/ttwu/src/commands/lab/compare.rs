//! `ttwu compare`: arms into a verdict.

use super::{Outside, defaults, threads, watched};
use crate::args::lab::{Compare, CompareStyle};
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print, say};
use anyhow::anyhow;
use ttwu_lab::arm::parse_arms;
use ttwu_lab::compare::{Plan, Style, compare, render};
use ttwu_lab::executor;
use ttwu_results::mmtests;

/// Compares.
pub(crate) fn run(args: &Compare) -> Outcome {
    if let Some(directory) = &args.mmtests {
        return mmtests_tables(args, directory);
    }
    let arms = parse_arms(&args.arms, &defaults(&args.common), &Outside).map_err(Failure::input)?;
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

fn mmtests_tables(args: &Compare, directory: &std::path::Path) -> Outcome {
    let style = match args.style {
        CompareStyle::Mmtests2020 => mmtests::Style::Classic2020,
        CompareStyle::Mmtests2024 | CompareStyle::Text => mmtests::Style::Interval2024,
        CompareStyle::Strict | CompareStyle::Lkml | CompareStyle::Json | CompareStyle::Csv => {
            let why = "with --mmtests the style is mmtests-2020 or mmtests-2024";
            return Err(Failure::input(anyhow!(why)));
        }
    };
    if args.format == Some(OutputFormat::Json) {
        return Err(Failure::input(anyhow!("with --mmtests there is text only, mmtests' own")));
    }
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
