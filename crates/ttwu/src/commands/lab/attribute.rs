//! `ttwu attribute`: which setting carries a difference.

use super::{Outside, defaults, threads, watched};
use crate::args::lab::Attribute;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print, say};
use ttwu_lab::arm::parse_arms;
use ttwu_lab::attribute::{AttributePlan, attribute, render_json, render_text};
use ttwu_lab::executor;

/// Attributes.
pub(crate) fn run(args: &Attribute) -> Outcome {
    let arms = parse_arms(&args.arms, &defaults(&args.common), &Outside).map_err(Failure::input)?;
    let executor = executor(&args.common.on).map_err(Failure::input)?;
    let plan = AttributePlan {
        row: args.row.clone(),
        seeds: args.seeds as usize,
        seed: args.common.seed,
        orders: args.orders as usize,
        threads: threads(args.common.threads),
    };
    let (found, interrupted) =
        watched(args.common.quiet, |cancel, progress| attribute(&arms, &plan, executor, cancel, progress))?;
    match found {
        Ok(found) => {
            print(&match args.format {
                OutputFormat::Text => render_text(&found),
                OutputFormat::Json => render_json(&found),
            })?;
            Ok(if found.interrupted { Done::Interrupted } else { Done::Ok })
        }
        Err(error) if interrupted => {
            say(&format!("ttwu: {error}"));
            Ok(Done::Interrupted)
        }
        Err(error) => Err(Failure::input(error)),
    }
}
