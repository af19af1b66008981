//! `ttwu convert`: another format.

use crate::args::{self, Target};
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, input_path, print, say, trace_target};
use anyhow::Context;
use serde_json::json;
use ttwu_trace::Target as Format;

/// Converts and says what came of it.
pub(crate) fn run(args: &args::Convert) -> Outcome {
    let target = target(args)?;
    target.check_built().map_err(Failure::input)?;
    let summary =
        ttwu_trace::convert(input_path(&args.input), &args.output, target).map_err(Failure::input)?;
    if !args.quiet {
        super::health::warn(&summary.health);
        let lost = target != Format::Ttwu
            && args.input.is_file()
            && ttwu_trace::side_tables(&args.input).is_ok_and(|tables| !tables.is_empty());
        if lost {
            say(&format!("ttwu: note: {target} cannot hold the simulator's reasons: they are left out"));
        }
    }
    match args.format {
        OutputFormat::Json => print(&format!(
            "{:#}",
            json!({
                "schema": "ttwu/convert/1",
                "to": target.to_string(),
                "events_in": summary.events_in,
                "events_out": summary.events_out,
                "bytes_out": summary.bytes_out,
            })
        )),
        OutputFormat::Text => {
            if !args.quiet {
                say(&format!(
                    "{}: {} events read, {} written as {target}, {} KiB",
                    args.output.display(),
                    summary.events_in,
                    summary.events_out,
                    summary.bytes_out.div_ceil(1024)
                ));
            }
            Ok(Done::Ok)
        }
    }
}

fn target(args: &args::Convert) -> Result<Format, Failure> {
    Ok(match args.to {
        Some(Target::Perfetto) => Format::Perfetto,
        Some(Target::Ttwu) => Format::Ttwu,
        Some(Target::Parquet) => Format::Parquet,
        Some(Target::Chrome) => Format::Chrome,
        None => trace_target(&args.output).context("--to names one").map_err(Failure::input)?,
    })
}
