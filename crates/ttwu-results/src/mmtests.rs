//! mmtests' result trees (`work/log`) and its comparison tables, character for character, without R, Perl or awk.
//!
//! Two states of mmtests are reproduced, because published tables come from both and they decide differently:
//! [`Style::Classic2020`] (January 2020, the rule of October 2018 to November 2024) and [`Style::Interval2024`] (June 2026,
//! the rule since November 2024). What either prints is kept where it is questionable too: a missing operation prints as
//! 0 (0.00%), and several iterations are pooled. [`missing`] says what is missing, so that a caller can warn.
//!
//! ```text
//! tree:    work/log/<arm>/iter-N/<benchmark>/logs/* ──► text of each log (gz, xz, zst undone)
//! logs:    one reader a benchmark and style        ──► samples by operation, in the order mmtests meets them
//! summary: the benchmark's statistics              ──► values by operation and statistic
//! table:   differences, stars, widths              ──► text
//! ```
//!
//! DEVIATION: SubAmean and its interval are random in mmtests (not seeded); here they are drawn from a fixed seed.
//! DEVIATION: where mmtests dies (unknown benchmark or arm, a benchmark whose reader fails), an error says what is wrong.
//! DEVIATION: either style reads either layout of hackbench, dbench and tbench logs; mmtests reads its own only.

mod benchmarks;
mod extract;
mod logs_2020;
mod logs_2024;
mod measured;
mod printed;
mod ratio_table;
mod subselection;
mod summary;
mod table;
mod tree;

use std::path::PathBuf;

pub use measured::{MeasuredSeries, MeasuredTree, Sampling, measured, measured_benchmarks};

/// Which state of mmtests is reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// January 2020: Student's t with n1 + n2 - 2 degrees of freedom, a star below p = 0.10.
    Classic2020,
    /// June 2026: intervals of 1.96 standard deviations of the samples, a star where they do not meet.
    Interval2024,
}

/// Whether mmtests had a working R, which it calls for each star and does without silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum R {
    /// It had.
    Works,
    /// It had not: the 2024 rule takes all intervals as empty, the 2020 rule all probabilities as 0.
    Missing,
}

