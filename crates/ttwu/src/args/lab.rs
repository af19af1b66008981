//! Flags of the laboratory's commands.

use crate::output::OutputFormat;
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What all simulated arms have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Workload of arms that name none; a range such as groups=1..4 is several
    #[arg(long, value_name = "W", default_value = "hackbench:groups=1,pipe,threads,loops=200")]
    pub(crate) workload: String,
    /// Machine of arms that name none: a name (ttwu topology --list), host, or a topology file
    #[arg(long, value_name = "M", default_value = "i7-4790")]
    pub(crate) machine: String,
    /// Policy of arms that name none
    #[arg(long, value_name = "P", default_value = "linux-6.12")]
    pub(crate) policy: String,
    /// Costs: a preset or a file; default: those of the machine's family
    #[arg(long, value_name = "PRESET|FILE")]
    pub(crate) costs: Option<String>,
    /// Change a setting, cost or tunable of all arms
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Where to run
    #[arg(long, value_name = "sim|host|vm", default_value = "sim")]
    pub(crate) on: String,
    /// First seed; seed N of each arm sees the same draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads; default: one a CPU
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `ttwu compare`
#[derive(Debug, Args)]
#[command(
    after_help = "An arm is a kernel, a machine or a workload with changes behind it (+FEATURE, -FEATURE,\n\
key=value), or a file or folder of benchmark output or recordings, FILE@N of a kept JSON result, or\n\
DIR@BENCHMARK of an mmtests tree (DIR has iter-0).\n\
One arm with changes is compared with itself without them.\n\n\
Seeds: a pilot of --pilot seeds gives the spread of the first row; from that alone the\n\
number that --precision needs is computed, once. Holm's correction is over all rows.\n\n\
Examples:\n  ttwu compare linux-6.6 linux-6.12\n  \
ttwu compare linux-6.12 -RUN_TO_PARITY --workload schbench:runtime=2\n  \
ttwu compare before/ after/ --style strict\n  \
ttwu compare --mmtests work/log --benchmark hackbench-process-pipes vanilla patched"
)]
pub(crate) struct Compare {
    /// Arms, the baseline first
    #[arg(value_name = "ARM", required = true)]
    pub(crate) arms: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Half width of the first row's interval that is wanted, such as 0.5%
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub(crate) precision: f64,
    /// A change of up to this much does not matter: `equivalent`
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub(crate) margin: f64,
    /// Seeds of the pilot, and at least
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub(crate) pilot: u32,
    /// Seeds at most
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(3..=100_000))]
    pub(crate) seeds_max: u32,
    /// Exactly so many seeds
    #[arg(long, value_name = "N", conflicts_with_all = ["pilot", "seeds_max", "precision"], value_parser = clap::value_parser!(u32).range(3..=100_000))]
    pub(crate) seeds: Option<u32>,
    /// Style of the table
    #[arg(long, value_enum, default_value_t = CompareStyle::Text)]
    pub(crate) style: CompareStyle,
    /// Same as --style json
    #[arg(long, value_enum, conflicts_with = "style")]
    pub(crate) format: Option<OutputFormat>,
    /// mmtests' tree of results (work/log); arms are its directories, or files beside them. With --style mmtests-2020 or
    /// mmtests-2024, mmtests' own tables
    #[arg(long, value_name = "DIR", requires = "benchmark")]
    pub(crate) mmtests: Option<PathBuf>,
    /// Benchmark in that tree, as its directory is called
    #[arg(long, value_name = "B", requires = "mmtests")]
    pub(crate) benchmark: Option<String>,
    /// Another report of the same logs, as mmtests' --altreport (tput, latency, opslatency)
    #[arg(long, value_name = "NAME", requires = "mmtests")]
    pub(crate) altreport: Option<String>,
    /// Only operations that begin so, as mmtests' --sub-heading
    #[arg(long, value_name = "PATTERN", requires = "mmtests")]
    pub(crate) sub_heading: Option<String>,
    /// Rows `Significant`, as mmtests prints them
    #[arg(long, requires = "mmtests")]
    pub(crate) print_significance: bool,
    /// mmtests' table of ratios
    #[arg(long, requires = "mmtests")]
    pub(crate) print_ratio: bool,
}

