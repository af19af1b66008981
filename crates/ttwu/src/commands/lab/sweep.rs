//! `ttwu sweep`: a matrix of runs that can be ended and goes on.

use super::{Outside, threads, watched};
use crate::args::lab::Sweep;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print};
use anyhow::{Context, anyhow};
use ttwu_lab::executor;
use ttwu_lab::sweep::{Shard, SweepPlan, render_json, render_text, survey, sweep};

/// Sweeps.
pub(crate) fn run(args: &Sweep) -> Outcome {
    let name = args.plan.display();
    let text = std::fs::read_to_string(&args.plan)
        .with_context(|| format!("cannot read {name}"))
        .map_err(Failure::input)?;
    let plan =
        SweepPlan::parse(&text, &Outside).map_err(|error| Failure::input(anyhow!("{name}:{error}")))?;
    let executor = executor(&args.on).map_err(Failure::input)?;
    let out = args.out.clone().unwrap_or_else(|| args.plan.with_extension(""));
    if out == args.plan {
        return Err(Failure::input(anyhow!("the plan's name has no ending; name a folder with --out")));
    }
    let shard = args.shard.map_or(Shard::WHOLE, |(index, count)| Shard { index: index - 1, count });
    let swept = if args.dry_run {
        survey(&plan, &out, shard)
    } else {
        let threads = threads(args.threads);
        let (swept, _) = watched(args.quiet, |cancel, progress| {
            sweep(&plan, &out, shard, threads, executor, cancel, progress)
        })?;
        swept
    };
    let swept = swept.map_err(Failure::input)?;
    print(&match args.format {
        OutputFormat::Text => render_text(&swept),
        OutputFormat::Json => render_json(&swept),
    })?;
    Ok(match (swept.interrupted, swept.failed.is_empty()) {
        (true, _) => Done::Interrupted,
        (false, true) => Done::Ok,
        (false, false) => Done::No,
    })
}