/// What to compare and how to print it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The directory of result trees (mmtests' `work/log`).
    pub directory: PathBuf,
    /// The benchmark, as its directory is named (`hackbench-process-pipes`, `dbench4`).
    pub benchmark: String,
    /// mmtests' `--altreport`: another report of the same logs (2020: `tput`, `latency`, `opslatency` of `dbench4`).
    pub alternative: Option<String>,
    /// Names of the arms, the baseline first.
    pub arms: Vec<String>,
    /// Whose tables.
    pub style: Style,
    /// mmtests' `--sub-heading`: only operations that begin so (a pattern; 2020: for some benchmarks the whole name). It
    /// can change the direction: dbench's `tput` is better higher.
    pub sub_heading: Option<String>,
    /// Rows `Significant`, as mmtests' `--print-significance`.
    pub print_significance: bool,
    /// The table of ratios instead, as mmtests' `--print-ratio`.
    pub print_ratio: bool,
    /// Whether R worked; [`R::Works`] but for reproducing a table that was made without.
    pub r: R,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No arms.
    #[error("no arms given: name at least the baseline, a directory below {}", directory.display())]
    NoArms {
        /// Where arms were expected.
        directory: PathBuf,
    },
    /// The benchmark is none that is read in this style.
    #[error("unknown benchmark `{benchmark}` in style {style}: expected one of {known}")]
    UnknownBenchmark {
        /// What was asked for.
        benchmark: String,
        /// The style's name.
        style: &'static str,
        /// What there is.
        known: String,
    },
    /// A benchmark that has no such report.
    #[error("`{benchmark}` has no report `{alternative}` in style {style}: {known}")]
    UnknownReport {
        /// The benchmark.
        benchmark: String,
        /// What was asked for.
        alternative: String,
        /// The style's name.
        style: &'static str,
        /// What there is, as the end of a sentence.
        known: String,
    },
    /// No directory of that name.
    #[error("no arm `{arm}` below {}: {remedy}", directory.display())]
    UnknownArm {
        /// The arm.
        arm: String,
        /// Where it was looked for.
        directory: PathBuf,
        /// What there is.
        remedy: String,
    },
    /// The baseline has samples, but none under the sub-heading.
    #[error("no operation of `{arm}` {how} `{sub_heading}`: there are {known}")]
    NoOperation {
        /// The baseline.
        arm: String,
        /// `begins with` or `is`.
        how: &'static str,
        /// What was asked for.
        sub_heading: String,
        /// The operations that there are.
        known: String,
    },
    /// The baseline has no samples.
    #[error("no samples of `{benchmark}` in the baseline `{arm}` below {}: {remedy}", directory.display())]
    NoBaseline {
        /// The benchmark.
        benchmark: String,
        /// The arm.
        arm: String,
        /// Where it was looked for.
        directory: PathBuf,
        /// What to try.
        remedy: String,
    },
    /// The sub-heading is no pattern.
    #[error("the sub-heading `{sub_heading}` is not a pattern")]
    SubHeading {
        /// What was given.
        sub_heading: String,
        /// What is wrong with it.
        source: regex_lite::Error,
    },
    /// A file or directory cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A log is not what its name says.
    #[error("{}: {found}, expected {expected}", path.display())]
    Log {
        /// Which.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl Style {
    /// The name on the command line: `mmtests-2020` or `mmtests-2024`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic2020 => "mmtests-2020",
            Self::Interval2024 => "mmtests-2024",
        }
    }

    /// The rule of the stars, in words.
    #[must_use]
    pub const fn star_rule(self) -> &'static str {
        match self {
            Self::Classic2020 => {
                "p < 0.10, Student's t with n1+n2-2 degrees of freedom (mmtests, October 2018 to November 2024)"
            }
            Self::Interval2024 => {
                "|difference| > 1.96 (sd1 + sd2), standard deviations of the samples (mmtests since November 2024)"
            }
        }
    }
}

/// The line that belongs above the table: style and star rule, starting with `#`, without a line end.
#[must_use]
pub fn header(options: &Options) -> String {
    let without = match options.r {
        R::Works => "",
        R::Missing => "; as printed where R does not work, so the stars mean nothing",
    };
    format!("# style {}; a star: {}{without}", options.style.name(), options.style.star_rule())
}

/// The table that mmtests prints: every line with its end, trailing spaces included.
///
/// # Errors
///
/// An unknown benchmark, report or arm, a baseline without samples, a bad or empty sub-heading, or a log that cannot be read.
pub fn compare(options: &Options) -> Result<String, Error> {
    let (benchmark, arms) = extract::arms(options)?;
    if options.print_ratio {
        Ok(ratio_table::render(options, &benchmark, &arms))
    } else {
        Ok(table::render(options, &benchmark, &arms))
    }
}

/// Why an arm of this name is none of `directory`'s: what there is.
///
/// # Errors
///
/// A directory that cannot be read.
pub fn unknown_arm(directory: &std::path::Path, arm: &str) -> Result<Error, Error> {
    extract::unknown_arm(directory, arm)
}

/// Operations of the baseline that an arm has no sample of; mmtests prints them as 0 (0.00%).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The arm.
    pub arm: String,
    /// Its missing operations, in the table's order.
    pub operations: Vec<String>,
}

/// What the table prints as 0 although it was not measured, one entry an arm that lacks something.
///
/// # Errors
///
/// As [`compare`].
pub fn missing(options: &Options) -> Result<Vec<Missing>, Error> {
    let (_, arms) = extract::arms(options)?;
    let Some(baseline) = arms.first() else { return Ok(Vec::new()) };
    let lacking = |arm: &extract::Arm| Missing {
        arm: arm.name.clone(),
        operations: baseline.shown.iter().filter(|label| arm.samples(label).is_empty()).cloned().collect(),
    };
    Ok(arms.iter().map(lacking).filter(|missing| !missing.operations.is_empty()).collect())
}