/// A style of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareStyle {
    /// Verdicts and why
    Text,
    /// mmtests of October 2018 to November 2024
    #[value(name = "mmtests-2020")]
    Mmtests2020,
    /// mmtests since November 2024
    #[value(name = "mmtests-2024")]
    Mmtests2024,
    /// All statistics of each row
    Strict,
    /// Lists of runs with mean and percentage
    Lkml,
    /// ttwu/compare/1
    Json,
    /// One line a sample
    Csv,
}

/// `ttwu attribute`
#[derive(Debug, Args)]
#[command(
    after_help = "Shares are Shapley values: what a feature adds, averaged over all orders of changing A into B\n\
(exact for up to 6 that differ, else sampled orders). What no setting can change is `generation`.\n\n\
Example:\n  ttwu attribute linux-6.1 linux-6.12 --workload hackbench:groups=2,pipe,loops=50"
)]
pub(crate) struct Attribute {
    /// Two policies
    #[arg(value_name = "POLICY", required = true)]
    pub(crate) arms: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Result to attribute; default: the workload's first
    #[arg(long, value_name = "NAME")]
    pub(crate) row: Option<String>,
    /// Seeds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub(crate) seeds: u32,
    /// Orders sampled a seed, each with its reverse
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) orders: u32,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

/// `ttwu sweep`
#[derive(Debug, Args)]
#[command(
    after_help = "docs/sweep.md describes plans. A sweep that was ended goes on where it was: done cells are in\n\
DIR/cells, the dataset is DIR/results.csv.\n\n\
Example:\n  ttwu sweep scenarios/sweeps/generations.toml --out results\n  \
ttwu sweep plan.toml --shard $SLURM_ARRAY_TASK_ID/32 --out results"
)]
pub(crate) struct Sweep {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Folder of results; default: the plan's name without its ending
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run part I of N only
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub(crate) shard: Option<(usize, usize)>,
    /// Where to run
    #[arg(long, value_name = "sim|host|vm", default_value = "sim")]
    pub(crate) on: String,
    /// Threads; default: one a CPU
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Run nothing; show what is done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 100.0 => Ok(value),
        _ => Err(format!("expected a percentage between 0 and 100 such as `0.5%`, found `{text}`")),
    }
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err(format!("expected a part such as `1/8`, counted from 1, found `{text}`")),
    }
}

/// Words such as `-RUN_TO_PARITY`, which are features of a policy and no flags, with a space in front, so that clap takes them
/// for values wherever they stand. (`allow_hyphen_values` would take the flags behind them for values too.)
pub(crate) fn shield_features(words: impl Iterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut own = true;
    words
        .map(|word| {
            own &= word != "--";
            let is_feature = |text: &str| {
                let name = text.strip_prefix('-').unwrap_or("");
                name.len() > 2
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
            };
            match word.to_str() {
                Some(text) if own && is_feature(text) => format!(" {text}").into(),
                Some(_) | None => word,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_no_flags() {
        let words =
            ["ttwu", "compare", "linux-6.12", "-RUN_TO_PARITY", "-q", "--seeds", "5", "--", "-NO_TOUCH"];
        let shielded = shield_features(words.into_iter().map(Into::into));
        let shielded: Vec<&str> = shielded.iter().filter_map(|word| word.to_str()).collect();
        assert_eq!(
            shielded,
            ["ttwu", "compare", "linux-6.12", " -RUN_TO_PARITY", "-q", "--seeds", "5", "--", "-NO_TOUCH"]
        );
    }

    #[test]
    fn parts_and_percentages_are_checked() {
        assert_eq!(shard("2/8"), Ok((2, 8)));
        assert!(["0/8", "9/8", "8", "a/b"].iter().all(|text| shard(text).is_err()));
        assert_eq!((percent("0.5%"), percent("2")), (Ok(0.5), Ok(2.0)));
        assert!(["0", "-1%", "100", "x"].iter().all(|text| percent(text).is_err()));
    }
}
